"""`/web/…`: captures, TimeGates, TimeMaps and calendars. Captures themselves are shown on the replay host only."""

from __future__ import annotations

import re
from typing import Annotated

from fastapi import APIRouter, Depends, Request
from fastapi.responses import HTMLResponse, Response

from holdfast.api.deps import ArchiveDep
from holdfast.api.replaying import asking_of, place_here, refuse, replay_of, respond, send_text, target_behind
from holdfast.api.roles import PUBLIC
from holdfast.errors import Invalid, NotFound
from holdfast.replay import browse, memento
from holdfast.replay.address import Listing, Modifier, Wanted, archived_url, read_path, replay_path
from holdfast.replay.answer import own_page, redirect
from holdfast.replay.moments import parse_http_date, timestamp
from holdfast.replay.place import Place
from holdfast.replay.policy import READABLE
from holdfast.replay.site_pass import site_passes
from holdfast.wiring.archive import Archive

router = APIRouter(tags=["replay"], dependencies=[PUBLIC])

_HEADER_NAMES = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~, -]{1,4096}")


async def sent_body(request: Request) -> bytes:
    """Return the body of a request, which is in memory already."""
    return await request.body()


SentBody = Annotated[bytes, Depends(sent_body)]


@router.options("/web/{target:path}", include_in_schema=False, name="web_options")
def web_options(request: Request) -> Response:
    """Let a script of an archived page send any request: what it may read of the answer is decided there."""
    names = request.headers.get("access-control-request-headers", "")
    headers = {"Allow": ", ".join(_METHODS), "Vary": "access-control-request-headers"}
    if "access-control-request-method" in request.headers:
        headers["Access-Control-Allow-Origin"] = "*"
        headers["Access-Control-Allow-Methods"] = ", ".join(_METHODS)
        headers["Access-Control-Max-Age"] = "600"
        if _HEADER_NAMES.fullmatch(names):
            headers["Access-Control-Allow-Headers"] = names
    return Response(status_code=204, headers=headers)


_SENDING = ["POST", "PUT", "PATCH", "DELETE"]
_METHODS = ["GET", "HEAD", *_SENDING, "OPTIONS"]


@router.api_route("/web/{target:path}", methods=_SENDING, include_in_schema=False, name="web_sent")
@router.head("/web/{target:path}", include_in_schema=False, name="web_head")
@router.get("/web/{target:path}", response_class=HTMLResponse)
def web(request: Request, archive: ArchiveDep, body: SentBody) -> Response:
    """Show a capture (`/web/<digits><modifier>/<address>`) or choose one (`/web/<address>` with Accept-Datetime).

    `/web/timemap/{link,json,cdxj}/<address>` lists all captures, `/web/*/<address>` is a calendar, `/web/*/<address>*`
    lists the addresses that begin alike.
    """
    place = place_here(request, archive)
    target = target_behind(request, "/web/")
    wanted: Wanted | Listing | None = None
    try:
        if target.startswith("timemap/"):
            return _time_map(archive, place, target.removeprefix("timemap/"))
        wanted = read_path(target)
        if isinstance(wanted, Listing):
            with archive.database.read() as session:
                return respond(own_page(browse.listing(session, wanted, place)))
        if not wanted.digits:
            return _time_gate(request, archive, place, wanted.url)
        return _capture(request, archive, wanted, body)
    except NotFound as exc:
        return _readable(_missing(exc, place, target), wanted, archive)
    except Invalid as exc:
        return refuse(400, "This address cannot be used", str(exc))


def _capture(request: Request, archive: Archive, wanted: Wanted, body: bytes) -> Response:
    asking = asking_of(request, archive, body)
    if not asking.place.is_replay:
        return respond(redirect(307, asking.place.memento(wanted.digits, wanted.modifier, wanted.url), []))
    if wanted.site_pass and not site_passes(archive.home).admits(wanted.site_pass, wanted.url):
        return refuse(403, "Not for this page", "this pass is not that of the address's site; load the page again")
    return respond(replay_of(archive).capture(wanted, asking))


def _readable(response: Response, wanted: Wanted | Listing | None, archive: Archive) -> Response:
    """Return an answer that a script of the same site may read: what is missing has a status, too."""
    if isinstance(wanted, Wanted) and site_passes(archive.home).admits(wanted.site_pass, wanted.url):
        response.headers[READABLE[0]] = READABLE[1]
    return response


def _time_gate(request: Request, archive: Archive, place: Place, url: str) -> Response:
    accepted = request.headers.get("accept-datetime")
    moment = parse_http_date(accepted) if accepted is not None else None
    with archive.database.read() as session:
        chosen, ends = browse.gate(session, url, moment)
    target = place.memento(timestamp(chosen.captured_at), "", chosen.url)
    return respond(redirect(302, target, memento.gate_headers(url, place, ends)))


def _time_map(archive: Archive, place: Place, path: str) -> Response:
    form, page, text = browse.read_map_path(path)
    with archive.database.read() as session:
        found = browse.time_map(session, archived_url(text), form, page)
    return send_text(memento.render(found, place), memento.TYPES[form])


def _missing(exc: NotFound, place: Place, target: str) -> Response:
    """Return the page for what is not here; inside a page only its status is seen."""
    try:
        wanted = read_path(target)
    except Invalid:
        return refuse(404, "Not in this archive", str(exc))
    if isinstance(wanted, Wanted) and not wanted.modifier.is_page and wanted.modifier is not Modifier.RAW:
        return refuse(404, "Not in this archive", str(exc))
    calendar = replay_path("*", "", wanted.url)
    return refuse(
        404, "Not in this archive", str(exc), ("All captures of this address", calendar),
        ("Addresses that begin like it", f"{calendar}*"),
    )  # fmt: skip
