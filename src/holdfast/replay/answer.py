"""What replay hands to an edge: a status, headers and a body, in one piece or in many. It knows no HTTP server."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from holdfast.errors import Invalid
from holdfast.replay.body import HeldBody
from holdfast.replay.headers import GUARDS, OWN_PAGE_POLICY
from holdfast.replay.origins import ReplayOrigins

Headers = list[tuple[str, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayAnswer:
    """One response, ready to be sent."""

    status: int
    headers: Headers
    body: bytes | Iterator[bytes] = b""


class ReplayRequest(NamedTuple):
    """What of a request matters to replay, beside its address."""

    place: ReplayOrigins
    accepts_gzip: bool = False
    if_none_match: str = ""
    byte_range: str = ""
    if_range: str = ""
    sent: str = ""
    """What a request other than GET carried, spelt as part of its key (`index.postquery`); empty for GET and HEAD."""
    mode: str = ""
    destination: str = ""
    """Sec-Fetch-Mode and Sec-Fetch-Dest: what a browser wants it for; empty where it does not say."""
    is_led: bool = False
    """Whether a page led the reader here, by Sec-Fetch-Site; an address that was typed in was not."""

    @property
    def is_framed(self) -> bool:
        """Whether the answer is to be shown inside another page."""
        return self.destination in ("iframe", "frame", "embed", "object")


def own_page(body: bytes, status: int = 200, extra: Headers | None = None) -> ReplayAnswer:
    """Return a page that we wrote ourselves."""
    headers = [
        ("Content-Type", "text/html; charset=utf-8"),
        ("Content-Security-Policy", OWN_PAGE_POLICY),
        ("Cache-Control", "no-cache"),
        *GUARDS,
        *(extra or []),
    ]
    return ReplayAnswer(status=status, headers=headers, body=body)


def redirect(status: int, location: str, headers: Headers) -> ReplayAnswer:
    """Return a redirect of our own, to a place in the archive."""
    return ReplayAnswer(
        status=status,
        headers=[
            ("Location", location),
            ("Content-Security-Policy", OWN_PAGE_POLICY),
            ("Cache-Control", "no-cache"),
            *GUARDS,
            *headers,
        ],
    )


_RANGE = re.compile(r"bytes[ \t]*+=[ \t]*+([0-9]{0,18})[ \t]*+-[ \t]*+([0-9]{0,18})[ \t]*+", re.IGNORECASE)
"""Blanks are taken possessively: two runs with nothing between them could share them in very many ways."""


class RangeRefused(Invalid):
    """The part that was asked for is behind the end."""

    code = "range_refused"

    def __init__(self, size: int) -> None:
        super().__init__(f"there are {size:,} bytes, and none where you asked")
        self.size = size


class Span(NamedTuple):
    """Bytes from `start` up to `end`, which is not among them."""

    start: int
    end: int


def wanted_span(header: str | None, size: int) -> Span | None:
    """Return the one range that a header asks for; None for all; RangeRefused if it lies behind the end."""
    match = _RANGE.fullmatch((header or "").strip())
    if match is None or not (match[1] or match[2]):
        return None
    if not match[1]:
        count = int(match[2])
        if count == 0 or size == 0:
            raise RangeRefused(size)
        return Span(max(0, size - count), size)
    start, end = int(match[1]), int(match[2]) + 1 if match[2] else size
    if end <= start and match[2]:
        return None  # first-pos above last-pos: invalid, so as if there were none (14.1.1)
    if start >= size:
        raise RangeRefused(size)
    return Span(start, min(end, size))


def ranged(content: bytes | Iterator[bytes], size: int | None, headers: Headers, wanted: str) -> ReplayAnswer:
    """Return the range that is wanted (206), all of it where nothing or something odd is, 416 where it is outside.

    `size` is None where nobody knows it; then there are no ranges.
    """
    if size is None:
        return ReplayAnswer(status=200, headers=headers, body=content)
    if isinstance(content, HeldBody) and not wanted:
        headers = [*headers, ("Content-Length", str(size))]
    headers = [*headers, ("Accept-Ranges", "bytes")]
    try:
        span = wanted_span(wanted, size)
    except RangeRefused:
        return ReplayAnswer(status=416, headers=[*headers, ("Content-Range", f"bytes */{size}")])
    if span is None:
        return ReplayAnswer(status=200, headers=headers, body=content)
    headers.append(("Content-Range", f"bytes {span.start}-{span.end - 1}/{size}"))
    if isinstance(content, bytes):
        return ReplayAnswer(status=206, headers=headers, body=content[span.start : span.end])
    return ReplayAnswer(status=206, headers=headers, body=_cut(content, span.start, span.end))


def _cut(pieces: Iterator[bytes], start: int, end: int) -> Iterator[bytes]:
    at = 0
    for piece in pieces:
        if at + len(piece) > start:
            yield piece[max(0, start - at) : end - at]
        at += len(piece)
        if at >= end:
            return
