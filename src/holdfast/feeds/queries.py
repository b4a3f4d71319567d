"""The rows of feeds and their items, as commands, routes and the job worker read and change them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import and_, delete, func, or_, select, update
from sqlalchemy.orm import Session

from holdfast.db.models import Execution, Feed, FeedItem, Job, Page, PageCrawl, Source
from holdfast.errors import Conflict, NotFound
from holdfast.feeds.health import BY_HAND

KINDS = ("feed", "sitemap")
# What a worker holds under a lease: an ad-hoc crawl that was killed stays `running` until an operator resumes it.
_CRAWLS = ("crawl", "annual", "shard")

_ENDED = ("completed", "failed", "cancelled")
# Reasons of attempts that were closed without a request: their items are given back. What a rule left out is not.
_UNASKED = ("over_limit:max_time", "over_limit:max_bytes", "stopped", "cancelled")


def feed_by_id(session: Session, feed_id: int) -> Feed | None:
    """Return one feed."""
    return session.get(Feed, feed_id)


def feed_at(session: Session, *, source_id: int, url_hash: int) -> Feed | None:
    """Return the feed of a source at this address."""
    return session.scalars(select(Feed).where(Feed.source_id == source_id, Feed.url_hash == url_hash)).one_or_none()


def insert_feed(session: Session, made: Feed) -> Feed:
    """Add a feed and give it its id."""
    session.add(made)
    session.flush()
    return made


def delete_feed(session: Session, feed: Feed) -> None:
    """Remove a feed; its items stay, so that none of them is news if it comes back."""
    session.delete(feed)
    session.flush()


def count_feeds(session: Session, *, source_id: int) -> int:
    """Return how many feeds a source has, those that were disabled included."""
    return session.scalar(select(func.count()).select_from(Feed).where(Feed.source_id == source_id)) or 0


def forget_disabled(session: Session, *, source_id: int, before: datetime) -> int:
    """Remove the feeds that were found and that their answers disabled before a moment; return how many.

    What was added or disabled by hand stays. The crawl process does the same (`polling_queries.forget_disabled`).
    """
    gone = session.scalars(
        delete(Feed)
        .where(Feed.source_id == source_id, Feed.disabled_at < before, Feed.origin != "configured")
        .where(or_(Feed.last_error_type.is_(None), Feed.last_error_type != BY_HAND))
        .returning(Feed.id)
        .execution_options(synchronize_session=False)
    )
    return len(list(gone))


class FeedFilter(NamedTuple):
    """Which feeds are listed."""

    source_id: int | None = None
    disabled: bool | None = None
    kind: str | None = None
    after: int = 0
    limit: int = 1000


def listed(session: Session, wanted: FeedFilter) -> list[tuple[Feed, str]]:
    """Return feeds with the code of their source, by number, from the one after `after` on."""
    query = select(Feed, Source.code).join(Source, Source.id == Feed.source_id).where(Feed.id > wanted.after)
    if wanted.source_id is not None:
        query = query.where(Feed.source_id == wanted.source_id)
    if wanted.disabled is not None:
        query = query.where(Feed.disabled_at.is_not(None) if wanted.disabled else Feed.disabled_at.is_(None))
    if wanted.kind is not None:
        query = query.where(Feed.kind == wanted.kind)
    return [(row[0], row[1]) for row in session.execute(query.order_by(Feed.id).limit(wanted.limit))]


def feeds_of_source(session: Session, *, source_id: int) -> list[Feed]:
    """Return all feeds of a source, by number."""
    return list(session.scalars(select(Feed).where(Feed.source_id == source_id).order_by(Feed.id)))


def polled_feeds(session: Session, *, source_id: int, sitemaps: bool) -> list[Feed]:
    """Return the feeds of a source that are polled, by their turn; without `sitemaps`, of those only the added ones."""
    query = select(Feed).where(Feed.source_id == source_id, Feed.disabled_at.is_(None), Feed.next_poll_at.is_not(None))
    if not sitemaps:
        # A source that reads no sitemaps still polls the one that an operator added.
        query = query.where(or_(Feed.kind != "sitemap", Feed.origin == "configured"))
    return list(session.scalars(query.order_by(Feed.next_poll_at, Feed.id)))


def polled_since(session: Session, *, ids: Sequence[int], since: datetime) -> set[int]:
    """Return which of these feeds were polled since a moment."""
    query = select(Feed.id).where(Feed.id.in_(ids), Feed.last_polled_at >= since)
    return set(session.scalars(query))


def items_of(session: Session, *, source_id: int, feed_id: int, limit: int) -> list[FeedItem]:
    """Return the newest items that a feed named."""
    query = select(FeedItem).where(FeedItem.source_id == source_id, FeedItem.feed_id == feed_id)
    return list(session.scalars(query.order_by(FeedItem.found_at.desc(), FeedItem.id).limit(limit)))


def item_ids(session: Session) -> tuple[int, int] | None:
    """Return the first and the last number of an item, of any source; None if there is none."""
    first, last = session.execute(select(func.min(FeedItem.id), func.max(FeedItem.id))).one()
    return None if first is None else (first, last)


def old_items(session: Session, *, start: int, looked_at: int, before: datetime) -> list[int]:
    """Return the items among the next so many from a number on that were taken, and named before a moment."""
    # The window is cut by number before the dates are looked at: no index has both, and the table may be long.
    window = select(FeedItem).where(FeedItem.id >= start).order_by(FeedItem.id).limit(looked_at).subquery()
    query = select(window.c.id).where(window.c.execution_id.is_not(None), window.c.found_at < before)
    return list(session.scalars(query))


def forget_items(session: Session, *, ids: Sequence[int], before: datetime) -> int:
    """Remove these items, unless they wait again or were named anew meanwhile; return how many."""
    gone = session.scalars(
        delete(FeedItem)
        .where(FeedItem.id.in_(ids), FeedItem.execution_id.is_not(None), FeedItem.found_at < before)
        .returning(FeedItem.id)
        .execution_options(synchronize_session=False)
    )
    return len(list(gone))


def waiting_count(session: Session, *, source_id: int) -> int:
    """Return how many items of a source no execution has taken."""
    query = select(func.count()).select_from(FeedItem)
    return session.scalar(query.where(FeedItem.source_id == source_id, FeedItem.execution_id.is_(None))) or 0


def latest_ended(session: Session, *, job_id: int, limit: int) -> list[int]:
    """Return the newest executions of a job that are over."""
    query = select(Execution.id).where(Execution.job_id == job_id, Execution.state.in_(_ENDED))
    return list(session.scalars(query.order_by(Execution.number.desc()).limit(limit)))


def unasked(session: Session, *, execution_id: int) -> list[int]:
    """Return the addresses that an execution never got to ask for: left open, or closed for want of time."""
    query = select(Page.url_hash).join(PageCrawl, PageCrawl.page_id == Page.id)
    closed = and_(PageCrawl.outcome == "excluded", PageCrawl.reason.in_(_UNASKED))
    # An open attempt of an execution that is over was lost with its process.
    left = or_(PageCrawl.outcome.is_(None), closed)
    return list(session.scalars(query.where(PageCrawl.execution_id == execution_id, PageCrawl.kind == "page", left)))


def give_back(session: Session, *, source_id: int, execution_id: int, hashes: Sequence[int]) -> int:
    """Let items of an execution wait again; return how many."""
    given = session.scalars(
        update(FeedItem)
        .where(FeedItem.source_id == source_id, FeedItem.execution_id == execution_id, FeedItem.url_hash.in_(hashes))
        .values(execution_id=None)
        .returning(FeedItem.id)
        .execution_options(synchronize_session=False)
    )
    return len(list(given))


def last_landing(session: Session, *, source_id: int) -> tuple[str, ...]:
    """Return where the seeds of a source landed in its latest crawl: items are in scope there too."""
    query = select(Execution.config).join(Job, Job.id == Execution.job_id)
    # An ad-hoc crawl tells where the seeds land as well as a scheduled one.
    query = query.where(Job.source_id == source_id, Job.kind.in_((*_CRAWLS, "adhoc"))).order_by(Execution.id.desc())
    latest = session.scalar(query.limit(1)) or {}
    return tuple(str(place) for place in latest.get("landing") or ())


def crawls_now(session: Session, *, source_id: int) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Return the crawls of this source that run: what their job says, and what the source says."""
    query = select(Job.config, Source.config).join(Execution, Execution.job_id == Job.id)
    query = query.join(Source, Source.id == Job.source_id)
    query = query.where(Job.source_id == source_id, Job.kind.in_(_CRAWLS), Execution.state == "running")
    return [(row[0], row[1]) for row in session.execute(query)]


class FeedNotFound(NotFound):
    """There is no feed with this number."""

    code = "feed_not_found"

    def __init__(self, feed_id: int) -> None:
        super().__init__(f"there is no feed {feed_id}; see them with: holdfast feed list")


class FeedTaken(Conflict):
    """The source polls this address already."""

    code = "feed_taken"

    def __init__(self, feed_id: int, url: str) -> None:
        super().__init__(f"{url} is feed {feed_id} of this source already; see it with: holdfast feed show {feed_id}")


class FeedsTooMany(Conflict):
    """The source has as many feeds as it may."""

    code = "feeds_too_many"

    def __init__(self, limit: int) -> None:
        super().__init__(
            f"this source has {limit} feeds already, disabled ones included; remove one, "
            "or raise HOLDFAST_FEEDS_PER_SOURCE"
        )
