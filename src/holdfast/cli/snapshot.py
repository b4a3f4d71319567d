"""`holdfast snapshot`: one capture in hand: what is known of it, its bytes, and taking it out of sight."""

from __future__ import annotations

import json as jsonlib
import sys
from typing import Annotated, Any

import typer
from sqlalchemy.orm import Session

from holdfast import config
from holdfast.cli.formatting import counted, lines, one_line, text
from holdfast.cli.parameters import AsJson, Home, command_group
from holdfast.crawl.signal_pages import SignalPageRow, SignalQuery, find_pages, page_of
from holdfast.db.models import Document, Snapshot
from holdfast.errors import Invalid, NotFound
from holdfast.index import queries
from holdfast.noise.queries import verdict_on
from holdfast.replay.finding import same_path
from holdfast.urls import parse, parse_seed
from holdfast.wiring.archive import Archive, open_archive
from holdfast.withdrawals.hiding import Withdrawn, hide, unhide
from holdfast.withdrawals.visibility import visible_snapshot

_CONTENT_BYTES = 256 * 1024 * 1024
# Addresses to offer where none was captured as it was typed.
_NEAR = 5

app_command = command_group(
    "Show a snapshot, print its content, hide it from every reader. Example: holdfast snapshot show 4194305"
)
SnapshotId = Annotated[int, typer.Argument(help="The snapshot's id.", metavar="ID")]
Subject = Annotated[str, typer.Argument(help="A snapshot's id, or an address: all its captures.", metavar="ID|URL")]


@app_command.command()
def show(snapshot: SnapshotId, json: AsJson = False, home: Home = None) -> None:
    """Show everything that is known of a snapshot and its document.

    Example: holdfast snapshot show 4194305
    """
    with open_archive(config.load(home=home)) as archive, archive.database.read() as session:
        found = visible_snapshot(session, snapshot)
        facts = {
            **snapshot_object(found),
            "warc_path": str(queries.path_of(session, archive.home, found.warc_file_id)),
            "document": _document_object(queries.document_of(session, found)),
        }
        if found.noise is not None and (why := verdict_on(session, found.id)) is not None:
            facts["noise_evidence"] = why.evidence
    if json:
        print(jsonlib.dumps(facts))
        return
    if facts["document"] is not None:
        # A page of a manual has hundreds.
        del facts["document"]["terms"]
    _print(facts, "")


def _print(facts: dict[str, Any], before: str) -> None:
    for name, value in facts.items():
        if isinstance(value, dict):
            _print(value, f"{before}{name}.")
        elif value is not None and value != []:
            typer.echo(f"{before + name:<24} {text(value)}")


def snapshot_object(found: Snapshot) -> dict[str, Any]:
    """Return every column of a snapshot as JSON can hold it."""
    values = {column.key: getattr(found, column.key) for column in Snapshot.__table__.columns}
    return {name: _plain(value) for name, value in values.items()}


def _document_object(document: Document | None) -> dict[str, Any] | None:
    if document is None:
        return None
    facts = {column.key: _plain(getattr(document, column.key)) for column in Document.__table__.columns}
    return facts | {name: (facts[name] or "").splitlines() for name in ("keywords", "terms")}


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.hex()
    return value.isoformat() if hasattr(value, "isoformat") else value


@app_command.command()
def cat(
    snapshot: SnapshotId,
    raw: Annotated[bool, typer.Option("--raw", help="The payload as stored, content codings left on.")] = False,
    headers: Annotated[bool, typer.Option("--headers", help="The status line and the headers.")] = False,
    as_text: Annotated[bool, typer.Option("--text", help="The main text, as it is searched.")] = False,
    home: Home = None,
) -> None:
    """Print a snapshot's content: its body, decoded, unless something else is asked for.

    Example: holdfast snapshot cat 4194305 --text
    """
    if raw + headers + as_text > 1:
        raise Invalid("only one of --raw, --headers and --text can be printed at once")
    with open_archive(config.load(home=home)) as archive, archive.database.read() as session:
        found = visible_snapshot(session, snapshot)
        if as_text:
            content = _text(session, found)
            # A pipe gets the text as it is stored, for other programs.
            print(lines(content) if sys.stdout.isatty() else content)
            return
        with queries.open_stored(session, archive.home, found) as stored:
            if headers:
                head = stored.head
                status = f"HTTP/1.1 {head.status} {head.reason}" if head is not None else "(a resource has none)"
                shown = [status, *(f"{name}: {value}" for name, value in (head.headers if head else ()))]
                print("\n".join(map(text, shown)))
                return
            # The payload is streamed; decoding needs all of it, so it has a bound.
            pieces = stored.payload if raw else iter((stored.content(_CONTENT_BYTES),))
            for piece in pieces:
                sys.stdout.buffer.write(piece)
            sys.stdout.buffer.flush()


