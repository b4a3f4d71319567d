"""`holdfast domain`: how each domain stands, what its robots.txt says, and what is set for it."""

from __future__ import annotations

import json as jsonlib
from dataclasses import asdict
from datetime import datetime
from typing import Annotated, Any

import typer

from holdfast import config
from holdfast.cli.formatting import counted, dumps, fields, table, text
from holdfast.cli.parameters import Apply, AsJson, Home, command_group, configure_log
from holdfast.crawl.robots_answers import answer_for, text_of
from holdfast.errors import NotFound
from holdfast.frontier.control import DomainUnknown, DomainWish
from holdfast.jobs.administration.frontier_actions import domain_of, purge, refresh_robots, set_domain
from holdfast.jobs.views.frontier_queries import meant_frontier
from holdfast.jobs.views.host_queries import (
    FILTERED,
    DomainRow,
    DomainState,
    domain_by_name,
    listed_domains,
    page_count,
    queue_of_domain,
    robots_of_domain,
)
from holdfast.urls import parse_seed
from holdfast.wiring import open_runtime
from holdfast.wiring.archive import open_archive

app_command = command_group("Domains and how they are treated. Example: holdfast domain list")
Name = Annotated[str, typer.Argument(help="A host or an address, for example example.org:8080.")]


@app_command.command(name="list")
def list_domains(
    state: Annotated[
        DomainState | None, typer.Option(help="Only those: forbidden, paused, unreachable, active.")
    ] = None,
    after: Annotated[str | None, typer.Option(help="Begin behind this name.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="Rows to print.")] = 100,
    json: AsJson = False,
    home: Home = None,
) -> None:
    """List the domains that crawls have met, by name.

    Example: holdfast domain list --state paused
    """
    if state is not None and state not in FILTERED:
        raise typer.BadParameter(f"look for one of {', '.join(FILTERED)}", param_hint="--state")
    with open_archive(config.load(home=home)) as archive, archive.database.read() as session:
        rows = listed_domains(session, by_age=False, falls=False, state=state, after=after, limit=limit)
        now = archive.clock.now()
    if json:
        print(dumps({"domains": [_object(row, now) for row in rows]}))
        return
    if not rows:
        print("no such domains; a crawl brings them: holdfast crawl https://example.org")
        return
    print(
        table(
            ("domain", "state", "delay", "circuit", "next request"),
            [
                (
                    row.name,
                    row.state(now).value,
                    "-" if row.delay_s is None else f"{row.delay_s:g} s",
                    row.circuit_state,
                    f"{row.next_moment:%Y-%m-%d %H:%M:%S}" if row.next_moment and row.next_moment > now else "-",
                )
                for row in rows
            ],
        )
    )


@app_command.command()
def show(domain: Name, json: AsJson = False, home: Home = None) -> None:
    """Show how a domain stands: state, delay, circuit, robots files, and what the newest crawl has queued of it.

    Example: holdfast domain show example.org
    """
    with open_archive(config.load(home=home)) as archive, archive.database.read() as session:
        row, now = _found(domain_by_name(session, domain_of(domain)), domain), archive.clock.now()
        found = {**_object(row, now), "page_count": page_count(session, row.id)}
        robots = robots_of_domain(session, row.id)
        try:
            queue = queue_of_domain(session, meant_frontier(session, None).frontier_id, row.id)
        except NotFound:
            queue = None
    found["robots"] = [{"origin": one.origin, "answer": one.answer.value, "status": one.status} for one in robots]
    found["queue"] = None if queue is None else queue._asdict()
    if json:
        print(dumps(found))
        return
    print(fields((name.replace("_", " "), _plain(value)) for name, value in found.items()))


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return "; ".join(f"{one['origin']} {one['answer']} ({one['status']})" for one in value) or "not read"
    if isinstance(value, dict):
        return ", ".join(f"{name} {number}" for name, number in value.items())
    return value


@app_command.command()
def robots(domain: Name, json: AsJson = False, home: Home = None) -> None:
    """Print the robots.txt that crawls have read, and what it says of an address if one is given.

    It asks no server: `holdfast robots URL` does.
    Example: holdfast domain robots https://example.org/news
    """
    url = parse_seed(domain)
    with open_archive(config.load(home=home)) as archive, archive.database.read() as session:
        row = _found(domain_by_name(session, url.domain), domain)
        states = robots_of_domain(session, row.id)
        ruling = answer_for(url, states, archive.clock.now())
    files = [
        {"origin": one.origin, "answer": one.answer.value, "text": text_of(one.body), "fetched_at": one.fetched_at}
        for one in states
    ]
    if json:
        print(dumps({"domain": row.name, "files": files, "url": url.fetch, **asdict(ruling)}))
        return
    for one in files:
        print(f"# {text(one['origin'])}/robots.txt: {one['answer']}, read {one['fetched_at']:%Y-%m-%d %H:%M} UTC")
        for line in str(one["text"]).splitlines():
            print(text(line))
    print(f"{'allowed' if ruling.allowed else 'disallowed'}  {text(url.fetch)}  ({text(ruling.reason)})")


@app_command.command(name="set")
def change(
    domain: Name,
    delay: Annotated[
        str | None, typer.Option(help="Seconds between requests, 1 at least; `default` leaves it to the source.")
    ] = None,
    allow: Annotated[bool | None, typer.Option("--allow/--forbid", help="Whether it may be asked at all.")] = None,
    json: AsJson = False,
    home: Home = None,
) -> None:
    """Slow a domain, or forbid it; a crawl that runs obeys within a second or two. It is never made faster.

    Example: holdfast domain set example.org --delay 5
    """
    seconds = None
    if delay is not None and delay != "default":
        try:
            seconds = float(delay)
        except ValueError as exc:
            raise typer.BadParameter("write a number of seconds, or `default`", param_hint="--delay") from exc
    _change(domain, DomainWish(delay_s=seconds, default_delay=delay == "default", allowed=allow), json, home)


@app_command.command()
def pause(domain: Name, json: AsJson = False, home: Home = None) -> None:
    """Let a domain rest: nothing is asked there, and what is queued stays queued, until it is resumed.

    Example: holdfast domain pause example.org
    """
    _change(domain, DomainWish(paused=True), json, home)


@app_command.command()
def resume(domain: Name, json: AsJson = False, home: Home = None) -> None:
    """Go on with a domain that was paused.

    Example: holdfast domain resume example.org
    """
    _change(domain, DomainWish(paused=False), json, home)


def _change(domain: str, wish: DomainWish, as_json: bool, home: Any) -> None:
    settings, name = config.load(home=home), domain_of(domain)
    configure_log(settings, unless_set="ERROR")
    with open_runtime(settings) as runtime:
        done = set_domain(runtime.frontier, runtime.clock, name, wish)
    if as_json:
        print(dumps({"domain": name, **asdict(done)}))
        return
    delay = "the source's delay" if done.delay_s is None else f"{done.delay_s:g} s between requests"
    state = "forbidden" if not done.is_allowed else "paused" if done.paused_at else "asked"
    print(f"{name}: {state}, {delay}")


@app_command.command()
def refresh(domain: Name, json: AsJson = False, home: Home = None) -> None:
    """Let the robots files of a domain be read anew before its next page, in a crawl that runs, too.

    Example: holdfast domain refresh example.org
    """
    settings, name = config.load(home=home), domain_of(domain)
    configure_log(settings, unless_set="ERROR")
    with open_runtime(settings) as runtime:
        refresh_robots(runtime.frontier, runtime.clock, name)
    print(jsonlib.dumps({"domain": name}) if json else f"{name}: robots.txt is read before its next page")


@app_command.command(name="purge")
def purge_queue(
    domain: Name,
    execution: Annotated[int | None, typer.Option(help="Only of this execution; of all if left out.")] = None,
    apply: Apply = False,
    json: AsJson = False,
    home: Home = None,
) -> None:
    """Take what is queued of a domain from one execution, or from all; what was captured stays.

    It goes in portions, and may be broken off.
    Example: holdfast domain purge example.org --apply
    """
    settings, name = config.load(home=home), domain_of(domain)
    configure_log(settings, unless_set="ERROR")
    with open_archive(settings) as archive, archive.database.read() as session:
        wanted = None if execution is None else meant_frontier(session, execution).frontier_id
        row = _found(domain_by_name(session, name), domain)
        with open_runtime(settings) as runtime:
            _, executions = runtime.frontier.control.queued_executions(name)
        chosen = [one for one in executions if wanted in (None, one)]
        queues = [queue_of_domain(session, one, row.id) for one in chosen]
    count = sum(queue.open for queue in queues if queue is not None)
    if apply:
        with open_runtime(settings) as runtime:
            count = purge(runtime.frontier, runtime.clock, name, execution_id=wanted, goes_on=lambda: True).closed
    if json:
        print(jsonlib.dumps({"domain": name, "removed": count if apply else 0, "queued": count, "executions": chosen}))
    elif apply:
        print(f"{name}: {counted(count, 'address')} taken from the queue")
    else:
        print(f"{name}: {counted(count, 'address')} queued; take them away with --apply")


def _found(row: DomainRow | None, written: str) -> DomainRow:
    if row is None:
        raise DomainUnknown(domain_of(written))
    return row


def _object(row: DomainRow, now: datetime) -> dict[str, Any]:
    return {
        "domain": row.name,
        "state": row.state(now).value,
        "delay_s": row.delay_s,
        "is_allowed": row.is_allowed,
        "paused_at": row.paused_at,
        "circuit": row.circuit_state,
        "circuit_failures": row.circuit_failures,
        "slow_down": row.penalty,
        "unreachable_since": row.unreachable_since,
        "next_allowed_at": row.next_moment,
        "is_held": row.is_held(now),
        "created_at": row.created_at,
    }
