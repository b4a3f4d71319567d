"""Page-level wishes to robots: `X-Robots-Tag` headers and robots meta elements. The most restrictive one wins.

What other crawlers are told is not for us; a wish that we do not know is ignored.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

# Directives that carry a value after a colon: a word before a colon that is none of these names a crawler.
_VALUED = frozenset({"unavailable_after", "max-snippet", "max-image-preview", "max-video-preview"})
_MAX_CHARS = 4096


class Directives(NamedTuple):
    """What a page asks of robots like us."""

    nofollow: bool = False
    noindex: bool = False
    noarchive: bool = False


def read_directives(headers: Iterable[str], metas: Iterable[str], agent: str) -> Directives:
    """Return what all `X-Robots-Tag` values and all robots metas together ask of the crawler with this token.

    The metas are those that were addressed to everybody or to us.
    """
    words: set[str] = set()
    for value in headers:
        words.update(_addressed(value[:_MAX_CHARS], agent.lower()))
    for value in metas:
        words.update(word.strip() for word in value[:_MAX_CHARS].lower().replace(";", ",").split(","))
    everything = "none" in words
    return Directives(
        nofollow=everything or "nofollow" in words,
        noindex=everything or "noindex" in words,
        noarchive="noarchive" in words or "nocache" in words,
    )


def _addressed(value: str, agent: str) -> Iterable[str]:
    """Yield the words of one header value that are for us: a crawler's name and a colon address what follows them."""
    ours = True
    for part in value.lower().split(","):
        name, colon, rest = part.partition(":")
        word = part.strip()
        if colon and name.strip() not in _VALUED:
            ours = name.strip() in (agent, "*")
            word = rest.strip()
        if ours:
            yield word
