"""Feeds and sitemaps of sources, as operators see them."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Any

from pydantic import ConfigDict, Field

from holdfast.api.schemas.base import Answer, RequestForm
from holdfast.db.models import Feed, FeedItem
from holdfast.feeds.health import BACKLOG, BY_HAND


class FeedKind(StrEnum):
    """What a feed is."""

    FEED = "feed"
    SITEMAP = "sitemap"


class FeedOrigin(StrEnum):
    """How it became known."""

    CONFIGURED = "configured"
    DISCOVERED = "discovered"
    ROBOTS = "robots"
    INDEX = "index"


class FeedState(StrEnum):
    """How it is doing."""

    NEW = "new"
    OK = "ok"
    TROUBLED = "troubled"
    BACKLOG = "backlog"
    DISABLED = "disabled"


class FeedTrouble(StrEnum):
    """What the last polls ended with, or who disabled it."""

    RATE_LIMITED = "rate_limited"
    FORBIDDEN = "forbidden"
    NOT_FOUND = "not_found"
    GONE = "gone"
    UPSTREAM_FAILURE = "upstream_failure"
    NETWORK = "network"
    PARSE_ERROR = "parse_error"
    UNEXPECTED = "unexpected"
    BY_HAND = "by_hand"
    BACKLOG = "backlog"


_FEED: dict[str, Any] = {
    "id": 3,
    "source": "example",
    "url": "https://example.org/news.rss",
    "kind": "feed",
    "origin": "discovered",
    "state": "ok",
    "trouble": None,
    "errorsInARow": 0,
    "error": None,
    "lastPolledAt": "2026-11-15T12:15:00Z",
    "nextPollAt": "2026-11-15T12:45:00Z",
    "lastItemCount": 20,
    "disabledAt": None,
    "createdAt": "2026-11-01T09:00:00Z",
}


class FeedShown(Answer):
    """A feed or a sitemap that is asked for what is new, and how it is doing."""

    model_config = ConfigDict(json_schema_extra={"examples": [_FEED]})

    id: int
    source: str
    url: str
    kind: FeedKind
    origin: FeedOrigin
    state: FeedState
    trouble: FeedTrouble | None
    errors_in_a_row: int = Field(description="Of the same kind.")
    error: str | None = Field(description="What the last bad poll said.")
    last_polled_at: datetime | None
    next_poll_at: datetime | None = Field(description="Null while it is disabled.")
    last_item_count: int | None
    disabled_at: datetime | None
    created_at: datetime

    @classmethod
    def of(cls, row: Feed, code: str) -> FeedShown:
        """Return what is shown of a row."""
        return cls(**feed_fields(row, code))


def feed_fields(row: Feed, code: str) -> dict[str, Any]:
    """Return the fields of a feed."""
    return {
        "id": row.id,
        "source": code,
        "url": row.url,
        "kind": FeedKind(row.kind),
        "origin": FeedOrigin(row.origin),
        "state": _state(row),
        "trouble": FeedTrouble(row.last_error_type) if row.last_error_type else None,
        "errors_in_a_row": row.consecutive_errors,
        "error": row.last_error,
        "last_polled_at": row.last_polled_at,
        "next_poll_at": row.next_poll_at,
        "last_item_count": row.last_item_count,
        "disabled_at": row.disabled_at,
        "created_at": row.created_at,
    }


def _state(row: Feed) -> FeedState:
    if row.disabled_at is not None:
        return FeedState.DISABLED
    if row.last_error_type == BACKLOG:
        return FeedState.BACKLOG
    if row.last_error_type not in (None, BY_HAND):
        return FeedState.TROUBLED
    return FeedState.OK if row.last_polled_at is not None else FeedState.NEW


class FeedItemShown(Answer):
    """A page that a feed named."""

    url: str
    told_at: datetime | None = Field(description="When the feed says it is from.")
    found_at: datetime
    execution_id: int | None = Field(description="The run that took it.")

    @classmethod
    def of(cls, row: FeedItem) -> FeedItemShown:
        """Return what is shown of a row."""
        return cls(url=row.url, told_at=row.told_at, found_at=row.found_at, execution_id=row.execution_id)


class FeedDetail(FeedShown):
    """A feed with the items that it named last."""

    model_config = ConfigDict(json_schema_extra={"examples": [{**_FEED, "items": []}]})

    items: list[FeedItemShown]


class NewFeedForm(RequestForm):
    """A feed that is not found by itself."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"source": "example", "url": "https://example.org/news.rss"}]}
    )

    source: str = Field(min_length=1, max_length=64, description="The source's code.")
    url: str = Field(min_length=1, max_length=8192, description="Its address.")
    kind: FeedKind = Field(FeedKind.FEED, strict=False, description="feed or sitemap.")


class FeedPollForm(RequestForm):
    """Whose feeds are to be polled."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"source": "example"}]})

    source: str = Field(min_length=1, max_length=64, description="The source's code.")


class FeedPolled(Answer):
    """What was asked for; a worker does it."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"source": "example", "jobState": "scheduled"}]})

    source: str
    job_state: str = Field(description="Of the job that polls the source's feeds.")
