"""Search over HTTP and, for operators, the parts of each score."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
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
from holdfast.replay.origins import ReplayOrigins, browse_url
from holdfast.search.answers import debug_object
from holdfast.search.linked_hosts import MAX_LISTED, linked_host_records
from holdfast.search.linked_queries import linked_hosts
from holdfast.search.near_duplicates import SimilarResults
from holdfast.search.operators import syntax_record
from holdfast.search.passages import MAX_PASSAGES
from holdfast.search.query import MAX_QUERY_CHARS
from holdfast.search.records import (
    LinkedHostList,
    SearchDebug,
    SearchResults,
    SearchSyntax,
    TermsOverTime,
)
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
from holdfast.search.terms_over_time import TermsRequest, TimeUnit, split_terms, terms_csv, terms_record

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


@router.get("/api/search", Permission.READ, errors=(404,), response_model=SearchResults)
def search(archive: ArchiveDep, searching: SearchDep, metrics: MetricsDep, asked: Asked) -> Response:
    """Return a page of results with totals, facets and a histogram; past the end, an empty page with the same
    total.
    """
    answer = searching.ask(asked)
    metrics.searched(answer.mode.value)
    return Response(results_json(answer, asked, archive.settings), media_type="application/json")


@router.get("/api/search/syntax", Permission.READ)
async def search_syntax() -> SearchSyntax:
    """Return the query language: every operator with its value, meaning and examples, and the general rules."""
    return syntax_record()


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
    return record_response(terms_record(answer))


@router.get("/api/admin/linked-hosts", Permission.WATCH)
def list_linked_hosts(
    session: SessionDep,
    limit: Annotated[int, Query(ge=1, le=MAX_LISTED, description="Hosts of a page.")] = 50,
    offset: Annotated[int, Query(ge=0, le=100_000, description="Hosts to leave out first.")] = 0,
) -> LinkedHostList:
    """Return hosts without captures that captures link to, those with the most linking sites first."""
    items = linked_host_records(linked_hosts(session, limit=limit, offset=offset))
    return LinkedHostList(items=items, limit=limit, offset=offset)


@router.get("/api/admin/search-debug", Permission.WATCH, errors=(404,), response_model=SearchDebug)
def search_debug(archive: ArchiveDep, searching: SearchDep, asked: Asked) -> Response:
    """Return the same results with the parts of every score."""
    request = replace(asked, explain=True)
    answer = searching.ask(request)
    dialect = archive.database.engine.dialect.name
    return record_response(debug_object(answer, request, partial(browse_url, archive.settings), dialect=dialect))
