"""A page's metadata: author, dates, keywords, and type of page, from its head and its structured data.

Sources from the most to the least deliberate: JSON-LD, OpenGraph and other metas, microdata. Dates must be in a
standard form and between 1990 and 2100, so that no clock is needed. Never raises.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from datetime import datetime
from enum import StrEnum
from typing import Any, Final, NamedTuple

from selectolax.lexbor import LexborHTMLParser, LexborNode

from holdfast.parse.addresses import SPACE
from holdfast.parse.html import ROBOTS_METAS
from holdfast.parse.moments import read_moment
from holdfast.parse.text import clean_line

_ADDRESS_CHARS, _DETAIL_CHARS = 8192, 500
_MAX_DETAILS = 24
_KEPT_METAS = ("og:", "article:", "dcterms.", "dc.")
AUTHOR_CHARS = 200
_MAX_AUTHORS = 5
_MAX_KEYWORDS, _KEYWORD_CHARS = 32, 60

_PUBLISHED = (
    *("article:published_time", "citation_publication_date", "dcterms.issued", "dcterms.created", "dc.date.issued"),
    *("parsely-pub-date", "datepublished", "pubdate", "publishdate", "publication_date", "dcterms.date", "dc.date"),
    *("date",),
)
_MODIFIED = (
    *("article:modified_time", "og:updated_time", "dcterms.modified", "dc.date.modified", "datemodified"),
    *("last-modified", "lastmod", "revised"),
)
_AUTHOR = ("author", "article:author", "citation_author", "dcterms.creator", "dc.creator", "parsely-author", "byl")
_KEYWORDS = ("keywords", "news_keywords", "article:tag", "parsely-tags", "dcterms.subject", "dc.subject")
_NAMED = frozenset({*_PUBLISHED, *_MODIFIED, *_AUTHOR, *_KEYWORDS})


class PageType(StrEnum):
    ARTICLE = "article"
    LISTING = "listing"
    HOME = "home"
    PRODUCT = "product"
    REFERENCE = "reference"
    FORM = "form"
    MEDIA = "media"
    OTHER = "other"


class Head:
    __slots__ = ("base", "canonical", "description", "details", "language", "named", "robots")

    def __init__(self) -> None:
        self.base: str | None = None
        self.canonical: str | None = None
        """Addresses as written: the first of each that says one."""
        self.description: str | None = None
        self.language: str | None = None
        self.robots: list[str] = []
        self.details: dict[str, str] = {}
        self.named: dict[str, list[str]] = {}
        """By name, those that tell author, dates and keywords."""

    def read(self, node: LexborNode) -> None:
        """Read one element: a meta, a base, or the link to the canonical URL."""
        attributes = node.attributes
        if node.tag != "meta":
            href = (attributes.get("href") or "").strip(SPACE)[:_ADDRESS_CHARS] or None
            if node.tag == "base":
                self.base = self.base or href
            else:
                self.canonical = self.canonical or href
            return
        content = attributes.get("content")
        if not content:
            return
        name = (attributes.get("name") or attributes.get("property") or attributes.get("http-equiv") or "").strip()
        name = name.lower()
        if name == "description":
            self.description = self.description or content
        elif name in ROBOTS_METAS:
            self.robots.append(content)
        elif name in ("content-language", "language", "dcterms.language"):
            self.language = self.language or content
        else:
            if name in _NAMED:
                known = self.named.setdefault(name, [])
                if len(known) < _MAX_KEYWORDS:
                    known.append(content[:4096])
            if name.startswith(_KEPT_METAS) and len(self.details) < _MAX_DETAILS and len(name) <= 64:
                self.details.setdefault(name, clean_line(content, _DETAIL_CHARS))

    def values(self, names: Iterable[str]) -> Iterator[str]:
        for name in names:
            yield from self.named.get(name, ())


_MAX_SCRIPTS, _LDJSON_CHARS, _MAX_NODES = 5, 256 * 1024, 50
_VALUE_CHARS = 300
_WANTED = ("@type", "headline", "name", "datePublished", "dateModified", "author", "publisher", "inLanguage", "isbn")
_MAX_TYPES = 50


class LinkedData:
    __slots__ = ("authors", "body", "details", "keywords", "modified", "published", "types")

    def __init__(self) -> None:
        self.details: dict[str, str] = {}
        self.types: set[str] = set()
        self.authors: list[str] = []
        self.keywords: list[str] = []
        self.published: str | None = None
        self.modified: str | None = None
        self.body = ""

    def read(self, tree: LexborHTMLParser) -> None:
        for script in tree.css('script[type="application/ld+json" i]')[:_MAX_SCRIPTS]:
            text = script.text()
            if len(text) > _LDJSON_CHARS:
                continue
            try:
                content = json.loads(text)
            except (ValueError, RecursionError):
                continue
            for node in _nodes(content):
                self._take(node)

    def _take(self, node: dict[str, Any]) -> None:
        for name in _WANTED:
            if value := _value(node.get(name)):
                self.details.setdefault(f"ld:{name.removeprefix('@')}", value)
        if len(self.types) < _MAX_TYPES:
            self.types.update(_texts(node.get("@type")))
        self.authors = self.authors or _texts(node.get("author") or node.get("creator"))
        self.keywords = self.keywords or _texts(node.get("keywords"))
        self.published = self.published or _value(node.get("datePublished"))
        self.modified = self.modified or _value(node.get("dateModified"))
        body = node.get("articleBody")
        if isinstance(body, str) and not self.body:
            self.body = body


def _nodes(content: Any) -> Iterator[dict[str, Any]]:
    waiting, left = [content], _MAX_NODES
    while waiting and left > 0:
        left -= 1
        one = waiting.pop(0)
        if isinstance(one, list):
            waiting += one[:_MAX_NODES]
        elif isinstance(one, dict):
            for name in ("@graph", "mainEntity"):
                inner = one.get(name)
                waiting += inner[:_MAX_NODES] if isinstance(inner, list) else [inner] if inner else []
            yield one


def _value(value: Any) -> str:
    for _ in range(4):
        if isinstance(value, list):
            value = value[0] if value else None
        elif isinstance(value, dict):
            value = value.get("name") or value.get("@id")
    return clean_line(value, _VALUE_CHARS) if isinstance(value, str) else ""


def _texts(value: Any) -> list[str]:
    ones = value[:_MAX_KEYWORDS] if isinstance(value, list) else [value]
    return [text for one in ones if (text := _value(one))]


class Microdata(NamedTuple):
    authors: list[str]
    published: str | None
    modified: str | None
    keywords: list[str]
    types: set[str]


_NO_MICRODATA: Final = Microdata([], None, None, [], set())
_MAX_ITEMS = 400
# Limit for all items together: nested elements repeat the same text.
_ITEMS_CHARS = 1_000_000


def read_microdata(tree: LexborHTMLParser) -> Microdata:
    authors, keywords, moments = list[str](), list[str](), dict[str, str]()
    left = _ITEMS_CHARS

    def text_of(node: LexborNode) -> str:
        nonlocal left
        text = node.text() if left > 0 else ""
        left -= len(text)
        return text[:1000]

    for node in tree.css("[itemprop~=author],[itemprop~=datePublished],[itemprop~=dateModified],[itemprop~=keywords]")[
        :_MAX_ITEMS
    ]:
        attributes = node.attributes
        stated = attributes.get("content") or attributes.get("datetime")
        names = (attributes.get("itemprop") or "").split()
        if "author" in names:
            inner = node.css_first("[itemprop~=name]") if stated is None else None
            value = stated or text_of(inner or node)
            if len(authors) < _MAX_AUTHORS and (line := clean_line(value, AUTHOR_CHARS)):
                authors.append(line)
        elif "keywords" in names:
            keywords.append(stated or text_of(node))
        else:
            for name in names:
                moments.setdefault(name, stated or text_of(node)[:64])
    types = set[str]()
    for node in tree.css("[itemtype]")[:_MAX_TYPES]:
        types.update(one.rstrip("/").rpartition("/")[2] for one in (node.attributes.get("itemtype") or "").split())
    return Microdata(authors, moments.get("datePublished"), moments.get("dateModified"), keywords, types)


class AboutPage(NamedTuple):
    author: str | None
    published: datetime | None
    modified: datetime | None
    keywords: tuple[str, ...]
    types: frozenset[str]
    """Its stated types, in the vocabulary of schema.org."""


def about_page(head: Head, data: LinkedData, items: Microdata = _NO_MICRODATA) -> AboutPage:
    return AboutPage(
        author=_author(data.authors) or _author(head.values(_AUTHOR)) or _author(items.authors),
        published=_first_moment((data.published, *head.values(_PUBLISHED), items.published)),
        modified=_first_moment((data.modified, *head.values(_MODIFIED), items.modified)),
        keywords=read_keywords((*data.keywords, *head.values(_KEYWORDS), *items.keywords)),
        types=frozenset(data.types | items.types),
    )


def _first_moment(texts: Iterable[str | None]) -> datetime | None:
    return next((moment for text in texts if (moment := read_moment(text)) is not None), None)


def _author(names: Iterable[str]) -> str | None:
    found: dict[str, None] = {}
    for name in names:
        line = clean_line(name, AUTHOR_CHARS)
        # Some give the URL of a profile instead of a name.
        if line and "://" not in line and len(found) < _MAX_AUTHORS:
            found[line] = None
    return ", ".join(found)[:AUTHOR_CHARS] or None


def read_keywords(texts: Iterable[str]) -> tuple[str, ...]:
    found: dict[str, str] = {}
    for text in texts:
        for piece in re.split(r"[,;\n、，；]", text[:4096]):
            word = clean_line(piece, _KEYWORD_CHARS)
            if word and len(found) < _MAX_KEYWORDS:
                found.setdefault(word.casefold(), word)
    return tuple(found.values())


_ARTICLES = frozenset(
    {
        *("Article", "NewsArticle", "BlogPosting", "ReportageNewsArticle", "AnalysisNewsArticle", "OpinionNewsArticle"),
        *("ScholarlyArticle", "Report", "AdvertiserContentArticle", "SatiricalArticle", "LiveBlogPosting"),
        *("DiscussionForumPosting", "SocialMediaPosting", "Review", "Recipe"),
    }
)
_REFERENCES = frozenset({"TechArticle", "APIReference", "DefinedTerm", "DefinedTermSet", "FAQPage", "QAPage", "HowTo"})
_PRODUCTS = frozenset({"Product", "ProductGroup", "Offer", "Vehicle", "Book", "SoftwareApplication"})
_MEDIA = frozenset({"VideoObject", "AudioObject", "ImageGallery", "ImageObject", "PodcastEpisode", "Movie"})
_LISTS = frozenset({"CollectionPage", "SearchResultsPage", "ItemList", "Blog"})
_HOME_PATH = re.compile(r"/?|/(?:index|home|default|accueil|welcome)(?:\.\w{1,5})?/?|/[a-z]{2}(?:-[a-z]{2})?/?", re.I)
# A common measure: twenty links, and fewer than ten words for each.
_LIST_LINKS, _WORDS_A_LINK = 20, 10
_ARTICLE_WORDS, _FORM_WORDS, _MEDIA_WORDS, _TEXT_WORDS = 120, 150, 200, 200
_REFERENCE_TERMS, _WORDS_A_TERM = 5, 200


class PageTraits(NamedTuple):
    url: str
    og_type: str
    types: frozenset[str]
    words: int
    links: int
    terms: int
    has_article: bool
    has_form: bool
    has_title: bool
    is_signed: bool


def page_type(traits: PageTraits) -> PageType:
    path = traits.url.partition("://")[2].partition("#")[0]
    host, slash, rest = path.partition("/")
    if host and "?" not in path and _HOME_PATH.fullmatch(slash + rest):
        return PageType.HOME
    said = _said(traits)
    if said is not None:
        return said
    if traits.has_form and traits.words < _FORM_WORDS:
        return PageType.FORM
    if traits.links >= _LIST_LINKS and traits.words < traits.links * _WORDS_A_LINK:
        return PageType.LISTING
    if traits.words >= _ARTICLE_WORDS and traits.is_signed:
        return PageType.ARTICLE
    if traits.terms >= _REFERENCE_TERMS and traits.words < traits.terms * _WORDS_A_TERM:
        return PageType.REFERENCE
    # Long running text under a title is an article, whatever its markup.
    least = _ARTICLE_WORDS if traits.has_article else _TEXT_WORDS
    return PageType.ARTICLE if traits.words >= least and (traits.has_article or traits.has_title) else PageType.OTHER


def _said(traits: PageTraits) -> PageType | None:
    og_type, types = traits.og_type.lower(), traits.types
    if types & _REFERENCES:
        return PageType.REFERENCE
    if types & _ARTICLES or og_type == "article":
        return PageType.ARTICLE
    if types & _PRODUCTS or og_type.startswith("product"):
        return PageType.PRODUCT
    if types & _LISTS:
        return PageType.LISTING
    if traits.words < _MEDIA_WORDS and (types & _MEDIA or og_type.startswith(("video", "music"))):
        return PageType.MEDIA
    return None
