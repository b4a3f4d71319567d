"""What a SQLite file that another process keeps locked is called."""

from __future__ import annotations

import sqlite3
from pathlib import Path

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
