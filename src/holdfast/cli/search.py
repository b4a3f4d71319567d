"""`holdfast search`: find captures by words or by address. `--json` prints what `GET /api/search` answers."""

from __future__ import annotations

import json as jsonlib
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from functools import partial
from typing import Annotated, Literal

import typer

from holdfast import config
from holdfast.cli.formatting import counted, one_line, table
from holdfast.cli.parameters import AsJson, Home, OnlyPublic, command_group, configure_log
from holdfast.coordination.runfile import step_back
from holdfast.db.raw import DatabaseReadOnly
from holdfast.replay.origins import browse_url
from holdfast.search import queries
from holdfast.search.answers import answer_object
from holdfast.search.confined import BadOperator
from holdfast.search.directory import IndexBusy
from holdfast.search.engine import IndexBroken
from holdfast.search.highlight import Piece
from holdfast.search.linked_hosts import MAX_LISTED, linked_hosts_object, refresh_linked_hosts
from holdfast.search.linked_queries import linked_hosts
from holdfast.search.matching import MatchMode
from holdfast.search.near_duplicates import SimilarResults
from holdfast.search.operators import as_object, as_text
from holdfast.search.outbox import Drained, drain, is_lost
from holdfast.search.outbox import rebuild as rebuild_index
from holdfast.search.passages import MAX_PASSAGES
from holdfast.search.readers import ReaderCache
from holdfast.search.search import BadSearch, Hit, ResultKind, SearchAnswer, SearchRequest, SearchService, Sort
from holdfast.search.terms_over_time import (
    BadTerms,
    TermsAnswer,
    TermsRequest,
    TimeUnit,
    split_terms,
    terms_csv,
    terms_object,
)
from holdfast.wiring.archive import Archive, open_archive
from holdfast.withdrawals.viewers import EVERYTHING, PUBLIC, seen_by

_DRAIN_S = 5.0
_MADE_FIRST = (
    "holdfast: there is no search index that this version can use; it is made first. Ctrl-C ends that, and the next "
    "search begins anew"
)
_DAY = ["%Y-%m-%d"]
_SIMILAR = {True: SimilarResults.SHOW, False: SimilarResults.COLLAPSE}


