"""Whether the disk of the database takes what is written; a refusal is noted in the data directory.

A database without room cannot keep a row that says so, and the one of a server lies on a disk that nothing here can
look at. So the note is a small file, which `holdfast status` and `/api/health?details=1` read.
"""

from __future__ import annotations

import errno
import json
import os
import sqlite3
import tempfile
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path
from urllib.parse import unquote

from holdfast.clock import SystemClock
from holdfast.errors import NoSpace
from holdfast.values import dataclass

NOTE = "write_refused.json"
FULL = "the disk of the database is full; free some space, nothing committed is lost"
_OVER_QUOTA = (
    "the disk takes no more of the database, by a quota or a limit on the size of files; lift it, "
    "nothing committed is lost"
)
_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_PRIMARY = 0xFF
_PROBE_BYTES = 64 * 1024
_STANDS = timedelta(minutes=1)
"""A full disk still takes what fits into pages that are there: a note goes when nothing was refused for so long."""

_clock = SystemClock()
_homes: dict[str, Path] = {}
"""The data directory of each database that this process has opened, by `_key`."""
_noted: set[str] = set()
"""Databases of which a note may stand."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A write that the database did not take for want of room."""

    at: datetime
    message: str

    def sentence(self) -> str:
        """Return it in words."""
        return f"the last write was refused for want of room at {self.at:%Y-%m-%d %H:%M:%S} UTC: {self.message}"


def note_below(home: Path, database_url: str) -> None:
    """Let refusals of this database be noted in a data directory; one that an earlier process left is gone by ours."""
    _homes[_key(database_url)] = home
    if (home / NOTE).exists():
        _noted.add(_key(database_url))


def last_refusal(home: Path) -> Refusal | None:
    """Return the refusal that stands; None if what was written since was taken."""
    try:
        told = json.loads((home / NOTE).read_bytes())
        return Refusal(at=datetime.fromisoformat(told["at"]), message=str(told["message"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def refused(database_url: str, message: str = FULL) -> NoSpace:
    """Return the house's error for a write that found no room, after noting it."""
    key = _key(database_url)
    home = _homes.get(key)
    if home is not None:
        _noted.add(key)
        # As good as it goes: the disk of the note may be the one that is full.
        with suppress(OSError):
            text = json.dumps({"at": _clock.now().isoformat(), "message": message})
            fresh = home / f".{NOTE}.{os.getpid()}"
            fresh.write_text(text)
            fresh.replace(home / NOTE)
    return NoSpace(message)


def taken(database_url: str) -> None:
    """Hear that a write was taken: a note of a refusal that is over goes."""
    key = _key(database_url)
    if key not in _noted or (home := _homes.get(key)) is None:
        return
    found = last_refusal(home)
    if found is not None and timedelta(0) <= _clock.now() - found.at < _STANDS:
        return
    with suppress(OSError):
        (home / NOTE).unlink(missing_ok=True)
        _noted.discard(key)


def sqlite_refusal(path: Path, exc: sqlite3.Error) -> NoSpace | None:
    """Return the error for a write to a file that found no room, noted; None if it failed for something else.

    SQLite tells a full disk by name, a quota and a limit on the size of files only as trouble with writing: then a
    write of ours beside it tells them apart from a disk that is broken.
    """
    address = f"sqlite:///{path}"
    if exc.sqlite_errorcode & _PRIMARY == sqlite3.SQLITE_FULL:
        return refused(address)
    if exc.sqlite_errorcode & _PRIMARY == sqlite3.SQLITE_IOERR and _is_refused_beside(path):
        return refused(address, _OVER_QUOTA)
    return None


def _is_refused_beside(path: Path) -> bool:
    beside = (path, path.with_name(f"{path.name}-wal"))
    try:
        end = max(one.stat().st_size for one in beside if one.exists())
        with tempfile.TemporaryFile(dir=path.parent) as probe:
            os.pwrite(probe.fileno(), b"\0" * _PROBE_BYTES, end)
    except OSError as exc:
        return exc.errno in _NO_ROOM
    except ValueError:
        return False
    return False


def _key(database_url: str) -> str:
    return unquote(database_url.partition("://")[2])
