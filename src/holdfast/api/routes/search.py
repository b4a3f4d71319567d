"""Search over HTTP and, for operators, the parts of each score."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, datetime
from enum import StrEnum
from functools import partial
from typing import Annotated, Literal

from fastapi import Depends, Query, Request, Response
from starlette.responses import StreamingResponse

from holdfast import cancellation
from holdfast.api.dependencies import (
    ArchiveDep,
    MetricsDep,
    NoiseShown,
    SearchDep,
    SessionDep,
    Since,
    Until,
    demand_exports,
)
from holdfast.api.heavy import Streamed, export, gathered
from holdfast.api.plain_searches import results_json
from holdfast.api.record_answers import record_response
from holdfast.api.routes.replay import origins_here
from holdfast.api.routes.snapshots import stream_selection
from holdfast.api.routing import LazyRouter
from holdfast.api.schemas.base import RowId
from holdfast.auth.roles import Permission
from holdfast.clock import digits14
from holdfast.exports.tables import Format, write_rows
from holdfast.records import Operator, Public, record
from holdfast.replay.origins import ReplayOrigins, browse_url
from holdfast.search.answers import debug_object
from holdfast.search.linked_hosts import MAX_LISTED, host_name
from holdfast.search.linked_queries import linked_hosts
from holdfast.search.near_duplicates import SimilarResults
from holdfast.search.operators import as_object
from holdfast.search.passages import MAX_PASSAGES
from holdfast.search.query import MAX_QUERY_CHARS
from holdfast.search.search import (
    MAX_HOST_CHARS,
    MAX_PAGE_SIZE,
    MAX_SNAPSHOT_ID,
    Hit,
    ResultKind,
    SearchRequest,
    SearchService,
    Sort,
)
from holdfast.search.terms_over_time import TermsRequest, TimeUnit, split_terms, terms_csv, terms_object

router = LazyRouter(tags=["search"])

SourceCode = Annotated[str | None, Query(pattern=r"^[a-z0-9-]{1,16}$", description="A source's code.", examples=["hc"])]


async def search_request(
    q: Annotated[
        str | None,
        Query(
            min_length=1,
            max_length=MAX_QUERY_CHARS,
            examples=["flu vaccine site:example.org after:2023", "title:flu AND NOT url:archive"],
            description="Words, an address, or AND, OR, NOT, parentheses, quotes, title:, snippet:, url:; newest "
            "without. Operators beside them (site:, before:, and more) are listed by /api/search/syntax.",
        ),
    ] = None,
    source: SourceCode = None,
    sort: Annotated[
        Sort | None, Query(description="relevance where there are words, newest where there are none.")
    ] = None,
    view: Annotated[
        ResultKind, Query(description="Captures, or pages with the latest of their captures.")
    ] = ResultKind.SNAPSHOTS,
    like: Annotated[
        RowId | None,
        Query(description="Captures of other pages that are like this one in their words, instead of words."),
    ] = None,
    non_2xx: Annotated[
        bool, Query(alias="includeNon2xx", description="Redirects and errors too, after the rest.")
    ] = False,
    duplicates: Annotated[bool, Query(alias="includeDuplicates", description="Equal captures of one day too.")] = False,
    noise: Annotated[
        NoiseShown, Query(description="`show`: captures that show something else than their page, too.")
    ] = NoiseShown.HIDE,
    start: Since = None,
    end: Until = None,
    page: Annotated[int, Query(ge=1, le=1_000_000_000, description="Which page of results.")] = 1,
    page_size: Annotated[int, Query(alias="pageSize", ge=1, le=MAX_PAGE_SIZE, description="Results of a page.")] = 20,
    ranking: Annotated[
        Literal["v1", "v2", "v3", "v4"],
        Query(description="Ignored: there is one ranking, v4; older names are accepted."),
    ] = "v4",
    similar: Annotated[
        SimilarResults | None,
        Query(description="Leave out near-duplicates, or show them. Default: left out of pages by relevance."),
    ] = None,
    similar_to: Annotated[
        int | None,
        Query(
            alias="similarTo",
            ge=1,
            le=MAX_SNAPSHOT_ID,
            description="Only near-duplicates of the capture with this id.",
        ),
    ] = None,
    language: Annotated[
        str | None,
        Query(max_length=3, pattern=r"^[a-z]{2,3}$", description="Two or three letters; und where it is not known."),
    ] = None,
    type: Literal["html", "text", "pdf", "other"] | None = None,
    status: Literal["1xx", "2xx", "3xx", "4xx", "5xx", "unknown"] | None = None,
    host: Annotated[str | None, Query(min_length=1, max_length=MAX_HOST_CHARS)] = None,
    passages: Annotated[
        int, Query(ge=1, le=MAX_PASSAGES, description="Passages of each result, the best one first.")
    ] = 1,
) -> SearchRequest:
    """Return the parsed parameters, named as the fields of a request; shared by search and its explanation."""
    given = {name: value for name, value in locals().items() if name != "ranking"}
    return SearchRequest(**given | {"noise": noise is NoiseShown.SHOW})


Asked = Annotated[SearchRequest, Depends(search_request)]


@record
class TextPiece:
    """Part of a passage; joined, the pieces are the passage."""

    text: Public[str]
    """Plain text, never markup."""
    hit: Public[bool]
    """Whether this is a word that was asked for."""


@record
class Highlights:
    """The title and passages, with the matching words."""

    title: Public[list[TextPiece]]
    text: Public[list[list[TextPiece]]]
    """As many passages as were asked for, the best one first, each of at most 240 characters. An ellipsis stands where
    something is left out, a raised dot between two lines. The start of the page if its text contains no word.
    """


@record
class SearchResult:
    """One result: a capture, or a page with its latest matching capture."""

    id: Public[int]
    title: Public[str | None]
    source_code: Public[str]
    source_name: Public[str]
    language: Public[str | None]
    """BCP-47, where it is known."""
    capture_date: Public[date]
    capture_timestamp: Public[datetime]
    job_id: Public[int]
    """The execution that captured it."""
    original_url: Public[str]
    """As captured; of a page, its address without the query."""
    snippet: Public[str | None]
    """The start of the page's text; plain text."""
    highlights: Public[Highlights]
    mime_type: Public[str | None]
    status_code: Public[int | None]
    raw_snapshot_url: Public[str]
    browse_url: Public[str | None]
    capture_backend: Public[str]
    capture_fidelity: Public[str]
    page_snapshots_count: Public[int | None]
    """Captures of the page; only with view=pages."""
    similar_count: Public[int | None]
    """Its near-duplicates among the first 400 results, left out of the list; null if they are shown."""
    similar_url: Public[str | None]
    """Where these are listed."""
    noise: Public[str | None]
    """What it shows instead of its page; null but with noise=show."""


