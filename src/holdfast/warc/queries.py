"""The rows of WARC files: registered when opened, completed when sealed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from holdfast.db.raw import Row, Transaction
from holdfast.warc.outfile import SealedFile


class FileRow(NamedTuple):
    """What is known of one file of an execution."""

    id: int
    execution_id: int
    path: str
    """Relative to the data directory if the file lies below it."""
    state: str
    size: int | None
    """None, like the count, until the file is sealed."""
    record_count: int | None
    repaired: bool


_FILE = "SELECT f.id, f.execution_id, f.path, f.state, f.size, f.record_count, f.repaired FROM warc_files f"


def _rows(rows: Sequence[Row]) -> list[FileRow]:
    return [FileRow._make((*row[:-1], bool(row[-1]))) for row in rows]


def insert_file(tx: Transaction, *, execution_id: int, owner_id: int, path: str, now: int) -> int:
    """Register a file before it is created; return its id."""
    rows = tx.execute(
        "INSERT INTO warc_files(execution_id, owner_id, path, state, created_at)"
        " VALUES (?, ?, ?, 'open', ?) RETURNING id",
        (execution_id, owner_id, path, now),
    )
    return int(rows[0][0])


def seal_file(tx: Transaction, file_id: int, sealed: SealedFile, *, now: int, repaired: bool = False) -> None:
    """Say that a file is whole and will never change."""
    tx.execute(
        "UPDATE warc_files SET state = 'sealed', size = ?, sha256 = ?, crc32 = ?, record_count = ?, repaired = ?,"
        # Only an open one: a recovery and a process that was thought dead may both come here.
        " sealed_at = ? WHERE id = ? AND state = 'open'",
        (*_sealed_columns(sealed), repaired, now, file_id),
    )


def _sealed_columns(sealed: SealedFile) -> tuple[int, str, int, int]:
    """Return size, sha256, crc32, record_count: the columns that every sealed file has, in this order."""
    return sealed.size, sealed.sha256, sealed.crc32, sealed.record_count


def discard_file(tx: Transaction, file_id: int) -> None:
    """Say that a file is gone: it never held a record, or its execution was discarded. Its path is free again."""
    tx.execute("UPDATE warc_files SET state = 'discarded', path = path || '#' || id WHERE id = ?", (file_id,))


def open_files(tx: Transaction, *, owner_id: int) -> list[FileRow]:
    """Return the files that an owner began and did not seal."""
    return _rows(tx.execute(f"{_FILE} WHERE f.owner_id = ? AND f.state = 'open' ORDER BY f.id", (owner_id,)))


def stray_files(tx: Transaction) -> list[FileRow]:
    """Return the files that were begun and not sealed by owners whose rows are closed; there should be none."""
    where = "JOIN owners o ON o.id = f.owner_id WHERE f.state = 'open' AND o.ended_at IS NOT NULL ORDER BY f.id"
    return _rows(tx.execute(f"{_FILE} {where}"))


def path_of(tx: Transaction, file_id: int) -> str | None:
    """Return where a file lies, unless it was discarded."""
    rows = tx.execute("SELECT path FROM warc_files WHERE id = ? AND state <> 'discarded'", (file_id,))
    return str(rows[0][0]) if rows else None


def files_of(tx: Transaction, *, execution_id: int) -> list[FileRow]:
    """Return an execution's files, oldest first."""
    where = "WHERE f.execution_id = ? AND f.state <> 'discarded' ORDER BY f.id"
    return _rows(tx.execute(f"{_FILE} {where}", (execution_id,)))


def pointed_offsets(tx: Transaction, file_id: int) -> set[int]:
    """Return the offsets in a file that settled attempts point to; what is not among them is an orphan."""
    rows = tx.execute("SELECT warc_offset FROM page_crawls WHERE warc_file_id = ?", (file_id,))
    return {int(row[0]) for row in rows}


class Origin(NamedTuple):
    """Where a file came from: its path or its place in a package, and the digest that it had there."""

    path: str
    sha256: str


def insert_imported(tx: Transaction, sealed: SealedFile, origin: Origin, *, execution_id: int, now: int) -> int:
    """Register a file of another writer that is in its place already, sealed from the start; return its id."""
    rows = tx.execute(
        "INSERT INTO warc_files(execution_id, path, state, size, sha256, crc32, record_count, repaired, created_at,"
        " sealed_at, origin, origin_sha256) VALUES (?, ?, 'sealed', ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id",
        (execution_id, str(sealed.path), *_sealed_columns(sealed), False, now, now, *origin),
    )
    return int(rows[0][0])


def restore_file(tx: Transaction, file_id: int, sealed: SealedFile, *, execution_id: int, now: int) -> None:
    """Register a sealed file under the id that it had; nothing happens if a row has this id or path already."""
    tx.execute(
        "INSERT INTO warc_files(id, execution_id, path, state, size, sha256, crc32, record_count, repaired, created_at,"
        " sealed_at) VALUES (?, ?, ?, 'sealed', ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
        (file_id, execution_id, str(sealed.path), *_sealed_columns(sealed), False, now, now),
    )


