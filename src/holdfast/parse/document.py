"""One body in, everything that the index keeps of it out, from one tree: text, headings, links, metadata.

Never raises. `parse_pdf` is called in a child only (`parse.__main__`): its parser is not safe in process.
"""

from __future__ import annotations

import ctypes
import importlib
from dataclasses import field
from enum import StrEnum
from typing import Any, NotRequired, TypedDict, Unpack

from selectolax.lexbor import LexborHTMLParser, LexborNode

from holdfast import log
from holdfast.parse.addresses import SPACE, address
from holdfast.parse.charset import BodyForm, DecodedText, ParseProblem, decode, media_type_of, sniff
from holdfast.parse.html import read_directives, read_ld_json
from holdfast.parse.page import AGENT, MAX_PARSED_BYTES
from holdfast.parse.text import (
    BLOCK_IDS,
    BLOCK_MARK,
    FURNITURE_IDS,
    HIDDEN,
    MAX_TEXT_CHARS,
    MIN_MAIN_CHARS,
    OWNER_IDS,
    PREFORMATTED_IDS,
    TEXT_ID,
    UNSHOWN_IDS,
    UNSHOWN_OR_AROUND_IDS,
    canonical_tag,
    clean_line,
    clean_text,
    numbers_of,
    tidied,
    tree_of,
)
from holdfast.values import dataclass

DOCUMENT_VERSION = 2
"""Raised with any change that gives a body another text or other metadata: what was read before may be read again."""

_TITLE_CHARS, _DESCRIPTION_CHARS, _DETAIL_CHARS = 500, 1000, 500
_MAX_METAS, _MAX_DETAILS = 400, 24
_MAX_HREFS = 2000
_MAY_BE_PDF = frozenset(
    {
        "",
        "application/pdf",
        "application/x-pdf",
        "application/octet-stream",
        "text/html",
        "text/plain",
        "application/force-download",
    }
)
_KEPT_METAS = ("og:", "article:", "dcterms.", "dc.")

_log = log.get(room="parse")


class DocumentKind(StrEnum):
    """What a body is to the index; only the first three are pages."""

    HTML = "html"
    TEXT = "text"
    PDF = "pdf"
    OTHER = "other"


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedDocument:
    """What the index keeps of one distinct body."""

    title: str | None = None
    description: str | None = None
    language: str | None = None
    """As declared, BCP-47; None if the page does not say."""
    canonical: str | None = None
    base: str | None = None
    """Raw, like the canonical address and the links: the caller resolves them."""
    text: str = ""
    headings: tuple[str, ...] = ()
    hrefs: tuple[str, ...] = ()
    """Of the main content, in order, once each."""
    noindex: bool = False
    details: dict[str, str] = field(default_factory=dict)
    problems: tuple[str, ...] = ()


class DocumentReading(TypedDict):
    """How a body is to be read."""

    kind: str
    media_type: str | None
    charset: str | None
    """Of the Content-Type header."""
    url: NotRequired[str]
    whole: NotRequired[bool]
    """All that an HTML page shows, not its content alone."""


def kind_of(body: bytes, media_type: str | None) -> DocumentKind:
    """Return what a body is by its declared type and its first bytes; pictures that are written in XML are none."""
    declared = media_type_of(media_type)
    if body.startswith(b"%PDF-") and declared in _MAY_BE_PDF:
        return DocumentKind.PDF
    if declared == "image/svg+xml":
        return DocumentKind.OTHER
    form = sniff(body, declared).form
    if form is BodyForm.TEXT and not declared and body[:64].lstrip()[:1] in (b"{", b"["):
        # Data without a type: no reader takes it for a page.
        return DocumentKind.OTHER
    return {BodyForm.HTML: DocumentKind.HTML, BodyForm.TEXT: DocumentKind.TEXT}.get(form, DocumentKind.OTHER)


