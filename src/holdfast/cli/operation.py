"""`holdfast operation` and `holdfast upload`: work that takes long and was asked for over HTTP, and files for it.

A server does the work; these commands show and end it, from wherever the database can be reached.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

import typer

from holdfast import config
from holdfast.cli.formatting import dumps, fields, size, table
from holdfast.cli.parameters import AsJson, Home, command_group, one_of
from holdfast.db.models import Operation, Upload
from holdfast.operations import long_running, operation_queries, upload_queries, uploads
from holdfast.operations.long_running import OperationKind, OperationState
from holdfast.operations.operation_queries import OperationFilter
from holdfast.operations.uploads import UploadState
from holdfast.wiring.archive import open_archive
from holdfast.wiring.jobs import open_jobs

app_command = command_group(
    "Work that takes minutes or hours, asked for over HTTP and done by a server: imports, verifications, rebuilds, "
    "editions. Example: holdfast operation list --state running"
)
OperationId = Annotated[int, typer.Argument(help="An operation's number.", metavar="OPERATION", min=0)]
Limit = Annotated[int, typer.Option("--limit", min=1, max=500, help="How many to list at most.")]
Before = Annotated[int | None, typer.Option("--before", min=0, help="Only those with a smaller number.")]


@app_command.command(name="list")
def list_operations(
    kind: Annotated[str | None, typer.Option("--kind", help=f"One of {', '.join(OperationKind)}.")] = None,
    state: Annotated[str | None, typer.Option("--state", help=f"One of {', '.join(OperationState)}.")] = None,
    limit: Limit = 50,
    before: Before = None,
    json: AsJson = False,
    home: Home = None,
) -> None:
    """List operations, newest first.

    Example: holdfast operation list --kind import
    """
    wanted = OperationFilter(
        kind=one_of(kind, tuple(OperationKind), "--kind"),
        state=one_of(state, tuple(OperationState), "--state"),
        before=before,
        limit=limit,
    )
    with open_archive(config.load(home=home)) as archive, archive.database.read() as session:
        rows = operation_queries.listed_operations(session, wanted)
    if json:
        print(dumps({"operations": [_object(row) for row in rows]}))
    elif not rows:
        print("no such operations" if kind or state or before is not None else "no operations yet")
    else:
        head = ("operation", "kind", "state", "progress", "asked for", "by", "subject")
        print(table(head, [_row(row) for row in rows]))
        if len(rows) == limit:
            print(f"go on with --before {rows[-1].id}")


def _row(row: Operation) -> tuple[object, ...]:
    return row.id, row.kind, row.state, _progress(row), row.created_at, row.actor, row.subject


def _progress(row: Operation) -> str | None:
    """Return how far an operation is, in words; None for one that waits or is over."""
    if row.state != OperationState.RUNNING:
        return None
    share = f" {row.done_units / row.total_units:.0%}" if row.total_units else ""
    return f"{row.phase or 'starting'}{share}" + (", to stop" if row.stop_asked else "")


@app_command.command()
def show(operation: OperationId, json: AsJson = False, home: Home = None) -> None:
    """Show how far an operation is, and what came of it.

    Example: holdfast operation show 1
    """
    with open_archive(config.load(home=home)) as archive, archive.database.read() as session:
        row = long_running.find(session, operation)
    print(dumps(_object(row)) if json else fields(_fields(row)))


def _fields(row: Operation) -> list[tuple[str, object]]:
    shown: list[tuple[str, object]] = [
        ("operation", row.id),
        ("kind", row.kind),
        ("subject", row.subject),
        ("state", row.state),
        ("progress", _progress(row)),
        ("asked for", row.created_at),
        ("by", row.actor),
        ("begun", row.started_at),
        ("times", row.attempt),
        ("ended", row.finished_at),
        ("error", row.error),
    ]
    # Lists are of single files: `--json` has them.
    plain = [(name, value) for name, value in row.result.items() if not isinstance(value, list | dict)]
    return [*shown, *plain]


@app_command.command()
def cancel(operation: OperationId, json: AsJson = False, home: Home = None) -> None:
    """End an operation that waits, or ask the one that runs to leave off, which it does within seconds.

    Example: holdfast operation cancel 1
    """
    with open_jobs(config.load(home=home)) as jobs, jobs.database.write() as session:
        row = long_running.cancel(session, jobs.clock, operation)
    if json:
        print(dumps(_object(row)))
    elif row.finished_at is not None:
        print(f"operation {operation} is cancelled")
    else:
        print(f"operation {operation} is asked to stop; see: holdfast operation show {operation}")


def _object(row: Operation) -> dict[str, Any]:
    return {
        "id": row.id,
        "kind": row.kind,
        "state": row.state,
        "subject": row.subject,
        "parameters": {name: value for name, value in row.parameters.items() if name != long_running.DIRECTORY},
        "phase": row.phase,
        "done": row.done_units,
        "total": row.total_units,
        "result": row.result,
        "error": row.error,
        "error_code": row.error_code,
        "started_by": row.actor,
        "is_cancelled": row.stop_asked,
        "attempt": row.attempt,
        "created_at": row.created_at,
        "started_at": row.started_at,
        "updated_at": row.updated_at,
        "finished_at": row.finished_at,
    }


upload = command_group(
    "Files that arrive in pieces over HTTP (tus 1.0) and are imported once they are whole. "
    "Example: holdfast upload list --state receiving"
)
UploadId = Annotated[int, typer.Argument(help="An upload's number.", metavar="UPLOAD", min=0)]


@upload.command(name="list")
def list_uploads(
    state: Annotated[str | None, typer.Option("--state", help=f"One of {', '.join(UploadState)}.")] = None,
    limit: Limit = 50,
    before: Before = None,
    json: AsJson = False,
    home: Home = None,
) -> None:
    """List uploads, newest first.

    Example: holdfast upload list
    """
    wanted = one_of(state, tuple(UploadState), "--state")
    with open_archive(config.load(home=home)) as archive, archive.database.read() as session:
        rows = upload_queries.listed_uploads(session, state=wanted, before=before, limit=limit)
    if json:
        print(dumps({"uploads": [_upload_object(row) for row in rows]}))
    elif not rows:
        print("no such uploads" if state or before is not None else "no uploads yet")
    else:
        head = ("upload", "state", "source", "received", "of", "operation", "expires", "name")
        shown = [
            (
                row.id,
                row.state,
                row.source_code,
                size(row.received),
                size(row.size),
                row.operation_id,
                row.expires_at,
                row.name,
            )
            for row in rows
        ]
        print(table(head, shown))
        if len(rows) == limit:
            print(f"go on with --before {rows[-1].id}")


@upload.command(name="show")
def show_upload(number: UploadId, json: AsJson = False, home: Home = None) -> None:
    """Show how far an upload is.

    Example: holdfast upload show 1
    """
    with open_archive(config.load(home=home)) as archive, archive.database.read() as session:
        row = uploads.find(session, number)
    if json:
        print(dumps(_upload_object(row)))
        return
    shown: list[tuple[str, object]] = [
        ("upload", row.id),
        ("name", row.name),
        ("source", row.source_code),
        ("state", row.state),
        ("received", f"{size(row.received)} of {size(row.size)}"),
        ("sha256", row.sha256),
        ("operation", row.operation_id),
        ("begun", row.created_at),
        ("by", row.actor),
        ("expires", row.expires_at),
    ]
    print(fields(shown))


@upload.command(name="import")
def import_again(number: UploadId, json: AsJson = False, home: Home = None) -> None:
    """Queue the import of a whole upload whose import failed or was cancelled; a server does it.

    Example: holdfast upload import 1
    """
    settings = config.load(home=home)
    with open_jobs(settings) as jobs, jobs.database.write() as session:
        row = uploads.import_again(session, jobs.clock, settings, number)
    if json:
        print(dumps(_upload_object(row)))
    else:
        print(f"upload {number} is imported by operation {row.operation_id}, which a server takes up")


@upload.command()
def end(number: UploadId, json: AsJson = False, home: Home = None) -> None:
    """End an upload and remove its bytes; one that is being imported is not ended: cancel its operation first.

    Example: holdfast upload end 1
    """
    settings = config.load(home=home)
    with open_jobs(settings) as jobs:
        with jobs.database.write() as session:
            row = uploads.terminate(session, jobs.clock, number)
        # Behind the commit: a row that says it is open never stands without its bytes.
        uploads.remove_part(settings.home, number)
    print(dumps(_upload_object(row)) if json else f"upload {number} is ended")


def _upload_object(row: Upload) -> dict[str, Any]:
    moments: dict[str, datetime | None] = {
        "created_at": row.created_at,
        "updated_at": row.updated_at,
        "expires_at": row.expires_at,
    }
    return {
        "id": row.id,
        "state": row.state,
        "source": row.source_code,
        "name": row.name,
        "size": row.size,
        "received": row.received,
        "sha256": row.sha256,
        "strict": row.strict,
        "operation": row.operation_id,
        "started_by": row.actor,
        **moments,
    }