@record
class FacetCount:
    """The number of results with one value."""

    value: Public[str]
    """What the filter of the same name takes."""
    label: Public[str]
    count: Public[int]


@record
class Facets:
    """Counts of results by value; the 20 most frequent values of each facet, and all years and sources.

    Page type, author and year of publication are counted if a page states them.
    """

    source: Public[list[FacetCount]]
    language: Public[list[FacetCount]]
    year: Public[list[FacetCount]]
    type: Public[list[FacetCount]]
    status: Public[list[FacetCount]]
    host: Public[list[FacetCount]]
    page_type: Public[list[FacetCount]]
    author: Public[list[FacetCount]]
    published: Public[list[FacetCount]]
    """By year of publication."""


@record
class Bucket:
    """Results of one day, month or year."""

    start: Public[date]
    count: Public[int]


@record
class Histogram:
    """Results over time; units without results are left out."""

    unit: Public[str]
    """day, month or year, by how long the results span."""
    buckets: Public[list[Bucket]]


@record
class SearchResults:
    """A page of results, and counts over all of them."""

    results: Public[list[SearchResult]]
    total: Public[int]
    """Results that can be paged through; near-duplicates that are left out do not count."""
    total_is_exact: Public[bool]
    """False if more match than is read: there are at least `total` results."""
    collapsed: Public[int]
    """Near-duplicates of a better result that are left out of the list."""
    page: Public[int]
    page_size: Public[int]
    mode: Public[str]
    """How they were found: newest, relevance_fts, relevance_fallback, relevance_fuzzy, relevance_some_words (none has
    all of them), boolean, url, similar, pages_fastpath."""
    did_you_mean: Public[str | None]
    """The query that was answered instead, because the one asked found nothing."""
    facets: Public[Facets]
    histogram: Public[Histogram]
    took_ms: Public[float]


