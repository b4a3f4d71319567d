"""`holdfast frontier`: the queue of a crawl; adding URLs, clearing queues, releasing leases of dead processes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from itertools import islice
from typing import Annotated, Any

import typer

from holdfast.changes.listing import span
from holdfast.cli.formatting import counted
from holdfast.cli.parameters import Apply, ExecutionId, command_group
from holdfast.cli.printing import picked
from holdfast.cli.report import find_execution
from holdfast.cli.resource import Done, Listing, Reading, Rows, command
from holdfast.config import Settings
from holdfast.crawl.recovery import recover_frontier
from holdfast.frontier import actions
from holdfast.frontier.added_urls import AddingUrls, AddReceipt, AddRequest
from holdfast.frontier.attempts import UrlFilter, UrlStatus, each_url, queued_url
from holdfast.frontier.domains import left_out_hosts
from holdfast.frontier.figures import select_frontier
from holdfast.types import UrlKind
from holdfast.wiring import Runtime, open_runtime
from holdfast.wiring.archive import open_archive
from holdfast.wiring.jobs import adding_urls, open_jobs

app_command = command_group("Show the queue of a crawl, and change it. Example: holdfast frontier stats")
SourceCode = Annotated[str | None, typer.Option("--source", help="The source they belong to; found by default.")]
_DAYS = ["%Y-%m-%d"]
_QUEUED = Listing("urls", "priority depth number=try kind scheduled_for=not_before url", "nothing is queued")
_ATTEMPTS = Listing("urls", "status priority depth attempt=try url reason", "no such URLs")
_HOSTS = Listing("hosts", "links host rule", "every link was followed")
Execution = Annotated[int | None, typer.Option("--execution", help="An execution's number; the newest crawl.")]


@contextmanager
def _open_adding(settings: Settings) -> Iterator[AddingUrls]:
    with open_jobs(settings) as jobs, open_runtime(settings) as runtime:
        yield adding_urls(runtime, jobs.actions, read=jobs.database.read, write=jobs.database.write)


@command(app_command, opened=open_runtime, example="frontier stats 3 --json")
def stats(runtime: Runtime, execution: ExecutionId = None) -> Done:
    """Count pending, running, completed and failed URLs."""
    if execution is not None:
        find_execution(runtime, execution)
    found = runtime.frontier.stats(execution)
    names = ("pending", "leased_domains", "completed", "failed", "ruled_out", "domains")
    return Done(found, [f"{getattr(found, name):>12,}  {name.replace('_', ' ')}" for name in names])


@command(app_command, "list", opened=open_runtime, listing=_QUEUED, example="frontier list 3 --limit 20")
def list_open(
    runtime: Runtime,
    execution: ExecutionId = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="Rows to print.")] = 50,
) -> Rows:
    """List queued URLs in fetch order."""
    return Rows(runtime.frontier.list_open(find_execution(runtime, execution), limit=limit))


@command(app_command, listing=_ATTEMPTS, example="frontier urls --status failed --domain example.org")
def urls(
    session: Reading,
    execution: Execution = None,
    status: Annotated[UrlStatus | None, typer.Option(help="State of an attempt.")] = None,
    domain: Annotated[str | None, typer.Option(help="Only of this host.")] = None,
    kind: Annotated[UrlKind | None, typer.Option(help="Kind of the request.")] = None,
    search: Annotated[str | None, typer.Option(help="A part of the URL.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="Rows to print.")] = 50,
) -> Rows:
    """List the attempts of a crawl by state, host or a part of the URL."""
    host = None if domain is None else actions.domain_of(domain)
    wanted = UrlFilter(status=status, domain=host, kind=kind, search=search, limit=limit)
    selected = select_frontier(session, execution)
    rows = islice(each_url(session, selected.frontier_id, wanted), limit)
    return Rows([queued_url(row) for row in rows], {"execution": selected.execution_id})


@command(app_command, opened=_open_adding, is_quiet=True, example="frontier add https://example.org/news")
def add(
    adding: AddingUrls,
    urls: Annotated[list[str], typer.Argument(help="URLs.")],
    source: SourceCode = None,
    priority: Annotated[int | None, typer.Option(min=1, max=3, help="3 is fetched first.")] = None,
) -> Done:
    """Add URLs to the current run of their source, to its next run, or to a job of their own.

    Such a job captures these pages with embedded resources, and follows no links.
    """
    return _added(adding.add(AddRequest(urls=urls, source=source, priority=priority)))


@command(app_command, opened=_open_adding, is_quiet=True, example="frontier seed --source example-org")
def seed(
    adding: AddingUrls,
    urls: Annotated[list[str] | None, typer.Argument(help="URLs; by default the seeds of --source.")] = None,
    source: SourceCode = None,
) -> Done:
    """Add URLs as seeds: they are fetched first, and their links have depth 1."""
    if not urls and source is None:
        raise typer.BadParameter("name URLs, or a source to add its seeds", param_hint="URLS")
    wanted = urls or adding.seeds_of(source or "")
    return _added(adding.add(AddRequest(urls=wanted, source=source, is_seed=True)))


def _added(done: AddReceipt) -> Done:
    lines = []
    for place in done.places:
        first = f", {place.raised} of them moved forward" if place.raised else ""
        known = "" if place.added == place.urls else f" ({place.urls - place.added} known there already{first})"
        lines.append(f"{place.source_code}: {counted(place.urls, 'URL')}{known}. {place.when}")
    return Done(done, lines)


@command(
    app_command,
    "requeue",
    opened=_open_adding,
    is_quiet=True,
    example="frontier requeue example.org --until 2026-01-31 --apply",
)
def requeue_pages(
    adding: AddingUrls,
    domain: Annotated[str | None, typer.Argument(help="A host, with its port if that is neither 80 nor 443.")] = None,
    execution: Annotated[
        int | None,
        typer.Option(min=0, max=2**63 - 1, help="Instead of a host: all pages that failed in this execution."),
    ] = None,
    since: Annotated[datetime | None, typer.Option(formats=_DAYS, help="First day of their last fetch.")] = None,
    until: Annotated[datetime | None, typer.Option(formats=_DAYS, help="Last day.")] = None,
    status: Annotated[actions.RequeueStatus, typer.Option(help="Which pages.")] = actions.RequeueStatus.FETCHED,
    apply: Apply = False,
) -> Done:
    """Queue the pages of a domain again that were fetched, or failed, between two days; or the failed ones of a run.

    Each page joins the current run of its source, waits for the next run, or gets its own job.
    """
    if (domain is None) is (execution is None):
        raise typer.BadParameter("name a host or --execution, one of the two")
    if execution is not None and (since or until):
        raise typer.BadParameter("--since and --until are for a host")
    start, end = span(since and since.date(), until and until.date(), names=("--since", "--until"))
    done: actions.RequeueReceipt[Any]
    if execution is not None:
        done = actions.requeue_failed(adding, execution, apply=apply, after=None, goes_on=lambda: True)
    else:
        done = actions.requeue(
            adding,
            domain=actions.domain_of(domain or ""),
            status=status,
            since=start,
            until=end,
            apply=apply,
            after=None,
            goes_on=lambda: True,
        )
    left_out = f"; {done.skipped:,} are out of scope now" if done.skipped else ""
    queued = f"; {done.added:,} queued" if apply else ""
    lines = [f"{counted(done.matched, 'page')} found{left_out}{queued}"]
    lines += [f"{counted(place.urls, 'page')} of {place.source_code}: {place.when}" for place in done.places]
    return Done(picked(done, "matched added skipped next places"), lines)


@command(app_command, "clear", opened=open_runtime, is_quiet=True, example="frontier clear 3 --apply")
def clear_queue(
    runtime: Runtime,
    execution: Annotated[int, typer.Argument(help="An execution's number.")],
    apply: Apply = False,
) -> Done:
    """Remove all queued URLs from an execution; its captures stay, and a running crawl ends.

    It works in batches and can be interrupted.
    """
    with open_archive(runtime.settings) as archive, archive.database.read() as session:
        selected = select_frontier(session, execution)
    queued = runtime.frontier.open_count(selected.frontier_id)
    if apply:
        queued = actions.clear(runtime.frontier, selected.frontier_id, goes_on=lambda: True).removed
    what = "removed from the queue" if apply else "queued"
    answer = {"execution": execution, "removed": queued if apply else 0, "queued": queued}
    return Done(answer, f"execution {execution}: {counted(queued, 'URL')} {what}")


@command(app_command, listing=_HOSTS, example="frontier discovered --limit 500")
def discovered(
    session: Reading,
    execution: Execution = None,
    rule: Annotated[str | None, typer.Option(help="Only those that this rule excluded.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=100_000, help="Rows to print.")] = 100,
) -> Rows:
    """List hosts that were linked but not followed, with their number of links."""
    number, frontier_id, *_ = select_frontier(session, execution)
    return Rows(left_out_hosts(session, frontier_id, rule=rule, after=None, limit=limit), {"execution": number})


@command(app_command, opened=open_runtime, is_quiet=True, example="frontier recover --minutes 15")
def recover(
    runtime: Runtime,
    minutes: Annotated[
        float | None, typer.Option(min=0.0, help="Age of an expired lease that is released; 15 by default.")
    ] = None,
) -> Done:
    """Release leases of dead processes on this machine, and leases that expired long ago anywhere.

    Acts at once: it never touches leases of a live process.
    """
    done = recover_frontier(runtime, minutes=minutes)
    files = counted(len(done.files), "WARC file")
    return Done(done, f"{counted(done.recovered, 'domain')} released, {files} repaired and sealed")


@command(app_command, opened=open_runtime, is_quiet=True, example="frontier reset example.org")
def reset(
    runtime: Runtime,
    domains: Annotated[list[str], typer.Argument(help="Hosts or URLs, for example example.org:8080.")],
) -> Done:
    """Clear the record that domains were unreachable, so that the next crawl requests them immediately.

    After half an hour of failures (robots.txt returns 500, connections are refused) every crawl skips a domain for
    an hour; also after a server's Retry-After. This command ends that, and is recorded in the audit log.
    """
    # Use the frontier's spelling of a domain: with its port if that is neither 80 nor 443.
    names = [actions.domain_of(domain) for domain in domains]
    lifted = {name: actions.reset_domain(runtime.frontier, name) for name in names}
    lines = [f"{name}: " + ("can be crawled again" if done else "nothing to reset") for name, done in lifted.items()]
    return Done({"domains": [{"domain": name, "lifted": done} for name, done in lifted.items()]}, lines)
