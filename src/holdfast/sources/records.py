"""Sources and their crawls, as readers and operators see them."""

from __future__ import annotations

from datetime import date, datetime
from typing import Annotated, Any

from holdfast.records import Operator, Public, record
from holdfast.withdrawals.viewers import Visibility


@record
class SourceRecord:
    """A source with the settings that differ from the defaults."""

    id: Operator[int]
    code: Operator[str]
    name: Operator[str]
    base_url: Operator[str | None]
    description: Operator[str | None]
    enabled: Operator[bool]
    visibility: Operator[Visibility]
    """Access to its captures."""
    schedule: Operator[str]
    """The schedule in words; once: only when an operator starts it."""
    has_run: Operator[bool]
    """Whether it has run: its code is fixed then, because links and files contain it."""
    config: Operator[Annotated[dict[str, Any], "SourceConfiguration"]]
    """Settings that differ from the defaults."""
    warnings: Operator[list[str]]
    """Questionable settings, or why the configuration is no longer valid."""
    created_at: Operator[datetime]
    updated_at: Operator[datetime]

    @property
    def backend(self) -> str:
        """The crawler that it uses."""
        return str(self.config.get("backend", "native"))


@record
class SwitchedSource(SourceRecord):
    """A source that was enabled or disabled."""

    jobs: Operator[int]
    """Jobs that are resumed or paused with the source."""


@record
class SourceName:
    """A source to choose from a list."""

    id: Operator[int]
    code: Operator[str]
    name: Operator[str]
    enabled: Operator[bool]
    is_yearly: Operator[bool]
    """Whether it is crawled once a year."""


@record
class SourceList:
    """A page of sources, by code."""

    sources: Operator[list[SourceRecord]]
    total: Operator[int]
    limit: Operator[int]
    offset: Operator[int]


@record
class SourceImport:
    """The result of an import, or of its dry run; sources by code."""

    created: Operator[list[str]]
    updated: Operator[list[str]]
    unchanged: Operator[list[str]]
    dry_run: Operator[bool]


@record
class SourceSummary:
    """One source that has captures."""

    source_code: Public[str]
    source_name: Public[str]
    base_url: Public[str | None]
    description: Public[str | None]
    visibility: Public[Visibility]
    """Who may see it; `members`: only members."""
    record_count: Public[int]
    """Captures of its pages."""
    first_capture: Public[date]
    last_capture: Public[date]
    latest_record_id: Public[int | None]
    """Its newest capture that may be shown."""
    entry_record_id: Public[int | None]
    """The newest capture of its first page."""
    entry_browse_url: Public[str | None]
    entry_preview_url: Public[str | None]


@record
class EditionSummary:
    """One crawl of a source that was indexed."""

    job_id: Public[int]
    """The execution's number."""
    job_name: Public[str]
    record_count: Public[int]
    first_capture: Public[date]
    last_capture: Public[date]
    last_captured_at: Public[datetime | None]
    """When its last page was captured; null if captures of it were taken down and are too many to check."""
    is_poll: Public[bool]
    """Whether it only fetched the entries of feeds and sitemaps, not a site."""
    is_whole: Public[bool]
    """Whether it fetched everything that it discovered; otherwise it does not prove that a page is gone."""
    entry_browse_url: Public[str | None]