@router.get("/api/search", Permission.READ, errors=(404,), response_model=SearchResults)
def search(archive: ArchiveDep, searching: SearchDep, metrics: MetricsDep, asked: Asked) -> Response:
    """Return a page of results with totals, facets and a histogram; past the end, an empty page with the same
    total.
    """
    answer = searching.ask(asked)
    metrics.searched(answer.mode.value)
    return Response(results_json(answer, asked, archive.settings), media_type="application/json")


@record
class SyntaxOperator:
    """One operator of the query language."""

    name: Public[str]
    value: Public[str]
    """What follows the colon."""
    meaning: Public[str]
    examples: Public[list[str]]


@record
class SyntaxExample:
    """An example of a query without operators."""

    example: Public[str]
    meaning: Public[str]


@record
class SearchSyntax:
    """The query language, as the command line and the documentation describe it."""

    operators: Public[list[SyntaxOperator]]
    words: Public[list[SyntaxExample]]
    rules: Public[list[str]]


@router.get("/api/search/syntax", Permission.READ, response_model=SearchSyntax)
async def search_syntax() -> Response:
    """Return the query language: every operator with its value, meaning and examples, and the general rules."""
    return record_response(as_object())


class ResultForm(StrEnum):
    """The file format of exported search results."""

    CSV = "csv"
    JSONL = "jsonl"
    WACZ = "wacz"


# Most results of one file: as many as ranking examines closely; /api/exports exports whole sources.
_TAKEN = 1000
_COLUMNS = (
    *("snapshot_id", "title", "url", "captured_at", "source", "language", "status", "media_type", "captures"),
    *("snippet", "permalink"),
)


@router.get("/api/search/export", Permission.READ, errors=(404, 409), response_class=StreamingResponse)
async def export_results(
    request: Request,
    archive: ArchiveDep,
    searching: SearchDep,
    asked: Asked,
    form: Annotated[
        ResultForm, Query(alias="format", description="csv, jsonl, or wacz: their records.")
    ] = ResultForm.CSV,
) -> Response:
    """Return the first thousand results of a search as a file, in order; page and page size are ignored."""
    origins = origins_here(request, archive)

    def work() -> Streamed:
        demand_exports(archive)
        hits = _first(searching, asked)
        if form is ResultForm.WACZ:
            named = f"Results for {asked.q}" if asked.q else "Results of a search"
            ids = [hit.row.id for hit in hits]
            return stream_selection(archive, ids, title=named[:500], name="holdfast-results")
        written = Format(form.value)
        headers = {
            "Content-Disposition": f'attachment; filename="holdfast-results.{written.ending}"',
            "Cache-Control": "no-store",
        }
        lines = write_rows((_row(hit, origins) for hit in hits), _COLUMNS, written)
        return Streamed(gathered(lines, size=64 * 1024), written.media_type, headers)

    return await export(request, work)


