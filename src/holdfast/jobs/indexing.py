"""The index state of executions; only this module changes it.

    (nothing) ──→ pending ──→ indexing ──→ indexed
                     ↑           ├───────→ index_failed
                     └───────────┴── read again (retry, reconcile)

An `indexing` execution belongs to no worker: its files are leased one by one, and any worker may continue.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple

from sqlalchemy import and_, bindparam, func, or_, select
from sqlalchemy.orm import Session

from holdfast.clock import Clock
from holdfast.db.engine import Database
from holdfast.db.models import Document, Execution, Job, Snapshot, Source, WarcFile
from holdfast.errors import Conflict
from holdfast.jobs.endings import MAX_ERROR_CHARS
from holdfast.jobs.journal import emit, progress, status
from holdfast.jobs.schedule_queries import is_ours
from holdfast.jobs.store import OVER, backend_of
from holdfast.outside_text import clean
from holdfast.records import Operator, from_row, record
from holdfast.storage.store import FileKey
from holdfast.warc.record import snapshot_id

_WAITS = and_(Execution.index_state.in_(("pending", "indexing")), Execution.state.in_(OVER))
_NEVER_ASKED = and_(Execution.state == "completed", Execution.index_state.is_(None))


class ToIndex(NamedTuple):
    execution_id: int
    source: str
    output_dir: str
    directory: str | None
    """The id of the data directory with its files, if known."""
    backend: str


def next_to_index(session: Session, directory: str, *, now: datetime, after: int = 0) -> ToIndex | None:
    """Return the next execution after `after` that has ended and is pending for indexing in this data directory."""
    columns = Execution.id, Source.code, Execution.output_dir, Execution.directory
    row = session.execute(
        select(*columns, Job.kind, Execution.config, Job.config, Source.config)
        .join(Job, Job.id == Execution.job_id)
        .join(Source, Source.id == Job.source_id)
        .where(_WAITS, Execution.id > after, is_ours(directory, now))
        .order_by(Execution.id)
        .limit(1)
    ).one_or_none()
    return None if row is None else ToIndex._make((*row[:4], backend_of(*row[4:])))


def quality(session: Session, *, execution_id: int) -> dict[str, int]:
    """Count the indexed pages of an execution, and those without a title or text."""
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
    # Count file by file, by the range of its capture ids: one statement for millions of captures takes too long, and no
    # index has their files.
    numbers = session.scalars(select(WarcFile.id).where(WarcFile.execution_id == execution_id))
    counted = [
        session.execute(of_file, {"first": snapshot_id(number, 0), "last": snapshot_id(number + 1, 0) - 1}).one()
        for number in numbers.all()
    ]
    names = ("items_indexed", "empty_title_count", "empty_body_count")
    return {name: sum(int(row[place]) for row in counted) for place, name in enumerate(names)}


@record
class Unindexed:
    """An execution that has ended and waits to be indexed, or completed and was never queued for indexing."""

    execution: Operator[int]
    source: Operator[str]
    kind: Operator[str]
    files: Operator[int]
    output_dir: str
    index_state: str | None


def unindexed(session: Session, *, after: int, limit: int) -> list[Unindexed]:
    """Return executions after `after` that are pending or were never queued, with their number of sealed files."""
    files = (
        select(func.count())
        .where(WarcFile.execution_id == Execution.id, WarcFile.state == "sealed")
        .correlate(Execution)
        .scalar_subquery()
    )
    rows = session.execute(
        select(
            *(Execution.id.label("execution"), Source.code.label("source"), Job.kind, files.label("files")),
            *(Execution.output_dir, Execution.index_state),
        )
        .join(Job, Job.id == Execution.job_id)
        .join(Source, Source.id == Job.source_id)
        .where(or_(_WAITS, and_(_NEVER_ASKED, Job.kind != "import")), Execution.id > after)
        .order_by(Execution.id)
        .limit(limit)
    )
    return [from_row(Unindexed, row) for row in rows]


def open_files(session: Session, *, execution_id: int) -> list[int]:
    query = select(WarcFile.id).where(WarcFile.execution_id == execution_id, WarcFile.state == "open")
    return list(session.scalars(query.order_by(WarcFile.id)))


def file_states(session: Session, *, execution_id: int) -> tuple[dict[int, FileKey], dict[int, FileKey], int]:
    """Return the keys by id of an execution's sealed files that wait or failed, and the number of sealed files."""
    rows = session.execute(
        select(WarcFile.id, WarcFile.key, WarcFile.location, WarcFile.index_state)
        .where(WarcFile.execution_id == execution_id, WarcFile.state == "sealed")
        .order_by(WarcFile.id)
    ).all()
    waiting = {row[0]: FileKey(row[1], row[2]) for row in rows if row[3] in ("pending", "running")}
    return waiting, {row[0]: FileKey(row[1], row[2]) for row in rows if row[3] == "failed"}, len(rows)


_PAGE = 1000


class IndexState(StrEnum):
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
    """The execution's index state does not allow this; nothing was changed."""

    code = "not_indexable"

    def __init__(self, execution_id: int, target: IndexState) -> None:
        super().__init__(f"execution {execution_id} cannot become {target} now; see it with: holdfast status")


