"""The rows of WARC files: registered when opened, completed when sealed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from holdfast.db.raw import Row, Transaction
from holdfast.storage.store import FileKey, store_name
from holdfast.warc.outfile import SealedFile


class FileRow(NamedTuple):
    id: int
    execution_id: int
    file_key: FileKey
    state: str
    size: int | None
    """None, like the count, until the file is sealed."""
    record_count: int | None
    repaired: bool


FILE_KEY = "f.key, (SELECT location FROM stores WHERE name = f.store)"
"""The columns of a FileKey, in a query of `warc_files f`."""
HOME = "home"
"""Name of the store that is the data directory; it has no row."""
_FILE = f"SELECT f.id, f.execution_id, {FILE_KEY}, f.state, f.size, f.record_count, f.repaired FROM warc_files f"  # noqa: S608 - our own columns


def _rows(rows: Sequence[Row]) -> list[FileRow]:
    return [FileRow._make((*row[:2], FileKey(row[2], row[3]), *row[4:-1], bool(row[-1]))) for row in rows]


def _store(tx: Transaction, location: str | None) -> str:
    """Return the name of the store at a location, which is registered on first use."""
    number = 1
    while (found := _find_store(tx, location)) is None:
        assert location is not None
        # The name is taken if an operator has moved that store.
        name = store_name(location) + (f"-{number}" if number > 1 else "")
        tx.execute("INSERT INTO stores(name, location) VALUES (?, ?) ON CONFLICT DO NOTHING", (name, location))
        number += 1
    return found


def _find_store(tx: Transaction, location: str | None) -> str | None:
    rows = [(HOME,)] if location is None else tx.execute("SELECT name FROM stores WHERE location = ?", (location,))
    return str(rows[0][0]) if rows else None


def insert_file(tx: Transaction, *, execution_id: int, owner_id: int, key: FileKey, now: int) -> int:
    """Register a file before it is created; return its id."""
    rows = tx.execute(
        "INSERT INTO warc_files(execution_id, owner_id, store, key, state, created_at)"
        " VALUES (?, ?, ?, ?, 'open', ?) RETURNING id",
        (execution_id, owner_id, _store(tx, key.location), key.key, now),
    )
    return int(rows[0][0])


def seal_file(tx: Transaction, file_id: int, sealed: SealedFile, *, now: int, repaired: bool = False) -> None:
    tx.execute(
        "UPDATE warc_files SET state = 'sealed', size = ?, sha256 = ?, crc32 = ?, record_count = ?, repaired = ?,"
        # Only if it is open: a recovery and a process that was thought dead may both get here.
        " sealed_at = ? WHERE id = ? AND state = 'open'",
        (*_sealed_columns(sealed), repaired, now, file_id),
    )


def _sealed_columns(sealed: SealedFile) -> tuple[int, str, int, int]:
    """Return size, sha256, crc32, record_count: the columns that every sealed file has, in this order."""
    return sealed.size, sealed.sha256, sealed.crc32, sealed.record_count


def discard_file(tx: Transaction, file_id: int) -> None:
    """Record that a file is gone: empty, or its execution was discarded. Its key can be used again."""
    tx.execute("UPDATE warc_files SET state = 'discarded', key = key || '#' || id WHERE id = ?", (file_id,))


def open_files(tx: Transaction, *, owner_id: int) -> list[FileRow]:
    """Return the files that an owner started and did not seal."""
    return _rows(tx.execute(f"{_FILE} WHERE f.owner_id = ? AND f.state = 'open' ORDER BY f.id", (owner_id,)))


def stray_files(tx: Transaction) -> list[FileRow]:
    """Return the unsealed files of owners whose rows are closed; there should be none."""
    where = "JOIN owners o ON o.id = f.owner_id WHERE f.state = 'open' AND o.ended_at IS NOT NULL ORDER BY f.id"
    return _rows(tx.execute(f"{_FILE} {where}"))


def key_of_file(tx: Transaction, file_id: int) -> FileKey | None:
    """Return the key of a file, unless it was discarded."""
    asked = f"SELECT {FILE_KEY} FROM warc_files f WHERE f.id = ? AND f.state <> 'discarded'"  # noqa: S608 - our own columns
    rows = tx.execute(asked, (file_id,))
    return FileKey(*rows[0]) if rows else None


def files_of(tx: Transaction, *, execution_id: int) -> list[FileRow]:
    """Return an execution's files, oldest first."""
    where = "WHERE f.execution_id = ? AND f.state <> 'discarded' ORDER BY f.id"
    return _rows(tx.execute(f"{_FILE} {where}", (execution_id,)))


