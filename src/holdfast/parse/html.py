"""Parses one HTML tree in one walk: title, description, language, base, links, resources, robots directives.

URLs are returned as written, trimmed and without fragment; the caller resolves them against `base` or the
page's URL.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from selectolax.lexbor import LexborHTMLParser, LexborNode

from holdfast.parse.addresses import MAX_SRCSET_CHARS, SPACE, NamedUrls, address, gather_css, refresh, srcset
from holdfast.parse.charset import DecodedText, ParseProblem
from holdfast.parse.content import read_content, telling_words
from holdfast.parse.scripts import import_map_links, script_links
from holdfast.parse.text import (
    LAST_NUMBERED,
    canonical_tag,
    clean_line,
    guess_language,
    text_sample,
    tree_of,
    without_marks,
)
from holdfast.types import ParsedPage

# Directives with a value after a colon: any other word before a colon names a crawler.
_VALUED = frozenset({"unavailable_after", "max-snippet", "max-image-preview", "max-video-preview"})
_MAX_CHARS = 4096


class Directives(NamedTuple):
    nofollow: bool = False
    noindex: bool = False
    noarchive: bool = False


AGENT: Final = "holdfast"
"""Our robots token: every User-Agent that we send contains it, whatever a source adds."""
ROBOTS_METAS: Final = frozenset({"robots", AGENT})


def read_directives(headers: Iterable[str], metas: Iterable[str]) -> Directives:
    """Return the combined directives of all `X-Robots-Tag` values and all ROBOTS_METAS, for the crawl and the
    index.
    """
    words: set[str] = set()
    for value in headers:
        words.update(_addressed(value[:_MAX_CHARS]))
    for value in metas:
        words.update(word.strip() for word in value[:_MAX_CHARS].lower().replace(";", ",").split(","))
    # `none` stands for noindex and nofollow together.
    everything = "none" in words
    return Directives(
        nofollow=everything or "nofollow" in words,
        noindex=everything or "noindex" in words,
        noarchive="noarchive" in words or "nocache" in words,
    )


def _addressed(value: str) -> Iterable[str]:
    """Yield the words of one header value that apply to us: a crawler's name and a colon address what follows them."""
    ours = True
    for part in value.lower().split(","):
        name, colon, rest = part.partition(":")
        word = part.strip()
        # `googlebot: noindex, nofollow`: both words are for that crawler, up to the next name.
        if colon and name.strip() not in _VALUED:
            ours = name.strip() in (AGENT, "*")
            word = rest.strip()
        if ours:
            yield word


_TITLE_CHARS, _DESCRIPTION_CHARS = 500, 1000
_LANGUAGE_SAMPLE_CHARS = 1000
_MAX_STYLE_CHARS = 1024 * 1024

_REMEMBERED_CHARS = 512
# The pages of a site share most of their links, and this step is a fifth of the cost of a link. Long ones are not
# cached: a page may have megabytes of them.
_remembered = lru_cache(maxsize=4096)(address)


class _Harvest:
    __slots__ = (
        "base",
        "canonical",
        "description",
        "language",
        "links",
        "og_description",
        "og_title",
        "refreshes",
        "resources",
        "robots",
        "sent_language",
        "title",
    )

    def __init__(self) -> None:
        self.links = NamedUrls()
        self.resources = NamedUrls()
        self.robots: list[str] = []
        self.base: str | None = None
        self.canonical: str | None = None
        self.title: str | None = None
        self.og_title: str | None = None
        self.description: str | None = None
        self.og_description: str | None = None
        self.language: str | None = None
        self.sent_language: str | None = None
        self.refreshes = False

    def follow(self, raw: str | None, rel: str) -> str:
        url = "" if not raw else _remembered(raw) if len(raw) <= _REMEMBERED_CHARS else address(raw)
        if url:
            links = self.links
            known = links.get(url)
            if known is None:
                links.take(url, rel)
            # The same address, linked plainly elsewhere on the page.
            elif known == "nofollow":
                links[url] = rel
        return url

    def need(self, raw: str | None, rel: str) -> None:
        if raw and (url := address(raw)):
            self.resources.take(url, rel)

    def need_set(self, value: str | None) -> None:
        if value:
            for url in srcset(value):
                self.resources.take(url, "img")
            if len(value) > MAX_SRCSET_CHARS:
                # Start after the candidate that the limit cuts through, which is often a large data: URL.
                self.resources.over += len(srcset(value[MAX_SRCSET_CHARS:].partition(",")[2]))

    def need_style(self, text: str | None) -> None:
        if text and ("(" in text or "@" in text):
            gather_css(text[:_MAX_STYLE_CHARS], self.resources)
            self.resources.over += len(text) > _MAX_STYLE_CHARS


_Reader = Callable[[_Harvest, LexborNode], None]


