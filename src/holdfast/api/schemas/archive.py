"""Answers about the archive as a whole: health, stats, usage, sources, editions, exports, the audit log, reports."""

from __future__ import annotations

import re
from datetime import date, datetime
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, ConfigDict, Field, StringConstraints, model_validator
from pydantic.alias_generators import to_camel

from holdfast.api.schemas.base import Answer, RequestForm, RowId, check_fields
from holdfast.changes.site_comparison import SiteKind
from holdfast.feedback import Category, ReportStatus
from holdfast.withdrawals.viewers import Visibility


class Stats(Answer):
    """What the archive holds and what its crawls did, in one object."""

    snapshots_total: int = Field(description="Captures of pages.", examples=[26])
    pages_total: int = Field(description="Pages, whatever their query.", examples=[13])
    sources_total: int = Field(description="Sources that have captures.", examples=[1])
    latest_capture_date: date | None = Field(description="Day of the newest capture, UTC.")
    latest_capture_age_days: int | None = Field(description="Days since then.")
    pages_crawled: int = Field(description="Pages that crawls fetched well.")
    pages_failed: int = Field(description="Addresses that failed: errors, timeouts, 4xx and 5xx.")
    bytes_downloaded: int
    links_discovered: int = Field(description="Addresses that crawls ever met.")
    duplicates_skipped: int = Field(description="Captures whose text was kept already.")
    frontier_pending: int = Field(description="Addresses that wait.")
    frontier_in_progress: int = Field(description="Domains that are being asked.")
    frontier_completed: int
    frontier_failed: int
    total_domains: int
    active_workers: list[str]
    worker_heartbeats: list[WorkerHeartbeat]
    recent_pages: list[RecentPage] = Field(description="The 20 pages that were captured last.")
    top_domains: list[TopDomain] = Field(description="The 10 domains with the most pages.")


class Incident(Answer):
    """Something that is wrong now, in words for readers."""

    since: datetime
    message: str


class ArchiveStatus(Answer):
    """Whether the archive works."""

    status: Literal["ok", "degraded"]
    last_capture: datetime | None
    sources: int = Field(description="Public ones.")
    incidents: list[Incident]


class WorkerHeartbeat(Answer):
    """When a process at work was last heard of."""

    worker_id: str
    last_heartbeat: datetime


class RecentPage(Answer):
    """A page that was captured lately."""

    id: int
    url: str
    title: str | None
    status_code: int | None
    crawled_at: datetime


class TopDomain(Answer):
    """A domain, and how many of its addresses were captured."""

    domain: str
    page_count: int


class SourceSummary(Answer):
    """One source that has captures."""

    source_code: str = Field(examples=["example-org"])
    source_name: str = Field(examples=["example.org"])
    base_url: str | None = Field(examples=["https://example.org/"])
    description: str | None
    visibility: Visibility = Field(description="Who may see it; `members` is told to members alone.")
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


class EditionFigures(Answer):
    """How much of a source was kept in a year, in numbers."""

    edition_id: int
    source_code: str
    source_name: str
    year: int = Field(examples=[2026])
    status: str = Field(examples=["search_ready"])
    search_ready: bool
    research_ready: bool
    intended_url_count: int
    captured_url_count: int
    failed_url_count: int
    missing_url_count: int
    excluded_url_count: int
    fallback_url_count: int
    shard_count: int
    indexed_shard_count: int
    needs_review_shard_count: int
    backend_counts: dict[str, Any]
    coverage_summary: dict[str, Any]
    generated_at: datetime | None


class Coverage(EditionFigures):
    """How much of a source was kept in a year."""

    compared_years: list[int] = Field(
        description="Earlier editions that it was compared with page by page, the latest first.", examples=[[2025]]
    )


class EditionListed(Answer):
    """One annual edition, as a list shows it."""

    source_code: str = Field(examples=["example-org"])
    source_name: str = Field(examples=["example.org"])
    year: int = Field(examples=[2026])
    status: str = Field(examples=["search_ready"])
    intended_url_count: int = Field(examples=[120])
    captured_url_count: int = Field(examples=[110])
    failed_url_count: int = Field(examples=[4])
    missing_url_count: int = Field(examples=[1])
    excluded_url_count: int = Field(examples=[5])
    generated_at: datetime | None
    frozen_at: datetime | None
    frozen_digest: str | None = Field(examples=["sha256:6b86b273ff34fce1"])


class CoverageAddress(Answer):
    """What became of one address that was meant to be kept."""

    url: str = Field(examples=["https://example.org/gone"])
    origin: str = Field(description="seed, sitemap, feed, link or crawler.", examples=["link"])
    outcome: str = Field(
        description="captured, failed, robots, excluded, over_limit or not_reached.", examples=["failed"]
    )
    reason: str = Field(examples=["http_404"])
    detail: str = Field(examples=[""])
    http_status: str = Field(examples=["404"])
    via: str = Field(description="The page that named it.", examples=["https://example.org/"])
    redirected_to: str = Field(examples=[""])
    snapshot_id: int | None = Field(examples=[4194305])


