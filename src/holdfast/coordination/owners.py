"""Owners: processes that may hold leases, and whether they live.

A run file that can be seen from here is judged by its lock, whatever its machine is called now: a container that was
replaced and a machine that was renamed are cleaned up after at once. A process whose run file cannot be seen from here
belongs to another machine, and only its silence tells.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from enum import Enum, auto
from pathlib import Path
from typing import NamedTuple

from holdfast.clock import Clock, from_micros, to_micros
from holdfast.coordination.runfile import InHand, RunFile, boot_id, claimed, in_hand, is_held, is_hidden
from holdfast.db.raw import RawDatabase, Transaction
from holdfast.values import dataclass

_COLUMNS = "id, kind, host, pid, run_file, execution_id, started_at, heartbeat_at, ended_at"


class OwnerRow(NamedTuple):
    """A process that holds leases, or held them; times in microseconds."""

    id: int
    kind: str
    host: str
    pid: int
    run_file: str
    execution_id: int | None
    started_at: int
    heartbeat_at: int
    ended_at: int | None


class NewOwner(NamedTuple):
    """A process that is about to hold leases."""

    kind: str
    host: str
    pid: int
    run_file: str
    execution_id: int | None


def insert_owner(tx: Transaction, owner: NewOwner, *, now: int) -> int:
    """Register a process and return its id."""
    rows = tx.execute(
        "INSERT INTO owners(kind, host, pid, run_file, execution_id, started_at, heartbeat_at)"
        " VALUES (?, ?, ?, ?, ?, ?, ?) RETURNING id",
        (*owner, now, now),
    )
    return int(rows[0][0])


def beat(tx: Transaction, *, owner_id: int, now: int) -> None:
    """Say that an owner is alive and getting on; one that was taken for gone is back."""
    tx.execute("UPDATE owners SET heartbeat_at = ?, ended_at = NULL WHERE id = ?", (now, owner_id))


def end_owner(tx: Transaction, *, owner_id: int, now: int) -> bool:
    """Close an owner's row; False if it was closed before."""
    rows = tx.execute("UPDATE owners SET ended_at = ? WHERE id = ? AND ended_at IS NULL RETURNING id", (now, owner_id))
    return bool(rows)


def open_owners(tx: Transaction) -> list[OwnerRow]:
    """Return the owners of all machines that have not said goodbye; as many as there are processes."""
    rows = tx.execute(f"SELECT {_COLUMNS} FROM owners WHERE ended_at IS NULL ORDER BY id")  # noqa: S608
    return [OwnerRow(*row) for row in rows]


def owner(tx: Transaction, *, owner_id: int) -> OwnerRow | None:
    """Return what is known of one owner, None if there never was one."""
    rows = tx.execute(f"SELECT {_COLUMNS} FROM owners WHERE id = ?", (owner_id,))  # noqa: S608
    return OwnerRow(*rows[0]) if rows else None


def is_open(tx: Transaction, *, owner_id: int) -> bool:
    """Return whether an owner's row is not closed yet."""
    return bool(tx.execute("SELECT 1 FROM owners WHERE id = ? AND ended_at IS NULL", (owner_id,)))


def open_owners_of(tx: Transaction, *, execution_id: int) -> list[OwnerRow]:
    """Return the owners that work on an execution, in any role."""
    rows = tx.execute(
        f"SELECT {_COLUMNS} FROM owners WHERE execution_id = ? AND ended_at IS NULL ORDER BY id",  # noqa: S608
        (execution_id,),
    )
    return [OwnerRow(*row) for row in rows]


GONE = timedelta(minutes=2)
"""Silence after which an owner counts as gone whose lock can say nothing."""


