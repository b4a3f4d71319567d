"""`holdfast snapshot`: show one capture, print its content, hide it. `holdfast page`: pages without a stored body.

`holdfast noise`: captures that do not show their page: the classifier's findings, and manual labels.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Annotated, Any

import typer
from sqlalchemy.orm import Session

from holdfast.cli.formatting import counted, lines, one_line, text
from holdfast.cli.parameters import OfSource, command_group
from holdfast.cli.printing import picked
from holdfast.cli.resource import Done, Reading, command
from holdfast.crawl.signal_pages import SignalPageRow, SignalQuery, find_pages, page_of
from holdfast.db.models import Document, Snapshot
from holdfast.errors import Invalid, NotFound
from holdfast.index import queries
from holdfast.noise import queries as noise_queries
from holdfast.noise.classifier import judge_pending
from holdfast.noise.labels import set_label
from holdfast.noise.words import NoiseKind
from holdfast.records import Spelling, encode, from_row
from holdfast.replay.finding import same_path
from holdfast.replay.records import PageRecord
from holdfast.sources.queries import source_id_of
from holdfast.urls import parse, parse_seed
from holdfast.wiring.archive import Archive
from holdfast.withdrawals.hiding import hide, unhide
from holdfast.withdrawals.records import TakedownReceipt
from holdfast.withdrawals.visibility import visible_snapshot

_CONTENT_BYTES = 256 * 1024 * 1024
# Number of similar URLs that are suggested for one that was never captured.
_NEAR = 5

app_command = command_group(
    "Show a snapshot, print its content, hide it from every reader. Example: holdfast snapshot show 4194305"
)
SnapshotId = Annotated[int, typer.Argument(help="The snapshot's id.", metavar="ID")]
Subject = Annotated[str, typer.Argument(help="A snapshot's id, or an address: all its captures.", metavar="ID|URL")]


@command(app_command, example="snapshot show 4194305")
def show(archive: Archive, session: Reading, snapshot: SnapshotId) -> Done:
    """Show everything that is known about a snapshot and its document."""
    found = visible_snapshot(session, snapshot)
    facts: dict[str, Any] = {
        **_columns(found),
        "warc_path": str(queries.file_of(session, archive.home, found.warc_file_id).local_path()),
        "document": _document_object(queries.document_of(session, found)),
    }
    if found.noise is not None and (why := noise_queries.verdict_on(session, found.id)) is not None:
        facts["noise_evidence"] = why.evidence
    return Done(facts, _lines(facts))


def _lines(facts: dict[str, Any], before: str = "") -> Iterator[str]:
    for name, value in facts.items():
        if isinstance(value, dict):
            yield from _lines(value, f"{before}{name}.")
        # Limit the terms: a page of a manual has hundreds.
        elif value is not None and value != [] and f"{before}{name}" != "document.terms":
            yield f"{before + name:<24} {text(value)}"


def _columns(row: Snapshot | Document) -> dict[str, Any]:
    """Return every column of a row as JSON can hold it."""
    values = {column.key: getattr(row, column.key) for column in row.__table__.columns}
    return {name: value.hex() if isinstance(value, bytes) else value for name, value in values.items()}


def _document_object(document: Document | None) -> dict[str, Any] | None:
    if document is None:
        return None
    facts = _columns(document)
    return facts | {name: (facts[name] or "").splitlines() for name in ("keywords", "terms")}


@command(app_command, example="snapshot cat 4194305 --text")
def cat(
    archive: Archive,
    snapshot: SnapshotId,
    raw: Annotated[bool, typer.Option("--raw", help="The payload as stored, content codings left on.")] = False,
    headers: Annotated[bool, typer.Option("--headers", help="The status line and the headers.")] = False,
    as_text: Annotated[bool, typer.Option("--text", help="The main text, as it is searched.")] = False,
) -> None:
    """Print a snapshot's content; by default its decoded body."""
    if raw + headers + as_text > 1:
        raise Invalid("only one of --raw, --headers and --text can be printed at once")
    with archive.database.read() as session:
        found = visible_snapshot(session, snapshot)
        if as_text:
            content = _text(session, found)
            # Write the stored text unchanged to a pipe, for other programs.
            print(lines(content) if sys.stdout.isatty() else content)
            return
        with queries.open_stored(session, archive.home, found) as stored:
            if headers:
                head = stored.head
                status = f"HTTP/1.1 {head.status} {head.reason}" if head is not None else "(a resource has none)"
                shown = [status, *(f"{name}: {value}" for name, value in (head.headers if head else ()))]
                print("\n".join(map(text, shown)))
                return
            # Stream the payload; decoding needs all of it, so limit that.
            pieces = stored.payload if raw else iter((stored.content(_CONTENT_BYTES),))
            for piece in pieces:
                sys.stdout.buffer.write(piece)
            sys.stdout.buffer.flush()


