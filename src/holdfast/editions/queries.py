"""The rows of editions, and what a ledger, a manifest and a frozen list are made from; in stretches of bounded size."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import and_, exists, func, or_, select, tuple_
from sqlalchemy.orm import Session, aliased

from holdfast.db.models import Edition, Feed, FeedItem, Job, Snapshot, Source, WarcFile, Withdrawal
from holdfast.db.models.frontier import Exclusion, Page, PageCrawl

STRETCH = 2000


def edition(session: Session, *, source_id: int, year: int) -> Edition | None:
    """Return the edition of a source and a year."""
    return session.scalars(select(Edition).where(Edition.source_id == source_id, Edition.year == year)).one_or_none()


def edition_by_id(session: Session, edition_id: int) -> tuple[Edition, Source] | None:
    """Return an edition with its source."""
    row = session.execute(
        select(Edition, Source).join(Source, Source.id == Edition.source_id).where(Edition.id == edition_id)
    ).one_or_none()
    return None if row is None else (row[0], row[1])


def locked(session: Session, edition_id: int) -> Edition:
    """Return an edition, and keep it to ourselves until the transaction ends."""
    return session.scalars(select(Edition).where(Edition.id == edition_id).with_for_update()).one()


def listed(
    session: Session, *, source: str | None = None, year: int | None = None, limit: int = 50, offset: int = 0
) -> tuple[list[tuple[Edition, Source]], int]:
    """Return a page of editions with their sources, the latest year first, and how many there are in all."""
    where = [] if source is None else [Source.code == source]
    if year is not None:
        where.append(Edition.year == year)
    joined = select(Edition, Source).join(Source, Source.id == Edition.source_id).where(*where)
    counted = select(func.count()).select_from(Edition).join(Source, Source.id == Edition.source_id).where(*where)
    page = joined.order_by(Edition.year.desc(), Source.code, Edition.id).limit(limit).offset(offset)
    return [(row[0], row[1]) for row in session.execute(page)], session.scalar(counted) or 0


def insert_edition(session: Session, made: Edition) -> Edition:
    """Add an edition and give it its id."""
    session.add(made)
    session.flush()
    return made


def under_way(session: Session) -> list[int]:
    """Return the editions that are not finished, or whose jobs have changed since they were accounted for."""
    changed = exists().where(Job.edition_id == Edition.id, Job.updated_at > Edition.generated_at)
    rows = select(Edition.id).where(or_(Edition.status != "research_ready", changed)).order_by(Edition.id)
    return list(session.scalars(rows))


class AttemptRow(NamedTuple):
    """The last attempt of an execution on a page."""

    domain_id: int
    page_id: int
    url: str
    url_hash: int
    depth: int
    outcome: str | None
    reason: str | None
    message: str | None
    status_code: int | None
    completed_at: int | None
    redirected_to: str | None
    warc_file_id: int | None
    warc_ordinal: int | None
    via: str | None
    via_kind: str | None


_Via, _ViaPage, _Next = aliased(PageCrawl), aliased(Page), aliased(PageCrawl)


def attempts(session: Session, execution_id: int, *, after: tuple[int, int], limit: int = STRETCH) -> list[AttemptRow]:
    """Return the current state of the next pages of an execution: pages alone, what they embed is no page."""
    later = exists().where(
        _Next.execution_id == PageCrawl.execution_id, _Next.domain_id == PageCrawl.domain_id,
        _Next.page_id == PageCrawl.page_id, _Next.attempt == PageCrawl.attempt + 1,
    )  # fmt: skip
    found_on = and_(
        _Via.execution_id == PageCrawl.execution_id, _Via.domain_id == _ViaPage.domain_id,
        _Via.page_id == _ViaPage.id, _Via.attempt == 1,
    )  # fmt: skip
    rows = session.execute(
        select(
            PageCrawl.domain_id, PageCrawl.page_id, Page.url, Page.url_hash, PageCrawl.depth, PageCrawl.outcome,
            PageCrawl.reason, PageCrawl.message, PageCrawl.status_code, PageCrawl.completed_at,
            PageCrawl.redirected_to, PageCrawl.warc_file_id, PageCrawl.warc_ordinal, _ViaPage.url, _Via.kind,
        )
        .join(Page, Page.id == PageCrawl.page_id)
        .outerjoin(_ViaPage, _ViaPage.id == PageCrawl.via_page_id)
        .outerjoin(_Via, found_on)
        .where(
            PageCrawl.execution_id == execution_id, PageCrawl.kind == "page",
            tuple_(PageCrawl.domain_id, PageCrawl.page_id) > tuple_(*after), ~later,
        )
        .order_by(PageCrawl.domain_id, PageCrawl.page_id)
        .limit(limit)
    )  # fmt: skip
    return [AttemptRow._make(row) for row in rows]


def has_attempts(session: Session, execution_id: int) -> bool:
    """Return whether an execution kept a frontier of its own, so that every address that it met has a row."""
    found = select(PageCrawl.id).where(PageCrawl.execution_id == execution_id).limit(1)
    return session.scalar(found) is not None


class CaptureRow(NamedTuple):
    """One capture of an execution."""

    id: int
    execution_id: int
    url: str
    url_key: str
    url_hash: int
    captured_at: datetime
    status: int | None
    record_id: str | None
    record_type: str
    payload_digest: str | None
    body_hash: bytes | None
    is_page: bool
    method: str | None
    redirect_to: str | None
    backend: str
    fidelity: str
    warc_path: str | None
    withdrawn: bool


def _is_withdrawn() -> Any:
    lifted = Withdrawal.lifted_at.is_(None)
    return or_(
        exists().where(lifted, Withdrawal.snapshot_id == Snapshot.id),
        exists().where(lifted, Withdrawal.url_hash == Snapshot.url_hash),
    )


def _captures() -> Any:
    return select(
        Snapshot.id, Snapshot.execution_id, Snapshot.url, Snapshot.url_key, Snapshot.url_hash, Snapshot.captured_at,
        Snapshot.status, Snapshot.record_id, Snapshot.record_type, Snapshot.payload_digest, Snapshot.body_hash,
        Snapshot.is_page, Snapshot.method, Snapshot.redirect_to, Snapshot.backend, Snapshot.fidelity, WarcFile.path,
        _is_withdrawn().label("withdrawn"),
    ).outerjoin(WarcFile, WarcFile.id == Snapshot.warc_file_id)  # fmt: skip


def captures(
    session: Session, execution_id: int, *, after: int, pages_only: bool = True, limit: int = STRETCH
) -> list[CaptureRow]:
    """Return the next captures of an execution by id, those that were withdrawn marked as such."""
    query = _captures().where(Snapshot.execution_id == execution_id, Snapshot.id > after)
    if pages_only:
        query = query.where(Snapshot.is_page)
    return [_capture(row) for row in session.execute(query.order_by(Snapshot.id).limit(limit))]


def captures_by_id(session: Session, ids: Sequence[int]) -> dict[int, CaptureRow]:
    """Return these captures; what is not there any more is left out."""
    rows = session.execute(_captures().where(Snapshot.id.in_(ids)))
    return {row[0]: _capture(row) for row in rows}


def _capture(row: Any) -> CaptureRow:
    found = CaptureRow._make(row)
    return found._replace(withdrawn=bool(found.withdrawn), is_page=bool(found.is_page))


class LeftOut(NamedTuple):
    """Links that were never rows, counted by the rule that left them out."""

    rule: str
    links: int
    hosts: int


def links_left_out(session: Session, executions: Collection[int], *, limit: int = 200) -> list[LeftOut]:
    """Return which rules left links out of these executions, the strictest first."""
    total = func.sum(Exclusion.count)
    rows = session.execute(
        select(Exclusion.rule, total, func.count(func.distinct(Exclusion.host)))
        .where(Exclusion.execution_id.in_(executions))
        .group_by(Exclusion.rule)
        .order_by(total.desc(), Exclusion.rule)
        .limit(limit)
    )
    return [LeftOut(row[0], int(row[1]), row[2]) for row in rows]


def sitemaps(session: Session, executions: Collection[int]) -> dict[str, int]:
    """Return how reading sitemaps ended, by reason; one that could not be read hides what it would have named."""
    rows = session.execute(
        select(func.coalesce(PageCrawl.reason, "open"), func.count())
        .where(PageCrawl.execution_id.in_(executions), PageCrawl.kind == "sitemap", PageCrawl.attempt == 1)
        .group_by(PageCrawl.reason)
    )
    return {row[0]: row[1] for row in rows}


class ItemRow(NamedTuple):
    """An address that a feed or a sitemap of the source told."""

    id: int
    url: str
    url_hash: int
    kind: str
    feed: str
    execution_id: int | None


def feed_items(
    session: Session, source_id: int, *, executions: Collection[int], until: datetime, after: int, limit: int = STRETCH
) -> list[ItemRow]:
    """Return the next items that these executions took, or that waited when they ended: whoever took them later."""
    left = or_(FeedItem.execution_id.is_(None), FeedItem.execution_id > max(executions))
    mine = or_(FeedItem.execution_id.in_(executions), and_(left, FeedItem.found_at <= until))
    rows = session.execute(
        select(FeedItem.id, FeedItem.url, FeedItem.url_hash, Feed.kind, Feed.url, FeedItem.execution_id)
        .join(Feed, Feed.id == FeedItem.feed_id)
        .where(FeedItem.source_id == source_id, FeedItem.id > after, mine)
        .order_by(FeedItem.id)
        .limit(limit)
    )
    return [ItemRow._make(row) for row in rows]


class Hidden(NamedTuple):
    """Everything that is withdrawn now; small, whatever the archive's size."""

    snapshots: frozenset[int]
    pages: frozenset[int]


def hidden_among(session: Session, pages: Collection[int]) -> Hidden:
    """Return which of a few addresses nobody may see."""
    rows = session.scalars(
        select(Withdrawal.url_hash).where(Withdrawal.lifted_at.is_(None), Withdrawal.url_hash.in_(pages))
    )
    return Hidden(frozenset(), frozenset(row for row in rows if row is not None))


def hidden(session: Session) -> Hidden:
    """Return which captures and which addresses nobody may see."""
    rows = session.execute(
        select(Withdrawal.snapshot_id, Withdrawal.url_hash).where(Withdrawal.lifted_at.is_(None))
    ).all()
    return Hidden(
        frozenset(row[0] for row in rows if row[0] is not None), frozenset(row[1] for row in rows if row[1] is not None)
    )