class Life(Enum):
    """What can be told of an owner from here."""

    ALIVE = auto()
    DEAD = auto()
    """Its lock is free, and that lock is the word of the kernel that ran it; or its files are here and it is silent."""
    AWAY = auto()
    """It is of another machine, and has been silent for long: what lies on that machine is not ours to touch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadOwner:
    """A process that ended without saying goodbye, and what it had in hand."""

    id: int
    kind: str
    host: str
    pid: int
    execution_id: int | None
    heartbeat_at: datetime
    in_hand: tuple[InHand, ...]
    run_path: Path
    is_away: bool = False
    """It is of another machine: its leases are free, but only files of it that are seen here may be touched."""


class OwnerProcess:
    """This process, as others see it."""

    def __init__(self, raw_db: RawDatabase, clock: Clock, *, run: RunFile, kind: str, execution_id: int | None) -> None:
        self._raw_db, self._clock = raw_db, clock
        self.run = run
        self.kind = kind
        self.execution_id = execution_id
        new_owner = NewOwner(kind, socket.gethostname(), os.getpid(), str(run.path.resolve()), execution_id)
        with raw_db.write() as tx:
            self.id = insert_owner(tx, new_owner, now=to_micros(clock.now()))

    def beat(self, tx: Transaction) -> None:
        """Say, in the caller's transaction, that we are alive and getting on."""
        beat_owner(tx, self._clock, self.id)

    def end(self) -> None:
        """Say goodbye: leases are released, files are sealed."""
        with self._raw_db.write() as tx:
            end_owner(tx, owner_id=self.id, now=to_micros(self._clock.now()))
        self.run.close()


def beat_owner(tx: Transaction, clock: Clock, owner_id: int) -> None:
    """Say, in the caller's transaction, that an owner is alive: what it holds is freed after two minutes of silence."""
    beat(tx, owner_id=owner_id, now=to_micros(clock.now()))


def _locate(folder: Path, run_file: str) -> Path:
    """Return where a run file lies: in this data directory, wherever that was when it was made, or where it was made.

    Its name is drawn at random, so that a file of this name is the one that was meant.
    """
    path = Path(run_file)
    ours = folder / path.name
    return path if not ours.exists() and (is_hidden(path) or path.exists()) else ours


def _life(row: OwnerRow, folder: Path, *, silent_since: int) -> Life:
    """Return whether an owner lives. Nothing alive is ever taken for dead."""
    path = _locate(folder, row.run_file)
    is_silent, is_here = row.heartbeat_at <= silent_since, row.host == socket.gethostname()
    if is_hidden(path):  # of another user: as one of another machine, only its silence tells
        return Life.AWAY if is_silent else Life.ALIVE
    if is_held(path):
        return Life.ALIVE
    if path.exists():
        # A lock that seems free was taken on another kernel if the run file says so: then the storage is shared, and
        # may be of a kind that keeps locks to each machine. The name of the machine proves nothing: two may share one.
        if is_silent or boot_id(path) in (None, boot_id()):
            return Life.DEAD
        return Life.ALIVE
    if not is_silent:
        return Life.ALIVE
    return Life.DEAD if is_here else Life.AWAY


def dead_owners(raw_db: RawDatabase, clock: Clock, *, folder: Path) -> list[DeadOwner]:
    """Return the owners that ended without a word, as far as can be told from here. Nothing is changed.

    `cleaning_up` takes one of them in hand.
    """
    with raw_db.read() as tx:
        rows = open_owners(tx)
    silent_since = to_micros(clock.now() - GONE)
    dead = []
    for row in rows:
        life = _life(row, folder, silent_since=silent_since)
        if life is not Life.ALIVE:
            path = _locate(folder, row.run_file)
            dead.append(
                DeadOwner(
                    id=row.id,
                    kind=row.kind,
                    host=row.host,
                    pid=row.pid,
                    execution_id=row.execution_id,
                    heartbeat_at=from_micros(row.heartbeat_at),
                    in_hand=tuple(in_hand(path)),
                    run_path=path,
                    is_away=life is Life.AWAY,
                )
            )
    return dead


@contextmanager
def cleaning_up(raw_db: RawDatabase, owner: DeadOwner) -> Iterator[bool]:
    """Hold a dead owner while cleaning up after it; False if another start is at it, or has done it."""
    with claimed(owner.run_path) as ours:
        if ours:
            with raw_db.read() as tx:
                ours = is_open(tx, owner_id=owner.id)
        yield ours


def close_owner(raw_db: RawDatabase, clock: Clock, owner: DeadOwner) -> bool:
    """Close a dead owner's row after its leases are free; False if another start did it first."""
    with raw_db.write() as tx:
        closed = end_owner(tx, owner_id=owner.id, now=to_micros(clock.now()))
    owner.run_path.unlink(missing_ok=True)
    return closed


