"""`holdfast operation` and `holdfast upload`: long-running work requested over HTTP, and files for it.

A worker does the work; these commands show and end it, from wherever the database can be reached.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from holdfast.cli.parameters import command_group, one_of
from holdfast.cli.printing import described, picked
from holdfast.cli.resource import Done, Listing, Reading, Rows, Writing, command
from holdfast.jobs.kinds import OperationKind
from holdfast.operations import long_running, queries, uploads
from holdfast.operations.long_running import RUN_STATES, OperationState
from holdfast.operations.records import OperationRecord, UploadRecord, operation_record, upload_record
from holdfast.operations.uploads import UploadState
from holdfast.wiring.jobs import JobService, open_jobs

app_command = command_group(
    "Work that takes minutes or hours, requested over HTTP and done by a worker: imports, verifications, rebuilds, "
    "editions. Example: holdfast operation list --state running"
)
OperationId = Annotated[int, typer.Argument(help="An operation's number.", metavar="OPERATION", min=0)]
Limit = Annotated[int, typer.Option("--limit", min=1, max=500, help="How many to list at most.")]
Before = Annotated[int | None, typer.Option("--before", min=0, help="Only those with a smaller number.")]
_OPERATIONS = Listing("operations", "id kind state running created_at started_by subject", "no operations")
_SHOWN = "id kind subject state running created_at started_by started_at attempt finished_at error"
_UPLOADS = Listing("uploads", "id state source received size operation_id expires_at name", "no uploads")


@command(app_command, "list", listing=_OPERATIONS, example="operation list --kind import")
def list_operations(
    session: Reading,
    kind: Annotated[str | None, typer.Option(help=f"One of {', '.join(OperationKind)}.")] = None,
    state: Annotated[str | None, typer.Option(help=f"One of {', '.join(OperationState)}.")] = None,
    limit: Limit = 50,
    before: Before = None,
) -> Rows:
    """List operations, newest first."""
    kind, state = one_of(kind, tuple(OperationKind), "--kind"), one_of(state, tuple(OperationState), "--state")
    run_state = state and RUN_STATES[OperationState(state)]
    rows = queries.listed_operations(session, kind=kind, state=run_state, before=before, limit=limit)
    return _rows([operation_record(row) for row in rows], limit)


def _rows(found: Sequence[OperationRecord | UploadRecord], limit: int) -> Rows:
    return Rows(found, footer=f"continue with --before {found[-1].id}" if len(found) == limit else "")


@command(app_command, example="operation show 9")
def show(session: Reading, operation: OperationId) -> Done:
    """Show the progress and the result of an operation."""
    found = operation_record(long_running.find(session, operation))
    # Omit lists of single files: `--json` has them.
    plain = {name: value for name, value in found.result.items() if not isinstance(value, list | dict)}
    return Done(found, described(picked(found, _SHOWN) | plain))


@command(app_command, opened=open_jobs, example="operation cancel 9")
def cancel(jobs: JobService, session: Writing, operation: OperationId) -> Done:
    """Cancel a queued operation, or ask the running one to stop, which it does within seconds."""
    found = operation_record(long_running.cancel(session, jobs.clock, operation))
    if found.finished_at is not None:
        return Done(found, f"operation {operation} is cancelled")
    return Done(found, f"operation {operation} is stopping; see: holdfast operation show {operation}")


upload = command_group(
    "Files that arrive in pieces over HTTP (tus 1.0) and are imported once they are complete. "
    "Example: holdfast upload list --state receiving"
)
UploadId = Annotated[int, typer.Argument(help="An upload's number.", metavar="UPLOAD", min=0)]


@command(upload, "list", listing=_UPLOADS, example="upload list")
def list_uploads(
    session: Reading,
    state: Annotated[str | None, typer.Option(help=f"One of {', '.join(UploadState)}.")] = None,
    limit: Limit = 50,
    before: Before = None,
) -> Rows:
    """List uploads, newest first."""
    state = one_of(state, tuple(UploadState), "--state")
    rows = queries.listed_uploads(session, state=state, before=before, limit=limit)
    return _rows([upload_record(row) for row in rows], limit)


@command(upload, "show", example="upload show 1")
def show_upload(session: Reading, number: UploadId) -> UploadRecord:
    """Show the progress of an upload."""
    return upload_record(uploads.find(session, number))


@command(upload, "import", opened=open_jobs, example="upload import 1")
def import_again(jobs: JobService, session: Writing, number: UploadId) -> Done:
    """Queue the import of a complete upload whose import failed or was cancelled; a worker does it."""
    found = upload_record(uploads.import_again(session, jobs.clock, jobs.settings, number))
    return Done(found, f"operation {found.operation_id} will import upload {number} on a worker")


@command(upload, opened=open_jobs, example="upload end 1")
def end(jobs: JobService, number: UploadId) -> Done:
    """End an upload and remove its bytes; while one is imported, cancel its operation first."""
    with jobs.database.write() as session:
        found = upload_record(uploads.terminate(session, jobs.clock, number))
    # After the commit: an open row never exists without its bytes.
    uploads.remove_part(jobs.settings.home, number)
    return Done(found, f"upload {number} is ended")
