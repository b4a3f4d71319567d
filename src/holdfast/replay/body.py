"""The body of a replayed capture: rewritten, decoded, or passed on as stored. Bombs stop at the decoder's caps."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain
from typing import NamedTuple

from holdfast.clock import Clock
from holdfast.index.records import Stored
from holdfast.parse.sniff import Form, looks_like_html, sniff
from holdfast.replay.address import Modifier
from holdfast.replay.deadline import Deadline, TooSlow
from holdfast.replay.documents import rewrite_page, rewrite_sheet
from holdfast.replay.headers import clean
from holdfast.replay.links import Links
from holdfast.replay.markup import Bar

MAX_REWRITTEN = 16 * 1024 * 1024
"""Larger documents are not rewritten; none that people read is that large."""
_MAX_DECODED = 64 * 1024 * 1024
"""Where a body that has to be decoded is cut; what is stored plain is sent whole, piece by piece."""
_WHOLE = 1024 * 1024
_GZIP = b"\x1f\x8b"
_TYPE = re.compile(r"[a-z0-9!#$&^_.+-]{1,63}/[a-z0-9!#$&^_.+*-]{1,63}", re.I)
_PAGES = frozenset({"text/html", "application/xhtml+xml", "application/vnd.wap.xhtml+xml"})
_DRAWING = "image/svg+xml"
_SILENT = frozenset({"text/plain", "application/octet-stream", "text/html", ""})
_SNIFFED = {Form.HTML: "text/html", Form.XML: "text/xml", Form.CSS: "text/css", Form.TEXT: "text/plain"}
_MAGIC = (
    (b"%PDF-", "application/pdf"),
    (b"\x89PNG\r\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"wOFF", "font/woff"),
    (b"wOF2", "font/woff2"),
)


class Body(NamedTuple):
    """What is sent, and what is said about it."""

    content: bytes | Iterator[bytes]
    content_type: str
    coding: str | None = None
    """The content coding that is left on it."""
    nojs: bool = False
    """Whether it could not be rewritten and must not run scripts."""


class Rules(NamedTuple):
    """How one body is to be treated."""

    modifier: Modifier
    links: Links
    bar: Bar | None
    accepts_gzip: bool
    clock: Clock
    seconds: float
    """That rewriting may take."""


def body_of(stored: Stored, rules: Rules) -> Body:
    """Return the body to send; DamagedWarc if its first bytes cannot be read."""
    declared = (stored.media_type or "").lower()
    if not _TYPE.fullmatch(declared):
        declared = ""
    if rules.modifier is not Modifier.RAW and _is_rewritten(declared, rules.modifier):
        return _rewritten(stored, declared, rules)
    return _passed_on(stored, declared, rules)


def _is_rewritten(declared: str, modifier: Modifier) -> bool:
    if declared == "text/css" or (modifier is Modifier.STYLE and declared in _SILENT):
        return True
    if modifier in (Modifier.IMAGE, Modifier.SCRIPT, Modifier.STYLE):
        return False
    return declared in _PAGES or declared in ("", _DRAWING)


def _rewritten(stored: Stored, declared: str, rules: Rules) -> Body:
    content = stored.content(_MAX_DECODED)
    charset = stored.head.charset if stored.head is not None else None
    if not declared and rules.modifier is not Modifier.STYLE:
        form = sniff(content[:512], None).form
        if form is not Form.HTML:
            return Body(content, _guess(content))
    media_type = declared or "text/html"
    if len(content) > MAX_REWRITTEN:
        return Body(content, _full_type(stored, media_type), nojs=True)
    deadline = Deadline(rules.clock, rules.seconds)
    try:
        if declared == "text/css" or rules.modifier is Modifier.STYLE:
            done = rewrite_sheet(content, charset, rules.links, deadline)
            media_type = "text/css"
        else:
            bar = rules.bar if declared in _PAGES or looks_like_html(content) else None
            done = rewrite_page(content, charset, rules.links, deadline, bar=bar)
    except TooSlow:
        return Body(content, _full_type(stored, media_type), nojs=True)
    return Body(done.body, f"{media_type}; charset={done.charset}")


def _passed_on(stored: Stored, declared: str, rules: Rules) -> Body:
    """Return a body whose bytes are not ours to change: as stored where the client can take that, decoded otherwise."""
    codings = _codings(stored)
    first = _first(stored.payload)
    if codings == ["gzip"] and first.startswith(_GZIP) and rules.accepts_gzip:
        content: bytes | Iterator[bytes] = _small_or_stream(first, stored.payload)
        return Body(content, _type_of(stored, declared, b"", rules.modifier), coding="gzip")
    stored.payload = chain((first,), stored.payload)
    if codings:
        decoded = stored.content(_MAX_DECODED)
        return Body(decoded, _type_of(stored, declared, decoded[:512], rules.modifier))
    start = _first(stored.payload)
    return Body(_small_or_stream(start, stored.payload), _type_of(stored, declared, start[:512], rules.modifier))


def _codings(stored: Stored) -> list[str]:
    values = stored.body_head.get_all("content-encoding") if stored.body_head is not None else ()
    found = [part.strip().lower() for value in values for part in value.split(",")]
    return [coding for coding in found if coding not in ("", "identity")]


def _first(payload: Iterator[bytes]) -> bytes:
    for piece in payload:
        if piece:
            return piece
    return b""


def _small_or_stream(first: bytes, rest: Iterator[bytes]) -> bytes | Iterator[bytes]:
    """Return a small body in one piece, so that its length is known; a large one piece by piece."""
    held, size = [first], len(first)
    for piece in rest:
        held.append(piece)
        size += len(piece)
        if size > _WHOLE:
            return chain(held, rest)
    return b"".join(held)


def _type_of(stored: Stored, declared: str, start: bytes, modifier: Modifier) -> str:
    """Return the type to send: always one, because browsers are told not to guess."""
    if modifier is Modifier.SCRIPT and declared in ("", "text/plain", "application/octet-stream"):
        return "text/javascript"
    return _full_type(stored, declared) if declared else _guess(start)


def _full_type(stored: Stored, media_type: str) -> str:
    """Return the declared type with its parameters, as it was sent."""
    sent = clean(stored.head.get("content-type") or "") if stored.head is not None else ""
    return sent if sent.lower().startswith(media_type) and len(sent) < 256 else media_type


def _guess(start: bytes) -> str:
    for magic, media_type in _MAGIC:
        if start.startswith(magic):
            return media_type
    return _SNIFFED.get(sniff(start[:512], None).form, "application/octet-stream")