def is_gone(raw_db: RawDatabase, clock: Clock, owner_id: int, *, folder: Path) -> bool:
    """Return whether an owner has ended or died; one that was never registered is gone.

    One of another machine that fell silent is not called gone here: its jobs have a heartbeat of their own.
    """
    with raw_db.read() as tx:
        row = owner(tx, owner_id=owner_id)
    if row is None or row.ended_at is not None:
        return True
    return _life(row, folder, silent_since=to_micros(clock.now() - GONE)) is Life.DEAD


def is_registered(raw_db: RawDatabase, owner_id: int, *, host: str) -> bool:
    """Return whether there is, or was, an owner of this number on a machine of this name."""
    with raw_db.read() as tx:
        row = owner(tx, owner_id=owner_id)
    return row is not None and row.host == host


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerSeen:
    """An owner that has not said goodbye, as far as can be told from here."""

    id: int
    host: str
    pid: int
    started_at: datetime
    heartbeat_at: datetime
    is_gone: bool
    """Its lock is free, if its run file can be seen from here; or it has been silent for too long."""


def _seen(row: OwnerRow, *, is_gone: bool) -> OwnerSeen:
    return OwnerSeen(
        id=row.id,
        host=row.host,
        pid=row.pid,
        started_at=from_micros(row.started_at),
        heartbeat_at=from_micros(row.heartbeat_at),
        is_gone=is_gone,
    )


def seen_owners(raw_db: RawDatabase, clock: Clock, *, kind: str, folder: Path) -> list[OwnerSeen]:
    """Return the owners of one kind, on all machines, that have not said goodbye; nothing is changed."""
    with raw_db.read() as tx:
        rows = open_owners(tx)
    silent_since = to_micros(clock.now() - GONE)
    return [
        _seen(
            row, is_gone=row.heartbeat_at <= silent_since or _life(row, folder, silent_since=silent_since) is Life.DEAD
        )
        for row in rows
        if row.kind == kind
    ]


def living_owners(raw_db: RawDatabase, clock: Clock, *, execution_id: int, folder: Path) -> list[OwnerSeen]:
    """Return who works on an execution now, in any role and on any machine, as far as can be told from here."""
    return [_seen(row, is_gone=False) for row in _living(raw_db, clock, execution_id, folder)]


def is_working(raw_db: RawDatabase, clock: Clock, *, execution_id: int, kind: str, folder: Path) -> bool:
    """Return whether a live process, of any machine, works on the execution in this role."""
    return any(row.kind == kind for row in _living(raw_db, clock, execution_id, folder))


def has_rival(raw_db: RawDatabase, clock: Clock, owner: OwnerProcess, *, folder: Path) -> bool:
    """Return whether a live owner has had the same role on the same execution for longer: of two, the later yields."""
    assert owner.execution_id is not None
    rows = _living(raw_db, clock, owner.execution_id, folder)
    return any(row.id < owner.id and row.kind == owner.kind for row in rows)


def later_rivals(raw_db: RawDatabase, clock: Clock, owner: OwnerProcess, *, folder: Path) -> list[OwnerSeen]:
    """Return the live owners that took up the same role on the same execution after this one, oldest first.

    A start yields to an earlier owner that lives: one that stays has found this owner silent and taken its place.
    """
    assert owner.execution_id is not None
    rows = _living(raw_db, clock, owner.execution_id, folder)
    return [_seen(row, is_gone=False) for row in rows if row.id > owner.id and row.kind == owner.kind]


def was_closed(raw_db: RawDatabase, owner: OwnerProcess) -> bool:
    """Return whether this process was taken for gone: its row was closed by another start while it stood still."""
    with raw_db.read() as tx:
        return not is_open(tx, owner_id=owner.id)


def _living(raw_db: RawDatabase, clock: Clock, execution_id: int, folder: Path) -> list[OwnerRow]:
    with raw_db.read() as tx:
        rows = open_owners_of(tx, execution_id=execution_id)
    silent_since = to_micros(clock.now() - GONE)
    return [row for row in rows if _life(row, folder, silent_since=silent_since) is Life.ALIVE]
