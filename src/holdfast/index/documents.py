"""Documents of a batch: each distinct body is parsed once, unless the archive knows it already.

This is the most time-consuming step, so it runs before any transaction begins.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import re
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import zstandard

from holdfast.clock import to_micros
from holdfast.db.raw import RawDatabase, Row
from holdfast.index import writing_queries
from holdfast.index.capture import IndexedCapture, outlinks, resolved
from holdfast.index.page_marks import SHORT_CHARS, marks_of
from holdfast.index.writing_queries import DocumentKey
from holdfast.parse.charset import decode
from holdfast.parse.child import ParseChild, needs_child
from holdfast.parse.content import SiteTemplate
from holdfast.parse.document import DOCUMENT_VERSION, DocumentKind, DocumentReading, ParsedDocument, parse_document
from holdfast.parse.text import canonical_tag
from holdfast.parse.walking import Anchor

SNIPPET_CHARS = 280
_GOOD_CHARS = 40
_LANGUAGE_CHARS = 500
# With fewer letters the model guesses: 'Home | Contact' gives Latin.
_LANGUAGE_LETTERS = 24

_BOILERPLATE = (
    "cookie",
    "javascript",
    "skip to",
    "aller au contenu",
    "passer au contenu",
    "all rights reserved",
    "tous droits réservés",
    "your browser",
    "votre navigateur",
    "privacy policy",
    "politique de confidentialité",
    "sign in",
    "log in",
    "subscribe to our",
    "©",
)
_ARCHIVED_TITLE = re.compile(r"[\[(]?\s{0,8}archiv(?:ed|ée?s?)\s{0,8}(?:[\])]|[-–—:|]|$)", re.I)
_ARCHIVED_PHRASES = (
    "this page has been archived",
    "this content has been archived",
    "this document has been archived",
    "this web page has been archived",
    "has been archived on the web",
    "we have archived this page",
    "information identified as archived",
    "this site has been archived",
    "archived content",
    "cette page a été archivée",
    "ce contenu a été archivé",
    "ce document a été archivé",
    "nous avons archivé cette page",
    "a été archivée dans le web",
    "indiqué qu'elle est archivée",
    "désignée comme étant archivée",
    "contenu archivé",
)
_BANNER_CHARS = 1500


def make_snippet(text: str, description: str | None) -> str | None:
    """Return up to 280 characters that describe a text, cut between words; None for an empty text.

    The snippet starts at the first line that is a sentence rather than boilerplate, otherwise with the description.
    """
    lines = text[:20_000].split("\n")
    first = next((n for n, line in enumerate(lines) if len(line) >= _GOOD_CHARS and _is_content(line)), None)
    if first is None and description:
        chosen = description
    else:
        chosen = _joined(filter(_is_content, lines[first or 0 :])) or _joined(iter(lines))
    if len(chosen) <= SNIPPET_CHARS:
        return chosen or None
    cut = chosen[: SNIPPET_CHARS - 1]
    space = cut.rfind(" ")
    return (cut[:space] if space > SNIPPET_CHARS // 2 else cut).rstrip(" ,;:") + "…"


def _is_content(line: str) -> bool:
    lowered = line[:1000].lower()
    return not any(word in lowered for word in _BOILERPLATE)


def _joined(lines: Iterator[str]) -> str:
    parts, size = list[str](), 0
    for line in lines:
        parts.append(line)
        size += len(line) + 1
        if size > SNIPPET_CHARS:
            break
    return " ".join(parts).strip()


def detect_language(text: str) -> str | None:
    """Return the most likely language of a text, from its first 500 characters; None if it is too short."""
    sample = text[:_LANGUAGE_CHARS]
    if sum(map(str.isalpha, sample)) < _LANGUAGE_LETTERS:
        return None
    return str(_model().classify(sample)[0])


@cache
def _model() -> Any:
    # Load it when first needed: it takes 0.7 s, which a command that indexes nothing does not need.
    return importlib.import_module("py3langid")


def says_archived(title: str | None, text: str) -> bool:
    """Return True if a page says that it is no longer maintained; a mere mention of archives is not enough."""
    if title and _ARCHIVED_TITLE.match(title.strip()):
        return True
    banner = text[:_BANNER_CHARS].lower().replace("\u2019", "'")
    return "archiv" in banner and any(phrase in banner for phrase in _ARCHIVED_PHRASES)


_REMEMBERED = 200
_TYPE_CHARS = 127
_PAGE_TYPE = {DocumentKind.HTML: "text/html", DocumentKind.TEXT: "text/plain", DocumentKind.PDF: "application/pdf"}


NewDocument = tuple[DocumentKey, Row, bytes]
"""Key, row in the order of DOCUMENT_COLUMNS without the last, and packed text."""


_RememberedBody = tuple[str | None, tuple[Anchor, ...], bool]
"""Base, links and noindex of a body."""


class Extractor:
    """Reads documents. One per file; it caches base, links and noindex of the last bodies."""

    def __init__(
        self, raw_db: RawDatabase, child: ParseChild, template: SiteTemplate | None = None, *, careful: bool = False
    ) -> None:
        """If `careful`, parse every document in the child process."""
        self._raw_db, self._child, self._template, self._careful = raw_db, child, template, careful
        self._mark = "" if template is None else template_mark(template)
        self._bodies: OrderedDict[DocumentKey, _RememberedBody] = OrderedDict()
        self._pack = zstandard.ZstdCompressor(level=3).compress

    def prepare(self, captures: Sequence[IndexedCapture]) -> list[NewDocument]:
        """Set document key, links and noindex on each page of a batch; return the new documents."""
        pages = [capture for capture in captures if capture.body]
        for capture in pages:
            capture.document_key = document_key(capture, self._mark)
        with self._raw_db.read() as tx:
            known = writing_queries.known_documents(tx, [key[0] for key in _keys(pages)])
            # Parse the document of an older extraction again when its body occurs.
            known = {key: found for key, found in known.items() if found[1] >= DOCUMENT_VERSION}
            linked = writing_queries.shown_together(tx, list(_linked(pages, known)))
        # A body may occur any number of times in a batch; parse it for the first.
        made: dict[DocumentKey, NewDocument] = {}
        shown: set[tuple[int, DocumentKey]] = set()
        for capture in pages:
            key = capture.document_key
            assert key is not None
            stored = known.get(key)
            if stored is None and key not in made:
                made[key] = self._read(capture, key)
            if stored is not None:
                capture.document_id, _, noindex = stored
                capture.noindex = capture.noindex or noindex
            else:
                capture.noindex = capture.noindex or self._remembered(capture, key)[2]
            again = (capture.identity.url_hash, key) in shown or (
                stored is not None and (capture.identity.url_hash, stored[0]) in linked
            )
            if capture.is_ok and capture.kind is DocumentKind.HTML and not again:
                shown.add((capture.identity.url_hash, key))
                base, hrefs, _ = self._remembered(capture, key)
                capture.links = outlinks(capture.url, base, hrefs, own_hash=capture.identity.group_hash)
            # Drop the bodies at once: a batch has up to 16 MiB of them, and the next steps need none.
            capture.body = b""
        return list(made.values())

    def _remembered(self, capture: IndexedCapture, key: DocumentKey) -> _RememberedBody:
        if key not in self._bodies:
            self._remember(key, self._parse(capture))
        return self._bodies[key]

    def _remember(self, key: DocumentKey, parsed: ParsedDocument) -> None:
        self._bodies[key] = parsed.base, parsed.hrefs, parsed.noindex
        if len(self._bodies) > _REMEMBERED:
            self._bodies.popitem(last=False)

    def _parse(self, capture: IndexedCapture) -> ParsedDocument:
        how = capture.kind.value, capture.media_type, capture.charset
        # PDF readers and pathological HTML can run for minutes or take the process down: a child with a deadline is
        # killed instead.
        in_child = self._careful or needs_child(capture.body, capture.kind)
        parse = self._child.read if in_child else parse_document
        reading = DocumentReading(kind=how[0], media_type=how[1], charset=how[2], url=capture.url)
        if self._template is not None:
            reading["template"] = self._template
        return parse(capture.body, **reading)

    def _read(self, capture: IndexedCapture, key: DocumentKey) -> NewDocument:
        parsed = self._parse(capture)
        self._remember(key, parsed)
        text = parsed.text
        language = parsed.language or canonical_tag(capture.language) or detect_language(text or parsed.rest)
        details: dict[str, object] = dict(parsed.details)
        if parsed.problems:
            details["problems"] = list(parsed.problems)
        if capture.kind is DocumentKind.HTML and len(text) <= SHORT_CHARS and (marks := marks_of(capture.body)):
            details["marks"] = marks
        row = (
            *key,
            capture.body_bytes,
            parsed.title,
            parsed.description,
            make_snippet(text, parsed.description),
            "\n".join(parsed.headings) or None,
            language,
            resolved(capture.url, parsed.base, parsed.canonical),
            json.dumps(details),
            parsed.noindex,
            says_archived(parsed.title, text),
            len(text),
            "\n".join(parsed.terms) or None,
            parsed.author,
            None if parsed.published_at is None else to_micros(parsed.published_at),
            None if parsed.modified_at is None else to_micros(parsed.modified_at),
            "\n".join(parsed.keywords) or None,
            parsed.word_count,
            parsed.page_type,
            DOCUMENT_VERSION,
        )
        return (key, row, self._pack(parsed.visible.encode("utf-8", "replace")))


def template_mark(template: SiteTemplate) -> str:
    """Return the suffix of the type in the key of documents whose content was found with this template."""
    digest = hashlib.sha256(json.dumps(template, sort_keys=True).encode()).hexdigest()
    return f";template={digest[:16]}"


def document_key(capture: IndexedCapture, mark: str = "") -> DocumentKey:
    """Return the key of a page's document: body, charset, and the type it is read as.

    `mark` is that of the source's template: two sources may read one body in two ways.
    """
    assert capture.body_hash is not None
    charset = "" if capture.kind is DocumentKind.PDF else decode(capture.body, capture.charset).charset
    # The same bytes mean another text under another charset or type, so both are part of the key; how a server spells a
    # type that is read alike is not.
    declared = capture.media_type or ""
    is_alike = ("html" in declared) if capture.kind is DocumentKind.HTML else declared.startswith("text/")
    if capture.kind is DocumentKind.TEXT and declared in ("text/html", "text/*"):
        is_alike = False
    media_type = declared if is_alike and capture.kind is not DocumentKind.PDF else _PAGE_TYPE[capture.kind]
    if capture.kind is not DocumentKind.HTML:
        mark = ""
    return capture.body_hash, charset, media_type[: _TYPE_CHARS - len(mark)] + mark


def _keys(pages: Sequence[IndexedCapture]) -> list[DocumentKey]:
    return [capture.document_key for capture in pages if capture.document_key is not None]


def _linked(pages: Sequence[IndexedCapture], known: dict[DocumentKey, tuple[int, int, bool]]) -> set[tuple[int, int]]:
    return {
        (capture.identity.url_hash, known[capture.document_key][0])
        for capture in pages
        if capture.document_key in known and capture.is_ok
    }
