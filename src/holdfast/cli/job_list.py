"""`holdfast job list`, which loads only what a list needs: a file of its own (`catalogue.APART`)."""

from __future__ import annotations

import json as jsonlib
from typing import Annotated

import typer

from holdfast import config
from holdfast.cli.job_words import KINDS, interval_text, job_object
from holdfast.cli.options import AsJson, Home
from holdfast.cli.tables import table
from holdfast.db.engine import open_database
from holdfast.jobs.listing.queries import list_admin_jobs, list_jobs
from holdfast.jobs.listing.values import SORTS, AdminFilter, JobFilter, ListedJob
from holdfast.jobs.projection import ADMIN_STATES
from holdfast.jobs.states import State
from holdfast.sources.queries import id_of

app_command = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)


@app_command.command(name="list")
def list_all(
    source: Annotated[str | None, typer.Option("--source", help="Only this source's.", metavar="CODE")] = None,
    status: Annotated[str | None, typer.Option("--status", help=f"One of {', '.join(ADMIN_STATES)}.")] = None,
    state: Annotated[
        list[str] | None, typer.Option("--state", help=f"One of {', '.join(State)}; repeatable. Scheduled jobs only.")
    ] = None,
    kind: Annotated[str | None, typer.Option("--kind", help=f"One of {', '.join(KINDS)}. Scheduled jobs only.")] = None,
    search: Annotated[str | None, typer.Option("--search", help="In names, codes and addresses.")] = None,
    sort: Annotated[str | None, typer.Option("--sort", help=f"By {', '.join(SORTS)}; newest first.")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, max=250)] = 50,
    offset: Annotated[int, typer.Option("--offset", min=0)] = 0,
    json: AsJson = False,
    home: Home = None,
) -> None:
    """List jobs, newest first: all of them, or with --state, --kind, --search and --sort those that the scheduler runs.

    Example: holdfast job list --status failed --source hc
    """
    for option, word, known in (
        ("--status", status, ADMIN_STATES),
        ("--sort", sort, SORTS),
        ("--kind", kind, KINDS),
        *(("--state", one, tuple(State)) for one in state or ()),
    ):
        if word is not None and word not in known:
            raise typer.BadParameter(f"{word[:40]!r} is none of {', '.join(known)}", param_hint=option)
    scheduled = state or kind or search or sort
    if status and scheduled:
        raise typer.BadParameter("it goes with --source alone; --state knows the other words", param_hint="--status")
    with open_database(config.load(home=home)) as database, database.read() as session:
        source_id = id_of(session, source) if source is not None else None
        if scheduled:
            wish = JobFilter(
                states=tuple(state or ()),
                source_id=source_id,
                kind=kind,
                search=search or "",
                sort_by=sort or "created_at",
                limit=limit,
                offset=offset,
            )
            rows, total = list_jobs(session, wish)
        else:
            rows, total = list_admin_jobs(session, AdminFilter(source, status, limit, offset))
    if json:
        told = {"jobs": [job_object(row) for row in rows], "total": total, "limit": limit, "offset": offset}
        print(jsonlib.dumps(told, ensure_ascii=False))
        return
    if rows:
        _print_list(rows, total, offset)
    elif total or offset or source or status or scheduled:
        print("no such jobs")
    else:
        print("no jobs yet; make one with: holdfast job create --source CODE")


def _print_list(rows: list[ListedJob], total: int, offset: int) -> None:
    print(
        table(
            ("job", "source", "kind", "status", "runs", "next run", "tries", "name"),
            [
                (
                    row.job.id,
                    row.source.code,
                    row.job.kind,
                    row.admin_status,
                    interval_text(row.job),
                    row.job.next_run_at,
                    row.retries or None,
                    row.job.name,
                )
                for row in rows
            ],
        )
    )
    if total > len(rows):
        print(f"{offset + 1} to {offset + len(rows)} of {total}; go on with --offset {offset + len(rows)}")
