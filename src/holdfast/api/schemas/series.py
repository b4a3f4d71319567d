"""Answers of what is watched: crawls over time, and alerts."""

from __future__ import annotations

from datetime import datetime
from enum import IntEnum, StrEnum

from pydantic import ConfigDict, Field

from holdfast.api.schemas.base import Answer
from holdfast.jobs.alerts import AlertName, AlertSeverity
from holdfast.types import Outcome


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


class StatusCount(Answer):
    """How often one status code was returned."""

    status: int | None = Field(description="Null without a response.")
    attempts: int


class BusyDomain(Answer):
    """What crawls got from one domain."""

    domain: str
    captures: int
    bytes: int = Field(description="Received from the network.")
    errors: int = Field(description="Attempts that failed; a retry counts again.")


class RequestedPage(Answer):
    """A page that was requested."""

    url: str
    title: str | None
    outcome: Outcome
    word: str = Field(description="The outcome in plain words.")
    reason: str | None
    status: int | None
    completed_at: datetime
    execution_id: int
    source_code: str
    snapshot_id: int | None = Field(description="Its capture; null until that is indexed, and without one.")
    captured_at: datetime | None


class HostGivenUp(Answer):
    """A host that no crawl asks until it is tried again."""

    domain: str
    since: datetime
    failures: int = Field(description="In a row.")
    reason: str
    next_try_at: datetime | None
    next_step: str


class ActivityShown(Answer):
    """What crawls did lately. All but `statusClasses` and `unreachableHosts` is counted from the newest attempts."""

    since: datetime = Field(alias="from")
    until: datetime = Field(alias="to")
    status_classes: dict[str, int] = Field(description="Responses of the whole span, by class.")
    attempts: int = Field(description="Attempts that are counted: the newest, at most 5,000.")
    is_cut: bool = Field(description="Whether the span has more attempts than are counted.")
    counted_from: datetime | None = Field(description="When the oldest of the counted attempts ended.")
    statuses: list[StatusCount] = Field(description="Most frequent first.")
    domains: list[BusyDomain] = Field(description="At most 20.")
    pages: list[RequestedPage] = Field(description="The newest first, at most 20.")
    unreachable_hosts: list[HostGivenUp] = Field(description="By name, at most 20; all are in `/api/domains`.")


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
