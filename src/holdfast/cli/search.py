"""`holdfast search`: find captures by words or by URL. `--json` prints the response of `GET /api/search`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from functools import partial
from typing import Annotated, Literal, NamedTuple

import typer

from holdfast.cli.formatting import counted, one_line, table
from holdfast.cli.parameters import Days, OfSource, OnlyPublic, command_group
from holdfast.cli.printing import clear_counter, counter, picked
from holdfast.cli.resource import Done, command, runnable
from holdfast.config import Settings
from holdfast.db.raw import DatabaseReadOnly
from holdfast.records import encode
from holdfast.replay.origins import browse_url
from holdfast.search import queries
from holdfast.search.answers import answer_object
from holdfast.search.directory import IndexBusy
from holdfast.search.engine import IndexBroken
from holdfast.search.filters import BadOperator
from holdfast.search.highlight import Piece
from holdfast.search.linked_hosts import MAX_LISTED, linked_host_records, refresh_linked_hosts
from holdfast.search.linked_queries import linked_hosts
from holdfast.search.matching import MatchMode
from holdfast.search.near_duplicates import SimilarResults
from holdfast.search.operators import as_text, syntax_record
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
    terms_record,
)
from holdfast.wiring.archive import Archive, open_archive
from holdfast.withdrawals.viewers import EVERYTHING, PUBLIC, seen_by

_DRAIN_S = 5.0
_PAGES = "pages taken in"
_MADE_FIRST = (
    "holdfast: there is no search index that this version can use; it is built first. Ctrl-C stops that, and the next "
    "search starts over"
)
_SIMILAR = {True: SimilarResults.SHOW, False: SimilarResults.COLLAPSE}


class SearchOptions(NamedTuple):
    """Options of a search, named like the fields of `SearchRequest`."""

    query: Annotated[
        str | None,
        typer.Argument(
            help="Words, an address, AND OR NOT, title: snippet: url:, operators such as site: (--syntax)."
            " Write -- before a query that starts with a minus.",
        ),
    ] = None
    source: OfSource = None
    view: Annotated[ResultKind, typer.Option(help="Captures, or pages with the latest of theirs.")] = (
        ResultKind.SNAPSHOTS
    )
    sort: Annotated[Sort | None, typer.Option(help="By relevance where there are words, else newest.")] = None
    language: Annotated[str | None, typer.Option(help="Only this language: en, fr; und where it is not known.")] = None
    like: Annotated[int | None, typer.Option(help="Captures like this one, by its number, instead of words.")] = None
    syntax: Annotated[bool, typer.Option("--syntax", help="Describe the query language, and do nothing.")] = False
    type: Annotated[str | None, typer.Option("--type", help="Only html, text, pdf or other.")] = None
    status: Annotated[
        str | None, typer.Option("--status", help="Only this class of statuses: 1xx, 2xx, 3xx, 4xx, 5xx, unknown.")
    ] = None
    host: Annotated[str | None, typer.Option(help="Only this host.")] = None
    non_2xx: Annotated[bool, typer.Option("--include-non-2xx", help="Redirects and errors too.")] = False
    duplicates: Annotated[bool, typer.Option("--include-duplicates", help="Equal captures of one day too.")] = False
    similar_to: Annotated[
        int | None, typer.Option(metavar="SNAPSHOT", help="Only near-duplicates of this capture.")
    ] = None
    show_similar: Annotated[
        bool | None,
        typer.Option(
            "--show-similar/--collapse-similar",
            help="Show near-duplicates or leave them out. Default: only pages by relevance leave them out.",
        ),
    ] = None
    noise: Annotated[
        bool, typer.Option("--show-noise", help="Captures that show something else than their page, too.")
    ] = False
    page: Annotated[int, typer.Option(min=1, help="Which page of results.")] = 1
    page_size: Annotated[int, typer.Option(min=1, max=100, help="Results of a page.")] = 20
    passages: Annotated[int, typer.Option(min=1, max=MAX_PASSAGES, help="Passages of each result.")] = 1

    def request(self, days: Days) -> SearchRequest:
        given = self._asdict()
        shows_similar = given.pop("show_similar")
        del given["syntax"]
        similar = None if shows_similar is None else _SIMILAR[shows_similar]
        return SearchRequest(q=given.pop("query"), **given, similar=similar, start=days.first, end=days.last)


@runnable(opened=nullcontext, example="search 'flu vaccine site:example.org after:2025' --source hc")
def search(
    settings: Settings,
    days: Days,
    options: SearchOptions,
    _ranking: Annotated[
        Literal["v1", "v2", "v3", "v4"], typer.Option("--ranking", help="Ignored: there is one ranking.")
    ] = "v4",
    public: OnlyPublic = False,
) -> Done:
    """Find captures; the newest ones without a query. Recently indexed captures are added to the index first."""
    if options.syntax:
        return Done(syntax_record(), as_text())
    request = options.request(days)
    with open_archive(settings) as archive, _mistyped("query"):
        _take_in(archive)
        with seen_by(PUBLIC if public else EVERYTHING):
            answer = SearchService(archive.database, archive.home, archive.clock).ask(request, wait=True)
        with archive.database.read() as session:
            if not answer.total and queries.files_wait(session):
                print("holdfast: sealed WARC files wait to be indexed; run: holdfast index", file=sys.stderr)
    found = answer_object(answer, request, partial(browse_url, settings))
    return Done(found, _lines(answer, request))


@contextmanager
def _mistyped(argument: str) -> Iterator[None]:
    """Exit with 2, as for unparsable arguments, if a value, an operator or a term is invalid."""
    try:
        yield
    except (BadOperator, BadSearch, BadTerms) as exc:
        raise typer.BadParameter(str(exc), param_hint=argument) from exc


@runnable(example="terms 'flu,measles,whooping cough' --unit month --csv")
def terms(
    archive: Archive,
    days: Days,
    names: Annotated[str, typer.Argument(metavar="TERMS", help="Words or phrases, separated by commas; 8 at most.")],
    unit: Annotated[TimeUnit, typer.Option(help="The field to count by.")] = TimeUnit.YEAR,
    source: OfSource = None,
    where: Annotated[
        str | None, typer.Option(help="Operators, as in a query: 'site:example.org lang:fr'; see search --syntax.")
    ] = None,
    csv: Annotated[bool, typer.Option("--csv", help="Print CSV.")] = False,
) -> Done:
    """Count the captures that have a term in each year or month, and their share of all captures of that time."""
    request = TermsRequest(
        terms=split_terms(names),
        unit=unit,
        source=source,
        operators=where,
        start=days.first,
        end=days.last,
    )
    with _mistyped("TERMS"):
        _take_in(archive)
        answer = SearchService(archive.database, archive.home, archive.clock).terms(request, wait=True)
    return Done(encode(terms_record(answer)), terms_csv(answer).removesuffix("\n") if csv else _terms_table(answer))


def _terms_table(answer: TermsAnswer) -> str:
    head = [answer.unit.value, "all", *(one.term if one.exact else f"{one.term} (at least)" for one in answer.terms)]
    columns = zip(answer.starts, answer.volume, *(one.captures for one in answer.terms), strict=True)
    rows = [
        [start, f"{volume:,}", *(f"{count:,} ({count / volume:.2%})" if volume else "0" for count in counts)]
        for start, volume, *counts in columns
    ]
    return table(head, rows)


@runnable(example="linked-hosts --limit 20")
def linked_hosts_(
    archive: Archive, limit: Annotated[int, typer.Option(min=1, max=MAX_LISTED, help="Hosts to show.")] = 50
) -> Done:
    """Show hosts that captures link to and that have no captures: candidates for sources, the most linked first."""
    with suppress(DatabaseReadOnly):  # earlier counts are printed
        refresh_linked_hosts(archive.database, archive.home, archive.clock, limit_s=_DRAIN_S)
    with archive.database.read() as session:
        found = linked_host_records(linked_hosts(session, limit=limit, offset=0))
    rows = [[one.host, one.linking_sites, one.links] for one in found]
    none = "every host that captures link to has captures"
    return Done(encode(found), table(["host", "linking sites", "links"], rows) if rows else none)


def _take_in(archive: Archive) -> None:
    """Index pending changes for a few seconds; warn if more remain. Builds the whole index if it is unusable."""
    lost = False
    try:
        lost = is_lost(archive.database, archive.home, archive.clock)
        # Update for some seconds only: after a large import the whole update would take minutes.
        done = _make_anew(archive) if lost else drain(archive.database, archive.home, archive.clock, limit_s=_DRAIN_S)
    # Another process is updating the index; search its current state.
    except IndexBusy:
        if lost:
            print("holdfast: another process is building the search index; try again when it is done", file=sys.stderr)
        return
    except DatabaseReadOnly:  # search the index as it is
        print("holdfast: changes wait for the search index, which is read-only here", file=sys.stderr)
        return
    if not done.finished:
        print("holdfast: changes wait for the search index; run: holdfast search-index drain", file=sys.stderr)


def _make_anew(archive: Archive) -> Drained:
    """Build the index if there is no usable one, with progress, however long that takes."""
    show, said = counter(_PAGES), False

    def progress(pages: int) -> None:
        nonlocal said
        if not said:
            # Show nothing before the work starts: another process may be doing it.
            print(_MADE_FIRST, file=sys.stderr)
            said = True
        show(pages)

    try:
        return drain(archive.database, archive.home, archive.clock, progress=progress)
    finally:
        if said:
            clear_counter()


def _lines(answer: SearchAnswer, request: SearchRequest) -> Iterator[str]:
    if answer.mode is MatchMode.SOME_WORDS:
        yield f"nothing has all of {request.q!r}; showing what has some of it\n"
    if answer.did_you_mean:
        yield f"nothing has {request.q!r}; showing {answer.did_you_mean!r}\n"
    for hit in answer.hits:
        yield from _hit_lines(hit, request.view)
    about = "" if answer.exact else "at least "
    first = (request.page - 1) * request.page_size + 1
    shown = f"{first} to {first + len(answer.hits) - 1} of " if answer.hits else ""
    without = f", {counted(answer.collapsed, 'near-duplicate')} not shown" if answer.collapsed else ""
    yield f"{shown}{about}{answer.total:,} {request.view.value}{without}, {answer.took_ms:.0f} ms"


def _hit_lines(hit: Hit, view: ResultKind) -> Iterator[str]:
    row, bold = hit.row, sys.stdout.isatty()
    yield _marked(hit.title, bold=bold) or "(no title)"
    yield f"    {one_line(row.url)}"
    more = f", {counted(hit.captures, 'capture')}" if hit.captures else ""
    noise = f"  {row.noise}" if row.noise else ""
    head = f"{row.captured_at:%Y-%m-%d %H:%M}  {row.status or '-'}  {hit.source_code}  snapshot {row.id}"
    yield f"    {head}{more}{noise}"
    for passage in hit.passages:
        yield f"    {_marked(passage, bold=bold)}"
    if hit.similar:
        noun, more = ("similar page", " --view pages") if view is ResultKind.PAGES else ("similar capture", "")
        yield f"    and {counted(hit.similar, noun)}: holdfast search --similar-to {row.id}{more}"
    yield ""


def _marked(passage: list[Piece], *, bold: bool) -> str:
    return "".join(typer.style(one_line(p.text), bold=True) if p.hit and bold else one_line(p.text) for p in passage)


search_index = command_group(
    "Add pending changes, rebuild the index, show its state. Example: holdfast search-index status"
)


@command(search_index, "drain", example="search-index drain", is_derived=True)
def drain_command(archive: Archive) -> Done:
    """Add captures indexed since; Ctrl-C stops, and the next drain continues."""
    done = drain(archive.database, archive.home, archive.clock, progress=counter(_PAGES))
    sentence = f"{counted(done.changes, 'change')} taken in, {counted(done.pages, 'page')}"
    return Done(picked(done, "changes pages finished"), sentence)


@command(search_index, example="search-index rebuild", is_derived=True)
def rebuild(archive: Archive) -> Done:
    """Rebuild the index from the database; the old one is used until the new one is complete."""
    pages = rebuild_index(archive.database, archive.home, archive.clock, progress=counter(_PAGES))
    done = drain(archive.database, archive.home, archive.clock)
    sentence = f"{counted(pages, 'page')} in the new index, {counted(done.changes, 'change')} taken in since"
    return Done({"pages": pages, "changes": done.changes}, sentence)


@command(search_index, example="search-index status")
def status(archive: Archive) -> dict[str, str | int]:
    """Show the numbers of indexed pages, documents and URLs, and of pending changes; or why the index is unusable."""
    with archive.database.read() as session:
        waiting = queries.waiting_count(session)
    try:
        view = ReaderCache(archive.home, archive.clock).view()
    except IndexBroken as exc:
        return {"state": "unusable", "detail": str(exc), "waiting": waiting}
    return {
        "state": "ready",
        "generation": view.folder.name,
        "sequence": view.manifest.sequence,
        "segments": len(view.manifest.segments),
        "pages": len(view.columns),
        "documents": len(view.columns.documents),
        "addresses": len(view.columns.addresses),
        "waiting": waiting,
    }
