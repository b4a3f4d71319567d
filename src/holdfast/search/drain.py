"""From the outbox to the index: `drain` takes in what waits, `rebuild` makes the index anew beside the old one.

Both refuse to run beside another writer. Rows are struck out by id after they are in force, so one that commits late
with a smaller id waits for the next drain, and a crash replays what was not struck out.
"""

from __future__ import annotations

import errno
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sqlalchemy.orm import Session

from holdfast import log
from holdfast.clock import Clock
from holdfast.db.engine import Database
from holdfast.db.models import SearchOutbox
from holdfast.errors import NoSpace, Unavailable
from holdfast.index.indexer import Interrupted
from holdfast.search import queries
from holdfast.search.place import IndexElsewhere, Place, is_at
from holdfast.search.scribe import Scribe

Progress = Callable[[int], None]
"""Told how many pages were taken in so far."""
Stopping = Callable[[], bool]
"""Says whether the work is to be left to the next drain; asked every few hundred documents."""

_OUTBOX_AT_ONCE: Final = 200
_PAGES_AT_ONCE: Final = 5_000
_STRUCK_AT_ONCE: Final = 5_000
_COMMIT_EVERY: Final = 4_000
"""Pages and documents of one commit, held in memory until then: 8,400 pages take 186 MB, with 20,000 a commit 238."""
_COMMIT_REBUILD: Final = 4_000

_log = log.get(room="search")


@dataclass(frozen=True, slots=True, kw_only=True)
class Drained:
    """What a drain did, and whether something still waits."""

    changes: int
    pages: int
    finished: bool


def _silent(_pages: int) -> None:
    return None


def _never() -> bool:
    return False


def checked(is_stopping: Stopping) -> Callable[[], None]:
    """Return what a step calls between two pieces of work; it raises Interrupted when the work is to end."""

    def check() -> None:
        if is_stopping():
            raise Interrupted("stopped; what was taken in stands, and the next drain goes on")

    return check


@contextmanager
def _scribe(folder: Path, database: Database, is_stopping: Stopping = _never) -> Iterator[Scribe]:
    try:
        scribe = Scribe(folder, database, check=checked(is_stopping))
        try:
            yield scribe
        finally:
            scribe.close()
    except OSError as exc:
        kind = NoSpace if exc.errno == errno.ENOSPC else Unavailable
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
    """Take in what the outbox holds, for as long as allowed; IndexBusy if another process is at it.

    Told to stop, it leaves off within a few hundred documents, an index in the making included: what was committed
    stands, the rest waits. A drain with nothing to do costs a few seeks and opens nothing. An index that was thrown
    away is made anew first. IndexElsewhere if another data directory's index takes in the changes of this database.
    """
    place = Place(home)
    with database.read() as session:
        waits = bool(queries.waiting(session, limit=1))
        lost = not place.exists() and queries.id_bounds(session) is not None
        demand_outbox(session, place)
    if waits or lost:
        _own_outbox(database, place, clock, by_force=False)
    if not (waits or lost):
        return Drained(changes=0, pages=0, finished=True)
    done = _Done()
    try:
        if lost:
            return _first(database, home, clock, progress, is_stopping)
        deadline = None if limit_s is None else clock.monotonic() + limit_s
        with place.writing(), _scribe(place.current(), database, is_stopping) as scribe:
            finished = _drain_into(scribe, database, clock, deadline, done, progress)
    except Interrupted:
        finished = False
    return Drained(changes=done.changes, pages=done.pages, finished=finished)


@dataclass(slots=True)
class _Done:
    """What a drain has done so far, and is in force."""

    changes: int = 0
    pages: int = 0


def _drain_into(
    scribe: Scribe, database: Database, clock: Clock, deadline: float | None, done: _Done, progress: Progress
) -> bool:
    """Take in what waits until a moment; return whether nothing is left."""
    while True:
        with database.read() as session:
            rows = queries.waiting(session, limit=_OUTBOX_AT_ONCE)
        if not rows:
            scribe.caught_up()
            return True
        pages = _take_in(scribe, database, rows, done.pages, progress)
        scribe.commit()
        with database.write() as session:
            queries.taken_in(session, [row.id for row in rows])
        done.changes += len(rows)
        done.pages = pages
        _log.info("search.drained", changes=len(rows), pages=pages)
        if deadline is not None and clock.monotonic() >= deadline:
            with database.read() as session:
                return not queries.waiting(session, limit=1)