def parse_document(body: bytes, **how: Unpack[DocumentReading]) -> ParsedDocument:
    """Return what a content-decoded HTML or text body says.

    Never raises: what went wrong is noted in `problems`. It may take long: ask `looks_pathological` first.
    """
    try:
        problems: list[str] = []
        if len(body) > MAX_PARSED_BYTES:
            body = body[:MAX_PARSED_BYTES]
            problems.append(ParseProblem.BODY_CUT)
        decoded = decode(body, how["charset"])
        problems += decoded.problems
        if how["kind"] == DocumentKind.HTML:
            return _read_html(decoded, tuple(problems), whole=how.get("whole", False))
        content = decoded.content
        text = clean_text(content if isinstance(content, str) else content.decode("utf-8", "replace"))
        return ParsedDocument(text=text, problems=tuple(problems))
    except Exception as error:  # the one place where a parser's own failure ends
        _log.warning("parse.failed", action="parse_document", url=how.get("url"), error=type(error).__name__)
        return ParsedDocument(problems=(ParseProblem.PARSE_FAILED,))


class _Head:
    """What the metadata of a page says."""

    __slots__ = ("description", "details", "language", "robots")

    def __init__(self) -> None:
        self.description: str | None = None
        self.language: str | None = None
        self.robots: list[str] = []
        self.details: dict[str, str] = {}

    def read(self, node: LexborNode) -> None:
        """Take one meta element."""
        attributes = node.attributes
        content = attributes.get("content")
        if not content:
            return
        name = (attributes.get("name") or attributes.get("property") or attributes.get("http-equiv") or "").strip()
        name = name.lower()
        if name == "description":
            self.description = self.description or content
        elif name in ("robots", AGENT):
            self.robots.append(content)
        elif name in ("content-language", "language", "dcterms.language"):
            self.language = self.language or content
        elif name.startswith(_KEPT_METAS) and len(self.details) < _MAX_DETAILS and len(name) <= 64:
            self.details.setdefault(name, clean_line(content, _DETAIL_CHARS))


def _read_html(source: DecodedText, problems: tuple[str, ...], *, whole: bool) -> ParsedDocument:
    tree = tree_of(source.content)
    head = _Head()
    first = tree.head or tree.root
    metas = first.css("meta") if first is not None else []
    # Old pages have their metas in the body.
    for node in metas[:_MAX_METAS] or tree.css("meta")[:_MAX_METAS]:
        head.read(node)
    wishes = read_directives((), head.robots, AGENT)
    root = tree.root
    declared = (root.attributes.get("lang") or root.attributes.get("xml:lang")) if root is not None else None
    canonical, base = _address(first, "link[rel~=canonical i]"), _address(first, "base[href]")
    title = _title(first) or _title(root) or head.details.get("og:title")
    words = telling_words(source.content)
    details = head.details | (read_ld_json(tree) if "ld+json" in words else {})
    # Last: it removes what is hidden from the tree.
    content = read_whole(tree) if whole else read_content(tree, words)
    return ParsedDocument(
        title=title or _line(next(iter(content.headings), None), _TITLE_CHARS),
        description=_line(head.description or head.details.get("og:description"), _DESCRIPTION_CHARS),
        language=canonical_tag(declared) or canonical_tag(head.language),
        canonical=canonical,
        base=base,
        text=content.text,
        headings=tuple(content.headings),
        hrefs=_followed(content.hrefs),
        noindex=wishes.noindex,
        details=details,
        problems=(*problems, ParseProblem.NOARCHIVE) if wishes.noarchive else problems,
    )


def _title(within: LexborNode | None) -> str | None:
    for node in within.css("title")[:5] if within is not None else ():
        parent = node.parent
        # Drawings have titles of their own.
        if (parent is None or parent.tag in {"head", "body", "html", "div"}) and (
            line := clean_line(node.text(), _TITLE_CHARS)
        ):
            return line
    return None


def _address(within: LexborNode | None, selector: str) -> str | None:
    node = within.css_first(selector) if within is not None else None
    href = node.attributes.get("href") if node is not None else None
    return (href or "").strip(SPACE)[:8192] or None


