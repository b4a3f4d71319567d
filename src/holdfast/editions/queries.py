"""Queries of editions and their shards, and the data of a ledger, a manifest and a frozen list.

Long results are returned in portions of bounded size.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from enum import Enum
from typing import Any, NamedTuple

from sqlalchemy import BigInteger, Row, and_, cast, exists, func, or_, select, text, tuple_
from sqlalchemy.orm import Session, aliased

from holdfast.db.models import Edition, Execution, Feed, FeedItem, Job, Snapshot, Source, WarcFile
from holdfast.db.models.frontier import Exclusion, Page, PageCrawl
from holdfast.db.raw import RawDatabase
from holdfast.frontier.attempts import is_retried
from holdfast.jobs.execution_queries import ended_as
from holdfast.jobs.views.listing import admin_status
from holdfast.types import UrlKind
from holdfast.withdrawals.visibility import is_withdrawn, visible_source

STRETCH = 2000
_RULES = 200


def sources_with_edition(session: Session, *, year: int) -> list[int]:
    return list(session.scalars(select(Edition.source_id).where(Edition.year == year).order_by(Edition.source_id)))


def edition(session: Session, *, source_id: int, year: int) -> Edition | None:
    return session.scalars(select(Edition).where(Edition.source_id == source_id, Edition.year == year)).one_or_none()


def edition_by_id(session: Session, edition_id: int) -> tuple[Edition, Source] | None:
    row = session.execute(
        select(Edition, Source).join(Source, Source.id == Edition.source_id).where(Edition.id == edition_id)
    ).one_or_none()
    return None if row is None else (row[0], row[1])


def locked(session: Session, edition_id: int) -> Edition:
    """Return an edition, locked until the transaction ends."""
    # A report and an accepted gap may be written concurrently; SQLite ignores this lock, having one writer.
    return session.scalars(select(Edition).where(Edition.id == edition_id).with_for_update()).one()


def listed(
    session: Session, *, source: str | None = None, year: int | None = None, limit: int = 50, offset: int = 0
) -> tuple[list[tuple[Edition, Source]], int]:
    """Return a page of editions with their sources, the latest year first, and the total number."""
    where = [] if source is None else [Source.code == source]
    if year is not None:
        where.append(Edition.year == year)
    joined = select(Edition, Source).join(Source, Source.id == Edition.source_id).where(*where)
    counted = select(func.count()).select_from(Edition).join(Source, Source.id == Edition.source_id).where(*where)
    page = joined.order_by(Edition.year.desc(), Source.code, Edition.id).limit(limit).offset(offset)
    return [(row[0], row[1]) for row in session.execute(page)], session.scalar(counted) or 0


def readable_editions(
    session: Session, *, source_id: int | None = None, before: tuple[int, str] | None = None, limit: int = 50
) -> list[tuple[Edition, Source]]:
    """Return editions of sources visible to the viewer, the latest year first, after a year and source code."""
    wanted = select(Edition, Source).join(Source, Source.id == Edition.source_id).where(visible_source(Source.id))
    if source_id is not None:
        wanted = wanted.where(Source.id == source_id)
    if before is not None:
        year, code = before
        wanted = wanted.where(or_(Edition.year < year, and_(Edition.year == year, Source.code > code)))
    # A source has one edition a year: both together name one.
    rows = session.execute(wanted.order_by(Edition.year.desc(), Source.code, Edition.id).limit(limit))
    return [(row[0], row[1]) for row in rows]


def insert_edition(session: Session, made: Edition) -> Edition:
    session.add(made)
    session.flush()
    return made


_Newer = aliased(Execution)
_WAITING = ("pending", "running", "paused")
_CRAWLED = ("completed", "scheduled")


def unaccounted(session: Session) -> list[int]:
    """Return editions without a report or changed since it, except those with a pending or running job.

    A job changes when it is run, decided about, added or removed; its execution shows that its files were indexed.
    """
    mine = and_(Job.edition_id == Edition.id, Job.deleted_at.is_(None))
    undecided = or_(Job.acceptance_state.is_(None), Job.acceptance_state.in_(("pending", "needs_review")))
    waiting = exists().where(mine, Job.state.in_(_WAITING), undecided)
    # A retry is another execution of the job: only whether the newest one's files were read matters.
    is_newest = ~exists().where(_Newer.job_id == Execution.job_id, _Newer.number > Execution.number)
    indexed = (
        select(func.count())
        .select_from(Job)
        .join(Execution, Execution.job_id == Job.id)
        .where(mine, or_(Job.state.is_(None), Job.state.in_(_CRAWLED)), Execution.index_state == "indexed", is_newest)
        .correlate(Edition)
        .scalar_subquery()
    )
    changed = exists().where(Job.edition_id == Edition.id, Job.updated_at > Edition.generated_at)
    stale = or_(Edition.generated_at.is_(None), changed, indexed != Edition.indexed_shard_count)
    return list(session.scalars(select(Edition.id).where(stale, exists().where(mine), ~waiting).order_by(Edition.id)))


Rows = Sequence[Row[*tuple[Any, ...]]]
# Domain, page and attempt: the order in which an execution's rows are read.
Place = tuple[int, int, int]
_Via, _ViaPage = aliased(PageCrawl), aliased(Page)


def _by_index(session: Session) -> None:
    """Make PostgreSQL use the index order for portions, also for a table without statistics."""
    if session.get_bind().dialect.name == "postgresql":
        # Without statistics (a newly filled table) PostgreSQL would read and sort all remaining rows for each slice.
        session.execute(text("SET LOCAL enable_bitmapscan = off"))


_WHOLE = or_(Snapshot.is_page, Snapshot.redirect_to.is_not(None))


def attempts(session: Session, execution_id: int, *, after: Place = (-1, -1, -1)) -> tuple[Rows, Place | None]:
    """Return the current state of the next pages of an execution, and where to continue; None at the end.

    Only pages, not embedded resources.
    """
    _by_index(session)
    key = PageCrawl.domain_id, PageCrawl.page_id, PageCrawl.attempt
    part = (
        select(PageCrawl)
        # Keyset pagination in primary key order: OFFSET would read the whole execution again for each slice.
        .where(PageCrawl.execution_id == execution_id, tuple_(*key) > tuple_(*after))
        .order_by(*key)
        .limit(STRETCH)
    ).subquery()
    one = aliased(PageCrawl, part)
    found_on = and_(
        _Via.execution_id == one.execution_id,
        _Via.domain_id == _ViaPage.domain_id,
        _Via.page_id == _ViaPage.id,
        _Via.attempt == 1,
    )
    rows = session.execute(
        select(
            one.domain_id,
            one.page_id,
            one.attempt,
            or_(one.kind != "page", is_retried(one)).label("is_skipped"),
            Page.url,
            Page.url_hash,
            one.depth,
            one.outcome,
            one.reason,
            one.message,
            one.status_code,
            one.completed_at,
            one.redirected_to,
            one.warc_file_id,
            one.warc_ordinal,
            _ViaPage.url.label("via"),
            _Via.kind.label("via_kind"),
        )
        .join(Page, Page.id == one.page_id)
        .outerjoin(_ViaPage, _ViaPage.id == one.via_page_id)
        .outerjoin(_Via, found_on)
        .order_by(one.domain_id, one.page_id, one.attempt)
    ).all()
    # The slice is cut before retried attempts are removed: only a short slice is the end, not a short list.
    last = rows[-1] if len(rows) == STRETCH else None
    return [row for row in rows if not row.is_skipped], None if last is None else (last[0], last[1], last[2])


def with_frontier(session: Session, executions: Collection[int]) -> set[int]:
    """Return which executions had their own frontier, so that each of their addresses has a row."""
    kept = or_(exists().where(PageCrawl.execution_id == Execution.id), Execution.frontier_id.is_not(None))
    return set(session.scalars(select(Execution.id).where(Execution.id.in_(executions), kept)))


def captures_of_pages(session: Session, executions: Collection[int], pages: Collection[int]) -> Rows:
    """Return the captures of a few addresses by these executions: pages, and redirects."""
    if not executions or not pages:
        return []
    rows = session.execute(
        select(Snapshot.url_hash, Snapshot.status, Snapshot.redirect_to, Snapshot.truncated, Snapshot.noise).where(
            Snapshot.url_hash.in_(pages), Snapshot.execution_id.in_(executions), Snapshot.method.is_(None), _WHOLE
        )
    )
    return rows.all()


class CaptureRow(NamedTuple):
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
    warc_file_id: int
    warc_path: str | None
    truncated: str | None
    noise: str | None
    withdrawn: bool


def _captures(one: Any) -> Any:
    return select(
        *(one.id, one.execution_id, one.url, one.url_key, one.url_hash, one.captured_at, one.status, one.record_id),
        *(one.record_type, one.payload_digest, one.body_hash, one.is_page, one.method, one.redirect_to),
        *(one.backend, one.fidelity, one.warc_file_id, WarcFile.path, one.truncated, one.noise),
        is_withdrawn(one),
    ).outerjoin(WarcFile, WarcFile.id == one.warc_file_id)


class WantedCaptures(Enum):
    ALL = "all"
    PAGES = "pages"
    PAGES_AND_REDIRECTS = "pages_and_redirects"


def captures(
    session: Session,
    execution_id: int,
    *,
    after: int,
    which: WantedCaptures = WantedCaptures.PAGES,
) -> list[CaptureRow]:
    """Return the next captures of an execution by id; those under takedown are marked."""
    _by_index(session)
    part = select(Snapshot).where(Snapshot.execution_id == execution_id, Snapshot.id > after)
    if which is not WantedCaptures.ALL:
        part = part.where(Snapshot.is_page if which is WantedCaptures.PAGES else _WHOLE)
    one = aliased(Snapshot, part.order_by(Snapshot.id).limit(STRETCH).subquery())
    return [_capture(row) for row in session.execute(_captures(one).order_by(one.id))]


def captures_by_id(session: Session, ids: Sequence[int]) -> dict[int, CaptureRow]:
    """Return these captures; missing ones are omitted."""
    rows = session.execute(_captures(Snapshot).where(Snapshot.id.in_(ids)))
    return {row[0]: _capture(row) for row in rows}


def _capture(row: Any) -> CaptureRow:
    # SQLite has no booleans: 0 and 1 would change the JSON of a frozen list, and its digest.
    found = CaptureRow._make(row)
    return found._replace(withdrawn=bool(found.withdrawn), is_page=bool(found.is_page))


def warc_file(session: Session, warc_file_id: int) -> WarcFile | None:
    return session.get(WarcFile, warc_file_id)


def links_left_out(session: Session, executions: Collection[int]) -> Rows:
    """Return the rules that excluded links from these executions, the strictest first."""
    total = func.sum(Exclusion.count)
    rows = session.execute(
        select(
            Exclusion.rule,
            cast(total, BigInteger).label("links"),
            func.count(func.distinct(Exclusion.host)).label("hosts"),
        )
        .where(Exclusion.execution_id.in_(executions))
        .group_by(Exclusion.rule)
        .order_by(total.desc(), Exclusion.rule)
        .limit(_RULES)
    )
    return rows.all()


def sitemaps(raw_db: RawDatabase, executions: Collection[int]) -> dict[str, int]:
    """Return the results of reading sitemaps by reason; one that could not be read hides the addresses in it."""
    found: Counter[str] = Counter()
    for execution_id in executions:
        for group in ended_as(raw_db, frontier_id=execution_id):
            if group.kind == UrlKind.SITEMAP.value:
                found[group.reason or "open"] += group.addresses
    return dict(found)


def feed_items(
    session: Session, source_id: int, *, since: datetime, until: datetime, after: int | None, limit: int = STRETCH
) -> Rows:
    """Return the next addresses by hash from feeds between two times, and older ones that are still pending."""
    query = (
        select(FeedItem.url, FeedItem.url_hash, Feed.kind, Feed.url.label("feed"), FeedItem.execution_id)
        .outerjoin(Feed, Feed.id == FeedItem.feed_id)
        .where(
            FeedItem.source_id == source_id,
            FeedItem.found_at <= until,
            # Waiting items are intended, however old they are.
            or_(FeedItem.execution_id.is_(None), FeedItem.found_at >= since),
        )
    )
    if after is not None:
        query = query.where(FeedItem.url_hash > after)
    return session.execute(query.order_by(FeedItem.url_hash).limit(limit)).all()


ANNUAL, SHARD = "annual", "shard"


class ShardState(NamedTuple):
    """A job, its newest execution, and the combined status for operators."""

    job: Job
    latest: Execution | None
    status: str


def shards_of_edition(session: Session, edition_id: int) -> list[ShardState]:
    """Return the shards of an edition, in order of creation."""
    found = select(Job).where(Job.edition_id == edition_id, Job.deleted_at.is_(None)).order_by(Job.id)
    return with_latest(session, session.scalars(found))


def jobs_of_source(session: Session, source_id: int) -> list[ShardState]:
    """Return every job of a source that is not deleted, oldest first."""
    found = select(Job).where(Job.source_id == source_id, Job.deleted_at.is_(None)).order_by(Job.id)
    return with_latest(session, session.scalars(found))


def with_latest(session: Session, jobs: Iterable[Job]) -> list[ShardState]:
    rows = list(jobs)
    newest = (
        # One query for all jobs: a source may have hundreds.
        select(func.max(Execution.id)).where(Execution.job_id.in_([row.id for row in rows])).group_by(Execution.job_id)
    )
    latest = {row.job_id: row for row in session.scalars(select(Execution).where(Execution.id.in_(newest)))}
    return [ShardState(row, latest.get(row.id), admin_status(row, latest.get(row.id))) for row in rows]


def job_of_edition(session: Session, job_id: int) -> Job | None:
    """Return an edition's job, locked until the transaction ends; None if it belongs to no edition."""
    return session.scalars(
        select(Job)
        .where(Job.id == job_id, Job.edition_id.is_not(None), Job.deleted_at.is_(None))
        .with_for_update()
        # The session may hold this row's state from before the lock.
        .execution_options(populate_existing=True)
    ).one_or_none()


