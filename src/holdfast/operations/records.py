"""Operations, their results, and uploads, as operators see them."""

from __future__ import annotations

import dataclasses
from datetime import datetime
from typing import Annotated, Any, Final, Literal

from holdfast.db.models import Upload
from holdfast.jobs.kinds import OperationKind
from holdfast.operations.long_running import OperationState, is_cancelled, state_of
from holdfast.operations.queries import OperationRow
from holdfast.operations.uploads import UploadState
from holdfast.records import Audience, Documented, Operator, from_row, record

_OWN_NOTES: Final = ("after", "marked")
"""Keys of a result that only the continuing process reads."""


@record
class OperationProgress:
    """Progress of an operation."""

    phase: Operator[str | None]
    """Current step in a few words; null before the start."""
    done: Operator[int]
    """Bytes, files or rows, by phase."""
    total: Operator[int | None]
    """Null if unknown."""

    def __str__(self) -> str:
        share = f" {self.done / self.total:.0%}" if self.total else ""
        return f"{self.phase or 'starting'}{share}"


@record
class FileProblem:
    """A problem of one file."""

    file: Operator[int]
    name: Operator[str]
    kind: Operator[str]
    detail: Operator[str]


@record
class ImportedFileResult:
    """Result of one file of an upload."""

    name: Operator[str]
    state: Operator[Literal["imported", "again", "failed"]]
    file: Operator[int | None]
    how: Operator[str]
    records: Operator[int]
    notes: Operator[list[str]]
    error: Operator[str | None]


@record
class ImportResult:
    """Result of an import."""

    execution: Operator[int | None]
    """The execution that the imported files belong to."""
    imported: Operator[int]
    again: Operator[int]
    """Number of files that were imported before."""
    failed: Operator[int]
    records: Operator[int]
    snapshots: Operator[int]
    pages: Operator[int]
    damaged: Operator[int]
    """Number of damaged places that were skipped."""
    files: Operator[list[ImportedFileResult]]


@record
class VerificationResult:
    """Result of a verification."""

    files: Operator[int]
    bytes: Operator[int]
    records: Operator[int]
    ok: Operator[int]
    damaged: Operator[int]
    missing: Operator[int]
    problems: Operator[list[FileProblem]]
    """At most 100."""


@record
class FileError:
    """A file that could not be read."""

    file: Operator[int]
    error: Operator[str]


@record
class IndexRebuildResult:
    """Result of a rebuild of the index."""

    restored: Operator[int]
    """Files whose rows were restored."""
    withdrawals: Operator[int]
    waiting: Operator[int]
    """Files that will be read again."""
    files: Operator[int]
    snapshots: Operator[int]
    errors: Operator[list[FileError]]
    problems: Operator[list[str]]


@record
class SearchRebuildResult:
    """Result of a rebuild of the search index."""

    pages: Operator[int]
    changes: Operator[int]


@record
class EditionReportResult:
    """Result of generating an edition's report."""

    edition: Operator[int]
    status: Operator[str]
    counts: Operator[dict[str, int]]


@record
class FreezeResult:
    """A frozen list."""

    edition: Operator[int]
    digest: Operator[str]
    captures: Operator[int]
    frozen_at: Operator[datetime]
    file: Operator[str]


@record
class EditionVerificationResult:
    """Whether the archive holds every capture of a frozen list."""

    holds: Operator[bool]
    digest_matches: Operator[bool]
    listed: Operator[int]
    missing: Operator[int]
    changed: Operator[int]
    withdrawn: Operator[int]
    files: Operator[int]
    files_missing: Operator[int]
    files_damaged: Operator[int]
    examples: Operator[list[str]]


@record
class ComparisonResult:
    """Differences between two editions."""

    counts: Operator[dict[str, int]]
    file: Operator[str]


@record
class NoResult:
    """No result yet, or a partial one."""


OperationResult = (
    ImportResult
    | VerificationResult
    | IndexRebuildResult
    | SearchRebuildResult
    | EditionReportResult
    | FreezeResult
    | EditionVerificationResult
    | ComparisonResult
    | NoResult
)


