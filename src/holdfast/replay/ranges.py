"""One byte range of a body that is at hand: what players of archived sound and film ask for (RFC 9110, section 14)."""

from __future__ import annotations

import re

from holdfast.replay.answer import Answer, Headers

_RANGE = re.compile(r"bytes=([0-9]{0,18})-([0-9]{0,18})")


def sliced(content: bytes, headers: Headers, wanted: str) -> Answer:
    """Return the range that is wanted (206), all of it where nothing or something odd is, 416 where it is outside."""
    size = len(content)
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
    return Answer(status=206, headers=headers, body=content[start : end + 1])
