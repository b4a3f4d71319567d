"""Which groups a page links to: the edges of the link graph, at most 200 a snapshot, without assets and itself."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.errors import UrlRefused
from holdfast.urls import Base, hash64

MAX_OUTLINKS = 200
_ASSETS = (
    ".css", ".js", ".mjs", ".json", ".xml", ".rss", ".ico", ".png", ".jpg", ".jpeg", ".gif", ".webp", ".svg", ".bmp",
    ".avif", ".woff", ".woff2", ".ttf", ".otf", ".eot", ".mp3", ".mp4", ".m4a", ".ogg", ".wav", ".webm", ".avi", ".mov",
    ".zip", ".gz", ".tar", ".7z", ".rar", ".exe", ".dmg", ".iso",
)  # fmt: skip


def outlinks(url: str, base: str | None, hrefs: Sequence[str], *, own_hash: int) -> list[tuple[int, str]]:
    """Return (hash, address) of the groups that these references lead to, in order and once each."""
    try:
        resolved = Base(url, base).resolve(hrefs).links
    except UrlRefused:
        return []
    found: dict[int, str] = {}
    for link in resolved:
        group, query, _ = link.normalised.partition("?")
        if group.lower().endswith(_ASSETS):
            continue
        to_hash = hash64(group) if query else link.hash64
        if to_hash != own_hash and to_hash not in found:
            found[to_hash] = group
            if len(found) == MAX_OUTLINKS:
                break
    return list(found.items())


def resolved(url: str, base: str | None, href: str | None) -> str | None:
    """Return one reference of a page written out, None where it spells no address."""
    if not href:
        return None
    try:
        return Base(url, base).absolute(href)
    except UrlRefused:
        return None