@record
class OperationParameters:
    """Parameters of an operation; those that its kind does not have are null."""

    upload: Operator[int | None]
    name: Operator[str | None]
    source: Operator[str | None]
    execution: Operator[int | None]
    quick: Operator[bool | None]
    edition: Operator[int | None]
    again: Operator[bool | None]
    earlier: Operator[int | None]
    later: Operator[int | None]


@record
class OperationRecord:
    """An operation: long work that continues without the request that started it."""

    id: Operator[int]
    kind: Operator[OperationKind]
    state: Operator[OperationState]
    subject: Operator[str]
    """Subject of the work, for display."""
    parameters: Operator[OperationParameters]
    progress: Operator[OperationProgress]
    result: Annotated[dict[str, Any], Audience.OPERATOR, Documented(OperationResult)]
    """The result, by kind; partial while the operation runs."""
    error: Operator[str | None]
    """Why it failed, in a sentence."""
    error_code: Operator[str | None]
    """The same as a stable error code."""
    started_by: Operator[str]
    is_cancelled: Operator[bool]
    """Whether an operator cancelled it."""
    attempt: Operator[int]
    """Number of starts: it continues after a restart of the server."""
    paused_at: Operator[datetime | None]
    """When an operator paused it: it is queued, but not started until it is resumed."""
    created_at: Operator[datetime]
    started_at: Operator[datetime | None]
    updated_at: Operator[datetime]
    finished_at: Operator[datetime | None]

    @property
    def running(self) -> str | None:
        """The progress in words; None unless it runs or is paused."""
        if self.paused_at is not None and self.finished_at is None:
            return f"{self.progress}, paused; go on with: holdfast resume {self.id}"
        if self.state is not OperationState.RUNNING:
            return None
        return f"{self.progress}, stopping" if self.is_cancelled else str(self.progress)


@record
class UploadRecord:
    """A file that arrives in pieces; the protocol is tus 1.0."""

    id: Operator[int]
    state: Operator[UploadState]
    source: Operator[str]
    """Code of the source; the import creates it if it is missing."""
    name: Operator[str]
    """File name given by the client; never used as a name on disk."""
    size: Operator[int]
    received: Operator[int]
    """Bytes stored so far: the next piece starts here."""
    strict: Operator[bool]
    """Whether a damaged file is rejected."""
    sha256: Operator[str | None]
    """Expected SHA-256 of the whole file."""
    operation_id: Operator[int | None]
    """The operation that imports it, once it is complete."""
    started_by: Operator[str]
    created_at: Operator[datetime]
    updated_at: Operator[datetime]
    expires_at: Operator[datetime | None]
    """When it is deleted unless more of it arrives; null once it has ended."""


def operation_record(row: OperationRow) -> OperationRecord:
    job, run = row.job, row.execution
    names, metrics = [one.name for one in dataclasses.fields(OperationParameters)], run.metrics
    # Its worker renews the lease at least every half minute.
    beats = [moment for moment in (job.updated_at, job.lock_heartbeat_at, run.created_at) if moment is not None]
    return from_row(
        OperationRecord,
        run,
        kind=OperationKind(job.kind),
        state=state_of(run),
        subject=job.name,
        parameters=OperationParameters(**{name: run.config.get(name) for name in names}),
        progress=OperationProgress(
            phase=metrics.get("phase"), done=metrics.get("done") or 0, total=metrics.get("total")
        ),
        result={name: value for name, value in metrics.get("result", {}).items() if name not in _OWN_NOTES},
        error_code=run.reason if run.state == "failed" else None,
        started_by=job.details["actor"],
        is_cancelled=is_cancelled(job, run),
        attempt=row.attempt,
        updated_at=run.finished_at or max(beats),
    )


def upload_record(row: Upload) -> UploadRecord:
    return from_row(UploadRecord, row, state=UploadState(row.state), source=row.source_code, started_by=row.actor)
