"""Answers of what is watched: crawls over time, and alerts."""

from __future__ import annotations

from datetime import datetime
from enum import IntEnum, StrEnum

from pydantic import ConfigDict, Field

from holdfast.api.schemas.base import Answer
from holdfast.jobs.alerts import AlertName, AlertSeverity


class LatencyColumns(Answer):
    """How long attempts took."""

    bounds_seconds: list[float] = Field(description="Upper bounds of the classes; a last one holds what took longer.")
    counts: list[list[int]] = Field(description="For each point, how many attempts each class has.")
    seconds: list[float] = Field(description="For each point, the time of all of them together.")


class TimeSeries(Answer):
    """What crawls did, column by column: each list has one number for each of `timestamps`."""

    since: datetime = Field(alias="from", description="Where the first point begins.")
    until: datetime = Field(alias="to", description="Where the last point ends.")
    step_seconds: int
    timestamps: list[datetime]
    pages_crawled: list[int]
    pages_failed: list[int]
    bytes_downloaded: list[int]
    requests: list[int]
    attempts: list[int] = Field(description="Attempts that were settled: those of `outcomes`, and the retries.")
    retries: list[int]
    links_discovered: list[int]
    duplicates_skipped: list[int] = Field(description="Answers that were as before.")
    robots_denied: list[int]
    circuits_opened: list[int] = Field(description="Domains that were left alone after failures in a row.")
    imported_records: list[int]
    outcomes: dict[str, list[int]]
    status_classes: dict[str, list[int]]
    queue: list[int] = Field(description="Addresses that waited at the end of each point.")
    domains_waiting: list[int] = Field(description="The most domains with something to ask for, in each point.")
    latency: LatencyColumns


class SeriesStep(IntEnum):
    """How many seconds a point stands for."""

    MINUTE = 60
    FIVE_MINUTES = 300
    QUARTER = 900
    HOUR = 3600
    SIX_HOURS = 21600
    DAY = 86400


class AlertState(StrEnum):
    """Whether an alert still holds."""

    FIRING = "firing"
    RESOLVED = "resolved"


class AlertShown(Answer):
    """One time that something was wrong."""

    id: int
    name: AlertName
    severity: AlertSeverity
    state: AlertState
    since: datetime
    last_seen_at: datetime
    resolved_at: datetime | None
    value: float = Field(description="What was measured last: a share, a growth a minute, or seconds of silence.")
    message: str


class CrawlerFigures(Answer):
    """What crawls do now, as `metrics:update` of `/api/metrics/events` tells it."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "jobs": {"completed": 3, "running": 1},
                    "pages": 560,
                    "pagesPerSecond": 1.5,
                    "successRate": 0.98,
                    "queue": 120,
                    "domainsLeased": 1,
                    "domainsWaiting": 2,
                    "circuits": {"open": 1},
                    "workers": 1,
                    "alerts": [],
                    "warcBytes": 1031830,
                }
            ]
        }
    )

    jobs: dict[str, int] = Field(description="By `admin_status`.")
    pages: int = Field(description="Of all crawls since the beginning.")
    pages_per_second: float = Field(description="In the last whole minute.")
    success_rate: float | None = Field(description="Over the last five whole minutes; null if nothing was asked.")
    queue: int = Field(description="Addresses that wait.")
    domains_leased: int
    domains_waiting: int
    circuits: dict[str, int] = Field(description="Domains that are left alone after failures, by state.")
    workers: int
    alerts: list[str] = Field(description="Those that fire.")
    warc_bytes: int
