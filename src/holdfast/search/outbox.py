"""Applies the outbox to the index: `drain` indexes pending changes, `rebuild` builds a new index beside the old.

Both reject a second writer. Rows are deleted by id after their changes are visible, so one that commits late
with a smaller id waits for the next drain, and a crash replays rows that were not deleted.
"""

from __future__ import annotations

import errno
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from sqlalchemy.orm import Session

from holdfast import log
from holdfast.clock import Clock
from holdfast.db.engine import Database, moment_in, server_clock
from holdfast.db.models import SearchOutbox
from holdfast.errors import NoSpace, Unavailable
from holdfast.failpoints import reach
from holdfast.index.indexer import Interrupted
from holdfast.search import queries
from holdfast.search.directory import IndexDirectory, IndexElsewhere, is_gone
from holdfast.search.writer import SearchWriter
from holdfast.values import dataclass

Progress = Callable[[int], None]
"""Receives the number of pages indexed so far; 0 when the build of an index starts."""
Stopping = Callable[[], bool]
"""Returns True if the work should stop and wait for the next drain; called every few hundred documents."""

_OUTBOX_AT_ONCE: Final = 200
_PAGES_AT_ONCE: Final = 5_000
_STRUCK_AT_ONCE: Final = 5_000
# Pages and documents of one commit, held in memory until then: 8,400 pages take 186 MB, with 20,000 a commit 238.
_COMMIT_EVERY: Final = 4_000
_COMMIT_REBUILD: Final = 4_000
_WITHDRAWAL: Final = "withdrawal"
# How often an index that is at work renews its heartbeat.
_BEAT: Final = timedelta(minutes=10)
# An index that cannot be seen from here is given up once it has left changes waiting for so long without a heartbeat.
_SILENT: Final = timedelta(hours=1)

_log = log.get(room="search")


@dataclass(frozen=True, slots=True, kw_only=True)
class Drained:
    """The work of a drain, and True if nothing is pending."""

    changes: int
    pages: int
    finished: bool


def _silent(_pages: int) -> None:
    return None


def _never() -> bool:
    return False


def checked(is_stopping: Stopping) -> Callable[[], None]:
    """Return a callback for the pauses between two pieces of work; it raises Interrupted if the work should stop."""

    def check() -> None:
        if is_stopping():
            raise Interrupted("stopped; changes taken in are kept, and the next drain continues")

    return check


@contextmanager
def _index_writer(folder: Path, database: Database, is_stopping: Stopping = _never) -> Iterator[SearchWriter]:
    try:
        index_writer = SearchWriter(folder, database, check=checked(is_stopping))
        try:
            yield index_writer
        finally:
            index_writer.close()
    except OSError as exc:
        kind = NoSpace if exc.errno == errno.ENOSPC else Unavailable
        # The outbox keeps changes that were not applied: a full disk loses nothing.
        raise kind(f"the search index in {folder} cannot be written: {exc}; nothing is lost, drain again") from exc


def drain(
    database: Database,
    home: Path,
    clock: Clock,
    *,
    limit_s: float | None = None,
    progress: Progress = _silent,
    is_stopping: Stopping = _never,
) -> Drained:
    """Apply pending outbox changes, for at most `limit_s`; raise IndexBusy if another process is writing.

    When stopped, it ends within a few hundred documents, even while building an index: committed work stays, the
    rest waits. A drain with nothing to do costs a few seeks and opens nothing. A deleted index is rebuilt first.
    Raise IndexElsewhere if another data directory's index receives the changes of this database.
    """
    directory = IndexDirectory(home)
    with database.read() as session:
        waits = bool(queries.waiting(session, limit=1))
        lost = _is_lost(session, directory, clock)
    if not (waits or lost):
        return Drained(changes=0, pages=0, finished=True)
    work = _Drain(directory, database, clock, limit_s)
    try:
        if not lost:
            with directory.writing():
                _own_outbox(database, directory, clock, by_force=False)
                # Check again under the writer's lock: if the index was deleted meanwhile, a new one would contain only
                # these changes.
                if directory.exists():
                    finished = work.run(progress, is_stopping)
                    return Drained(changes=work.changes, pages=work.pages, finished=finished)
        return _first(database, home, clock, progress, is_stopping)
    except Interrupted:
        return Drained(changes=work.changes, pages=work.pages, finished=False)


def is_lost(database: Database, home: Path, clock: Clock) -> bool:
    """Return True if there are pages but no usable index: the next drain rebuilds it completely.

    Raise IndexElsewhere if another data directory's index receives the changes of this database.
    """
    with database.read() as session:
        return _is_lost(session, IndexDirectory(home), clock)


def _is_lost(session: Session, directory: IndexDirectory, clock: Clock) -> bool:
    demand_outbox(session, directory, clock)
    held = queries.outbox_owner(session)
    # An index that is here while another had the outbox is an old one: it never saw what the other has taken in.
    if held is not None and held.owner.identity != directory.identity():
        return True
    return not directory.exists() and queries.id_bounds(session) is not None


