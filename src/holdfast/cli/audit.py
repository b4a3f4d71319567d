"""`holdfast audit`: who did what, when, from where. Read only: each action appends its own event.

`holdfast problem-report`: what readers told us, and what came of it.
"""

from __future__ import annotations

import json as jsonlib
from typing import Annotated, Any

import typer

from holdfast import config, feedback
from holdfast.audit import AuditFilter, audit_events
from holdfast.cli.formatting import lines, table
from holdfast.cli.parameters import AsJson, Home, command_group
from holdfast.db.models import IssueReport
from holdfast.feedback import Category, ReportFilter, ReportNotFound, ReportStatus, triage
from holdfast.wiring.archive import open_archive


def audit(
    actor: Annotated[
        str | None, typer.Option("--actor", help="Only actions of this one, as it is written there.")
    ] = None,
    action: Annotated[str | None, typer.Option("--action", help="Only this action, or all that begin with it.")] = None,
    subject: Annotated[str | None, typer.Option("--subject", help="Only what was done to this.")] = None,
    before: Annotated[int | None, typer.Option("--before", min=0, help="Only events before this number.")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=10_000, help="Events to show.")] = 50,
    json: AsJson = False,
    home: Home = None,
) -> None:
    """List what was done and who did it, newest first; with --json `next_before` is for --before, until it is null.

    Example: holdfast audit --action source --limit 20
    """
    wanted = AuditFilter(actor=actor, action=action, subject=subject, before=before, limit=limit)
    with open_archive(config.load(home=home)) as archive, archive.database.read() as session:
        rows = audit_events(session, wanted)
    if json:
        events = [
            {
                "id": row.id,
                "at": row.at.isoformat(),
                "actor": row.actor,
                "action": row.action,
                "subject": row.subject,
                "detail": row.detail,
            }
            for row in rows
        ]
        # By number, not by offset: events are appended while a reader turns pages.
        print(jsonlib.dumps({"events": events, "next_before": rows[-1].id if len(rows) == limit else None}))
        return
    if not rows:
        is_narrowed = actor or action or subject or before is not None
        print("no such events; see all with: holdfast audit" if is_narrowed else "nothing was changed here yet")
        return
    head = ("id", "at", "actor", "action", "subject", "detail")
    print(
        table(head, [(row.id, row.at, row.actor, row.action, row.subject, jsonlib.dumps(row.detail)) for row in rows])
    )


audit_command = audit


problem_report = command_group(
    "Read problem reports, note what was found out, close them. Example: holdfast problem-report list"
)
ReportId = Annotated[int, typer.Argument(help="The report's number.", metavar="ID", min=0)]
_COLUMNS = (
    "id",
    "category",
    "status",
    "description",
    "snapshot_id",
    "original_url",
    "page_url",
    "reporter_email",
    "notes",
    "created_at",
    "updated_at",
)


@problem_report.command("list")
def list_reports(
    status: Annotated[ReportStatus | None, typer.Option("--status", help="Only these.")] = None,
    category: Annotated[Category | None, typer.Option("--category", help="Only these.")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=10_000, help="Reports to show.")] = 50,
    json: AsJson = False,
    home: Home = None,
) -> None:
    """List problem reports, newest first.

    Example: holdfast problem-report list --status new
    """
    with open_archive(config.load(home=home)) as archive, archive.database.read() as session:
        rows, total = feedback.reports(session, ReportFilter(status=status, category=category, limit=limit))
    if json:
        print(jsonlib.dumps({"reports": [_object(row) for row in rows], "total": total}))
        return
    if not rows:
        print(
            "no such reports" if status or category else "no reports yet; readers send them from the pages of the API"
        )
        return
    head = ("id", "created", "status", "category", "snapshot", "description")
    print(
        table(
            head,
            [
                (row.id, row.created_at, row.status, row.category, row.snapshot_id or "", row.description)
                for row in rows
            ],
        )
    )
    if total > len(rows):
        print(f"{total - len(rows):,} more; --limit shows them")


@problem_report.command()
def show(report: ReportId, json: AsJson = False, home: Home = None) -> None:
    """Show one problem report with its notes.

    Example: holdfast problem-report show 7
    """
    with open_archive(config.load(home=home)) as archive, archive.database.read() as session:
        row = feedback.report(session, report)
    if row is None:
        raise ReportNotFound(report)
    _print(row, json=json)


@problem_report.command()
def edit(
    report: ReportId,
    status: Annotated[ReportStatus | None, typer.Option("--status", help="How far it is.")] = None,
    notes: Annotated[str | None, typer.Option("--notes", help="What was found out; empty takes them away.")] = None,
    json: AsJson = False,
    home: Home = None,
) -> None:
    """Triage, close or reopen a problem report, with notes; the audit log says who did.

    Example: holdfast problem-report edit 7 --status resolved --notes "captured again"
    """
    if status is None and notes is None:
        raise typer.BadParameter("say what is to change: --status, --notes, or both")
    with open_archive(config.load(home=home)) as archive, archive.database.write() as session:
        row = triage(session, archive.clock, report, status=status, notes=notes)
    _print(row, json=json)


def _object(row: IssueReport) -> dict[str, Any]:
    found = {name: getattr(row, name) for name in _COLUMNS}
    return {name: value.isoformat() if name.endswith("_at") else value for name, value in found.items()}


def _print(row: IssueReport, *, json: bool) -> None:
    if json:
        print(jsonlib.dumps(_object(row)))
        return
    for name, value in _object(row).items():
        if value is not None:
            # A report is written by readers of the web: their lines stay, their control characters do not.
            typer.echo(f"{name:<16} {lines(value)}")
