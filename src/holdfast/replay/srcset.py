"""Lists of image candidates rewritten, split as the HTML standard does: commas may stand inside an address."""

from __future__ import annotations

import re

from holdfast.parse.address import after_descriptor
from holdfast.replay.deadline import Deadline
from holdfast.replay.sheet import Resolve

_MAX_CHARS = 256 * 1024
_CANDIDATE = re.compile(r"[ \t\n\r\f,]*+([^ \t\n\r\f]+)")


def rewrite_srcset(value: str, modifier: str, resolve: Resolve, deadline: Deadline) -> str:
    """Return the candidates with their addresses in the archive; TooSlow if time is up. A monstrous list is dropped."""
    if len(value) > _MAX_CHARS:
        return ""
    pieces: list[str] = []
    at = copied = 0
    while candidate := _CANDIDATE.match(value, at):
        deadline.check()
        url, at = candidate[1], candidate.end()
        start = candidate.start(1)
        end = start + len(url.rstrip(","))
        target = resolve(value[start:end], modifier)
        if target is not None:
            pieces += (value[copied:start], target)
            copied = end
        if end == candidate.end():
            at = after_descriptor(value, at)
    return "".join((*pieces, value[copied:])) if pieces else value
