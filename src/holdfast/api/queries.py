"""Database queries of the API that no other package has: totals, entries of sites, processes, stored bytes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import Any, NamedTuple, TypeVar

from sqlalchemy import BigInteger, ColumnElement, Row, Select, bindparam, func, select, type_coerce
from sqlalchemy.orm import Session

from holdfast.clock import Clock
from holdfast.db.engine import moment_in, server_clock
from holdfast.db.models import (
    Document,
    Domain,
    Execution,
    ExecutionCount,
    IndexRun,
    Job,
    NoiseVerdict,
    Owner,
    Page,
    PageCrawl,
    PageGroup,
    Queue,
    Snapshot,
    Source,
    WarcFile,
)
from holdfast.db.prepared import PreparedSelect
from holdfast.index.queries import is_ok
from holdfast.operations.overview import ActiveExecution, BrokenFile, DayBytes, SourceBytes
from holdfast.processes.owners import GONE, WORKER_KINDS
from holdfast.records import from_row
from holdfast.types import FAILURES
from holdfast.urls import surt
from holdfast.withdrawals.hidden_captures import hidden_groups
from holdfast.withdrawals.visibility import (
    LAST_WITHDRAWALS,
    for_members,
    hidden_sources,
    visible,
    visible_run,
    visible_snapshots,
    visible_source,
)

_REPRESENTATIVES = 5
T = TypeVar("T")


_FIGURES = (
    func.count(IndexRun.warc_file_id),
    func.sum(IndexRun.records),
    func.max(IndexRun.progress_at),
    *LAST_WITHDRAWALS,
    func.count(Source.id),
    func.max(Source.updated_at),
    func.count(ExecutionCount.owner_id),
    func.max(ExecutionCount.updated_at),
)
# One statement for all, put together once: that costs more than what it reads.
_STATE = select(*(select(figure).scalar_subquery() for figure in _FIGURES))


def state_of_archive(session: Session) -> tuple[object, ...]:
    """Return values that change whenever the totals may have; reads one row per WARC file, not per capture."""
    return tuple(session.execute(_STATE).one())


class SourceTotal(NamedTuple):
    source_id: int
    code: str
    name: str
    base_url: str | None
    description: str | None
    visibility: str
    pages: int
    snapshots: int
    first: datetime
    last: datetime


def source_totals(session: Session) -> list[SourceTotal]:
    """Return the totals of every source with visible captures, by code. Reads every group: not for use in requests."""
    # Groups count captures that were taken down, too: those that have any are counted by their captures.
    touched = hidden_groups()
    kept: dict[int, _Kept] = {}
    whole = (
        select(
            PageGroup.source_id,
            func.count(),
            func.sum(PageGroup.snapshot_count),
            func.min(PageGroup.first_captured_at),
            func.max(PageGroup.last_captured_at),
        )
        .where(PageGroup.id.not_in(touched), visible_source(PageGroup.source_id))
        .group_by(PageGroup.source_id)
    )
    for row in session.execute(whole):
        _add(kept, row[0], _Kept(row[1], int(row[2]), row[3], row[4]))
    # Groups with takedowns: their remaining captures are counted.
    left = (
        select(
            Snapshot.source_id,
            func.count(Snapshot.group_id.distinct()),
            func.count(),
            func.min(Snapshot.captured_at),
            func.max(Snapshot.captured_at),
        )
        .where(Snapshot.group_id.in_(touched), *visible())
        .group_by(Snapshot.source_id)
    )
    for row in session.execute(left):
        _add(kept, row[0], _Kept(*row[1:]))
    rows = session.execute(
        select(Source.id, Source.code, Source.name, Source.base_url, Source.description, Source.visibility).order_by(
            Source.code
        )
    )
    return [SourceTotal(*row, *kept[row[0]]) for row in rows if row[0] in kept]


class _Kept(NamedTuple):
    pages: int
    snapshots: int
    first: datetime
    last: datetime


def _add(kept: dict[int, _Kept], source_id: int, more: _Kept) -> None:
    known = kept.get(source_id)
    kept[source_id] = (
        more
        if known is None
        else _Kept(
            known.pages + more.pages,
            known.snapshots + more.snapshots,
            min(known.first, more.first),
            max(known.last, more.last),
        )
    )


def document_total(session: Session) -> int:
    """Return the number of distinct visible texts. Reads a whole index: not for use in requests."""
    if hidden_sources(session):
        texts = func.count(Snapshot.document_id.distinct())
        return session.scalar(select(texts).where(visible_source(Snapshot.source_id))) or 0
    return session.scalar(select(func.count()).select_from(Document)) or 0


class RepresentativeCaptures(NamedTuple):
    """Candidates for the capture that represents a source, best first; routes skip those that `showing` omits."""

    newest: tuple[int, ...]
    entry: tuple[int, ...]
    languages: dict[str, tuple[int, ...]]
    """The topmost pages in each language, by the first two or three letters of its code."""


def topmost_by_language(session: Session) -> dict[int, dict[str, tuple[int, ...]]]:
    """Return a few good captures of each source's topmost pages in each language, by source.

    Reads every group: not for use in requests.
    """
    # Slashes in the address: the first page of a site has the fewest.
    depth = func.length(PageGroup.url) - func.length(func.replace(PageGroup.url, "/", ""))
    order = (depth, func.length(PageGroup.url), PageGroup.url, PageGroup.id)
    place = func.row_number().over(partition_by=(PageGroup.source_id, Document.language), order_by=order)
    ranked = (
        select(
            PageGroup.source_id,
            Document.language,
            PageGroup.latest_ok_id,
            PageGroup.url,
            depth.label("depth"),
            place.label("place"),
        )
        .join(Snapshot, Snapshot.id == PageGroup.latest_ok_id)
        .join(Document, Document.id == Snapshot.document_id)
        .where(Document.language.is_not(None), Snapshot.noise.is_(None), *visible())
        .subquery()
    )
    found: dict[tuple[int, str], list[tuple[int, int, str, int]]] = defaultdict(list)
    for source_id, language, snapshot_id, url, slashes, _ in session.execute(
        select(ranked).where(ranked.c.place <= _REPRESENTATIVES)
    ):
        found[source_id, language.partition("-")[0].lower()].append((slashes, len(url), url, snapshot_id))
    by_source: dict[int, dict[str, tuple[int, ...]]] = defaultdict(dict)
    for (source_id, language), pages in found.items():
        by_source[source_id][language] = tuple(snapshot_id for *_, snapshot_id in sorted(pages)[:_REPRESENTATIVES])
    return by_source


def representative_captures(
    session: Session, source_id: int, base_url: str | None, languages: Mapping[str, tuple[int, ...]]
) -> RepresentativeCaptures:
    """Return a few of the newest captures of a source and of its first page."""
    newest = session.scalars(
        # Not the latest, which may be an error or a block page, where there is a good one.
        select(func.coalesce(PageGroup.latest_ok_id, PageGroup.latest_id))
        .where(PageGroup.source_id == source_id)
        .order_by(PageGroup.last_captured_at.desc(), PageGroup.id.desc())
        .limit(_REPRESENTATIVES)
    )
    entry = (
        session.scalars(
            newest_good(select(Snapshot.id)).where(Snapshot.url_key == surt(base_url)).limit(_REPRESENTATIVES)
        )
        if base_url
        else ()
    )
    return RepresentativeCaptures(tuple(newest), tuple(entry), dict(languages))


def newest_good(captures: Select[T]) -> Select[T]:
    """Limit a query of captures to visible ones that show their page, newest first."""
    good = captures.where(is_ok(), Snapshot.noise.is_(None), *visible())
    return good.order_by(Snapshot.captured_at.desc(), Snapshot.id.desc())


def showing(session: Session, ids: Iterable[int]) -> dict[int, Snapshot]:
    """Return those of these captures, by id, that have since been neither taken down nor classified as noise."""
    return {number: row for number, row in visible_snapshots(session, ids).items() if row.noise is None}


class CrawlTotals(NamedTuple):
    counts: Sequence[dict[str, Any]]
    open: int
    succeeded: int
    failed: int
    leased: int
    domains: int
    links: int
    workers: Sequence[Owner]
    top: Sequence[tuple[str, int]]


def crawl_totals(session: Session, clock: Clock) -> CrawlTotals:
    """Return the totals of crawls of sources that the viewer may see.

    Reads a few rows per crawl and domain.
    """
    seen = visible_run(Queue.execution_id)
    queues = session.execute(
        select(
            func.coalesce(func.sum(Queue.open), 0),
            func.coalesce(func.sum(Queue.succeeded), 0),
            func.coalesce(func.sum(Queue.failed), 0),
        ).where(seen)
    ).one()
    kept = func.sum(Queue.succeeded)
    top = session.execute(
        select(Domain.name, kept)
        .join(Queue, Queue.domain_id == Domain.id)
        .where(seen)
        .group_by(Domain.id)
        .order_by(kept.desc(), Domain.id)
        .limit(10)
    )
    # Domains and pages belong to no source: where something is hidden, those count that a shown crawl has queued.
    shown = [_of_domain(Domain.id)] if hidden_sources(session) else []
    return CrawlTotals(
        counts=list(session.scalars(select(ExecutionCount.counts).where(visible_run(ExecutionCount.execution_id)))),
        open=int(queues[0]),
        succeeded=int(queues[1]),
        failed=int(queues[2]),
        leased=session.scalar(select(func.count()).where(Domain.lease_owner.is_not(None), *shown)) or 0,
        domains=session.scalar(select(func.count()).select_from(Domain).where(*shown)) or 0,
        links=_links(session, is_some_hidden=bool(shown)),
        workers=active_workers(session, clock),
        top=[(name, int(count)) for name, count in top],
    )


def _links(session: Session, *, is_some_hidden: bool) -> int:
    if not is_some_hidden:
        # Ids are never used again: the highest is how many there were, without counting them.
        return session.scalar(select(func.max(Page.id))) or 0
    # Counted, although it reads an index from end to end: the ids of all crawls come from one row of numbers.
    met = select(func.count(PageCrawl.page_id.distinct())).where(visible_run(PageCrawl.execution_id))
    return session.scalar(met) or 0


def _of_domain(domain_id: Any) -> ColumnElement[bool]:
    queued = select(Queue.domain_id).where(visible_run(Queue.execution_id))
    return domain_id.in_(queued)  # type: ignore[no-any-return]


def failures_of(counts: dict[str, Any]) -> int:
    """Return the number of failed URLs in a process's running totals, without those that a rule excluded."""
    return sum(counts.get("outcomes", {}).get(word, 0) for word in FAILURES)


