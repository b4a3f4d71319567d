"""The files of an edition: written into a folder of their own, synced, and put in place together.

Whoever reads one sees it whole. One process writes an edition's files at a time; the others are told to come back.
"""

from __future__ import annotations

import csv
import io
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from tempfile import mkdtemp
from types import TracebackType
from typing import Any, BinaryIO, Final, NamedTuple, Self

from holdfast.coordination.turns import alone
from holdfast.editions.refusals import EditionBusy
from holdfast.errors import NoSpace
from holdfast.spreadsheets import guarded

LEDGER, MANIFEST = "target-ledger.jsonl", "capture-manifest.jsonl"
REPORT_JSON, REPORT_MD, CSV = "coverage-report.json", "coverage-report.md", "coverage.csv"
FROZEN = "frozen.jsonl"
_BUFFER = 1 << 20


def edition_folder(home: Path, code: str, year: int) -> Path:
    """Return where the files of an edition lie."""
    return home.resolve() / "editions" / code / str(year)


def placed(home: Path, stored: str) -> Path | None:
    """Return where a file of an edition lies that a row names so, if it is there; None if none may lie there.

    A database may be restored from elsewhere or tampered with: links are followed, and what is outside is refused.
    """
    root = home.resolve() / "editions"
    try:
        path = (home.resolve() / stored).resolve()
        return path if path.is_relative_to(root) and path.is_file() else None
    except (OSError, ValueError):
        return None


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


class Written(NamedTuple):
    """A file that is ready."""

    name: str
    size: int
    rows: int
    sha256: str

    def described(self) -> dict[str, object]:
        """Return it as a report lists it; by name, never by where it lies."""
        return {"file": self.name, "bytes": self.size, "rows": self.rows, "sha256": self.sha256}


class Sheet:
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

    def close(self) -> Written:
        """Sync the file and return what it is."""
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        return Written(self._path.name, self.size, self.rows, self._hasher.hexdigest())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, _exc: BaseException | None, _tb: TracebackType | None) -> None:
        self._file.close()


class Draft:
    """A folder in which the next files of an edition are written."""

    def __init__(self, folder: Path, scratch: Path) -> None:
        self.folder, self.scratch = folder, scratch

    def sheet(self, name: str) -> Sheet:
        """Begin a file."""
        return Sheet(self.scratch / name)

    def whole(self, name: str, content: bytes) -> Written:
        """Write a file at once."""
        with self.sheet(name) as sheet:
            sheet.write(content)
            return sheet.close()

    def publish(self, *files: Written) -> None:
        """Put files in place, in this order; the last one is what readers go by."""
        for file in files:
            (self.scratch / file.name).replace(self.folder / file.name)
        handle = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


@contextmanager
def draft(folder: Path) -> Iterator[Draft]:
    """Open a draft of an edition's files, removed at the end; EditionBusy if somebody has one, NoSpace if it fails."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with alone(folder / ".lock", EditionBusy(_BUSY)):
            for left in folder.glob(".building-*"):
                shutil.rmtree(left, ignore_errors=True)
            scratch = Path(mkdtemp(dir=folder, prefix=".building-"))
            try:
                yield Draft(folder, scratch)
            finally:
                shutil.rmtree(scratch, ignore_errors=True)
    except OSError as exc:
        raise NoSpace(f"cannot write the files of the edition: {exc.strerror}; free some space and try again") from exc


_BUSY = "the files of this edition are being written; try again in a moment"
