"""Owners: processes that may hold leases, and whether they are alive.

If a run file is visible from here, its lock decides, whatever its machine is called now: replaced containers
and renamed machines are cleaned up immediately. A process whose run file is not visible belongs to another
machine; only its missing heartbeat shows that it is gone.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from enum import Enum, auto
from pathlib import Path
from typing import Final

from holdfast.clock import Clock, from_micros, to_micros
from holdfast.db.raw import RawDatabase, Row, Transaction, synchronise
from holdfast.processes.runfile import RunFile, claimed, has_died, is_held, is_hidden
from holdfast.values import dataclass

GONE = timedelta(minutes=2)
"""Time without heartbeat after which an owner counts as gone if its lock gives no answer."""
WORKER_KINDS: Final = ("worker", "runner")
"""Owners that run jobs, with or without a scheduler. Supervisors, crawl processes and indexers do not."""
OPERATING: Final = "operations"
"""A worker that runs no crawls, only operations: queued crawls still wait for one that does."""

VISITOR: Final = "visitor"
"""Owners that make a few requests outside any crawl. Their rows are deleted when they end: nothing refers to them."""


class OwnerState(Enum):
    ALIVE = auto()
    DEAD = auto()
    """Its lock is free and the kernel that ran it released it; or its files are here and its heartbeat stopped."""
    AWAY = auto()
    """It belongs to another machine and has been silent for long; files on that machine must not be touched."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerRow:
    """A process that holds or held leases, as shown by its row and its run file."""

    id: int
    kind: str
    host: str
    pid: int
    run_path: Path
    """Where its run file was created; after `judged`, its current path."""
    heartbeat_at: datetime
    state: OwnerState = OwnerState.ALIVE
    is_silent: bool = False
    """Whether the last heartbeat is older than `GONE`."""

    @property
    def name(self) -> str:
        """Its name for people."""
        return f"{self.host}/{self.id}"

    @property
    def is_gone(self) -> bool:
        """Whether its lock is free (if its run file is visible from here) or it has been silent for too long."""
        return self.is_silent or self.state is OwnerState.DEAD

    @property
    def is_away(self) -> bool:
        """Whether it belongs to another machine: its leases are free, but only its files on this machine may be
        touched.
        """
        return self.state is OwnerState.AWAY


_COLUMNS = "id, kind, host, pid, run_file, heartbeat_at"


def _owner_row(row: Row) -> OwnerRow:
    number, kind, host, pid, run_file, at = row
    return OwnerRow(id=number, kind=kind, host=host, pid=pid, run_path=Path(run_file), heartbeat_at=from_micros(at))


def _open_owners(
    raw_db: RawDatabase, clock: Clock, folder: Path, which: str = "", values: tuple[object, ...] = ()
) -> list[OwnerRow]:
    """Return the owners whose rows are open, with their state."""
    with raw_db.read() as tx:
        rows = tx.execute(f"SELECT {_COLUMNS} FROM owners WHERE ended_at IS NULL {which} ORDER BY id", values)  # noqa: S608
    silent_since = clock.now() - GONE
    return [judged(_owner_row(row), folder, silent_since=silent_since) for row in rows]


def _is_open(raw_db: RawDatabase, owner_id: int) -> bool:
    with raw_db.read() as tx:
        return bool(tx.execute("SELECT 1 FROM owners WHERE id = ? AND ended_at IS NULL", (owner_id,)))


_UNCHANGED = "id = ? AND ended_at IS NULL AND heartbeat_at = ?"
"""Condition that an owner is still as it was judged: one that is back since has sent a heartbeat."""


def _close_row(tx: Transaction, clock: Clock, kind: str, which: str, values: tuple[int, ...]) -> bool:
    """Close an owner's row, or delete it if the owner is a visitor; return False if there is no such row."""
    if kind == VISITOR:
        return bool(tx.execute(f"DELETE FROM owners WHERE {which} RETURNING id", values))  # noqa: S608
    now = to_micros(clock.now())
    return bool(tx.execute(f"UPDATE owners SET ended_at = ? WHERE {which} RETURNING id", (now, *values)))  # noqa: S608


def delete_ended_visitors(raw_db: RawDatabase) -> None:
    which = "FROM owners WHERE kind = ? AND ended_at IS NOT NULL"
    with raw_db.read() as tx:
        is_any = tx.execute(f"SELECT 1 {which} LIMIT 1", (VISITOR,))
    if is_any:
        with raw_db.write() as tx:
            tx.execute(f"DELETE {which}", (VISITOR,))


class OwnerProcess:
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
        """`directory` is the id of a crawl worker's data directory: it shows others that its files are accessible."""
        self._raw_db, self._clock, self._directory = raw_db, clock, directory
        self.run = run
        self.kind = kind
        self.execution_id = execution_id
        try:
            self.id = self._register()
            # The clock may have changed since this process read it; from here on it stays.
            synchronise(clock)
        except BaseException:
            # A worker retries while the database is unavailable: each attempt would leave a locked file.
            run.close()
            raise

    def _register(self) -> int:
        now = to_micros(self._clock.now())
        # Store an absolute path: a later start may run in another folder.
        run_file = str(self.run.path.resolve())
        with self._raw_db.write() as tx:
            rows = tx.execute(
                "INSERT INTO owners(kind, host, pid, run_file, execution_id, started_at, heartbeat_at, directory)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?) RETURNING id",
                (self.kind, socket.gethostname(), os.getpid(), run_file, self.execution_id, now, now, self._directory),
            )
        return int(rows[0][0])

    @property
    def name(self) -> str:
        """Its name for people."""
        return f"{socket.gethostname()}/{self.id}"

    def beat(self, tx: Transaction) -> None:
        """Record a heartbeat in the caller's transaction."""
        beat_owner(tx, self._clock, self.id)

    def leave(self, tx: Transaction) -> None:
        """Close the row in the caller's transaction, with this process's last writes; `end` releases the rest."""
        _close_row(tx, self._clock, self.kind, "id = ? AND ended_at IS NULL", (self.id,))

    def end(self) -> None:
        try:
            with self._raw_db.write() as tx:
                self.leave(tx)
        except BaseException:
            # Release the lock now: the process may live for months, and what its row holds must not seem leased.
            self.run.let_go()
            raise
        # Close the file after the row: a start that finds an open row without a run file waits two minutes.
        self.run.close()


