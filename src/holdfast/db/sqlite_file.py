"""The SQLite file: how it is opened where it may only be read, whether it is whole, and whether what is open still is
what is at its path.

A file that was moved away, deleted or replaced goes on answering processes that have it open: they would read what no
other sees, and write what is lost when the last of them ends.
"""

from __future__ import annotations

import os
import sqlite3
import stat
from pathlib import Path
from urllib.parse import quote

from holdfast.errors import HoldfastError, Unavailable

_PRIMARY = 0xFF
"""The bits of an extended result code that say what kind of trouble it is."""


class DatabaseMoved(Unavailable):
    """The SQLite file was moved away or replaced while it was open."""

    code = "database_moved"

    def __init__(self, path: Path) -> None:
        super().__init__(
            f"the database {path} was moved away or replaced while it was in use, or is written again although it was "
            "opened to be read only; put it back, or start this anew"
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


class DatabaseReadOnly(Unavailable):
    """The SQLite file may be read here, and not be written."""

    code = "database_read_only"

    def __init__(self, path: Path) -> None:
        super().__init__(
            f"nothing can be changed here: {path} or its folder is read-only for this user; make both writable, or "
            "choose another data directory with --home"
        )


def open_sqlite(path: Path, *, timeout_s: float, cached_statements: int = 128) -> sqlite3.Connection:
    """Open a file for any thread, made if it is not there; one that cannot be written is opened to be read.

    sqlite3.Error if that is not possible either: `refused` says what to do.
    """
    address = _read_only_address(path)
    return sqlite3.connect(
        path if address is None else address,
        uri=address is not None,
        timeout=timeout_s,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=cached_statements,
    )


def is_read_only(path: Path) -> bool:
    """Return whether there is such a file and it can only be read."""
    return _read_only_address(path) is not None


def _read_only_address(path: Path) -> str | None:
    log, shared = path.with_name(f"{path.name}-wal"), path.with_name(f"{path.name}-shm")
    if not path.is_file():
        return None
    # A writer needs both files beside it; where its folder takes no new ones they have to be there already.
    if os.access(path, os.W_OK) and (
        os.access(path.parent, os.W_OK) or (os.access(log, os.W_OK) and os.access(shared, os.W_OK))
    ):
        return None
    # Without a log no process writes, and the file is whole in itself: only so can it be read where no file can be made
    # beside it. With a log it is read together with that, as long as its index is there.
    has_log = log.is_file() and log.stat().st_size > 0
    return f"file:{quote(str(path))}?mode=ro" + ("" if has_log else "&immutable=1")


def refused(path: Path, exc: sqlite3.Error) -> Unavailable:
    """Return what to tell of a file that could not be opened or written, with the next step."""
    if not path.parent.is_dir():
        return Unavailable(
            f"there is no folder {path.parent}, so there is no database in it; is its storage mounted? If it never was "
            "there, make it, or choose another data directory with --home"
        )
    if not path.exists() and not os.access(path.parent, os.W_OK):
        return Unavailable(
            f"there is no database in {path.parent}, and none can be made: the folder is read-only for this user; make "
            "it writable, or choose another data directory with --home"
        )
    if is_read_only(path) and exc.sqlite_errorcode & 0xFF == sqlite3.SQLITE_CANTOPEN:
        return Unavailable(
            f"{path} was not closed, and what its last writer did stands in {path.name}-wal, which can only be read "
            "where the folder can be written: make it writable, or copy the data directory to where it is"
        )
    if exc.sqlite_errorcode & 0xFF == sqlite3.SQLITE_READONLY:
        return DatabaseReadOnly(path)
    return Unavailable(f"cannot open the database {path}: {exc}; check the folder and its free space")


class OpenSqliteFile:
    """A SQLite file by its inode, as it was before it was opened."""

    def __init__(self, path: Path) -> None:
        self._path = path
        # What was opened as immutable is read without locks and without the log: right until another user writes it.
        self._is_fixed = "immutable" in (_read_only_address(path) or "")
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

    def _found(self) -> tuple[int, ...] | None:
        try:
            found = os.stat(self._path)  # noqa: PTH116 - a third of the time of Path.stat, for every transaction
        except OSError:
            return None
        # The number of a file that is gone may be given at once to a folder that takes its place.
        identity = found.st_dev, found.st_ino, stat.S_IFMT(found.st_mode)
        if not self._is_fixed:
            return identity
        log = self._path.with_name(f"{self._path.name}-wal")
        return *identity, found.st_mtime_ns, log.stat().st_size if log.exists() else 0
