"""Parses a body into everything the index stores, from one tree: text, headings, links, metadata.

Never raises. `parse_pdf` runs only in a child process (`parse.__main__`): its parser is not safe in process.
"""

from __future__ import annotations

import ctypes
import importlib
import re
from dataclasses import field
from datetime import datetime
from enum import StrEnum
from typing import Any, NotRequired, TypedDict, Unpack

from selectolax.lexbor import LexborHTMLParser, LexborNode

from holdfast import log
from holdfast.parse.addresses import address
from holdfast.parse.charset import BodyForm, DecodedText, ParseProblem, decode, media_type_of, sniff
from holdfast.parse.content import SiteTemplate, line_at, read_content, read_whole, telling_words
from holdfast.parse.html import read_directives
from holdfast.parse.metadata import (
    AUTHOR_CHARS,
    Head,
    LinkedData,
    PageTraits,
    PageType,
    about_page,
    page_type,
    read_keywords,
    read_microdata,
)
from holdfast.parse.moments import read_moment
from holdfast.parse.page import MAX_PARSED_BYTES, decode_html
from holdfast.parse.text import (
    BLOCK_MARK,
    MAX_TEXT_CHARS,
    REST_MARK,
    canonical_tag,
    clean_line,
    count_words,
    marked_text,
    tree_of,
    without_marks,
)
from holdfast.parse.walking import ANCHOR_CHARS, Anchor
from holdfast.values import dataclass

DOCUMENT_VERSION = 8
"""Raise it with any change that gives a body another text or other metadata, so that old documents are read again."""

_TITLE_CHARS, _DESCRIPTION_CHARS = 500, 1000
_MAX_HREFS = 2000
_MAX_FIELDS, _FORM_FIELDS, _FORM_WORDS = 100, 4, 150
_NOT_ASKED = frozenset({"hidden", "submit", "button", "image", "reset"})
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

_log = log.get(room="parse")


class DocumentKind(StrEnum):
    """Type of a body for the index; only the first three are pages."""

    HTML = "html"
    TEXT = "text"
    PDF = "pdf"
    OTHER = "other"


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedDocument:
    title: str | None = None
    description: str | None = None
    language: str | None = None
    """As declared, BCP-47; None if the page does not state it."""
    canonical: str | None = None
    base: str | None = None
    """Raw, like the canonical URL and the links: the caller resolves them."""
    visible: str = ""
    """The main content and the rest of the page's text as they are stored: separated by REST_MARK, with the marks of
    lines that belong to one block."""
    headings: tuple[str, ...] = ()
    terms: tuple[str, ...] = ()
    """Terms it defines or names: in definition lists, captions, and at the start of a cell, an item or a paragraph."""
    hrefs: tuple[Anchor, ...] = ()
    """Links of the main content, in order, once each."""
    noindex: bool = False
    author: str | None = None
    published_at: datetime | None = None
    modified_at: datetime | None = None
    keywords: tuple[str, ...] = ()
    word_count: int = 0
    page_type: str = PageType.OTHER.value
    details: dict[str, str] = field(default_factory=dict)
    problems: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        return without_marks(self.visible.partition(REST_MARK)[0])

    @property
    def rest(self) -> str:
        return without_marks(self.visible.partition(REST_MARK)[2])


class DocumentReading(TypedDict):
    kind: str
    media_type: str | None
    charset: str | None
    url: NotRequired[str]
    whole: NotRequired[bool]
    """Read the whole visible page, not only its content."""
    template: NotRequired[SiteTemplate | None]


def kind_of(body: bytes, media_type: str | None) -> DocumentKind:
    """Return the kind of a body by its declared type and its first bytes; XML-based images are not pages."""
    declared = media_type_of(media_type)
    if body.startswith(b"%PDF-") and declared in _MAY_BE_PDF:
        return DocumentKind.PDF
    if declared == "image/svg+xml":
        return DocumentKind.OTHER
    form = sniff(body, declared).form
    if form is BodyForm.TEXT and not declared and body[:64].lstrip()[:1] in (b"{", b"["):
        # Data without a type, which readers do not treat as a page.
        return DocumentKind.OTHER
    return {BodyForm.HTML: DocumentKind.HTML, BodyForm.TEXT: DocumentKind.TEXT}.get(form, DocumentKind.OTHER)