def find_unindexed(database: Database, has_files: Callable[[str], bool], *, limit: int) -> list[Unindexed]:
    """Return executions that wait to be indexed, and completed ones with files that were never queued; oldest first.

    Registered files count, and files that `has_files` finds in the directory. Reads one page at a time, because
    there may be any number of executions without files in between.
    """
    found: list[Unindexed] = []
    after = 0
    while len(found) < limit:
        with database.read() as session:
            page = unindexed(session, after=after, limit=_PAGE)
        found += [one for one in page if one.index_state or one.files or has_files(one.output_dir)]
        if len(page) < _PAGE:
            break
        after = page[-1].execution
    return found[:limit]


def ask_again(session: Session, execution_id: int, *, now: datetime) -> None:
    """Queue an execution for indexing, for the first time or again; raise NotIndexable if it is open or pending."""
    _step(session, execution_id, IndexState.PENDING, now=now)


def take_up(session: Session, execution_id: int, *, now: datetime) -> bool:
    """Mark an execution as indexing; return whether this is the first time since it was queued.

    Raise NotIndexable if another worker has finished it meanwhile.
    """
    return _step(session, execution_id, IndexState.INDEXING, now=now) == IndexState.PENDING


def begin(session: Session, execution_id: int, *, now: datetime) -> None:
    """Mark an ended execution as indexing, whatever its index state is.

    Raise NotIndexable if it has not ended.
    """
    state = session.scalar(select(Execution.index_state).where(Execution.id == execution_id))
    if state not in (IndexState.PENDING, IndexState.INDEXING):
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
    """Conclude an execution whose files are all read; return False while one is pending, leased or unsealed.

    Unreadable files make it fail, as do the caller's `errors` and a folder without any file. It does not wait for
    `lost` files: those that no process will seal, and those on another machine.
    """
    with database.read() as session:
        waiting, failed, total = file_states(session, execution_id=execution_id)
        # The counts would miss a file that is being sealed now.
        if {*waiting, *open_files(session, execution_id=execution_id)}.difference(lost):
            return False
        pages = quality(session, execution_id=execution_id)
    notes = list(errors)
    if names := list(failed.values()):
        notes.append(f"could not be read: {', '.join(one.name for one in names[:5])}")
    if not total and not notes:
        notes.append(f"there is no WARC file in {folder}" if folder else "there is no WARC file")
    # Another process may have concluded the execution meanwhile.
    with suppress(NotIndexable), database.write() as session:
        conclude(session, execution_id, pages, error="; ".join(notes) or None, now=clock.now())
    return True


def close_accounts(database: Database, clock: Clock, file_ids: Sequence[int]) -> list[int]:
    """Conclude the executions of files that were just read, if nothing else of them is pending; return which."""
    query = select(Execution.id).join(WarcFile, WarcFile.execution_id == Execution.id).distinct()
    with database.read() as session:
        found = session.scalars(
            query.where(WarcFile.id.in_(file_ids), Execution.state.in_(OVER)).order_by(Execution.id)
        ).all()
    return [execution_id for execution_id in found if close_if_read(database, clock, execution_id)]


def close_if_read(database: Database, clock: Clock, execution_id: int) -> bool:
    """Conclude one ended execution with nothing pending; return False if not, or if another process does it."""
    with database.read() as session:
        if file_states(session, execution_id=execution_id)[0]:
            return False
    try:
        with database.write() as session:
            begin(session, execution_id, now=clock.now())
        return close_account(database, clock, execution_id)
    except NotIndexable:
        # Another process is concluding it, or a retry has reopened it.
        return False


def conclude(
    session: Session, execution_id: int, found: Mapping[str, int], *, error: str | None, now: datetime
) -> None:
    """Record that an execution's files were read, with statistics (counted before anything is locked).

    Or record why that failed: it becomes the error of a completed crawl; one that failed or was cancelled keeps its
    own. Raise NotIndexable if another worker has concluded it meanwhile.
    """
    execution = session.get_one(Execution, execution_id, populate_existing=True)
    # An execution with a stage reports its own ending (a ZIM that was not built), which a complete index does not
    # change.
    if execution.state == "completed" and (error is not None or execution.stage is None):
        execution.error = clean(error, MAX_ERROR_CHARS)
    execution.items_indexed = found["items_indexed"]
    execution.metrics = {**execution.metrics, "extraction_quality": dict(found)}
    target = IndexState.INDEXED if error is None else IndexState.FAILED
    _step(session, execution_id, target, now=now, items=found["items_indexed"], **({"error": error} if error else {}))


def _step(
    session: Session, execution_id: int, target: IndexState, *, now: datetime, items: int | None = None, **details: Any
) -> str | None:
    """Move an ended execution to another index state; return the state before, or raise NotIndexable."""
    row = session.execute(
        select(Execution, Job.state)
        .join(Job, Job.id == Execution.job_id)
        .where(Execution.id == execution_id, Execution.state.in_(OVER))
        # If two workers conclude the same execution, the second finds it concluded.
        .with_for_update(of=Execution)
        .execution_options(populate_existing=True)
    ).one_or_none()
    if row is None or row[0].index_state not in _FROM[target]:
        raise NotIndexable(execution_id, target)
    execution: Execution = row[0]
    job_state, before = row[1], execution.index_state
    execution.index_state = target.value
    session.flush()
    # Ad-hoc crawls and imports have no events: their execution has all the information.
    if before == target or job_state is None:
        return before
    job_id = execution.job_id
    notes = [status(job_id, job_state, execution_id=execution_id, index_state=target.value, **details)]
    if items is not None:
        notes.append(progress(job_id, execution_id, items_found=execution.items_crawled, items_indexed=items))
    emit(session, notes, now=now)
    return before