def _line(text: str | None, chars: int) -> str | None:
    return (clean_line(text, chars) or None) if text else None


def _followed(hrefs: list[str]) -> tuple[str, ...]:
    found: dict[str, None] = {}
    for raw in hrefs[:_MAX_HREFS]:
        if raw[0] != "#" and (url := address(raw)):
            found[url] = None
    return tuple(found)


MAX_PAGES = 500
_PDF_TITLE_CHARS, _PDF_DESCRIPTION_CHARS = 500, 1000


def parse_pdf(body: bytes) -> ParsedDocument:
    """Return title, subject and text of a PDF; what cannot be opened (damaged, encrypted) comes back with a note."""
    pdfium: Any = importlib.import_module("pypdfium2")  # untyped
    try:
        document = pdfium.PdfDocument(body)
    except pdfium.PdfiumError:
        return ParsedDocument(problems=(ParseProblem.PDF_BROKEN,))
    problems: list[str] = []
    parts, size = list[str](), 0
    # Page by page: one that is damaged does not cost the others.
    for number in range(min(len(document), MAX_PAGES)):
        try:
            page = document[number]
            text = page.get_textpage().get_text_range()
        except (pdfium.PdfiumError, ctypes.ArgumentError, ValueError):
            problems = [ParseProblem.PDF_BROKEN]
            continue
        parts.append(text)
        size += len(text)
        page.close()
        if size > MAX_TEXT_CHARS:
            break
    if len(document) > MAX_PAGES or size > MAX_TEXT_CHARS:
        problems.append(ParseProblem.BODY_CUT)
    metadata: dict[str, str] = document.get_metadata_dict(skip_empty=True)
    return ParsedDocument(
        title=clean_line(metadata.get("Title", ""), _PDF_TITLE_CHARS) or None,
        description=clean_line(metadata.get("Subject", ""), _PDF_DESCRIPTION_CHARS) or None,
        language=canonical_tag(metadata.get("Lang")),
        text=clean_text("\n".join(parts)),
        details={
            f"pdf:{name.lower()}": clean_line(metadata[name], 300)
            for name in ("Author", "CreationDate")
            if name in metadata
        },
        problems=tuple(problems),
    )


MAX_HEADINGS = 200
_HEADING_CHARS, _HEADING_PARTS = 300, 1000
# What a `main` or an `article` must hold to be taken for the content.
_ROOT_CHARS = 100
_LEFT_OUT_IDS = UNSHOWN_OR_AROUND_IDS | numbers_of("form button")
_HEADING_IDS = numbers_of("h1 h2 h3 h4 h5 h6")
(_ANCHOR_ID,) = numbers_of("a")
_AROUND = "[role=navigation],[role=banner],[role=contentinfo],[role=search]"
_NOISE_WORDS = ("cookie", "consent", "newsletter", "subscribe")
_NOISE = ",".join(f"[id*={word} i],[class*={word} i]" for word in _NOISE_WORDS)
# What is longer is no box about cookies but the page that has one, named after it.
_NOISE_CHARS = 2000
_MAX_BOXES = 50
_TELLING = ("hidden", "display", "role", "<main", "<article", "ld+json", *_NOISE_WORDS)
_FRAME = ("html", "body", "main")


@dataclass(slots=True)
class Content:
    """What stands in a part of a page."""

    text: str = ""
    """One block a line."""
    headings: list[str] = field(default_factory=list)
    hrefs: list[str] = field(default_factory=list)
    """As written, in order."""


def telling_words(markup: bytes | str) -> frozenset[str]:
    """Return which words stand in the markup that make a look for certain elements worth its time."""
    lowered = markup.lower()
    if isinstance(lowered, bytes):
        return frozenset(word for word in _TELLING if word.encode() in lowered)
    return frozenset(word for word in _TELLING if word in lowered)


