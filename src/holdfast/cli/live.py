"""`holdfast live`: fetch a live page, to compare it with a capture or to read it. Nothing is stored."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Annotated

import typer

from holdfast.changes.pairs import TextMode
from holdfast.changes.records import structured_diff
from holdfast.changes.rendering import diff_text
from holdfast.cli.formatting import lines, text
from holdfast.cli.parameters import Contact, Networks, command_group, read_network
from holdfast.cli.resource import Done, command
from holdfast.cli.seeds import find_contact
from holdfast.clock import digits14
from holdfast.config import Settings
from holdfast.crawl.live_pages import comparable_snapshot, compare_live, extract, fetch_live
from holdfast.db.models import Snapshot
from holdfast.errors import NotFound
from holdfast.records import Spelling, encode
from holdfast.replay import finding
from holdfast.wiring.archive import Archive

app_command = command_group("Look at pages as they are now. Example: holdfast live compare https://example.org/")


@command(app_command, is_quiet=True, example="live compare 4194305")
def compare(
    archive: Archive,
    subject: Annotated[
        str, typer.Argument(help="A snapshot's id, or an address: its newest capture.", metavar="ID|URL")
    ],
    mode: Annotated[TextMode, typer.Option(help="The page's content, or all that it shows (full).")] = TextMode.MAIN,
    allow_network: Networks = None,
    contact: Contact = None,
) -> Done:
    """Fetch the page of a capture now, politely, and show the differences; exit 0 whether there are any or not.

    The fetch obeys robots.txt and the domain's delay; 8 s, 4 redirects and 2 MB at most.
    """
    who = find_contact(archive.settings, contact)
    found = _archived(archive, subject)
    networks = [*map(read_network, allow_network or [])]
    page = fetch_live(archive.settings, found.url, contact=who, networks=networks)
    stats, compared, used = compare_live(archive.database, archive.home, found, page, mode)
    hunks = compared.hunks if compared else ()
    diff = structured_diff(hunks, compared.touched) if compared else None
    shown = {
        "snapshot": found.id,
        **page.facts(),
        **encode(stats, spelling=Spelling.SNAKE),
        "mode": used.value,
        "diff": diff,
    }
    printed = [
        f"--- {text(found.url)}  {found.captured_at:%Y-%m-%d %H:%M:%S}  {found.id}",
        f"+++ {text(page.url)}  {page.fetched_at:%Y-%m-%d %H:%M:%S}  live",
        text(stats.summary),
        *([lines(diff_text(hunks))] if hunks else ()),
    ]
    return Done(shown, printed)


@command(app_command, opened=nullcontext, is_quiet=True, example="live fetch https://example.org/ --json")
def fetch(
    settings: Settings,
    url: Annotated[str, typer.Argument(help="The page.", metavar="URL")],
    allow_network: Networks = None,
    contact: Contact = None,
) -> Done:
    """Fetch one page now, politely, and print its title and main text; to archive it: holdfast frontier add URL.

    The fetch obeys robots.txt and the domain's delay; 8 s, 4 redirects and 2 MB at most.
    """
    who = find_contact(settings, contact)
    page = fetch_live(settings, url, contact=who, networks=[*map(read_network, allow_network or [])])
    found = extract(page)
    title = text(found.title or "(no title)")
    return Done(found, f"{page.status}  {text(page.url)}  {len(page.body):,} bytes\n{title}\n{lines(found.raw_text)}")


def _archived(archive: Archive, subject: str) -> Snapshot:
    with archive.database.read() as session:
        if subject.isascii() and subject.isdigit():
            return comparable_snapshot(session, int(subject))
        found = finding.resolve(session, subject, digits14(archive.clock.now()))
        if found is None:
            raise NotFound(f"no capture of {subject[:200]}; fetch it with: holdfast live fetch")
        return comparable_snapshot(session, found.id)