def parse_document(body: bytes, **how: Unpack[DocumentReading]) -> ParsedDocument:
    """Return the parsed content-decoded HTML or text body.

    Never raises: failures are listed in `problems`. It may take long: call `looks_pathological` first.
    """
    try:
        problems: list[str] = []
        if len(body) > MAX_PARSED_BYTES:
            body = body[:MAX_PARSED_BYTES]
            problems.append(ParseProblem.BODY_CUT)
        if how["kind"] == DocumentKind.HTML:
            decoded = decode_html(body, how["media_type"], how["charset"])
            return _read_html(decoded, (*problems, *decoded.problems), how)
        decoded = decode(body, how["charset"])
        problems += decoded.problems
        content = decoded.content
        whole = content if isinstance(content, str) else content.decode("utf-8", "replace")
        if len(whole) > MAX_TEXT_CHARS:
            problems.append(ParseProblem.BODY_CUT)
        text = marked_text(whole)
        return ParsedDocument(visible=text, word_count=count_words(text), problems=tuple(problems))
    except Exception as error:  # the one place where a parser's own failure ends
        _log.warning("parse.failed", action="parse_document", url=how.get("url"), error=type(error).__name__)
        return ParsedDocument(problems=(ParseProblem.PARSE_FAILED,))


def _read_head(tree: LexborHTMLParser) -> Head:
    """Read head elements from the whole document, as the crawl does: the parser ends the head at an image."""
    head = Head()
    for node in tree.css("meta,base[href],link[rel~=canonical i]"):
        head.read(node)
    return head


def _read_html(source: DecodedText, problems: tuple[str, ...], how: DocumentReading) -> ParsedDocument:
    tree = tree_of(source.content)
    head, root = _read_head(tree), tree.root
    directives = read_directives((), head.robots)
    if directives.noarchive:
        problems = (*problems, ParseProblem.NOARCHIVE)
    declared = (root.attributes.get("lang") or root.attributes.get("xml:lang")) if root is not None else None
    words = telling_words(source.content)
    data = LinkedData()
    if "ld+json" in words:
        data.read(tree)
    about = about_page(head, data, *([read_microdata(tree)] if "itemprop" in words else []))
    template = how.get("template")
    by_template, problems = _by_template(tree, template, problems)
    title = by_template.get("title") or _title(tree.head) or _title(root)
    # Do this last: it removes hidden elements from the tree.
    content = read_whole(tree, words) if how.get("whole") else read_content(tree, words, template, data.body)
    if content.is_cut and ParseProblem.BODY_CUT not in problems:
        problems = (*problems, ParseProblem.BODY_CUT)
    about = about._replace(
        author=by_template.get("author") or about.author,
        published=read_moment(by_template.get("published")) or about.published or _shown_moment(tree, words),
    )
    word_count = count_words(content.text)
    traits = PageTraits(
        url=how.get("url", ""),
        og_type=head.details.get("og:type", ""),
        types=about.types,
        words=word_count,
        links=len(content.anchors),
        terms=len(content.terms),
        has_article="article" in words,
        has_form="form" in words and word_count < _FORM_WORDS and _has_form(tree),
        has_title=bool(title or content.title),
        is_signed=bool(about.author or about.published),
    )
    return ParsedDocument(
        title=title
        or content.title
        or _heading(tree)
        or _line(head.details.get("og:title"), _TITLE_CHARS)
        or _line(next(iter(content.headings), None), _TITLE_CHARS),
        description=_line(head.description or head.details.get("og:description"), _DESCRIPTION_CHARS),
        language=canonical_tag(declared) or canonical_tag(head.language),
        canonical=head.canonical,
        base=head.base,
        visible=f"{content.text}{REST_MARK}{content.rest}" if content.rest else content.text,
        headings=tuple(content.headings),
        terms=tuple(content.terms),
        hrefs=_followed(content.anchors),
        noindex=directives.noindex,
        author=about.author,
        published_at=about.published,
        modified_at=about.modified,
        keywords=about.keywords,
        word_count=word_count,
        page_type=page_type(traits).value,
        details=head.details | data.details,
        problems=problems,
    )


def _by_template(
    tree: LexborHTMLParser, template: SiteTemplate | None, problems: tuple[str, ...]
) -> tuple[dict[str, str], tuple[str, ...]]:
    if template is None:
        return {}, problems
    by_template = {
        name: line_at(tree, selector, _TITLE_CHARS)
        for name, selector in (
            ("title", template.get("title")),
            ("author", template.get("author")),
            ("published", template.get("published")),
        )
        if selector
    }
    main = template.get("main")
    if main and tree.css_first(main) is None:
        # The site was redesigned: its template must be reviewed.
        problems = (*problems, ParseProblem.TEMPLATE_MISSED)
    return by_template, problems