def edition_of_job(session: Session, job_id: int) -> int | None:
    return session.scalar(select(Job.edition_id).where(Job.id == job_id, Job.deleted_at.is_(None)))


def executions_of(session: Session, job_ids: Collection[int]) -> list[Execution]:
    """Return the executions of these jobs, oldest first, without queued runs."""
    return list(
        session.scalars(
            select(Execution)
            .where(Execution.job_id.in_(job_ids), Execution.started_at.is_not(None))
            .order_by(Execution.id)
        )
    )


def attach_shard(job: Job, *, edition_id: int, key: str, kind: str, now: datetime) -> None:
    job.edition_id, job.shard_key, job.shard_kind, job.updated_at = edition_id, key, kind, now
    # A salvaged job may have an earlier decision.
    job.acceptance_state = job.acceptance_state or "pending"


def note_reports(session: Session, paths: Mapping[int, str]) -> None:
    """Store the path of a shard's coverage report with these executions."""
    for execution in session.scalars(select(Execution).where(Execution.id.in_(paths))):
        execution.artifacts = {**execution.artifacts, "coverage_report": paths[execution.id]}


def mark_shard(job: Job, acceptance: str, *, now: datetime, details: dict[str, Any] | None = None) -> None:
    """Store the decision about a shard; `details` are added to the job's own."""
    # updated_at makes an edition due for a new report: change it only if something changed.
    if job.acceptance_state == acceptance and not details:
        return
    job.acceptance_state, job.updated_at = acceptance, now
    if details:
        job.details = {**job.details, **details}
