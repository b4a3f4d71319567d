"""The rows of `index_runs`: taken with a lease, renewed and closed only by who holds its token."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from sqlalchemy import select
from sqlalchemy.orm import Session

from holdfast.db.hot import Transaction
from holdfast.db.models import Execution, IndexRun, Job, Source, WarcFile
from holdfast.warc.ids import ORDINALS


class Claim(NamedTuple):
    """Who wants to read which file, with which extraction, until when."""

    warc_file_id: int
    owner_id: int | None
    version: int
    until: int


class Progress(NamedTuple):
    """How far a reader is."""

    phase: str
    records: int
    pages: int
    bytes_done: int
    bytes_total: int
    warnings: dict[str, Any]


def claim(tx: Transaction, wanted: Claim, *, now: int) -> int | None:
    """Take a file: return the fencing token, or None if somebody alive is at it.

    A lease that is over, or whose owner has ended, is taken over.
    """
    rows = tx.execute(
        "INSERT INTO index_runs(warc_file_id, owner_id, version, lease_expires_at, token, phase, warnings, started_at,"
        " progress_at) VALUES (?, ?, ?, ?, 1, 'starting', '{}', ?, ?)"
        " ON CONFLICT (warc_file_id) DO UPDATE SET owner_id = excluded.owner_id, version = excluded.version,"
        " lease_expires_at = excluded.lease_expires_at, token = index_runs.token + 1, phase = 'starting', error = NULL,"
        " records = 0, pages = 0, bytes_done = 0, started_at = excluded.started_at,"
        " progress_at = excluded.progress_at, finished_at = NULL"
        " WHERE index_runs.lease_expires_at IS NULL OR index_runs.lease_expires_at < excluded.started_at"
        " OR EXISTS (SELECT 1 FROM owners WHERE owners.id = index_runs.owner_id AND owners.ended_at IS NOT NULL)"
        " RETURNING token",
        (*wanted, now, now),
    )
    return int(rows[0][0]) if rows else None


def renew(tx: Transaction, held: tuple[int, int], progress: Progress, *, until: int, now: int) -> bool:
    """Renew the lease on (file, token) and note how far it is; False if it is another's now."""
    rows = tx.execute(
        "UPDATE index_runs SET lease_expires_at = ?, progress_at = ?, phase = ?, records = ?, pages = ?,"
        " bytes_done = ?, bytes_total = ?, warnings = ? WHERE warc_file_id = ? AND token = ? RETURNING 1",
        (until, now, *progress[:5], json.dumps(progress.warnings), *held),
    )
    return bool(rows)


def extend(tx: Transaction, held: tuple[int, int], *, until: int, now: int) -> bool:
    """Renew the lease and nothing else; False if it is another's now."""
    rows = tx.execute(
        "UPDATE index_runs SET lease_expires_at = ?, progress_at = ? WHERE warc_file_id = ? AND token = ? RETURNING 1",
        (until, now, *held),
    )
    return bool(rows)


def finish(tx: Transaction, held: tuple[int, int], *, error: str | None, now: int) -> int | None:
    """Give the file back: read to its end, or failed with a reason; return how many pages it has as stored, revisits
    of pages too, or None if it is another's now."""
    first = held[0] * ORDINALS
    rows = tx.execute(
        "UPDATE index_runs SET lease_expires_at = NULL, owner_id = NULL, phase = ?, error = ?, progress_at = ?,"
        " finished_at = ?, pages = (SELECT count(*) FROM snapshots WHERE id >= ? AND id < ? AND is_page)"
        " WHERE warc_file_id = ? AND token = ? RETURNING pages",
        ("failed" if error else "finished", error, now, now, first, first + ORDINALS, *held),
    )
    return int(rows[0][0]) if rows else None


def give_back(tx: Transaction, held: tuple[int, int], *, now: int) -> bool:
    """Let go of a file that is not read to its end, so that the next one may take it at once."""
    rows = tx.execute(
        "UPDATE index_runs SET lease_expires_at = NULL, owner_id = NULL, phase = 'stopped', progress_at = ?"
        " WHERE warc_file_id = ? AND token = ? RETURNING 1",
        (now, *held),
    )
    return bool(rows)


def take_turn(tx: Transaction) -> None:
    """Wait until no other indexer writes, and keep the others waiting until this transaction ends; PostgreSQL only.

    SQLite has one writer anyway. Without this, two readers that store captures of one page on one day at the same
    moment would not see each other's, and both would stay canonical. Parsing, which takes the time, goes on meanwhile.
    """
    tx.execute("SELECT pg_advisory_xact_lock(?)", (_TURN,))