RecentCapture = Row[int, str, int | None, datetime, str | None]


def newest_pages(session: Session, *, limit: int) -> list[RecentCapture]:
    """Return id, url, status, captured_at and title of the latest good capture of the newest pages, newest first.

    Captures that are hidden or noise are left out.
    """
    newest = (
        select(PageGroup.latest_id, PageGroup.latest_ok_id)
        .where(visible_source(PageGroup.source_id))
        .order_by(PageGroup.last_captured_at.desc(), PageGroup.id.desc())
    )
    # A few more than asked for: some may have been withdrawn.
    groups = session.execute(newest.limit(limit + 20)).all()
    ids = {one for group in groups for one in group if one is not None}
    rows = session.execute(
        select(Snapshot.id, Snapshot.url, Snapshot.status, Snapshot.captured_at, Document.title)
        .outerjoin(Document, Document.id == Snapshot.document_id)
        .where(Snapshot.id.in_(ids), Snapshot.noise.is_(None), *visible())
        .order_by(Snapshot.captured_at.desc(), Snapshot.id.desc())
    )
    found = {row.id: row for row in rows}
    # Where the latest shows something else, a block page perhaps, the newest good one stands for the page.
    chosen = {latest if latest in found else good for latest, good in groups}
    return [one for number, one in found.items() if number in chosen][:limit]


