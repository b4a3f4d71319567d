"""`holdfast audit`: who did what, when, from where. Read only: each action appends its own event.

`holdfast problem-report`: problems that readers reported, and their status.
"""

from __future__ import annotations

from typing import Annotated

import typer

from holdfast import feedback
from holdfast.audit import audit_events
from holdfast.cli.parameters import command_group
from holdfast.cli.resource import Listing, Reading, Rows, Writing, command, runnable
from holdfast.feedback import Category, Report, ReportStatus, find_report, triage
from holdfast.records import from_row
from holdfast.wiring.archive import Archive

_EVENTS = Listing("events", "id at actor action subject detail", "no such events; see all with: holdfast audit")
_REPORTS = Listing("reports", "id created_at status category snapshot_id description", "no such reports")


@runnable(listing=_EVENTS, example="audit --action source --limit 20")
def audit(
    session: Reading,
    actor: Annotated[str | None, typer.Option(help="Only what this one did, as the log names it.")] = None,
    action: Annotated[str | None, typer.Option(help="Only this action, or all that begin with it.")] = None,
    subject: Annotated[str | None, typer.Option(help="Only actions on this.")] = None,
    before: Annotated[int | None, typer.Option(min=0, help="Only events before this number.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="Events to show.")] = 50,
) -> Rows:
    """List actions and who did them, newest first; with --json, pass `next_before` to --before until it is null."""
    rows = audit_events(session, actor=actor, action=action, subject=subject, before=before, limit=limit)
    # Continue by id, not by offset: events are appended while a reader pages.
    return Rows(rows, {"next_before": rows[-1].id if len(rows) == limit else None})


problem_report = command_group("Read problem reports, add notes, close them. Example: holdfast problem-report list")
ReportId = Annotated[int, typer.Argument(help="The report's number.", metavar="ID", min=0)]


@command(problem_report, "list", listing=_REPORTS, example="problem-report list --status new")
def list_reports(
    session: Reading,
    status: Annotated[ReportStatus | None, typer.Option(help="Only these.")] = None,
    category: Annotated[Category | None, typer.Option(help="Only these.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="Reports to show.")] = 50,
) -> Rows:
    """List problem reports, newest first."""
    rows, total = feedback.reports(session, status=status, category=category, limit=limit)
    more = f"{total - len(rows):,} more; --limit shows them" if total > len(rows) else ""
    return Rows([from_row(Report, row) for row in rows], {"total": total}, more)


@command(problem_report, example="problem-report show 7")
def show(session: Reading, report: ReportId) -> Report:
    """Show one problem report with its notes."""
    return from_row(Report, find_report(session, report))


@command(problem_report, example='problem-report edit 7 --status resolved --notes "captured again"')
def edit(
    archive: Archive,
    session: Writing,
    report: ReportId,
    status: Annotated[ReportStatus | None, typer.Option(help="How far it is.")] = None,
    notes: Annotated[str | None, typer.Option(help="For operators; empty removes them.")] = None,
) -> Report:
    """Triage, close or reopen a problem report, with notes; the audit log says who did."""
    if status is None and notes is None:
        raise typer.BadParameter("give --status, --notes, or both")
    return from_row(Report, triage(session, archive.clock, report, status=status, notes=notes))
