"""Feed and item rows as used by commands, routes and the job worker."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import and_, delete, func, or_, select, update
from sqlalchemy.orm import Session

from holdfast.db.models import Execution, Feed, FeedItem, Job, Page, PageCrawl, Source
from holdfast.errors import Conflict, NotFound
from holdfast.feeds.health import BY_HAND

# What a worker holds under a lease: an ad-hoc crawl that was killed stays `running` until an operator resumes it.
_CRAWLS = ("crawl", "annual", "shard")

_ENDED = ("completed", "failed", "cancelled")
# Reasons of attempts that were closed without a request: their items are given back. What a rule left out is not.
_UNASKED = ("over_limit:max_time", "over_limit:max_bytes", "stopped", "cancelled")


def feed_at(session: Session, *, source_id: int, url_hash: int) -> Feed | None:
    return session.scalars(select(Feed).where(Feed.source_id == source_id, Feed.url_hash == url_hash)).one_or_none()


def insert_feed(session: Session, made: Feed) -> Feed:
    session.add(made)
    session.flush()
    return made


def count_feeds(session: Session, *, source_id: int) -> int:
    """Return the number of a source's feeds, including disabled ones."""
    return session.scalar(select(func.count()).select_from(Feed).where(Feed.source_id == source_id)) or 0


def forget_disabled(session: Session, *, source_id: int, before: datetime) -> int:
    """Delete discovered feeds that were disabled by errors before `before`; return how many.

    Feeds added or disabled by hand stay. The crawl process does the same (`polling_queries.forget_disabled`).
    """
    gone = session.scalars(
        delete(Feed)
        .where(Feed.source_id == source_id, Feed.disabled_at < before, Feed.origin != "configured")
        .where(or_(Feed.last_error_type.is_(None), Feed.last_error_type != BY_HAND))
        .returning(Feed.id)
        .execution_options(synchronize_session=False)
    )
    return len(list(gone))


def listed(
    session: Session,
    *,
    source_id: int | None = None,
    disabled: bool | None = None,
    kind: str | None = None,
    after: int = 0,
    limit: int = 1000,
) -> list[tuple[Feed, str]]:
    """Return feeds with their source's code, by id, starting after `after`."""
    query = select(Feed, Source.code).join(Source, Source.id == Feed.source_id).where(Feed.id > after)
    if source_id is not None:
        query = query.where(Feed.source_id == source_id)
    if disabled is not None:
        query = query.where(Feed.disabled_at.is_not(None) if disabled else Feed.disabled_at.is_(None))
    if kind is not None:
        query = query.where(Feed.kind == kind)
    return [(row[0], row[1]) for row in session.execute(query.order_by(Feed.id).limit(limit))]


def feeds_of_source(session: Session, *, source_id: int) -> list[Feed]:
    return list(session.scalars(select(Feed).where(Feed.source_id == source_id).order_by(Feed.id)))


def polled_feeds(session: Session, *, source_id: int, sitemaps: bool) -> list[Feed]:
    """Return the polled feeds of a source by next poll time; without `sitemaps`, omit sitemaps not added by hand."""
    query = select(Feed).where(Feed.source_id == source_id, Feed.disabled_at.is_(None), Feed.next_poll_at.is_not(None))
    if not sitemaps:
        # A source that reads no sitemaps still polls the one that an operator added.
        query = query.where(or_(Feed.kind != "sitemap", Feed.origin == "configured"))
    return list(session.scalars(query.order_by(Feed.next_poll_at, Feed.id)))


def items_of(session: Session, *, source_id: int, feed_id: int, limit: int) -> list[FeedItem]:
    query = select(FeedItem).where(FeedItem.source_id == source_id, FeedItem.feed_id == feed_id)
    return list(session.scalars(query.order_by(FeedItem.found_at.desc(), FeedItem.id).limit(limit)))


def old_items(session: Session, *, start: int, looked_at: int, before: datetime) -> list[int]:
    """Return, among the next `looked_at` ids from `start`, the claimed items last listed before `before`."""
    # The window is cut by number before the dates are looked at: no index has both, and the table may be long.
    window = select(FeedItem).where(FeedItem.id >= start).order_by(FeedItem.id).limit(looked_at).subquery()
    query = select(window.c.id).where(window.c.execution_id.is_not(None), window.c.found_at < before)
    return list(session.scalars(query))