def beat_owner(tx: Transaction, clock: Clock, owner_id: int) -> None:
    """Record an owner's heartbeat in the caller's transaction; its leases expire after two minutes without one."""
    # `ended_at = NULL`: a process that was suspended and taken for dead is back, and must be found if it then dies.
    tx.execute("UPDATE owners SET heartbeat_at = ?, ended_at = NULL WHERE id = ?", (to_micros(clock.now()), owner_id))


def located(folder: Path, run_path: Path) -> Path:
    """Return the path of a run file: in this data directory, which may have moved, or where it was created."""
    # Names are random, so no other file has this one.
    ours = folder / run_path.name
    return run_path if not ours.exists() and (is_hidden(run_path) or run_path.exists()) else ours


def judged(owner: OwnerRow, folder: Path, *, silent_since: datetime) -> OwnerRow:
    """Return an owner with its state and the path of its run file. A live process never counts as dead."""
    path, is_silent = located(folder, owner.run_path), owner.heartbeat_at <= silent_since
    return replace(owner, run_path=path, is_silent=is_silent, state=_state(path, is_silent=is_silent))


def _state(path: Path, *, is_silent: bool) -> OwnerState:
    if is_hidden(path):  # of another user: only silence shows that it died, as on another machine
        return OwnerState.AWAY if is_silent else OwnerState.ALIVE
    if has_died(path):
        return OwnerState.DEAD
    if is_held(path) or not is_silent:
        return OwnerState.ALIVE
    # Host names prove nothing: two machines may share one.
    return OwnerState.DEAD if path.exists() else OwnerState.AWAY


def dead_owners(raw_db: RawDatabase, clock: Clock, *, folder: Path) -> list[OwnerRow]:
    """Return the owners that ended without closing their rows, as far as known from here. Changes nothing.

    `cleaning_up` locks one of them.
    """
    return [owner for owner in _open_owners(raw_db, clock, folder) if owner.state is not OwnerState.ALIVE]


@contextmanager
def cleaning_up(raw_db: RawDatabase, owner: OwnerRow) -> Iterator[bool]:
    """Lock a dead owner during its clean-up; yield False if it is back, or another process does or did this."""
    with claimed(owner.run_path) as ours:
        # Check once the claim is held: the list may be minutes old, and another start may have finished since.
        yield ours and _is_unchanged(raw_db, owner)


def _is_unchanged(raw_db: RawDatabase, owner: OwnerRow) -> bool:
    with raw_db.read() as tx:
        return bool(tx.execute(f"SELECT 1 FROM owners WHERE {_UNCHANGED}", _judged_row(owner)))  # noqa: S608


def _judged_row(owner: OwnerRow) -> tuple[int, int]:
    return owner.id, to_micros(owner.heartbeat_at)


def close_owner(raw_db: RawDatabase, clock: Clock, owner: OwnerRow) -> bool:
    """Close a dead owner's row after its leases are free; return False if it is back, or another process did it."""
    with raw_db.write() as tx:
        closed = _close_row(tx, clock, owner.kind, _UNCHANGED, _judged_row(owner))
    if closed:
        owner.run_path.unlink(missing_ok=True)
    return closed


def seen_owners(raw_db: RawDatabase, clock: Clock, *, kind: str, folder: Path) -> list[OwnerRow]:
    """Return the owners of one kind, on all machines, whose rows are open. Changes nothing."""
    return _open_owners(raw_db, clock, folder, "AND kind = ?", (kind,))


def living_owners(raw_db: RawDatabase, clock: Clock, *, execution_id: int, folder: Path) -> list[OwnerRow]:
    """Return the live owners working on an execution, in any role and on any machine, as far as known from here."""
    owners = _open_owners(raw_db, clock, folder, "AND execution_id = ?", (execution_id,))
    return [owner for owner in owners if owner.state is OwnerState.ALIVE]


def is_working(raw_db: RawDatabase, clock: Clock, *, execution_id: int, kind: str, folder: Path) -> bool:
    """Return whether a live process on any machine works on the execution in this role."""
    living = living_owners(raw_db, clock, execution_id=execution_id, folder=folder)
    return any(owner.kind == kind for owner in living)


def rivals(raw_db: RawDatabase, clock: Clock, owner: OwnerProcess, *, folder: Path) -> list[int]:
    """Return the other live owners with the same role on the same execution, oldest first.

    A starting process yields to an earlier one; a later one that stays has found this owner silent and replaced it.
    """
    assert owner.execution_id is not None
    living = living_owners(raw_db, clock, execution_id=owner.execution_id, folder=folder)
    return [one.id for one in living if one.kind == owner.kind and one.id != owner.id]


def was_closed(raw_db: RawDatabase, owner: OwnerProcess) -> bool:
    """Return whether another process closed this process's row because it was unresponsive and counted as gone."""
    return not _is_open(raw_db, owner.id)