def parse_html(
    source: DecodedText, *, x_robots: Sequence[str] = (), want_text: bool = False, notes: Sequence[str] = ()
) -> ParsedPage:
    """Parse a page; `notes` are earlier problems, listed first in its own.

    Raises what selectolax raises (out of memory); `parse_page` catches it.
    """
    tree = tree_of(source.content)
    page = _Harvest()
    _walk(tree, page)
    directives = read_directives(x_robots, page.robots)
    language = canonical_tag(page.language) or canonical_tag(page.sent_language)
    # Do this before `read_content`, which removes hidden elements from the tree.
    sample = None if language else text_sample(tree, _LANGUAGE_SAMPLE_CHARS)
    text = without_marks(read_content(tree, telling_words(source.content)).text) if want_text else None
    return ParsedPage(
        title=_first_line((page.title, page.og_title), _TITLE_CHARS),
        description=_first_line((page.description, page.og_description), _DESCRIPTION_CHARS),
        charset=source.charset,
        language=language or guess_language(sample or ""),
        canonical=page.canonical,
        base=page.base,
        text=text,
        links=page.links.listed(),
        resources=page.resources.listed(),
        links_over=page.links.over,
        resources_over=page.resources.over,
        nofollow=directives.nofollow,
        noindex=directives.noindex,
        problems=(*notes, *source.problems, *_problems(page, noarchive=directives.noarchive)),
    )


def _walk(tree: LexborHTMLParser, page: _Harvest) -> None:
    root = tree.root
    if root is None:
        return
    reader_of = _READERS.get
    for node in root.traverse():
        number = node.tag_id
        read = reader_of(number)
        if read is not None:
            read(page, node)
        elif number > LAST_NUMBERED and node.tag == "use":
            _read_svg_image(page, node)
    # Use a selector, which runs inside the library: few elements have such a style.
    for node in tree.css('[style*="url(" i]'):
        page.need_style(node.attributes.get("style"))


def _first_line(texts: tuple[str | None, ...], limit: int) -> str | None:
    for text in texts:
        if text and (line := clean_line(text, limit)):
            return line
    return None


def _problems(page: _Harvest, *, noarchive: bool) -> tuple[str, ...]:
    problems: list[str] = []
    if page.links.over:
        problems.append(ParseProblem.LINKS_CUT)
    if page.resources.over:
        problems.append(ParseProblem.RESOURCES_CUT)
    if noarchive:
        problems.append(ParseProblem.NOARCHIVE)
    return tuple(problems)


def _read_root(page: _Harvest, node: LexborNode) -> None:
    attributes = node.attributes
    page.language = attributes.get("lang") or attributes.get("xml:lang")


def _read_body(page: _Harvest, node: LexborNode) -> None:
    page.need(node.attributes.get("background"), "img")


def _read_title(page: _Harvest, node: LexborNode) -> None:
    if page.title is None:
        parent = node.parent
        # Drawings have titles of their own.
        if parent is None or parent.tag in {"head", "body", "html", "div"}:
            page.title = node.text()


def _read_base(page: _Harvest, node: LexborNode) -> None:
    if page.base is None:
        href = node.attributes.get("href")
        page.base = (href or "").strip(SPACE)[:8192] or None


def _read_anchor(page: _Harvest, node: LexborNode) -> None:
    attributes = node.attributes
    href = attributes.get("href") or attributes.get("xlink:href")
    if href and href[0] != "#":
        page.follow(href, "nofollow" if "rel" in attributes and _is_discouraged(attributes["rel"]) else "a")


def _read_area(page: _Harvest, node: LexborNode) -> None:
    attributes = node.attributes
    page.follow(attributes.get("href"), "nofollow" if _is_discouraged(attributes.get("rel")) else "area")


def _is_discouraged(rel: str | None) -> bool:
    return bool(rel) and not _DISCOURAGING.isdisjoint((rel or "").lower().split())


_DISCOURAGING = frozenset({"nofollow", "ugc", "sponsored"})
_FEED_TYPES = frozenset({"application/rss+xml", "application/atom+xml", "application/feed+json"})
_PRELOADED = {"style": "css", "script": "script", "font": "font", "image": "img", "video": "media", "audio": "media"}
_ICONS = frozenset({"icon", "apple-touch-icon", "apple-touch-icon-precomposed", "mask-icon", "fluid-icon"})
_NEIGHBOURS = {"next": "next", "prev": "prev", "previous": "prev", "sitemap": "sitemap"}


