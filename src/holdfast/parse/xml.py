"""The only place where XML is parsed: as a stream, without a tree, entities, DTDs or network."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import Any, NamedTuple, cast
from urllib.parse import urljoin

from lxml import etree

from holdfast.gzip_streams import GZIP, GZIP_MAGIC, DeflateStream, EndOfInput, InflateBudget, reader_of
from holdfast.parse.charset import ParseProblem, decode_text, looks_like_html

# A declaration must come before the root; 64 KiB is far more than any real prolog.
_PROLOG_BYTES = 64 * 1024
_MAX_TEXT_CHARS = 8192
# Enough for 50,000 pages with twenty elements each; more would waste our time (about 2 us each).
_MAX_ELEMENTS = 1_000_000
_XML_BASE = "{http://www.w3.org/XML/1998/namespace}base"
# A feed has one, or one for each entry; each base is joined to its parent's, which takes time.
_MAX_BASES = 1000
_MAX_BASE_CHARS = 2048


# XML_ERR_ENTITYREF_SEMICOL_MISSING, XML_ERR_UNDECLARED_ENTITY, XML_ERR_NAME_REQUIRED
_REFERENCE_ERRORS = frozenset({23, 26, 68})


class XmlBroken(Exception):
    """The XML is not well-formed, or longer than the limit, from here on. Never leaves this package."""

    def __init__(self, message: str, *, by_reference: bool) -> None:
        super().__init__(message)
        self.by_reference = by_reference


class Element(NamedTuple):
    name: str
    parent: str
    text: str
    attributes: dict[str, str]
    base: str = ""
    """Base of its references (`xml:base`); empty for the document."""


def based(element: Element, reference: str) -> str:
    """Return a reference resolved against the element's base; unchanged if it cannot be joined."""
    if not element.base:
        return reference
    try:
        return urljoin(element.base, reference)
    except ValueError:
        return reference


def declares_entities(head: bytes) -> bool:
    """Return True if a document's prolog declares entities, in ASCII or in UTF-16."""
    # UTF-16 is ASCII with zeros between its letters.
    return b"<!entity" in head[:_PROLOG_BYTES].replace(b"\0", b"").lower()


def elements(chunks: Iterable[bytes], names: frozenset[str]) -> Iterator[Element]:
    """Yield the root, whatever its name, then the elements with these local names as they end, in any namespace.

    Raise XmlBroken where the document stops being well-formed, after everything before that was yielded.
    """
    target = _Target(names)
    parser = etree.XMLParser(
        target=cast(Any, target),  # the stubs ask for more than lxml calls
        # Entities can read local files and expand without limit; DTDs can load URLs.
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        dtd_validation=False,
        huge_tree=False,
        remove_comments=True,
        remove_pis=True,
    )
    try:
        for chunk in chunks:
            try:
                parser.feed(chunk)
            # Do this also if the chunk failed: elements that ended before the error count.
            finally:
                yield from target.take()
        parser.close()
    except (etree.XMLSyntaxError, ValueError, LookupError, AssertionError) as error:
        code = getattr(error, "code", None)
        raise XmlBroken(str(error)[:200], by_reference=code in _REFERENCE_ERRORS) from error


class _Target:
    def __init__(self, names: frozenset[str]) -> None:
        self._names = names
        self._above: list[str] = []
        self._open: list[tuple[dict[str, str], list[str]]] = []
        self._done: list[Element] = []
        self._count = 0
        self._chars = 0
        # The open bases, each with its depth.
        self._bases: list[tuple[int, str]] = []
        self._based = 0

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        name = tag.rpartition("}")[2]
        self._count += 1
        if self._count == 1:
            self._done.append(Element(name, "", "", {}))
        elif self._count > _MAX_ELEMENTS:
            raise ValueError("too many elements")
        if _XML_BASE in attributes:
            self._rebase(attributes[_XML_BASE])
        if name in self._names:
            self._open.append(({key.rpartition("}")[2]: value for key, value in attributes.items()}, []))
            self._chars = 0
        self._above.append(name)

    def _rebase(self, written: str) -> None:
        """Set the base for the element that starts now and its content; an invalid base is ignored."""
        self._based += 1
        if self._based > _MAX_BASES or len(written) > _MAX_BASE_CHARS:
            return
        above = self._bases[-1][1] if self._bases else ""
        try:
            self._bases.append((len(self._above), urljoin(above, written.strip())[:_MAX_BASE_CHARS]))
        except ValueError:
            return

    def data(self, text: str) -> None:
        # The parser delivers text in pieces; drop the rest of an overlong text.
        if self._open and self._chars < _MAX_TEXT_CHARS:
            self._open[-1][1].append(text)
            self._chars += len(text)

    def end(self, _tag: str) -> None:
        name = self._above.pop()
        if name in self._names:
            attributes, parts = self._open.pop()
            parent = self._above[-1] if self._above else ""
            base = self._bases[-1][1] if self._bases else ""
            self._done.append(Element(name, parent, "".join(parts)[:_MAX_TEXT_CHARS].strip(), attributes, base))
        if self._bases and self._bases[-1][0] == len(self._above):
            self._bases.pop()

    def close(self) -> None:
        """Do nothing at the end of the document: there is nothing to build."""

    def take(self) -> list[Element]:
        done, self._done = self._done, []
        return done


