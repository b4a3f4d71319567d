"""The search for the feeds of a source: what its start page refers to, and the usual places if that comes to nothing.

What is found is only tried: it becomes a feed when it was read and names something.
"""

from __future__ import annotations

from collections.abc import Iterable

from holdfast.errors import UrlRefused
from holdfast.types import Found, Kind, Visit
from holdfast.urls import parse

USUAL_PLACES = ("/feed", "/rss", "/feed.xml", "/rss.xml", "/atom.xml", "/index.xml")


class Search:
    """One search, in the memory of the process that does it; forgotten with it, and begun anew some hours later."""

    def __init__(self, start: int) -> None:
        self._starts = {start}
        self._origin: str | None = None
        """Set while the usual places may still have to be tried."""
        self._pending: set[int] = set()
        self._named: set[int] = set()
        self._found = False

    def visited(self, visit: Visit) -> list[Found]:
        """Return what to try after a visit: the feeds that the start page refers to, or else the usual places."""
        if visit.attempt.url_hash not in self._starts:
            return []
        try:
            landed = parse(visit.redirected_to or visit.attempt.url)
        except UrlRefused:
            return []
        if visit.redirected_to is not None and visit.status is not None and 300 <= visit.status < 400:
            self._starts.add(landed.hash64)  # another domain: it is visited in its own turn
            return []
        self._origin = landed.origin
        self._pending = {found.url_hash for found in visit.feeds}
        return list(visit.feeds) or self._places()

    def tried(self, url_hash: int, *, good: bool) -> list[Found]:
        """Note what came of one of them, and return what to try next: the usual places if none of them was a feed."""
        if url_hash not in self._pending:
            return []
        self._pending.discard(url_hash)
        self._found = self._found or good
        return self._places() if not self._pending and not self._found else []

    def named(self, found: Iterable[Found]) -> None:
        """Remember what a robots.txt names."""
        self._named.update(one.url_hash for one in found)

    def is_named(self, url_hash: int) -> bool:
        """Return whether a robots.txt names this address."""
        return url_hash in self._named

    def _places(self) -> list[Found]:
        origin, self._origin = self._origin, None
        urls = [parse(f"{origin}{path}") for path in USUAL_PLACES] if origin is not None else []
        return [Found(url.fetch, url.hash64, url.domain, Kind.SITEMAP, 1, 0) for url in urls]