def _read_link(page: _Harvest, node: LexborNode) -> None:
    attributes = node.attributes
    href = attributes.get("href")
    rels = set((attributes.get("rel") or "").lower().split())
    if "stylesheet" in rels:
        page.need(href, "css")
    elif not _ICONS.isdisjoint(rels):
        page.need(href, "icon")
    elif "preload" in rels:
        page.need(href, _PRELOADED.get((attributes.get("as") or "").lower(), "preload"))
        page.need_set(attributes.get("imagesrcset"))
    elif "modulepreload" in rels:
        page.need(href, "script")
    elif "manifest" in rels:
        page.need(href, "manifest")
    elif "import" in rels:
        page.need(href, "frame")
    elif "canonical" in rels:
        page.canonical = page.canonical or page.follow(href, "canonical") or None
    elif "alternate" in rels:
        page.follow(href, "feed" if (attributes.get("type") or "").strip().lower() in _FEED_TYPES else "alternate")
    else:
        for rel in rels & _NEIGHBOURS.keys():
            page.follow(href, _NEIGHBOURS[rel])


def _read_meta(page: _Harvest, node: LexborNode) -> None:
    attributes = node.attributes
    content = attributes.get("content")
    if not content:
        return
    name = (attributes.get("name") or attributes.get("property") or attributes.get("http-equiv") or "").strip().lower()
    if name == "description":
        page.description = page.description or content
    elif name in ROBOTS_METAS:
        page.robots.append(content)
    elif name == "og:description":
        page.og_description = page.og_description or content
    elif name == "og:title":
        page.og_title = page.og_title or content
    elif name == "refresh" and "http-equiv" in attributes:
        # A browser follows the first valid one; a page with a thousand of them leads only there.
        page.refreshes = page.refreshes or bool(page.follow(refresh(content), "refresh"))
    elif name == "content-language":
        page.sent_language = page.sent_language or content


def _read_style(page: _Harvest, node: LexborNode) -> None:
    # Read only its own text: in SVG style elements nest, and the text below each of them would be read once for each
    # above.
    page.need_style(node.text(deep=False))


def _read_script(page: _Harvest, node: LexborNode) -> None:
    attributes = node.attributes
    if source := attributes.get("src"):
        page.need(source, "script")
        return
    kind = (attributes.get("type") or "").strip().lower()
    # Data blocks such as JSON-LD and templates are not scripts; they are the longest.
    if kind == "importmap":
        import_map_links(node.text(deep=False), page.resources)
    elif not kind or kind == "module" or kind.endswith("javascript"):
        script_links(node.text(deep=False), page.resources, is_inline=True)


def _read_image(page: _Harvest, node: LexborNode) -> None:
    attributes = node.attributes
    page.need(attributes.get("src"), "img")
    if len(attributes) > 1:
        page.need_set(attributes.get("srcset"))
        # Lazy loaders store the real URL here until a script moves it.
        page.need(attributes.get("data-src"), "img")
        page.need_set(attributes.get("data-srcset"))


def _read_source(page: _Harvest, node: LexborNode) -> None:
    attributes = node.attributes
    page.need(attributes.get("src") or attributes.get("data-src"), "media")
    page.need_set(attributes.get("srcset"))
    page.need_set(attributes.get("data-srcset"))


def _read_media(page: _Harvest, node: LexborNode) -> None:
    attributes = node.attributes
    page.need(attributes.get("src") or attributes.get("data-src"), "media")
    page.need(attributes.get("poster"), "img")


def _read_frame(page: _Harvest, node: LexborNode) -> None:
    source = node.attributes.get("src")
    if not source or source.startswith("about:"):
        source = node.attributes.get("data-src")
    # Both a page of its own and a part of this one.
    page.follow(source, "frame")
    page.need(source, "frame")


def _read_embedded(page: _Harvest, node: LexborNode) -> None:
    attributes = node.attributes
    page.need(attributes.get("data") or attributes.get("src"), "object")


def _read_input(page: _Harvest, node: LexborNode) -> None:
    attributes = node.attributes
    if (attributes.get("type") or "").lower() == "image":
        page.need(attributes.get("src"), "img")


def _read_svg_image(page: _Harvest, node: LexborNode) -> None:
    attributes = node.attributes
    page.need(attributes.get("href") or attributes.get("xlink:href"), "img")


def _numbered(readers: dict[str, _Reader]) -> dict[int, _Reader]:
    """Return the readers by lexbor's number of their element, which is cheaper to read from a node than its name."""
    document = LexborHTMLParser("")
    return {document.create_node(tag).tag_id: read for tag, read in readers.items()}


_READERS = _numbered(
    {
        "html": _read_root,
        "body": _read_body,
        "title": _read_title,
        "base": _read_base,
        "a": _read_anchor,
        "area": _read_area,
        "link": _read_link,
        "meta": _read_meta,
        "style": _read_style,
        "script": _read_script,
        "img": _read_image,
        "source": _read_source,
        "video": _read_media,
        "audio": _read_media,
        "track": _read_media,
        "iframe": _read_frame,
        "frame": _read_frame,
        "object": _read_embedded,
        "embed": _read_embedded,
        "input": _read_input,
        "image": _read_svg_image,
    }
)
