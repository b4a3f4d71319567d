"""The frontier in the format of `/api/v1`, with its own states and field names."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any

from pydantic import Field, StringConstraints
from sqlalchemy import Row

from holdfast.api.schemas.base import RequestForm, RowId
from holdfast.jobs.views.frontier_queries import FrontierFigures, UrlOrigin, UrlStatus, origin_of
from holdfast.jobs.views.frontier_records import queued_url
from holdfast.records import Operator, from_row, record


class FrontierWord(StrEnum):
    """State of a URL."""

    PENDING = "pending"
    FETCHED = "fetched"
    FAILED = "failed"
    """It will be retried."""
    DEAD = "dead"
    """It failed for good, or a rule excluded it."""


_WORDS = {
    UrlStatus.PENDING: FrontierWord.PENDING,
    UrlStatus.DEFERRED: FrontierWord.FAILED,
    UrlStatus.RETRIED: FrontierWord.FAILED,
    UrlStatus.COMPLETED: FrontierWord.FETCHED,
    UrlStatus.FAILED: FrontierWord.DEAD,
    UrlStatus.EXCLUDED: FrontierWord.DEAD,
}
STATUS_OF = {
    FrontierWord.PENDING: UrlStatus.PENDING,
    FrontierWord.FETCHED: UrlStatus.COMPLETED,
    FrontierWord.FAILED: UrlStatus.DEFERRED,
    FrontierWord.DEAD: UrlStatus.FAILED,
}
"""The status that is searched for each state."""


@record
class FrontierEntry:
    """One attempt on a URL."""

    id: Operator[int]
    url: Operator[str]
    host: Operator[str]
    status: Operator[FrontierWord]
    priority: Operator[int]
    depth: Operator[int]
    attempt: Operator[int]
    last_error: Operator[str | None]
    status_code: Operator[int | None]
    created_at: Operator[datetime]
    next_fetch_at: Operator[datetime | None]
    fetched_at: Operator[datetime | None]
    origin: Operator[UrlOrigin]
    fetch_count: Operator[int]
    """Requests for its page across all runs."""


def entry_record(row: Row[Any], counts: Mapping[int, int]) -> FrontierEntry:
    """Return the record of an attempt; `counts` are those of `fetch_counts`."""
    found = queued_url(row)
    return from_row(
        FrontierEntry,
        found,
        host=found.domain,
        status=_WORDS[found.status],
        last_error=None if found.status is UrlStatus.COMPLETED else found.reason,
        next_fetch_at=found.scheduled_for,
        fetched_at=found.completed_at,
        origin=origin_of(row),
        fetch_count=counts.get(row.page_id, 0),
    )


@record
class FrontierPage:
    """A page of the URLs of a crawl."""

    urls: Operator[list[FrontierEntry]]
    total: Operator[int]
    """URLs in this state, or in any state; each counts once."""
    next: Operator[str | None]
    """Send it as `cursor` to continue; null at the end."""
    limit: Operator[int]


@record
class FrontierTotals:
    """The frontier of a crawl in figures."""

    total_pending: Operator[int]
    total_fetching: Operator[int]
    total_fetched: Operator[int]
    total_failed: Operator[int] = 0
    """Always 0: retries count as pending."""
    total_dead: Operator[int]


def frontier_totals(figures: FrontierFigures) -> FrontierTotals:
    return FrontierTotals(
        total_pending=figures.pending,
        total_fetching=figures.in_progress,
        total_fetched=figures.completed,
        total_dead=figures.failed,
    )


class SubmitForm(RequestForm):
    """A URL to crawl."""

    url: Annotated[str, StringConstraints(min_length=1, max_length=8192)] = Field(examples=["https://example.org/"])
    source_id: RowId | None = None
    priority: Annotated[int, Field(ge=1, le=3)] | None = None


class FetchForm(RequestForm):
    """A URL to fetch now."""

    url: Annotated[str, StringConstraints(min_length=1, max_length=8192)] = Field(examples=["https://example.org/"])
    capture: bool = Field(False, description="Also queue the URL for a crawl.")
    source: str | None = Field(None, max_length=64, description="With `capture`: the source's code; found by default.")


@record
class DiscoveredLink:
    """A host without captures that captures link to."""

    id: Operator[str]
    """The host."""
    url: Operator[str]
    links: Operator[int]
    linking_sites: Operator[int]


def discovered_link(host: str, links: int, sites: int) -> DiscoveredLink:
    return DiscoveredLink(id=host, url=f"https://{host}/", links=links, linking_sites=sites)


@record
class DiscoveredLinks:
    """A page of discovered hosts, those with the most linking sites first."""

    links: Operator[list[DiscoveredLink]]
    limit: Operator[int]
    offset: Operator[int]
