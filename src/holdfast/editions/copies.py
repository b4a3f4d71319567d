"""Copies of an edition's public files without what was withdrawn: made once after each change, then read as they lie.

They lie in the data directory's cache and may be thrown away at any moment. One process makes a copy at a time; others
are told to come back. The cache has a size: beyond it, what was asked for longest ago goes; a reader keeps its file.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import BinaryIO

from holdfast.coordination.disk import Stored, trim
from holdfast.coordination.turns import alone
from holdfast.editions.refusals import CopyBusy
from holdfast.errors import NoSpace
from holdfast.warc.outfile import sync_directory

_BUSY = "this file is being prepared, because something was withdrawn; ask again in a few seconds"
_TRIES = 3
_UNFINISHED = ".new"


def open_copy(
    place: Path, path: Path, word: str, clear: Callable[[Path], Iterable[bytes]], *, most_bytes: int
) -> BinaryIO:
    """Return the copy of a file as `clear` makes it, open for reading; made anew if the file or `word` is another.

    All copies beside `place` together take `most_bytes`, or what this one alone takes if that is more. CopyBusy while
    another process makes it; NoSpace; FileNotFoundError if the file is gone.
    """
    for _ in range(_TRIES):
        found = path.stat()
        copy = place / f"{path.name}.{found.st_mtime_ns:x}-{found.st_size:x}-{word}"
        try:
            opened = copy.open("rb")
        except FileNotFoundError:
            _make(copy, path, clear)
            _trim(place.parent, most_bytes, keep=copy)
        else:
            with suppress(OSError):  # gone since, or of another owner: its age stays as it is
                os.utime(copy)
            return opened
    raise CopyBusy(_BUSY)  # it is replaced as fast as it is made


def _make(copy: Path, path: Path, clear: Callable[[Path], Iterable[bytes]]) -> None:
    try:
        copy.parent.mkdir(parents=True, exist_ok=True)
        with alone(copy.parent / f".{path.name}.lock", CopyBusy(_BUSY)):
            if copy.exists():
                return
            for old in copy.parent.glob(f"{path.name}.*"):  # those who read one keep it
                old.unlink(missing_ok=True)
            with NamedTemporaryFile(dir=copy.parent, prefix=f"{path.name}.", suffix=_UNFINISHED, delete=False) as fresh:
                fresh.writelines(clear(path))
                fresh.flush()
                os.fsync(fresh.fileno())
            Path(fresh.name).replace(copy)
            sync_directory(copy.parent)
    except OSError as exc:
        raise NoSpace(f"cannot write a copy of {path.name}: {exc.strerror}; free some space and try again") from exc


def _trim(cache: Path, most_bytes: int, *, keep: Path) -> None:
    """Remove copies until all editions together take no more than they may; what is being written is not counted."""
    found: list[Stored] = []
    for path in cache.glob("*/[!.]*"):
        with suppress(FileNotFoundError):  # one that another process removes meanwhile
            if path.suffix != _UNFINISHED:
                about = path.stat()
                found.append(Stored(about.st_mtime_ns, path, about.st_blocks * 512))
    trim(found, most_bytes, keep=keep, remove=_remove)


def _remove(copy: Path) -> bool:
    copy.unlink(missing_ok=True)
    return True
