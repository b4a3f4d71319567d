"""The feeds of sources as people see them: added, removed, enabled, disabled, made due; and what a poll begins with.

Every change by hand stands in the audit log. Who opens the session ends it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy.orm import Session

from holdfast import audit, log
from holdfast.clock import Clock
from holdfast.config import FeedSettings
from holdfast.db.engine import Database
from holdfast.db.models import Feed, Source
from holdfast.feeds import queries
from holdfast.feeds.refusals import FeedNotFound, FeedsTooMany, FeedTaken
from holdfast.feeds.troubles import Health, Trouble, after_failure
from holdfast.sources.config import SourceConfig
from holdfast.urls import parse_seed

_log = log.get()
KINDS = ("feed", "sitemap")
_LOOKED_BACK = 3
"""Polls before this one whose items are looked after."""
_SLACK = 0.5
"""Share of the interval by which a poll may come early: the job's rhythm decides, and runs do not start on the dot."""


def find(session: Session, feed_id: int) -> Feed:
    """Return a feed; FeedNotFound if there is none."""
    feed = queries.feed_by_id(session, feed_id)
    if feed is None:
        raise FeedNotFound(feed_id)
    return feed


def add(session: Session, clock: Clock, source: Source, url: str, *, kind: str = "feed", limit: int = 200) -> Feed:
    """Let a source have a feed, due at once; UrlRefused, FeedTaken, or FeedsTooMany beyond `limit`."""
    address = parse_seed(url)
    known = queries.feed_at(session, source_id=source.id, url_hash=address.hash64)
    if known is not None:
        raise FeedTaken(known.id, address.fetch)
    if len([one for one in queries.feeds_of_source(session, source_id=source.id) if one.disabled_at is None]) >= limit:
        raise FeedsTooMany(limit)
    now = clock.now()
    made = queries.insert_feed(session, Feed(
        source_id=source.id, url=address.fetch, url_hash=address.hash64, kind=kind, origin="configured",
        created_at=now, next_poll_at=now, consecutive_errors=0, lease_epoch=0,
    ))  # fmt: skip
    _tell(session, clock, "feed.added", made)
    return made


def remove(session: Session, clock: Clock, feed_id: int) -> Feed:
    """Take a feed from its source; it comes back if it is found again, so disable one that is not wanted."""
    feed = find(session, feed_id)
    _tell(session, clock, "feed.removed", feed)
    queries.delete_feed(session, feed)
    return feed


def enable(session: Session, clock: Clock, feed_id: int) -> Feed:
    """Poll a feed again, from now on and with nothing against it."""
    feed = find(session, feed_id)
    feed.disabled_at = feed.last_error = feed.last_error_type = None
    feed.consecutive_errors, feed.next_poll_at = 0, clock.now()
    _tell(session, clock, "feed.enabled", feed)
    return feed


def disable(session: Session, clock: Clock, feed_id: int) -> Feed:
    """Poll a feed no more, until somebody enables it."""
    feed = find(session, feed_id)
    feed.disabled_at, feed.next_poll_at, feed.last_error = feed.disabled_at or clock.now(), None, "disabled by hand"
    _tell(session, clock, "feed.disabled", feed)
    return feed


def make_due(session: Session, clock: Clock, feeds: Sequence[Feed]) -> list[Feed]:
    """Let feeds be polled at the next run; those that are disabled, or told us to stay away, keep their time.

    So do the sitemaps of an index: whether they are worth asking for, the index tells.
    """
    waiting = [one for one in feeds if one.disabled_at is None and one.origin != "index"]
    ready = [one for one in waiting if one.last_error_type != Trouble.RATE_LIMITED]
    for feed in ready:
        feed.next_poll_at = clock.now()
    return ready


@dataclass(frozen=True, slots=True, kw_only=True)
class Brief:
    """What one poll of a source has to do."""

    feeds: tuple[Feed, ...]
    search: bool
    waiting: int
    """Items of earlier polls that nobody has taken."""
    landing: tuple[str, ...]
    """Where the seeds of the source landed when it was last crawled."""
    crawled_now: bool
    """A crawl of the source runs and holds its domain: what is due waits for the next turn."""

    @property
    def is_idle(self) -> bool:
        """Whether there is nothing to ask for."""
        return self.crawled_now or not (self.feeds or self.search or self.waiting)


def read_brief(session: Session, source: Source, config: SourceConfig, settings: FeedSettings, *,
               now: datetime) -> Brief:  # fmt: skip
    """Return what is to be polled and searched now."""
    soon = now + timedelta(minutes=settings.interval_minutes) * _SLACK
    sought = source.feeds_sought_at
    stale = sought is None or now - sought >= timedelta(hours=settings.search_hours)
    return Brief(
        feeds=tuple(queries.due(session, source_id=source.id, now=now, soon=soon, sitemaps=config.sitemaps)),
        search=settings.discovery and stale, waiting=queries.waiting_count(session, source_id=source.id),
        landing=queries.last_landing(session, source_id=source.id),
        crawled_now=queries.is_crawled_now(session, source_id=source.id),
    )  # fmt: skip


def recover_items(database: Database, *, job_id: int, source_id: int) -> int:
    """Let items wait again that earlier polls took and never asked for: they ran out of time, failed or were stopped.

    Return how many. Repeating it is harmless.
    """
    with database.read() as session:
        ended = queries.latest_ended(session, job_id=job_id, limit=_LOOKED_BACK)
        left = {number: hashes for number in ended if (hashes := queries.unasked(session, execution_id=number))}
    if not left:
        return 0
    with database.write() as session:
        return sum(
            queries.give_back(session, source_id=source_id, execution_id=number, hashes=hashes)
            for number, hashes in left.items()
        )


def count_unreached(session: Session, brief: Brief, settings: FeedSettings, *, since: datetime, now: datetime) -> int:
    """Count a poll against the feeds that a run did not get to ask: their domain stayed away. Return how many."""
    ids = [feed.id for feed in brief.feeds]
    asked = queries.polled_since(session, ids=ids, since=since)
    missed = [feed for feed in (queries.feed_by_id(session, number) for number in ids) if feed and feed.id not in asked]
    for feed in missed:
        health = Health(errors=feed.consecutive_errors, trouble=feed.last_error_type, disabled_at=feed.disabled_at)
        after = after_failure(health, Trouble.NETWORK, now=now, interval=timedelta(minutes=settings.interval_minutes))
        feed.consecutive_errors, feed.last_error_type, feed.last_polled_at = after.errors, after.trouble, now
        feed.disabled_at, feed.next_poll_at = after.disabled_at, after.next_poll_at
        feed.last_error = "its domain could not be reached"
        if after.disabled_at is not None:
            _log.warning("feed.disabled", url=feed.url, trouble=after.trouble, errors=after.errors)
    return len(missed)


def _tell(session: Session, clock: Clock, action: str, feed: Feed) -> None:
    audit.record(session, clock, action=action, subject=f"feed {feed.id}",
                 detail={"url": feed.url, "source_id": feed.source_id, "kind": feed.kind})  # fmt: skip
