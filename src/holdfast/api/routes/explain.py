"""`/api/explain`: everything that is known about one URL, and why."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query, Request, Response

from holdfast.api.dependencies import ArchiveDep
from holdfast.api.heavy import heavily
from holdfast.api.record_answers import record_response
from holdfast.api.routing import LazyRouter, PrincipalDep
from holdfast.api.schemas.base import MAX_ID
from holdfast.api.schemas.lists import BadCursor, ListCursor
from holdfast.auth.roles import Permission
from holdfast.frontier.explain import DEFAULT_LIMIT, MAX_LIMIT, ExplainRequest
from holdfast.frontier.explain_records import Explanation
from holdfast.wiring.explain import explain_url

router = LazyRouter(tags=["crawler"])


@router.get("/api/explain", Permission.EXPLAIN, response_model=Explanation)
async def explain_address(
    request: Request,
    archive: ArchiveDep,
    principal: PrincipalDep,
    url: Annotated[
        str, Query(min_length=1, description="Any address; https without a scheme.", examples=["example.org"])
    ],
    limit: Annotated[int, Query(ge=1, le=MAX_LIMIT, description="Attempts and captures of an answer.")] = DEFAULT_LIMIT,
    cursor: ListCursor = None,
) -> Response:
    """Return everything that is known about a URL and why: spelling, scope, robots, domain, attempts, captures, next.

    Sends no network requests. Invalid URLs get a response, too; credentials in them are not repeated. Callers
    who are not operators see only the sources that they may see, and nothing about workers, files and people.
    """
    is_reader = not principal.may(Permission.OPERATE)
    asked = ExplainRequest(url=url, limit=limit, before=_place(cursor), is_reader=is_reader)

    def work() -> Response:
        # Use a thread for heavy work: this applies the rules of all sources.
        with archive.database.read() as session:
            return record_response(explain_url(archive, session, asked))

    return await heavily(request, work)


def _place(cursor: str | None) -> int | None:
    if cursor is None:
        return None
    if not (cursor.isascii() and cursor.isdecimal() and len(cursor) < 20 and int(cursor) <= MAX_ID):
        raise BadCursor
    return int(cursor)
