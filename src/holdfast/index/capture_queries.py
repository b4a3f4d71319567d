"""Reads of captures: totals and representative captures of sources, a job's captures, crawls of a source.

Captures under a takedown are excluded.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple, TypeVar

from sqlalchemy import BigInteger, Row, Select, bindparam, case, cast, func, literal, select
from sqlalchemy.orm import Session, aliased

from holdfast.db.models import (
    Document,
    Execution,
    ExecutionCount,
    IndexRun,
    Job,
    NoiseVerdict,
    PageGroup,
    Snapshot,
    Source,
    WarcFile,
)
from holdfast.db.prepared import PreparedSelect
from holdfast.index.queries import holding_of, is_ok
from holdfast.jobs.admin_records import IndexProgress
from holdfast.urls import surt
from holdfast.warc.record import ORDINALS
from holdfast.withdrawals.hidden_captures import hidden_groups
from holdfast.withdrawals.visibility import (
    LAST_WITHDRAWALS,
    for_members,
    hidden_sources,
    visible,
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

# Build one statement for all, once: building it costs more than running it.
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
    # Groups also count captures under a takedown: count groups that have any by their captures.
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
    # Count the remaining captures of groups with takedowns.
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
    # Order by the number of slashes: the first page of a site has the fewest.
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
        # Prefer a good capture to the latest, which may be an error or a block page.
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
    # Read a few more than requested: some may have been withdrawn.
    groups = session.execute(newest.limit(limit + 20)).all()
    ids = {one for group in groups for one in group if one is not None}
    rows = session.execute(
        select(Snapshot.id, Snapshot.url, Snapshot.status, Snapshot.captured_at, Document.title)
        .outerjoin(Document, Document.id == Snapshot.document_id)
        .where(Snapshot.id.in_(ids), Snapshot.noise.is_(None), *visible())
        .order_by(Snapshot.captured_at.desc(), Snapshot.id.desc())
    )
    found = {row.id: row for row in rows}
    # If the latest capture shows something else, such as a block page, the newest good one represents the page.
    chosen = {latest if latest in found else good for latest, good in groups}
    return [one for number, one in found.items() if number in chosen][:limit]


def latest_of_page(session: Session, url_hash: int, *, html: bool) -> Snapshot | None:
    """Return the newest visible non-noise capture of a page; only HTML if `html` is true."""
    wanted = newest_good(select(Snapshot)).where(Snapshot.url_hash == url_hash)
    if html:
        wanted = wanted.where(Snapshot.media_type.in_(("text/html", "application/xhtml+xml")))
    return session.scalars(wanted.limit(1)).one_or_none()


def origin_of(session: Session, snapshot: Snapshot) -> tuple[WarcFile, Execution, Job]:
    file, execution, job = session.execute(
        select(WarcFile, Execution, Job)
        .select_from(WarcFile)
        .join(Execution, Execution.id == snapshot.execution_id)
        .join(Job, Job.id == Execution.job_id)
        .where(WarcFile.id == snapshot.warc_file_id)
    ).one()
    return file, execution, job


# Use one prepared statement: an ORM session would cost eight times as much as the rest of the request.
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


_FILES_AT_ONCE = 200

MAX_FILES = 20_000
"""Maximum number of files skipped in one query."""

Captured = Row[int, str, datetime, int | None, str | None, str | None]


def captured_by(session: Session, *, job_id: int, limit: int, offset: int) -> list[Captured]:
    """Return id, url, captured_at, status, language and title of a job's page captures, newest run first.

    Within a run they are in the order of its files.
    """
    # Both orders have an index: the query takes one seek per run, and reads only the skipped rows.
    rows = session.execute(
        select(Snapshot.id, Snapshot.url, Snapshot.captured_at, Snapshot.status, Document.language, Document.title)
        .select_from(Execution)
        .join(Snapshot, Snapshot.execution_id == Execution.id)
        .outerjoin(Document, Document.id == Snapshot.document_id)
        .where(Execution.job_id == job_id, Snapshot.is_page, *visible())
        .order_by(Execution.number.desc(), Snapshot.id)
        .limit(limit)
        .offset(offset)
    )
    return list(rows)


def newest_crawls(session: Session, *, source_id: int, limit: int) -> list[int]:
    """Return the executions with the newest indexed files, newest first."""
    # A snapshot's id starts with its file's, and an index has them by source: this takes one seek per file, however
    # many captures it has.
    found: dict[int, None] = {}
    top: int | None = None
    for _ in range(MAX_FILES // _FILES_AT_ONCE):
        files = _files_below(session, source_id, top)
        rows = session.execute(select(WarcFile.id, WarcFile.execution_id).where(WarcFile.id.in_(files)))
        owners = {row[0]: row[1] for row in rows}
        for file in files:
            # The dict keeps the order of executions by their newest file.
            found.setdefault(owners[file])
            if len(found) == limit:
                return list(found)
        if len(files) < _FILES_AT_ONCE:
            break
        top = files[-1]
    return list(found)


def _files_below(session: Session, source_id: int, top: int | None) -> list[int]:
    """Return ids of files below `top` that hold captures of a source, newest first, at most one batch."""
    newest = select(func.max(Snapshot.id)).where(Snapshot.source_id == source_id)
    walk = select(
        (newest if top is None else newest.where(Snapshot.id < top * ORDINALS)).scalar_subquery().label("newest"),
        literal(1).label("place"),
    ).cte("walk", recursive=True)
    before = aliased(Snapshot)
    # A snapshot's id starts with its file's: smaller ids belong to the previous file.
    lower = walk.c.newest - walk.c.newest % ORDINALS
    following = select(func.max(before.id)).where(before.source_id == source_id, before.id < lower).scalar_subquery()
    walk = walk.union_all(
        select(following, walk.c.place + 1).where(walk.c.newest.is_not(None), walk.c.place < _FILES_AT_ONCE)
    )
    rows = session.scalars(select(walk.c.newest).where(walk.c.newest.is_not(None)).order_by(walk.c.place))
    return [row // ORDINALS for row in rows]


CrawlSummary = Row[int, int, int, datetime | None, datetime | None]


def crawls(session: Session, execution_ids: Sequence[int]) -> list[CrawlSummary]:
    """Return execution_id, records, pages, first and last of these executions, as indexing recorded them.

    `first` is when its first capture began; None if one of its files has no recorded time. Executions without indexed
    files are missing.
    """
    # Files of older versions have no recorded times: the dates of a crawl with such a file are unknown.
    noted = func.count(WarcFile.last_at) == func.count()
    rows = session.execute(
        select(
            WarcFile.execution_id,
            cast(func.sum(IndexRun.records), BigInteger).label("records"),
            cast(func.sum(IndexRun.pages), BigInteger).label("pages"),
            case((noted, func.min(WarcFile.first_at))).label("first"),
            case((noted, func.max(WarcFile.last_at))).label("last"),
        )
        .join(IndexRun, IndexRun.warc_file_id == WarcFile.id)
        .where(WarcFile.execution_id.in_(execution_ids), WarcFile.index_state == "indexed", IndexRun.records > 0)
        .group_by(WarcFile.execution_id)
        .order_by(WarcFile.execution_id.desc())
    )
    return list(rows)


def index_progress(session: Session, execution_id: int) -> IndexProgress | None:
    """Return how many of an execution's sealed files are indexed; None if indexing has not started."""
    columns = (WarcFile.key, WarcFile.size, WarcFile.index_state, IndexRun.phase, IndexRun.records)
    files = session.execute(
        select(*columns, IndexRun.bytes_done, IndexRun.started_at, IndexRun.progress_at)
        .outerjoin(IndexRun, IndexRun.warc_file_id == WarcFile.id)
        .where(WarcFile.execution_id == execution_id, WarcFile.state == "sealed")
    ).all()
    runs = [one for one in files if one.phase is not None]
    if not runs:
        return None
    latest = max(runs, key=lambda one: one.progress_at)
    done = sum(one.index_state == "indexed" for one in files)
    return IndexProgress(
        phase="done" if done == len(files) else latest.phase,
        warc_index=min(done + 1, len(files)),
        warc_total=len(files),
        current_warc=None if done == len(files) else latest.key.rpartition("/")[2],
        records_processed=sum(one.records for one in runs),
        bytes_processed=sum(one.bytes_done for one in runs),
        bytes_total=sum(one.size or 0 for one in files),
        started_at=min(one.started_at for one in runs),
        last_progress_at=latest.progress_at,
    )


