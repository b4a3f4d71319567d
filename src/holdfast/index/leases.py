"""The right to index one file: a fenced lease on its row in `index_runs`.

A reader that lost it (it slept, or was presumed dead) is rejected at its next write and changes nothing.
"""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any, NamedTuple

from sqlalchemy import select
from sqlalchemy.orm import Session

from holdfast.clock import Clock, to_micros
from holdfast.db.models import Execution, IndexRun, Job, Source, WarcFile
from holdfast.db.raw import RawDatabase, Transaction
from holdfast.errors import LeaseLost
from holdfast.parse.content import SiteTemplate
from holdfast.processes.leases import HELD, RELEASED, REVOKED, is_free
from holdfast.processes.owners import beat_owner
from holdfast.sources.extraction import extraction_rules
from holdfast.storage.store import FileKey
from holdfast.warc import queries as files
from holdfast.warc.queries import FILE_KEY
from holdfast.warc.record import ORDINALS


class ReadProgress(NamedTuple):
    phase: str
    records: int
    pages: int
    bytes_done: int
    bytes_total: int
    warnings: dict[str, Any]


# Use one statement to check and lease: with two, two readers could both find the file free. An expired lease, or one
# whose owner has ended, is replaced. The token grows with every lease, so that the previous reader is rejected at its
# next write.
_CLAIM = (
    "INSERT INTO index_runs(warc_file_id, owner_id, version, lease_expires_at, token, phase, warnings, started_at,"  # noqa: S608
    " progress_at) VALUES (?, ?, ?, ?, 1, 'starting', ?, ?, ?)"
    " ON CONFLICT (warc_file_id) DO UPDATE SET owner_id = excluded.owner_id, version = excluded.version,"
    " lease_expires_at = excluded.lease_expires_at, token = index_runs.token + 1, phase = 'starting', error = NULL,"
    " warnings = excluded.warnings, records = 0, pages = 0, bytes_done = 0, started_at = excluded.started_at,"
    " progress_at = excluded.progress_at, finished_at = NULL"
    f" WHERE {is_free('index_runs', 'excluded.started_at')} RETURNING token"
)


# A warning of the file stores the count of killed readers, so that all users see it.
_KILLED = "reader_killed"


def killed_readers(tx: Transaction, warc_file_id: int) -> int:
    """Return how many consecutive readers leased a file and neither finished nor released it."""
    rows = tx.execute(
        "SELECT warnings FROM index_runs WHERE warc_file_id = ? AND lease_expires_at IS NOT NULL", (warc_file_id,)
    )
    if not rows:
        return 0
    warnings = json.loads(rows[0][0]) if isinstance(rows[0][0], str) else rows[0][0]
    return int(warnings.get(_KILLED, {}).get("count", 0)) + 1


def killed_warning(count: int) -> dict[str, Any]:
    known = {"count": count, "offset": 0, "detail": "the process that read this file was killed"}
    return {_KILLED: known} if count else {}


def revoke(tx: Transaction, warc_file_id: int) -> None:
    """Revoke the lease of a file's reader, which is rejected at its next write."""
    tx.execute(f"UPDATE index_runs SET {REVOKED} WHERE warc_file_id = ?", (warc_file_id,))  # noqa: S608


def lock_index_writes(tx: Transaction) -> None:
    """Wait for the lock on index writes and hold it until this transaction ends; PostgreSQL only."""
    # SQLite has one writer anyway. Without this lock, two readers that store captures of one page and day concurrently
    # would not see each other's, and both would stay canonical. Parsing, which takes most of the time, continues in
    # parallel.
    tx.execute("SELECT pg_advisory_xact_lock(?)", (_WRITES_LOCK,))


# `holdfast`: a number that no other advisory lock of ours has.
_WRITES_LOCK = 0x686F6C64_66617374


class FileToIndex(NamedTuple):
    id: int
    file_key: FileKey
    size: int
    execution_id: int
    source_id: int
    job_kind: str
    backend: str
    fidelity: str = "unknown"
    template: SiteTemplate | None = None


_FILE = (
    f"SELECT f.id, {FILE_KEY}, COALESCE(f.size, 0), f.execution_id, j.source_id, j.kind, e.config, s.config"  # noqa: S608 - our own columns
    " FROM warc_files f JOIN executions e ON e.id = f.execution_id JOIN jobs j ON j.id = e.job_id"
    " JOIN sources s ON s.id = j.source_id"
)


