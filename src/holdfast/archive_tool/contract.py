"""Convert a job's configuration to the argument list of `archive-tool`.

A configuration is checked before anything is queued. Settings that control the host (the image, the VPN
command) come from the server; a configuration that contains them is rejected.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, field, fields, replace
from pathlib import Path
from typing import Any

from holdfast.archive_tool.errors import ToolConfigRefused
from holdfast.archive_tool.options import (
    CPUS,
    LOG_LEVELS,
    MEMORY,
    SHM_SIZE,
    SHM_SIZE_HINT,
    TOOL_FLAGS,
    UNAVAILABLE,
    Backend,
    ResumePolicy,
    read_seeds,
)
from holdfast.archive_tool.zimit_flags import check_managed, read_flags, split_workers, strip_separator, zimit_flags
from holdfast.config import ZimitSettings
from holdfast.errors import Invalid
from holdfast.values import dataclass


def words(options: Any, group: str) -> list[str]:
    found: list[str] = []
    for one in TOOL_FLAGS:
        if one.job != group:
            continue
        value = getattr(options, one.name)
        is_default = value is None or value is False or (group == POLICY and value == one.default)
        if is_default or not all(getattr(options, name) for name in one.needs):
            continue
        if value is True:
            found.append(one.flag)
        elif isinstance(value, dict):
            found += [one.flag, json.dumps(value, separators=(",", ":"), sort_keys=True)]
        else:
            found += [one.flag, str(value)]
    return found


OPTIONS, POLICY = "tool_options", "execution_policy"
ANNUAL_RESTARTS, ANNUAL_ERRORS, ANNUAL_BACKOFF_MINUTES = 20, 50, 2
OTHER_RESTARTS = 6
"""Minimum number of restarts allowed for a job that is not annual."""
_LEAST = {
    "initial_workers": 1,
    "min_workers": 1,
    "monitor_interval_seconds": 1,
    "stall_timeout_minutes": 1,
    "error_threshold_timeout": 1,
    "error_threshold_http": 1,
    "max_temp_dirs_before_reset": 1,
}
_MOST = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolOptions:
    """`tool_options` of a job; None means the tool's default."""

    cleanup: bool = False
    overwrite: bool = False
    skip_final_build: bool = False
    enable_monitoring: bool = False
    enable_adaptive_workers: bool = False
    enable_adaptive_restart: bool = False
    enable_vpn_rotation: bool = False
    relax_perms: bool = False
    initial_workers: int = 1
    log_level: str = "INFO"
    docker_shm_size: str | None = None
    browsertrix_config: dict[str, Any] | None = None
    monitor_interval_seconds: int | None = None
    stall_timeout_minutes: int | None = None
    error_threshold_timeout: int | None = None
    error_threshold_http: int | None = None
    min_workers: int | None = None
    max_worker_reductions: int | None = None
    max_container_restarts: int | None = None
    backoff_delay_minutes: int | None = None
    max_vpn_rotations: int | None = None
    vpn_rotation_frequency_minutes: int | None = None
    vpn_connect_command: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionPolicy:
    """`execution_policy` of a job: the backend, and how to treat saved queues of earlier runs."""

    capture_backend: str = Backend.BROWSERTRIX.value
    resume_policy: str = ResumePolicy.AUTO.value
    fallback_backend: str = "none"
    max_fresh_failures_before_fallback: int = 0
    auto_reset_poisoned_state: bool = False
    max_temp_dirs_before_reset: int | None = None
    primary_backend: str | None = None
    last_promoted_from_backend: str | None = None
    last_promotion_reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobConfig:
    seeds: tuple[str, ...]
    zimit_passthrough_args: tuple[str, ...] = ()
    tool_options: ToolOptions = field(default_factory=ToolOptions)
    execution_policy: ExecutionPolicy = field(default_factory=ExecutionPolicy)


def read_job_config(content: Mapping[str, Any], host: ZimitSettings) -> JobConfig:
    """Return the checked configuration; raise `ToolConfigRefused` naming the invalid field.

    Labels (`campaign_*`) are allowed.
    """
    if not isinstance(content, Mapping):
        raise ToolConfigRefused("config", "it must be an object")
    known = {"seeds", "zimit_passthrough_args", "tool_options", "execution_policy"}
    for key in content:
        if key not in known and not str(key).startswith("campaign_"):
            raise ToolConfigRefused(f"config.{str(key)[:80]}", "there is no such field")
    seeds, passthrough = content.get("seeds"), content.get("zimit_passthrough_args", [])
    for name, value in (("seeds", seeds), ("zimit_passthrough_args", passthrough)):
        if not isinstance(value, list | tuple) or not all(isinstance(one, str) for one in value):
            raise ToolConfigRefused(name, "it must be a list of strings")
    assert seeds is not None
    # Read to be checked: a flag that may not reach zimit is refused when the job is saved.
    split_workers(read_flags(passthrough, host.flags))
    options = _values(ToolOptions, "tool_options", content.get("tool_options", {}))
    policy = _values(ExecutionPolicy, "execution_policy", content.get("execution_policy", {}))
    made = JobConfig(
        seeds=read_seeds(seeds),
        zimit_passthrough_args=tuple(strip_separator(passthrough)),
        tool_options=ToolOptions(**options),
        execution_policy=ExecutionPolicy(**policy),
    )
    _check_options(made.tool_options, host)
    _check_policy(made.execution_policy)
    return made


