"""The rows of editions and their shards, and what a ledger, a manifest and a frozen list are made from.

Long answers come in stretches of bounded size.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from enum import Enum
from typing import Any, NamedTuple

from sqlalchemy import and_, exists, func, or_, select, text, tuple_
from sqlalchemy.orm import Session, aliased

from holdfast.db.models import Edition, Execution, Feed, FeedItem, Job, Snapshot, Source, WarcFile
from holdfast.db.models.frontier import Exclusion, Page, PageCrawl
from holdfast.db.raw import RawDatabase
from holdfast.jobs.attempt_queries import is_retried
from holdfast.jobs.execution_queries import ended_as
from holdfast.jobs.views.listing import Latest, admin_state
from holdfast.types import UrlKind
from holdfast.withdrawals.visibility import is_withdrawn, visible_source

STRETCH = 2000


def sources_with_edition(session: Session, *, year: int) -> list[int]:
    """Return the sources that have an edition of a year."""
    return list(session.scalars(select(Edition.source_id).where(Edition.year == year).order_by(Edition.source_id)))


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
    # A report and an accepted gap may be written at the same moment; SQLite ignores it, its writer is alone.
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


def readable_editions(
    session: Session, *, source_id: int | None = None, before: tuple[int, str] | None = None, limit: int = 50
) -> list[tuple[Edition, Source]]:
    """Return editions of sources that the viewer may see, the latest year first; behind a year and a source's code."""
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
    """Add an edition and give it its id."""
    session.add(made)
    session.flush()
    return made


_Newer = aliased(Execution)
_WAITING = ("pending", "running", "paused")
_CRAWLED = ("completed", "scheduled")


def unaccounted(session: Session) -> list[int]:
    """Return the editions that changed since their report, or have none; not those with a job that waits or runs.

    A job changes when it is run, decided about, added or removed; that its files were read shows in its execution.
    """
    mine = and_(Job.edition_id == Edition.id, Job.deleted_at.is_(None))
    undecided = or_(Job.acceptance_state.is_(None), Job.acceptance_state.in_(("pending", "needs_review")))
    waiting = exists().where(mine, Job.state.in_(_WAITING), undecided)
    # A retry is another execution of the job: whether its files were read is what counts.
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


class AttemptRow(NamedTuple):
    """The last attempt of an execution on a page."""

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


# Domain, page and attempt: the order in which an execution's rows are read.
Place = tuple[int, int, int]
_Via, _ViaPage = aliased(PageCrawl), aliased(Page)


def _by_index(session: Session) -> None:
    """Have stretches read in the order of their index, also from a table that PostgreSQL has no statistics of yet."""
    if session.get_bind().dialect.name == "postgresql":
        # Without statistics (a table that was filled a moment ago) PostgreSQL would read and sort all that is left for
        # each stretch.
        session.execute(text("SET LOCAL enable_bitmapscan = off"))


_WHOLE = or_(Snapshot.is_page, Snapshot.redirect_to.is_not(None))


class PageStretch(NamedTuple):
    """The next pages of an execution."""

    rows: list[AttemptRow]
    last: Place | None
    """Where to go on; None at the end."""


def attempts(session: Session, execution_id: int, *, after: Place = (-1, -1, -1), limit: int = STRETCH) -> PageStretch:
    """Return the current state of the next pages of an execution: pages alone, what they embed is no page."""
    _by_index(session)
    key = PageCrawl.domain_id, PageCrawl.page_id, PageCrawl.attempt
    part = (
        select(PageCrawl)
        # Keyset, by the order of the primary key: OFFSET would read the whole execution again for each stretch.
        .where(PageCrawl.execution_id == execution_id, tuple_(*key) > tuple_(*after))
        .order_by(*key)
        .limit(limit)
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
            or_(one.kind != "page", is_retried(one)),
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
            _ViaPage.url,
            _Via.kind,
        )
        .join(Page, Page.id == one.page_id)
        .outerjoin(_ViaPage, _ViaPage.id == one.via_page_id)
        .outerjoin(_Via, found_on)
        .order_by(one.domain_id, one.page_id, one.attempt)
    ).all()
    # The stretch is cut before retried attempts are left out: a short list is not the end, a short stretch is.
    last = rows[-1] if len(rows) == limit else None
    return PageStretch(
        [AttemptRow._make(row[4:]) for row in rows if not row[3]], None if last is None else (last[0], last[1], last[2])
    )


