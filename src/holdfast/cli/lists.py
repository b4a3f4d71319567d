"""`holdfast job list` and `holdfast feed list`, typed often: they load only what a list needs (`catalogue.APART`)."""

from __future__ import annotations

import json as jsonlib
from typing import Annotated, Any

import typer

from holdfast import config
from holdfast.cli.formatting import dumps, table
from holdfast.cli.job_selector import JOB_KINDS, interval_text
from holdfast.cli.parameters import AsJson, Home
from holdfast.db.engine import open_database
from holdfast.db.models import Feed
from holdfast.feeds import queries
from holdfast.feeds.health import BACKLOG, BY_HAND
from holdfast.feeds.queries import KINDS
from holdfast.jobs.states import State
from holdfast.jobs.views.dialects import command_job
from holdfast.jobs.views.listing import (
    ADMIN_STATES,
    SORTS,
    AdminFilter,
    JobFilter,
    ListedJob,
    list_admin_jobs,
    list_jobs,
)
from holdfast.sources.queries import find_source

job_list = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)


@job_list.command(name="list")
def list_all(
    source: Annotated[str | None, typer.Option("--source", help="Only this source's.", metavar="CODE")] = None,
    status: Annotated[str | None, typer.Option("--status", help=f"One of {', '.join(ADMIN_STATES)}.")] = None,
    state: Annotated[
        list[str] | None, typer.Option("--state", help=f"One of {', '.join(State)}; repeatable. Scheduled jobs only.")
    ] = None,
    kind: Annotated[
        str | None, typer.Option("--kind", help=f"One of {', '.join(JOB_KINDS)}. Scheduled jobs only.")
    ] = None,
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
        ("--kind", kind, JOB_KINDS),
        *(("--state", one, tuple(State)) for one in state or ()),
    ):
        if word is not None and word not in known:
            raise typer.BadParameter(f"{word[:40]!r} is none of {', '.join(known)}", param_hint=option)
    scheduled = state or kind or search or sort
    # Two vocabularies: --status speaks of a job and its last run together, --state of the schedule alone.
    if status and scheduled:
        raise typer.BadParameter("it goes with --source alone; --state knows the other words", param_hint="--status")
    with open_database(config.load(home=home)) as database, database.read() as session:
        # A code that no source has is an error, not an empty list.
        source_id = find_source(session, source).id if source is not None else None
        if scheduled:
            wanted = JobFilter(
                states=tuple(state or ()),
                source_id=source_id,
                kind=kind,
                search=search or "",
                sort_by=sort or "created_at",
                limit=limit,
                offset=offset,
            )
            rows, total = list_jobs(session, wanted)
        else:
            rows, total = list_admin_jobs(session, AdminFilter(source, status, limit, offset))
    if json:
        print(dumps({"jobs": [command_job(row) for row in rows], "total": total, "limit": limit, "offset": offset}))
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


feed_list = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)
Only = Annotated[str | None, typer.Option("--source", help="Only this source's.", metavar="CODE")]


@feed_list.command(name="list")
def list_feeds(
    source: Only = None,
    disabled: Annotated[bool | None, typer.Option("--disabled/--enabled", help="Only those.")] = None,
    kind: Annotated[str | None, typer.Option("--kind", help="feed or sitemap.")] = None,
    json: AsJson = False,
    home: Home = None,
) -> None:
    """List feeds and sitemaps: when they were polled, what they brought, what is wrong with them.

    Example: holdfast feed list --disabled
    """
    demand_kind(kind)
    with open_database(config.load(home=home)) as database, database.read() as session:
        source_id = find_source(session, source).id if source is not None else None
        rows = queries.listed(
            session, queries.FeedFilter(source_id=source_id, disabled=disabled, kind=kind, limit=100_000)
        )
    if json:
        print(jsonlib.dumps({"feeds": [as_object(feed, code) for feed, code in rows], "total": len(rows)}))
    elif not rows and (source or disabled is not None or kind):
        print("no such feeds; see all with: holdfast feed list")
    elif not rows:
        print(
            "no feeds yet; they are found by themselves for sources with feeds on: "
            "holdfast source edit CODE --set feeds=true"
        )
    else:
        print(
            table(
                ("feed", "source", "kind", "origin", "polled", "next", "items", "state", "url"),
                [
                    (
                        feed.id,
                        code,
                        feed.kind,
                        feed.origin,
                        feed.last_polled_at,
                        feed.next_poll_at,
                        feed.last_item_count,
                        state_of(feed),
                        feed.url,
                    )
                    for feed, code in rows
                ],
            )
        )


def demand_kind(kind: str | None) -> None:
    """Refuse, with exit code 2, what is no kind of feed."""
    if kind is not None and kind not in KINDS:
        raise typer.BadParameter(f"{kind[:40]!r} is none of {', '.join(KINDS)}", param_hint="--kind")


def state_of(feed: Feed) -> str:
    """Return in a word or two how a feed is doing."""
    if feed.disabled_at is not None:
        return f"disabled ({'by hand' if feed.last_error_type == BY_HAND else feed.last_error_type})"
    if feed.last_error_type == BACKLOG:
        return BACKLOG
    if feed.last_error_type is not None:
        return f"{feed.last_error_type} x{feed.consecutive_errors}"
    return "ok" if feed.last_polled_at is not None else "new"


def as_object(feed: Feed, code: str) -> dict[str, Any]:
    """Return a feed for `--json`."""
    return {
        "id": feed.id,
        "source": code,
        "url": feed.url,
        "kind": feed.kind,
        "origin": feed.origin,
        "state": state_of(feed),
        "created_at": feed.created_at.isoformat(),
        "last_polled_at": iso(feed.last_polled_at),
        "next_poll_at": iso(feed.next_poll_at),
        "last_item_count": feed.last_item_count,
        "consecutive_errors": feed.consecutive_errors,
        "last_error": feed.last_error,
        "last_error_type": feed.last_error_type,
        "disabled_at": iso(feed.disabled_at),
        "etag": feed.etag,
        "last_modified": feed.last_modified,
    }


def iso(moment: Any) -> str | None:
    """Return a moment for `--json`."""
    return None if moment is None else str(moment.isoformat())