def file_to_index(tx: Transaction, warc_file_id: int) -> FileToIndex | None:
    """Return one sealed file; None if it is missing, not sealed, or discarded."""
    rows = tx.execute(f"{_FILE} WHERE f.id = ? AND f.state = 'sealed'", (warc_file_id,))
    return _file(rows[0]) if rows else None


def _file(row: tuple[Any, ...]) -> FileToIndex:
    config, source = (json.loads(one) if isinstance(one, str) else one or {} for one in row[7:9])
    backend, template = config.get("backend") or "", extraction_rules(source)
    return FileToIndex._make((row[0], FileKey(row[1], row[2]), *row[3:7], backend, "unknown", template))


def pending_files(tx: Transaction, *, after: int, now: int, source: str | None = None) -> list[int]:
    """Return up to 50 sealed files that are pending, or whose reader is gone, by id."""
    rows = tx.execute(
        "SELECT f.id FROM warc_files f JOIN executions e ON e.id = f.execution_id"  # noqa: S608
        " JOIN jobs j ON j.id = e.job_id JOIN sources s ON s.id = j.source_id"
        " LEFT JOIN index_runs r ON r.warc_file_id = f.id"
        " WHERE f.state = 'sealed' AND f.index_state IN ('pending','running') AND f.id > ?"
        " AND (CAST(? AS VARCHAR) IS NULL OR s.code = ?)"
        # Include `running` files: their reader may have died, which only its lease shows.
        f" AND {is_free('r')} ORDER BY f.id LIMIT 50",
        (after, source, source, now),
    )
    return [int(row[0]) for row in rows]


def count_pending(tx: Transaction, *, source: str | None = None) -> int:
    rows = tx.execute(
        "SELECT COUNT(*) FROM warc_files f JOIN executions e ON e.id = f.execution_id JOIN jobs j ON j.id = e.job_id"
        " JOIN sources s ON s.id = j.source_id WHERE f.state = 'sealed' AND f.index_state IN ('pending','running')"
        " AND (CAST(? AS VARCHAR) IS NULL OR s.code = ?)",
        (source, source),
    )
    return int(rows[0][0])


def is_waiting(tx: Transaction, warc_file_id: int) -> bool:
    return bool(
        tx.execute("SELECT 1 FROM warc_files WHERE id = ? AND index_state IN ('pending','running')", (warc_file_id,))
    )


def span_of(tx: Transaction, warc_file_id: int) -> tuple[int, int] | None:
    """Return the earliest and latest capture time of a file, None without captures. Reads all of them."""
    first = warc_file_id * ORDINALS
    rows = tx.execute(
        "SELECT min(captured_at), max(captured_at) FROM snapshots WHERE id >= ? AND id < ?", (first, first + ORDINALS)
    )
    return None if rows[0][0] is None else (int(rows[0][0]), int(rows[0][1]))


def latest_runs(session: Session, *, limit: int) -> list[tuple[IndexRun, WarcFile, str]]:
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


# How long a killed reader blocks its file, unless its run file shows earlier that it is gone.
LEASE_S = 60.0
_RENEW_S = 10.0