_TURN = 0x686F6C64_66617374
"""A number that nobody else locks."""


class FileToIndex(NamedTuple):
    """A sealed file, and what its snapshots take from its execution."""

    id: int
    path: str
    size: int
    execution_id: int
    source_id: int
    job_kind: str
    backend: str | None


_FILE = (
    "SELECT f.id, f.path, COALESCE(f.size, 0), f.execution_id, j.source_id, j.kind, e.config"
    " FROM warc_files f JOIN executions e ON e.id = f.execution_id JOIN jobs j ON j.id = e.job_id"
)


def file_to_index(tx: Transaction, warc_file_id: int) -> FileToIndex | None:
    """Return one sealed file; None if it is not there, not sealed, or discarded."""
    rows = tx.execute(f"{_FILE} WHERE f.id = ? AND f.state = 'sealed'", (warc_file_id,))
    return _file(rows[0]) if rows else None


def _file(row: tuple[Any, ...]) -> FileToIndex:
    config = json.loads(row[6]) if isinstance(row[6], str) else row[6] or {}
    return FileToIndex(row[0], row[1], row[2], row[3], row[4], row[5], config.get("backend"))


def pending_files(tx: Transaction, *, after: int, now: int, source: str | None = None) -> list[int]:
    """Return up to 50 sealed files that wait to be read, or whose reader is gone, by id."""
    rows = tx.execute(
        "SELECT f.id FROM warc_files f JOIN executions e ON e.id = f.execution_id JOIN jobs j ON j.id = e.job_id"
        " JOIN sources s ON s.id = j.source_id LEFT JOIN index_runs r ON r.warc_file_id = f.id"
        " LEFT JOIN owners o ON o.id = r.owner_id"
        " WHERE f.state = 'sealed' AND f.index_state IN ('pending','running') AND f.id > ?"
        " AND (CAST(? AS VARCHAR) IS NULL OR s.code = ?)"
        " AND (r.lease_expires_at IS NULL OR r.lease_expires_at < ? OR o.ended_at IS NOT NULL)"
        " ORDER BY f.id LIMIT 50",
        (after, source, source, now),
    )
    return [int(row[0]) for row in rows]


def is_waiting(tx: Transaction, warc_file_id: int) -> bool:
    """Return whether a file has not been read to its end yet."""
    return bool(
        tx.execute("SELECT 1 FROM warc_files WHERE id = ? AND index_state IN ('pending','running')", (warc_file_id,))
    )


def sealed_files_of(tx: Transaction, execution_id: int) -> list[int]:
    """Return the sealed files of an execution by id."""
    rows = tx.execute(
        "SELECT id FROM warc_files WHERE execution_id = ? AND state = 'sealed' ORDER BY id", (execution_id,)
    )
    return [int(row[0]) for row in rows]


def span_of(tx: Transaction, warc_file_id: int) -> tuple[int, int] | None:
    """Return from when to when the captures of a file are; None if it has none. Reads all of them."""
    first = warc_file_id * ORDINALS
    rows = tx.execute(
        "SELECT min(captured_at), max(captured_at) FROM snapshots WHERE id >= ? AND id < ?", (first, first + ORDINALS)
    )
    return None if rows[0][0] is None else (int(rows[0][0]), int(rows[0][1]))


def free_owner(tx: Transaction, owner_id: int, *, now: int) -> None:
    """End the leases of an owner that is gone."""
    tx.execute("UPDATE index_runs SET lease_expires_at = ? WHERE owner_id = ?", (now - 1, owner_id))


def latest_runs(session: Session, *, limit: int) -> list[tuple[IndexRun, WarcFile, str]]:
    """Return the newest readings with their file and source, running ones first."""
    rows = session.execute(
        select(IndexRun, WarcFile, Source.code)
        .join(WarcFile, WarcFile.id == IndexRun.warc_file_id)
        .join(Execution, Execution.id == WarcFile.execution_id)
        .join(Job, Job.id == Execution.job_id)
        .join(Source, Source.id == Job.source_id)
        .order_by(IndexRun.lease_expires_at.is_(None), IndexRun.progress_at.desc(), IndexRun.warc_file_id.desc())
        .limit(limit)
    )
    return [(row[0], row[1], row[2]) for row in rows]