def pointed_offsets(tx: Transaction, file_id: int) -> set[int]:
    """Return the offsets in a file that settled attempts refer to; all other records are orphans."""
    rows = tx.execute("SELECT warc_offset FROM page_crawls WHERE warc_file_id = ?", (file_id,))
    return {int(row[0]) for row in rows}


def insert_imported(
    tx: Transaction, key: FileKey, sealed: SealedFile, *, origin: tuple[str, str], execution_id: int, now: int
) -> int:
    """Register an imported file that is already in place, sealed from the start; return its id.

    `origin` is the path of its original, or its place in a package, and the SHA-256 there.
    """
    rows = tx.execute(
        "INSERT INTO warc_files(execution_id, store, key, state, size, sha256, crc32, record_count, repaired,"
        " created_at, sealed_at, origin, origin_sha256)"
        " VALUES (?, ?, ?, 'sealed', ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING id",
        (execution_id, _store(tx, key.location), key.key, *_sealed_columns(sealed), False, now, now, *origin),
    )
    return int(rows[0][0])


def restore_file(
    tx: Transaction, file_id: int, key: FileKey, sealed: SealedFile, *, execution_id: int, now: int
) -> None:
    """Register a sealed file under its former id; do nothing if a row has this id or key already."""
    tx.execute(
        "INSERT INTO warc_files(id, execution_id, store, key, state, size, sha256, crc32, record_count, repaired,"
        " created_at, sealed_at) VALUES (?, ?, ?, ?, 'sealed', ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
        (file_id, execution_id, _store(tx, key.location), key.key, *_sealed_columns(sealed), False, now, now),
    )


def continue_ids(tx: Transaction) -> None:
    """Advance the id sequence beyond all existing files; PostgreSQL only, which ignores explicitly inserted ids."""
    tx.execute("SELECT setval(pg_get_serial_sequence('warc_files', 'id'), (SELECT MAX(id) FROM warc_files))")


def is_of_other_members(tx: Transaction, file_id: int, *, execution_id: int) -> bool:
    """Return whether a file belongs to a members' source other than the execution's."""
    rows = tx.execute(
        "SELECT 1 FROM warc_files f JOIN executions e ON e.id = f.execution_id JOIN jobs j ON j.id = e.job_id"
        " JOIN sources s ON s.id = j.source_id WHERE f.id = ? AND s.visibility = 'members' AND NOT EXISTS ("
        "SELECT 1 FROM executions o JOIN jobs p ON p.id = o.job_id WHERE o.id = ? AND p.source_id = s.id)",
        (file_id, execution_id),
    )
    return bool(rows)


def stored_files(tx: Transaction, ids: Sequence[int], keys: Sequence[FileKey]) -> dict[int, FileKey]:
    """Return the rows that have one of these ids or keys, in any store; pass only some hundred per call."""
    rows = tx.execute(
        f"SELECT f.id, {FILE_KEY} FROM warc_files f WHERE f.id IN ({', '.join('?' * len(ids))})"  # noqa: S608 - question marks
        f" OR f.key IN ({', '.join('?' * len(keys))}) ORDER BY f.id",
        [*ids, *(one.key for one in keys)],
    )
    return {int(row[0]): FileKey(row[1], row[2]) for row in rows}


def read_all_again(tx: Transaction, *, source: str | None) -> int:
    """Queue every sealed file for indexing again, of one source or of all; return how many."""
    rows = tx.execute(
        # Do not change a file that is being read: its reader would overwrite the mark with `indexed`.
        "UPDATE warc_files SET index_state = 'pending' WHERE state = 'sealed' AND index_state <> 'running'"
        " AND (CAST(? AS VARCHAR) IS NULL OR execution_id IN (SELECT e.id FROM executions e"
        " JOIN jobs j ON j.id = e.job_id JOIN sources s ON s.id = j.source_id WHERE s.code = ?)) RETURNING id",
        (source, source),
    )
    return len(rows)


