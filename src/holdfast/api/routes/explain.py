"""`/api/explain`: everything that is known of one address, and why."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query, Request, Response

from holdfast.api.dependencies import ArchiveDep
from holdfast.api.errors import answers
from holdfast.api.heavy import heavily
from holdfast.api.late_routes import LateRouter
from holdfast.api.permissions import PrincipalDep
from holdfast.api.schemas.base import MAX_ID
from holdfast.api.schemas.lists import BadCursor, ListCursor
from holdfast.auth.roles import Permission
from holdfast.explanation.explaining import DEFAULT_LIMIT, MAX_LIMIT, ExplainWish, explain
from holdfast.explanation.model import Explanation

router = LateRouter(tags=["crawler"])


@router.get("/api/explain", responses=answers(403, 422, 503), response_model=Explanation)
async def explain_address(
    request: Request,
    archive: ArchiveDep,
    principal: PrincipalDep,
    url: Annotated[
        str, Query(min_length=1, description="Any address; without a scheme, https is meant.", examples=["example.org"])
    ],
    limit: Annotated[int, Query(ge=1, le=MAX_LIMIT, description="Attempts and captures of an answer.")] = DEFAULT_LIMIT,
    cursor: ListCursor = None,
) -> Response:
    """Say everything that is known of an address and why: spelling, scope, robots, domain, attempts, captures, next.

    Nothing is asked of the network. What no crawl would ask for has an answer, too; credentials are not repeated.
    Who does not operate the archive is told of the sources that they may see, and nothing of workers, files and people.
    """
    wish = ExplainWish(url=url, limit=limit, before=_place(cursor), is_reader=not principal.may(Permission.OPERATE))

    def work() -> Response:
        # The rules of all sources are applied: on a thread for heavy work.
        with archive.database.read() as session:
            found = explain(session, wish, archive.settings, now=archive.now(session))
        return Response(found.model_dump_json(by_alias=True), media_type="application/json")

    return await heavily(request, work)


def _place(cursor: str | None) -> int | None:
    if cursor is None:
        return None
    if not (cursor.isascii() and cursor.isdecimal() and len(cursor) < 20 and int(cursor) <= MAX_ID):
        raise BadCursor
    return int(cursor)