def _values(kind: type[ToolOptions] | type[ExecutionPolicy], group: str, content: object) -> dict[str, Any]:
    if not isinstance(content, Mapping):
        raise ToolConfigRefused(group, "it must be an object")
    declared = {one.name: str(one.type) for one in fields(kind)}
    given = {}
    for name, value in content.items():
        if name not in declared:
            raise ToolConfigRefused(f"{group}.{str(name)[:80]}", "there is no such option")
        if value is None and "None" in declared[name]:
            continue
        wanted = _kind(declared[name])
        if not _is_a(value, wanted):
            raise ToolConfigRefused(f"{group}.{name}", f"it must be {_ARTICLES[wanted]}")
        if wanted == "int" and not _LEAST.get(name, 0) <= value <= _MOST:
            raise ToolConfigRefused(f"{group}.{name}", f"it must lie between {_LEAST.get(name, 0)} and {_MOST}")
        given[name] = value
    return given


_ARTICLES = {"bool": "true or false", "int": "a whole number", "str": "a string", "dict": "an object"}
_TYPES: dict[str, type] = {"bool": bool, "int": int, "str": str, "dict": dict}


def _kind(declared: str) -> str:
    return declared.split(" ")[0].split("[")[0]


def _is_a(value: object, wanted: str) -> bool:
    return isinstance(value, _TYPES[wanted]) and (wanted == "bool" or not isinstance(value, bool))


def _check_options(options: ToolOptions, host: ZimitSettings) -> None:
    # An option that would never reach the tool is refused, not ignored.
    monitored = [one.name for one in TOOL_FLAGS if one.needs == ("enable_monitoring",)]
    for name in ("enable_adaptive_workers", "enable_adaptive_restart", "enable_vpn_rotation", *monitored):
        if getattr(options, name) not in (None, False) and not options.enable_monitoring:
            raise ToolConfigRefused(f"tool_options.{name}", "it needs enable_monitoring")
    # Commands that run on the host come from the server's settings, never from a job.
    if options.vpn_connect_command is not None and options.vpn_connect_command != host.vpn_command:
        raise ToolConfigRefused(
            "tool_options.vpn_connect_command", "commands come from the server's settings (HOLDFAST_ZIMIT_VPN_COMMAND)"
        )
    if options.enable_vpn_rotation and not host.vpn_command:
        raise ToolConfigRefused("tool_options.enable_vpn_rotation", "the server has no VPN command")
    if options.log_level not in LOG_LEVELS:
        raise ToolConfigRefused("tool_options.log_level", f"it must be one of {', '.join(LOG_LEVELS)}")
    if options.min_workers is not None and options.min_workers > options.initial_workers:
        raise ToolConfigRefused("tool_options.min_workers", "it is more than initial_workers")
    if options.docker_shm_size is not None and not SHM_SIZE.fullmatch(options.docker_shm_size):
        raise ToolConfigRefused("tool_options.docker_shm_size", SHM_SIZE_HINT)
    if options.browsertrix_config is not None:
        check_managed(options.browsertrix_config)


def _check_policy(policy: ExecutionPolicy) -> None:
    backends = [one.value for one in Backend]
    rules: tuple[tuple[str, str, Sequence[str]], ...] = (
        ("capture_backend", policy.capture_backend, backends),
        ("resume_policy", policy.resume_policy, [one.value for one in ResumePolicy]),
        ("fallback_backend", policy.fallback_backend, ["none", *backends[1:]]),
    )
    for name, value, allowed in rules:
        # Refused when a job is saved: at run time it would burn its retries.
        if value in UNAVAILABLE:
            why = f"{value} is not available here yet; use {Backend.HTTP_WARC.value}, or zimit itself"
            raise ToolConfigRefused(f"execution_policy.{name}", why)
        if value not in allowed:
            raise ToolConfigRefused(f"execution_policy.{name}", f"it must be one of {', '.join(allowed)}")


def tool_flags(config: JobConfig, host: ZimitSettings) -> list[str]:
    """Return a job's flags in the agreed order, zimit's own last and without a separator.

    Monitoring, adaptation and rotation flags appear only together with the flags they need. A configuration stored
    before a rule existed loses that group of flags instead of failing the run.
    """
    options = replace(config.tool_options, vpn_connect_command=host.vpn_command)
    flags = ["--initial-workers", str(options.initial_workers)]
    flags += ["--cleanup"] if options.cleanup else []
    flags += ["--overwrite"] if options.overwrite else []
    flags += ["--log-level", options.log_level]
    flags += ["--docker-image", host.image] if host.image else []
    # Only what differs: another program may stand in for the tool, and need not know these.
    flags += ["--docker-memory", host.memory] if host.memory != MEMORY else []
    flags += ["--docker-cpus", f"{host.cpus:g}"] if host.cpus != CPUS else []
    flags += ["--store-root", str(host.store_root)] if host.store_root else []
    for name in host.flags:
        flags += [f"--allow-zimit-flag={name}"]
    flags += words(options, OPTIONS) + words(config.execution_policy, POLICY)
    return [*flags, *config.zimit_passthrough_args]


