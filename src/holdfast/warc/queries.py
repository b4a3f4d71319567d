"""The rows of WARC files: registered when opened, completed when sealed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from holdfast.db.raw import Transaction


class UnsealedFile(NamedTuple):
    """A file that some process began and has not sealed."""

    id: int
    execution_id: int
    path: str


class Sealing(NamedTuple):
    """What is known of a file once it is sealed."""

    size: int
    sha256: str
    crc32: int
    records: int | None
    """None for an imported file that nobody has read yet."""
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


def open_files(tx: Transaction, *, owner_id: int) -> list[UnsealedFile]:
    """Return the files that an owner began and did not seal."""
    rows = tx.execute(
        "SELECT id, execution_id, path FROM warc_files WHERE owner_id = ? AND state = 'open' ORDER BY id", (owner_id,)
    )
    return [UnsealedFile(*row) for row in rows]


def stray_files(tx: Transaction) -> list[UnsealedFile]:
    """Return the files that were begun and not sealed by owners whose rows are closed; there should be none."""
    rows = tx.execute(
        "SELECT f.id, f.execution_id, f.path FROM warc_files f JOIN owners o ON o.id = f.owner_id"
        " WHERE f.state = 'open' AND o.ended_at IS NOT NULL ORDER BY f.id"
    )
    return [UnsealedFile(*row) for row in rows]


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


class ImportedFileRow(NamedTuple):
    """A whole file that came from elsewhere, and is sealed from the start."""

    execution_id: int
    path: str
    sealing: Sealing
    origin: str
    origin_sha256: str


def insert_imported(tx: Transaction, file: ImportedFileRow, *, now: int) -> int:
    """Register a file that is in its place already; return its id."""
    size, sha256, crc32, records, repaired = file.sealing
    rows = tx.execute(
        "INSERT INTO warc_files(execution_id, path, state, size, sha256, crc32, record_count, repaired, created_at,"
        " sealed_at, origin, origin_sha256) VALUES (?, ?, 'sealed', ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id",
        (
            file.execution_id,
            file.path,
            size,
            sha256,
            crc32,
            records,
            repaired,
            now,
            now,
            file.origin,
            file.origin_sha256,
        ),
    )
    return int(rows[0][0])


class ListedFile(NamedTuple):
    """A file that a manifest lists under its id."""

    id: int
    path: str
    """As a row names it."""
    sealing: Sealing


def restore_file(tx: Transaction, file: ListedFile, *, execution_id: int, now: int) -> None:
    """Register a sealed file under the id that it had; nothing happens if a row has this id or path already."""
    tx.execute(
        "INSERT INTO warc_files(id, execution_id, path, state, size, sha256, crc32, record_count, repaired, created_at,"
        " sealed_at) VALUES (?, ?, ?, 'sealed', ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
        (file.id, execution_id, file.path, *file.sealing, now, now),
    )


def continue_ids(tx: Transaction) -> None:
    """Let new files get ids behind all that are there; PostgreSQL only, which does not see ids that were given."""
    tx.execute("SELECT setval(pg_get_serial_sequence('warc_files', 'id'), (SELECT MAX(id) FROM warc_files))")


def stored_files(tx: Transaction, ids: Sequence[int], paths: Sequence[str]) -> list[tuple[int, str]]:
    """Return (id, path) of the rows that have one of these ids or paths; ask for some hundred at a time."""
    rows = tx.execute(
        f"SELECT id, path FROM warc_files WHERE id IN ({', '.join('?' * len(ids))})"  # noqa: S608 - question marks
        f" OR path IN ({', '.join('?' * len(paths))}) ORDER BY id",
        [*ids, *paths],
    )
    return [(int(row[0]), str(row[1])) for row in rows]


def read_all_again(tx: Transaction, *, source: str | None) -> int:
    """Let the index read every sealed file anew, of one source or of all; return how many there are."""
    rows = tx.execute(
        "UPDATE warc_files SET index_state = 'pending' WHERE state = 'sealed' AND index_state <> 'running'"
        " AND (CAST(? AS VARCHAR) IS NULL OR execution_id IN (SELECT e.id FROM executions e"
        " JOIN jobs j ON j.id = e.job_id JOIN sources s ON s.id = j.source_id WHERE s.code = ?)) RETURNING id",
        (source, source),
    )
    return len(rows)


def known_file(tx: Transaction, *, path: str, sha256: str) -> int | None:
    """Return the sealed file that lies at this path or holds these bytes, imported or our own."""
    rows = tx.execute(
        "SELECT id FROM warc_files WHERE state = 'sealed' AND (path = ? OR origin_sha256 = ? OR sha256 = ?)"
        " ORDER BY id LIMIT 1",
        (path, sha256, sha256),
    )
    return int(rows[0][0]) if rows else None


def sealed_file(tx: Transaction, file_id: int) -> tuple[str, Sealing, str | None]:
    """Return path, digests and origin of a sealed file."""
    rows = tx.execute(
        "SELECT path, size, sha256, crc32, record_count, repaired, origin FROM warc_files WHERE id = ?", (file_id,)
    )
    path, size, sha256, crc32, records, repaired, origin = rows[0]
    return path, Sealing(size, sha256, crc32, records, bool(repaired)), origin


def set_index_state(tx: Transaction, file_id: int, state: str) -> None:
    """Say how the index stands to a file: pending, running, indexed, failed."""
    tx.execute("UPDATE warc_files SET index_state = ? WHERE id = ?", (state, file_id))


Span = tuple[int, int]
"""When the earliest and the latest capture of a file began, in microseconds."""


def set_span(tx: Transaction, file_id: int, span: Span | None) -> None:
    """Say from when to when the captures of an indexed file are; None if nobody knows."""
    first, last = span or (None, None)
    tx.execute("UPDATE warc_files SET first_at = ?, last_at = ? WHERE id = ?", (first, last, file_id))


def fill_span(tx: Transaction, file_id: int, span: Span | None) -> int:
    """Say so of a file that was indexed before spans were noted; return 0 if somebody reads it again meanwhile.

    A file without captures (None) is marked by an end without a beginning, so that nobody asks for it again.
    """
    rows = tx.execute(
        "UPDATE warc_files SET first_at = ?, last_at = ? WHERE id = ? AND index_state = 'indexed' AND last_at IS NULL"
        " RETURNING 1",
        (*(span or (None, 0)), file_id),
    )
    return len(rows)


def files_without_span(tx: Transaction, *, limit: int) -> list[int]:
    """Return indexed files, by id, of which nobody noted from when their captures are: those of older versions."""
    rows = tx.execute(
        "SELECT f.id FROM warc_files f JOIN index_runs r ON r.warc_file_id = f.id"
        " WHERE f.index_state = 'indexed' AND f.last_at IS NULL AND r.records > 0 ORDER BY f.id LIMIT ?",
        (limit,),
    )
    return [int(row[0]) for row in rows]


def relocate_file(tx: Transaction, *, old: str, new: str) -> bool:
    """Say that a sealed file stands under another name now, with the same bytes; False if none stood under the old."""
    statement = "UPDATE warc_files SET path = ? WHERE path = ? AND state = 'sealed' RETURNING id"
    return bool(tx.execute(statement, (new, old)))
