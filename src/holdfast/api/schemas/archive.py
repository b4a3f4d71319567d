"""Answers about the archive as a whole and its sources: health, stats, sources, editions, coverage, usage."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any, Literal

from pydantic import Field

from holdfast.api.schemas.base import Answer


class Stats(Answer):
    """What the archive holds (document 000) and what its crawls did (document 002), in one object."""

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
    entry_browse_url: str | None


class Coverage(Answer):
    """How much of a source was kept in a year."""

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


class Checks(Answer):
    """What was asked, and what it said."""

    db: Literal["ok", "error"]
    jobs: dict[str, int] | None = Field(
        None, description="Jobs by status, in the words of `/api/admin/jobs`, with details=1."
    )
    snapshots: dict[str, int] | None = Field(None, description="`total`, with details=1.")
    disk: Literal["ok", "low"] | None = Field(
        None, description="Whether the volumes of database and captures have room, with details=1."
    )
    writes: Literal["ok", "refused"] | None = Field(
        None, description="Whether the database refused the last write for want of room, with details=1."
    )


class Services(Answer):
    """What the archive stands on."""

    database: Literal["ok", "error"]
    redis: str = Field(description="`not configured` on one machine.")


class Health(Answer):
    """Whether the archive can answer; document 000's fields and document 002's."""

    status: Literal["ok", "error"]
    checks: Checks
    timestamp: datetime
    version: str
    uptime: float = Field(description="Seconds since the server started.")
    services: Services
    workers: int = Field(description="Processes at work.")
