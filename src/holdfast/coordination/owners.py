"""Owners: processes that may hold leases, and whether they live.

A run file that can be seen from here is judged by its lock, whatever its machine is called now: a container that was
replaced and a machine that was renamed are cleaned up after at once. A process whose run file cannot be seen from here
belongs to another machine, and only its silence tells.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from enum import Enum, auto
from pathlib import Path
from typing import Final

from holdfast.clock import Clock, from_micros, to_micros
from holdfast.coordination.runfile import RunFile, boot_id, claimed, is_held, is_hidden
from holdfast.db.raw import RawDatabase, Row, Transaction, synchronise
from holdfast.values import dataclass

GONE = timedelta(minutes=2)
"""Silence after which an owner counts as gone whose lock can say nothing."""
WORKER_KINDS: Final = ("worker", "runner")
"""Owners that run jobs: with a scheduler of their own, or without. Supervisors, crawl processes, indexers do not."""

VISITOR: Final = "visitor"
"""Owners that make a few requests outside any crawl. Their rows are deleted at their end: nothing refers to them."""


class OwnerState(Enum):
    """What can be known of an owner from here."""

    ALIVE = auto()
    DEAD = auto()
    """Its lock is free, and the kernel that ran it freed it; or its files are here and it is silent."""
    AWAY = auto()
    """It is of another machine, and has been silent for long: what lies on that machine is not ours to touch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerRow:
    """A process that holds leases, or held them, as its row and its run file show it."""

    id: int
    kind: str
    host: str
    pid: int
    run_path: Path
    """Where its run file was made; after `judged`, where it lies now."""
    execution_id: int | None
    started_at: datetime
    heartbeat_at: datetime
    ended_at: datetime | None
    state: OwnerState = OwnerState.ALIVE
    is_silent: bool = False
    """No heartbeat for longer than `GONE`."""

    @property
    def is_gone(self) -> bool:
        """Whether its lock is free, if its run file can be seen from here; or it has been silent for too long."""
        return self.is_silent or self.state is OwnerState.DEAD

    @property
    def is_away(self) -> bool:
        """Whether it is of another machine: its leases are free, but only files of it that lie here may be touched."""
        return self.state is OwnerState.AWAY


_COLUMNS = "id, kind, host, pid, run_file, execution_id, started_at, heartbeat_at, ended_at"


def _owner_row(row: Row) -> OwnerRow:
    number, kind, host, pid, run_file, execution_id, started_at, heartbeat_at, ended_at = row
    return OwnerRow(
        id=number,
        kind=kind,
        host=host,
        pid=pid,
        run_path=Path(run_file),
        execution_id=execution_id,
        started_at=from_micros(started_at),
        heartbeat_at=from_micros(heartbeat_at),
        ended_at=None if ended_at is None else from_micros(ended_at),
    )


def owner_row(raw_db: RawDatabase, owner_id: int) -> OwnerRow | None:
    """Return the row of one owner, None if there never was one."""
    with raw_db.read() as tx:
        rows = tx.execute(f"SELECT {_COLUMNS} FROM owners WHERE id = ?", (owner_id,))  # noqa: S608
    return _owner_row(rows[0]) if rows else None


def _open_owners(raw_db: RawDatabase) -> list[OwnerRow]:
    """Return the owners of all machines whose rows are open; as many as there are processes."""
    with raw_db.read() as tx:
        rows = tx.execute(f"SELECT {_COLUMNS} FROM owners WHERE ended_at IS NULL ORDER BY id")  # noqa: S608
    return [_owner_row(row) for row in rows]


def _is_open(raw_db: RawDatabase, owner_id: int) -> bool:
    with raw_db.read() as tx:
        return bool(tx.execute("SELECT 1 FROM owners WHERE id = ? AND ended_at IS NULL", (owner_id,)))


def _close_row(tx: Transaction, clock: Clock, owner_id: int, kind: str) -> bool:
    """Close an owner's row, or delete that of a visitor; False if it was closed before."""
    if kind == VISITOR:
        return bool(tx.execute("DELETE FROM owners WHERE id = ? RETURNING id", (owner_id,)))
    rows = tx.execute(
        "UPDATE owners SET ended_at = ? WHERE id = ? AND ended_at IS NULL RETURNING id",
        (to_micros(clock.now()), owner_id),
    )
    return bool(rows)


