"""Which part of a body or file a request asks for (RFC 9110, section 14): one range; for more than one all is sent."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from holdfast.errors import Invalid
from holdfast.replay.answer import Answer, Headers
from holdfast.replay.memory import HeldBody

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


def ranged(content: bytes | Iterator[bytes], size: int | None, headers: Headers, wanted: str) -> Answer:
    """Return the range that is wanted (206), all of it where nothing or something odd is, 416 where it is outside.

    `size` is None where nobody knows it; then there are no ranges.
    """
    if size is None:
        return Answer(status=200, headers=headers, body=content)
    if isinstance(content, HeldBody) and not wanted:
        headers = [*headers, ("Content-Length", str(size))]
    headers = [*headers, ("Accept-Ranges", "bytes")]
    try:
        span = wanted_span(wanted, size)
    except RangeRefused:
        return Answer(status=416, headers=[*headers, ("Content-Range", f"bytes */{size}")])
    if span is None:
        return Answer(status=200, headers=headers, body=content)
    headers.append(("Content-Range", f"bytes {span.start}-{span.end - 1}/{size}"))
    if isinstance(content, bytes):
        return Answer(status=206, headers=headers, body=content[span.start : span.end])
    return Answer(status=206, headers=headers, body=_cut(content, span.start, span.end))


def _cut(pieces: Iterator[bytes], start: int, end: int) -> Iterator[bytes]:
    at = 0
    for piece in pieces:
        if at + len(piece) > start:
            yield piece[max(0, start - at) : end - at]
        at += len(piece)
        if at >= end:
            return