def demand_outbox(session: Session, place: Place) -> None:
    """Refuse, with IndexElsewhere, an outbox that another data directory's index takes in.

    Rows are struck out by who takes them in: two indexes on one database would each get half of them.
    """
    owner = queries.outbox_owner(session)
    if owner is not None and owner.identity != place.identity() and is_at(owner.home, owner.host, owner.identity):
        raise IndexElsewhere(owner.home, owner.host)


def _own_outbox(database: Database, place: Place, clock: Clock, *, by_force: bool) -> None:
    """Make the outbox this index's; IndexElsewhere if it is another's that is still there, unless by force."""
    with database.read() as session:
        owner = queries.outbox_owner(session)
        if not by_force:
            demand_outbox(session, place)
    ours = queries.OutboxOwner(place.identity(), *place.address())
    if owner == ours:
        return
    with database.write() as session:
        queries.take_outbox(session, ours, now=clock.now(), by_force=owner is not None)
    with database.read() as session:
        demand_outbox(session, place)


def _first(database: Database, home: Path, clock: Clock, progress: Progress, is_stopping: Stopping) -> Drained:
    """Make an index where there is none; changes that waited before it began are in it, later ones go on waiting."""
    with database.read() as session:
        waited = queries.waiting_ids(session)
    pages = rebuild(database, home, clock, progress=progress, is_stopping=is_stopping)
    for start in range(0, len(waited), _STRUCK_AT_ONCE):
        with database.write() as session:
            queries.taken_in(session, waited[start : start + _STRUCK_AT_ONCE])
    with database.read() as session:
        return Drained(changes=len(waited), pages=pages, finished=not queries.waiting(session, limit=1))


def _take_in(scribe: Scribe, database: Database, rows: list[SearchOutbox], pages: int, progress: Progress) -> int:
    """Bring the changes of some outbox rows to the scribe; return how many pages were taken in altogether."""
    # Documents first: those of new pages are then known and not taken in a second time with them.
    changed = {int(doc) for row in rows if row.kind == "documents" for doc in row.refs.get("ids", ())}
    if changed:
        scribe.documents(changed)
    for row in rows:
        if row.kind == "snapshots" and row.first_id is not None and row.last_id is not None:
            pages = _range(scribe, database, (row.first_id, row.last_id), pages, progress, every=_COMMIT_EVERY)
    if any(row.kind == "signals" for row in rows):
        scribe.signals()
    return pages


def _range(
    scribe: Scribe, database: Database, ids: tuple[int, int], pages: int, progress: Progress, *, every: int
) -> int:
    """Take in the pages of an id range, a piece at a time, committing what is ready when there is much of it."""
    first, last = ids
    while first <= last:
        scribe.check()
        with database.read() as session:
            found = queries.pages_between(session, first, last, limit=_PAGES_AT_ONCE)
        until = found[-1].id if len(found) == _PAGES_AT_ONCE else last
        scribe.pages(first, until, found)
        pages += len(found)
        first = until + 1
        progress(pages)
        if scribe.gathered >= every:
            scribe.commit()
    return pages


def take_over_signals(database: Database, home: Path) -> None:
    """Bring the signals of the link graph into the index; IndexBusy if another process writes it, IndexElsewhere."""
    place = Place(home)
    with database.read() as session:
        demand_outbox(session, place)
    with place.writing(), _scribe(place.current(), database) as scribe:
        scribe.signals()
        scribe.commit()


def rebuild(
    database: Database, home: Path, clock: Clock, *, progress: Progress = _silent, is_stopping: Stopping = _never
) -> int:
    """Make the index anew from SQL while the old one serves, and put it in force; return the pages taken in.

    Told to stop it raises Interrupted, and what it had made is gone.

    What changes meanwhile waits in the outbox for the next drain, and is this index's from here on: one of another data
    directory refuses then. IndexBusy if another process writes the index.
    """
    place = Place(home)
    pages = 0
    with place.writing():
        _own_outbox(database, place, clock, by_force=True)
        folder = place.fresh()
        try:
            with _scribe(folder, database, is_stopping) as scribe:
                with database.read() as session:
                    bounds = queries.id_bounds(session)
                if bounds is not None:
                    pages = _range(scribe, database, bounds, 0, progress, every=_COMMIT_REBUILD)
                scribe.signals()
                scribe.commit()
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        place.swap(folder)
    _log.info("search.rebuilt", pages=pages)
    return pages