def forget_items(session: Session, *, ids: Sequence[int], before: datetime) -> int:
    """Delete these items, unless they wait or were listed again meanwhile; return how many."""
    gone = session.scalars(
        delete(FeedItem)
        .where(FeedItem.id.in_(ids), FeedItem.execution_id.is_not(None), FeedItem.found_at < before)
        .returning(FeedItem.id)
        .execution_options(synchronize_session=False)
    )
    return len(list(gone))


def waiting_count(session: Session, *, source_id: int) -> int:
    query = select(func.count()).select_from(FeedItem)
    return session.scalar(query.where(FeedItem.source_id == source_id, FeedItem.execution_id.is_(None))) or 0


def unasked(session: Session, *, job_id: int, limit: int) -> dict[int, list[int]]:
    """Return the URL hashes that a job's last executions never requested: left open, or closed for lack of time."""
    ended = select(Execution.id).where(Execution.job_id == job_id, Execution.state.in_(_ENDED))
    latest = session.scalars(ended.order_by(Execution.number.desc()).limit(limit)).all()
    query = select(Page.url_hash).join(PageCrawl, PageCrawl.page_id == Page.id)
    closed = and_(PageCrawl.outcome == "excluded", PageCrawl.reason.in_(_UNASKED))
    # An open attempt of an execution that is over was lost with its process.
    left = or_(PageCrawl.outcome.is_(None), closed)
    found = {number: query.where(PageCrawl.execution_id == number, PageCrawl.kind == "page", left) for number in latest}
    return {number: hashes for number, one in found.items() if (hashes := list(session.scalars(one)))}


def give_back(session: Session, *, source_id: int, execution_id: int, hashes: Sequence[int]) -> int:
    """Make items of an execution wait again; return how many."""
    given = session.scalars(
        update(FeedItem)
        .where(FeedItem.source_id == source_id, FeedItem.execution_id == execution_id, FeedItem.url_hash.in_(hashes))
        .values(execution_id=None)
        .returning(FeedItem.id)
        .execution_options(synchronize_session=False)
    )
    return len(list(given))


def last_landing(session: Session, *, source_id: int) -> tuple[str, ...]:
    """Return the redirect targets of a source's seeds in its latest crawl: items are in scope there too."""
    query = select(Execution.config).join(Job, Job.id == Execution.job_id)
    # An ad-hoc crawl tells where the seeds land as well as a scheduled one.
    query = query.where(Job.source_id == source_id, Job.kind.in_((*_CRAWLS, "adhoc"))).order_by(Execution.id.desc())
    latest = session.scalar(query.limit(1)) or {}
    return tuple(str(place) for place in latest.get("landing") or ())


def crawls_now(session: Session, *, source_id: int) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Return the running crawls of this source: their job's configuration and the source's."""
    query = select(Job.config, Source.config).join(Execution, Execution.job_id == Job.id)
    query = query.join(Source, Source.id == Job.source_id)
    query = query.where(Job.source_id == source_id, Job.kind.in_(_CRAWLS), Execution.state == "running")
    return [(row[0], row[1]) for row in session.execute(query)]


class FeedNotFound(NotFound):
    """No feed has this id."""

    code = "feed_not_found"

    def __init__(self, feed_id: int) -> None:
        super().__init__(f"there is no feed {feed_id}; see them with: holdfast feed list")


class FeedTaken(Conflict):
    """The source already polls this URL."""

    code = "feed_taken"

    def __init__(self, feed_id: int, url: str) -> None:
        super().__init__(f"{url} is feed {feed_id} of this source already; see it with: holdfast feed show {feed_id}")


class FeedsTooMany(Conflict):
    """The source has reached its feed limit."""

    code = "feeds_too_many"

    def __init__(self, limit: int) -> None:
        super().__init__(
            f"this source has {limit} feeds, the most that it may have, disabled ones included; remove one first"
        )