def with_frontier(session: Session, executions: Collection[int]) -> set[int]:
    """Return which executions kept a frontier of their own, so that every address that they met has a row."""
    kept = or_(exists().where(PageCrawl.execution_id == Execution.id), Execution.frontier_id.is_not(None))
    return set(session.scalars(select(Execution.id).where(Execution.id.in_(executions), kept)))


class SeenAnswer(NamedTuple):
    """An answer that an execution captured."""

    url_hash: int
    status: int | None
    redirect_to: str | None
    truncated: str | None
    noise: str | None


def captures_of_pages(session: Session, executions: Collection[int], pages: Collection[int]) -> list[SeenAnswer]:
    """Return what these executions captured of a few addresses: pages, and answers that lead elsewhere."""
    if not executions or not pages:
        return []
    rows = session.execute(
        select(Snapshot.url_hash, Snapshot.status, Snapshot.redirect_to, Snapshot.truncated, Snapshot.noise).where(
            Snapshot.url_hash.in_(pages), Snapshot.execution_id.in_(executions), Snapshot.method.is_(None), _WHOLE
        )
    )
    return [SeenAnswer._make(row) for row in rows]


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
    warc_file_id: int
    warc_path: str | None
    truncated: str | None
    noise: str | None
    withdrawn: bool


def _captures(one: Any) -> Any:
    return select(
        one.id,
        one.execution_id,
        one.url,
        one.url_key,
        one.url_hash,
        one.captured_at,
        one.status,
        one.record_id,
        one.record_type,
        one.payload_digest,
        one.body_hash,
        one.is_page,
        one.method,
        one.redirect_to,
        one.backend,
        one.fidelity,
        one.warc_file_id,
        WarcFile.path,
        one.truncated,
        one.noise,
        is_withdrawn(one),
    ).outerjoin(WarcFile, WarcFile.id == one.warc_file_id)


class WantedCaptures(Enum):
    """Which captures of an execution are wanted."""

    ALL = "all"
    PAGES = "pages"
    PAGES_AND_REDIRECTS = "pages_and_redirects"


def captures(
    session: Session,
    execution_id: int,
    *,
    after: int,
    which: WantedCaptures = WantedCaptures.PAGES,
    limit: int = STRETCH,
) -> list[CaptureRow]:
    """Return the next captures of an execution by id, those that were withdrawn marked as such."""
    _by_index(session)
    part = select(Snapshot).where(Snapshot.execution_id == execution_id, Snapshot.id > after)
    if which is not WantedCaptures.ALL:
        part = part.where(Snapshot.is_page if which is WantedCaptures.PAGES else _WHOLE)
    one = aliased(Snapshot, part.order_by(Snapshot.id).limit(limit).subquery())
    return [_capture(row) for row in session.execute(_captures(one).order_by(one.id))]


def captures_by_id(session: Session, ids: Sequence[int]) -> dict[int, CaptureRow]:
    """Return these captures; what is not there any more is left out."""
    rows = session.execute(_captures(Snapshot).where(Snapshot.id.in_(ids)))
    return {row[0]: _capture(row) for row in rows}


def _capture(row: Any) -> CaptureRow:
    # SQLite has no booleans: 0 and 1 would stand as such in the JSON of a frozen list, and change its digest.
    found = CaptureRow._make(row)
    return found._replace(withdrawn=bool(found.withdrawn), is_page=bool(found.is_page))


class SealedFileRow(NamedTuple):
    """A WARC file as it was sealed."""

    path: str
    size: int | None
    sha256: str | None


def warc_file(session: Session, warc_file_id: int) -> SealedFileRow | None:
    """Return a WARC file."""
    row = session.execute(
        select(WarcFile.path, WarcFile.size, WarcFile.sha256).where(WarcFile.id == warc_file_id)
    ).one_or_none()
    return None if row is None else SealedFileRow._make(row)


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


def sitemaps(raw_db: RawDatabase, executions: Collection[int]) -> dict[str, int]:
    """Return how reading sitemaps ended, by reason; one that could not be read hides what it would have named."""
    found: Counter[str] = Counter()
    for execution_id in executions:
        for group in ended_as(raw_db, frontier_id=execution_id):
            if group.kind == UrlKind.SITEMAP.value:
                found[group.reason or "open"] += group.addresses
    return dict(found)


class ToldItem(NamedTuple):
    """An address that a feed or a sitemap of the source told."""

    url: str
    url_hash: int
    kind: str | None
    """None if the feed that named it was removed since."""
    feed: str | None
    execution_id: int | None
    """The poll that took it."""