def _text(session: Session, found: Snapshot) -> str:
    content = queries.shown_text(session, found)
    if content is None:
        raise NotFound(f"snapshot {found.id} is no page: it has no text")
    return content


@app_command.command("hide")
def hide_(
    subject: Subject,
    reason: Annotated[str, typer.Option("--reason", help="Why; kept in the audit log.")],
    json: AsJson = False,
    home: Home = None,
) -> None:
    """Hide a snapshot, or a page with all its captures, from every reader, at once.

    A page is named by any spelling of its address; it stays hidden under all others too, and in captures to come.

    Example: holdfast snapshot hide https://example.org/private --reason "asked by the owner"
    """
    with open_archive(config.load(home=home)) as archive:
        done = hide(archive.database, archive.clock, subject, reason=reason, home=archive.home)
        _say(done, "hidden", as_json=json)
        if not done.snapshots and not json:
            _say_uncaptured(archive, subject)


def _say_uncaptured(archive: Archive, subject: str) -> None:
    """Say that a hidden address was never captured, and which ones like it were: it may be misspelled."""
    typer.echo("no indexed capture has this address; if one comes, it will be hidden")
    with archive.database.read() as session:
        found = same_path(session, parse_seed(subject).fetch, limit=_NEAR)
    for one in found:
        typer.echo(f"there are captures of {text(one.url)}")


@app_command.command("unhide")
def unhide_(subject: Subject, json: AsJson = False, home: Home = None) -> None:
    """Show again what was hidden.

    Example: holdfast snapshot unhide 4194305
    """
    with open_archive(config.load(home=home)) as archive:
        _say(unhide(archive.database, archive.clock, subject, home=archive.home), "shown again", as_json=json)


def _say(done: Withdrawn, what: str, *, as_json: bool) -> None:
    if as_json:
        print(jsonlib.dumps({"subject": done.subject, "done": what, "snapshots": done.snapshots}))
    else:
        typer.echo(f"{done.subject}: {what}, {counted(done.snapshots, 'capture')}")


_SHOWN_WORDS = 20

page = command_group(
    "Pages whose body is not kept: find them by keyword, show one. Example: holdfast page search vaccine"
)


@page.command()
def search(
    words: Annotated[list[str], typer.Argument(help="Words that a page must have all of.")],
    domain: Annotated[str | None, typer.Option(help="Only pages of this host.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="Pages to show.")] = 20,
    offset: Annotated[int, typer.Option(min=0, max=100_000, help="Pages to pass over.")] = 0,
    json: AsJson = False,
    home: Home = None,
) -> None:
    """Find pages that have all of these words; case and accents do not matter.

    Example: holdfast page search vaccine calendar --domain example.org
    """
    question = SignalQuery(domain=domain, limit=limit, offset=offset)
    with open_archive(config.load(home=home)) as archive, archive.database.read() as session:
        found = find_pages(session, " ".join(words), question)
    if json:
        pages = [page_object(row) for row in found.pages]
        print(jsonlib.dumps({"pages": pages, "total": found.total, "limit": limit, "offset": offset}))
        return
    for row in found.pages:
        typer.echo(f"{text(row.url)}\n      {one_line(row.title or '(no title)')}")
    typer.echo(counted(found.total, "page") + (f", {len(found.pages)} shown" if found.total > len(found.pages) else ""))


@page.command("show")
def show_page(
    url: Annotated[str, typer.Argument(help="The page's address.")], json: AsJson = False, home: Home = None
) -> None:
    """Show what is kept of a page: title, language, keywords, links.

    Example: holdfast page show https://example.org/
    """
    with open_archive(config.load(home=home)) as archive, archive.database.read() as session:
        found = page_of(session, parse(url))
    facts = page_object(found.page)
    if json:
        print(jsonlib.dumps({**facts, "keywords": dict(found.words), "links": list(found.links)}))
        return
    for name, value in facts.items():
        if value is not None:
            typer.echo(f"{name:<14} {one_line(value)}")
    typer.echo(f"{'keywords':<14} {text([word for word, _ in found.words[:_SHOWN_WORDS]])}")
    for link in found.links:
        typer.echo(f"{'link':<14} {text(link)}")


def page_object(row: SignalPageRow) -> dict[str, Any]:
    """Return a page as JSON can hold it."""
    facts = row._asdict() | {"fetched_at": row.fetched_at.isoformat(), "url_hash": parse(row.url).url_hash}
    return facts
