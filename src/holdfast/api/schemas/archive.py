"""Responses about the whole archive: health, stats, usage, sources, editions, exports, the audit log, reports."""

from __future__ import annotations

import re
from datetime import date, datetime
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field, StringConstraints, model_validator
from pydantic.alias_generators import to_camel

from holdfast.api.schemas.base import Answer, RequestForm, RowId, check_fields
from holdfast.feedback import Category, ReportStatus
from holdfast.records import Public, record
from holdfast.withdrawals.viewers import Visibility


@record
class Stats:
    """Totals of the archive and its crawls, in one object."""

    snapshots_total: Public[int]
    """Number of page captures."""
    pages_total: Public[int]
    """Number of pages, ignoring query strings."""
    sources_total: Public[int]
    """Number of sources that have captures."""
    latest_capture_date: Public[date | None]
    """Day of the newest capture, UTC."""
    latest_capture_age_days: Public[int | None]
    """Days since then."""
    pages_crawled: Public[int]
    """Pages that crawls fetched successfully."""
    pages_failed: Public[int]
    """URLs that failed: errors, timeouts, 4xx and 5xx."""
    bytes_downloaded: Public[int]
    links_discovered: Public[int]
    """URLs that crawls discovered."""
    duplicates_skipped: Public[int]
    """Captures whose text was already stored."""
    frontier_pending: Public[int]
    """Queued URLs."""
    frontier_in_progress: Public[int]
    """Domains that workers are currently fetching from."""
    frontier_completed: Public[int]
    frontier_failed: Public[int]
    total_domains: Public[int]
    active_workers: Public[list[str]]
    worker_heartbeats: Public[list[WorkerHeartbeat]]
    recent_pages: Public[list[RecentPage]]
    """The 20 most recently captured pages."""
    top_domains: Public[list[TopDomain]]
    """The 10 domains with the most pages."""


@record
class Incident:
    """A current problem, described for readers."""

    since: Public[datetime]
    message: Public[str]


@record
class ArchiveStatus:
    """Whether the archive works."""

    status: Public[Literal["ok", "degraded"]]
    last_capture: Public[datetime | None]
    sources: Public[int]
    """Number of public sources."""
    incidents: Public[list[Incident]]


@record
class WorkerHeartbeat:
    """The last heartbeat of a worker."""

    worker_id: Public[str]
    last_heartbeat: Public[datetime]


@record
class RecentPage:
    """A recently captured page."""

    id: Public[int]
    url: Public[str]
    title: Public[str | None]
    status_code: Public[int | None]
    crawled_at: Public[datetime]


@record
class TopDomain:
    """A domain, and how many of its URLs were captured."""

    domain: Public[str]
    page_count: Public[int]


class SourceSummary(Answer):
    """One source that has captures."""

    source_code: str = Field(examples=["example-org"])
    source_name: str = Field(examples=["example.org"])
    base_url: str | None = Field(examples=["https://example.org/"])
    description: str | None
    visibility: Visibility = Field(description="Who may see it; `members`: only members.")
    record_count: int = Field(description="Captures of its pages.", examples=[35])
    first_capture: date
    last_capture: date
    latest_record_id: int | None = Field(description="Its newest capture that may be shown.")
    entry_record_id: int | None = Field(description="The newest capture of its first page.")
    entry_browse_url: str | None
    entry_preview_url: str | None


class EditionSummary(Answer):
    """One crawl of a source that was indexed."""

    job_id: int = Field(description="The execution's number.", examples=[2])
    job_name: str = Field(examples=["example-org-2"])
    record_count: int = Field(examples=[17])
    first_capture: date
    last_capture: date
    last_captured_at: datetime | None = Field(
        description="When its last page was captured; null where captures of it are withdrawn and too many to look at."
    )
    is_poll: bool = Field(description="Whether it asked for what feeds and sitemaps name, and not for a site.")
    is_whole: bool = Field(
        description="Whether it asked for all that it met; else it proves of no page that it is gone."
    )
    entry_browse_url: str | None


@record
class UsageTotals:
    """Usage counts."""

    search_requests: Public[int]
    snapshot_detail_views: Public[int]
    raw_snapshot_views: Public[int]
    report_submissions: Public[int]


@record
class UsageDay(UsageTotals):
    """Usage counts of one day."""

    date: Public[str]


@record
class Usage:
    """Usage counts of the last days."""

    enabled: Public[bool]
    window_days: Public[int]
    totals: Public[UsageTotals]
    daily: Public[list[UsageDay]]


@record
class ExportKind:
    """One kind of export."""

    path: Public[str]
    description: Public[str]
    formats: Public[list[str]]


@record
class Column:
    """One column of an export, or one field of an index."""

    name: Public[str]
    meaning: Public[str]


@record
class DataDictionary:
    """Every column of every export, in order."""

    snapshots: Public[list[Column]]
    changes: Public[list[Column]]
    cdxj: Public[list[Column]]


@record
class Exports:
    """The available exports, and their limits."""

    enabled: Public[bool]
    formats: Public[list[str]]
    default_limit: Public[int]
    max_limit: Public[int]
    data_dictionary_url: Public[str | None]
    snapshots: Public[ExportKind]
    changes: Public[ExportKind]
    cdxj: Public[ExportKind]


_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
_EMAIL = r"^[^@\s<>\x00-\x1f]{1,64}@[^@\s<>\x00-\x1f]{1,190}$"


def _without_controls(text: object) -> object:
    return _CONTROLS.sub("", text) if isinstance(text, str) else text


Line = Annotated[str, StringConstraints(strip_whitespace=True, max_length=2048), BeforeValidator(_without_controls)]
Email = Annotated[
    str, StringConstraints(strip_whitespace=True, max_length=254, pattern=_EMAIL), BeforeValidator(_without_controls)
]
Sentences = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=20, max_length=4000), BeforeValidator(_without_controls)
]


class ReportForm(Answer):
    """A problem that a reader reports."""

    # Built with its class: FastAPI warns about the body of a request whose model is built later.
    model_config = ConfigDict(
        defer_build=False,
        alias_generator=to_camel,
        extra="forbid",
        frozen=True,
        json_schema_extra={
            "examples": [
                {
                    "category": "broken_snapshot",
                    "description": "The images of this page are missing in the archive.",
                    "snapshotId": 4194305,
                }
            ]
        },
    )

    @model_validator(mode="before")
    @classmethod
    def _few(cls, content: Any) -> Any:
        return check_fields(content)

    category: Category
    description: Sentences
    snapshot_id: RowId | None = None
    original_url: Line | None = None
    reporter_email: Email | None = None
    page_url: Line | None = None
    # People do not see this field, so a filled one shows a program.
    website: str | None = Field(None, max_length=2048, description="Leave empty: only programs fill it.")


class ReportChanges(RequestForm):
    """The status of a report and notes on it; other fields keep their values."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"status": "resolved", "notes": "Captured again."}]})

    status: Annotated[ReportStatus | None, Field(strict=False, description="new, triaged or resolved.")] = None
    notes: Annotated[
        str | None, Field(max_length=4000, description="For operators of the archive; empty removes them.")
    ] = None
