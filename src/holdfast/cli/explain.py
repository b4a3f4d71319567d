"""`holdfast explain`: everything that is known about a URL, and why, in plain sentences."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import typer

from holdfast.cli.formatting import text
from holdfast.cli.resource import Done, runnable
from holdfast.cli.seeds import check_reachable, find_contact
from holdfast.config import Settings
from holdfast.crawl.requests import read_robots
from holdfast.frontier.explain import DEFAULT_LIMIT, MAX_LIMIT, ExplainRequest
from holdfast.frontier.explain_records import ExplainedAttempt, ExplainedSnapshot, Explanation
from holdfast.records import encode
from holdfast.types import RobotsRecord
from holdfast.urls import parse_seed
from holdfast.wiring.archive import Archive
from holdfast.wiring.explain import explain_url

_MAX_ID = (1 << 63) - 1
_SOURCES = 10


@runnable(is_quiet=True, example="explain https://example.org/about")
def explain(
    archive: Archive,
    url: Annotated[str, typer.Argument(help="Any address; https without a scheme.", metavar="URL")],
    live: Annotated[
        bool, typer.Option("--live", help="Fetch robots.txt now, politely, instead of reading the stored one.")
    ] = False,
    limit: Annotated[int, typer.Option(min=1, max=MAX_LIMIT, help="Attempts and captures to show.")] = DEFAULT_LIMIT,
    cursor: Annotated[int | None, typer.Option(min=0, max=_MAX_ID, help="`next` of the attempts shown before.")] = None,
) -> Done:
    """Show everything that is known of an address and why: spelling, scope, robots, domain, attempts, captures, next.

    Sends no network requests, unless --live is given.
    """
    robots = _read_robots(archive.settings, url) if live else None
    with archive.database.read() as session:
        asked = ExplainRequest(url=url, limit=limit, before=cursor, live_robots=robots)
        found = explain_url(archive, session, asked)
    return Done(encode(found), [text(line) if line else "" for line in _sections(found)])


def _read_robots(settings: Settings, given: str) -> RobotsRecord:
    """Fetch the robots.txt of a URL now, with the user agent and the delay of a crawl."""
    networks = check_reachable(settings, [given])
    contact = find_contact(settings, has_option=False)
    return read_robots(settings, [parse_seed(given)], contact=contact, networks=networks)[0]


def _sections(found: Explanation) -> Iterator[str]:
    address = found.address
    yield "Address"
    yield f"  given       {address.given[:200]}"
    if address.refused:
        yield f"  refused     {address.refused}"
    for step in address.steps:
        yield f"  {step.step.value:<15} {step.after[:200]}  ({step.sentence})"
    if address.fetch is not None and address.fetch != address.normalised:
        yield f"  requested   {address.fetch[:200]}"
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
        yield "  it was never requested"
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
    return f"{one.id}  {one.captured_at:%Y-%m-%d %H:%M:%S}  {one.status or one.record_type}  {one.source or ''}{note}"