def delete_ended_visitors(raw_db: RawDatabase) -> None:
    """Delete the closed rows of visitors that earlier versions left."""
    which = "FROM owners WHERE kind = ? AND ended_at IS NOT NULL"
    with raw_db.read() as tx:
        is_any = tx.execute(f"SELECT 1 {which} LIMIT 1", (VISITOR,))
    if is_any:
        with raw_db.write() as tx:
            tx.execute(f"DELETE {which}", (VISITOR,))


class OwnerProcess:
    """This process, as others see it."""

    def __init__(
        self,
        raw_db: RawDatabase,
        clock: Clock,
        *,
        run: RunFile,
        kind: str,
        execution_id: int | None,
        directory: str | None = None,
    ) -> None:
        """`directory` is the id of a worker's data directory: by it others know that its files can be reached."""
        self._raw_db, self._clock, self._directory = raw_db, clock, directory
        self.run = run
        self.kind = kind
        self.execution_id = execution_id
        try:
            self.id = self._register()
            # The clock may have been set since this process read it; from here on it stays.
            synchronise(clock)
        except BaseException:
            # A worker tries again for as long as the database is away: each time would leave a file, and its lock.
            run.close()
            raise

    def _register(self) -> int:
        now = to_micros(self._clock.now())
        # Resolved: a later start may run in another folder, and would look for a relative path there.
        run_file = str(self.run.path.resolve())
        with self._raw_db.write() as tx:
            rows = tx.execute(
                "INSERT INTO owners(kind, host, pid, run_file, execution_id, started_at, heartbeat_at, directory)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?) RETURNING id",
                (self.kind, socket.gethostname(), os.getpid(), run_file, self.execution_id, now, now, self._directory),
            )
        return int(rows[0][0])

    def beat(self, tx: Transaction) -> None:
        """Say, in the caller's transaction, that this process is alive and getting on."""
        beat_owner(tx, self._clock, self.id)

    def leave(self, tx: Transaction) -> None:
        """Close the row in the caller's transaction, with what this process writes last; `end` lets go of the rest."""
        _close_row(tx, self._clock, self.id, self.kind)

    def end(self) -> None:
        """Close the row: leases are released, files are sealed."""
        try:
            with self._raw_db.write() as tx:
                self.leave(tx)
        except BaseException:
            # The process may live on for months: what its row holds is not to be taken for held meanwhile.
            self.run.let_go()
            raise
        # After the row: a start that finds the row open and the run file gone waits two minutes for nothing.
        self.run.close()


def beat_owner(tx: Transaction, clock: Clock, owner_id: int) -> None:
    """Say, in the caller's transaction, that an owner is alive: what it holds is freed after two minutes of silence."""
    # `ended_at = NULL`: a process that stood still and was taken for gone is back, and must be found if it then dies.
    tx.execute("UPDATE owners SET heartbeat_at = ?, ended_at = NULL WHERE id = ?", (to_micros(clock.now()), owner_id))


def located(folder: Path, run_path: Path) -> Path:
    """Return where a run file lies: in this data directory, which may have been moved since, or where it was made."""
    # Its name is drawn at random, so that a file of this name is the one that was meant.
    ours = folder / run_path.name
    return run_path if not ours.exists() and (is_hidden(run_path) or run_path.exists()) else ours


def judged(owner: OwnerRow, folder: Path, *, silent_since: datetime) -> OwnerRow:
    """Return an owner with its state and the place of its run file. Nothing alive is ever taken for dead."""
    path, is_silent = located(folder, owner.run_path), owner.heartbeat_at <= silent_since
    return replace(owner, run_path=path, is_silent=is_silent, state=_state(path, owner.host, is_silent=is_silent))


def _state(path: Path, host: str, *, is_silent: bool) -> OwnerState:
    if is_hidden(path):  # of another user: as one of another machine, only its silence tells
        return OwnerState.AWAY if is_silent else OwnerState.ALIVE
    if is_held(path):
        return OwnerState.ALIVE
    if path.exists():
        # A lock that seems free was taken on another kernel if the run file says so: then the storage is shared, and
        # may be of a kind that keeps locks to each machine. The name of the machine proves nothing: two may share one.
        if is_silent or boot_id(path) in (None, boot_id()):
            return OwnerState.DEAD
        return OwnerState.ALIVE
    if not is_silent:
        return OwnerState.ALIVE
    return OwnerState.DEAD if host == socket.gethostname() else OwnerState.AWAY


def _judged_all(clock: Clock, owners: Sequence[OwnerRow], folder: Path) -> list[OwnerRow]:
    silent_since = clock.now() - GONE
    return [judged(owner, folder, silent_since=silent_since) for owner in owners]


