"""Under which key, page and group a capture is found. Refuses nothing: an archive holds what nobody would ask for."""

from __future__ import annotations

from typing import NamedTuple

from holdfast.urls import MAX_KEY_BYTES, hash64, normalised_or_plain, page_key, shortened, url_key

__all__ = ["MAX_KEY_BYTES", "Identity", "identify", "page_key", "shortened", "url_key"]


class Identity(NamedTuple):
    """What one address is called in the archive."""

    url_key: str
    url_hash: int
    group: str
    group_hash: int
    page_key: str | None = None
    """The key that the page is withdrawn under, where it is not `url_key`: of a request that carried data, and of an
    address with tracking parameters."""


def identify(url: str, request_data: str = "") -> Identity:
    """Return the identity of a capture; what was sent with a request other than GET is part of it."""
    whole = f"{url}{'&' if '?' in url else '?'}{request_data}" if request_data else url
    normalised = normalised_or_plain(whole)
    group = normalised.partition("?")[0]
    key = url_key(whole)
    # Only a query is normalised further than a SURT key is, so most addresses are spared a second key.
    page = page_key(url) if request_data else url_key(normalised) if "?" in whole else key
    return Identity(key, hash64(normalised), group, hash64(group), page if page != key else None)
