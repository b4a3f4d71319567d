"""The files of an edition: written into a folder of their own, synced, and put in place together.

A reader sees a file whole or not at all. One process writes an edition's files at a time; others come back later.
"""

from __future__ import annotations

import csv
import io
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from tempfile import NamedTemporaryFile, mkdtemp
from types import TracebackType
from typing import Any, BinaryIO, Final, NamedTuple, Self

from holdfast.coordination.disk import CachedFile, trim
from holdfast.coordination.runfile import alone
from holdfast.errors import Conflict, NoSpace, NotFound, Unavailable
from holdfast.outside_text import guarded
from holdfast.warc.outfile import sync_directory

LEDGER, MANIFEST = "target-ledger.jsonl", "capture-manifest.jsonl"
REPORT_JSON, REPORT_MD, CSV = "coverage-report.json", "coverage-report.md", "coverage.csv"
FROZEN = "frozen.jsonl"
_BUFFER = 1 << 20


class ArtefactNotFound(NotFound):
    """This file of an edition has not been written, or is not for the public."""

    code = "artefact_not_found"


class CopyBusy(Unavailable):
    """The public copy of a file is being made."""

    code = "copy_busy"


class EditionBusy(Conflict):
    """Another process writes the files of this edition at this moment."""

    code = "edition_busy"


def edition_folder(home: Path, code: str, year: int) -> Path:
    """Return where the files of an edition lie."""
    return home.resolve() / "editions" / code / str(year)


def stored_file(home: Path, stored: str) -> Path | None:
    """Return where a file of an edition lies that a row names so, if it is there; None if none may lie there."""
    root = home.resolve() / "editions"
    try:
        # A database may be restored from elsewhere or tampered with: links are followed, and what is outside is
        # refused.
        path = (home.resolve() / stored).resolve()
        return path if path.is_relative_to(root) and path.is_file() else None
    except (OSError, ValueError):
        return None


# Line ends of every kind: a cell that breaks its line would shift all rows below it in simple readers.
_CONTROL: Final = dict.fromkeys([*range(32), *range(127, 160), 0x2028, 0x2029], " ")


def csv_line(cells: Iterable[Any]) -> bytes:
    """Return a line of a table, one line whatever is in it; no spreadsheet takes a cell of it for a formula."""
    return table_line(_cell(cell) if isinstance(cell, str) else cell for cell in cells)


