"""What tests of packages share: two crawls of a small site, and the tools of others to check them with."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tests import needs
from tests.archive import Shot, days_later

PEERS = Path(__file__).parents[2] / ".venv-peers"
VALIDATE = PEERS / "bin" / "wacz"
WABAC = PEERS / "lib" / "python3.11" / "site-packages" / "pywb" / "static" / "wabacSW.js"


def needs_peers() -> None:
    """Skip where the tools of others are not installed."""
    needs.peer(VALIDATE)


def _page(title: str, words: str) -> str:
    return (
        f'<html><head><title>{title}</title><link rel="stylesheet" href="/s.css"></head><body><h1>{title}</h1>'
        f'<p id="words">{words}</p><a href="/a">to a</a></body></html>'
    )


def shots() -> list[Shot]:
    """Return a crawl of three pages and a style sheet, and a later one in which two pages are revisits."""
    first = [
        Shot(url="https://example.org/", body=_page("Home", "welcome")),
        Shot(url="https://example.org/a", body=_page("Page a", "words of a")),
        Shot(url="https://example.org/b", body=_page("Page b", "words of b")),
        Shot(url="https://example.org/s.css", body="p { color: rgb(1, 2, 3) }", media_type="text/css"),
    ]
    later = [replace(shot, moment=days_later(3), execution=2, same_as=shot.url) for shot in first]
    later[0] = replace(first[0], body=_page("Home", "welcome back"), moment=days_later(3), execution=2)
    later[2] = replace(later[2], not_modified=True)
    return [*first, *later]