def _text(session: Session, found: Snapshot) -> str:
    content = queries.shown_text(session, found)
    if content is None:
        raise NotFound(f"snapshot {found.id} is no page: it has no text")
    return content


@command(app_command, "hide", example='snapshot hide https://example.org/private --reason "asked by the owner"')
def hide_(
    archive: Archive,
    subject: Subject,
    reason: Annotated[str, typer.Option(help="Why; kept in the audit log.")],
) -> Done:
    """Hide a snapshot, or a page with all its captures, from every reader, at once.

    A page is named by any spelling of its address; it stays hidden under all others too, and in captures to come.
    """
    done = hide(archive.database, archive.clock, subject, reason=reason, home=archive.home)
    return _done(done, "hidden", *(() if done.captures else _uncaptured(archive, subject)))


def _uncaptured(archive: Archive, subject: str) -> Iterator[str]:
    """Yield lines for a hidden URL that was never captured, with similar ones: it may be misspelled."""
    yield "no indexed capture has this address; if one comes, it will be hidden"
    with archive.database.read() as session:
        for one in same_path(session, parse_seed(subject).fetch, limit=_NEAR):
            yield f"there are captures of {text(one.url)}"


@command(app_command, "unhide", example="snapshot unhide 4194305")
def unhide_(archive: Archive, subject: Subject) -> Done:
    """Show a hidden snapshot or page again."""
    return _done(unhide(archive.database, archive.clock, subject, home=archive.home), "shown again")


def _done(receipt: TakedownReceipt, done: str, *more: str) -> Done:
    sentence = f"{receipt.subject}: {done}, {counted(receipt.captures, 'capture')}"
    facts = {"subject": receipt.subject, "done": done, "snapshots": receipt.captures}
    return Done(facts, [sentence, *more])


_SHOWN_WORDS = 20

page = command_group(
    "Pages whose body is not kept: find them by keyword, show one. Example: holdfast page search vaccine"
)


