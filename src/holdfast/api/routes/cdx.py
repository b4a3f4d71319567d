"""`/cdx`: the CDX server API, in the parameters and fields of the Wayback Machine and of pywb. Streamed, capped."""

from __future__ import annotations

from fastapi import APIRouter, Query, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import PlainTextResponse, Response

from holdfast.api.deps import ArchiveDep
from holdfast.api.errors import answers
from holdfast.api.heavy import Streamed, heavily
from holdfast.api.replaying import make_text, place_here, send_text, takes_gzip
from holdfast.api.roles import PUBLIC
from holdfast.replay.cdx.question import read_question
from holdfast.replay.cdx.render import TYPES
from holdfast.replay.cdx.server import CdxServer

router = APIRouter(tags=["replay"], dependencies=[PUBLIC])


@router.get("/cdx/search/cdx", include_in_schema=False, name="cdx_wayback")
@router.get("/cdx", response_class=PlainTextResponse, responses=answers(400, 503))
async def cdx(
    request: Request,
    archive: ArchiveDep,
    url: str = Query("", description="Required. `*` at the end asks for a prefix, `*.` in front for a domain."),
    matchType: str = Query("", description="exact, prefix, host, domain, range."),
    limit: str = Query("", description="Most lines; negative for the last ones. At most 150,000."),
    output: str = Query("", description="text, json (an array; lines if `fields` is used), ndjson, cdxj, link."),
    gzip: str = Query("", description="`false` sends plain text to a client that takes gzip."),
) -> Response:
    """Answer from the index of captures. docs/cdx.md lists all parameters, also those that are not named here."""
    question = read_question(request.query_params.multi_items())
    texts = CdxServer(archive.database, clock=archive.clock).answer(question, place_here(request, archive))
    packed = takes_gzip(request) and gzip.lower() not in ("false", "0", "no")
    media_type = TYPES[question.output]
    if question.is_quick:
        return await run_in_threadpool(send_text, texts, media_type, packed=packed)

    def work() -> Response | Streamed:
        return make_text(texts, media_type, packed=packed)

    return await heavily(request, work)