def dead_owners(raw_db: RawDatabase, clock: Clock, *, folder: Path) -> list[OwnerRow]:
    """Return the owners that ended without closing their rows, as far as can be known from here. Nothing is changed.

    `cleaning_up` holds one of them.
    """
    owners = _judged_all(clock, _open_owners(raw_db), folder)
    return [owner for owner in owners if owner.state is not OwnerState.ALIVE]


@contextmanager
def cleaning_up(raw_db: RawDatabase, owner: OwnerRow) -> Iterator[bool]:
    """Hold a dead owner while cleaning up after it; False if another start is at it, or has done it."""
    with claimed(owner.run_path) as ours:
        # Asked once the claim is held: before that, another start may have finished between the list and the claim.
        yield ours and _is_open(raw_db, owner.id)


def close_owner(raw_db: RawDatabase, clock: Clock, owner: OwnerRow) -> bool:
    """Close a dead owner's row after its leases are free; False if another start did it first."""
    with raw_db.write() as tx:
        closed = _close_row(tx, clock, owner.id, owner.kind)
    owner.run_path.unlink(missing_ok=True)
    return closed


def is_gone(raw_db: RawDatabase, clock: Clock, owner_id: int, *, folder: Path) -> bool:
    """Return whether an owner has ended or died; one that was never registered is gone.

    One of another machine that fell silent is not called gone here: its jobs have a heartbeat of their own, and
    `recover` closes no row of a worker before that has run out.
    """
    owner = owner_row(raw_db, owner_id)
    if owner is None or owner.ended_at is not None:
        return True
    return judged(owner, folder, silent_since=clock.now() - GONE).state is OwnerState.DEAD


def is_registered(raw_db: RawDatabase, owner_id: int, *, host: str) -> bool:
    """Return whether there is, or was, an owner of this number on a machine of this name."""
    owner = owner_row(raw_db, owner_id)
    return owner is not None and owner.host == host


def seen_owners(raw_db: RawDatabase, clock: Clock, *, kind: str, folder: Path) -> list[OwnerRow]:
    """Return the owners of one kind, on all machines, whose rows are open; nothing is changed."""
    return _judged_all(clock, [owner for owner in _open_owners(raw_db) if owner.kind == kind], folder)


def living_owners(raw_db: RawDatabase, clock: Clock, *, execution_id: int, folder: Path) -> list[OwnerRow]:
    """Return the owners that work on an execution now, in any role and on any machine, as far as is known from here."""
    with raw_db.read() as tx:
        rows = tx.execute(
            f"SELECT {_COLUMNS} FROM owners WHERE execution_id = ? AND ended_at IS NULL ORDER BY id",  # noqa: S608
            (execution_id,),
        )
    owners = _judged_all(clock, [_owner_row(row) for row in rows], folder)
    return [owner for owner in owners if owner.state is OwnerState.ALIVE]


def is_working(raw_db: RawDatabase, clock: Clock, *, execution_id: int, kind: str, folder: Path) -> bool:
    """Return whether a live process, of any machine, works on the execution in this role."""
    living = living_owners(raw_db, clock, execution_id=execution_id, folder=folder)
    return any(owner.kind == kind for owner in living)


def has_rival(raw_db: RawDatabase, clock: Clock, owner: OwnerProcess, *, folder: Path) -> bool:
    """Return whether a live owner has had the same role on the same execution for longer: of two, the later yields."""
    return any(rival.id < owner.id for rival in _rivals(raw_db, clock, owner, folder))


def later_rivals(raw_db: RawDatabase, clock: Clock, owner: OwnerProcess, *, folder: Path) -> list[OwnerRow]:
    """Return the live owners that took up the same role on the same execution after this one, oldest first.

    A start yields to an earlier owner that lives: one that stays has found this owner silent and taken its place.
    """
    return [rival for rival in _rivals(raw_db, clock, owner, folder) if rival.id > owner.id]


def _rivals(raw_db: RawDatabase, clock: Clock, owner: OwnerProcess, folder: Path) -> list[OwnerRow]:
    assert owner.execution_id is not None
    living = living_owners(raw_db, clock, execution_id=owner.execution_id, folder=folder)
    return [rival for rival in living if rival.kind == owner.kind]


def was_closed(raw_db: RawDatabase, owner: OwnerProcess) -> bool:
    """Return whether this process was taken for gone: its row was closed by another start while it stood still."""
    return not _is_open(raw_db, owner.id)