def feed_items(
    session: Session, source_id: int, *, since: datetime, until: datetime, after: int | None, limit: int = STRETCH
) -> list[ToldItem]:
    """Return the next addresses by hash that feeds named between two moments, and those that have waited for longer."""
    query = (
        select(FeedItem.url, FeedItem.url_hash, Feed.kind, Feed.url, FeedItem.execution_id)
        .outerjoin(Feed, Feed.id == FeedItem.feed_id)
        .where(
            FeedItem.source_id == source_id,
            FeedItem.found_at <= until,
            # What still waits is meant, however long ago it was named.
            or_(FeedItem.execution_id.is_(None), FeedItem.found_at >= since),
        )
    )
    if after is not None:
        query = query.where(FeedItem.url_hash > after)
    rows = session.execute(query.order_by(FeedItem.url_hash).limit(limit))
    return [ToldItem._make(row) for row in rows]


ANNUAL, SHARD = "annual", "shard"


class ShardState(NamedTuple):
    """A job, its newest execution, and the word that operators see for both."""

    job: Job
    latest: Execution | None
    status: str


def shards_of_edition(session: Session, edition_id: int) -> list[ShardState]:
    """Return the shards of an edition, in the order in which they were made."""
    found = select(Job).where(Job.edition_id == edition_id, Job.deleted_at.is_(None)).order_by(Job.id)
    return with_latest(session, session.scalars(found))


def jobs_of_source(session: Session, source_id: int) -> list[ShardState]:
    """Return every job of a source that is not deleted, oldest first."""
    found = select(Job).where(Job.source_id == source_id, Job.deleted_at.is_(None)).order_by(Job.id)
    return with_latest(session, session.scalars(found))


def with_latest(session: Session, jobs: Iterable[Job]) -> list[ShardState]:
    """Return jobs with the newest execution of each."""
    rows = list(jobs)
    newest = (
        # One question for all jobs; a source may have hundreds.
        select(func.max(Execution.id)).where(Execution.job_id.in_([row.id for row in rows])).group_by(Execution.job_id)
    )
    latest = {row.job_id: row for row in session.scalars(select(Execution).where(Execution.id.in_(newest)))}
    return [ShardState(row, latest.get(row.id), _operator_status(row, latest.get(row.id))) for row in rows]


def _operator_status(job: Job, latest: Execution | None) -> str:
    seen = None if latest is None else Latest(latest.state, latest.index_state)
    tried = job.current_retry_count + job.infra_retry_count
    return admin_state(job.state, retries=tried, latest=seen, failed=job.error_message is not None)


def job_of_edition(session: Session, job_id: int) -> Job | None:
    """Return a job that belongs to an edition, kept to ourselves until the transaction ends; None if it does not."""
    return session.scalars(
        select(Job).where(Job.id == job_id, Job.edition_id.is_not(None), Job.deleted_at.is_(None)).with_for_update()
    ).one_or_none()


def edition_of_job(session: Session, job_id: int) -> int | None:
    """Return the edition that a job is part of."""
    return session.scalar(select(Job.edition_id).where(Job.id == job_id, Job.deleted_at.is_(None)))


def executions_of(session: Session, job_ids: Collection[int]) -> list[Execution]:
    """Return what these jobs ran, oldest first; what waits and was never begun is left out."""
    return list(
        session.scalars(
            select(Execution)
            .where(Execution.job_id.in_(job_ids), Execution.started_at.is_not(None))
            .order_by(Execution.id)
        )
    )


def attach_shard(job: Job, *, edition_id: int, key: str, kind: str, now: datetime) -> None:
    """Make a job part of an edition."""
    job.edition_id, job.shard_key, job.shard_kind, job.updated_at = edition_id, key, kind, now
    # A job that was salvaged may carry a decision of before.
    job.acceptance_state = job.acceptance_state or "pending"


def note_reports(session: Session, paths: Mapping[int, str]) -> None:
    """Write where the coverage report of a shard lies, to these executions."""
    for execution in session.scalars(select(Execution).where(Execution.id.in_(paths))):
        execution.artifacts = {**execution.artifacts, "coverage_report": paths[execution.id]}


def mark_shard(job: Job, acceptance: str, *, now: datetime, details: dict[str, Any] | None = None) -> None:
    """Write what is decided about a shard; details are added to the job's own."""
    # updated_at is what makes an edition due for a new report: it changes only if something did.
    if job.acceptance_state == acceptance and not details:
        return
    job.acceptance_state, job.updated_at = acceptance, now
    if details:
        job.details = {**job.details, **details}