def known_file(tx: Transaction, *, key: FileKey | None = None, sha256: str = "") -> int | None:
    """Return the sealed file with this key or with these bytes, imported or our own."""
    rows = tx.execute(
        # Search by the digests of original and copy: a rewritten file has other bytes than its original.
        "SELECT id FROM warc_files WHERE state = 'sealed'"
        " AND ((key = ? AND store = ?) OR origin_sha256 = ? OR sha256 = ?) ORDER BY id LIMIT 1",
        (key and key.key, key and _find_store(tx, key.location), sha256, sha256),
    )
    return int(rows[0][0]) if rows else None


def source_of_file(tx: Transaction, file_id: int) -> str:
    rows = tx.execute(
        "SELECT s.code FROM warc_files f JOIN executions e ON e.id = f.execution_id JOIN jobs j ON j.id = e.job_id"
        " JOIN sources s ON s.id = j.source_id WHERE f.id = ?",
        (file_id,),
    )
    return str(rows[0][0])


class SealedRow(NamedTuple):
    """A sealed file as recorded in its row."""

    file_key: FileKey
    sealed: SealedFile
    """Its path is the one that users see."""
    origin: str | None
    """Where it was imported from."""


def sealed_file(tx: Transaction, file_id: int) -> SealedRow | None:
    """Return a sealed file; None if it is no longer sealed, for example discarded."""
    rows = tx.execute(
        f"SELECT {FILE_KEY}, f.size, f.sha256, f.crc32, f.record_count, f.origin FROM warc_files f"  # noqa: S608 - our own columns
        " WHERE f.id = ? AND f.state = 'sealed'",
        (file_id,),
    )
    if not rows:
        return None
    key, location, size, sha256, crc, records, origin = rows[0]
    file_key = FileKey(key, location)
    sealed = SealedFile(path=Path(str(file_key)), size=size, sha256=sha256, crc32=crc, record_count=records or 0)
    return SealedRow(file_key, sealed, origin)


def set_index_state(tx: Transaction, file_id: int, state: str) -> None:
    tx.execute("UPDATE warc_files SET index_state = ? WHERE id = ?", (state, file_id))


Span = tuple[int, int]
"""Start of the earliest and of the latest capture of a file, in microseconds."""


def set_span(tx: Transaction, file_id: int, span: Span | None) -> None:
    """Store the time span of an indexed file's captures; None if unknown."""
    first, last = span or (None, None)
    tx.execute("UPDATE warc_files SET first_at = ?, last_at = ? WHERE id = ?", (first, last, file_id))


def fill_span(tx: Transaction, file_id: int, span: Span | None) -> int:
    """Store the span of a file that was indexed without one; return 0 if it is being indexed again meanwhile."""
    # A file without captures gets an end but no start: with two NULLs every start would read it.
    rows = tx.execute(
        "UPDATE warc_files SET first_at = ?, last_at = ? WHERE id = ? AND index_state = 'indexed' AND last_at IS NULL"
        " RETURNING 1",
        (*(span or (None, 0)), file_id),
    )
    return len(rows)


def files_without_span(tx: Transaction, *, limit: int) -> list[int]:
    """Return indexed files without a span, by id: those indexed by older versions."""
    rows = tx.execute(
        "SELECT f.id FROM warc_files f JOIN index_runs r ON r.warc_file_id = f.id"
        " WHERE f.index_state = 'indexed' AND f.last_at IS NULL AND r.records > 0 ORDER BY f.id LIMIT ?",
        (limit,),
    )
    return [int(row[0]) for row in rows]


def relocate_file(tx: Transaction, *, old: FileKey, new: FileKey) -> bool:
    """Record the new key of an unchanged sealed file; return False if the old key is unknown."""
    statement = "UPDATE warc_files SET store = ?, key = ? WHERE key = ? AND store = ? AND state = 'sealed' RETURNING id"
    return bool(tx.execute(statement, (_store(tx, new.location), new.key, old.key, _find_store(tx, old.location))))