def _has_form(tree: LexborHTMLParser) -> bool:
    fields = tree.css("form input,form textarea,form select")[:_MAX_FIELDS]
    types = [(node.attributes.get("type") or "text").lower() for node in fields]
    return "password" in types or sum(one not in _NOT_ASKED for one in types) >= _FORM_FIELDS


def _shown_moment(tree: LexborHTMLParser, words: frozenset[str]) -> datetime | None:
    if "time" not in words:
        return None
    articles = tree.css("article")[:2] if "article" in words else []
    node = articles[0].css_first("time[datetime]") if len(articles) == 1 else tree.css_first("time[pubdate]")
    return read_moment(node.attributes.get("datetime")) if node is not None else None


def _heading(tree: LexborHTMLParser) -> str | None:
    node = tree.css_first("h1") or tree.css_first("h2")
    return _line(node.text()[: _TITLE_CHARS * 8].rstrip(" \n¶#"), _TITLE_CHARS) if node is not None else None


def _title(within: LexborNode | None) -> str | None:
    for node in within.css("title")[:5] if within is not None else ():
        parent = node.parent
        # Drawings have titles of their own.
        if (parent is None or parent.tag in {"head", "body", "html", "div"}) and (
            line := clean_line(node.text(), _TITLE_CHARS)
        ):
            return line
    return None


def _line(text: str | None, chars: int) -> str | None:
    return (clean_line(text, chars) or None) if text else None


def _followed(anchors: list[Anchor]) -> tuple[Anchor, ...]:
    found: dict[str, Anchor] = {}
    for raw, text, beside in anchors[:_MAX_HREFS]:
        if raw[0] != "#" and (url := address(raw)):
            known = found.get(url)
            if known is None:
                found[url] = (url, text, beside)
            elif len(text) > len(known[1]) or (beside and not known[2]):
                found[url] = (url, max(known[1], text, key=len), known[2] or beside)
    return tuple([(url, _words(text), beside) for url, text, beside in found.values()])


def _words(text: str) -> str:
    text = text.strip()
    if len(text) <= ANCHOR_CHARS and text.isascii() and text.isprintable() and "  " not in text:
        return text
    return clean_line(text.replace(BLOCK_MARK, " "), ANCHOR_CHARS)


MAX_PAGES = 500
_PDF_TITLE_CHARS, _PDF_DESCRIPTION_CHARS = 500, 1000


def parse_pdf(body: bytes) -> ParsedDocument:
    """Return title, subject and text of a PDF; a damaged or encrypted one is reported as a problem."""
    pdfium: Any = importlib.import_module("pypdfium2")  # untyped
    try:
        document = pdfium.PdfDocument(body)
    except pdfium.PdfiumError:
        return ParsedDocument(problems=(ParseProblem.PDF_BROKEN,))
    problems: list[str] = []
    parts, size = list[str](), 0
    # Read page by page: a damaged one must not affect the others.
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
    text = marked_text("\n".join(parts))
    metadata: dict[str, str] = document.get_metadata_dict(skip_empty=True)
    return ParsedDocument(
        title=clean_line(metadata.get("Title", ""), _PDF_TITLE_CHARS) or None,
        description=clean_line(metadata.get("Subject", ""), _PDF_DESCRIPTION_CHARS) or None,
        language=canonical_tag(metadata.get("Lang")),
        visible=text,
        word_count=count_words(text),
        author=clean_line(metadata.get("Author", ""), AUTHOR_CHARS) or None,
        published_at=_pdf_moment(metadata.get("CreationDate")),
        modified_at=_pdf_moment(metadata.get("ModDate")),
        keywords=read_keywords((metadata.get("Keywords", ""),)),
        details={
            f"pdf:{name.lower()}": clean_line(metadata[name], 300)
            for name in ("Author", "CreationDate")
            if name in metadata
        },
        problems=tuple(problems),
    )


_PDF_MOMENT = re.compile(r"D:(\d{4})(\d{2})(\d{2})(\d{2})(\d{2})(\d{2})?(?:Z|([+-]\d{2})'?(\d{2})?'?)?.{0,8}", re.ASCII)


def _pdf_moment(stated: str | None) -> datetime | None:
    """Return a date in the format of ISO 32000 (7.9.4): D:YYYYMMDDHHmmSS, then the zone."""
    found = _PDF_MOMENT.fullmatch((stated or "")[:40])
    if found is None:
        return None
    year, month, day, hour, minute, second, zone, minutes = found.groups()
    ending = f"{zone}:{minutes or '00'}" if zone else "Z"
    return read_moment(f"{year}-{month}-{day}T{hour}:{minute}:{second or '00'}{ending}")
