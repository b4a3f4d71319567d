"""Owners: processes that may hold leases. A start on the same machine finds the dead ones at once by their locks."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from pathlib import Path

from holdfast.clock import Clock, to_micros
from holdfast.coordination import sql
from holdfast.coordination.runfile import InHand, RunFile, in_hand, is_held
from holdfast.db.hot import Hot, Transaction


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
        with hot.write() as tx:
            here = sql.Newcomer(kind, socket.gethostname(), os.getpid(), self.run.path.name, execution_id)
            self.id = sql.insert_owner(tx, here, now=to_micros(clock.now()))

    def beat(self, tx: Transaction) -> None:
        """Say, in the caller's transaction, that we are alive and getting on."""
        sql.beat(tx, owner_id=self.id, now=to_micros(self._clock.now()))

    def end(self) -> None:
        """Say goodbye: leases are released, files are sealed."""
        with self._hot.write() as tx:
            sql.end_owner(tx, owner_id=self.id, now=to_micros(self._clock.now()))
        self.run.close()


def dead_owners(hot: Hot, *, folder: Path) -> list[DeadOwner]:
    """Return the owners of this machine whose file lock is free. Nothing is changed: see `bury`."""
    with hot.read() as tx:
        rows = sql.open_owners(tx, host=socket.gethostname())
    return [
        DeadOwner(
            id=row.id, kind=row.kind, pid=row.pid, execution_id=row.execution_id,
            in_hand=tuple(in_hand(folder / row.run_file)), run_path=folder / row.run_file,
        )
        for row in rows
        if not is_held(folder / row.run_file)
    ]  # fmt: skip


def bury(hot: Hot, clock: Clock, owner: DeadOwner) -> bool:
    """Close a dead owner's row after its leases are free; False if another start did it first."""
    with hot.write() as tx:
        closed = sql.end_owner(tx, owner_id=owner.id, now=to_micros(clock.now()))
    owner.run_path.unlink(missing_ok=True)
    return closed


def is_working(hot: Hot, *, execution_id: int, kind: str, folder: Path) -> bool:
    """Return whether a live process of this machine works on the execution in this role."""
    with hot.read() as tx:
        rows = sql.open_owner_of(tx, execution_id=execution_id, kind=kind)
    return any(is_held(folder / row.run_file) for row in rows)