def latest_of_page(session: Session, url_hash: int, *, html: bool) -> Snapshot | None:
    """Return the newest visible non-noise capture of a page; only HTML if `html` is true."""
    wanted = newest_good(select(Snapshot)).where(Snapshot.url_hash == url_hash)
    if html:
        wanted = wanted.where(Snapshot.media_type.in_(("text/html", "application/xhtml+xml")))
    return session.scalars(wanted.limit(1)).one_or_none()


def sources_by_id(session: Session, ids: Iterable[int]) -> dict[int, Source]:
    return {row.id: row for row in session.scalars(select(Source).where(Source.id.in_(sorted(set(ids)))))}


def active_workers(session: Session, clock: Clock) -> list[Owner]:
    """Return the workers with a recent heartbeat, oldest first; a killed worker never reports its end."""
    fresh = moment_in(session, server_clock(clock)) - GONE
    return list(
        session.scalars(
            select(Owner)
            .where(Owner.ended_at.is_(None), Owner.kind.in_(WORKER_KINDS), Owner.heartbeat_at >= fresh)
            .order_by(Owner.id)
        )
    )


def origin_of(session: Session, snapshot: Snapshot) -> tuple[WarcFile, Execution, Job]:
    file, execution, job = session.execute(
        select(WarcFile, Execution, Job)
        .select_from(WarcFile)
        .join(Execution, Execution.id == snapshot.execution_id)
        .join(Job, Job.id == Execution.job_id)
        .where(WarcFile.id == snapshot.warc_file_id)
    ).one()
    return file, execution, job


# By one prepared statement: an ORM session would cost eight times as much as the whole rest of the request.
SNAPSHOT_DETAIL = PreparedSelect(
    select(
        for_members(),
        Source.code.label("source_code"),
        Source.name.label("source_name"),
        *(getattr(Snapshot, name) for name in ("execution_id", "url", "captured_at", "backend", "fidelity")),
        *(getattr(Snapshot, name) for name in ("media_type", "status", "noise")),
        *(getattr(Document, name) for name in ("title", "language", "snippet", "author", "published_at")),
        *(getattr(Document, name) for name in ("modified_at", "keywords", "word_count", "page_type")),
        NoiseVerdict.evidence.label("noise_evidence"),
    )
    .join(Source, Source.id == Snapshot.source_id)
    .outerjoin(Document, Document.id == Snapshot.document_id)
    .outerjoin(NoiseVerdict, NoiseVerdict.snapshot_id == Snapshot.id)
    .where(Snapshot.id == bindparam("snapshot_id", type_=BigInteger, required=True), *visible())
)
"""One capture with all fields of its response; times are in microseconds."""


