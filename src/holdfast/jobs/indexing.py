"""How an execution's index state changes; it is written nowhere else.

    (nothing) ──→ pending ──→ indexing ──→ indexed
                     ↑           ├───────→ index_failed
                     └───────────┴── read again (retry, reconcile)

An execution that is `indexing` belongs to no worker: its files are leased one by one, and any worker may go on with it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple

from sqlalchemy import and_, bindparam, func, or_, select
from sqlalchemy.orm import Session

from holdfast.clock import Clock
from holdfast.db.engine import Database
from holdfast.db.models import Document, Execution, Job, Snapshot, Source, WarcFile
from holdfast.errors import Conflict
from holdfast.jobs.backends import backend_of
from holdfast.jobs.endings import MAX_ERROR_CHARS
from holdfast.jobs.journal import emit, progress, status
from holdfast.jobs.schedule_queries import is_ours
from holdfast.outside_text import clean
from holdfast.warc.record import snapshot_id

_OVER = ("completed", "failed", "cancelled")
_WAITS = and_(Execution.index_state.in_(("pending", "indexing")), Execution.state.in_(_OVER))
_NEVER_ASKED = and_(Execution.state == "completed", Execution.index_state.is_(None))


class ToIndex(NamedTuple):
    """An execution that is over and not yet indexed."""

    execution_id: int
    job_id: int
    source: str
    output_dir: str
    backend: str
    directory: str | None
    """The id of the data directory that its files lie in, if that is known."""


class IndexStateChange(NamedTuple):
    """What a step changed."""

    job_id: int
    job_state: str | None
    before: str | None
    items_crawled: int


class Quality(NamedTuple):
    """What was found in an execution's files: pages, and how many of them say nothing."""

    items_indexed: int
    empty_title_count: int
    empty_body_count: int


def next_to_index(session: Session, directory: str, *, now: datetime, after: int = 0) -> ToIndex | None:
    """Return the first execution after this one that has ended and waits for the index in this data directory."""
    row = session.execute(
        select(
            Execution.id,
            Execution.job_id,
            Source.code,
            Execution.output_dir,
            Job.kind,
            Execution.config,
            Job.config,
            Source.config,
            Execution.directory,
        )
        .join(Job, Job.id == Execution.job_id)
        .join(Source, Source.id == Job.source_id)
        .where(_WAITS, Execution.id > after, is_ours(directory, now))
        .order_by(Execution.id)
        .limit(1)
    ).one_or_none()
    if row is None:
        return None
    return ToIndex(row[0], row[1], row[2], row[3], backend_of(*row[4:8]), row[8])


def set_state(
    session: Session, *, execution_id: int, state: str, allowed: Sequence[str | None]
) -> IndexStateChange | None:
    """Write the index state of an execution that is over, if it is one of these now; None changes nothing."""
    row = session.execute(
        select(Execution, Job.state)
        .join(Job, Job.id == Execution.job_id)
        .where(Execution.id == execution_id, Execution.state.in_(_OVER))
        # Of two workers that conclude the same execution, the second finds it concluded.
        .with_for_update(of=Execution)
        .execution_options(populate_existing=True)
    ).one_or_none()
    if row is None or row[0].index_state not in allowed:
        return None
    execution: Execution = row[0]
    before, execution.index_state = execution.index_state, state
    session.flush()
    return IndexStateChange(execution.job_id, row[1], before, execution.items_crawled)


def quality(session: Session, *, execution_id: int) -> Quality:
    """Return how many pages the snapshots of an execution are, and how many have no title or no text."""
    empty = func.coalesce(func.trim(Document.title), "") == ""
    of_file = (
        select(
            func.count(Snapshot.id),
            func.count(Snapshot.id).filter(empty, Document.id.is_not(None)),
            func.count(Snapshot.id).filter(Document.text_chars == 0),
        )
        .outerjoin(Document, Document.id == Snapshot.document_id)
        .where(Snapshot.id.between(bindparam("first"), bindparam("last")), Snapshot.is_page)
    )
    # File by file, by the range of its captures' ids: a run of millions of captures takes longer than one statement
    # may, and no index knows their files.
    numbers = session.scalars(select(WarcFile.id).where(WarcFile.execution_id == execution_id))
    counted = [
        session.execute(of_file, {"first": snapshot_id(number, 0), "last": snapshot_id(number + 1, 0) - 1}).one()
        for number in numbers.all()
    ]
    return Quality(*(sum(int(row[place]) for row in counted) for place in range(3)))


