"""The spelling of URLs in search: the same for the index, for facets and for queries."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import unquote

from holdfast.urls import typed_host

_LETTERS: Final = re.compile("(?:%[89a-f][0-9a-f])+", re.IGNORECASE)
_PARTS: Final = re.compile(r"(.*?://)?(?:[^/?#]*@)?([^/?#]*)(.*)", re.DOTALL)


def unescaped(text: str) -> str:
    """Return text with the escapes of letters beyond ASCII resolved; an escaped slash or question mark stays."""
    return _LETTERS.sub(lambda found: unquote(found[0]), text)


def searched_address(url: str) -> str:
    """Return a URL without user and password, its host in the form of `typed_host`, its letters unescaped."""
    scheme, host, rest = _split(url)
    return f"{scheme}{typed_host(host)}{unescaped(rest)}"


def host_of(url: str) -> str:
    return _split(url)[1]


def _split(url: str) -> tuple[str, str, str]:
    found = _PARTS.match(url)
    assert found is not None  # every text matches
    return found[1] or "", found[2], found[3]
