"""In which order a job's options become flags of `archive-tool`, and which of them appear only together."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple


class FlagRule(NamedTuple):
    """One option and its flag."""

    field: str
    flag: str
    when: Callable[[Any], bool]
    """Asked about all options of the job."""


def _always(_options: Any) -> bool:
    return True


def _watched(options: Any) -> bool:
    return bool(options.enable_monitoring)


def _adaptive(options: Any) -> bool:
    return bool(options.enable_monitoring and options.enable_adaptive_workers)


def _rotating(options: Any) -> bool:
    return bool(options.enable_monitoring and options.enable_vpn_rotation and options.vpn_connect_command)


def _restarting(options: Any) -> bool:
    return bool(options.enable_monitoring and options.enable_adaptive_restart)


OPTION_FLAGS = (
    FlagRule("docker_shm_size", "--docker-shm-size", _always),
    FlagRule("browsertrix_config", "--browsertrix-config-json", _always),
    FlagRule("enable_monitoring", "--enable-monitoring", _watched),
    FlagRule("monitor_interval_seconds", "--monitor-interval-seconds", _watched),
    FlagRule("stall_timeout_minutes", "--stall-timeout-minutes", _watched),
    FlagRule("error_threshold_timeout", "--error-threshold-timeout", _watched),
    FlagRule("error_threshold_http", "--error-threshold-http", _watched),
    FlagRule("enable_adaptive_workers", "--enable-adaptive-workers", _adaptive),
    FlagRule("min_workers", "--min-workers", _adaptive),
    FlagRule("max_worker_reductions", "--max-worker-reductions", _adaptive),
    FlagRule("enable_vpn_rotation", "--enable-vpn-rotation", _rotating),
    FlagRule("vpn_connect_command", "--vpn-connect-command", _rotating),
    FlagRule("max_vpn_rotations", "--max-vpn-rotations", _rotating),
    FlagRule("vpn_rotation_frequency_minutes", "--vpn-rotation-frequency-minutes", _rotating),
    FlagRule("enable_adaptive_restart", "--enable-adaptive-restart", _restarting),
    FlagRule("max_container_restarts", "--max-container-restarts", _restarting),
    FlagRule("backoff_delay_minutes", "--backoff-delay-minutes", _watched),
    FlagRule("relax_perms", "--relax-perms", _always),
    FlagRule("skip_final_build", "--skip-final-build", _always),
)
POLICY_FLAGS = (
    FlagRule("capture_backend", "--capture-backend", lambda policy: policy.capture_backend != "browsertrix"),
    FlagRule("resume_policy", "--resume-policy", lambda policy: policy.resume_policy != "auto"),
    FlagRule("fallback_backend", "--fallback-backend", lambda policy: policy.fallback_backend != "none"),
    FlagRule(
        "max_fresh_failures_before_fallback", "--max-fresh-failures-before-fallback",
        lambda policy: policy.max_fresh_failures_before_fallback > 0,
    ),
    FlagRule("auto_reset_poisoned_state", "--auto-reset-poisoned-state", _always),
    FlagRule("max_temp_dirs_before_reset", "--max-temp-dirs-before-reset", _always),
)  # fmt: skip


def words(options: Any, rules: tuple[FlagRule, ...]) -> list[str]:
    """Return the flags of those options that are set and whose company is there, in order."""
    found: list[str] = []
    for rule in rules:
        value = getattr(options, rule.field)
        if value is None or value is False or not rule.when(options):
            continue
        if value is True:
            found.append(rule.flag)
        elif isinstance(value, dict):
            found += [rule.flag, json.dumps(value, separators=(",", ":"), sort_keys=True)]
        else:
            found += [rule.flag, str(value)]
    return found
