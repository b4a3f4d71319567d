"""`/web/…`: captures, TimeGates, TimeMaps and calendars. Captures themselves are shown on the replay host only."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import Depends, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.responses import HTMLResponse, PlainTextResponse, Response, StreamingResponse
from starlette.types import Scope
from url import URL, URLError

from holdfast.api.dependencies import ArchiveDep
from holdfast.api.heavy import ReplayTurns, Streamed, gathered, heavily
from holdfast.api.middleware.rate_limits import address_of
from holdfast.api.middleware.request_ids import CAPABILITY, FOR_MEMBERS
from holdfast.api.routing import LazyRouter
from holdfast.auth.roles import Permission
from holdfast.config import Settings
from holdfast.errors import Invalid, NotFound, without_folders
from holdfast.gzip_streams import gzipped
from holdfast.index.capture import MAX_DATA_BYTES, request_data
from holdfast.replay import memento, pages
from holdfast.replay.address import (
    AddressListing,
    Modifier,
    WantedAddress,
    archived_url,
    parse_http_date,
    read_path,
    replay_path,
    safe,
)
from holdfast.replay.capabilities import split_root
from holdfast.replay.cdx.question import Output, read_question
from holdfast.replay.cdx.server import TYPES, CdxServer
from holdfast.replay.headers import READABLE
from holdfast.replay.links import escape
from holdfast.replay.origins import ReplayOrigins, origins_of, site_passes
from holdfast.replay.pages import html_page, refusal
from holdfast.replay.serving import Replay, ReplayAnswer, ReplayRequest, listing_origins, own_page, redirect
from holdfast.wiring.archive import Archive
from holdfast.withdrawals.viewers import viewer
from holdfast.withdrawals.visibility import members_among

REWRITE_S = 3.0
"""Timeout for rewriting a page; a slower page is sent unmodified, with scripts disabled."""

_PIECE_CHARS = 16_384
_PATH_SAFE = "!$%&'()*+,-./:;=@_~"


def replay_of(request: Request, archive: Archive) -> Replay:
    settings = archive.settings.replay
    return Replay(
        database=archive.database,
        home=archive.home,
        clock=archive.clock,
        passes=site_passes(archive.home),
        keys=request.app.state.replay_keys,
        rewritten=request.app.state.rewritten,
        scripts=settings.scripts,
        rewrite_s=REWRITE_S,
    )


def origins_here(request: Request, archive: Archive) -> ReplayOrigins:
    settings = archive.settings
    host = request.headers.get("host", "")
    found = origins_of(request.url.scheme, host, replay_origin=settings.replay.origin, site_url=settings.api.site_url)
    return found._replace(root=request.scope.get(CAPABILITY, ""))


def replay_request(request: Request, archive: Archive, body: bytes = b"") -> ReplayRequest:
    headers = request.headers
    return ReplayRequest(
        origins=origins_here(request, archive),
        accepts_gzip=takes_gzip(request),
        if_none_match=headers.get("if-none-match", ""),
        byte_range=headers.get("range", ""),
        if_range=headers.get("if-range", ""),
        sent=sent_with(request, body),
        mode=headers.get("sec-fetch-mode", ""),
        destination=headers.get("sec-fetch-dest", ""),
        is_led=headers.get("sec-fetch-site", "none") != "none",
    )


def sent_with(request: Request, body: bytes) -> str:
    """Return the body of a request other than GET and HEAD, as the index spells it in a key."""
    if request.method in ("GET", "HEAD"):
        return ""
    head = f"{request.method} / HTTP/1.1\r\nContent-Type: {request.headers.get('content-type', '')}\r\n\r\n"
    return request_data(request.method, head.encode("latin-1", "replace"), body[:MAX_DATA_BYTES])


def takes_gzip(request: Request) -> bool:
    """Return whether the client accepts gzip (RFC 9110, section 12.5.3)."""
    for part in request.headers.get("accept-encoding", "").lower().split(","):
        coding, _, weight = part.partition(";")
        if coding.strip() in ("gzip", "*"):
            return weight.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False


def target_behind(request: Request, prefix: str) -> str:
    """Return the part of the request target after a prefix, undecoded and with its query."""
    # Do not decode it: `%2F` and `%3F` in an archived address differ from `/` and `?`.
    raw = request.scope.get("raw_path") or quote(request.scope["path"], safe=_PATH_SAFE).encode()
    path = raw.decode("latin-1").partition("?")[0].removeprefix(prefix)
    query = request.scope["query_string"].decode("latin-1")
    return f"{path}?{query}" if query else path


def respond(answer: ReplayAnswer) -> Response:
    """Convert an answer to a response; header names may repeat, and only the length is added."""
    headers = [(name.lower().encode("latin-1"), value.encode("latin-1", "replace")) for name, value in answer.headers]
    if isinstance(answer.body, bytes):
        response = Response(answer.body, answer.status)
        if answer.status not in (204, 205, 304):
            headers.append((b"content-length", str(len(answer.body)).encode()))
    else:
        response = StreamingResponse(answer.body, answer.status)
    # Set the whole list: a dict would lose repeated headers.
    response.raw_headers = headers
    return response


def refuse(status: int, title: str, message: str, *links: tuple[str, str]) -> Response:
    """Return a page that says why nothing can be shown."""
    return respond(own_page(refusal(title, message, *links), status))


def sent(made: Response | Streamed) -> Response:
    if isinstance(made, Response):
        return made
    return StreamingResponse(made.pieces, media_type=made.media_type, headers=dict(made.headers))


def make_text(texts: Iterable[str], media_type: str, *, packed: bool = False) -> Response | Streamed:
    """Return a text response, streamed unless it is small; errors before the first chunk are raised."""
    pieces: Iterator[bytes] = (text.encode("utf-8", "replace") for text in gathered(texts, size=_PIECE_CHARS))
    if packed:
        # Use the fastest level: a client waits meanwhile, and the lines are repetitive.
        pieces = gathered(gzipped(pieces, level=1), size=_PIECE_CHARS)
    headers = {"Vary": "accept-encoding", "Cache-Control": "no-cache"}
    if packed:
        headers["Content-Encoding"] = "gzip"
    first = next(pieces, b"")
    second = next(pieces, None)
    # A thread that forwards one piece would cost more than the response.
    if second is None:
        return Response(first, media_type=media_type, headers=headers)
    return Streamed(chain((first, second), pieces), media_type, headers)


router = LazyRouter(any_query=True, tags=["replay"])

_HEADER_NAMES = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~, -]{1,4096}")


async def sent_body(request: Request) -> bytes:
    """Return the body of a request, which is already in memory."""
    return await request.body()


SentBody = Annotated[bytes, Depends(sent_body)]


@router.options("/web/{target:path}", Permission.READ, include_in_schema=False, name="web_options")
def web_options(request: Request) -> Response:
    """Let scripts of an archived page send any request; the actual request decides what they may read."""
    names = request.headers.get("access-control-request-headers", "")
    headers = {"Allow": ", ".join(_METHODS), "Vary": "access-control-request-headers"}
    if "access-control-request-method" in request.headers:
        headers["Access-Control-Allow-Origin"] = "*"
        headers["Access-Control-Allow-Methods"] = ", ".join(_METHODS)
        headers["Access-Control-Max-Age"] = "600"
        # Only a list of names is copied into our own header.
        if _HEADER_NAMES.fullmatch(names):
            headers["Access-Control-Allow-Headers"] = names
    return Response(status_code=204, headers=headers)


_SENDING = ["POST", "PUT", "PATCH", "DELETE"]
_METHODS = ["GET", "HEAD", *_SENDING, "OPTIONS"]


@router.route(_SENDING, "/web/{target:path}", Permission.READ, include_in_schema=False, name="web_sent")
@router.get("/web/{target:path}", Permission.READ, has_head=True, response_class=HTMLResponse)
async def web(request: Request, archive: ArchiveDep, body: SentBody) -> Response:
    """Show a capture (`/web/<digits><modifier>/<URL>`) or choose one (`/web/<URL>` with Accept-Datetime).

    `/web/timemap/{link,json,cdxj}/<URL>` lists all captures, `/web/*/<URL>` is a calendar, `/web/*/<URL>*`
    lists the URLs with this prefix.
    """
    target = target_behind(request, "/web/")
    return await _in_turn(request, lambda: _web(request, archive, target, body), is_costly=not _CHEAP.match(target))


# Captures that are never rewritten: images, scripts, original bytes. Captures with a wrong type are rewritten anyway.
_CHEAP = re.compile(r"[0-9]{1,14}(?:im_|js_|id_)/")


async def _in_turn(request: Request, work: Callable[[], Response], *, is_costly: bool) -> Response:
    """Return the result of `work`, run on a thread for replay; costly work of one client address runs one at a
    time.
    """
    turns: ReplayTurns = request.app.state.replay_turns
    return await turns.run(address_of(request.scope) if is_costly else None, work)


def _web(request: Request, archive: Archive, target: str, body: bytes) -> Response:
    origins = origins_here(request, archive)
    wanted: WantedAddress | AddressListing | None = None
    try:
        if target.startswith("timemap/"):
            return _time_map(archive, origins, target.removeprefix("timemap/"))
        wanted = read_path(target)
        if isinstance(wanted, AddressListing):
            if (shown := _page_through_time(request, origins, wanted)) is not None:
                return shown
            with archive.database.read() as session:
                return respond(own_page(pages.listing(session, wanted, listing_origins(session, origins))))
        if not wanted.digits:
            return _time_gate(request, archive, origins, wanted.url)
        return _capture(request, archive, wanted, body)
    except NotFound as exc:
        return _readable(_missing(without_folders(str(exc)), origins, target), wanted, archive)
    except Invalid as exc:
        return refuse(400, "This address cannot be used", without_folders(str(exc)))


def _page_through_time(request: Request, origins: ReplayOrigins, wanted: AddressListing) -> Response | None:
    """Redirect a reader from a calendar to the equivalent page of the browser application; None for programs.

    Also None if that application is not built, or its URL is unknown.
    """
    is_read = request.headers.get("sec-fetch-mode") == "navigate"
    if wanted.is_prefix or not is_read or origins.app is None or not getattr(request.app.state, "has_pages", False):
        return None
    year = f"&year={wanted.digits[:4]}" if len(wanted.digits) >= 4 else ""
    return respond(redirect(307, f"{origins.app}/page?url={quote(wanted.url, safe='')}{year}", []))


def _capture(request: Request, archive: Archive, wanted: WantedAddress, body: bytes) -> Response:
    asked = replay_request(request, archive, body)
    # Only the replay host shows archived pages; the application's host has cookies and the API.
    if not asked.origins.is_replay:
        return respond(redirect(307, replay_of(request, archive).memento(wanted, asked), []))
    if wanted.site_pass and not site_passes(archive.home).admits(wanted.site_pass, wanted.url):
        return refuse(403, "Not for this page", "this pass is not that of the address's site; load the page again")
    return respond(replay_of(request, archive).capture(wanted, asked))


def _readable(response: Response, wanted: WantedAddress | AddressListing | None, archive: Archive) -> Response:
    """Make a response readable to scripts of the same site, which need the status even of missing captures."""
    if isinstance(wanted, WantedAddress) and site_passes(archive.home).admits(wanted.site_pass, wanted.url):
        # Otherwise a script sees a network error where its site responded with 404.
        response.headers[READABLE[0]] = READABLE[1]
    return response


def _time_gate(request: Request, archive: Archive, origins: ReplayOrigins, url: str) -> Response:
    accepted = request.headers.get("accept-datetime")
    moment = parse_http_date(accepted) if accepted is not None else None
    return respond(replay_of(request, archive).gate(url, moment, origins))


def _time_map(archive: Archive, origins: ReplayOrigins, path: str) -> Response:
    form, page, text = memento.read_map_path(path)
    with archive.database.read() as session:
        found = memento.time_map(session, archived_url(text), form, page)
        origins = listing_origins(session, origins)
    return sent(make_text(memento.render(found, origins), memento.TYPES[form]))


def _missing(sentence: str, origins: ReplayOrigins, target: str) -> Response:
    """Return the page for a missing capture; embedded in another page, only its status is visible."""
    try:
        wanted = read_path(target)
    except Invalid:
        return refuse(404, "Not in this archive", sentence)
    if isinstance(wanted, WantedAddress) and not wanted.modifier.is_page and wanted.modifier is not Modifier.RAW:
        return refuse(404, "Not in this archive", sentence)
    calendar = origins.own_root + replay_path("*", "", wanted.url)
    links = [("All captures of this address", calendar), ("Addresses that begin like it", f"{calendar}*")]
    # Send this for every missing capture: it must not reveal whether members could see one.
    if origins.is_replay and origins.app is not None and isinstance(wanted, WantedAddress):
        path = replay_path(wanted.digits, "", wanted.url) if wanted.digits else f"/web/{safe(wanted.url)}"
        links.append(("For members: ask the archive itself", f"{origins.app}/members{path}"))
    return refuse(404, "Not in this archive", sentence, *links)


def refuse_expired(scope: Scope, settings: Settings, rest: str) -> Response:
    """Return the page for a URL with an invalid or expired capability; the archive itself may issue a new one."""
    request = Request(scope)
    host = request.headers.get("host", "")
    found = origins_of(request.url.scheme, host, replay_origin=settings.replay.origin, site_url=settings.api.site_url)
    query = request.url.query
    again = f"{found.app}/members{safe(rest)}{'?' + query if query else ''}"
    links = [("Ask the archive for it again", again)] if found.app and rest.startswith("/web/") else []
    answer = refuse(403, "This address has ended", "addresses of members' pages can be used for a while only", *links)
    answer.headers["Cache-Control"] = "private, no-store"
    return answer


members_router = LazyRouter(any_query=True, tags=["replay"], include_in_schema=False)


@members_router.get("/members/web/{target:path}", Permission.READ)
def open_for_members(request: Request) -> HTMLResponse:
    """Redirect a reader from a page of the replay host to `/web/…` on this one.

    A browser sends no session cookie when it follows a link from another site, but does after a page of this host.
    """
    path = f"/web/{target_behind(request, '/members/web/')}"
    signing_in = f"/signin?next={quote(path, safe='')}"
    return HTMLResponse(
        html_page(
            "Members' pages",
            f'<h1>One moment</h1><p class=url><a href="{escape(safe(path))}">Open the page</a></p>'
            f'<p>Not signed in? <a href="{escape(signing_in)}">Sign in</a> first.</p>',
            style=f'<meta http-equiv=refresh content="0; url={escape(safe(path))}">',
        ),
        headers={"Cache-Control": "no-store", "Referrer-Policy": "no-referrer"},
    )


fallback_router = LazyRouter(any_query=True, tags=["replay"])

_MODIFIERS = {
    "document": Modifier.PAGE,
    "iframe": Modifier.FRAME,
    "frame": Modifier.FRAMESET,
    "image": Modifier.IMAGE,
    "script": Modifier.SCRIPT,
    "style": Modifier.STYLE,
}


@fallback_router.route(
    ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"],
    "/{target:path}",
    Permission.READ,
    include_in_schema=False,
    name="astray",
)
def astray(request: Request, archive: ArchiveDep) -> Response:
    """Redirect a request for the root of an archived site back into the archive, using the capture in its Referer.

    A sandboxed page sends no Referer; its module scripts and style sheets do. For all others, our own script
    (`replay/shim.js`) resolves URLs before they are requested.
    """
    origins = origins_here(request, archive)
    root, asker = _asker(request.headers.get("referer", ""), origins)
    target = None if asker is None else _meant(asker, f"/{target_behind(request, '/')}")
    if asker is None or target is None:
        return refuse(404, "Not in this archive", "this address says neither which site it belongs to nor when")
    modifier = _MODIFIERS.get(request.headers.get("sec-fetch-dest", ""), Modifier.OBJECT)
    path = root + replay_path(asker.digits, modifier, target, site_pass=asker.site_pass)
    return respond(redirect(307, path, [READABLE, ("Vary", "referer, sec-fetch-dest")]))


def _asker(referer: str, origins: ReplayOrigins) -> tuple[str, WantedAddress | None]:
    """Return the capability before the path and the capture that the Referer names; None if it names no capture."""
    if not referer.startswith(f"{origins.origin}/"):
        return "", None
    capability, path = split_root(referer.removeprefix(origins.origin))
    try:
        found = read_path(path.removeprefix("/web/")) if path.startswith("/web/") else None
    except Invalid:
        return "", None
    is_capture = isinstance(found, WantedAddress) and bool(found.digits)
    return (f"/!{capability}" if capability else "", found if is_capture else None)  # type: ignore[return-value]


def _meant(asker: WantedAddress, path: str) -> str | None:
    try:
        return str(URL.parse(asker.url).join(path))
    except (URLError, ValueError):
        return None


raw_router = LazyRouter(any_query=True, tags=["replay"])


@raw_router.get(
    "/api/snapshots/raw/{snapshot_id}", Permission.READ, has_head=True, errors=(404,), response_class=HTMLResponse
)
async def snapshot_raw(snapshot_id: int, request: Request, archive: ArchiveDep) -> Response:
    """Show a capture as it was, with a banner that describes it; 404 if the snapshot, its file or record is
    missing.
    """
    return await _in_turn(request, lambda: _raw(request, archive, snapshot_id), is_costly=True)


def _raw(request: Request, archive: Archive, snapshot_id: int) -> Response:
    answer = replay_of(request, archive).raw(snapshot_id, replay_request(request, archive))
    if viewer().sees_members:
        with archive.database.read() as session:
            setattr(request.state, FOR_MEMBERS, bool(members_among(session, [snapshot_id])))
    return respond(answer)


cdx_router = LazyRouter(any_query=True, tags=["replay"])


def _parameter(name: str, description: str) -> dict[str, Any]:
    schema = {"type": "string", "default": ""}
    return {"name": name, "in": "query", "required": False, "description": description, "schema": schema}


# Parse them here, not in the framework: parameters repeat, have two vocabularies, and are rejected with one code.
_CDX_PARAMETERS = [
    _parameter("url", "Required. `*` at the end asks for a prefix, `*.` in front for a domain."),
    _parameter("matchType", "exact, prefix, host, domain, range."),
    _parameter("limit", "Most lines; negative for the last ones. At most 150,000."),
    _parameter("output", "text, json (an array; lines if `fields` is used), ndjson, cdxj, link."),
    _parameter("gzip", "`false` sends plain text to a client that takes gzip."),
]


@cdx_router.get(
    "/cdx", Permission.READ, response_class=PlainTextResponse, openapi_extra={"parameters": _CDX_PARAMETERS}
)
async def cdx(request: Request) -> Response:
    """Query the index of captures. docs/cdx.md lists all parameters, including those not listed here."""
    archive: Archive = request.app.state.archive
    question = read_question(request.query_params.multi_items())
    packed = takes_gzip(request) and request.query_params.get("gzip", "").lower() not in ("false", "0", "no")
    server = CdxServer(archive.database, clock=archive.clock)

    def origins() -> ReplayOrigins:
        found = origins_here(request, archive)
        is_for_viewer = question.output is Output.LINK and not found.is_replay
        if not is_for_viewer:
            return found
        with archive.database.read() as session:
            return listing_origins(session, found)

    def look() -> Response | Streamed | None:
        texts = server.lookup(question, origins())
        return None if texts is None else make_text(texts, TYPES[question.output], packed=packed)

    def work() -> Response | Streamed:
        return make_text(server.answer(question, origins()), TYPES[question.output], packed=packed)

    made = await run_in_threadpool(look) if question.is_lookup else None
    if made is None and question.is_quick:
        made = await run_in_threadpool(work)
    return sent(made or await heavily(request, work))
