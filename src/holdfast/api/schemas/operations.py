"""Operations that take long, and files that arrive in pieces, as operators see them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import ConfigDict, Field

from holdfast.api.schemas.base import MAX_ID, Answer, RequestForm
from holdfast.db.models import Operation, Upload
from holdfast.operations.long_running import OperationKind, OperationState
from holdfast.operations.uploads import UploadState

_OPERATION: dict[str, Any] = {
    "id": 7,
    "kind": "verify",
    "state": "running",
    "subject": "all WARC files",
    "parameters": {"quick": False},
    "progress": {"phase": "verifying", "done": 734003200, "total": 4294967296},
    "result": {},
    "error": None,
    "errorCode": None,
    "startedBy": "admin@127.0.0.1",
    "isCancelled": False,
    "attempt": 1,
    "createdAt": "2026-11-15T12:15:00Z",
    "startedAt": "2026-11-15T12:15:00Z",
    "updatedAt": "2026-11-15T12:15:09Z",
    "finishedAt": None,
}


class OperationProgress(Answer):
    """How far an operation is."""

    phase: str | None = Field(description="What it is at, in a few words; null before it began.")
    done: int = Field(description="Bytes, files or rows, by phase.")
    total: int | None = Field(description="Of so many; null where that is not known.")


class OperationShown(Answer):
    """An operation: work that takes long and goes on without the request that started it."""

    model_config = ConfigDict(json_schema_extra={"examples": [_OPERATION]})

    id: int
    kind: OperationKind
    state: OperationState
    subject: str = Field(description="What it is about, for people.")
    parameters: dict[str, Any] = Field(description="What it was started with; by kind.")
    progress: OperationProgress
    result: dict[str, Any] = Field(description="What came of it, by kind; what is known so far while it runs.")
    error: str | None = Field(description="Why it failed, in a sentence.")
    error_code: str | None = Field(description="The same as a stable word.")
    started_by: str
    is_cancelled: bool = Field(description="Whether it was asked to leave off.")
    attempt: int = Field(description="How often it was begun: it goes on after a restart of the server.")
    created_at: datetime
    started_at: datetime | None
    updated_at: datetime
    finished_at: datetime | None

    @classmethod
    def of(cls, row: Operation) -> OperationShown:
        """Return what is shown of a row."""
        return cls(
            id=row.id,
            kind=OperationKind(row.kind),
            state=OperationState(row.state),
            subject=row.subject,
            parameters=row.parameters,
            progress=OperationProgress(phase=row.phase, done=row.done_units, total=row.total_units),
            # What a process that goes on with it needs is not for readers.
            result={name: value for name, value in row.result.items() if name not in ("after", "marked")},
            error=row.error,
            error_code=row.error_code,
            started_by=row.actor,
            is_cancelled=row.stop_asked,
            attempt=row.attempt,
            created_at=row.created_at,
            started_at=row.started_at,
            updated_at=row.updated_at,
            finished_at=row.finished_at,
        )


class VerificationForm(RequestForm):
    """Which files are to be verified, and how closely."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"source": "example", "quick": False}]})

    source: str | None = Field(None, max_length=64, description="Only files of this source.")
    execution: int | None = Field(None, ge=0, le=MAX_ID, description="Only files of this execution.")
    quick: bool = Field(False, description="Only whether each file is there and has its size; no byte is read.")


class IndexRebuildForm(RequestForm):
    """Which files are to be read again."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"source": "example"}]})

    source: str | None = Field(None, max_length=64, description="Only files of this source; all if left out.")


class UploadShown(Answer):
    """A file that arrives in pieces; the protocol is tus 1.0."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "id": 3,
                    "state": "receiving",
                    "source": "example",
                    "name": "crawl.warc.gz",
                    "size": 1073741824,
                    "received": 268435456,
                    "strict": False,
                    "sha256": None,
                    "operationId": None,
                    "startedBy": "admin@127.0.0.1",
                    "createdAt": "2026-11-15T12:15:00Z",
                    "updatedAt": "2026-11-15T12:16:00Z",
                    "expiresAt": "2026-11-16T12:16:00Z",
                }
            ]
        }
    )

    id: int
    state: UploadState
    source: str = Field(description="The code of the source that it is for; made by the import if it is new.")
    name: str = Field(description="As the client calls it; no file is called so here.")
    size: int
    received: int = Field(description="Bytes that are here for good: where the next piece begins.")
    strict: bool = Field(description="Whether a file with any damage is refused.")
    sha256: str | None = Field(description="What the whole file must have.")
    operation_id: int | None = Field(description="The operation that imports it, once it is whole.")
    started_by: str
    created_at: datetime
    updated_at: datetime
    expires_at: datetime | None = Field(description="When it is removed unless more of it comes; null once it is over.")

    @classmethod
    def of(cls, row: Upload) -> UploadShown:
        """Return what is shown of a row."""
        return cls(
            id=row.id,
            state=UploadState(row.state),
            source=row.source_code,
            name=row.name,
            size=row.size,
            received=row.received,
            strict=row.strict,
            sha256=row.sha256,
            operation_id=row.operation_id,
            started_by=row.actor,
            created_at=row.created_at,
            updated_at=row.updated_at,
            expires_at=row.expires_at,
        )
