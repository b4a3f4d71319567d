"""What to ask for first, by document 002's table of three levels. A guess from spelling and depth alone."""

from __future__ import annotations

import re
from typing import Final

HIGH: Final = 3
MEDIUM: Final = 2
LOW: Final = 1

_SHALLOW_DEPTH: Final = 2
_DEEP_DEPTH: Final = 4

_HOMEPAGE = re.compile(r"/(?:index\.[a-z]{3,5})?")
_LISTING_PATH = re.compile(
    r"/(?:tags?|categor(?:y|ies)|archives?|authors?)(?:/|$)"
    r"|/page[/\-_]?\d+(?:\.[a-z]+|/)?$"
    r"|/(?:19|20)\d\d(?:/\d{1,2}){0,2}/?$"
)
_LISTING_QUERY = re.compile(r"(?:^|&)(?:page|paged|pg|offset|start|sort|order|orderby|filter)(?:=|\[|%5b)")
_CONTENT_PATH = re.compile(
    r"/(?:about|contact)(?:[\-_]?us)?(?:\.[a-z]+)?(?:/|$)"
    r"|/(?:blog|news|articles?|posts?|stor(?:y|ies))(?:/|$)"
)


def priority(url: str, depth: int | None, is_seed: bool = False) -> int:
    """Return 3, 2 or 1 for a normalised address; no depth (None) means: judge it by its spelling alone.

    The table's rows overlap, so the first that holds decides:

    1. a seed or a homepage (root or index file, no query): 3
    2. a page of a listing, or an archive (page numbers, sort orders, tags, categories, authors, years): 1. This comes
       before depth, because every site links its listings from the first page, and by depth alone a thousand
       calendar pages would be asked for before the first article
    3. depth 2 or less: 3
    4. /about, /contact, blog posts, news and articles: 2, at any depth
    5. other content pages: 2 down to depth 3, deeper: 1
    """
    if is_seed:
        return HIGH
    head, _, query = url.partition("?")
    start = head.find("/", 8)
    path = head[start:].lower() if start > 0 else "/"
    if not query and _HOMEPAGE.fullmatch(path):
        return HIGH
    if _LISTING_PATH.search(path) or (query and _LISTING_QUERY.search(query.lower())):
        return LOW
    if depth is None:
        return MEDIUM
    if depth <= _SHALLOW_DEPTH:
        return HIGH
    return MEDIUM if depth < _DEEP_DEPTH or _CONTENT_PATH.search(path) else LOW
