"""Feeds that need attention: disabled by their responses, or not polled for more than two intervals."""

from __future__ import annotations

import json
from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Any, Final

from holdfast.clock import Clock, from_micros, to_micros
from holdfast.config import FeedSettings
from holdfast.db.raw import RawDatabase, Transaction
from holdfast.feeds.health import BACKLOG, BY_HAND
from holdfast.records import Operator, record


@record
class DisabledFeed:
    """A feed that was disabled by its responses."""

    feed: Operator[int]
    source: Operator[str]
    url: Operator[str]
    error_type: Operator[str | None]
    disabled_at: Operator[datetime]


@record
class LateSource:
    """A source whose feeds are overdue."""

    source: Operator[str]
    feeds: Operator[int]
    since: Operator[datetime]
    """When the first of them should have been polled."""


@record
class SourceBacklog:
    """A source whose feeds list more items than may wait."""

    source: Operator[str]
    feeds: Operator[int]


@record
class FeedStatus:
    """The feeds that need attention."""

    disabled: Operator[list[DisabledFeed]]
    late: Operator[list[LateSource]]
    backlog: Operator[list[SourceBacklog]]


DISABLED = """
SELECT f.id, s.code, f.url, f.last_error_type, f.disabled_at FROM feeds f JOIN sources s ON s.id = f.source_id
 WHERE f.disabled_at IS NOT NULL AND f.disabled_at >= ? AND s.enabled
   AND (f.last_error_type IS NULL OR f.last_error_type <> ?)
 ORDER BY f.disabled_at DESC, f.id LIMIT ?"""
LATE = """
SELECT s.id, s.code, f.kind, f.origin, f.next_poll_at FROM feeds f JOIN sources s ON s.id = f.source_id
 WHERE f.next_poll_at IS NOT NULL AND f.next_poll_at < ? AND s.enabled
   AND EXISTS (SELECT 1 FROM jobs j WHERE j.source_id = s.id AND j.kind = 'feed' AND j.deleted_at IS NULL
                                      AND j.state IN ('pending','scheduled','running'))
 ORDER BY f.next_poll_at, f.id LIMIT ?"""


BACKLOGS = """
SELECT s.code, count(*) FROM
 (SELECT source_id, last_error_type FROM feeds WHERE next_poll_at IS NOT NULL ORDER BY next_poll_at, id LIMIT ?) f
 JOIN sources s ON s.id = f.source_id WHERE f.last_error_type = ? AND s.enabled GROUP BY s.code ORDER BY s.code"""


def select_backlogs(tx: Transaction, *, among: int) -> list[SourceBacklog]:
    """Return the sources whose feeds exceed the item limit, with the number of such feeds, `among` the next to
    poll.
    """
    return [SourceBacklog(source=row[0], feeds=int(row[1])) for row in tx.execute(BACKLOGS, (among, BACKLOG))]


def disabled_feeds(tx: Transaction, *, since: int, limit: int) -> list[DisabledFeed]:
    """Return the feeds that were disabled by their responses since `since`, the latest first."""
    rows = tx.execute(DISABLED, (since, BY_HAND, limit))
    return [
        DisabledFeed(feed=feed, source=source, url=url, error_type=trouble, disabled_at=from_micros(at))
        for feed, source, url, trouble, at in rows
    ]


def configs(tx: Transaction, source_ids: Collection[int]) -> dict[int, dict[str, Any]]:
    marks = ",".join("?" * len(source_ids))
    rows = tx.execute(f"SELECT id, config FROM sources WHERE id IN ({marks})", tuple(source_ids))  # noqa: S608
    return {row[0]: row[1] if isinstance(row[1], dict) else json.loads(row[1]) for row in rows}


LATELY: Final = timedelta(days=7)
_TURNS: Final = 2
_MOST: Final = 1000
# Limit of feeds checked for a backlog, by the index of due times.
_LOOKED_AT: Final = 20_000


def read_feed_status(raw_db: RawDatabase, clock: Clock, settings: FeedSettings) -> FeedStatus:
    """Return the feeds that need attention, at most 1,000 of each kind."""
    now = clock.now()
    # One poll may be late because a worker was restarted; two mean that no worker polls.
    before = now - _TURNS * timedelta(minutes=settings.interval_minutes)
    with raw_db.read() as tx:
        disabled = disabled_feeds(tx, since=to_micros(now - LATELY), limit=_MOST)
        # If polling is off, every feed would be late.
        late = tx.execute(LATE, (to_micros(before), _MOST)) if settings.poll else []
        backlog = select_backlogs(tx, among=_LOOKED_AT)
        # A source that reads no sitemaps never polls those it discovered: they are not late.
        plans = configs(tx, {source_id for source_id, *_ in late}) if late else {}
    waiting: dict[str, list[int]] = {}
    for source_id, code, kind, origin, next_poll_at in late:
        if plans.get(source_id, {}).get("sitemaps", True) or kind != "sitemap" or origin == "configured":
            waiting.setdefault(code, []).append(next_poll_at)
    sources = [LateSource(source=code, feeds=len(due), since=from_micros(due[0])) for code, due in waiting.items()]
    return FeedStatus(disabled=disabled, late=sources, backlog=backlog)