def search(
    query: Annotated[
        str | None,
        typer.Argument(help="Words, an address, AND OR NOT, title: snippet: url:, operators such as site: (--syntax)."),
    ] = None,
    source: Annotated[str | None, typer.Option("--source", "-s", help="Only this source.")] = None,
    since: Annotated[datetime | None, typer.Option("--from", formats=_DAY, help="First day, as 2025-01-31.")] = None,
    until: Annotated[datetime | None, typer.Option("--to", formats=_DAY, help="Last day.")] = None,
    view: Annotated[
        ResultKind, typer.Option(help="Captures, or pages with the latest of theirs.")
    ] = ResultKind.SNAPSHOTS,
    sort: Annotated[Sort | None, typer.Option(help="By relevance where there are words, else newest.")] = None,
    language: Annotated[str | None, typer.Option(help="Only this language: en, fr; und where it is not known.")] = None,
    like: Annotated[int | None, typer.Option(help="Captures like this one, by its number, instead of words.")] = None,
    syntax: Annotated[bool, typer.Option("--syntax", help="Tell all that can be asked, and do nothing.")] = False,
    kind: Annotated[str | None, typer.Option("--type", help="Only html, text, pdf or other.")] = None,
    status_class: Annotated[
        str | None, typer.Option("--status", help="Only this class of statuses: 1xx, 2xx, 3xx, 4xx, 5xx, unknown.")
    ] = None,
    host: Annotated[str | None, typer.Option(help="Only this host.")] = None,
    non_2xx: Annotated[bool, typer.Option("--include-non-2xx", help="Redirects and errors too.")] = False,
    duplicates: Annotated[bool, typer.Option("--include-duplicates", help="Equal captures of one day too.")] = False,
    similar_to: Annotated[
        int | None, typer.Option("--similar-to", metavar="SNAPSHOT", help="Only near-duplicates of this capture.")
    ] = None,
    show_similar: Annotated[
        bool | None,
        typer.Option(
            "--show-similar/--collapse-similar", help="Near-duplicates too, or left out of results by date, too."
        ),
    ] = None,
    noise: Annotated[
        bool, typer.Option("--show-noise", help="Captures that show something else than their page, too.")
    ] = False,
    page: Annotated[int, typer.Option(min=1, help="Which page of results.")] = 1,
    page_size: Annotated[int, typer.Option("--page-size", min=1, max=100, help="Results of a page.")] = 20,
    passages: Annotated[int, typer.Option(min=1, max=MAX_PASSAGES, help="Passages of each result.")] = 1,
    _ranking: Annotated[
        Literal["v1", "v2", "v3", "v4"], typer.Option("--ranking", help="Ignored: there is one ranking.")
    ] = "v4",
    public: OnlyPublic = False,
    json: AsJson = False,
    home: Home = None,
) -> None:
    """Find captures; the newest ones without a query. What was indexed a moment ago is taken in first.

    Example: holdfast search 'flu vaccine site:example.org after:2025' --source hc
    """
    if syntax:
        typer.echo(jsonlib.dumps(as_object(), ensure_ascii=False) if json else as_text())
        return
    settings = config.load(home=home)
    configure_log(settings, as_json=False)
    request = SearchRequest(
        q=query,
        source=source,
        sort=sort,
        view=view,
        non_2xx=non_2xx,
        duplicates=duplicates,
        noise=noise,
        start=since.date() if since else None,
        end=until.date() if until else None,
        language=language,
        type=kind,
        status=status_class,
        host=host,
        page=page,
        page_size=page_size,
        passages=passages,
        like=like,
        similar=None if show_similar is None else _SIMILAR[show_similar],
        similar_to=similar_to,
    )
    with open_archive(settings) as archive, _mistyped("query"):
        _take_in(archive)
        with seen_by(PUBLIC if public else EVERYTHING):
            answer = SearchService(archive.database, archive.home, archive.clock).ask(request, wait=True)
        if not answer.total:
            _say_unindexed(archive)
    if json:
        print(jsonlib.dumps(answer_object(answer, request, partial(browse_url, settings)), ensure_ascii=False))
    else:
        _print(answer, request)


@contextmanager
def _mistyped(argument: str) -> Iterator[None]:
    """End with 2, as for arguments that do not parse, where a value, an operator or a term cannot be meant."""
    try:
        yield
    except (BadOperator, BadSearch, BadTerms) as exc:
        raise typer.BadParameter(str(exc), param_hint=argument) from exc


def terms(
    names: Annotated[str, typer.Argument(metavar="TERMS", help="Words or phrases, parted by commas; 8 at most.")],
    unit: Annotated[TimeUnit, typer.Option(help="What is counted by.")] = TimeUnit.YEAR,
    source: Annotated[str | None, typer.Option("--source", "-s", help="Only this source.")] = None,
    where: Annotated[
        str | None, typer.Option(help="Operators, as in a query: 'site:example.org lang:fr'; see search --syntax.")
    ] = None,
    since: Annotated[datetime | None, typer.Option("--from", formats=_DAY, help="First day, as 2025-01-31.")] = None,
    until: Annotated[datetime | None, typer.Option("--to", formats=_DAY, help="Last day.")] = None,
    csv: Annotated[bool, typer.Option("--csv", help="Print CSV.")] = False,
    json: AsJson = False,
    home: Home = None,
) -> None:
    """Count the captures that have a term in each year or month, and their share of all captures of that time.

    Example: holdfast terms 'flu,measles,whooping cough' --unit month --csv
    """
    settings = config.load(home=home)
    configure_log(settings, as_json=False)
    request = TermsRequest(
        terms=split_terms(names),
        unit=unit,
        source=source,
        operators=where,
        start=since.date() if since else None,
        end=until.date() if until else None,
    )
    with open_archive(settings) as archive, _mistyped("TERMS"):
        _take_in(archive)
        answer = SearchService(archive.database, archive.home, archive.clock).terms(request, wait=True)
    if json:
        print(jsonlib.dumps(terms_object(answer), ensure_ascii=False))
    elif csv:
        print(terms_csv(answer), end="")
    else:
        _print_terms(answer)


