"""Owners: processes that may hold leases. A start on the same machine finds the dead ones at once by their locks."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from holdfast.clock import Clock, from_micros, to_micros
from holdfast.coordination import sql
from holdfast.coordination.runfile import InHand, RunFile, claimed, in_hand, is_held
from holdfast.db.hot import Hot, Transaction

GONE = timedelta(minutes=2)
"""Silence after which an owner counts as gone whose run file cannot be found: its lock can say nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeadOwner:
    """A process that ended without saying goodbye, and what it had in hand."""

    id: int
    kind: str
    pid: int
    execution_id: int | None
    in_hand: tuple[InHand, ...]
    run_path: Path


class Owner:
    """This process, as others see it."""

    def __init__(self, hot: Hot, clock: Clock, *, run: RunFile, kind: str, execution_id: int | None) -> None:
        self._hot, self._clock = hot, clock
        self.run = run
        self.kind = kind
        self.execution_id = execution_id
        newcomer = sql.Newcomer(kind, socket.gethostname(), os.getpid(), str(run.path.resolve()), execution_id)
        with hot.write() as tx:
            self.id = sql.insert_owner(tx, newcomer, now=to_micros(clock.now()))

    def beat(self, tx: Transaction) -> None:
        """Say, in the caller's transaction, that we are alive and getting on."""
        sql.beat(tx, owner_id=self.id, now=to_micros(self._clock.now()))

    def end(self) -> None:
        """Say goodbye: leases are released, files are sealed."""
        with self._hot.write() as tx:
            sql.end_owner(tx, owner_id=self.id, now=to_micros(self._clock.now()))
        self.run.close()


def dead_owners(hot: Hot, clock: Clock, *, folder: Path) -> list[DeadOwner]:
    """Return the owners of this machine whose file lock is free. Nothing is changed: see `cleaning_up`.

    An owner whose run file is not to be found (it has another data directory, or that was moved) is dead only if it
    has been silent for long: nothing alive is ever taken for dead.
    """
    with hot.read() as tx:
        rows = sql.open_owners(tx, host=socket.gethostname())
    silent = to_micros(clock.now() - GONE)
    dead = []
    for row in rows:
        path = _locate(folder, row.run_file)
        if is_held(path) or (not path.exists() and row.heartbeat_at > silent):
            continue
        dead.append(
            DeadOwner(
                id=row.id, kind=row.kind, pid=row.pid, execution_id=row.execution_id, in_hand=tuple(in_hand(path)),
                run_path=path,
            )
        )  # fmt: skip
    return dead


@contextmanager
def cleaning_up(hot: Hot, owner: DeadOwner) -> Iterator[bool]:
    """Hold a dead owner while cleaning up after it; False if somebody else is at it, or has done it."""
    with claimed(owner.run_path) as ours:
        if ours:
            with hot.read() as tx:
                ours = sql.is_open(tx, owner_id=owner.id)
        yield ours


def bury(hot: Hot, clock: Clock, owner: DeadOwner) -> bool:
    """Close a dead owner's row after its leases are free; False if another start did it first."""
    with hot.write() as tx:
        closed = sql.end_owner(tx, owner_id=owner.id, now=to_micros(clock.now()))
    owner.run_path.unlink(missing_ok=True)
    return closed


def is_gone(hot: Hot, clock: Clock, owner_id: int, *, folder: Path) -> bool:
    """Return whether an owner of this machine has ended or died; one that nobody knows is gone."""
    with hot.read() as tx:
        found = sql.whereabouts(tx, owner_id=owner_id)
    if found is None or found.ended:
        return True
    path = _locate(folder, found.run_file)
    if is_held(path):
        return False
    return path.exists() or found.heartbeat_at <= to_micros(clock.now() - GONE)


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerSeen:
    """An owner that has not said goodbye, as far as can be told from here."""

    id: int
    host: str
    pid: int
    started_at: datetime
    heartbeat_at: datetime
    is_gone: bool
    """Its lock is free, if it is of this machine; or it has been silent for too long."""


def seen_owners(hot: Hot, clock: Clock, *, kind: str, folder: Path) -> list[OwnerSeen]:
    """Return the owners of one kind, on all machines, that have not said goodbye; nothing is changed."""
    with hot.read() as tx:
        rows = sql.open_of_kind(tx, kind=kind)
    here, silent = socket.gethostname(), to_micros(clock.now() - GONE)
    found = []
    for row in rows:
        dead = row.host == here and not is_held(_locate(folder, row.run_file))
        found.append(
            OwnerSeen(
                id=row.id, host=row.host, pid=row.pid, started_at=from_micros(row.started_at),
                heartbeat_at=from_micros(row.heartbeat_at), is_gone=dead or row.heartbeat_at <= silent,
            )
        )  # fmt: skip
    return found


def is_working(hot: Hot, *, execution_id: int, kind: str, folder: Path) -> bool:
    """Return whether a live process of this machine works on the execution in this role."""
    return any(is_held(_locate(folder, row.run_file)) for row in _rows(hot, execution_id, kind))


def has_rival(hot: Hot, owner: Owner, *, folder: Path) -> bool:
    """Return whether a live owner has had the same role on the same execution for longer: of two, the later yields."""
    assert owner.execution_id is not None
    rows = _rows(hot, owner.execution_id, owner.kind)
    return any(row.id < owner.id and is_held(_locate(folder, row.run_file)) for row in rows)


def _rows(hot: Hot, execution_id: int, kind: str) -> list[sql.OwnerRow]:
    with hot.read() as tx:
        return sql.open_owner_of(tx, execution_id=execution_id, kind=kind)


def _locate(folder: Path, run_file: str) -> Path:
    """Return where a run file lies: where it was made, or in this data directory if that was moved since."""
    path = Path(run_file)
    return path if path.exists() else folder / path.name
