"""Between HTTP and replay: what of a request matters there, and its answers as responses. Cookies are never read."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator
from itertools import chain
from urllib.parse import quote

from fastapi import Request
from starlette.responses import Response, StreamingResponse

from holdfast.api.heavy import Streamed
from holdfast.index.postquery import MAX_DATA_BYTES, request_data
from holdfast.replay.answer import Answer, Asking, own_page
from holdfast.replay.pages import refusal
from holdfast.replay.place import Place, place_of
from holdfast.replay.serving import Replay
from holdfast.replay.site_pass import site_passes
from holdfast.wiring.archive import Archive

_PIECE_CHARS = 16_384
_PATH_SAFE = "!$%&'()*+,-./:;=@_~"


def replay_of(archive: Archive) -> Replay:
    """Return what serves the captures of an archive."""
    settings = archive.settings.replay
    return Replay(
        database=archive.database,
        home=archive.home,
        clock=archive.clock,
        passes=site_passes(archive.home),
        scripts=settings.scripts,
        rewrite_s=settings.rewrite_s,
    )


def place_here(request: Request, archive: Archive) -> Place:
    """Return the two origins as this request sees them."""
    settings = archive.settings
    host = request.headers.get("host", "")
    return place_of(request.url.scheme, host, replay_origin=settings.replay.origin, site_url=settings.api.site_url)


def asking_of(request: Request, archive: Archive, body: bytes = b"") -> Asking:
    """Return what of a request matters to replay; `body` is what it carries."""
    headers = request.headers
    return Asking(
        place=place_here(request, archive),
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
    """Return what a request other than GET and HEAD carries, as the index spells it in a key."""
    if request.method in ("GET", "HEAD"):
        return ""
    head = f"{request.method} / HTTP/1.1\r\nContent-Type: {request.headers.get('content-type', '')}\r\n\r\n"
    return request_data(request.method, head.encode("latin-1", "replace"), body[:MAX_DATA_BYTES])


def takes_gzip(request: Request) -> bool:
    """Return whether the client takes gzip (RFC 9110, section 12.5.3)."""
    for part in request.headers.get("accept-encoding", "").lower().split(","):
        coding, _, weight = part.partition(";")
        if coding.strip() in ("gzip", "*"):
            return weight.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000")
    return False


def target_behind(request: Request, prefix: str) -> str:
    """Return what stands behind a prefix in the request's target, undecoded and with its query."""
    raw = request.scope.get("raw_path") or quote(request.scope["path"], safe=_PATH_SAFE).encode()
    path = raw.decode("latin-1").partition("?")[0].removeprefix(prefix)
    query = request.scope["query_string"].decode("latin-1")
    return f"{path}?{query}" if query else path


def respond(answer: Answer) -> Response:
    """Return an answer as a response; header names may repeat, and nothing is added but the length."""
    headers = [(name.lower().encode("latin-1"), value.encode("latin-1", "replace")) for name, value in answer.headers]
    if isinstance(answer.body, bytes):
        response = Response(answer.body, answer.status)
        if answer.status not in (204, 205, 304):
            headers.append((b"content-length", str(len(answer.body)).encode()))
    else:
        response = StreamingResponse(answer.body, answer.status)
    response.raw_headers = headers
    return response


def refuse(status: int, title: str, message: str, *links: tuple[str, str]) -> Response:
    """Return a page that says why there is nothing to show."""
    return respond(own_page(refusal(title, message, *links), status))


def send_text(texts: Iterable[str], media_type: str, *, packed: bool = False) -> Response:
    """Return a response of text, streamed unless it is small; what fails before the first piece fails as an error."""
    made = make_text(texts, media_type, packed=packed)
    if isinstance(made, Response):
        return made
    return StreamingResponse(made.pieces, media_type=made.media_type, headers=dict(made.headers))


def make_text(texts: Iterable[str], media_type: str, *, packed: bool = False) -> Response | Streamed:
    """Return the same for threads for heavy work, which make the pieces one by one."""
    pieces = _gathered(texts, _PIECE_CHARS)
    if packed:
        pieces = _compressed(pieces)
    headers = {"Vary": "accept-encoding", "Cache-Control": "no-cache"}
    if packed:
        headers["Content-Encoding"] = "gzip"
    first = next(pieces, b"")
    second = next(pieces, None)
    if second is None:  # a thread that hands over one piece would cost more than the answer
        return Response(first, media_type=media_type, headers=headers)
    return Streamed(chain((first, second), pieces), media_type, headers)


def _compressed(pieces: Iterable[bytes]) -> Iterator[bytes]:
    packer = zlib.compressobj(1, zlib.DEFLATED, 31)
    held = b""
    for piece in pieces:
        held += packer.compress(piece)
        if len(held) >= _PIECE_CHARS:
            yield held
            held = b""
    yield held + packer.flush()


def _gathered(texts: Iterable[str], size: int) -> Iterator[bytes]:
    held: list[str] = []
    length = 0
    for text in texts:
        held.append(text)
        length += len(text)
        if length >= size:
            yield "".join(held).encode("utf-8", "replace")
            held, length = [], 0
    if held:
        yield "".join(held).encode("utf-8", "replace")
