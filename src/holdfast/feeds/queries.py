"""Feed and item rows as used by commands, routes and the job worker."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import and_, delete, func, or_, select, update
from sqlalchemy.orm import Session

from holdfast.db.models import Execution, Feed, FeedItem, Page, PageCrawl, Source
from holdfast.errors import Conflict, NotFound

_ENDED = ("completed", "failed", "cancelled")
# Reasons of attempts closed without a request: their items are released, but not those that a rule excluded.
_UNASKED = ("over_limit:max_time", "over_limit:max_bytes", "stopped", "cancelled")


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


def items_of(session: Session, *, source_id: int, feed_id: int, limit: int) -> list[FeedItem]:
    query = select(FeedItem).where(FeedItem.source_id == source_id, FeedItem.feed_id == feed_id)
    return list(session.scalars(query.order_by(FeedItem.found_at.desc(), FeedItem.id).limit(limit)))


def old_items(session: Session, *, start: int, looked_at: int, before: datetime) -> list[int]:
    """Return, among the next `looked_at` ids from `start`, the claimed items last listed before `before`."""
    # Limit by id before filtering by date: no index has both, and the table may be long.
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
    # An open attempt of an ended execution was lost with its process.
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
