"""Management of feeds: add, remove, enable, disable, make due; and the plan of a poll.

Every manual change is recorded in the audit log. The caller owns and commits the session's transaction.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from sqlalchemy import delete, func, or_, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from holdfast import audit, log
from holdfast.clock import Clock
from holdfast.config import FeedSettings
from holdfast.db.audit_events import AuditAction
from holdfast.db.models import Execution, Feed, Job, Source
from holdfast.errors import Conflict
from holdfast.feeds import queries
from holdfast.feeds.health import (
    BY_HAND,
    FORGOTTEN_AFTER,
    FeedHealth,
    asked_to_wait,
    interval_of,
)
from holdfast.feeds.queries import FeedNotFound, FeedsTooMany, FeedTaken
from holdfast.sources.config import SourceConfig
from holdfast.urls import parse_seed
from holdfast.values import dataclass

_log = log.get()
# Job kinds that workers lease: a killed ad-hoc crawl stays `running` until an operator resumes it.
_CRAWLS = ("crawl", "annual", "shard")
# Share of the interval by which a poll may be early: the job's schedule decides, and runs start late.
_SLACK = 0.5


def find(session: Session, feed_id: int) -> Feed:
    feed = session.get(Feed, feed_id)
    if feed is None:
        raise FeedNotFound(feed_id)
    return feed


def add(session: Session, clock: Clock, source: Source, url: str, *, kind: str = "feed", limit: int = 200) -> Feed:
    """Add a feed that is due immediately; raise `UrlRefused`, `FeedTaken`, or `FeedsTooMany` beyond `limit`."""
    address = parse_seed(url)
    same = select(Feed).where(Feed.source_id == source.id, Feed.url_hash == address.hash64)
    known = session.scalars(same).one_or_none()
    if known is not None:
        raise FeedTaken(known.id, address.fetch)
    now = clock.now()
    _demand_room(session, source, limit, now)
    row = Feed(
        source_id=source.id,
        url=address.fetch,
        url_hash=address.hash64,
        kind=kind,
        origin="configured",
        created_at=now,
        next_poll_at=now,
        consecutive_errors=0,
    )
    session.add(row)
    try:
        session.flush()
    # Another process added it after the check above and won; this transaction is over.
    except IntegrityError as exc:
        raise Conflict(f"{address.fetch} was added at this moment; see it with: holdfast feed list") from exc
    _audit(session, clock, "feed.added", row)
    return row


def _demand_room(session: Session, source: Source, limit: int, now: datetime) -> None:
    """Raise `FeedsTooMany` if a source has reached its feed limit, which also applies to discovered feeds."""
    # Count disabled feeds, too; those that their responses disabled a month ago make room.
    room = limit - (session.scalar(select(func.count()).where(Feed.source_id == source.id)) or 0)
    if room <= 0:
        # Keep feeds that an operator added or disabled. The crawl process does the same
        # (`polling_queries.forget_disabled`).
        gone = session.scalars(
            delete(Feed)
            .where(Feed.source_id == source.id, Feed.disabled_at < now - FORGOTTEN_AFTER, Feed.origin != "configured")
            .where(or_(Feed.last_error_type.is_(None), Feed.last_error_type != BY_HAND))
            .returning(Feed.id)
            .execution_options(synchronize_session=False)
        )
        room += len(gone.all())
    if room <= 0:
        raise FeedsTooMany(limit)


def remove(session: Session, clock: Clock, feed_id: int) -> Feed:
    """Remove a feed from its source. A feed that is discovered again comes back, so disable unwanted feeds instead."""
    feed = find(session, feed_id)
    _audit(session, clock, "feed.removed", feed)
    # Keep its items, so that none counts as new if the feed is added again.
    session.delete(feed)
    session.flush()
    return feed


def enable(session: Session, clock: Clock, feed_id: int) -> Feed:
    """Poll a feed again, from now on and with its errors cleared."""
    feed = find(session, feed_id)
    feed.disabled_at = feed.last_error = feed.last_error_type = None
    feed.consecutive_errors, feed.next_poll_at = 0, clock.now()
    _audit(session, clock, "feed.enabled", feed)
    return feed


def disable(session: Session, clock: Clock, feed_id: int) -> Feed:
    """Stop polling a feed until an operator enables it; a response in progress does not re-enable it."""
    feed = find(session, feed_id)
    feed.disabled_at, feed.next_poll_at, feed.consecutive_errors = feed.disabled_at or clock.now(), None, 0
    # Set the mark, not only the date: a response in flight would enable a feed that has only a date.
    feed.last_error_type, feed.last_error = BY_HAND, "disabled by hand"
    _audit(session, clock, "feed.disabled", feed)
    return feed


def make_due(clock: Clock, feeds: Sequence[Feed], settings: FeedSettings) -> list[Feed]:
    """Make feeds due; disabled feeds, and feeds whose server requested a pause, keep their time."""
    # Sitemaps of an index keep their time: the index shows whether they need a request.
    waiting = [one for one in feeds if one.disabled_at is None and one.origin != "index"]
    ready = [one for one in waiting if not _must_wait(one, settings)]
    for feed in ready:
        feed.next_poll_at = clock.now()
    return ready


def _health(feed: Feed) -> FeedHealth:
    return FeedHealth(
        errors=feed.consecutive_errors,
        trouble=feed.last_error_type,
        disabled_at=feed.disabled_at,
        next_poll_at=feed.next_poll_at,
    )


def _must_wait(feed: Feed, settings: FeedSettings) -> bool:
    interval = interval_of(feed.origin, settings)
    return asked_to_wait(_health(feed), polled_at=feed.last_polled_at, interval=interval)


@dataclass(frozen=True, slots=True, kw_only=True)
class PollPlan:
    feeds: tuple[Feed, ...]
    search: bool
    waiting: int
    landing: tuple[str, ...]
    """Redirect targets of the source's seeds in its last crawl."""
    crawled_now: bool
    """Whether a crawl of the source is running that cannot yield to polls (zimit): due feeds wait for the next
    turn.
    """

    @property
    def is_idle(self) -> bool:
        return self.crawled_now or not (self.feeds or self.search or self.waiting)


