"""Feed and item rows as used by commands, routes and the job worker."""

from __future__ import annotations

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from holdfast.db.models import Feed, FeedItem, Source
from holdfast.errors import Conflict, NotFound


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


def waiting_count(session: Session, *, source_id: int) -> int:
    query = select(func.count()).select_from(FeedItem)
    return session.scalar(query.where(FeedItem.source_id == source_id, FeedItem.execution_id.is_(None))) or 0


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
