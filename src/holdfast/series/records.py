"""Crawl activity over time, column by column."""

from __future__ import annotations

from datetime import datetime

from holdfast.records import Operator, record


@record
class LatencyColumns:
    """Durations of attempts."""

    bounds_seconds: Operator[list[float]]
    """Upper bounds of the classes; one more class holds longer attempts."""
    counts: Operator[list[list[int]]]
    """For each point, the number of attempts in each class."""
    seconds: Operator[list[float]]
    """For each point, the total time of its attempts."""


@record
class TimeSeries:
    """Crawl activity by column: each list has one number for each of `timestamps`."""

    since: Operator[datetime]
    """Start of the first point."""
    until: Operator[datetime]
    """End of the last point."""
    step_seconds: Operator[int]
    timestamps: Operator[list[datetime]]
    pages_crawled: Operator[list[int]]
    pages_failed: Operator[list[int]]
    bytes_downloaded: Operator[list[int]]
    requests: Operator[list[int]]
    attempts: Operator[list[int]]
    """Attempts that ended: those of `outcomes`, and the retries."""
    retries: Operator[list[int]]
    links_discovered: Operator[list[int]]
    duplicates_skipped: Operator[list[int]]
    """Unchanged responses."""
    robots_denied: Operator[list[int]]
    circuits_opened: Operator[list[int]]
    """Domains that were paused after consecutive failures."""
    imported_records: Operator[list[int]]
    outcomes: Operator[dict[str, list[int]]]
    status_classes: Operator[dict[str, list[int]]]
    queue: Operator[list[int]]
    """Queued addresses at the end of each point."""
    domains_waiting: Operator[list[int]]
    """The highest number of domains with queued addresses, in each point."""
    latency: Operator[LatencyColumns]