@command(page, example="page search vaccine calendar --domain example.org")
def search(
    session: Reading,
    words: Annotated[list[str], typer.Argument(help="Words that a page must have all of.")],
    domain: Annotated[str | None, typer.Option(help="Only pages of this host.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="Pages to show.")] = 20,
    offset: Annotated[int, typer.Option(min=0, max=100_000, help="Pages to skip.")] = 0,
) -> Done:
    """Find pages that contain all of these words, ignoring case and accents."""
    rows, total = find_pages(session, " ".join(words), SignalQuery(domain=domain, limit=limit, offset=offset))
    lines = [f"{text(row.url)}\n      {one_line(row.title or '(no title)')}" for row in rows]
    more = f", {len(rows)} shown" if total > len(rows) else ""
    pages = [*map(_page, rows)]
    facts = {"pages": pages, "total": total, "limit": limit, "offset": offset}
    return Done(facts, [*lines, counted(total, "page") + more])


@command(page, "show", example="page show https://example.org/")
def show_page(session: Reading, url: Annotated[str, typer.Argument(help="The page's address.")]) -> Done:
    """Show the stored data of a page: title, language, keywords, links."""
    found = page_of(session, parse(url))
    facts = encode(_page(found.page), spelling=Spelling.COMMAND)
    shown = {**facts, "keywords": [word for word, _ in found.words[:_SHOWN_WORDS]]}
    lines = [f"{name:<14} {one_line(value)}" for name, value in shown.items() if value is not None]
    lines += [f"{'link':<14} {text(link)}" for link in found.links]
    return Done({**facts, "keywords": dict(found.words), "links": list(found.links)}, lines)


def _page(row: SignalPageRow) -> PageRecord:
    return from_row(PageRecord, row, url_hash=parse(row.url).url_hash)


noise = command_group(
    "Captures that show something else than their page: list them, mark one, clear one. Example: holdfast noise list"
)
Reason = Annotated[str, typer.Option("--reason", help="Why; kept in the audit log.")]


@command(noise, "list", example="noise list --source example-org --as login_wall")
def list_noise(
    session: Reading,
    source: OfSource = None,
    kind: Annotated[NoiseKind | None, typer.Option("--as", help="Only these.")] = None,
    before: Annotated[int | None, typer.Option(min=0, help="Only snapshots with a smaller id.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=10_000, help="Rows to print.")] = 50,
) -> Done:
    """List captures that are left out of results, changes and coverage, with the evidence; newest ids first."""
    source_id = source_id_of(session, source)
    rows = noise_queries.listed(session, source_id=source_id, kind=kind, before=before, limit=limit)
    is_waiting = noise_queries.is_waiting(session)
    following, lines = rows[-1].id if len(rows) == limit else None, []
    for row in rows:
        by = f" (ruled by {text(row.decided_by)})" if row.decided_by else ""
        lines.append(f"{row.id}  {row.captured_at:%Y-%m-%d %H:%M}  {row.kind:<12}  {text(row.url)}{by}")
        lines.append(f"      {one_line(row.evidence or '')}")
    lines += [] if rows else ["no capture is left out"]
    lines += [] if following is None else [f"go on with: holdfast noise list --before {following}"]
    lines += ["some captures are not classified yet; run: holdfast noise judge"] if is_waiting else []
    return Done({"noise": rows, "next_before": following, "judged": not is_waiting}, lines)


@command(noise, example='noise mark 4194305 --as block_page --reason "a firewall answered"')
def mark(
    archive: Archive,
    subject: Subject,
    kind: Annotated[NoiseKind, typer.Option("--as", help="What it shows instead of its page.")],
    reason: Reason,
) -> Done:
    """Rule that a capture, or a page with all its captures, shows something else; it overrides the classifier.

    Of a page it holds for captures to come, too. Replay, exports and CDX show it as before.
    """
    return _ruled(archive, subject, kind, reason)


@command(noise, example='noise clear https://example.org/private --reason "an article"')
def clear(archive: Archive, subject: Subject, reason: Reason) -> Done:
    """Rule that a capture, or a page with all its captures, shows the page; it overrides the classifier."""
    return _ruled(archive, subject, None, reason)


def _ruled(archive: Archive, subject: str, kind: NoiseKind | None, reason: str) -> Done:
    done = set_label(archive.database, archive.clock, subject, kind=kind, reason=reason, home=archive.home)
    what = "shows its page" if done.noise is None else f"is {done.noise.value}"
    return Done(done, f"{done.subject}: {what}, {counted(done.snapshots, 'capture')}")


@command(noise, example="noise judge")
def judge(archive: Archive) -> Done:
    """Classify indexed captures that were not classified yet; workers and the server do this by themselves.

    Acts at once: it writes derived data, and manual labels stay in force.
    """
    done = judge_pending(archive.database, archive.clock)
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in sorted(done.marked.items())) or "none is noise"
    cleared = f", {done.cleared:,} cleared" if done.cleared else ""
    sentence = f"{counted(done.captures, 'capture')} judged: {kinds}{cleared}"
    return Done(picked(done, "captures marked cleared"), sentence)
