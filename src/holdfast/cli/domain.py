"""`holdfast domain`: the state of each domain, its robots.txt, and its settings."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

from holdfast.cli.formatting import counted, text
from holdfast.cli.parameters import Apply, command_group
from holdfast.cli.printing import picked
from holdfast.cli.resource import Done, Listing, Reading, Rows, command
from holdfast.frontier import domains
from holdfast.frontier.actions import domain_of, purge
from holdfast.frontier.control import DomainUpdate
from holdfast.frontier.explain_robots import answer_for, text_of
from holdfast.frontier.figures import select_frontier
from holdfast.urls import parse_seed
from holdfast.wiring import Runtime, open_runtime
from holdfast.wiring.archive import Archive, open_archive

app_command = command_group("Domains and their settings. Example: holdfast domain list")
_command = partial(command, app_command, opened=open_runtime, is_quiet=True)
Name = Annotated[str, typer.Argument(help="A host or a URL, for example example.org:8080.")]
_DOMAINS = Listing(
    "domains",
    "domain state crawl_delay circuit next_allowed_at",
    "no such domains; a crawl adds them: holdfast crawl https://example.org",
)


@command(app_command, "list", listing=_DOMAINS, example="domain list --state paused")
def list_domains(
    archive: Archive,
    session: Reading,
    state: Annotated[
        domains.DomainState | None, typer.Option(help="Only those: forbidden, paused, unreachable, active.")
    ] = None,
    after: Annotated[str | None, typer.Option(help="Start after this name.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="Rows to print.")] = 100,
) -> Rows:
    """List the known domains by name."""
    if state is not None and state not in domains.FILTERED:
        raise typer.BadParameter(f"expected one of: {', '.join(domains.FILTERED)}", param_hint="--state")
    now = archive.clock.now()
    by_name = domains.DomainOrder.DOMAIN
    found, _ = domains.page_of_domains(
        session, order=by_name, falls=False, state=state, after=after, limit=limit, now=now
    )
    return Rows(found)


@command(app_command, example="domain show example.org")
def show(archive: Archive, session: Reading, domain: Name) -> domains.DomainDetail:
    """Show the state, delay, circuit and robots files of a domain, and its queue in the newest crawl."""
    return domains.domain_detail(session, domain_of(domain), execution=None, now=archive.clock.now())


@command(app_command, example="domain robots https://example.org/news")
def robots(archive: Archive, session: Reading, domain: Name) -> Done:
    """Print the last known robots.txt, and its decision about a URL if one is given.

    It sends no request: `holdfast robots URL` does.
    """
    url = parse_seed(domain)
    row = domains.find_domain(session, domain_of(domain))
    states = domains.robots_of_domain(session, row.id)
    ruling = answer_for(url, states, archive.clock.now())
    lines = []
    for one in states:
        lines.append(f"# {text(one.origin)}/robots.txt: {one.answer.value}, read {one.fetched_at:%Y-%m-%d %H:%M} UTC")
        lines += map(text, text_of(one.body).splitlines())
    lines.append(f"{'allowed' if ruling.allowed else 'disallowed'}  {text(url.fetch)}  ({text(ruling.reason)})")
    files = [picked(one, "origin answer fetched_at", text=text_of(one.body)) for one in states]
    return Done(picked(ruling, "url allowed rule line reason", domain=row.name, files=files), lines)


@_command("set", example="domain set example.org --delay 5")
def change(
    runtime: Runtime,
    domain: Name,
    delay: Annotated[
        str | None, typer.Option(help="Seconds between requests, at least 1; `default`: the source's delay.")
    ] = None,
    allow: Annotated[bool | None, typer.Option("--allow/--forbid", help="Whether it may be crawled at all.")] = None,
) -> Done:
    """Slow a domain down, or forbid it; a running crawl applies this within two seconds. Never makes a crawl faster."""
    seconds = None
    if delay is not None and delay != "default":
        try:
            seconds = float(delay)
        except ValueError as exc:
            raise typer.BadParameter("write a number of seconds, or `default`", param_hint="--delay") from exc
    update = DomainUpdate(delay_s=seconds, default_delay=delay == "default", allowed=allow)
    return _change(runtime, update, domain)


def _change(runtime: Runtime, update: DomainUpdate, domain: Name) -> Done:
    done = runtime.frontier.control.set_domain(domain_of(domain), update)
    delay = "the source's delay" if done.crawl_delay is None else f"{done.crawl_delay:g} s between requests"
    state = "forbidden" if not done.is_allowed else "paused" if done.paused else "crawled"
    return Done(done, f"{done.domain}: {state}, {delay}")


for _name, _is_paused, _about in (
    ("pause", True, "Pause a domain: it gets no requests and keeps its queue until it is resumed."),
    ("resume", False, "Resume a paused domain."),
):
    _update = DomainUpdate(paused=_is_paused)
    _command(_name, about=_about, example=f"domain {_name} example.org", given=(_update,))(_change)


@_command(example="domain refresh example.org")
def refresh(runtime: Runtime, domain: Name) -> Done:
    """Fetch the robots files of a domain again before its next page, also in a running crawl."""
    name = domain_of(domain)
    runtime.frontier.control.refresh_robots(name)
    return Done({"domain": name}, f"{name}: robots.txt is fetched again before its next page")


@_command("purge", example="domain purge example.org --apply")
def purge_queue(
    runtime: Runtime,
    domain: Name,
    execution: Annotated[int | None, typer.Option(help="Only of this execution; of all by default.")] = None,
    apply: Apply = False,
) -> Done:
    """Remove the queued URLs of a domain from one execution, or from all; captures stay.

    It works in batches and can be interrupted.
    """
    name = domain_of(domain)
    with open_archive(runtime.settings) as archive, archive.database.read() as session:
        wanted = None if execution is None else select_frontier(session, execution).frontier_id
        row = domains.find_domain(session, name)
        _, executions = runtime.frontier.control.queued_executions(name)
        chosen = [one for one in executions if wanted in (None, one)]
        queues = [domains.queue_of_domain(session, one, row.id) for one in chosen]
    count = sum(queue.pending for queue in queues if queue is not None)
    if apply:
        count = purge(runtime.frontier, name, execution_id=wanted, goes_on=lambda: True).removed
    facts = {"domain": name, "removed": count if apply else 0, "queued": count, "executions": chosen}
    return Done(facts, f"{name}: {counted(count, 'URL')} {'removed from the queue' if apply else 'queued'}")
