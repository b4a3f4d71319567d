"""Operations that take long, and files that arrive in pieces, as operators see them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from holdfast.api.error_codes import ERROR_CODES
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


class FileProblem(BaseModel):
    """Something that is wrong with a file."""

    file: int
    name: str
    kind: str
    detail: str


class ImportedFileResult(BaseModel):
    """What came of one file of an upload."""

    name: str
    state: Literal["imported", "again", "failed"]
    file: int | None
    how: str
    records: int
    notes: list[str]
    error: str | None


class ImportResult(BaseModel):
    """What an import brought."""

    execution: int | None = Field(description="The run that holds its files together.")
    imported: int
    again: int = Field(description="Files that were known before.")
    failed: int
    records: int
    snapshots: int
    pages: int
    damaged: int = Field(description="Places that were passed over.")
    files: list[ImportedFileResult]


class VerificationResult(BaseModel):
    """What a verification found."""

    files: int
    bytes: int
    records: int
    ok: int
    damaged: int
    missing: int
    problems: list[FileProblem] = Field(description="The first hundred.")


class FileError(BaseModel):
    """A file that could not be read."""

    file: int
    error: str


class IndexRebuildResult(BaseModel):
    """What a rebuild of the index did."""

    restored: int = Field(description="Files that got their rows back.")
    withdrawals: int
    waiting: int = Field(description="Files that were to be read again.")
    files: int
    snapshots: int
    errors: list[FileError]
    problems: list[str]


class SearchRebuildResult(BaseModel):
    """What a rebuild of the search index did."""

    pages: int
    changes: int


class EditionReportResult(BaseModel):
    """What an edition's report says."""

    edition: int
    status: str
    counts: dict[str, int]


class FreezeResult(BaseModel):
    """A frozen list."""

    edition: int
    digest: str
    captures: int
    frozenAt: datetime
    file: str


class EditionVerificationResult(BaseModel):
    """Whether the archive holds what a frozen list names."""

    holds: bool
    digestMatches: bool
    listed: int
    missing: int
    changed: int
    withdrawn: int
    files: int
    filesMissing: int
    filesDamaged: int
    examples: list[str]


class ComparisonResult(BaseModel):
    """What differs between two editions."""

    counts: dict[str, int]
    file: str


class NoResult(BaseModel):
    """Nothing yet, or a part of what there will be."""


class _OneOf:
    """Tells the document what an object may be; what goes out stays as it is."""

    def __get_pydantic_json_schema__(self, _schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        kinds = (
            ImportResult,
            VerificationResult,
            IndexRebuildResult,
            SearchRebuildResult,
            EditionReportResult,
            FreezeResult,
            EditionVerificationResult,
            ComparisonResult,
            NoResult,
        )
        return {"anyOf": [handler(kind.__pydantic_core_schema__) for kind in kinds]}


class OperationParameters(BaseModel):
    """What an operation was started with; what it has no use for is left out."""

    model_config = ConfigDict(extra="ignore")

    upload: int | None = None
    name: str | None = None
    source: str | None = None
    execution: int | None = None
    quick: bool | None = None
    edition: int | None = None
    again: bool | None = None
    earlier: int | None = None
    later: int | None = None


class OperationShown(Answer):
    """An operation: work that takes long and goes on without the request that started it."""

    model_config = ConfigDict(json_schema_extra={"examples": [_OPERATION]})

    id: int
    kind: OperationKind
    state: OperationState
    subject: str = Field(description="What it is about, for people.")
    parameters: OperationParameters
    progress: OperationProgress
    result: Annotated[dict[str, Any], _OneOf()] = Field(
        description="What came of it, by kind; what is known so far while it runs."
    )
    error: str | None = Field(description="Why it failed, in a sentence.")
    error_code: str | None = Field(
        description="The same as a stable word.", json_schema_extra={"enum": [*ERROR_CODES, None]}
    )
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
            parameters=OperationParameters(**row.parameters),
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