def continue_ids(tx: Transaction) -> None:
    """Let new files get ids behind all that are there; PostgreSQL only, which does not see ids that were given."""
    tx.execute("SELECT setval(pg_get_serial_sequence('warc_files', 'id'), (SELECT MAX(id) FROM warc_files))")


def is_of_other_members(tx: Transaction, file_id: int, *, execution_id: int) -> bool:
    """Return whether a file is of a source for members that an execution does not belong to."""
    rows = tx.execute(
        "SELECT 1 FROM warc_files f JOIN executions e ON e.id = f.execution_id JOIN jobs j ON j.id = e.job_id"
        " JOIN sources s ON s.id = j.source_id WHERE f.id = ? AND s.visibility = 'members' AND NOT EXISTS ("
        "SELECT 1 FROM executions o JOIN jobs p ON p.id = o.job_id WHERE o.id = ? AND p.source_id = s.id)",
        (file_id, execution_id),
    )
    return bool(rows)


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
        # A file that is being read stays as it is: its reader would write `indexed` over the mark anyway.
        "UPDATE warc_files SET index_state = 'pending' WHERE state = 'sealed' AND index_state <> 'running'"
        " AND (CAST(? AS VARCHAR) IS NULL OR execution_id IN (SELECT e.id FROM executions e"
        " JOIN jobs j ON j.id = e.job_id JOIN sources s ON s.id = j.source_id WHERE s.code = ?)) RETURNING id",
        (source, source),
    )
    return len(rows)


def known_file(tx: Transaction, *, path: str, sha256: str) -> int | None:
    """Return the sealed file that lies at this path or holds these bytes, imported or our own."""
    rows = tx.execute(
        # By the digest of the original and by that of the copy: one that was rewritten has other bytes than its
        # original.
        "SELECT id FROM warc_files WHERE state = 'sealed' AND (path = ? OR origin_sha256 = ? OR sha256 = ?)"
        " ORDER BY id LIMIT 1",
        (path, sha256, sha256),
    )
    return int(rows[0][0]) if rows else None


def source_of_file(tx: Transaction, file_id: int) -> str:
    """Return the code of the source that a file belongs to."""
    rows = tx.execute(
        "SELECT s.code FROM warc_files f JOIN executions e ON e.id = f.execution_id JOIN jobs j ON j.id = e.job_id"
        " JOIN sources s ON s.id = j.source_id WHERE f.id = ?",
        (file_id,),
    )
    return str(rows[0][0])


def sealed_file(tx: Transaction, file_id: int) -> tuple[SealedFile, str | None]:
    """Return a sealed file as its row names it, and its origin if it was imported."""
    rows = tx.execute("SELECT path, size, sha256, crc32, record_count, origin FROM warc_files WHERE id = ?", (file_id,))
    path, size, sha256, crc, records, origin = rows[0]
    return SealedFile(path=Path(path), size=size, sha256=sha256, crc32=crc, record_count=records or 0), origin


def still_sealed(tx: Transaction, file_id: int) -> SealedFile | None:
    """Return a sealed file as its row names it now; None if there is none any more: it was discarded, say."""
    if not tx.execute("SELECT 1 FROM warc_files WHERE id = ? AND state = 'sealed'", (file_id,)):
        return None
    return sealed_file(tx, file_id)[0]


def set_index_state(tx: Transaction, file_id: int, state: str) -> None:
    """Say how the index stands to a file: pending, running, indexed, failed."""
    tx.execute("UPDATE warc_files SET index_state = ? WHERE id = ?", (state, file_id))


Span = tuple[int, int]
"""When the earliest and the latest capture of a file began, in microseconds."""


def set_span(tx: Transaction, file_id: int, span: Span | None) -> None:
    """Say from when to when the captures of an indexed file are; None if that is not known."""
    first, last = span or (None, None)
    tx.execute("UPDATE warc_files SET first_at = ?, last_at = ? WHERE id = ?", (first, last, file_id))


def fill_span(tx: Transaction, file_id: int, span: Span | None) -> int:
    """Say so of a file that was indexed before spans were noted; return 0 if an indexer reads it again meanwhile."""
    # A file without captures gets an end without a beginning: with two NULLs it would be looked into at every start.
    rows = tx.execute(
        "UPDATE warc_files SET first_at = ?, last_at = ? WHERE id = ? AND index_state = 'indexed' AND last_at IS NULL"
        " RETURNING 1",
        (*(span or (None, 0)), file_id),
    )
    return len(rows)


def files_without_span(tx: Transaction, *, limit: int) -> list[int]:
    """Return indexed files, by id, of which it was not noted from when their captures are: those of older versions."""
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