def _print_terms(answer: TermsAnswer) -> None:
    head = [answer.unit.value, "all", *(one.term if one.exact else f"{one.term} (at least)" for one in answer.terms)]
    rows = [
        [start, f"{volume:,}", *(f"{count:,} ({count / volume:.2%})" if volume else "0" for count in counts)]
        for start, volume, *counts in zip(
            answer.starts, answer.volume, *(one.captures for one in answer.terms), strict=True
        )
    ]
    typer.echo(table(head, rows))


def linked_hosts_command(
    limit: Annotated[int, typer.Option(min=1, max=MAX_LISTED, help="Hosts to show.")] = 50,
    json: AsJson = False,
    home: Home = None,
) -> None:
    """Show hosts that captures link to and of which nothing is kept: candidates for sources, the most linked first.

    Example: holdfast linked-hosts --limit 20
    """
    settings = config.load(home=home)
    configure_log(settings, as_json=False)
    with open_archive(settings) as archive:
        with suppress(DatabaseReadOnly):  # what was counted before can be shown all the same
            refresh_linked_hosts(archive.database, archive.home, archive.clock, limit_s=_DRAIN_S)
        with archive.database.read() as session:
            found = linked_hosts_object(linked_hosts(session, limit=limit, offset=0))
    if json:
        print(jsonlib.dumps(found, ensure_ascii=False))
        return
    rows = [[one["host"], one["linkingSites"], one["links"]] for one in found]
    typer.echo(table(["host", "linking sites", "links"], rows) if rows else "no host is linked to that is not kept")


def _take_in(archive: Archive) -> None:
    """Take in what waits, for some seconds; say so if more does, or if the whole index is to be made first."""
    lost = False
    try:
        lost = is_lost(archive.database, archive.home, archive.clock)
        # For some seconds only: after a large import the whole of it would make a person wait for minutes.
        done = _make_anew(archive) if lost else drain(archive.database, archive.home, archive.clock, limit_s=_DRAIN_S)
    # Another process takes it in already; this one answers from what is there.
    except IndexBusy:
        if lost:
            print("holdfast: another process makes the search index; ask again when it is there", file=sys.stderr)
        return
    except DatabaseReadOnly:  # what was taken in before can be found all the same
        print("holdfast: changes wait for the search index, which is read-only here", file=sys.stderr)
        return
    if not done.finished:
        print("holdfast: changes wait for the search index; run: holdfast search-index drain", file=sys.stderr)


def _make_anew(archive: Archive) -> Drained:
    """Make the index where there is none that can be used: however long that takes, so it is said and shown."""
    show, said = _progress(quiet=False), False

    def progress(pages: int) -> None:
        nonlocal said
        if not said:
            # Not before the work begins: another process may be at it.
            print(_MADE_FIRST, file=sys.stderr)
            said = True
        show(pages)

    try:
        return drain(archive.database, archive.home, archive.clock, progress=progress)
    finally:
        if said and sys.stderr.isatty():
            # The counter leaves no line behind.
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def _say_unindexed(archive: Archive) -> None:
    """Say that sealed files have not been indexed, if that is so: what they hold cannot be found."""
    with archive.database.read() as session:
        if queries.files_wait(session):
            print("holdfast: sealed WARC files wait to be indexed; run: holdfast index", file=sys.stderr)


def _print(answer: SearchAnswer, request: SearchRequest) -> None:
    if answer.mode is MatchMode.SOME_WORDS:
        typer.echo(f"nothing has all of {request.q!r}; showing what has some of it\n")
    if answer.did_you_mean:
        typer.echo(f"nothing has {request.q!r}; showing {answer.did_you_mean!r}\n")
    for hit in answer.hits:
        typer.echo(_lines(hit, request.view))
    about = "" if answer.exact else "at least "
    first = (request.page - 1) * request.page_size + 1
    shown = f"{first} to {first + len(answer.hits) - 1} of " if answer.hits else ""
    without = f", {counted(answer.collapsed, 'near-duplicate')} not shown" if answer.collapsed else ""
    typer.echo(f"{shown}{about}{answer.total:,} {request.view.value}{without}, {answer.took_ms:.0f} ms")


