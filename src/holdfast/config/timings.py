"""Times and limits that operators never set and tests shorten: one value, passed with the settings.

Tests in one process pass `Settings(timings=Timings(...))`. A test that starts processes sets
`HOLDFAST_TIMINGS_<GROUP>_<NAME>`, which a strict environment rejects: some combinations, such as a heartbeat
longer than the timeout that it must prevent, would let two processes crawl one host.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from holdfast.values import dataclass

PREFIX = "HOLDFAST_TIMINGS_"


@dataclass(frozen=True, kw_only=True)
class LeaseTimings:
    seconds: float = 60.0
    """How long a domain's lease lasts without renewal."""
    renew_s: float = 15.0
    """How often a process renews all its leases, in one statement."""


@dataclass(frozen=True, kw_only=True)
class CrawlTimings:
    connect_s: float = 10.0
    """Time to connect, TLS included."""
    parse_s: float = 5.0
    """Timeout for parsing a page; after it the page is recorded without its links."""
    settle_s: float = 0.5
    """Longest delay before finished attempts are settled."""
    settle_pages: int = 200
    """Maximum number of attempts settled in one transaction."""
    watchdog_s: float = 20.0
    """A process is killed after its event loop has been unresponsive for this long."""
    unreachable_s: float = 1800.0
    """How long a domain may stay unreachable before its pages are closed; it is tried at least once a minute."""
    circuit_reset_s: float = 60.0
    """How long an open circuit waits before it tries again."""
    retry_base_s: float = 1.0
    """First wait before a retry; it doubles each time, with up to half of it more at random."""


@dataclass(frozen=True, kw_only=True)
class TrapTimings:
    """Counts above which a site looks endless; URLs beyond them are skipped with the reason `trap`."""

    query_variants: int = 100_000
    """Different queries of one path."""
    hosts: int = 10_000
    """Hosts of one registrable domain."""
    directory_urls: int = 1_000_000
    """URLs in one directory of a host."""
    domain_urls: int = 20_000_000
    """URLs of one host in one execution."""


@dataclass(frozen=True, kw_only=True)
class JobTimings:
    poll_s: float = 10.0
    """How often the scheduler checks for jobs that are due."""
    heartbeat_s: float = 30.0
    stale_s: float = 300.0
    """A job's lock is cleared after this long without a heartbeat."""
    sweep_s: float = 60.0
    """How often the scheduler checks for stale locks."""
    metrics_s: float = 30.0
    """How often the scheduler's metrics are counted."""
    rest_s: float = 2.0
    """How long a worker sleeps when no background work (indexing, reports) is pending."""
    takeovers: int = 3
    """Lost owners in a row, without any progress in between, after which an execution fails."""
    infra_cooldown_s: float = 600.0
    """Wait after a failure caused by the machine."""
    infra_retries: int = 5
    """Such failures in a row after which the job fails."""


@dataclass(frozen=True, kw_only=True)
class ServerTimings:
    head_s: float = 10.0
    """Timeout for receiving the head of a request."""
    write_s: float = 30.0
    """Timeout for a client that stopped reading."""
    stream_s: float = 3600.0
    """Time after which a live stream ends; clients reconnect and continue where it ended."""
    streams: int = 600
    """Live streams that one process serves concurrently, out of 1,000 connections."""
    streams_per_principal: int = 20
    """Live streams that one user or token may hold in one process."""


@dataclass(frozen=True, kw_only=True)
class StorageTimings:
    probe_s: float = 10.0


@dataclass(frozen=True, kw_only=True)
class FeedTimings:
    """Limits of polling a source's feeds."""

    items: int = 500
    """New items that one poll captures; the rest waits for the next poll."""
    waiting: int = 50_000
    """Items of one source that may be pending; the rest is read again when there is room."""
    per_source: int = 200
    """Feeds and sitemaps that one source may have, disabled ones included."""


@dataclass(frozen=True, kw_only=True)
class WebhookTimings:
    poll_s: float = 1.0


@dataclass(frozen=True, kw_only=True)
class Timings:
    lease: LeaseTimings = LeaseTimings()
    crawl: CrawlTimings = CrawlTimings()
    traps: TrapTimings = TrapTimings()
    jobs: JobTimings = JobTimings()
    server: ServerTimings = ServerTimings()
    storage: StorageTimings = StorageTimings()
    feeds: FeedTimings = FeedTimings()
    webhooks: WebhookTimings = WebhookTimings()

    @classmethod
    def read(cls, variables: Mapping[str, str]) -> Self:
        """Return the timings that test variables set; raise ValueError for an unknown name or an invalid number."""
        groups: dict[str, dict[str, Any]] = {}
        for variable in sorted(name for name in variables if name.startswith(PREFIX)):
            group, _, name = variable.removeprefix(PREFIX).lower().partition("_")
            default = getattr(getattr(cls, group, None), name, None)
            if default is None:
                raise ValueError(f"unknown variable {variable}; src/holdfast/config/timings.py lists the timings")
            try:
                groups.setdefault(group, {})[name] = type(default)(variables[variable])
            except ValueError:
                raise ValueError(f"{variable} is {variables[variable]!r}; expected a number") from None
        return cls(**{group: type(getattr(cls, group))(**values) for group, values in groups.items()})