class _Drain:
    def __init__(self, directory: IndexDirectory, database: Database, clock: Clock, limit_s: float | None) -> None:
        self.directory, self.database, self.clock = directory, database, clock
        self.deadline = None if limit_s is None else clock.monotonic() + limit_s
        self.changes = self.pages = 0

    def run(self, progress: Progress, is_stopping: Stopping) -> bool:
        while rows := self._waiting():
            if any(row.kind != _WITHDRAWAL or row.refs.get("hashes") for row in rows):
                break
            # Readers go by the withdrawals in force: there is nothing to write, and no index to open.
            self._strike(rows)
        else:
            return True
        with _index_writer(self.directory.current(), self.database, is_stopping) as index_writer:
            while rows := self._waiting():
                pages = _take_in(index_writer, self.database, rows, self.pages, progress)
                index_writer.commit()
                self._strike(rows)
                self.pages = pages
                _log.info("search.drained", changes=len(rows), pages=pages)
                if self.deadline is not None and self.clock.monotonic() >= self.deadline:
                    with self.database.read() as session:
                        return not queries.waiting(session, limit=1)
            index_writer.caught_up()
        return True

    def _waiting(self) -> list[SearchOutbox]:
        with self.database.read() as session:
            return queries.waiting(session, limit=_OUTBOX_AT_ONCE)

    def _strike(self, rows: list[SearchOutbox]) -> None:
        _strike_out(self.database, self.directory, self.clock, [row.id for row in rows])
        self.changes += len(rows)


def _strike_out(database: Database, directory: IndexDirectory, clock: Clock, ids: list[int]) -> None:
    """Delete applied outbox rows; raise IndexElsewhere, leaving them pending, if another index owns the outbox now."""
    with database.write() as session:
        # In the transaction that strikes out: between a look and the deletion another index might take the outbox over.
        held = queries.outbox_owner(session, for_update=True)
        if held is not None and held.owner.identity != directory.identity():
            raise IndexElsewhere(held.owner.home, held.owner.host)
        queries.taken_in(session, ids)
        # Not with every batch: the row would be written thousands of times for one drain.
        if held is not None and (now := _server_time(session, clock)) - held.seen_at >= _BEAT:
            queries.take_outbox(session, held.owner, now=now, expected=held.owner)


def is_own(held: queries.OutboxHeld | None, directory: IndexDirectory) -> bool:
    return held is None or held.owner.identity == directory.identity()


def demand_outbox(session: Session, directory: IndexDirectory, clock: Clock | None = None) -> None:
    """Raise IndexElsewhere if another data directory's index owns the outbox.

    With a clock, an owner that is invisible from here and has left changes pending for an hour may be replaced.
    """
    # Rows are struck out by the index that takes them in: two indexes on one database would each get half of them.
    held = queries.outbox_owner(session)
    if held is None or is_own(held, directory):
        return
    owner = held.owner
    gone = is_gone(owner.home, owner.machine, owner.identity)
    if gone is None and clock is not None:
        oldest = queries.oldest_waiting(session)
        gone = oldest is not None and max(oldest, held.seen_at) <= _server_time(session, clock) - _SILENT
    if not gone:
        raise IndexElsewhere(owner.home, owner.host)


def _server_time(session: Session, clock: Clock) -> datetime:
    # Machines that share a database judge each other's silence: a clock that is an hour ahead must not end it.
    return moment_in(session, server_clock(clock))


def _own_outbox(database: Database, directory: IndexDirectory, clock: Clock, *, by_force: bool) -> None:
    """Claim the outbox for this index, under the writer's lock; raise IndexElsewhere if owned, unless by force."""
    ours = queries.OutboxOwner(directory.identity(), *directory.address())
    while True:
        with database.read() as session:
            held, now = queries.outbox_owner(session), _server_time(session, clock)
            if not by_force:
                demand_outbox(session, directory, clock)
        if held is not None and held.owner == ours and now - held.seen_at < _BEAT:
            return
        if held is not None and held.owner.identity != ours.identity:
            # Before the outbox is ours: a death in between must not leave an index that lacks what the other took in.
            directory.discard()
        with database.write() as session:
            if queries.take_outbox(session, ours, now=now, expected=None if held is None else held.owner):
                return


def _keep_outbox(database: Database, directory: IndexDirectory, clock: Clock) -> None:
    """Update the owner's last activity; raise IndexElsewhere if another index owns the outbox now."""
    with database.read() as session:
        held = queries.outbox_owner(session)
    # Not taken back, even if the other is gone: what it struck out would be missing in the index in the making.
    if held is not None and held.owner.identity != directory.identity():
        raise IndexElsewhere(held.owner.home, held.owner.host)
    _own_outbox(database, directory, clock, by_force=False)


