"""Which groups a page links to: the edges of the link graph, at most 200 a snapshot, without assets and itself."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.errors import UrlRefused
from holdfast.urls import Base
from holdfast.urls.edges import edges_of, leading_out


def outlinks(url: str, base: str | None, hrefs: Sequence[str], *, own_hash: int) -> list[tuple[int, str]]:
    """Return (hash, address) of the groups that these references lead to, in order and once each."""
    try:
        resolved = Base(url, base).resolve(hrefs).links
    except UrlRefused:
        return []
    edges = edges_of(leading_out(resolved, own_hash=own_hash))
    return [(to_hash, link.normalised.partition("?")[0]) for to_hash, link in edges.items()]


def resolved(url: str, base: str | None, href: str | None) -> str | None:
    """Return one reference of a page written out, None where it spells no address."""
    if not href:
        return None
    try:
        return Base(url, base).absolute(href)
    except UrlRefused:
        return None
