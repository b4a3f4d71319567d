"""One byte range of a body, at hand or streamed: what players of archived sound and film ask for (RFC 9110, 14)."""

from __future__ import annotations

import re
from collections.abc import Iterator

from holdfast.replay.answer import Answer, Headers
from holdfast.replay.memory import HeldBody

_RANGE = re.compile(r"bytes=([0-9]{0,18})-([0-9]{0,18})")


def ranged(content: bytes | Iterator[bytes], size: int | None, headers: Headers, wanted: str) -> Answer:
    """Return the range that is wanted (206), all of it where nothing or something odd is, 416 where it is outside.

    `size` is None where nobody knows it; then there are no ranges.
    """
    if size is None:
        return Answer(status=200, headers=headers, body=content)
    if isinstance(content, HeldBody) and not wanted:
        headers = [*headers, ("Content-Length", str(size))]
    headers = [*headers, ("Accept-Ranges", "bytes")]
    match = _RANGE.fullmatch(wanted.strip())
    if match is None or not (match[1] or match[2]):
        return Answer(status=200, headers=headers, body=content)
    if match[1]:
        start, end = int(match[1]), min(int(match[2]) if match[2] else size - 1, size - 1)
    else:
        start, end = max(0, size - int(match[2])), size - 1
    if start >= size or end < start:
        return Answer(status=416, headers=[*headers, ("Content-Range", f"bytes */{size}")])
    headers.append(("Content-Range", f"bytes {start}-{end}/{size}"))
    if isinstance(content, bytes):
        return Answer(status=206, headers=headers, body=content[start : end + 1])
    return Answer(status=206, headers=headers, body=_cut(content, start, end + 1))


def _cut(pieces: Iterator[bytes], start: int, end: int) -> Iterator[bytes]:
    at = 0
    for piece in pieces:
        if at + len(piece) > start:
            yield piece[max(0, start - at) : end - at]
        at += len(piece)
        if at >= end:
            return
