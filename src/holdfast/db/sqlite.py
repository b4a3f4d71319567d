"""What is special about a SQLite file: the lock that another process may keep, and its clock.

The clock is the kernel's clock since boot, with one anchor that all processes of the boot share.

A step of the wall clock changes nothing while a run or an operation is at work. The anchor is the wall time at which
this boot began, as its first process read it. While nothing runs, the clock follows a wall clock that is ahead (a
machine without a battery-backed clock learns the time after its first start); it never goes back within a boot.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol

from holdfast.clock import Clock, boot_id, to_micros
from holdfast.errors import Unavailable


class DatabaseLocked(Unavailable):
    """Another process keeps the lock of the SQLite file."""

    code = "database_locked"

    def __init__(self, path: Path) -> None:
        super().__init__(
            f"another process keeps the database {path} locked; end its transaction (fuser {path.name} lists the "
            "processes), then try again"
        )


def is_locked(exc: sqlite3.Error) -> bool:
    """Return whether another connection kept a lock for longer than this one waited."""
    return exc.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


class Statements(Protocol):
    """A transaction as far as it is needed here (`db.raw.Transaction`)."""

    def execute(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Run one statement and return its rows."""
        ...


_Opens = Callable[[], AbstractContextManager[Statements]]
ANCHOR = "SELECT micros FROM clock_anchors WHERE boot_id = ?"
_IS_BUSY = """
SELECT 1 WHERE EXISTS (SELECT 1 FROM executions WHERE state = 'running')
    OR EXISTS (SELECT 1 FROM operations WHERE state = 'running')"""
_PUT = """
INSERT INTO clock_anchors (boot_id, micros) VALUES (?, ?)
ON CONFLICT (boot_id) DO UPDATE SET micros = excluded.micros"""
_STEP = 1_000_000
_DAY = 86_400_000_000


def since_boot(machine: Clock) -> int:
    """Return the microseconds of the kernel's clock, which runs on in suspend and is the same in all processes."""
    return round(machine.monotonic() * 1_000_000)


def boot_micros(read: _Opens, write: _Opens, machine: Clock) -> int:
    """Return the time of a SQLite database; the wall time where the system names no boot.

    DatabaseReadOnly if the first process of a boot cannot store the anchor.
    """
    wall, passed, boot = to_micros(machine.now()), since_boot(machine), boot_id()
    if boot is None:
        return wall
    with read() as tx:
        rows = tx.execute(ANCHOR, (boot,))
    if rows and wall - passed - rows[0][0] <= _STEP:
        return int(rows[0][0]) + passed
    with write() as tx:
        return _anchored(tx, boot, wall - passed, passed) + passed


def _anchored(tx: Statements, boot: str, offset: int, passed: int) -> int:
    """Return the anchor of this boot, stored or moved forward where that is due."""
    # Read again: another process may have stored it meanwhile.
    rows = tx.execute(ANCHOR, (boot,))
    if rows and (rows[0][0] >= offset or tx.execute(_IS_BUSY)):
        return int(rows[0][0])
    if not rows:
        # A clock that boots behind (by a time zone, or for want of a battery) must not make waits of the last boot
        # longer; one that is behind by more than a day corrects a clock that was plainly wrong.
        last = tx.execute("SELECT max(heartbeat_at) FROM owners")[0][0] or 0
        if 0 < last - passed - offset < _DAY:
            offset = last - passed
    tx.execute(_PUT, (boot, offset))
    return offset
