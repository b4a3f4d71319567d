"""How an execution's index state changes; whoever writes it does so here.

    (nothing) ──→ pending ──→ indexing ──→ indexed
                     ↑           ├───────→ index_failed
                     └───────────┴── read again (retry, reconcile)

An execution that is `indexing` belongs to nobody: its files are leased one by one, and any worker may go on with it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Any

from sqlalchemy.orm import Session

from holdfast.clock import Clock
from holdfast.db.engine import Database
from holdfast.errors import Conflict
from holdfast.jobs.indexing import queries
from holdfast.jobs.indexing.queries import Quality, ToIndex, Unindexed
from holdfast.jobs.journal.events import emit, progress, status

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


def next_to_index(session: Session, *, after: int = 0) -> ToIndex | None:
    """Return the first execution after this one that is over, and whose files nobody has finished reading."""
    return queries.next_to_index(session, after=after)


def find_unindexed(database: Database, has_files: Callable[[str], bool], *, limit: int) -> list[Unindexed]:
    """Return completed executions that have files and that nobody asked to index, oldest first (HA-045).

    Files count that are registered, and those that `has_files` sees in the directory. Read a page at a time: there may
    be any number of executions without files in between.
    """
    found: list[Unindexed] = []
    after = 0
    while len(found) < limit:
        with database.read() as session:
            page = queries.unindexed(session, after=after, limit=_PAGE)
        found += [one for one in page if one.files or has_files(one.output_dir)]
        if len(page) < _PAGE:
            break
        after = page[-1].execution_id
    return found[:limit]


def ask_again(session: Session, execution_id: int, *, now: datetime) -> None:
    """Have an execution's files read, for the first time or again; NotIndexable if it is open or waits already."""
    _step(session, execution_id, IndexState.PENDING, now=now)


def take_up(session: Session, execution_id: int, *, now: datetime) -> bool:
    """Say that the files of an execution are being read; return whether nobody had begun since it was asked for.

    NotIndexable if somebody has finished them meanwhile.
    """
    return _step(session, execution_id, IndexState.INDEXING, now=now) == IndexState.PENDING


def begin(session: Session, execution_id: int, *, now: datetime) -> None:
    """Say that the files of an execution that is over are being read, whether that was asked for, begun or done before.

    NotIndexable if it is not over.
    """
    if queries.index_state(session, execution_id=execution_id) not in (IndexState.PENDING, IndexState.INDEXING):
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

    What could not be read fails it, and so do `errors` of the caller and the lack of any file in its folder. `lost` are
    files that will never be sealed: they are not waited for.
    """
    with database.read() as session:
        states = queries.file_states(session, execution_id=execution_id)
        if states.waiting or set(queries.open_files(session, execution_id=execution_id)) - set(lost):
            return False
        pages = queries.quality(session, execution_id=execution_id)
    told = list(errors)
    if names := list(states.failed.values()):
        told.append(f"could not be read: {', '.join(Path(path).name for path in names[:5])}")
    if not states.total and not told:
        told.append(f"there is no WARC file in {folder}" if folder else "there is no WARC file")
    with suppress(NotIndexable), database.write() as session:  # unless another process has said so meanwhile
        conclude(session, execution_id, pages, error="; ".join(told) or None, now=clock.now())
    return True


def close_accounts(database: Database, clock: Clock, file_ids: Sequence[int]) -> list[int]:
    """Conclude the executions of files that were just read, as far as nothing else of them waits; return which."""
    with database.read() as session:
        found = queries.over_with_files(session, file_ids)
    return [execution_id for execution_id in found if close_if_read(database, clock, execution_id)]


def close_if_read(database: Database, clock: Clock, execution_id: int) -> bool:
    """Conclude one execution if it is over and nothing of it waits; False if not, or if another process has it."""
    with database.read() as session:
        if queries.file_states(session, execution_id=execution_id).waiting:
            return False
    try:
        with database.write() as session:
            begin(session, execution_id, now=clock.now())
        return close_account(database, clock, execution_id)
    except NotIndexable:  # another process has it, or a retry has opened it again
        return False


def conclude(session: Session, execution_id: int, found: Quality, *, error: str | None, now: datetime) -> None:
    """Say that an execution's files were read, with what was found in them (counted before anything is locked).

    Or why that did not work: for a crawl that was completed, that is its error from then on. NotIndexable if somebody
    else has said so meanwhile.
    """
    queries.note_findings(session, execution_id=execution_id, found=found, error=error)
    target = IndexState.INDEXED if error is None else IndexState.FAILED
    _step(session, execution_id, target, now=now, items=found.items_indexed, **({"error": error} if error else {}))


def _step(session: Session, execution_id: int, target: IndexState, *, now: datetime, items: int | None = None,
          **details: Any) -> str | None:  # fmt: skip
    moved = queries.set_state(session, execution_id=execution_id, state=target.value, allowed=_FROM[target])
    if moved is None:
        raise NotIndexable(execution_id, target)
    if moved.before == target or moved.job_state is None:
        return moved.before
    told = [status(moved.job_id, moved.job_state, execution_id=execution_id, index_state=target.value, **details)]
    if items is not None:
        told.append(progress(moved.job_id, execution_id, items_found=moved.items_crawled, items_indexed=items))
    emit(session, told, now=now)
    return moved.before
