"""`holdfast job list` and `holdfast feed list`: used often, so they import only the minimum (`catalogue.APART`)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Annotated, Final, get_args

import typer

from holdfast.cli import printing
from holdfast.cli.formatting import table
from holdfast.cli.job_selector import JOB_KINDS, interval_text, job_json, open_for_jobs
from holdfast.cli.parameters import OfSource, one_of
from holdfast.cli.printing import Done, Listing, Rows
from holdfast.clock import SystemClock
from holdfast.config import Settings
from holdfast.db.engine import Database, open_database
from holdfast.feeds import queries
from holdfast.feeds.records import FeedKind, feed_record
from holdfast.jobs.pauses import RunWait
from holdfast.jobs.states import State
from holdfast.jobs.views.listing import ADMIN_STATES, SORTS, JobFilter, JobRow, list_admin_jobs, list_jobs
from holdfast.jobs.waiting import waits_of
from holdfast.sources.queries import source_id_of

job_list = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
feed_list = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
command = partial(printing.command, opened=open_database)
FEED_KINDS: Final = get_args(FeedKind)
_FEEDS = Listing(
    "feeds",
    "id source kind origin last_polled_at next_poll_at last_item_count health url",
    "no feeds yet; they are discovered for sources with feeds on: holdfast source edit CODE --set feeds=true",
)


@printing.command(job_list, "list", opened=open_for_jobs, example="job list --status failed --source hc")
def list_all(
    opened: tuple[Settings, Database],
    source: OfSource = None,
    status: Annotated[str | None, typer.Option(help=f"One of {', '.join(ADMIN_STATES)}.")] = None,
    state: Annotated[
        list[str] | None, typer.Option(help=f"One of {', '.join(State)}; repeatable. Scheduled jobs only.")
    ] = None,
    kind: Annotated[str | None, typer.Option(help=f"One of {', '.join(JOB_KINDS)}. Scheduled jobs only.")] = None,
    search: Annotated[str | None, typer.Option(help="In names, codes and addresses.")] = None,
    sort: Annotated[str | None, typer.Option(help=f"By {', '.join(SORTS)}; newest first.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=250)] = 50,
    offset: Annotated[int, typer.Option(min=0)] = 0,
) -> Done:
    """List jobs, newest first: all; with --state, --kind, --search or --sort only those that the scheduler runs."""
    one_of(status, ADMIN_STATES, "--status")
    one_of(sort, SORTS, "--sort")
    one_of(kind, JOB_KINDS, "--kind")
    for one in state or ():
        one_of(one, tuple(State), "--state")
    scheduled = state or kind or search or sort
    # These are two vocabularies: --status covers a job and its last run, --state only the schedule.
    if status and scheduled:
        raise typer.BadParameter("it goes with --source alone; --state knows the other words", param_hint="--status")
    settings, database = opened
    with database.read() as session:
        source_id = source_id_of(session, source)
        if scheduled:
            states, sorts = tuple(state or ()), sort or "created_at"
            wanted = JobFilter(states, source_id, kind, search or "", sort_by=sorts, limit=limit, offset=offset)
            rows, total = list_jobs(session, wanted)
        else:
            rows, total = list_admin_jobs(session, source=source, status=status, limit=limit, offset=offset)
    waits = waits_of(settings, SystemClock(), [row.latest for row in rows])
    found = {"jobs": [job_json(row, waits) for row in rows], "total": total, "limit": limit, "offset": offset}
    if rows:
        more = f"{offset + 1} to {offset + len(rows)} of {total}; go on with --offset {offset + len(rows)}"
        return Done(found, [_table(rows, waits), *([more] if total > len(rows) else ())])
    if total or offset or source or status or scheduled:
        return Done(found, "no such jobs")
    return Done(found, "no jobs yet; make one with: holdfast job create --source CODE")


def _table(rows: list[JobRow], waits: Mapping[int, RunWait]) -> str:
    cells = [
        (
            *(row.job.id, row.source.code, row.job.kind, row.admin_status, interval_text(row.job)),
            *(row.job.next_run_at, row.retries or None),
            waits[row.latest.id].code if row.latest and row.latest.id in waits else None,
            row.job.name,
        )
        for row in rows
    ]
    return table(("job", "source", "kind", "status", "runs", "next run", "tries", "waits for", "name"), cells)


@command(feed_list, "list", listing=_FEEDS, example="feed list --disabled")
def list_feeds(
    database: Database,
    source: OfSource = None,
    disabled: Annotated[bool | None, typer.Option("--disabled/--enabled", help="Only those.")] = None,
    kind: Annotated[str | None, typer.Option(help="feed or sitemap.")] = None,
) -> Rows:
    """List feeds and sitemaps with their last and next poll, and their state."""
    kind = one_of(kind, FEED_KINDS, "--kind")
    with database.read() as session:
        source_id = source_id_of(session, source)
        rows = queries.listed(session, source_id=source_id, disabled=disabled, kind=kind, limit=100_000)
        feeds = [feed_record(*row) for row in rows]
    is_filtered = source or disabled is not None or kind
    none = "no such feeds; list all with: holdfast feed list" if is_filtered else None
    return Rows(feeds, {"total": len(feeds)}, none)