class FileLease:
    def __init__(
        self,
        raw_db: RawDatabase,
        clock: Clock,
        *,
        warc_file_id: int,
        token: int,
        owner_id: int | None = None,
        killed: int = 0,
    ) -> None:
        self._raw_db, self._clock = raw_db, clock
        self.killed = killed
        """How many readers before this one were killed, in a row."""
        self.warc_file_id = warc_file_id
        self.held = warc_file_id, token
        self._owner_id = owner_id
        self._renewed = self._beat_at = clock.monotonic()

    def hold(self, tx: Transaction, progress: ReadProgress | None = None) -> None:
        """Renew the lease in the caller's transaction, and store the progress if given; raise LeaseLost if a newer
        reader holds it.
        """
        if self._raw_db.dialect == "postgresql":
            lock_index_writes(tx)
        now = self._clock.now()
        until = to_micros(now + timedelta(seconds=LEASE_S))
        stored = "phase = ?, records = ?, pages = ?, bytes_done = ?, bytes_total = ?, warnings = ?, "
        read = () if progress is None else (*progress[:5], json.dumps(progress.warnings))
        rows = tx.execute(
            f"UPDATE index_runs SET {stored if read else ''}lease_expires_at = ?, progress_at = ?"  # noqa: S608
            f" WHERE warc_file_id = ? AND {HELD} RETURNING 1",
            (*read, until, to_micros(now), *self.held),
        )
        if not rows:
            raise LeaseLost(f"another reader has taken over WARC file {self.warc_file_id}")
        self._renewed = self._clock.monotonic()
        # Renew periodically: other machines presume that a silent reader is gone.
        if self._owner_id is not None and self._renewed - self._beat_at >= _RENEW_S:
            beat_owner(tx, self._clock, self._owner_id)
            self._beat_at = self._renewed

    def pulse(self) -> None:
        """Renew the lease in its own transaction if due; called while a long record streams by."""
        if self._clock.monotonic() - self._renewed >= _RENEW_S:
            with self._raw_db.write() as tx:
                self.hold(tx)

    def end(self, *, error: str | None, span: files.Span | None = None) -> int:
        """Release the file as indexed or failed; return its number of pages, with revisits of pages. Raise LeaseLost
        if another reader holds it.

        `span` is the time range of its captures; None if unknown.
        """
        now, first = to_micros(self._clock.now()), self.warc_file_id * ORDINALS
        with self._raw_db.write() as tx:
            # Count the rows: pages of revisits are known only once their originals are found, after the batches.
            rows = tx.execute(
                f"UPDATE index_runs SET {RELEASED}, phase = ?, error = ?, progress_at = ?, finished_at = ?,"  # noqa: S608
                " pages = (SELECT count(*) FROM snapshots WHERE id >= ? AND id < ? AND is_page)"
                f" WHERE warc_file_id = ? AND {HELD} RETURNING pages",
                ("failed" if error else "finished", error, now, now, first, first + ORDINALS, *self.held),
            )
            if not rows:
                raise LeaseLost(f"another reader has taken over WARC file {self.warc_file_id}")
            files.set_index_state(tx, self.warc_file_id, "failed" if error else "indexed")
            # Only a part of a failed file is known; a span of that part would hide the rest from queries by date.
            files.set_span(tx, self.warc_file_id, None if error else span)
        return int(rows[0][0])

    def give_back(self) -> None:
        """Release a file that was not read to its end, unless another reader holds it now."""
        with self._raw_db.write() as tx:
            if tx.execute(
                f"UPDATE index_runs SET {RELEASED}, phase = 'stopped', progress_at = ?"  # noqa: S608
                f" WHERE warc_file_id = ? AND {HELD} RETURNING 1",
                (to_micros(self._clock.now()), *self.held),
            ):
                files.set_index_state(tx, self.warc_file_id, "pending")


class _Done(Exception):
    """Another reader has indexed the file since it was seen pending, or it was discarded."""


def claim(
    raw_db: RawDatabase,
    clock: Clock,
    warc_file_id: int,
    *,
    owner_id: int | None,
    version: int,
    only_waiting: bool = False,
) -> FileLease | None:
    """Lease a file; None if another reader holds it, it is gone, or with `only_waiting` already indexed."""
    now = clock.now()
    until = to_micros(now + timedelta(seconds=LEASE_S))
    try:
        with raw_db.write() as tx:
            # Other processes may have considered a long-idle reader dead: register it again.
            if owner_id is not None:
                beat_owner(tx, clock, owner_id)
            killed = killed_readers(tx, warc_file_id)
            warnings, at = json.dumps(killed_warning(killed)), to_micros(now)
            rows = tx.execute(_CLAIM, (warc_file_id, owner_id, version, until, warnings, at, at))
            if not rows:
                return None
            # Checked after the claim, which waits for a reader that is just ending; before it would be too early.
            if (only_waiting and not is_waiting(tx, warc_file_id)) or file_to_index(tx, warc_file_id) is None:
                raise _Done
            files.set_index_state(tx, warc_file_id, "running")
    except _Done:
        return None
    token = int(rows[0][0])
    return FileLease(raw_db, clock, warc_file_id=warc_file_id, token=token, owner_id=owner_id, killed=killed)


_AT_ONCE = 100


def note_spans(raw_db: RawDatabase, *, most: int = _AT_ONCE) -> int:
    """Store the capture time ranges of some old files, or that they have none; return the number of files.

    The remaining files wait for the next call.
    """
    # Take a few at a time, because no reader depends on it: queries by time read files without a span.
    with raw_db.read() as tx:
        waiting = files.files_without_span(tx, limit=most)
    noted = 0
    for file_id in waiting:
        with raw_db.read() as tx:
            span = span_of(tx, file_id)
        with raw_db.write() as tx:
            noted += files.fill_span(tx, file_id, span)
    return noted