def note_findings(session: Session, *, execution_id: int, found: Quality, error: str | None) -> None:
    """Keep what was found: the count in its column, the rest with the metrics of the crawl; and what went wrong.

    A crawl that failed or was cancelled keeps its own error.
    """
    execution = session.get_one(Execution, execution_id, populate_existing=True)
    # One with a stage has something to say of its own end (a ZIM that was not built), which a good index does not undo.
    if execution.state == "completed" and (error is not None or execution.stage is None):
        execution.error = clean(error, MAX_ERROR_CHARS)
    execution.items_indexed = found.items_indexed
    execution.metrics = {**execution.metrics, "extraction_quality": found._asdict()}


class Unindexed(NamedTuple):
    """An execution that is over and waits to be indexed, or is completed and was never asked to be."""

    execution_id: int
    source: str
    kind: str
    files: int
    output_dir: str
    index_state: str | None


def unindexed(session: Session, *, after: int, limit: int) -> list[Unindexed]:
    """Return executions after this one that wait or were never asked for, with the number of their sealed files."""
    files = (
        select(func.count())
        .where(WarcFile.execution_id == Execution.id, WarcFile.state == "sealed")
        .correlate(Execution)
        .scalar_subquery()
    )
    rows = session.execute(
        select(Execution.id, Source.code, Job.kind, files, Execution.output_dir, Execution.index_state)
        .join(Job, Job.id == Execution.job_id)
        .join(Source, Source.id == Job.source_id)
        .where(or_(_WAITS, and_(_NEVER_ASKED, Job.kind != "import")), Execution.id > after)
        .order_by(Execution.id)
        .limit(limit)
    )
    return [Unindexed(*row) for row in rows]


def index_state(session: Session, *, execution_id: int) -> str | None:
    """Return how far the index of an execution is, None if nothing was ever asked of it."""
    return session.scalar(select(Execution.index_state).where(Execution.id == execution_id))


def over_with_files(session: Session, file_ids: Sequence[int]) -> list[int]:
    """Return the executions of these files that are over, by id."""
    query = (
        select(Execution.id)
        .join(WarcFile, WarcFile.execution_id == Execution.id)
        .where(WarcFile.id.in_(file_ids), Execution.state.in_(_OVER))
    )
    return list(session.scalars(query.distinct().order_by(Execution.id)))


def open_files(session: Session, *, execution_id: int) -> list[int]:
    """Return the files of an execution that are not sealed yet."""
    query = select(WarcFile.id).where(WarcFile.execution_id == execution_id, WarcFile.state == "open")
    return list(session.scalars(query.order_by(WarcFile.id)))


class FileStates(NamedTuple):
    """The sealed files of an execution that are not indexed: their paths by id."""

    waiting: dict[int, str]
    failed: dict[int, str]
    total: int


def file_states(session: Session, *, execution_id: int) -> FileStates:
    """Return the sealed files of an execution that wait to be read or could not be."""
    rows = session.execute(
        select(WarcFile.id, WarcFile.path, WarcFile.index_state)
        .where(WarcFile.execution_id == execution_id, WarcFile.state == "sealed")
        .order_by(WarcFile.id)
    ).all()
    waiting = {row[0]: row[1] for row in rows if row[2] in ("pending", "running")}
    return FileStates(waiting, {row[0]: row[1] for row in rows if row[2] == "failed"}, len(rows))


_PAGE = 1000


class IndexState(StrEnum):
    """How the index stands to an execution."""

    PENDING = "pending"
    INDEXING = "indexing"
    INDEXED = "indexed"
    FAILED = "index_failed"


_FROM: dict[IndexState, tuple[str | None, ...]] = {
    IndexState.PENDING: (None, IndexState.FAILED, IndexState.INDEXED),
    IndexState.INDEXING: (IndexState.PENDING, IndexState.INDEXING),
    IndexState.INDEXED: (IndexState.INDEXING,),
    IndexState.FAILED: (IndexState.INDEXING,),
}


class NotIndexable(Conflict):
    """An execution's index state does not allow this; nothing was changed."""

    code = "not_indexable"

    def __init__(self, execution_id: int, target: IndexState) -> None:
        super().__init__(f"execution {execution_id} cannot become {target} now; see it with: holdfast status")


def find_unindexed(database: Database, has_files: Callable[[str], bool], *, limit: int) -> list[Unindexed]:
    """Return executions that wait to be indexed, and completed ones with files that were never asked to be.

    Oldest first.

    Files count that are registered, and those that `has_files` sees in the directory. Read a page at a time: there may
    be any number of executions without files in between.
    """
    found: list[Unindexed] = []
    after = 0
    while len(found) < limit:
        with database.read() as session:
            page = unindexed(session, after=after, limit=_PAGE)
        found += [one for one in page if one.index_state or one.files or has_files(one.output_dir)]
        if len(page) < _PAGE:
            break
        after = page[-1].execution_id
    return found[:limit]


