"""The files of an edition: written in a temporary folder, synced, and moved into place together.

A reader sees a file whole or not at all. One process writes an edition's files at a time; others get
EditionBusy.
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

from holdfast.errors import Conflict, NoSpace, NotFound, Unavailable
from holdfast.outside_text import guarded
from holdfast.processes.disk import CachedFile, trim
from holdfast.processes.runfile import alone
from holdfast.storage.disk import sync_directory

LEDGER, MANIFEST = "target-ledger.jsonl", "capture-manifest.jsonl"
REPORT_JSON, REPORT_MD, CSV = "coverage-report.json", "coverage-report.md", "coverage.csv"
FROZEN = "frozen.jsonl"
_BUFFER = 1 << 20


class ArtefactNotFound(NotFound):
    """This file of an edition has not been written, or is not public."""

    code = "artefact_not_found"


class CopyBusy(Unavailable):
    """The public copy of a file is being created."""

    code = "copy_busy"


class EditionBusy(Conflict):
    """Another process is writing the files of this edition."""

    code = "edition_busy"


def edition_folder(home: Path, code: str, year: int) -> Path:
    return home.resolve() / "editions" / code / str(year)


def stored_file(home: Path, stored: str) -> Path | None:
    """Return the path of an edition's file named by a row, if it exists; None if the name is not allowed."""
    root = home.resolve() / "editions"
    try:
        # A database may come from elsewhere or be tampered with: resolve links and reject paths outside.
        path = (home.resolve() / stored).resolve()
        return path if path.is_relative_to(root) and path.is_file() else None
    except (OSError, ValueError):
        return None


# All line ends: a cell that breaks its line would shift all rows below it in simple readers.
_CONTROL: Final = dict.fromkeys([*range(32), *range(127, 160), 0x2028, 0x2029], " ")


def csv_line(cells: Iterable[Any]) -> bytes:
    """Return a CSV line without line breaks or cells that spreadsheets would run as formulas."""
    return table_line(
        guarded(cell if cell.isprintable() else cell.translate(_CONTROL)) if isinstance(cell, str) else cell
        for cell in cells
    )


def table_line(cells: Iterable[Any]) -> bytes:
    """Return a CSV line of cells that are already safe."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerow(cells)
    return out.getvalue().encode("utf-8", "replace")


def utc_text(moment: datetime) -> str:
    """Return a time in the format of edition files: 2026-01-01T00:00:00Z."""
    return moment.isoformat().replace("+00:00", "Z")


class WrittenFile(NamedTuple):
    name: str
    size: int
    rows: int
    sha256: str

    def described(self) -> dict[str, object]:
        """Return its entry in a report, with its name but not its path."""
        return {"file": self.name, "bytes": self.size, "rows": self.rows, "sha256": self.sha256}


class DraftFile:
    """A file being written; counts lines and bytes and computes the digest."""

    def __init__(self, path: Path) -> None:
        self._path, self._hasher = path, sha256()
        self._file: BinaryIO = path.open("xb", buffering=_BUFFER)
        self.rows = self.size = 0

    def line(self, content: bytes) -> None:
        """Write one line, which includes its line end."""
        self.write(content)
        self.rows += 1

    def write(self, content: bytes) -> None:
        self._file.write(content)
        self._hasher.update(content)
        self.size += len(content)

    def close(self) -> WrittenFile:
        self._file.flush()
        # Sync before the rename publishes the file: a power loss must not leave half the bytes under its name.
        os.fsync(self._file.fileno())
        self._file.close()
        return WrittenFile(self._path.name, self.size, self.rows, self._hasher.hexdigest())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, _exc: BaseException | None, _tb: TracebackType | None) -> None:
        self._file.close()


class EditionDraft:
    def __init__(self, folder: Path, scratch: Path) -> None:
        self.folder, self.scratch = folder, scratch

    def sheet(self, name: str) -> DraftFile:
        return DraftFile(self.scratch / name)

    def whole(self, name: str, content: bytes) -> WrittenFile:
        with self.sheet(name) as sheet:
            sheet.write(content)
            return sheet.close()

    def publish(self, *files: WrittenFile) -> None:
        """Move files into place, in this order; readers rely on the last one."""
        for file in files:
            # Rename within one file system: readers get the old file or the new one, never a part.
            (self.scratch / file.name).replace(self.folder / file.name)
        sync_directory(self.folder)


@contextmanager
def draft(folder: Path) -> Iterator[EditionDraft]:
    """Open a draft of an edition's files, deleted at the end; raise EditionBusy if another process has one,
    NoSpace.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with alone(folder / ".lock", EditionBusy(_BUSY)):
            # The lock allows only one builder: leftovers belong to a killed process.
            for left in folder.glob(".building-*"):
                shutil.rmtree(left, ignore_errors=True)
            scratch = Path(mkdtemp(dir=folder, prefix=".building-"))
            try:
                yield EditionDraft(folder, scratch)
            finally:
                shutil.rmtree(scratch, ignore_errors=True)
    except OSError as exc:
        # Covers a read-only disk and a quota, too: for the caller nothing was changed.
        raise NoSpace(f"cannot write the files of the edition: {exc.strerror}; free some space and try again") from exc


_BUSY = "the files of this edition are being written; try again in a moment"


_COPY_BUSY = "this file is being prepared, because something was withdrawn; ask again in a few seconds"
_TRIES = 3
_UNFINISHED = ".new"


def open_copy(
    place: Path, path: Path, version: str, clear: Callable[[Path], Iterable[bytes]], *, most_bytes: int
) -> BinaryIO:
    """Open the copy of a file as `clear` creates it; recreate it if the file or `version` has changed.

    All copies beside `place` together use at most `most_bytes`, or the size of this one if that is more. Raise
    CopyBusy while another process creates it; NoSpace; FileNotFoundError if the file is gone.
    """
    for _ in range(_TRIES):
        found = path.stat()
        # The name contains the file's date and size and the withdrawals in force: after any change the old copy is not
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
            # Another process created it between our check and the lock.
            if copy.exists():
                return
            # On POSIX a reader with the old copy open keeps it until closing it.
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
    """Delete copies until all editions together are within the limit; files being written are not counted."""
    found: list[CachedFile] = []
    for path in cache.glob("*/[!.]*"):
        with suppress(FileNotFoundError):  # one that another process removes meanwhile
            if path.suffix != _UNFINISHED:
                about = path.stat()
                # Count blocks, not bytes: the copy's real size on disk.
                found.append(CachedFile(about.st_mtime_ns, path, about.st_blocks * 512))
    trim(found, most_bytes, keep=keep, remove=_remove)


def _remove(copy: Path) -> bool:
    copy.unlink(missing_ok=True)
    return True