def table_line(cells: Iterable[Any]) -> bytes:
    """Return a line of a table with cells that are safe already."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerow(cells)
    return out.getvalue().encode("utf-8", "replace")


def _cell(value: str) -> str:
    return guarded(value if value.isprintable() else value.translate(_CONTROL))


def utc_text(moment: datetime) -> str:
    """Return a moment as the files of an edition write it: 2026-01-01T00:00:00Z."""
    return moment.isoformat().replace("+00:00", "Z")


class WrittenFile(NamedTuple):
    """A file that is ready."""

    name: str
    size: int
    rows: int
    sha256: str

    def described(self) -> dict[str, object]:
        """Return it as a report lists it; by name, never by where it lies."""
        return {"file": self.name, "bytes": self.size, "rows": self.rows, "sha256": self.sha256}


class DraftFile:
    """One file being written; counts its lines and its bytes and knows its digest."""

    def __init__(self, path: Path) -> None:
        self._path, self._hasher = path, sha256()
        self._file: BinaryIO = path.open("xb", buffering=_BUFFER)
        self.rows = self.size = 0

    def line(self, content: bytes) -> None:
        """Write one line, its end included."""
        self.write(content)
        self.rows += 1

    def write(self, content: bytes) -> None:
        """Write bytes."""
        self._file.write(content)
        self._hasher.update(content)
        self.size += len(content)

    def close(self) -> WrittenFile:
        """Sync the file and return what it is."""
        self._file.flush()
        # Before the rename that publishes it: a power loss must not leave a whole name with half the bytes.
        os.fsync(self._file.fileno())
        self._file.close()
        return WrittenFile(self._path.name, self.size, self.rows, self._hasher.hexdigest())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, _exc: BaseException | None, _tb: TracebackType | None) -> None:
        self._file.close()


class EditionDraft:
    """A folder in which the next files of an edition are written."""

    def __init__(self, folder: Path, scratch: Path) -> None:
        self.folder, self.scratch = folder, scratch

    def sheet(self, name: str) -> DraftFile:
        """Begin a file."""
        return DraftFile(self.scratch / name)

    def whole(self, name: str, content: bytes) -> WrittenFile:
        """Write a file at once."""
        with self.sheet(name) as sheet:
            sheet.write(content)
            return sheet.close()

    def publish(self, *files: WrittenFile) -> None:
        """Put files in place, in this order; the last one is what readers go by."""
        for file in files:
            # A rename within one file system: readers have the old file or the new one, never a part.
            (self.scratch / file.name).replace(self.folder / file.name)
        handle = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


@contextmanager
def draft(folder: Path) -> Iterator[EditionDraft]:
    """Open a draft of an edition's files, removed at the end; EditionBusy while another process has one, NoSpace."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with alone(folder / ".lock", EditionBusy(_BUSY)):
            # Under the lock no other process builds here: what is left is of one that was killed.
            for left in folder.glob(".building-*"):
                shutil.rmtree(left, ignore_errors=True)
            scratch = Path(mkdtemp(dir=folder, prefix=".building-"))
            try:
                yield EditionDraft(folder, scratch)
            finally:
                shutil.rmtree(scratch, ignore_errors=True)
    except OSError as exc:
        # Also a read-only disk or a quota: for the caller it is the same, nothing was changed.
        raise NoSpace(f"cannot write the files of the edition: {exc.strerror}; free some space and try again") from exc


_BUSY = "the files of this edition are being written; try again in a moment"


_COPY_BUSY = "this file is being prepared, because something was withdrawn; ask again in a few seconds"
_TRIES = 3
_UNFINISHED = ".new"


def open_copy(
    place: Path, path: Path, version: str, clear: Callable[[Path], Iterable[bytes]], *, most_bytes: int
) -> BinaryIO:
    """Return the copy of a file as `clear` makes it, open for reading; made anew if the file or `version` is another.

    All copies beside `place` together take `most_bytes`, or what this one alone takes if that is more. CopyBusy while
    another process makes it; NoSpace; FileNotFoundError if the file is gone.
    """
    for _ in range(_TRIES):
        found = path.stat()
        # Named by the file's date and size and by the withdrawals in force: whatever changes, the old copy is not
        # found.
        copy = place / f"{path.name}.{found.st_mtime_ns:x}-{found.st_size:x}-{version}"
        try:
            opened = copy.open("rb")
        except FileNotFoundError:
            _make(copy, path, clear)
            _trim(place.parent, most_bytes, keep=copy)
        else:
            with suppress(OSError):  # gone since, or of another owner: its age stays as it is
                os.utime(copy)
            return opened
    raise CopyBusy(_COPY_BUSY)  # it is replaced as fast as it is made


def _make(copy: Path, path: Path, clear: Callable[[Path], Iterable[bytes]]) -> None:
    try:
        copy.parent.mkdir(parents=True, exist_ok=True)
        with alone(copy.parent / f".{path.name}.lock", CopyBusy(_COPY_BUSY)):
            # Another process made it between our look and the lock.
            if copy.exists():
                return
            # On POSIX a reader that has the old copy open keeps it until it is closed.
            for old in copy.parent.glob(f"{path.name}.*"):
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
    found: list[CachedFile] = []
    for path in cache.glob("*/[!.]*"):
        with suppress(FileNotFoundError):  # one that another process removes meanwhile
            if path.suffix != _UNFINISHED:
                about = path.stat()
                # Blocks, not bytes: what the copy takes on the disk.
                found.append(CachedFile(about.st_mtime_ns, path, about.st_blocks * 512))
    trim(found, most_bytes, keep=keep, remove=_remove)


def _remove(copy: Path) -> bool:
    copy.unlink(missing_ok=True)
    return True