def entry_of_crawl(session: Session, base_url: str, execution_id: int) -> Snapshot | None:
    """Return the last good capture of a source's first page by this execution, if any."""
    within = holding_of(session, execution_id)
    if within is None:
        return None
    return session.scalars(
        newest_good(select(Snapshot)).where(Snapshot.url_key == surt(base_url), *within.clauses()).limit(1)
    ).one_or_none()


CaptureExtent = tuple[int, datetime, datetime]
"""The number of page captures, and the time of the first and the last."""


def extent_of_execution(session: Session, execution_id: int) -> CaptureExtent | None:
    """Return the number and time range of an execution's captures; None if none may be shown."""
    # This reads all its captures: a route calls it only if its files' recorded counts are small.
    count, first, last = session.execute(
        select(func.count(), func.min(Snapshot.captured_at), func.max(Snapshot.captured_at)).where(
            Snapshot.execution_id == execution_id, Snapshot.is_page, *visible()
        )
    ).one()
    return None if first is None else (count, first, last)


def ends_of_execution(session: Session, execution_id: int) -> list[datetime]:
    """Return when the first and last pages of an execution were captured, in file order; costs two seeks."""
    pages = select(Snapshot.captured_at).where(Snapshot.execution_id == execution_id, Snapshot.is_page, *visible())
    found = (session.scalar(pages.order_by(order).limit(1)) for order in (Snapshot.id, Snapshot.id.desc()))
    return [moment for moment in found if moment is not None]
