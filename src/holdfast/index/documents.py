"""The documents of a batch: each distinct body is read once, unless the archive knows it already.

This is where the time goes, and it is spent before any transaction begins.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Sequence
from typing import NamedTuple

import zstandard

from holdfast.db.hot import Hot, Row
from holdfast.index.capture import Capture
from holdfast.index.facts import detect_language, make_snippet, says_archived, simhash
from holdfast.index.outlinks import outlinks, resolved
from holdfast.index.writing import queries
from holdfast.index.writing.queries import DocumentKey, Known
from holdfast.parse.charset import decode
from holdfast.parse.child import ParseChild
from holdfast.parse.document import DOCUMENT_VERSION, Kind, ParsedDocument, parse_document
from holdfast.parse.language import canonical_tag
from holdfast.parse.pathology import looks_pathological

_REMEMBERED = 200
_TYPE_CHARS = 127
_PAGE_TYPE = {Kind.HTML: "text/html", Kind.TEXT: "text/plain", Kind.PDF: "application/pdf"}


class NewDocument(NamedTuple):
    """A document that is to be stored."""

    key: DocumentKey
    row: Row
    """In the order of DOCUMENT_COLUMNS, without the last."""
    text: bytes


class _Said(NamedTuple):
    """What is remembered of a body for the next capture of it, under another address perhaps."""

    base: str | None
    hrefs: tuple[str, ...]
    noindex: bool


class Extractor:
    """Reads documents. One for each file that is read; it holds what the last bodies said."""

    def __init__(self, hot: Hot, child: ParseChild) -> None:
        self._hot, self._child = hot, child
        self._said: OrderedDict[DocumentKey, _Said] = OrderedDict()
        self._pack = zstandard.ZstdCompressor(level=3).compress

    def prepare(self, captures: Sequence[Capture]) -> list[NewDocument]:
        """Give each page of a batch its document's key, links and wishes; return the documents that are new."""
        pages = [capture for capture in captures if capture.body]
        for capture in pages:
            capture.document_key = document_key(capture)
        with self._hot.read() as tx:
            known = queries.known_documents(tx, [key[0] for key in _keys(pages)])
            known = {key: found for key, found in known.items() if found.version >= DOCUMENT_VERSION}
            linked = queries.shown_together(tx, list(_linked(pages, known)))
        made: dict[DocumentKey, NewDocument] = {}
        shown: set[tuple[int, DocumentKey]] = set()
        for capture in pages:
            key = capture.document_key
            assert key is not None
            stored = known.get(key)
            if stored is None and key not in made:
                made[key] = self._read(capture, key)
            if stored is not None:
                capture.document_id = stored.id
                capture.noindex = capture.noindex or stored.noindex
            else:
                capture.noindex = capture.noindex or self._remembered(capture, key).noindex
            again = (capture.identity.url_hash, key) in shown or (
                stored is not None and (capture.identity.url_hash, stored.id) in linked
            )
            if capture.is_ok and capture.kind is Kind.HTML and not again:
                shown.add((capture.identity.url_hash, key))
                said = self._remembered(capture, key)
                own = capture.identity.group_hash
                capture.links = outlinks(capture.url, said.base, said.hrefs, own_hash=own)
            capture.body = b""
        return list(made.values())

    def _remembered(self, capture: Capture, key: DocumentKey) -> _Said:
        if key not in self._said:
            self._remember(key, self._parse(capture))
        return self._said[key]

    def _remember(self, key: DocumentKey, parsed: ParsedDocument) -> None:
        self._said[key] = _Said(parsed.base, parsed.hrefs, parsed.noindex)
        if len(self._said) > _REMEMBERED:
            self._said.popitem(last=False)

    def _parse(self, capture: Capture) -> ParsedDocument:
        how = capture.kind.value, capture.media_type, capture.charset
        needs_child = capture.kind is Kind.PDF or (capture.kind is Kind.HTML and looks_pathological(capture.body))
        parse = self._child.read if needs_child else parse_document
        return parse(capture.body, kind=how[0], media_type=how[1], charset=how[2], url=capture.url)

    def _read(self, capture: Capture, key: DocumentKey) -> NewDocument:
        parsed = self._parse(capture)
        self._remember(key, parsed)
        text = parsed.text
        language = parsed.language or canonical_tag(capture.language) or detect_language(text)
        details: dict[str, object] = dict(parsed.details)
        if parsed.problems:
            details["problems"] = list(parsed.problems)
        row = (
            *key, capture.body_bytes, parsed.title, parsed.description, make_snippet(text, parsed.description),
            "\n".join(parsed.headings) or None, language, resolved(capture.url, parsed.base, parsed.canonical),
            json.dumps(details), parsed.noindex, says_archived(parsed.title, text), simhash(text), len(text),
            DOCUMENT_VERSION,
        )  # fmt: skip
        return NewDocument(key, row, self._pack(text.encode("utf-8", "replace")))


def document_key(capture: Capture) -> DocumentKey:
    """Return what tells the document of a page from all others: body, charset, and what it is read as."""
    assert capture.body_hash is not None
    charset = "" if capture.kind is Kind.PDF else decode(capture.body, capture.charset).charset
    declared = capture.media_type or ""
    is_alike = ("html" in declared) if capture.kind is Kind.HTML else declared.startswith("text/")
    if capture.kind is Kind.TEXT and declared in ("text/html", "text/*"):
        is_alike = False
    media_type = declared if is_alike and capture.kind is not Kind.PDF else _PAGE_TYPE[capture.kind]
    return capture.body_hash, charset, media_type[:_TYPE_CHARS]


def _keys(pages: Sequence[Capture]) -> list[DocumentKey]:
    return [capture.document_key for capture in pages if capture.document_key is not None]


def _linked(pages: Sequence[Capture], known: dict[DocumentKey, Known]) -> set[tuple[int, int]]:
    return {
        (capture.identity.url_hash, known[capture.document_key].id)
        for capture in pages
        if capture.document_key in known and capture.is_ok
    }