def read_content(tree: LexborHTMLParser, words: frozenset[str]) -> Content:
    """Return the content of a page; of one with almost nothing outside its frame, all it shows.

    `words` are those that `telling_words` found: each selector costs a walk over the tree.
    """
    body = tree.body
    if body is None:
        return Content()
    wanted = [selector for selector, signs in ((HIDDEN, {"hidden", "display"}), (_AROUND, {"role"})) if signs & words]
    # From the last to the first: what is inside another goes before it; a node that went with its parent is no more.
    for node in reversed(tree.css(",".join(wanted))) if wanted else ():
        if node.tag not in _FRAME:
            node.decompose()
    if words.intersection(_NOISE_WORDS):
        _remove_noise(tree)
    for selector, signs in (("main,[role=main]", {"<main", "role"}), ("article", {"<article"})):
        found = tree.css(selector) if signs & words else []
        # Several articles are a list of them: none of them is the content of the page.
        if len(found) == 1 or (found and selector != "article"):
            content = _walk(found[0], _LEFT_OUT_IDS)
            if len(content.text) >= _ROOT_CHARS:
                return content
    content = _walk(body, _LEFT_OUT_IDS)
    if len(content.text) >= MIN_MAIN_CHARS:
        return content
    everything = _walk(body, UNSHOWN_IDS)
    # Most of the page stands in what was left out: then that is the page.
    return content if len(content.text) * 2 >= len(everything.text) else everything


def read_whole(tree: LexborHTMLParser) -> Content:
    """Return all that a page shows, what stands around its content too."""
    body = tree.body
    if body is None:
        return Content()
    for node in reversed(tree.css(HIDDEN)):
        if node.tag not in _FRAME:
            node.decompose()
    return _walk(body, UNSHOWN_IDS)


def _remove_noise(tree: LexborHTMLParser) -> None:
    """Remove boxes that ask for consent or an address; what they say changes without the page."""
    for node in reversed(tree.css(_NOISE)[:_MAX_BOXES]):
        if node.tag not in _FRAME and node.css_first("main,article,h1") is None and len(node.text()) <= _NOISE_CHARS:
            node.decompose()


def _walk(root: LexborNode, left_out: frozenset[int]) -> Content:
    """Walk by hand, as `text` does, and for its reason; headings and links are noted on the way."""
    content, parts = Content(), list[str]()
    above: list[tuple[LexborNode, int, int]] = []
    own = int(root.tag_id in OWNER_IDS)
    node = root.first_child
    while node is not None:
        number = node.tag_id
        if number == TEXT_ID:
            parts.append(node.text_content or "")
        elif number in PREFORMATTED_IDS:
            parts += BLOCK_MARK, node.text().replace("\n", BLOCK_MARK), BLOCK_MARK
        elif number not in left_out or (own and number in FURNITURE_IDS):
            if number == _ANCHOR_ID and (href := node.attributes.get("href")):
                content.hrefs.append(href)
            if number in BLOCK_IDS:
                parts.append(BLOCK_MARK)
            child = node.first_child
            if child is not None:
                own += number in OWNER_IDS
                above.append((node, number, len(parts)))
                node = child
                continue
        following = node.next
        while following is None and above:
            node, number, start = above.pop()
            own -= number in OWNER_IDS
            if number in BLOCK_IDS:
                if number in _HEADING_IDS:
                    _note_heading(content, parts, start)
                parts.append(BLOCK_MARK)
            following = node.next
        node = following
    content.text = tidied("".join(parts)[:MAX_TEXT_CHARS])
    return content


def _note_heading(content: Content, parts: list[str], start: int) -> None:
    """Note the text from a part on; of a heading that holds half the page, as those that nest do, only its start."""
    if len(content.headings) < MAX_HEADINGS:
        text = "".join(parts[start : start + _HEADING_PARTS])
        heading = clean_line(text.replace(BLOCK_MARK, " "), _HEADING_CHARS)
        if heading:
            content.headings.append(heading)
