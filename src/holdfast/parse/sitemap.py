"""Sitemaps in every form that sites publish: XML, index, text, RSS, Atom, gzipped or not. Takes what can be read.

Refuses documents that declare entities, gzip inside gzip, and anything past the protocol's limits.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from holdfast.parse.address import written_link
from holdfast.parse.problems import Problem
from holdfast.parse.stream import Repair, as_is, escape_ampersands, open_document
from holdfast.parse.xml import Element, XmlBroken, based, elements
from holdfast.values import dataclass

MAX_URLS = 50_000
_MAX_URL_CHARS = 2048

_NAMES = frozenset({"loc", "link", "guid"})
_ROOTS = frozenset({"urlset", "sitemapindex", "rss", "feed", "RDF"})


@dataclass(frozen=True, slots=True, kw_only=True)
class SitemapParse:
    """What one sitemap lists. Addresses are as written; the caller resolves and judges them."""

    urls: tuple[str, ...] = ()
    children: tuple[str, ...] = ()
    """Sitemaps that an index names, without the index itself."""
    problems: tuple[str, ...] = ()


def parse_sitemap(body: bytes, url: str) -> SitemapParse:
    """Return what a sitemap lists, at most 50,000 addresses, and notes on what could not be read. Never raises.

    `body` is without content encoding; a gzip file (`.xml.gz`) is inflated here, to at most 50 MiB. `url` is its own
    address.
    """
    found = _parse(body, url, as_is)
    if Problem.XML_REFERENCE in found.problems:
        # The commonest break is an address with a bare ampersand; everything behind it can still be read.
        repaired = _parse(body, url, escape_ampersands)
        if len(repaired.urls) + len(repaired.children) > len(found.urls) + len(found.children):
            problems = dict.fromkeys((*found.problems, *repaired.problems))
            return replace(repaired, problems=tuple(problems))
    return found


def _parse(body: bytes, url: str, repair: Repair) -> SitemapParse:
    found = _Found(url)
    opened = open_document(body, found.note)
    if opened is None:
        return found.result()
    if opened.is_xml:
        _read_xml(repair(opened.chunks), found)
    else:
        _read_text(opened.addresses(), found)
    return found.result()


class _Found:
    """What has been read so far."""

    def __init__(self, url: str) -> None:
        self._own = url
        self._urls: dict[str, None] = {}
        self._children: dict[str, None] = {}
        self._problems: dict[str, None] = {}

    def note(self, problem: Problem) -> None:
        self._problems[problem] = None

    def add(self, raw: str, *, child: bool = False) -> None:
        text = written_link(raw)
        if not text:
            return
        if len(text) > _MAX_URL_CHARS or self.full:
            self.note(Problem.URLS_CUT)
        elif not child:
            self._urls[text] = None
        elif text != self._own:
            self._children[text] = None

    @property
    def full(self) -> bool:
        return len(self._urls) + len(self._children) >= MAX_URLS

    def result(self) -> SitemapParse:
        return SitemapParse(urls=tuple(self._urls), children=tuple(self._children), problems=tuple(self._problems))


def _read_xml(chunks: Iterable[bytes], found: _Found) -> None:
    root = ""
    try:
        for element in elements(chunks, _NAMES):
            if not root:
                root = element.name
                if root not in _ROOTS:
                    found.note(Problem.NOT_A_SITEMAP)
                    return
                continue
            _take(element, found)
            if found.full:
                found.note(Problem.URLS_CUT)
                return
    except XmlBroken as broken:
        found.note(Problem.XML_REFERENCE if broken.by_reference else Problem.XML_BROKEN)


def _take(element: Element, found: _Found) -> None:
    """Add the address that an element of a sitemap, an index or a feed holds."""
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


def _read_text(addresses: Iterable[str], found: _Found) -> None:
    for address in addresses:
        found.add(address)
        if found.full:
            found.note(Problem.URLS_CUT)
            return
    if not found.result().urls:
        found.note(Problem.NOT_A_SITEMAP)
