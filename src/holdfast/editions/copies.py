"""Copies of an edition's public files without what was withdrawn: made once after each change, then read as they lie.

They lie in the data directory's cache and may be thrown away at any moment. One process makes a copy at a time; others
are told to come back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import BinaryIO

from holdfast.coordination.turns import alone
from holdfast.editions.refusals import CopyBusy
from holdfast.errors import NoSpace

_BUSY = "this file is being prepared, because something was withdrawn; ask again in a few seconds"
_TRIES = 3


def open_copy(place: Path, path: Path, word: str, clear: Callable[[Path], Iterable[bytes]]) -> BinaryIO:
    """Return the copy of a file as `clear` makes it, open for reading; made anew if the file or `word` is another.

    CopyBusy while somebody else makes it; NoSpace; FileNotFoundError if the file is gone.
    """
    for _ in range(_TRIES):
        found = path.stat()
        copy = place / f"{path.name}.{found.st_mtime_ns:x}-{found.st_size:x}-{word}"
        try:
            return copy.open("rb")
        except FileNotFoundError:
            _make(copy, path, clear)
    raise CopyBusy(_BUSY)  # it is replaced as fast as it is made


def _make(copy: Path, path: Path, clear: Callable[[Path], Iterable[bytes]]) -> None:
    try:
        copy.parent.mkdir(parents=True, exist_ok=True)
        with alone(copy.parent / f".{path.name}.lock", CopyBusy(_BUSY)):
            if copy.exists():
                return
            for old in copy.parent.glob(f"{path.name}.*"):  # those who read one keep it
                old.unlink(missing_ok=True)
            with NamedTemporaryFile(dir=copy.parent, prefix=f"{path.name}.", suffix=".new", delete=False) as fresh:
                fresh.writelines(clear(path))
            Path(fresh.name).replace(copy)
    except OSError as exc:
        raise NoSpace(f"cannot write a copy of {path.name}: {exc.strerror}; free some space and try again") from exc
