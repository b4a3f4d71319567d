"""`holdfast frontier`: what is queued; addresses added by hand, queues cleared, what dead processes held freed."""

from __future__ import annotations

import importlib
import json as jsonlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Any

import typer

from holdfast import config
from holdfast.changes.listing import span
from holdfast.cli.formatting import counted, dumps, text
from holdfast.cli.parameters import AsJson, ExecutionId, Home, command_group, configure_log
from holdfast.cli.report import find_execution
from holdfast.config import Settings
from holdfast.fetch.guard import AddressGuard
from holdfast.frontier import OpenAttempt
from holdfast.jobs.administration.frontier_actions import (
    Added,
    AddedPlace,
    AddingUrls,
    AddWish,
    clear,
    domain_of,
    reset_domain,
)
from holdfast.jobs.administration.requeueing import Requeued, RequeueRequest, RequeueStatus, requeue, requeue_failed
from holdfast.jobs.views.frontier_queries import (
    FrontierUrl,
    UrlFilter,
    UrlStatus,
    frontier_urls,
    meant_frontier,
)
from holdfast.jobs.views.host_queries import left_out_hosts
from holdfast.types import UrlKind
from holdfast.wiring import open_runtime
from holdfast.wiring.archive import open_archive
from holdfast.wiring.jobs import open_jobs

frontier = command_group("Look at what is queued, and change it. Example: holdfast frontier stats")
app_command = frontier
Urls = Annotated[list[str], typer.Argument(help="Addresses.")]
SourceCode = Annotated[str | None, typer.Option("--source", help="The source they belong to; found if left out.")]
_DAYS = ["%Y-%m-%d"]
Execution = Annotated[int | None, typer.Option("--execution", help="An execution's number; the newest crawl.")]


@frontier.command()
def stats(execution: ExecutionId = None, json: AsJson = False, home: Home = None) -> None:
    """Count what is pending, in flight, completed and failed.

    Example: holdfast frontier stats 3 --json
    """
    with open_runtime(config.load(home=home)) as runtime:
        if execution is not None:
            find_execution(runtime, execution)
        found = runtime.frontier.stats(execution)
    if json:
        print(jsonlib.dumps({**asdict(found), "counts": dict(found.counts)}))
        return
    for name in ("pending", "leased_domains", "completed", "failed", "ruled_out", "domains"):
        print(f"{getattr(found, name):>12,}  {name.replace('_', ' ')}")


@frontier.command(name="list")
def list_open(
    execution: ExecutionId = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="Rows to print.")] = 50,
    json: AsJson = False,
    home: Home = None,
) -> None:
    """List open attempts in the order in which they would be asked.

    Example: holdfast frontier list 3 --limit 20
    """
    with open_runtime(config.load(home=home)) as runtime:
        one = find_execution(runtime, execution)
        rows = list(runtime.frontier.list_open(one, limit=limit))
    if json:
        print(jsonlib.dumps({"urls": [_object(row) for row in rows]}))
        return
    for row in rows:
        when = f"  not before {row.scheduled_for:%H:%M:%S}" if row.scheduled_for else ""
        print(f"{row.priority}  depth {row.depth}  try {row.number}  {row.kind.value:<9}  {text(row.url)}{when}")
    if not rows:
        print(f"execution {one}: nothing is queued")


