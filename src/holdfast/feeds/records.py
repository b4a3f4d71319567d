"""Feeds and their items, as operators see them."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from holdfast.db.models import Feed, FeedItem
from holdfast.feeds.health import BACKLOG, BY_HAND, Trouble
from holdfast.records import Operator, from_row, record

FeedKind = Literal["feed", "sitemap"]


@record
class FeedRecord:
    """A feed or sitemap that is polled for new pages."""

    id: Operator[int]
    source: Operator[str]
    """Code of its source."""
    url: Operator[str]
    kind: Operator[FeedKind]
    origin: Operator[Literal["configured", "discovered", "robots", "index"]]
    """How the feed was discovered."""
    state: Operator[Literal["new", "ok", "troubled", "backlog", "disabled"]]
    trouble: Operator[Trouble | Literal["by_hand", "backlog"] | None]
    """Why the last polls failed, or how it was disabled."""
    errors_in_a_row: Operator[int]
    """Consecutive errors of the same kind."""
    error: Operator[str | None]
    """Message of the last failed poll."""
    last_polled_at: Operator[datetime | None]
    next_poll_at: Operator[datetime | None]
    """Null while it is disabled."""
    last_item_count: Operator[int | None]
    disabled_at: Operator[datetime | None]
    created_at: Operator[datetime]
    etag: Operator[str | None]
    last_modified: Operator[str | None]

    @property
    def health(self) -> str:
        """Summary of the state, with its reason."""
        if self.state == "disabled":
            return f"disabled ({'by hand' if self.trouble == BY_HAND else self.trouble})"
        return f"{self.trouble} x{self.errors_in_a_row}" if self.state == "troubled" else self.state


@record
class FeedItemRecord:
    """A page listed by a feed."""

    url: Operator[str]
    told_at: Operator[datetime | None]
    """The date given by the feed."""
    found_at: Operator[datetime]
    execution_id: Operator[int | None]
    """The run that requested it."""


@record
class FeedDetail(FeedRecord):
    """A feed with its most recent items."""

    items: Operator[list[FeedItemRecord]]


@record
class FeedsDue:
    """A source whose feeds a worker polls next."""

    source: Operator[str]
    job_state: Operator[str]
    """State of the job that polls the source's feeds."""


def feed_record(row: Feed, source: str) -> FeedRecord:
    return from_row(FeedRecord, row, source=source, **_derived(row))


def feed_detail(row: Feed, source: str, items: list[FeedItem]) -> FeedDetail:
    shown = [from_row(FeedItemRecord, item) for item in items]
    return from_row(FeedDetail, row, source=source, items=shown, **_derived(row))


def _derived(row: Feed) -> dict[str, Any]:
    return {
        "state": _state(row),
        "trouble": row.last_error_type,
        "errors_in_a_row": row.consecutive_errors,
        "error": row.last_error,
    }


def _state(row: Feed) -> str:
    if row.disabled_at is not None:
        return "disabled"
    if row.last_error_type == BACKLOG:
        return "backlog"
    if row.last_error_type not in (None, BY_HAND):
        return "troubled"
    return "ok" if row.last_polled_at is not None else "new"