def tool_command(
    config: JobConfig, host: ZimitSettings, *, name: str, output_dir: Path, program: Sequence[str] = ()
) -> list[str]:
    """Return the command of a crawl; `program` replaces the words of the configured command (`find_program`)."""
    # A list of arguments, and no shell: a seed or a name is never read as a command.
    return [
        *(program or shlex.split(host.command)),
        "--seeds",
        *config.seeds,
        "--name",
        name,
        "--output-dir",
        str(output_dir),
        *tool_flags(config, host),
    ]


def with_annual_minima(options: ToolOptions) -> ToolOptions:
    """Return the options with the minima of annual crawls: a lower bound for restarts and thresholds, an exact wait."""
    raised: dict[str, Any] = below_minimum(asdict(options), annual=True)
    return replace(options, **raised)


def below_minimum(options: Mapping[str, object], *, annual: bool) -> dict[str, int]:
    """Return the tool options that are below their minimum, with the required values."""
    least = {"max_container_restarts": ANNUAL_RESTARTS if annual else OTHER_RESTARTS}
    # Without monitoring the tool takes neither thresholds nor a wait.
    annual = annual and bool(options.get("enable_monitoring"))
    if annual:
        least |= {"error_threshold_timeout": ANNUAL_ERRORS, "error_threshold_http": ANNUAL_ERRORS}
    found = {name: value for name, value in least.items() if _number(options.get(name)) < value}
    if annual and options.get("backoff_delay_minutes") != ANNUAL_BACKOFF_MINUTES:
        found["backoff_delay_minutes"] = ANNUAL_BACKOFF_MINUTES
    return found


def _number(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def annual_caps(config: JobConfig, host: ZimitSettings) -> list[str]:
    """Return the flags that limit pages or depth, which an annual crawl must not have."""
    caps = zimit_flags("--max-pages", "--depth")
    return [flag.name for flag in read_flags(config.zimit_passthrough_args, host.flags) if flag.name in caps]


_YES, _NO = ("true", "yes", "on", "1"), ("false", "no", "off", "0")


def read_patch(options: Iterable[str], policy: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Return the values to set in a job's configuration, by group; None removes a value.

    Raise `ToolConfigRefused` naming the invalid word.
    """
    made = {OPTIONS: _read(ToolOptions, OPTIONS, options), POLICY: _read(ExecutionPolicy, POLICY, policy)}
    return {group: given for group, given in made.items() if given}


def _read(kind: type[ToolOptions] | type[ExecutionPolicy], group: str, words: Iterable[str]) -> dict[str, Any]:
    declared = {one.name: str(one.type) for one in fields(kind)}
    made: dict[str, Any] = {}
    for word in words:
        name, equals, written = word.partition("=")
        name = name.strip()
        if not equals or not name:
            raise ToolConfigRefused(group, f"{word[:80]!r} is no KEY=VALUE")
        if name not in declared:
            raise ToolConfigRefused(f"{group}.{name[:80]}", f"there is no such option; known: {', '.join(declared)}")
        try:
            made[name] = _typed(declared[name], written.strip())
        except ValueError as exc:
            raise ToolConfigRefused(
                f"{group}.{name}", f"{written[:80]!r} is not {_ARTICLES[_kind(declared[name])]}"
            ) from exc
    return made


def _typed(declared: str, written: str) -> Any:
    """Return a value of the declared type; raise ValueError if it does not parse."""
    if written.lower() in ("null", "none") and "None" in declared:
        return None
    kind = _kind(declared)
    if kind == "bool":
        if written.lower() not in (*_YES, *_NO):
            raise ValueError(written)
        return written.lower() in _YES
    if kind == "int":
        return int(written)
    if kind == "dict":
        made = json.loads(written)
        if not isinstance(made, dict):
            raise ValueError(written)
        return made
    return written


class ToolMissing(Invalid):
    """The command that runs zimit crawls cannot be started; retrying does not help."""

    code = "tool_missing"

    def __init__(self, command: str, reason: str) -> None:
        super().__init__(f"cannot run {command[:200]!r}: {reason}; set HOLDFAST_ZIMIT_COMMAND, or install it")


def find_program(command: str, outer: Mapping[str, str] = os.environ) -> list[str]:
    """Return the command's words with the path of its program first; raise `ToolMissing` if it is not found."""
    try:
        words = shlex.split(command)
    except ValueError as exc:
        raise ToolMissing(command, str(exc)) from exc
    if not words:
        raise ToolMissing(command, "it is empty")
    beside = Path(sys.executable).parent / words[0]
    if "/" not in words[0] and beside.is_file() and os.access(beside, os.X_OK):
        return [str(beside), *words[1:]]
    found = shutil.which(words[0], path=outer.get("PATH", os.defpath))
    if found is None:
        raise ToolMissing(command, "there is no such program beside the interpreter or on PATH")
    return [found, *words[1:]]