class EditionDifference(Answer):
    """What became of one page from an earlier edition to a later one."""

    type: SiteKind = Field(examples=["moved"])
    url: str | None = Field(
        description="Where it is, or was if it is gone; null if it was withdrawn.", examples=["https://example.org/new"]
    )
    from_url: str | None = Field(description="Where it was, if it moved.", examples=["https://example.org/old"])
    from_snapshot_id: int | None = Field(examples=[4194305])
    to_snapshot_id: int | None = Field(examples=[8388609])


class UsageTotals(Answer):
    """What was done; counts only."""

    search_requests: int
    snapshot_detail_views: int
    raw_snapshot_views: int
    report_submissions: int


class UsageDay(UsageTotals):
    """What was done on one day."""

    date: str = Field(examples=["2026-11-15"])


class Usage(Answer):
    """What was done in the last days."""

    enabled: bool
    window_days: int
    totals: UsageTotals
    daily: list[UsageDay]


class AuditEventShown(Answer):
    """One thing that was done."""

    id: int
    at: datetime
    actor: str
    action: str
    subject: str
    detail: dict[str, Any]


class AuditList(Answer):
    """A page of the log, newest first."""

    items: list[AuditEventShown]
    next: str | None = Field(description="Ask again with `cursor` set to this; null at the end.")
    limit: int
    next_before: int | None = Field(description="The same for `before`, as older clients ask.")


class AdminEdition(EditionFigures):
    """An edition, with where its files lie below the data directory."""

    target_ledger_path: str | None = Field(examples=["editions/hc/2026/target-ledger.jsonl"])
    capture_manifest_path: str | None
    coverage_report_json_path: str | None
    coverage_report_md_path: str | None
    frozen_at: datetime | None
    frozen_digest: str | None = Field(description="Digest of the frozen list; what a citation names.")
    frozen_count: int | None
    frozen_path: str | None
    created_at: datetime


class AdminEditionList(Answer):
    """A page of editions."""

    items: list[AdminEdition]
    total: int
    limit: int
    offset: int


class EditionShard(Answer):
    """One job of an edition."""

    job_id: int
    name: str
    status: str = Field(description="In the words of /api/admin/jobs.", examples=["indexed"])
    shard_key: str = Field(examples=["full-site"])
    shard_kind: str = Field(examples=["full_site"])
    acceptance_state: str | None = Field(examples=["pending"])
    acceptance_reason: str | None
    capture_backend: str = Field(examples=["native"])
    indexed_page_count: int
    pages_crawled: int
    pages_total: int
    pages_failed: int
    retry_count: int
    executions: list[int]


class AdminEditionDetail(AdminEdition):
    """An edition with its shards."""

    shards: list[EditionShard]
    missing_seeds: list[dict[str, Any]] = Field(description="Seeds that were not captured, with the reason.")


class ExportKind(Answer):
    """One kind of export."""

    path: str
    description: str
    formats: list[str]


class Column(Answer):
    """One column of an export, or one field of an index."""

    name: str
    meaning: str


class DataDictionary(Answer):
    """Every column of every export, in its order."""

    snapshots: list[Column]
    changes: list[Column]
    cdxj: list[Column]


class Exports(Answer):
    """What can be exported, and how much at once."""

    enabled: bool
    formats: list[str]
    default_limit: int
    max_limit: int
    data_dictionary_url: str | None
    snapshots: ExportKind
    changes: ExportKind
    cdxj: ExportKind


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
    """What a reader sends."""

    # Built with its class: the framework warns of what it puts around the body of a request that is built later.
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
    # A trap: people do not see the field, and programs that fill in everything give themselves away.
    website: str | None = Field(None, max_length=2048, description="Leave empty: only programs fill it.")


class ReportChanges(RequestForm):
    """How far a report is by now, and what was found out; what is left out stays."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"status": "resolved", "notes": "Captured again."}]})

    status: Annotated[ReportStatus | None, Field(strict=False, description="new, triaged or resolved.")] = None
    notes: Annotated[
        str | None, Field(max_length=4000, description="For who runs the archive; empty takes them away.")
    ] = None


class ReportReceipt(Answer):
    """What the sender gets back."""

    report_id: int | None
    status: ReportStatus
    received_at: datetime


class ReportDetail(Answer):
    """A report, as an operator of the archive reads it."""

    report_id: int
    category: Category
    description: str
    snapshot_id: int | None
    original_url: str | None
    reporter_email: str | None
    page_url: str | None
    status: ReportStatus
    notes: str | None
    created_at: datetime
    updated_at: datetime


class ReportList(Answer):
    """A page of reports, newest first."""

    items: list[ReportDetail]
    next: str | None = Field(description="Ask again with `cursor` set to this; null at the end.")
    limit: int
    total: int
    offset: int
