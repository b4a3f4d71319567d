"""Search over HTTP, and what makes up a score, for operators of the archive."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Annotated, Literal

from fastapi import APIRouter, Depends, Query

from holdfast.api.dependencies import ArchiveDep, MetricsDep, NoiseShown, SearchDep, Since, Until
from holdfast.api.errors import answers
from holdfast.api.roles import ADMIN, PUBLIC
from holdfast.api.schemas.search import SearchDebug, SearchResults
from holdfast.replay.origins import browse_url
from holdfast.search.query import MAX_QUERY_CHARS
from holdfast.search.ranking import Ranking
from holdfast.search.search import MAX_PAGE_SIZE, ResultKind, SearchRequest, Sort, answer_object, debug_object

router = APIRouter(tags=["search"])

Words = Annotated[
    str | None,
    Query(
        min_length=1,
        max_length=MAX_QUERY_CHARS,
        examples=["flu vaccine", "title:flu AND NOT url:archive"],
        description="Words, an address, or AND, OR, NOT, parentheses, quotes, title:, snippet:, url:; newest without.",
    ),
]
SourceCode = Annotated[str | None, Query(pattern=r"^[a-z0-9-]{1,16}$", description="A source's code.", examples=["hc"])]
Page = Annotated[int, Query(ge=1, le=1_000_000_000, description="Which page of results.")]
PageSize = Annotated[int, Query(alias="pageSize", ge=1, le=MAX_PAGE_SIZE, description="Results of a page.")]
SortBy = Annotated[Sort | None, Query(description="relevance where there are words, newest where there are none.")]
View = Annotated[ResultKind, Query(description="Captures, or pages with the latest of their captures.")]
Non2xx = Annotated[bool, Query(alias="includeNon2xx", description="Redirects and errors too, after the rest.")]
Duplicates = Annotated[bool, Query(alias="includeDuplicates", description="Equal captures of one day too.")]
Noise = Annotated[NoiseShown, Query(description="`show`: captures that show something else than their page, too.")]
Version = Annotated[Ranking, Query(description="v3 goes by the query's breadth; v1 and v2 are kept for comparison.")]
Language = Annotated[str | None, Query(max_length=3, pattern=r"^[a-z]{2,3}$", description="Two or three letters.")]
Kinds = Annotated[Literal["html", "text", "pdf", "other"] | None, Query(alias="type")]
StatusClass = Annotated[Literal["2xx", "3xx", "4xx", "5xx", "unknown"] | None, Query()]
Host = Annotated[str | None, Query(min_length=1, max_length=260)]


async def search_request(
    q: Words = None,
    source: SourceCode = None,
    sort: SortBy = None,
    view: View = ResultKind.SNAPSHOTS,
    include_non_2xx: Non2xx = False,
    include_duplicates: Duplicates = False,
    noise: Noise = NoiseShown.HIDE,
    from_: Since = None,
    to: Until = None,
    page: Page = 1,
    page_size: PageSize = 20,
    ranking: Version = Ranking.V3,
) -> SearchRequest:
    """Return what the parameters ask for that a search and its explanation share."""
    return SearchRequest(
        q=q,
        source=source,
        sort=sort,
        view=view,
        non_2xx=include_non_2xx,
        duplicates=include_duplicates,
        noise=noise is NoiseShown.SHOW,
        start=from_,
        end=to,
        page=page,
        page_size=page_size,
        ranking=ranking,
    )


Asked = Annotated[SearchRequest, Depends(search_request)]


@router.get("/api/search", dependencies=[PUBLIC], responses=answers(404, 422, 429, 503))
def search(
    archive: ArchiveDep,
    searching: SearchDep,
    metrics: MetricsDep,
    asked: Asked,
    language: Language = None,
    type_: Kinds = None,
    status: StatusClass = None,
    host: Host = None,
) -> SearchResults:
    """Return a page of results with totals, facets and a histogram; past the end an empty one with the same total."""
    request = replace(asked, language=language, type=type_, status=status, host=host)
    answer = searching.ask(request)
    metrics.searched(answer.mode.value)
    return SearchResults.model_validate(answer_object(answer, request, partial(browse_url, archive.settings)))


@router.get("/api/admin/search-debug", dependencies=[ADMIN], responses=answers(403, 404, 422, 503))
def search_debug(archive: ArchiveDep, searching: SearchDep, asked: Asked) -> SearchDebug:
    """Return the same results with the parts of every score."""
    request = replace(asked, explain=True)
    answer = searching.ask(request)
    dialect = archive.database.engine.dialect.name
    # Checked against the schema on the way out: the command line prints the same object without one.
    return SearchDebug.model_validate(
        debug_object(answer, request, partial(browse_url, archive.settings), dialect=dialect)
    )
