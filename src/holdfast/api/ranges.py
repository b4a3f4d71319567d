"""Which part of a file a request asks for (RFC 9110, section 14). Pure; one range, for more than one all is sent."""

from __future__ import annotations

import re
from typing import NamedTuple

from holdfast.errors import Invalid

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
    match = _RANGE.fullmatch(header or "")
    if match is None or not (match[1] or match[2]):
        return None
    if not match[1]:
        count = int(match[2])
        if count == 0 or size == 0:
            raise RangeRefused(size)
        return Span(max(0, size - count), size)
    start, end = int(match[1]), int(match[2]) + 1 if match[2] else size
    if start >= size:
        raise RangeRefused(size)
    return None if end <= start else Span(start, min(end, size))
