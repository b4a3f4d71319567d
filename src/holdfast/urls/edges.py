"""The edges of the link graph: which groups of pages a page leads to, without assets and itself, at most 200."""

from __future__ import annotations

from collections.abc import Iterable

from holdfast.urls.address import hash64
from holdfast.urls.links import Resolved

MAX_EDGES = 200
_ASSETS = (
    ".css", ".js", ".mjs", ".json", ".xml", ".rss", ".ico", ".png", ".jpg", ".jpeg", ".gif", ".webp", ".svg", ".bmp",
    ".avif", ".woff", ".woff2", ".ttf", ".otf", ".eot", ".mp3", ".mp4", ".m4a", ".ogg", ".wav", ".webm", ".avi", ".mov",
    ".zip", ".gz", ".tar", ".7z", ".rar", ".exe", ".dmg", ".iso",
)  # fmt: skip


def group_hash(link: Resolved) -> int:
    """Return the hash of the group that an address belongs to: itself, less its query."""
    group, query, _ = link.normalised.partition("?")
    return hash64(group) if query else link.hash64


def leading_out(links: Iterable[Resolved], *, own_hash: int) -> list[tuple[int, Resolved]]:
    """Return the links that lead from a group to pages of others, with the hash of the group that each leads to."""
    found = []
    for link in links:
        if link.normalised.partition("?")[0].lower().endswith(_ASSETS):
            continue
        to_hash = group_hash(link)
        if to_hash != own_hash:
            found.append((to_hash, link))
    return found


def edges_of(links: Iterable[tuple[int, Resolved]], limit: int = MAX_EDGES) -> dict[int, Resolved]:
    """Return the first link to each group, in order, at most `limit`."""
    found: dict[int, Resolved] = {}
    for to_hash, link in links:
        if to_hash not in found:
            found[to_hash] = link
            if len(found) == limit:
                break
    return found
