"""The rows of WARC files: registered when opened, completed when sealed."""

from __future__ import annotations

from typing import NamedTuple

from holdfast.db.hot import Transaction


class OpenFile(NamedTuple):
    """A file that some process began and has not sealed."""

    id: int
    execution_id: int
    path: str


class Sealing(NamedTuple):
    """What is known of a file once it is sealed."""

    size: int
    sha256: str
    crc32: int
    records: int
    repaired: bool = False


def insert_file(tx: Transaction, *, execution_id: int, owner_id: int, path: str, now: int) -> int:
    """Register a file before it is created; return its id."""
    rows = tx.execute(
        "INSERT INTO warc_files(execution_id, owner_id, path, state, created_at)"
        " VALUES (?, ?, ?, 'open', ?) RETURNING id",
        (execution_id, owner_id, path, now),
    )
    return int(rows[0][0])


def seal_file(tx: Transaction, file_id: int, sealing: Sealing, *, now: int) -> None:
    """Say that a file is whole and will never change."""
    tx.execute(
        "UPDATE warc_files SET state = 'sealed', size = ?, sha256 = ?, crc32 = ?, record_count = ?, repaired = ?,"
        " sealed_at = ? WHERE id = ? AND state = 'open'",
        (*sealing, now, file_id),
    )


def discard_file(tx: Transaction, file_id: int) -> None:
    """Say that a file is gone: it never held a record, or its execution was discarded."""
    tx.execute("UPDATE warc_files SET state = 'discarded' WHERE id = ?", (file_id,))


def open_files(tx: Transaction, *, owner_id: int) -> list[OpenFile]:
    """Return the files that an owner began and did not seal."""
    rows = tx.execute(
        "SELECT id, execution_id, path FROM warc_files WHERE owner_id = ? AND state = 'open' ORDER BY id", (owner_id,)
    )
    return [OpenFile(*row) for row in rows]


def path_of(tx: Transaction, file_id: int) -> str | None:
    """Return where a file lies, unless it was discarded."""
    rows = tx.execute("SELECT path FROM warc_files WHERE id = ? AND state <> 'discarded'", (file_id,))
    return str(rows[0][0]) if rows else None


class FileRow(NamedTuple):
    """What is known of one file of an execution."""

    id: int
    path: str
    state: str
    size: int | None
    record_count: int | None
    repaired: bool


def files_of(tx: Transaction, *, execution_id: int) -> list[FileRow]:
    """Return an execution's files, oldest first."""
    rows = tx.execute(
        "SELECT id, path, state, size, record_count, repaired FROM warc_files"
        " WHERE execution_id = ? AND state <> 'discarded' ORDER BY id",
        (execution_id,),
    )
    return [FileRow(row[0], row[1], row[2], row[3], row[4], bool(row[5])) for row in rows]


def pointed_offsets(tx: Transaction, file_id: int) -> set[int]:
    """Return the offsets in a file that settled attempts point to; what is not among them is an orphan."""
    rows = tx.execute("SELECT warc_offset FROM page_crawls WHERE warc_file_id = ?", (file_id,))
    return {int(row[0]) for row in rows}
