"""Request headers, known byte for byte before they are sent. Rejects values that could break out of their line or
control the connection, because then the sent bytes would differ from the recorded ones.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from holdfast.errors import Invalid

Pairs = tuple[tuple[str, str], ...]

_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_VALUE = re.compile(r"[\t\x20-\x7e\x80-\xff]*")
# These control the connection or frame the message: the bytes sent would differ from those recorded.
_NOT_FOR_CALLERS = frozenset(
    {
        "connection",
        "content-length",
        "expect",
        "host",
        "keep-alive",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
# Most requests of a crawl use one of a few sets; cookies and validators add one per page.
_MAX_SETS = 256


class HeaderSet(NamedTuple):
    for_libcurl: list[bytes]
    block: bytes
    """Everything after the Host header, including the closing empty line."""


class RequestHeaders:
    def __init__(self, common: Pairs) -> None:
        self._common = common
        self._sets: dict[Pairs, HeaderSet] = {}
        self.common = _compose(common)

    def join(self, own: Pairs) -> HeaderSet:
        """Return the headers of a request; its own replace common ones. Raise `Invalid` if one cannot be sent."""
        if not own:
            return self.common
        known = self._sets.get(own)
        if known is None:
            names = {name.lower() for name, _ in own}
            known = _compose((*(pair for pair in self._common if pair[0].lower() not in names), *own))
            if len(self._sets) >= _MAX_SETS:
                del self._sets[next(iter(self._sets))]
            self._sets[own] = known
        return known


def _compose(pairs: Pairs) -> HeaderSet:
    lines = [_line(name, value) for name, value in pairs]
    # A semicolon tells libcurl to send a header with an empty value instead of leaving it out.
    for_libcurl = [(f"{line[:-1]};" if line.endswith(":") else line).encode("latin-1") for line in lines]
    return HeaderSet(for_libcurl, "".join(f"{line}\r\n" for line in (*lines, "")).encode("latin-1"))


def _line(name: str, value: str) -> str:
    if not _NAME.fullmatch(name) or name.lower() in _NOT_FOR_CALLERS or not _VALUE.fullmatch(value):
        raise Invalid(f"cannot send the header {name[:40]!r}: not a caller's to set, or not plain text on one line")
    value = value.strip(" \t")
    return f"{name}: {value}" if value else f"{name}:"