def plan_poll(
    session: Session, source: Source, config: SourceConfig, settings: FeedSettings, *, now: datetime
) -> PollPlan:
    # Without slack, a feed due ten seconds after its job's run would wait another interval.
    soon = now + timedelta(minutes=settings.interval_minutes) * _SLACK
    polled = select(Feed).where(Feed.source_id == source.id, Feed.disabled_at.is_(None), Feed.next_poll_at.is_not(None))
    if not config.sitemaps:
        # A source that reads no sitemaps still polls one that an operator added.
        polled = polled.where(or_(Feed.kind != "sitemap", Feed.origin == "configured"))
    feeds = session.scalars(polled.order_by(Feed.next_poll_at, Feed.id))
    sought = source.feeds_sought_at
    stale = sought is None or now - sought >= timedelta(hours=settings.search_hours)
    return PollPlan(
        feeds=tuple(feed for feed in feeds if _is_due(feed, settings, now=now, soon=soon)),
        search=settings.discovery and stale,
        waiting=queries.waiting_count(session, source_id=source.id),
        landing=_last_landing(session, source.id),
        crawled_now=_is_crawled_by_tool(session, source.id),
    )


def _last_landing(session: Session, source_id: int) -> tuple[str, ...]:
    """Return the redirect targets of a source's seeds in its latest crawl: items are in scope there too."""
    query = select(Execution.config).join(Job, Job.id == Execution.job_id)
    # An ad-hoc crawl shows the seeds' redirects as well as a scheduled one.
    query = query.where(Job.source_id == source_id, Job.kind.in_((*_CRAWLS, "adhoc"))).order_by(Execution.id.desc())
    latest = session.scalar(query.limit(1)) or {}
    return tuple(str(place) for place in latest.get("landing") or ())


def _is_crawled_by_tool(session: Session, source_id: int) -> bool:
    # zimit uses its own browser: a poll cannot share politeness with it, so the poll waits.
    query = select(Job.config, Source.config).join(Execution, Execution.job_id == Job.id)
    query = query.join(Source, Source.id == Job.source_id)
    query = query.where(Job.source_id == source_id, Job.kind.in_(_CRAWLS), Execution.state == "running")
    crawls = session.execute(query).all()
    return any(
        next((config["backend"] for config in crawl if config.get("backend")), "native") != "native" for crawl in crawls
    )


def _is_due(feed: Feed, settings: FeedSettings, *, now: datetime, soon: datetime) -> bool:
    """Return whether a feed is due or nearly due, including by an interval that was shortened since."""
    due_at = feed.next_poll_at or feed.created_at
    if _must_wait(feed, settings):
        return due_at <= now
    # An operator may have shortened the interval after `next_poll_at` was stored.
    usual = (feed.last_polled_at or feed.created_at) + interval_of(feed.origin, settings)
    return min(due_at, usual) <= soon


def _audit(session: Session, clock: Clock, action: AuditAction, feed: Feed) -> None:
    subject, detail = f"feed {feed.id}", {"url": feed.url, "source_id": feed.source_id, "kind": feed.kind}
    audit.record(session, clock, action=action, subject=subject, detail=detail)
