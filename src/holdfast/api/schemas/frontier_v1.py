"""The frontier in the words of `/api/v1`: snake_case, and a state of its own for what is dead."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Self

from pydantic import ConfigDict, Field, StringConstraints

from holdfast.api.schemas.base import RequestForm, RowId
from holdfast.api.schemas.jobs import JobAnswer
from holdfast.jobs.administration.frontier_actions import AddedPlace
from holdfast.jobs.views.frontier_queries import FrontierUrl, QueueFigures, UrlOrigin, UrlStatus


class FrontierWord(StrEnum):
    """Where an address stands."""

    PENDING = "pending"
    FETCHED = "fetched"
    FAILED = "failed"
    """It is tried again."""
    DEAD = "dead"
    """It failed for good, or a rule left it out."""


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
"""What is looked for when one of the words is asked for."""


_ENTRY: dict[str, Any] = {
    "id": 7,
    "url": "https://example.org/a",
    "host": "example.org",
    "status": "pending",
    "priority": 1,
    "depth": 1,
    "attempt": 1,
    "last_error": None,
    "status_code": None,
    "created_at": "2026-11-15T12:15:03Z",
    "next_fetch_at": None,
    "fetched_at": None,
    "origin": "link",
    "fetch_count": 0,
}


class FrontierEntry(JobAnswer):
    """One attempt on an address."""

    model_config = ConfigDict(json_schema_extra={"examples": [_ENTRY]})

    id: int
    url: str
    host: str
    status: FrontierWord
    priority: int
    depth: int
    attempt: int
    last_error: str | None
    status_code: int | None
    created_at: datetime
    next_fetch_at: datetime | None
    fetched_at: datetime | None
    origin: UrlOrigin
    fetch_count: int = Field(description="Requests for its page, over all runs.")

    @classmethod
    def of(cls, row: FrontierUrl, counts: Mapping[int, int]) -> Self:
        """Return an attempt as it is answered; `counts` are those of `fetch_counts`."""
        created_at, scheduled_for, completed_at = row.moments()
        done = row.status is UrlStatus.COMPLETED
        return cls(
            id=row.id,
            url=row.url,
            host=row.domain,
            status=_WORDS[row.status],
            priority=row.priority,
            depth=row.depth,
            attempt=row.attempt,
            last_error=None if done else row.reason,
            status_code=row.status_code,
            created_at=created_at,
            next_fetch_at=scheduled_for,
            fetched_at=completed_at,
            origin=row.origin,
            fetch_count=counts.get(row.page_id, 0),
        )


class FrontierPage(JobAnswer):
    """Some of the addresses of a crawl."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"urls": [_ENTRY], "total": 1, "next": None, "limit": 50}]}
    )

    urls: list[FrontierEntry]
    total: int = Field(description="Of this state, or of all; each address once.")
    next: str | None = Field(description="Ask again with `cursor` set to this; null at the end.")
    limit: int


class FrontierTotals(JobAnswer):
    """The frontier of a crawl in figures."""

    total_pending: int = Field(examples=[120])
    total_fetching: int
    total_fetched: int
    total_failed: int = Field(description="Always 0: what is tried again counts as pending.")
    total_dead: int

    @classmethod
    def of(cls, figures: QueueFigures) -> Self:
        """Return the figures as they are answered."""
        return cls(
            total_pending=figures.pending,
            total_fetching=figures.in_progress,
            total_fetched=figures.completed,
            total_failed=0,
            total_dead=figures.failed,
        )


class SubmitForm(RequestForm):
    """An address to crawl."""

    url: Annotated[str, StringConstraints(min_length=1, max_length=8192)] = Field(examples=["https://example.org/"])
    source_id: RowId | None = None
    priority: Annotated[int, Field(ge=1, le=3)] | None = None


class Submitted(JobAnswer):
    """What became of an address."""

    source: str = Field(examples=["example-org"])
    status: str = Field(description="joined, waits or job_made.")
    added: int = Field(description="0 if the address was known there.")
    raised: int = Field(description="1 if it was queued there already, and now has the higher priority.")
    execution_id: int | None
    job_id: int | None

    @classmethod
    def of(cls, place: AddedPlace) -> Self:
        """Return where an address went."""
        return cls(
            source=place.source,
            status=place.as_what.value,
            added=place.added,
            raised=place.raised,
            execution_id=place.execution_id,
            job_id=place.job_id,
        )


class FetchForm(RequestForm):
    """An address to fetch now."""

    url: Annotated[str, StringConstraints(min_length=1, max_length=8192)] = Field(examples=["https://example.org/"])
    capture: bool = Field(False, description="Also queue the address, so that a crawl captures it.")
    source: str | None = Field(None, max_length=64, description="With `capture`: the source's code; found if left out.")


class FetchedPage(JobAnswer):
    """A page as it is now: its text and metadata."""

    id: str = Field(description="The SHA-256 of the normalised address.")
    requested_url: str = Field(examples=["https://example.org/"])
    final_url: str = Field(description="Where the redirects ended.")
    status_code: int = Field(examples=[200])
    content_type: str | None
    bytes_read: int = Field(description="Decompressed.")
    fetched_at: datetime
    duration_ms: int = Field(description="Of the last request.")
    title: str | None
    raw_text: str = Field(description="The main text, as the index would keep it.")
    meta_description: str | None
    meta_keywords: list[str]
    author: str | None
    published_date: datetime | None
    canonical_url: str | None = Field(description="As the page writes it.")
    language: str | None
    page_type: str
    word_count: int
    meta: dict[str, str] = Field(description="Open Graph and JSON-LD values, by name.")
    links: list[str] = Field(description="Of the main text, as the page writes them.")
    queued: Submitted | None = Field(description="Where the address was queued; null without `capture`.")


class DiscoveredLink(JobAnswer):
    """A host that captures link to and of which nothing is kept."""

    id: str = Field(description="The host itself.", examples=["other.example"])
    url: str
    links: int
    linking_sites: int

    @classmethod
    def of(cls, host: str, links: int, sites: int) -> Self:
        """Return a host as it is answered."""
        return cls(id=host, url=f"https://{host}/", links=links, linking_sites=sites)


class DiscoveredLinks(JobAnswer):
    """Some of them, those with the most linking sites first."""

    links: list[DiscoveredLink]
    limit: int
    offset: int