_DAY_MICROS = 86_400_000_000
_FIRST_DAY = date(1970, 1, 1)


def open_owners(session: Session, *, limit: int = 1000) -> list[Owner]:
    """Return the processes of all machines whose rows are open, by id."""
    return list(session.scalars(select(Owner).where(Owner.ended_at.is_(None)).order_by(Owner.id).limit(limit)))


def executions_at_work(session: Session, ids: Collection[int]) -> dict[int, ActiveExecution]:
    rows = session.execute(
        select(Execution.id, Execution.job_id, Source.code, Execution.state)
        .join(Job, Job.id == Execution.job_id)
        .join(Source, Source.id == Job.source_id)
        .where(Execution.id.in_(sorted(ids)))
    )
    return {row.id: from_row(ActiveExecution, row, source=row.code) for row in rows}


def held_executions(session: Session) -> dict[str, list[int]]:
    """Return the executions that workers hold, by the worker's name."""
    rows = session.execute(
        select(Job.lock_owner, Execution.id)
        .join(Execution, Execution.job_id == Job.id)
        .where(Job.lock_token.is_not(None), Job.lock_owner.is_not(None), Execution.state == "running")
        .order_by(Execution.id)
    )
    found: dict[str, list[int]] = {}
    for owner, execution_id in rows:
        found.setdefault(str(owner), []).append(execution_id)
    return found


def addresses_of(session: Session, attempt_ids: Collection[int]) -> dict[int, str]:
    rows = session.execute(
        select(PageCrawl.id, Page.url)
        .join(Page, Page.id == PageCrawl.page_id)
        .where(PageCrawl.id.in_(sorted(attempt_ids)))
    )
    return {row[0]: row[1] for row in rows}


def domains_held(session: Session, owner_id: int, *, limit: int) -> list[str]:
    held = select(Domain.name).where(Domain.lease_owner == owner_id).order_by(Domain.name).limit(limit)
    return list(session.scalars(held))


def files_by_index_state(session: Session) -> dict[str, int]:
    rows = session.execute(
        select(WarcFile.index_state, func.count())
        .where(WarcFile.state == "sealed")
        .group_by(WarcFile.index_state)
        .order_by(WarcFile.index_state)
    )
    return {row[0]: row[1] for row in rows}


def broken_files(session: Session, *, after: int, limit: int) -> list[BrokenFile]:
    """Return files whose indexing was given up, by id."""
    rows = session.execute(
        select(WarcFile.id, WarcFile.path, Source.code, WarcFile.execution_id, IndexRun.error)
        .join(Execution, Execution.id == WarcFile.execution_id)
        .join(Job, Job.id == Execution.job_id)
        .join(Source, Source.id == Job.source_id)
        .outerjoin(IndexRun, IndexRun.warc_file_id == WarcFile.id)
        .where(WarcFile.state == "sealed", WarcFile.index_state == "failed", WarcFile.id > after)
        .order_by(WarcFile.id)
        .limit(limit)
    )
    return [from_row(BrokenFile, row, file=row.id, name=row.path.rpartition("/")[2], source=row.code) for row in rows]


def kept_by_source(session: Session) -> list[SourceBytes]:
    """Return files and bytes of sealed WARC files by source, the largest first."""
    size = func.coalesce(func.sum(WarcFile.size), 0)
    rows = session.execute(
        select(Source.code, func.count(), size)
        .select_from(WarcFile)
        .join(Execution, Execution.id == WarcFile.execution_id)
        .join(Job, Job.id == Execution.job_id)
        .join(Source, Source.id == Job.source_id)
        .where(WarcFile.state == "sealed")
        .group_by(Source.code)
        .order_by(size.desc(), Source.code)
    )
    return [SourceBytes(source=code, files=files, bytes=int(total or 0)) for code, files, total in rows]


def sealed_by_day(session: Session) -> list[DayBytes]:
    """Return files and bytes of sealed WARC files by the day on which they were sealed, oldest first."""
    # Moments are whole microseconds since 1970 in both databases: a division finds the day.
    day = type_coerce(WarcFile.sealed_at, BigInteger) // _DAY_MICROS
    rows = session.execute(
        select(day, func.count(), func.coalesce(func.sum(WarcFile.size), 0))
        .where(WarcFile.state == "sealed", WarcFile.sealed_at.is_not(None))
        .group_by(day)
        .order_by(day)
    )
    return [
        DayBytes(day=_FIRST_DAY + timedelta(days=int(on)), files=files, bytes=int(total or 0))
        for on, files, total in rows
        if on
    ]