MAX_BYTES = 50 * 1024 * 1024
"""Limit on one document after inflating, as in the sitemap protocol."""
_CHUNK_BYTES = 64 * 1024
_BUDGET = InflateBudget(feed_bytes=16 * 1024, output_bytes=_CHUNK_BYTES)
# Most members of a gzip file: 50 MiB in bgzip's blocks of 64 KiB are 800.
_MAX_MEMBERS = 10_000
_HTTP = ("http://", "https://")
_MAX_REFERENCE = 10
_BARE_AMPERSAND = re.compile(rb"&(?!(?:amp|lt|gt|quot|apos|#[0-9]{1,7}|#x[0-9A-Fa-f]{1,6});)")

Note = Callable[[ParseProblem], None]
Repair = Callable[[Iterator[bytes]], Iterator[bytes]]


class OpenedDocument(NamedTuple):
    head: bytes
    chunks: Iterator[bytes]

    @property
    def is_xml(self) -> bool:
        return self.head.startswith((b"<", b"\xff\xfe<\0", b"\xfe\xff\0<", b"\0<\0"))

    def addresses(self) -> Iterator[str]:
        text, _ = decode_text(b"".join(self.chunks))
        return (line for line in map(str.strip, text.splitlines()) if line[:8].lower().startswith(_HTTP))


def open_document(body: bytes, note: Note) -> OpenedDocument | None:
    """Return a sitemap's or a feed's bytes, inflated; None, with a note, for documents that are rejected unread."""
    chunks = _chunks_of(body, note)
    head = _trimmed(next(chunks, b""))
    if head.startswith(GZIP_MAGIC):
        note(ParseProblem.GZIP_NESTED)
    elif looks_like_html(head):
        note(ParseProblem.HTML_INSTEAD)
    elif declares_entities(head):
        note(ParseProblem.XML_ENTITIES)
    else:
        return OpenedDocument(head, chain([head], chunks))
    return None


def _chunks_of(body: bytes, note: Note) -> Iterator[bytes]:
    """Yield a body in pieces of limited size, at most 50 MiB in all; inflates a gzip file."""
    return _inflated(body, note) if body.startswith(GZIP_MAGIC) else _pieces(body, note)


def _trimmed(head: bytes) -> bytes:
    return head if head.startswith((b"\xff\xfe", b"\xfe\xff", b"\0")) else head.removeprefix(b"\xef\xbb\xbf").lstrip()


def as_is(chunks: Iterator[bytes]) -> Iterator[bytes]:
    return chunks


def escape_ampersands(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the chunks with every ampersand escaped that does not start one of XML's own references."""
    kept = b""
    for chunk in chunks:
        chunk = kept + chunk
        # The end of a chunk may cut a reference.
        last = chunk.rfind(b"&", len(chunk) - _MAX_REFERENCE)
        kept = chunk[last:] if last >= 0 else b""
        yield _BARE_AMPERSAND.sub(b"&amp;", chunk[:last] if last >= 0 else chunk)
    yield _BARE_AMPERSAND.sub(b"&amp;", kept)


def _pieces(body: bytes, note: Note) -> Iterator[bytes]:
    if len(body) > MAX_BYTES:
        note(ParseProblem.BODY_CUT)
    for at in range(0, min(len(body), MAX_BYTES), _CHUNK_BYTES):
        yield body[at : at + _CHUNK_BYTES]


def _inflated(body: bytes, note: Note) -> Iterator[bytes]:
    """Yield the content of a gzip file, member by member; pieces, members and bytes are limited."""
    left, at = MAX_BYTES, 0
    for _ in range(_MAX_MEMBERS):
        if left <= 0 or not body.startswith(GZIP_MAGIC, at):
            break
        member = DeflateStream(reader_of(body), at, GZIP, _BUDGET)
        try:
            for piece in member:
                left -= len(piece)
                yield piece
                if left <= 0:
                    break
        except (zlib.error, EndOfInput):
            note(ParseProblem.GZIP_BROKEN)
            return
        at = member.end or at
    if left <= 0 or body.startswith(GZIP_MAGIC, at):
        note(ParseProblem.BODY_CUT)
