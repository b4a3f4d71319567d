"""`holdfast explain`: everything that is known of an address, and why, in plain sentences."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import datetime
from ipaddress import ip_network
from typing import Annotated

import typer

from holdfast import config
from holdfast.cli.formatting import text
from holdfast.cli.parameters import AsJson, Home, configure_log
from holdfast.cli.seeds import check_seed, find_contact
from holdfast.config import Settings
from holdfast.crawl.plan import CrawlPlan
from holdfast.crawl_process.requests import open_polite_client
from holdfast.explanation.explaining import DEFAULT_LIMIT, MAX_LIMIT, ExplainWish
from holdfast.explanation.explaining import explain as look_up
from holdfast.explanation.model import ExplainedAttempt, ExplainedSnapshot, Explanation
from holdfast.fetch.guard import AddressGuard
from holdfast.types import RobotsState
from holdfast.urls import parse_seed
from holdfast.wiring.archive import open_archive

_MAX_ID = (1 << 63) - 1
_SOURCES = 10


def explain(
    url: Annotated[str, typer.Argument(help="Any address; without a scheme, https is meant.", metavar="URL")],
    live: Annotated[
        bool, typer.Option("--live", help="Read robots.txt now, politely, instead of what is kept of it.")
    ] = False,
    limit: Annotated[
        int, typer.Option("--limit", min=1, max=MAX_LIMIT, help="Attempts and captures to show.")
    ] = DEFAULT_LIMIT,
    cursor: Annotated[
        int | None, typer.Option("--cursor", min=0, max=_MAX_ID, help="`next` of the attempts shown before.")
    ] = None,
    json: AsJson = False,
    home: Home = None,
) -> None:
    """Say everything that is known of an address and why: spelling, scope, robots, domain, attempts, captures, next.

    Nothing is asked of the network, unless --live is given.
    Example: holdfast explain https://example.org/about
    """
    settings = config.load(home=home)
    configure_log(settings, unless_set="ERROR")
    robots = _read_robots(settings, url) if live else None
    wish = ExplainWish(url=url, limit=limit, before=cursor, live_robots=robots)
    with open_archive(settings) as archive, archive.database.read() as session:
        found = look_up(session, wish, settings, now=archive.now(session))
    if json:
        print(found.model_dump_json())
        return
    print("\n".join(text(line) if line else "" for line in _sections(found)))


def _read_robots(settings: Settings, given: str) -> RobotsState:
    """Ask for the robots.txt of an address now, under the name and at the pace of a crawl."""
    networks = [*map(str, settings.allow_networks)]
    check_seed(given, AddressGuard(tuple(map(ip_network, networks))))
    url = parse_seed(given)
    agent = CrawlPlan(seeds=(url.fetch,), contact=find_contact(settings, has_option=False)).agent()

    async def ask() -> RobotsState:
        async with open_polite_client(settings, agent=agent, networks=networks, delay_s=1.0) as client:
            return await client.robots(url)

    return asyncio.run(ask())


def _sections(found: Explanation) -> Iterator[str]:
    """Yield the explanation line by line, a heading before each section."""
    address = found.address
    yield "Address"
    yield f"  given       {address.given[:200]}"
    if address.refused:
        yield f"  refused     {address.refused}"
    for step in address.steps:
        yield f"  {step.step.value:<15} {step.after[:200]}  ({step.sentence})"
    if address.fetch is not None and address.fetch != address.normalised:
        yield f"  asked for   {address.fetch[:200]}"
    yield f"  normalised  {address.normalised[:200]}"
    yield f"  key         {address.key[:200]}"
    yield from ("", "Next", f"  {found.outlook.next.sentence}")
    yield from (f"  {turn.sentence}" for turn in found.outlook.all[1:_SOURCES])
    yield from ("", "Sources", f"  {found.sources.sentence}")
    yield from (f"  {one.sentence}" for one in found.sources.in_scope)
    yield from (f"  {one.sentence}" for one in found.sources.out_of_scope[:_SOURCES])
    if (more := found.sources.out_of_scope_count - _SOURCES) > 0:
        yield f"  … and {more} other sources leave it out"
    yield from ("", "Robots", f"  {found.robots.sentence}")
    if found.domain is not None:
        yield from ("", "Domain", f"  {found.domain.sentence}")
    yield from ("", "Attempts")
    yield from (f"  {_attempt(one)}" for one in found.attempts.items)
    if not found.attempts.items:
        yield "  it was never asked for"
    if found.attempts.next is not None:
        yield f"  … older ones: --cursor {found.attempts.next}"
    yield from ("", "Captures", f"  {found.snapshots.sentence}")
    yield from (f"  {_capture(one)}" for one in found.snapshots.items)
    yield from ("", "Visibility", f"  {found.visibility.sentence}")


def _attempt(one: ExplainedAttempt) -> str:
    record = one.record
    if record is None:
        return one.sentence
    where = f"snapshot {record.snapshot}" if record.snapshot is not None else f"file {record.warc_file_id}"
    return f"{one.sentence}; stored in {where} at {record.offset}"


def _capture(one: ExplainedSnapshot) -> str:
    notes = [f"shows no page: {one.noise}"] if one.noise else []
    notes += [f"same as {one.duplicate_of}"] if one.duplicate_of is not None else []
    notes += ["withdrawn"] if one.withdrawn else []
    note = f"  ({', '.join(notes)})" if notes else ""
    return f"{one.id}  {_when(one.captured_at)}  {one.status or one.record_type}  {one.source or ''}{note}"


def _when(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S}"


app_command = explain
