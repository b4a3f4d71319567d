"""`holdfast audit`: who did what, when, from where. Read only: the log is appended to by the deeds themselves."""

from __future__ import annotations

import json as jsonlib
from typing import Annotated

import typer

from holdfast import config
from holdfast.cli.options import AsJson, Home
from holdfast.cli.tables import table
from holdfast.db.audit_queries import AuditFilter, audit_events
from holdfast.wiring.archive import open_archive


def audit(
    actor: Annotated[
        str | None, typer.Option("--actor", help="Only deeds of this one, as it is written there.")
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


app_command = audit
