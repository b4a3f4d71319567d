"""Which feeds deserve a look: disabled by what they answered, or not polled for more than two turns."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final, NamedTuple

from holdfast.clock import Clock, to_micros
from holdfast.config import FeedSettings
from holdfast.db.raw import RawDatabase, Transaction
from holdfast.feeds.health import BACKLOG, BY_HAND


class DisabledFeed(NamedTuple):
    """A feed that is not polled any more, because of what it answered."""

    feed_id: int
    source: str
    url: str
    trouble: str | None
    disabled_at: int


class LateFeed(NamedTuple):
    """A feed whose turn has passed."""

    source_id: int
    source: str
    kind: str
    origin: str
    next_poll_at: int


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


def select_backlogs(tx: Transaction, *, among: int) -> list[tuple[str, int]]:
    """Return the sources whose feeds name more than may wait, with how many feeds do so; `among` the next to poll."""
    return [(row[0], int(row[1])) for row in tx.execute(BACKLOGS, (among, BACKLOG))]


def disabled_feeds(tx: Transaction, *, since: int, limit: int) -> list[DisabledFeed]:
    """Return the feeds that their answers have disabled since a moment, the latest first."""
    return [DisabledFeed(*row) for row in tx.execute(DISABLED, (since, BY_HAND, limit))]


def late_feeds(tx: Transaction, *, before: int, limit: int) -> list[LateFeed]:
    """Return the feeds of sources that are polled whose turn was before a moment, the longest overdue first."""
    return [LateFeed(*row) for row in tx.execute(LATE, (before, limit))]


def configs(tx: Transaction, source_ids: Collection[int]) -> dict[int, dict[str, Any]]:
    """Return the configurations of a few sources."""
    marks = ",".join("?" * len(source_ids))
    rows = tx.execute(f"SELECT id, config FROM sources WHERE id IN ({marks})", tuple(source_ids))  # noqa: S608
    return {row[0]: row[1] if isinstance(row[1], dict) else json.loads(row[1]) for row in rows}


LATELY: Final = timedelta(days=7)
_TURNS: Final = 2
_MOST: Final = 1000
# Feeds that are looked through for those with a backlog, by the index of what is due.
_LOOKED_AT: Final = 20_000


class LateSource(NamedTuple):
    """A source whose feeds wait."""

    source: str
    feeds: int
    since: int
    """When the first of them should have been polled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedStatus:
    """How the feeds stand altogether."""

    disabled: tuple[DisabledFeed, ...]
    late: tuple[LateSource, ...]
    backlogs: tuple[tuple[str, int], ...] = ()
    """Sources whose feeds name more than may wait, each with the number of those feeds."""


def read_feed_status(raw_db: RawDatabase, clock: Clock, settings: FeedSettings) -> FeedStatus:
    """Return how the feeds stand now, a thousand of each at most."""
    now = clock.now()
    # One turn may be late because a worker was restarted; two mean that no worker polls.
    before = now - _TURNS * timedelta(minutes=settings.interval_minutes)
    with raw_db.read() as tx:
        disabled = disabled_feeds(tx, since=to_micros(now - LATELY), limit=_MOST)
        # Where polling is switched off, every feed would be late.
        late = late_feeds(tx, before=to_micros(before), limit=_MOST) if settings.poll else []
        backlogs = select_backlogs(tx, among=_LOOKED_AT)
        # A source that reads no sitemaps leaves found ones unpolled for ever: they are not late.
        plans = configs(tx, {feed.source_id for feed in late}) if late else {}
    polled = [feed for feed in late if _is_polled(feed, sitemaps=plans.get(feed.source_id, {}).get("sitemaps", True))]
    counts: dict[str, LateSource] = {}
    for feed in polled:
        known = counts.get(feed.source, LateSource(feed.source, 0, feed.next_poll_at))
        counts[feed.source] = known._replace(feeds=known.feeds + 1)
    return FeedStatus(disabled=tuple(disabled), late=tuple(counts.values()), backlogs=tuple(backlogs))


def _is_polled(feed: LateFeed, *, sitemaps: bool) -> bool:
    return sitemaps or feed.kind != "sitemap" or feed.origin == "configured"
