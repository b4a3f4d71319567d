"""The keys that captures are stored, found and withdrawn under: SURT keys of a length that every index takes.

Refuses nothing: an archive holds addresses that no crawler would ask for.
"""

from __future__ import annotations

from hashlib import sha256

from holdfast.errors import UrlRefused
from holdfast.urls.address import parse
from holdfast.urls.surt import surt

MAX_KEY_BYTES = 2000
"""Longer keys end in a hash of the rest: a PostgreSQL index takes no entry above 2,704 bytes."""


def shortened(key: str) -> str:
    """Return a key as it is stored."""
    raw = key.encode("utf-8", "replace")
    if len(raw) <= MAX_KEY_BYTES:
        return key
    return raw[: MAX_KEY_BYTES - 34].decode("utf-8", "ignore") + "~" + sha256(raw).hexdigest()[:32]


def url_key(url: str) -> str:
    """Return the key that snapshots of this address are stored under: its SURT, shortened where it is monstrous."""
    return shortened(surt(url))


def normalised_or_plain(url: str) -> str:
    """Return the normalised address; of what is no http(s) address everything before its fragment."""
    try:
        return parse(url).normalised
    except UrlRefused:
        return url.partition("#")[0]


def page_key(url: str) -> str:
    """Return the key that an address is withdrawn under: that of its normalised form.

    It merges what either identity merges: scheme, `www.`, case, session ids and a trailing slash as the SURT does,
    tracking parameters and the order of the query as the normaliser does.
    """
    return url_key(normalised_or_plain(url))