def ask_again(session: Session, execution_id: int, *, now: datetime) -> None:
    """Have an execution's files read, for the first time or again; NotIndexable if it is open or waits already."""
    _step(session, execution_id, IndexState.PENDING, now=now)


def take_up(session: Session, execution_id: int, *, now: datetime) -> bool:
    """Say that the files of an execution are being read; return whether this is the first since it was asked for.

    NotIndexable if another worker has finished them meanwhile.
    """
    return _step(session, execution_id, IndexState.INDEXING, now=now) == IndexState.PENDING


def begin(session: Session, execution_id: int, *, now: datetime) -> None:
    """Say that the files of an execution that is over are being read, whether that was asked for, begun or done before.

    NotIndexable if it is not over.
    """
    if index_state(session, execution_id=execution_id) not in (IndexState.PENDING, IndexState.INDEXING):
        ask_again(session, execution_id, now=now)
    take_up(session, execution_id, now=now)


def close_account(
    database: Database,
    clock: Clock,
    execution_id: int,
    *,
    errors: Iterable[str] = (),
    lost: Collection[int] = (),
    folder: str | None = None,
) -> bool:
    """Conclude an execution whose files have all been read; False while one waits, is being read, or is not sealed.

    Files that could not be read make it fail, as do `errors` of the caller and a folder without any file. It does not
    wait for `lost` files: those that no process will seal, and those that another machine has.
    """
    with database.read() as session:
        states = file_states(session, execution_id=execution_id)
        # A file that is being sealed at this moment would be missing from the counts.
        if {*states.waiting, *open_files(session, execution_id=execution_id)}.difference(lost):
            return False
        pages = quality(session, execution_id=execution_id)
    notes = list(errors)
    if names := list(states.failed.values()):
        notes.append(f"could not be read: {', '.join(Path(path).name for path in names[:5])}")
    if not states.total and not notes:
        notes.append(f"there is no WARC file in {folder}" if folder else "there is no WARC file")
    # Another process may have concluded it meanwhile.
    with suppress(NotIndexable), database.write() as session:
        conclude(session, execution_id, pages, error="; ".join(notes) or None, now=clock.now())
    return True


def close_accounts(database: Database, clock: Clock, file_ids: Sequence[int]) -> list[int]:
    """Conclude the executions of files that were just read, as far as nothing else of them waits; return which."""
    with database.read() as session:
        found = over_with_files(session, file_ids)
    return [execution_id for execution_id in found if close_if_read(database, clock, execution_id)]


def close_if_read(database: Database, clock: Clock, execution_id: int) -> bool:
    """Conclude one execution if it is over and nothing of it waits; False if not, or if another process has it."""
    with database.read() as session:
        if file_states(session, execution_id=execution_id).waiting:
            return False
    try:
        with database.write() as session:
            begin(session, execution_id, now=clock.now())
        return close_account(database, clock, execution_id)
    except NotIndexable:
        # Another process has it, or a retry has opened it again.
        return False


def conclude(session: Session, execution_id: int, found: Quality, *, error: str | None, now: datetime) -> None:
    """Say that an execution's files were read, with what was found in them (counted before anything is locked).

    Or why that did not work: for a crawl that was completed, that is its error from then on. NotIndexable if another
    worker has said so meanwhile.
    """
    note_findings(session, execution_id=execution_id, found=found, error=error)
    target = IndexState.INDEXED if error is None else IndexState.FAILED
    _step(session, execution_id, target, now=now, items=found.items_indexed, **({"error": error} if error else {}))


def _step(
    session: Session, execution_id: int, target: IndexState, *, now: datetime, items: int | None = None, **details: Any
) -> str | None:
    moved = set_state(session, execution_id=execution_id, state=target.value, allowed=_FROM[target])
    if moved is None:
        raise NotIndexable(execution_id, target)
    # Ad-hoc crawls and imports have no events: their execution tells all there is to tell.
    if moved.before == target or moved.job_state is None:
        return moved.before
    notes = [status(moved.job_id, moved.job_state, execution_id=execution_id, index_state=target.value, **details)]
    if items is not None:
        notes.append(progress(moved.job_id, execution_id, items_found=moved.items_crawled, items_indexed=items))
    emit(session, notes, now=now)
    return moved.before
