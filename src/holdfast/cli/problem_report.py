"""`holdfast problem-report`: what readers told us: list, show, triage with notes, close."""

from __future__ import annotations

import json as jsonlib
from typing import Annotated, Any

import typer

from holdfast import config
from holdfast.cli.options import AsJson, Home
from holdfast.cli.tables import lines, table
from holdfast.db.models import IssueReport
from holdfast.feedback import queries
from holdfast.feedback.reports import Category, ReportNotFound, ReportStatus, triage
from holdfast.wiring.archive import open_archive

app_command = typer.Typer(
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    no_args_is_help=True,
    help="Read problem reports, note what was found out, close them. Example: holdfast problem-report list",
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


@app_command.command("list")
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
        rows, total = queries.reports(session, status=status, category=category, limit=limit, offset=0)
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


@app_command.command()
def show(report: ReportId, json: AsJson = False, home: Home = None) -> None:
    """Show one problem report with its notes.

    Example: holdfast problem-report show 7
    """
    with open_archive(config.load(home=home)) as archive, archive.database.read() as session:
        row = queries.report(session, report)
    if row is None:
        raise ReportNotFound(report)
    _print(row, json=json)


@app_command.command()
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
            typer.echo(f"{name:<16} {lines(value)}")
