"""Parses feeds and sitemaps with their dates: RSS, Atom, JSON Feed, any sitemap.

Rejects documents that declare entities, gzip inside gzip, URLs that are not http, and anything beyond the
limits.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple

from holdfast.gzip_streams import GZIP_MAGIC
from holdfast.parse.addresses import SPACE, written_link
from holdfast.parse.charset import ParseProblem, decode_text
from holdfast.parse.moments import read_moment
from holdfast.parse.xml import (
    Element,
    Repair,
    XmlBroken,
    as_is,
    based,
    elements,
    escape_ampersands,
    open_document,
)
from holdfast.values import dataclass

MAX_URLS = 50_000
_MAX_URL_CHARS = 2048

_SITEMAP_NAMES = frozenset({"loc", "link", "guid"})
_SITEMAP_ROOTS = frozenset({"urlset", "sitemapindex", "rss", "feed", "RDF"})


@dataclass(frozen=True, slots=True, kw_only=True)
class SitemapParse:
    urls: tuple[str, ...] = ()
    children: tuple[str, ...] = ()
    over: int = 0
    """Number of URLs beyond the 50,000, or too long."""
    problems: tuple[str, ...] = ()


def parse_sitemap(body: bytes, url: str) -> SitemapParse:
    """Return the URLs in a sitemap, at most 50,000, and problems. Never raises.

    `body` is without content encoding; a gzip file (`.xml.gz`) is inflated here, to at most 50 MiB. `url` is the
    sitemap's own URL.
    """
    found = _parse_sitemap(body, url, as_is)
    if ParseProblem.XML_REFERENCE in found.problems:
        # The most frequent error is a URL with a bare ampersand; everything after it can still be read.
        repaired = _parse_sitemap(body, url, escape_ampersands)
        # A repair that finds no more is useless; use the first result.
        if len(repaired.urls) + len(repaired.children) > len(found.urls) + len(found.children):
            problems = dict.fromkeys((*found.problems, *repaired.problems))
            return replace(repaired, problems=tuple(problems))
    return found


def _parse_sitemap(body: bytes, url: str, repair: Repair) -> SitemapParse:
    found = _SitemapFound(url)
    opened = open_document(body, found.note)
    if opened is None:
        return found.result()
    if opened.is_xml:
        _read_sitemap_xml(repair(opened.chunks), found)
    else:
        _read_sitemap_text(opened.addresses(), found)
    return found.result()


class _SitemapFound:
    def __init__(self, url: str) -> None:
        self._own = url
        self._urls: dict[str, None] = {}
        self._children: dict[str, None] = {}
        self._over: set[int] = set()
        self._problems: dict[str, None] = {}

    def note(self, problem: ParseProblem) -> None:
        self._problems[problem] = None

    def add(self, raw: str, *, child: bool = False) -> None:
        text = written_link(raw)
        if not text:
            return
        found = self._children if child else self._urls
        # An index that lists itself is not one of its sitemaps.
        if text in found or (child and text == self._own):
            return
        if len(text) > _MAX_URL_CHARS or len(self._urls) + len(self._children) >= MAX_URLS:
            self.note(ParseProblem.URLS_CUT)
            self._over.add(hash(text))
        else:
            found[text] = None

    def result(self) -> SitemapParse:
        return SitemapParse(
            urls=tuple(self._urls),
            children=tuple(self._children),
            over=len(self._over),
            problems=tuple(self._problems),
        )


def _read_sitemap_xml(chunks: Iterable[bytes], found: _SitemapFound) -> None:
    root = ""
    try:
        for element in elements(chunks, _SITEMAP_NAMES):
            if not root:
                root = element.name
                if root not in _SITEMAP_ROOTS:
                    found.note(ParseProblem.NOT_A_SITEMAP)
                    return
                continue
            _take(element, found)
    except XmlBroken as broken:
        found.note(ParseProblem.XML_REFERENCE if broken.by_reference else ParseProblem.XML_BROKEN)


def _take(element: Element, found: _SitemapFound) -> None:
    name, parent = element.name, element.parent
    if name == "loc":
        if parent in {"url", "sitemap"}:
            found.add(element.text, child=parent == "sitemap")
    elif name == "link" and "href" in element.attributes:
        # Atom entries, and the language variants of a sitemap's page.
        if parent in {"entry", "url"} and element.attributes.get("rel", "alternate") == "alternate":
            found.add(based(element, element.attributes["href"]))
    elif name == "link":
        if parent == "item":
            found.add(element.text)
    elif parent == "item" and element.attributes.get("isPermaLink", "true") == "true":
        found.add(element.text if element.text.startswith("http") else "")


def _read_sitemap_text(addresses: Iterable[str], found: _SitemapFound) -> None:
    for address in addresses:
        found.add(address)
    if not found.result().urls:
        found.note(ParseProblem.NOT_A_SITEMAP)


MAX_ENTRIES = 50_000
# JSON is parsed as a whole, and its values take ten times its size.
_MAX_JSON_BYTES = 10 * 1024 * 1024
# Feeds up to this size are parsed again if their declared charset is wrong; real ones are far smaller.
_MAX_MENDED_BYTES = 4 * 1024 * 1024


class FeedForm(StrEnum):
    RSS = "rss"
    ATOM = "atom"
    JSON = "json"
    SITEMAP = "sitemap"
    INDEX = "index"
    TEXT = "text"

    @property
    def is_feed(self) -> bool:
        """True for feeds, which list recent entries; sitemaps list everything."""
        return self in (FeedForm.RSS, FeedForm.ATOM, FeedForm.JSON)


class FeedEntry(NamedTuple):
    url: str
    told_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedParse:
    """The content of one document. URLs may be relative; the caller resolves and filters them."""

    form: FeedForm | None = None
    entries: tuple[FeedEntry, ...] = ()
    children: tuple[FeedEntry, ...] = ()
    problems: tuple[str, ...] = ()

    @property
    def failure(self) -> str | None:
        """The reason why nothing could be read; None for an empty feed, and for one with entries before it breaks."""
        broken = next((problem for problem in self.problems if problem in _FATAL), None)
        return None if self.entries or self.children else broken


_FATAL = frozenset(
    {
        ParseProblem.XML_BROKEN,
        ParseProblem.XML_REFERENCE,
        ParseProblem.XML_ENTITIES,
        ParseProblem.HTML_INSTEAD,
        ParseProblem.NOT_A_SITEMAP,
        ParseProblem.JSON_BROKEN,
        ParseProblem.GZIP_BROKEN,
        ParseProblem.GZIP_NESTED,
        ParseProblem.BODY_CUT,
    }
)
_ROOTS = {
    "rss": (FeedForm.RSS, "item"),
    "RDF": (FeedForm.RSS, "item"),
    "feed": (FeedForm.ATOM, "entry"),
    "urlset": (FeedForm.SITEMAP, "url"),
    "sitemapindex": (FeedForm.INDEX, "sitemap"),
}
_LINKS = frozenset({"link", "loc"})
_IDS = frozenset({"guid", "id"})
_DATES = frozenset({"pubDate", "date", "updated", "published", "modified", "issued", "lastmod", "publication_date"})
_NAMES = _LINKS | _IDS | _DATES | {"item", "entry", "url", "sitemap"}


def parse_feed(body: bytes, *, charset: str | None = None) -> FeedParse:
    """Return the URLs in a feed or a sitemap, at most 50,000, and problems.

    Never raises. `body` is without content encoding; a gzip file is inflated here. `charset` is the header's.
    """
    found = _parse(body, as_is)
    if ParseProblem.XML_REFERENCE in found.problems:
        found = _better(found, _parse(body, escape_ampersands))
    if ParseProblem.XML_BROKEN in found.problems and len(body) <= _MAX_MENDED_BYTES and not body.startswith(GZIP_MAGIC):
        # Declared as UTF-8 but invalid: decode it as a browser would, and parse it again.
        text, _ = decode_text(body, charset)
        found = _better(found, _parse(_undeclared(text).encode("utf-8", "replace"), escape_ampersands))
    return found


def _better(one: FeedParse, other: FeedParse) -> FeedParse:
    if len(other.entries) + len(other.children) <= len(one.entries) + len(one.children):
        return one
    return replace(other, problems=tuple(dict.fromkeys((*one.problems, *other.problems))))


def _undeclared(text: str) -> str:
    text = text.lstrip("\ufeff" + SPACE)
    return text.partition("?>")[2] if text.startswith("<?xml") else text


def _parse(body: bytes, repair: Repair) -> FeedParse:
    found = _Found()
    opened = open_document(body, found.note)
    if opened is None:
        return found.result()
    if opened.is_xml:
        _read_xml(repair(opened.chunks), found)
    elif opened.head.startswith(b"{"):
        _read_json(opened.chunks, found)
    else:
        _read_text(opened.addresses(), found)
    return found.result()


class _Found:
    def __init__(self) -> None:
        self.form: FeedForm | None = None
        self._entries: dict[str, datetime | None] = {}
        self._problems: dict[str, None] = {}

    def note(self, problem: ParseProblem) -> None:
        self._problems[problem] = None

    @property
    def full(self) -> bool:
        return len(self._entries) >= MAX_ENTRIES

    def add(self, url: str, dates: Iterable[datetime]) -> bool:
        if len(url) > _MAX_URL_CHARS or self.full:
            self.note(ParseProblem.URLS_CUT)
            return not self.full
        known = self._entries.get(url)
        # A feed may list a URL twice; its newest date counts.
        self._entries[url] = max((*dates, *([known] if known else ())), default=None)
        return True

    def result(self) -> FeedParse:
        entries = tuple(FeedEntry(url, at) for url, at in self._entries.items())
        is_index = self.form is FeedForm.INDEX
        return FeedParse(
            form=self.form,
            entries=() if is_index else entries,
            children=entries if is_index else (),
            problems=tuple(self._problems),
        )


class _Item:
    def __init__(self) -> None:
        self.links: list[str] = []
        self.ids: list[str] = []
        self.dates: list[datetime] = []

    def take(self, element: Element) -> None:
        name, attributes = element.name, element.attributes
        if name in _DATES:
            if (moment := read_moment(element.text, of_item=True)) is not None:
                self.dates.append(moment)
        elif name in _IDS:
            self.ids.append(element.text)
        elif "href" not in attributes:
            self.links.append(based(element, element.text))
        elif element.parent == "entry" and attributes.get("rel", "alternate") == "alternate":
            self.links.append(based(element, attributes["href"]))

    def url(self, about: str) -> str | None:
        for link in self.links:
            if text := written_link(link):
                return text
        return next((text.strip(SPACE) for text in (*self.ids, about) if _is_http(text)), None)


def _is_http(text: str) -> bool:
    return text.strip(SPACE)[:8].lower().startswith(("http://", "https://"))


def _read_xml(chunks: Iterable[bytes], found: _Found) -> None:
    try:
        parts = elements(chunks, _NAMES)
        root = next(parts, None)
        form, boundary = _ROOTS.get(root.name if root else "", (None, ""))
        if form is None:
            found.note(ParseProblem.NOT_A_SITEMAP)
            return
        found.form = form
        for url, dates in _items(parts, boundary):
            if not found.add(url, dates):
                return
    except XmlBroken as broken:
        found.note(ParseProblem.XML_REFERENCE if broken.by_reference else ParseProblem.XML_BROKEN)


def _items(parts: Iterator[Element], boundary: str) -> Iterator[tuple[str, list[datetime]]]:
    item, inside = _Item(), (boundary, "news")
    for element in parts:
        if element.name == boundary:
            if (url := item.url(element.attributes.get("about", ""))) is not None:
                yield url, item.dates
            item = _Item()
        elif element.parent in inside:
            item.take(element)


def _read_json(chunks: Iterable[bytes], found: _Found) -> None:
    body = b"".join(chunks)
    try:
        # RecursionError: brackets that are nested thousands deep.
        content: Any = json.loads(body) if len(body) <= _MAX_JSON_BYTES else None
    except (ValueError, RecursionError):
        found.note(ParseProblem.JSON_BROKEN)
        return
    items = content.get("items") if isinstance(content, dict) else None
    if not isinstance(items, list):
        found.note(ParseProblem.NOT_A_SITEMAP)
        return
    found.form = FeedForm.JSON
    for item in items:
        if isinstance(item, dict) and not _take_json(item, found):
            return


def _take_json(item: dict[str, Any], found: _Found) -> bool:
    parts = _Item()
    parts.links = [_text(item.get("url")), _text(item.get("external_url"))]
    parts.ids = [_text(item.get("id"))]
    dates = [read_moment(_text(item.get(name)), of_item=True) for name in ("date_modified", "date_published")]
    url = parts.url("")
    return True if url is None else found.add(url, [at for at in dates if at is not None])


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _read_text(addresses: Iterable[str], found: _Found) -> None:
    for address in addresses:
        found.form = FeedForm.TEXT
        if not found.add(address, ()):
            return
    if found.form is None:
        found.note(ParseProblem.NOT_A_SITEMAP)