def _lines(hit: Hit, view: ResultKind) -> str:
    row = hit.row
    more = f", {counted(hit.captures, 'capture')}" if hit.captures else ""
    head = f"{row.captured_at:%Y-%m-%d %H:%M}  {row.status or '-'}  {hit.source_code}  snapshot {row.id}{more}"
    head += f"  {row.noise}" if row.noise else ""
    bold = sys.stdout.isatty()
    title = _marked(hit.title, bold=bold) or "(no title)"
    text = [f"    {_marked(passage, bold=bold)}" for passage in hit.passages]
    similar = []
    if hit.similar:
        noun, more = ("similar page", " --view pages") if view is ResultKind.PAGES else ("similar capture", "")
        similar = [f"    and {counted(hit.similar, noun)}: holdfast search --similar-to {row.id}{more}"]
    return "\n".join([title, f"    {one_line(row.url)}", f"    {head}", *text, *similar, ""])


def _marked(passage: list[Piece], *, bold: bool) -> str:
    return "".join(typer.style(one_line(p.text), bold=True) if p.hit and bold else one_line(p.text) for p in passage)


app_command = search


search_index = command_group(
    "Take in what waits, make the index anew, see how it stands. Example: holdfast search-index status"
)


def _progress(*, quiet: bool) -> Callable[[int], None]:
    def show(pages: int) -> None:
        if not quiet and sys.stderr.isatty():
            print(f"\r{pages:,} pages taken in", end="", file=sys.stderr, flush=True)

    return show


@search_index.command("drain")
def drain_command(json: AsJson = False, home: Home = None) -> None:
    """Take in what was indexed since; Ctrl-C stops, the next drain goes on.

    Acts at once: what it writes is derived, and can be made anew.
    Example: holdfast search-index drain
    """
    settings = config.load(home=home)
    configure_log(settings, as_json=False)
    step_back(settings.index.nice)
    with open_archive(settings) as archive:
        done = drain(archive.database, archive.home, archive.clock, progress=_progress(quiet=json))
    if json:
        print(jsonlib.dumps({"changes": done.changes, "pages": done.pages, "finished": done.finished}))
    else:
        typer.echo(f"{counted(done.changes, 'change')} taken in, {counted(done.pages, 'page')}")


@search_index.command()
def rebuild(json: AsJson = False, home: Home = None) -> None:
    """Make the index anew from the database; the old one serves until the new one is whole.

    Acts at once: what it writes is derived, and can be made anew.
    Example: holdfast search-index rebuild
    """
    settings = config.load(home=home)
    configure_log(settings, as_json=False)
    step_back(settings.index.nice)
    with open_archive(settings) as archive:
        pages = rebuild_index(archive.database, archive.home, archive.clock, progress=_progress(quiet=json))
        done = drain(archive.database, archive.home, archive.clock)
    if json:
        print(jsonlib.dumps({"pages": pages, "changes": done.changes}))
    else:
        typer.echo(f"{counted(pages, 'page')} in the new index, {counted(done.changes, 'change')} taken in since")


@search_index.command()
def status(json: AsJson = False, home: Home = None) -> None:
    """Show how many pages, documents and addresses it holds, and how many changes wait; or why it cannot be used.

    Example: holdfast search-index status
    """
    with open_archive(config.load(home=home)) as archive:
        facts = _index_facts(archive)
        with archive.database.read() as session:
            facts["waiting"] = queries.waiting_count(session)
    if json:
        print(jsonlib.dumps(facts))
        return
    for name, value in facts.items():
        typer.echo(f"{name:<11} {value:,}" if isinstance(value, int) else f"{name:<11} {value}")


def _index_facts(archive: Archive) -> dict[str, str | int]:
    try:
        view = ReaderCache(archive.home, archive.clock).view()
    except IndexBroken as exc:
        return {"state": "unusable", "detail": str(exc)}
    return {
        "state": "ready",
        "generation": view.folder.name,
        "sequence": view.manifest.sequence,
        "segments": len(view.manifest.segments),
        "pages": len(view.columns),
        "documents": len(view.columns.documents),
        "addresses": len(view.columns.addresses),
    }