def _first(database: Database, home: Path, clock: Clock, progress: Progress, is_stopping: Stopping) -> Drained:
    """Build the first index; it contains all changes pending before the build, while later ones stay pending."""
    with database.read() as session:
        # Before the rebuild starts: changes added while it runs may or may not be in it, and stay pending.
        waited = queries.waiting_ids(session)
    pages = rebuild(database, home, clock, progress=progress, is_stopping=is_stopping, by_force=False)
    for start in range(0, len(waited), _STRUCK_AT_ONCE):
        _strike_out(database, IndexDirectory(home), clock, waited[start : start + _STRUCK_AT_ONCE])
    with database.read() as session:
        return Drained(changes=len(waited), pages=pages, finished=not queries.waiting(session, limit=1))


def _take_in(
    index_writer: SearchWriter, database: Database, rows: list[SearchOutbox], pages: int, progress: Progress
) -> int:
    # Documents first: those of new pages are then known and not taken in a second time with them.
    changed = {int(doc) for row in rows if row.kind == "documents" for doc in row.refs.get("ids", ())}
    if changed:
        index_writer.documents(changed)
    for row in rows:
        if row.kind == "snapshots" and row.first_id is not None and row.last_id is not None:
            pages = _range(index_writer, database, (row.first_id, row.last_id), pages, progress, every=_COMMIT_EVERY)
    # Behind the pages: an address that is new has its link texts already.
    named = {int(one) for row in rows for one in row.refs.get("hashes", ())}
    if named:
        index_writer.link_texts(named)
    # The last change of a source speaks for those before it.
    for row in {row.first_id: row for row in rows if row.kind == "visibility"}.values():
        _name_again(index_writer, database, row)
    return pages


def _name_again(index_writer: SearchWriter, database: Database, change: SearchOutbox) -> None:
    assert change.first_id is not None
    after = change.refs.get("after", -1)
    while True:
        index_writer.check()
        with database.read() as session:
            found = queries.named_by_source(session, change.first_id, after=after, limit=_PAGES_AT_ONCE)
        if found is None:
            return
        hashes, after = found
        index_writer.link_texts(hashes)
        index_writer.commit()
        # A large source takes longer than one drain: the next one continues here.
        with database.write() as session:
            queries.taken_in_until(session, change.id, after)


def _range(
    index_writer: SearchWriter, database: Database, ids: tuple[int, int], pages: int, progress: Progress, *, every: int
) -> int:
    first, last = ids
    while first <= last:
        index_writer.check()
        with database.read() as session:
            found = queries.pages_between(session, first, last, limit=_PAGES_AT_ONCE)
        # An id range is replaced whole: ids between the last page found and the end hold no page any more.
        until = found[-1].id if len(found) == _PAGES_AT_ONCE else last
        index_writer.pages(first, until, found)
        pages += len(found)
        first = until + 1
        progress(pages)
        if index_writer.gathered >= every:
            index_writer.commit()
    return pages


def take_over_signals(database: Database, home: Path) -> None:
    """Copy the signals of the link graph into the index if there is one; raise IndexBusy if another process writes it.

    Raise IndexElsewhere if another data directory's index receives the changes of this database.
    """
    directory = IndexDirectory(home)
    with database.read() as session:
        demand_outbox(session, directory)
    with directory.writing():
        # A new index copies the signals when it is built: an index of signals alone would count as complete.
        if not directory.exists():
            return
        with _index_writer(directory.current(), database) as index_writer:
            index_writer.signals()
            index_writer.commit()


def rebuild(
    database: Database,
    home: Path,
    clock: Clock,
    *,
    progress: Progress = _silent,
    is_stopping: Stopping = _never,
    by_force: bool = True,
) -> int:
    """Rebuild the index from SQL while the old one serves, and make it current; return the number of pages.

    When stopped it raises Interrupted and deletes the unfinished index.

    Changes in the meantime wait in the outbox for the next drain, and belong to this index from then on: one of
    another data directory then raises IndexElsewhere. Raise IndexBusy if another process writes the index; unless
    `by_force`, IndexElsewhere if another index owns the changes.
    """
    directory = IndexDirectory(home)
    pages = 0

    def on_progress(count: int) -> None:
        # An index in the making strikes nothing out for long, and is not to be taken for one that is gone.
        _keep_outbox(database, directory, clock)
        progress(count)

    with directory.writing():
        _own_outbox(database, directory, clock, by_force=by_force)
        folder = directory.fresh()
        try:
            progress(0)
            with _index_writer(folder, database, is_stopping) as index_writer:
                with database.read() as session:
                    bounds = queries.id_bounds(session)
                if bounds is not None:
                    pages = _range(index_writer, database, bounds, 0, on_progress, every=_COMMIT_REBUILD)
                index_writer.signals()
                index_writer.commit()
        except BaseException:
            # The next rebuild starts from the beginning: half a generation only takes space.
            shutil.rmtree(folder, ignore_errors=True)
            raise
        reach("search.built")
        directory.swap(folder)
    _log.info("search.rebuilt", pages=pages)
    return pages
