"""Which feeds deserve a look: disabled by what they answered, or not polled for more than two turns."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Final, NamedTuple

from holdfast.clock import Clock, to_micros
from holdfast.config import FeedSettings
from holdfast.db.hot import Hot
from holdfast.feeds.standing import queries
from holdfast.feeds.standing.queries import DisabledFeed, LateFeed

LATELY: Final = timedelta(days=7)
_TURNS: Final = 2
_MOST: Final = 1000
_LOOKED_AT: Final = 20_000
"""Feeds that are looked through for those with a backlog, by the index of what is due."""


class LateSource(NamedTuple):
    """A source whose feeds wait."""

    source: str
    feeds: int
    since: int
    """When the first of them should have been polled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedStanding:
    """How the feeds stand altogether."""

    disabled: tuple[DisabledFeed, ...]
    late: tuple[LateSource, ...]
    backlogs: tuple[tuple[str, int], ...] = ()
    """Sources whose feeds name more than may wait, each with the number of those feeds."""


def read_feed_standing(hot: Hot, clock: Clock, settings: FeedSettings) -> FeedStanding:
    """Return how the feeds stand now, a thousand of each at most."""
    now = clock.now()
    before = now - _TURNS * timedelta(minutes=settings.interval_minutes)
    with hot.read() as tx:
        disabled = queries.disabled_feeds(tx, since=to_micros(now - LATELY), limit=_MOST)
        late = queries.late_feeds(tx, before=to_micros(before), limit=_MOST) if settings.poll else []
        backlogs = queries.backlogs(tx, among=_LOOKED_AT)
        plans = queries.configs(tx, {feed.source_id for feed in late}) if late else {}
    polled = [feed for feed in late if _is_polled(feed, sitemaps=plans.get(feed.source_id, {}).get("sitemaps", True))]
    counts: dict[str, LateSource] = {}
    for feed in polled:
        known = counts.get(feed.source, LateSource(feed.source, 0, feed.next_poll_at))
        counts[feed.source] = known._replace(feeds=known.feeds + 1)
    return FeedStanding(disabled=tuple(disabled), late=tuple(counts.values()), backlogs=tuple(backlogs))


def _is_polled(feed: LateFeed, *, sitemaps: bool) -> bool:
    return sitemaps or feed.kind != "sitemap" or feed.origin == "configured"
