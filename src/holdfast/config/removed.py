"""Settings of earlier versions that are no longer read, each with its replacement."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from types import MappingProxyType
from typing import Any

from holdfast.config.model import PREFIX, SettingRefused

_RATE = "use HOLDFAST_API_RATES={kind}=…"


def _fixed(value: str) -> str:
    return f"it is fixed at {value}"


REMOVED: Mapping[str, str] = MappingProxyType(
    {
        "lease.seconds": _fixed("60 s"),
        "lease.renew_s": _fixed("15 s"),
        "lease.recover_s": _fixed("15 minutes; use holdfast frontier recover --minutes"),
        "politeness.unreachable_s": _fixed("30 minutes"),
        "politeness.circuit_failures": _fixed("5"),
        "politeness.circuit_reset_s": _fixed("60 s"),
        "politeness.retry_base_s": _fixed("1 s, doubled with each retry"),
        "fetch.connect_s": _fixed("10 s"),
        "fetch.min_rate": _fixed("64 bytes/s over 10 s"),
        "fetch.min_rate_s": _fixed("64 bytes/s over 10 s"),
        "fetch.connections": _fixed("2,000 a process"),
        "parse.deadline_s": _fixed("5 s"),
        "parse.max_bytes": _fixed("10 MiB"),
        "parse.crashes": _fixed("3"),
        "warc.age_s": _fixed("1 hour"),
        "warc.idle_s": _fixed("10 minutes"),
        "engine.settle_pages": _fixed("200"),
        "engine.settle_s": _fixed("0.5 s"),
        "engine.backlog": _fixed("64 pages"),
        "engine.watchdog_s": _fixed("20 s"),
        "traps.query_variants": _fixed("100,000"),
        "traps.hosts": _fixed("10,000"),
        "traps.directory_urls": _fixed("1,000,000"),
        "traps.domain_urls": _fixed("20,000,000"),
        "zimit.stop_s": _fixed("150 s"),
        "zimit.domain_wait_s": _fixed("30 s"),
        "recovery.guard_s": _fixed("10 minutes"),
        "recovery.per_day": _fixed("3 restarts of a job in 24 hours"),
        "recovery.breaker_pages": _fixed("10 pages"),
        "recovery.breaker_times": _fixed("3 restarts"),
        "recovery.slow_pages_per_minute": _fixed("2 pages a minute"),
        "recovery.slow_looks": _fixed("6 checks"),
        "recovery.deploy_lock_s": _fixed("2 hours"),
        "storage.probe_s": _fixed("10 s"),
        "storage.confirmations": _fixed("2 checks"),
        "storage.cooldown_s": _fixed("15 minutes"),
        "storage.per_hour": _fixed("2 actions an hour"),
        "storage.per_day": _fixed("6 actions in 24 hours"),
        "storage.per_job": _fixed("3 actions a job in 24 hours"),
        "storage.command_s": _fixed("60 s"),
        "storage.clean_keep": _fixed("2 crawls of each source"),
        "storage.clean_percent": _fixed("80 %"),
        "api.body_bytes": _fixed("1 MiB"),
        "api.head_s": _fixed("10 s"),
        "api.write_s": _fixed("30 s"),
        "api.query_chars": _fixed("8,192 characters"),
        "api.exports_default_limit": _fixed("1,000 rows; clients pass `limit`"),
        "api.exports_max_records": _fixed("10,000,000 records; use holdfast export for more"),
        "api.streams": _fixed("600 a process"),
        "api.streams_per_principal": _fixed("20"),
        "api.stream_s": _fixed("1 hour"),
        "api.usage_window_days": _fixed("30 days"),
        "replay.rewrite_s": _fixed("3 s"),
        "replay.members_s": _fixed("1 hour"),
        "jobs.poll_s": _fixed("10 s; use holdfast start-worker --poll-interval"),
        "jobs.batch": _fixed("100 jobs"),
        "jobs.heartbeat_s": _fixed("30 s"),
        "jobs.stale_s": _fixed("5 minutes"),
        "jobs.sweep_s": _fixed("60 s"),
        "jobs.metrics_s": _fixed("30 s"),
        "jobs.takeovers": _fixed("3"),
        "jobs.infra_cooldown_s": _fixed("10 minutes"),
        "jobs.infra_retries": _fixed("5"),
        "worker.rest_s": _fixed("2 s"),
        "feeds.child_hours": _fixed("24 hours"),
        "feeds.items": _fixed("500 items a poll"),
        "feeds.per_source": _fixed("200 feeds and sitemaps"),
        "feeds.waiting": _fixed("50,000 items"),
        "webhooks.most": _fixed("100 webhooks"),
        "webhooks.poll_s": _fixed("1 s"),
        "webhooks.timeout_s": _fixed("15 s"),
        "webhooks.parallel": _fixed("32 messages a process"),
        "webhooks.per_hook": _fixed("4 messages"),
        "webhooks.waiting": _fixed("10,000 deliveries"),
        "uploads.at_once": _fixed("100 uploads"),
        "uploads.silence_s": _fixed("30 s"),
    }
)
"""Ignored, with one printed line at start."""

UNSAFE: Mapping[str, str] = MappingProxyType(
    {
        "api.general_per_minute": _RATE.format(kind="general"),
        "api.search_per_minute": _RATE.format(kind="search"),
        "api.cdx_per_minute": _RATE.format(kind="cdx"),
        "api.exports_per_minute": _RATE.format(kind="exports"),
        "api.packages_per_minute": _RATE.format(kind="packages"),
        "api.reports_per_minute": _RATE.format(kind="reports"),
        "api.replay_per_minute": _RATE.format(kind="replay"),
        "api.admin_per_minute": _RATE.format(kind="admin"),
        "api.member_per_minute": _RATE.format(kind="member"),
        "api.intruder_per_minute": _RATE.format(kind="intruder"),
        "api.seeds_per_minute": _RATE.format(kind="seeds"),
        "auth.failures_per_account_and_address": _fixed("10 failures in 15 minutes"),
        "auth.failures_per_account": _fixed("100 failures in 15 minutes"),
        "auth.failures_per_address": _fixed("30 failures in 15 minutes"),
        "auth.failure_minutes": _fixed("15 minutes"),
        "auth.jwt_max_s": _fixed("24 hours"),
        "jobs.series_minutes_days": _fixed("7 days"),
        "jobs.series_hours_days": _fixed("90 days"),
        "jobs.series_days": _fixed("5 years"),
        "webhooks.keep_days": _fixed("30 days"),
        "uploads.expire_s": _fixed("24 hours"),
    }
)
"""Rejected at start: ignoring them would loosen a limit against abuse, or delete data earlier."""


def take_removed(values: MutableMapping[str, Any]) -> tuple[str, ...]:
    """Remove obsolete settings from `values`; return one line for each. Raise SettingRefused for one of `UNSAFE`."""
    lines = []
    for name in [*REMOVED, *UNSAFE]:
        group, _, key = name.partition(".")
        table = values.get(group)
        if not isinstance(table, Mapping) or key not in table:
            continue
        if name in UNSAFE:
            raise SettingRefused((group, key), f"it was removed: {UNSAFE[name]}, and unset this variable")
        values[group] = {one: value for one, value in table.items() if one != key}
        lines.append(f"{PREFIX}{group.upper()}_{key.upper()} is no longer a setting and is ignored: {REMOVED[name]}")
    return tuple(lines)