def _first(searching: SearchService, asked: SearchRequest) -> list[Hit]:
    found: list[Hit] = []
    for page in range(1, _TAKEN // MAX_PAGE_SIZE + 1):
        cancellation.check()
        answer = searching.ask(replace(asked, page=page, page_size=MAX_PAGE_SIZE))
        found += answer.hits
        if page * MAX_PAGE_SIZE >= answer.total:
            break
    return found


def _row(hit: Hit, origins: ReplayOrigins) -> tuple[str | int | datetime | None, ...]:
    row = hit.row
    # Use the URL of citations: the application's host knows the user, and redirects members.
    host = origins._replace(origin=origins.here) if row.for_members else origins
    permalink = host.memento(digits14(row.captured_at), "", row.url)
    return (
        *(row.id, row.title, row.url, row.captured_at, hit.source_code, row.language, row.status, row.media_type),
        *(hit.captures, row.snippet, permalink),
    )


@record
class TermVolume:
    """The number of all captures in one unit of time."""

    start: Public[str]
    """A year, or a month."""
    captures: Public[int]


@record
class TermCount(TermVolume):
    """Captures with a term in one unit of time."""

    captures: Public[int]
    """Captures that have it."""
    new_documents: Public[int]
    """Different bodies that have it and were first captured then."""
    share: Public[float]
    """Captures that have it over all captures of that time, 0 to 1."""


@record
class TermOverTime:
    """One term over time."""

    term: Public[str]
    """As it was typed, without blanks around it."""
    captures: Public[int]
    new_documents: Public[int]
    is_exact: Public[bool]
    """False if more documents have it than are read: the counts are too low then."""
    counts: Public[list[TermCount]]


@record
class TermsOverTime:
    """Terms over time, every unit from the first capture to the last."""

    unit: Public[str]
    volume: Public[list[TermVolume]]
    terms: Public[list[TermOverTime]]


@router.get("/api/terms", Permission.READ, errors=(404,), response_model=TermsOverTime)
def terms(
    searching: SearchDep,
    q: Annotated[
        str,
        Query(min_length=1, max_length=MAX_QUERY_CHARS, description="Words or phrases, parted by commas; 8 at most."),
    ],
    unit: Annotated[TimeUnit, Query(description="The field to count by.")] = TimeUnit.YEAR,
    source: SourceCode = None,
    where: Annotated[
        str | None,
        Query(
            max_length=MAX_QUERY_CHARS,
            description="Search operators that limit which captures are counted.",
            examples=["site:example.org lang:fr"],
        ),
    ] = None,
    from_: Since = None,
    to: Until = None,
    form: Annotated[Literal["json", "csv"], Query(alias="format")] = "json",
) -> Response:
    """Return, per year or month, how many captures have each term, and their share of all captures of that time."""
    request = TermsRequest(terms=split_terms(q), unit=unit, source=source, operators=where, start=from_, end=to)
    answer = searching.terms(request)
    if form == "csv":
        return Response(terms_csv(answer), media_type="text/csv; charset=utf-8")
    return record_response(terms_object(answer))


@record
class LinkedHostRecord:
    """A host without captures that captures link to."""

    host: Operator[str]
    """Without `www.`."""
    links: Operator[int]
    """Links to it, each page and body once."""
    linking_sites: Operator[int]
    """Registrable domains that link to it."""


@record
class LinkedHostList:
    """Hosts that could become sources, those with the most linking sites first."""

    items: Operator[list[LinkedHostRecord]]
    limit: Operator[int]
    offset: Operator[int]


@router.get("/api/admin/linked-hosts", Permission.WATCH)
def list_linked_hosts(
    session: SessionDep,
    limit: Annotated[int, Query(ge=1, le=MAX_LISTED, description="Hosts of a page.")] = 50,
    offset: Annotated[int, Query(ge=0, le=100_000, description="Hosts to leave out first.")] = 0,
) -> LinkedHostList:
    """Return hosts without captures that captures link to, those with the most linking sites first."""
    found = linked_hosts(session, limit=limit, offset=offset).items()
    items = [LinkedHostRecord(host=host_name(key), links=one.links, linking_sites=one.sites) for key, one in found]
    return LinkedHostList(items=items, limit=limit, offset=offset)


@record
class ExplainedResult:
    """One result and the parts of its score."""

    id: Operator[int]
    original_url: Operator[str]
    title: Operator[str | None]
    status_code: Operator[int | None]
    rank_text: Operator[float]
    """BM25 over the best BM25 found: 0 to 1."""
    title_boost: Operator[float]
    archived_penalty: Operator[float]
    query_penalty: Operator[float]
    tracking_penalty: Operator[float]
    depth_penalty: Operator[float]
    authority_boost: Operator[float]
    hubness_boost: Operator[float]
    pagerank_boost: Operator[float]
    recency_boost: Operator[float]
    total_score: Operator[float]
    group_score: Operator[float]
    """Of the group's best capture; for view=pages."""
    best_snapshot_id: Operator[int | None]


@record
class SearchDebug:
    """A page of results, explained."""

    dialect: Operator[str]
    mode: Operator[str]
    ranking_version: Operator[str]
    query_mode: Operator[str]
    """broad, mixed or specific."""
    total: Operator[int]
    total_is_exact: Operator[bool]
    collapsed: Operator[int]
    """Near-duplicates that are left out, as in a search."""
    page: Operator[int]
    page_size: Operator[int]
    did_you_mean: Operator[str | None]
    took_ms: Operator[float]
    results: Operator[list[ExplainedResult]]


@router.get("/api/admin/search-debug", Permission.WATCH, errors=(404,), response_model=SearchDebug)
def search_debug(archive: ArchiveDep, searching: SearchDep, asked: Asked) -> Response:
    """Return the same results with the parts of every score."""
    request = replace(asked, explain=True)
    answer = searching.ask(request)
    dialect = archive.database.engine.dialect.name
    return record_response(debug_object(answer, request, partial(browse_url, archive.settings), dialect=dialect))
