"""SQLite only: locks that another process holds, and the shared clock.

The clock is the kernel's clock since boot, plus an anchor that all processes of the boot share
(`processes/boot_clock.py` sets it). A step of the wall clock does not move it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from holdfast.clock import Clock, boot_id, to_micros
from holdfast.errors import Unavailable


class DatabaseLocked(Unavailable):
    """Another process holds the lock of the SQLite file."""

    code = "database_locked"

    def __init__(self, path: Path) -> None:
        super().__init__(
            f"another process keeps the database {path} locked; end its transaction (fuser {path.name} lists the "
            "processes), then try again"
        )


def is_locked(exc: sqlite3.Error) -> bool:
    """Return whether another connection held a lock for longer than this one waited."""
    return exc.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


ANCHOR = "SELECT micros FROM clock_anchors WHERE boot_id = ?"


def since_boot(machine: Clock) -> int:
    """Return the microseconds of the kernel's clock, which continues in suspend and is the same in all processes."""
    return round(machine.monotonic() * 1_000_000)


def boot_micros(execute: Callable[[str, tuple[str]], Sequence[Sequence[Any]]], machine: Clock) -> int:
    """Return the time of a SQLite database; the wall time if no anchor is stored for this boot.

    That is the case if the system has no boot id (macOS), or the file is read-only, so that nothing is leased.
    """
    boot = boot_id()
    rows = execute(ANCHOR, (boot,)) if boot is not None else ()
    return int(rows[0][0]) + since_boot(machine) if rows else to_micros(machine.now())
