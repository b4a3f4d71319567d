"""Whether the SQLite file that is open still is the one at its path, and whether it is whole.

A file that was moved away, deleted or replaced goes on answering processes that have it open: they would read what no
other sees, and write what is lost when the last of them ends.
"""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

from holdfast.errors import HoldfastError, Unavailable

_PRIMARY = 0xFF
"""The bits of an extended result code that say what kind of trouble it is."""


class DatabaseMoved(Unavailable):
    """The SQLite file was moved away or replaced while it was open."""

    code = "database_moved"

    def __init__(self, path: Path) -> None:
        super().__init__(
            f"the database {path} was moved away or replaced while it was in use; put it back, or start this anew"
        )


class DatabaseDamaged(HoldfastError):
    """The SQLite file is damaged. Not Unavailable: that is waited for, and no waiting mends a file."""

    code = "database_damaged"


def damaged(path: Path | None, trouble: str) -> DatabaseDamaged:
    """Return the error that tells of a damaged file and of the two ways out."""
    return DatabaseDamaged(
        f"the database {path} is damaged: {trouble}; end all processes, move the file away, and put a copy of it back, "
        "or make its rows anew from the WARC files: holdfast index --rebuild"
    )


def damage_of(exc: BaseException | None, path: Path | None) -> DatabaseDamaged | None:
    """Return the house's error for a file that SQLite cannot read as a database; None for any other trouble."""
    code = getattr(exc, "sqlite_errorcode", None)
    if code is None or code & _PRIMARY not in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return None
    return damaged(path, str(exc))


class OpenFile:
    """A SQLite file by its inode, as it was before it was opened."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._opened = self._found()

    def note(self) -> None:
        """Remember which file is open, where there was none before the first connection made it."""
        self._opened = self._opened or self._found()

    def demand_same(self) -> None:
        """Refuse, with DatabaseMoved, if another file or none is at the path by now. One look at the folder."""
        if not self.is_same():
            raise DatabaseMoved(self._path)

    def is_same(self) -> bool:
        """Return whether the path still leads to the file that was opened first; so it is before any was."""
        return self._opened is None or self._found() == self._opened

    def _found(self) -> tuple[int, int] | None:
        try:
            found = os.stat(self._path)  # noqa: PTH116 - a third of the time of Path.stat, for every transaction
        except OSError:
            return None
        return found.st_dev, found.st_ino
