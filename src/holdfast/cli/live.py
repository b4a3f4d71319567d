"""`holdfast live`: pages as they are now: compare one with a capture, or fetch one address. Nothing is stored."""

from __future__ import annotations

from typing import Annotated

import typer

from holdfast import config
from holdfast.changes.pairs import TextMode
from holdfast.changes.rendering import diff_object, diff_text
from holdfast.cli.formatting import dumps, lines, text
from holdfast.cli.parameters import AsJson, Home, command_group, configure_log, read_network
from holdfast.cli.seeds import find_contact
from holdfast.clock import digits14
from holdfast.config import Settings
from holdfast.db.models import Snapshot
from holdfast.errors import NotFound
from holdfast.operations.live_pages import comparable_snapshot, compare_live, extract, fetch_live
from holdfast.replay import finding
from holdfast.wiring.archive import Archive, open_archive

app_command = command_group("Look at pages as they are now. Example: holdfast live compare https://example.org/")
Networks = Annotated[
    list[str] | None, typer.Option("--allow-network", help="Private network (CIDR) that may be requested.")
]
Contact = Annotated[str | None, typer.Option(help="E-mail or web address that site owners can reach.")]


@app_command.command()
def compare(
    subject: Annotated[
        str, typer.Argument(help="A snapshot's id, or an address: its newest capture.", metavar="ID|URL")
    ],
    mode: Annotated[
        TextMode, typer.Option("--mode", help="The page's content, or all that it shows (full).")
    ] = TextMode.MAIN,
    allow_network: Networks = None,
    contact: Contact = None,
    json: AsJson = False,
    home: Home = None,
) -> None:
    """Fetch the page of a capture now, politely, and show what differs; exit 0 whether it differs or not.

    The fetch obeys robots.txt and the domain's delay; 8 s, 4 redirects and 2 MB at most.
    Example: holdfast live compare 4194305
    """
    settings, who, networks = _prepared(home, contact, allow_network)
    with open_archive(settings) as archive:
        found = _archived(archive, subject)
        page = fetch_live(settings, found.url, contact=who, networks=networks)
        done = compare_live(archive.database, archive.home, found, page, mode)
    hunks = done.found.hunks if done.found else ()
    if json:
        diff = diff_object(hunks, done.found.touched) if done.found else None
        print(dumps({"snapshot": found.id, **page.facts(), **done.stats(), "mode": done.mode.value, "diff": diff}))
        return
    print(f"--- {text(found.url)}  {found.captured_at:%Y-%m-%d %H:%M:%S}  {found.id}")
    print(f"+++ {text(page.url)}  {page.fetched_at:%Y-%m-%d %H:%M:%S}  live")
    print(text(done.summary))
    if hunks:
        print(lines(diff_text(hunks)))


@app_command.command()
def fetch(
    url: Annotated[str, typer.Argument(help="The page.", metavar="URL")],
    allow_network: Networks = None,
    contact: Contact = None,
    json: AsJson = False,
    home: Home = None,
) -> None:
    """Fetch one page now, politely, and print its title and main text; to keep it: holdfast frontier add URL.

    The fetch obeys robots.txt and the domain's delay; 8 s, 4 redirects and 2 MB at most.
    Example: holdfast live fetch https://example.org/ --json
    """
    settings, who, networks = _prepared(home, contact, allow_network)
    page = fetch_live(settings, url, contact=who, networks=networks)
    found = extract(page)
    if json:
        print(dumps(found))
    else:
        print(f"{page.status}  {text(page.url)}  {len(page.body):,} bytes")
        print(text(found["title"] or "(no title)"))
        print(lines(found["raw_text"]))


def _prepared(home: Home, contact: str | None, networks: list[str] | None) -> tuple[Settings, str, list[str]]:
    settings = config.load(home=home)
    configure_log(settings, unless_set="ERROR")
    return settings, find_contact(settings, contact), [*map(read_network, networks or [])]


def _archived(archive: Archive, subject: str) -> Snapshot:
    with archive.database.read() as session:
        if subject.isascii() and subject.isdigit():
            return comparable_snapshot(session, int(subject))
        found = finding.resolve(session, subject, digits14(archive.clock.now()))
        if found is None:
            raise NotFound(f"no capture of {subject[:200]}; fetch it with: holdfast live fetch")
        return comparable_snapshot(session, found.id)
