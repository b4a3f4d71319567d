"""Under which key, page and group a capture is found. Refuses nothing: an archive holds what nobody would ask for."""

from __future__ import annotations

from hashlib import sha256
from typing import NamedTuple

from holdfast.errors import UrlRefused
from holdfast.urls import hash64, parse, surt

MAX_KEY_BYTES = 2000
"""Longer keys end in a hash of the rest: a PostgreSQL index takes no entry above 2,704 bytes."""


class Identity(NamedTuple):
    """What one address is called in the archive."""

    url_key: str
    url_hash: int
    group: str
    group_hash: int


def url_key(url: str) -> str:
    """Return the key that snapshots of this address are stored under: its SURT, shortened where it is monstrous."""
    return shortened(surt(url))


def shortened(key: str) -> str:
    """Return a key as it is stored."""
    raw = key.encode("utf-8", "replace")
    if len(raw) <= MAX_KEY_BYTES:
        return key
    return raw[: MAX_KEY_BYTES - 34].decode("utf-8", "ignore") + "~" + sha256(raw).hexdigest()[:32]


def identify(url: str, request_data: str = "") -> Identity:
    """Return the identity of a capture; what was sent with a request other than GET is part of it."""
    whole = f"{url}{'&' if '?' in url else '?'}{request_data}" if request_data else url
    try:
        normalised = parse(whole).normalised
    except UrlRefused:
        normalised = whole.partition("#")[0]
    group = normalised.partition("?")[0]
    return Identity(url_key(whole), hash64(normalised), group, hash64(group))
