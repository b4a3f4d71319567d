"""Times and limits that operators never set and tests shorten: one value, passed with the settings.

Tests in one process pass `Settings(timings=Timings(...))`. A test that starts processes sets
`HOLDFAST_TIMINGS_<NAME>`, which a strict environment rejects: some combinations, such as a heartbeat longer than
the timeout that it must prevent, would let two processes crawl one host.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from holdfast.values import dataclass

PREFIX = "HOLDFAST_TIMINGS_"


@dataclass(frozen=True, kw_only=True)
class Timings:
    lease_seconds: float = 60.0
    """How long a domain's lease lasts without renewal."""
    lease_renew_s: float = 15.0
    """How often a process renews all its leases, in one statement."""

    crawl_connect_s: float = 10.0
    """Time to connect, TLS included."""
    crawl_parse_s: float = 5.0
    """Timeout for parsing a page; after it the page is recorded without its links."""
    crawl_settle_s: float = 0.5
    """Longest delay before finished attempts are settled."""
    crawl_settle_pages: int = 200
    """Maximum number of attempts settled in one transaction."""
    crawl_watchdog_s: float = 20.0
    """A process is killed after its event loop has been unresponsive for this long."""
    crawl_unreachable_s: float = 1800.0
    """How long a domain may stay unreachable before its pages are closed; it is tried at least once a minute."""
    crawl_circuit_reset_s: float = 60.0
    """How long an open circuit waits before it tries again."""
    crawl_retry_base_s: float = 1.0
    """First wait before a retry; it doubles each time, with up to half of it more at random."""

    # Counts above which a site looks endless; URLs beyond them are skipped with the reason `trap`.
    traps_query_variants: int = 100_000
    """Different queries of one path."""
    traps_hosts: int = 10_000
    """Hosts of one registrable domain."""
    traps_directory_urls: int = 1_000_000
    """URLs in one directory of a host."""
    traps_domain_urls: int = 20_000_000
    """URLs of one host in one execution."""

    jobs_poll_s: float = 10.0
    """How often the scheduler checks for jobs that are due."""
    jobs_heartbeat_s: float = 30.0
    jobs_stale_s: float = 300.0
    """A job's lock is cleared after this long without a heartbeat."""
    jobs_sweep_s: float = 60.0
    """How often the scheduler checks for stale locks."""
    jobs_metrics_s: float = 30.0
    """How often the scheduler's metrics are counted."""
    jobs_rest_s: float = 2.0
    """How long a worker sleeps when no background work (indexing, reports) is pending."""
    jobs_takeovers: int = 3
    """Lost owners in a row, without any progress in between, after which an execution fails."""
    jobs_infra_cooldown_s: float = 600.0
    """Wait after a failure caused by the machine."""
    jobs_infra_retries: int = 5
    """Such failures in a row after which the job fails."""

    server_head_s: float = 10.0
    """Timeout for receiving the head of a request."""
    server_write_s: float = 30.0
    """Timeout for a client that stopped reading."""
    server_stream_s: float = 3600.0
    """Time after which a live stream ends; clients reconnect and continue where it ended."""
    server_streams: int = 600
    """Live streams that one process serves concurrently, out of 1,000 connections."""
    server_streams_per_principal: int = 20
    """Live streams that one user or token may hold in one process."""

    storage_probe_s: float = 10.0

    feeds_items: int = 500
    """New items that one poll captures; the rest waits for the next poll."""
    feeds_waiting: int = 50_000
    """Items of one source that may be pending; the rest is read again when there is room."""
    feeds_per_source: int = 200
    """Feeds and sitemaps that one source may have, disabled ones included."""

    webhooks_poll_s: float = 1.0

    @classmethod
    def read(cls, variables: Mapping[str, str]) -> Self:
        """Return the timings that test variables set; raise ValueError for an unknown name or an invalid number."""
        given: dict[str, Any] = {}
        for variable in sorted(name for name in variables if name.startswith(PREFIX)):
            name = variable.removeprefix(PREFIX).lower()
            default = getattr(cls, name, None)
            if not isinstance(default, int | float):
                raise ValueError(f"unknown variable {variable}; src/holdfast/config/timings.py lists the timings")
            try:
                given[name] = type(default)(variables[variable])
            except ValueError:
                raise ValueError(f"{variable} is {variables[variable]!r}; expected a number") from None
        return cls(**given)