@frontier.command()
def urls(
    execution: Execution = None,
    status: Annotated[UrlStatus | None, typer.Option(help="Where an attempt stands.")] = None,
    domain: Annotated[str | None, typer.Option(help="Only of this host.")] = None,
    kind: Annotated[UrlKind | None, typer.Option(help="What it is asked for as.")] = None,
    search: Annotated[str | None, typer.Option(help="A part of the address.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="Rows to print.")] = 50,
    json: AsJson = False,
    home: Home = None,
) -> None:
    """List attempts of a crawl, whatever became of them, by state, host or a part of the address.

    Example: holdfast frontier urls --status failed --domain example.org
    """
    host = None if domain is None else domain_of(domain)
    wanted = UrlFilter(status=status, domain=host, kind=kind, search=search, limit=limit)
    with open_archive(config.load(home=home)) as archive, archive.database.read() as session:
        meant = meant_frontier(session, execution)
        rows: list[FrontierUrl] = []
        while True:
            found = frontier_urls(session, meant.frontier_id, wanted)
            rows += found.rows
            if found.next is None or len(rows) >= limit:
                break
            # A filter without an index looks at some thousand attempts at a time.
            left = limit - len(rows)
            wanted = UrlFilter(status=status, domain=host, kind=kind, search=search, limit=left, after=found.next)
    if json:
        print(dumps({"execution": meant.execution_id, "urls": [_attempt(row) for row in rows]}))
        return
    for row in rows:
        why = f"  {text(row.reason)}" if row.reason else ""
        print(f"{row.status.value:<9}  {row.priority}  depth {row.depth}  try {row.attempt}  {text(row.url)}{why}")
    if not rows:
        print(f"execution {meant.execution_id}: none")


@frontier.command()
def add(
    urls: Urls,
    source: SourceCode = None,
    priority: Annotated[int | None, typer.Option(min=1, max=3, help="3 is asked first.")] = None,
    json: AsJson = False,
    home: Home = None,
) -> None:
    """Add addresses: to the run of their source that is under way, to its next run, or to a job of their own.

    A job of their own captures these pages with what they embed and follows no links.
    Example: holdfast frontier add https://example.org/news
    """
    with _adding(config.load(home=home)) as adding:
        done = adding.add(AddWish(urls=urls, source=source, priority=priority))
    _tell(done, as_json=json)


@frontier.command()
def seed(
    urls: Annotated[list[str] | None, typer.Argument(help="Addresses; without any, the seeds of --source.")] = None,
    source: SourceCode = None,
    json: AsJson = False,
    home: Home = None,
) -> None:
    """Add addresses as seeds: first in their turn, and their links are one step away.

    Example: holdfast frontier seed --source example-org
    """
    if not urls and source is None:
        raise typer.BadParameter("name addresses, or a source whose seeds are meant", param_hint="URLS")
    with _adding(config.load(home=home)) as adding:
        wanted = urls or adding.seeds_of(source or "")
        done = adding.add(AddWish(urls=wanted, source=source, is_seed=True))
    _tell(done, as_json=json)


@contextmanager
def _adding(settings: Settings) -> Iterator[AddingUrls]:
    configure_log(settings, unless_set="ERROR")
    with open_jobs(settings) as jobs, open_runtime(settings) as runtime:
        yield AddingUrls(
            runtime.frontier,
            runtime.clock,
            jobs.actions,
            read=jobs.database.read,
            write=jobs.database.write,
            guard=AddressGuard(settings.allow_networks),
        )


def _tell(done: Added, *, as_json: bool) -> None:
    if as_json:
        print(jsonlib.dumps({"added": done.added, "total": done.total, "places": _objects(done.places)}))
        return
    for place in done.places:
        first = f", {place.raised} of them put forward" if place.raised else ""
        known = "" if place.added == place.urls else f" ({place.urls - place.added} known there already{first})"
        print(f"{place.source}: {counted(place.urls, 'address')}{known}. {place.when}")


def _objects(places: Sequence[AddedPlace]) -> list[dict[str, Any]]:
    return [
        {
            "source": place.source,
            "as_what": place.as_what.value,
            "urls": place.urls,
            "added": place.added,
            "raised": place.raised,
            "execution_id": place.execution_id,
            "job_id": place.job_id,
            "when": place.when,
        }
        for place in places
    ]


@frontier.command(name="requeue")
def requeue_pages(
    domain: Annotated[str | None, typer.Argument(help="A host, with its port if that is neither 80 nor 443.")] = None,
    execution: Annotated[
        int | None,
        typer.Option(
            "--execution", min=0, max=2**63 - 1, help="In place of a host: all pages that failed in this execution."
        ),
    ] = None,
    since: Annotated[datetime | None, typer.Option(formats=_DAYS, help="First day of their last fetch.")] = None,
    until: Annotated[datetime | None, typer.Option(formats=_DAYS, help="Last day.")] = None,
    status: Annotated[RequeueStatus, typer.Option(help="Which pages.")] = RequeueStatus.FETCHED,
    apply: Annotated[bool, typer.Option("--apply", help="Do it; without this, only count.")] = False,
    json: AsJson = False,
    home: Home = None,
) -> None:
    """Queue the pages of a domain again that were fetched, or failed, between two days; or what failed in a run.

    Each page joins the current run of its source, waits for the next run, or gets its own job.
    Example: holdfast frontier requeue example.org --until 2026-01-31 --apply
    """
    if (domain is None) is (execution is None):
        raise typer.BadParameter("name a host or --execution, one of the two")
    if execution is not None and (since or until):
        raise typer.BadParameter("--since and --until are for a host")
    days = span(since and since.date(), until and until.date(), names=("--since", "--until"))
    done: Requeued[Any]
    with _adding(config.load(home=home)) as adding:
        if execution is not None:
            done = requeue_failed(adding, execution, apply=apply, after=None, goes_on=lambda: True)
        else:
            wanted = RequeueRequest(domain_of(domain or ""), status, *days)
            done = requeue(adding, wanted, apply=apply, after=None, goes_on=lambda: True)
    if json:
        counts = {"matched": done.matched, "added": done.added, "skipped": done.skipped, "next": done.next}
        print(jsonlib.dumps({**counts, "applied": apply, "places": _objects(done.places)}))
        return
    what = f"{done.added:,} queued" if apply else "queue them with --apply"
    left_out = f"; {done.skipped:,} are not in scope any more" if done.skipped else ""
    print(f"{counted(done.matched, 'page')} found{left_out}; {what}")
    for place in done.places:
        print(f"{counted(place.urls, 'page')} of {place.source}: {place.when}")


@frontier.command(name="clear")
def clear_queue(
    execution: Annotated[int, typer.Argument(help="An execution's number.")],
    apply: Annotated[bool, typer.Option("--apply", help="Do it; without this, only count.")] = False,
    json: AsJson = False,
    home: Home = None,
) -> None:
    """Take everything that is queued from an execution; what it has captured stays, and one that runs ends.

    It goes in portions, and may be broken off.
    Example: holdfast frontier clear 3 --apply
    """
    settings = config.load(home=home)
    configure_log(settings, unless_set="ERROR")
    with open_archive(settings) as archive, archive.database.read() as session:
        meant = meant_frontier(session, execution)
    with open_runtime(settings) as runtime:
        queued = runtime.frontier.open_count(meant.frontier_id)
        if apply:
            done = clear(runtime.frontier, runtime.clock, meant.frontier_id, goes_on=lambda: True)
            queued = done.closed
    if json:
        print(jsonlib.dumps({"execution": execution, "removed": queued if apply else 0, "queued": queued}))
    elif apply:
        print(f"execution {execution}: {counted(queued, 'address')} taken from the queue")
    else:
        print(f"execution {execution}: {counted(queued, 'address')} queued; take them away with --apply")


@frontier.command()
def discovered(
    execution: Execution = None,
    rule: Annotated[str | None, typer.Option(help="Only what this rule left out.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=100_000, help="Rows to print.")] = 100,
    json: AsJson = False,
    home: Home = None,
) -> None:
    """List hosts that links led to and that were not followed, with how many links.

    Example: holdfast frontier discovered --limit 500
    """
    with open_archive(config.load(home=home)) as archive, archive.database.read() as session:
        meant = meant_frontier(session, execution)
        rows = left_out_hosts(session, meant.frontier_id, rule=rule, after=None, limit=limit)
    if json:
        print(jsonlib.dumps({"execution": meant.execution_id, "hosts": [row._asdict() for row in rows]}))
        return
    for row in rows:
        print(f"{row.links:>10,}  {text(row.host)}  ({text(row.rule)})")
    if not rows:
        print(f"execution {meant.execution_id}: no link was left out")


@frontier.command()
def recover(
    minutes: Annotated[
        float | None, typer.Option(min=0.0, help="Age of an expired lease that is freed; 15 if not set otherwise.")
    ] = None,
    json: AsJson = False,
    home: Home = None,
) -> None:
    """Free what dead processes of this machine held, and leases that expired long ago anywhere.

    Acts at once: it frees only what no live process holds.
    Example: holdfast frontier recover --minutes 15
    """
    configure_log(config.load(home=home), unless_set="ERROR")
    with open_runtime(config.load(home=home)) as runtime:
        # Loaded by name: it brings the repair of WARC files and the storage of archive-tool, which no report needs.
        done = importlib.import_module("holdfast.operations.frontier_recovery").recover_frontier(
            runtime, minutes=minutes
        )
    if json:
        found = {
            "recovered": done.domains,
            "processes": done.processes,
            "files": list(done.files),
            "orphan_records": done.orphan_records,
        }
        print(jsonlib.dumps(found))
        return
    print(f"{counted(done.domains, 'domain')} freed, {counted(len(done.files), 'WARC file')} repaired and sealed")


@frontier.command()
def reset(
    domains: Annotated[list[str], typer.Argument(help="Hosts or addresses, for example example.org:8080.")],
    json: AsJson = False,
    home: Home = None,
) -> None:
    """Forget that domains could not be reached, so that the next crawl asks them at once.

    After half an hour of failures (robots.txt answers 500, connections are refused) a domain is left alone for an hour,
    by every crawl; also after a server's Retry-After. This lifts it, and is written to the audit log.

    Example: holdfast frontier reset example.org
    """
    configure_log(config.load(home=home), unless_set="ERROR")
    # As the frontier spells a domain: with its port if that is neither 80 nor 443.
    names = [domain_of(domain) for domain in domains]
    with open_runtime(config.load(home=home)) as runtime:
        lifted = {name: reset_domain(runtime.raw_db, runtime.frontier, runtime.clock, name) for name in names}
    if json:
        print(jsonlib.dumps({"domains": [{"domain": name, "lifted": done} for name, done in lifted.items()]}))
        return
    for name, done in lifted.items():
        print(f"{name}: " + ("it may be asked again" if done else "nothing was in the way"))


def _attempt(row: FrontierUrl) -> dict[str, Any]:
    created_at, scheduled_for, completed_at = row.moments()
    return {
        **{name: getattr(row, name) for name in ("id", "url", "domain", "kind", "priority", "depth", "attempt")},
        "status": row.status.value,
        **{name: getattr(row, name) for name in ("outcome", "reason", "status_code", "message", "crashes")},
        "created_at": created_at,
        "scheduled_for": scheduled_for,
        "completed_at": completed_at,
    }


def _object(row: OpenAttempt) -> dict[str, Any]:
    fields = asdict(row)
    fields["kind"] = row.kind.value
    fields["created_at"] = row.created_at.isoformat()
    fields["scheduled_for"] = row.scheduled_for.isoformat() if row.scheduled_for else None
    return fields
