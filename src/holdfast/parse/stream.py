"""The bytes of a sitemap or a feed as a stream: inflated within bounds, trimmed, its bare ampersands mended.

Refuses unread, for both: gzip inside gzip, HTML, and documents that declare entities. The rest that is odd is noted.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterator
from itertools import chain
from typing import NamedTuple

from holdfast.parse.charset import decode_text
from holdfast.parse.problems import Problem
from holdfast.parse.sniff import looks_like_html
from holdfast.parse.xml import declares_entities

MAX_BYTES = 50 * 1024 * 1024
"""Read of one document, after inflating: the sitemap protocol's limit."""
GZIP = b"\x1f\x8b"
_CHUNK_BYTES = 64 * 1024
_SLICE_BYTES = 16 * 1024
_MAX_MEMBERS = 10_000
"""Members of one gzip file that are read: 50 MiB in the blocks of 64 KiB that bgzip writes are 800."""
_HTTP = ("http://", "https://")
_MAX_REFERENCE = 10
_BARE_AMPERSAND = re.compile(rb"&(?!(?:amp|lt|gt|quot|apos|#[0-9]{1,7}|#x[0-9A-Fa-f]{1,6});)")

Note = Callable[[Problem], None]
Repair = Callable[[Iterator[bytes]], Iterator[bytes]]


class Opened(NamedTuple):
    """A document that may be read: its first bytes, trimmed, and all of it."""

    head: bytes
    chunks: Iterator[bytes]

    @property
    def is_xml(self) -> bool:
        """Whether it begins as XML does, in ASCII or in UTF-16."""
        return self.head.startswith((b"<", b"\xff\xfe<\0", b"\xfe\xff\0<", b"\0<\0"))

    def addresses(self) -> Iterator[str]:
        """Yield the lines of a text that are addresses."""
        text, _ = decode_text(b"".join(self.chunks))
        return (line for line in map(str.strip, text.splitlines()) if line[:8].lower().startswith(_HTTP))


def open_document(body: bytes, note: Note) -> Opened | None:
    """Return a sitemap's or a feed's bytes, inflated; None, with a note, for what is refused unread."""
    chunks = _chunks_of(body, note)
    head = _trimmed(next(chunks, b""))
    if head.startswith(GZIP):
        note(Problem.GZIP_NESTED)
    elif looks_like_html(head):
        note(Problem.HTML_INSTEAD)
    elif declares_entities(head):
        note(Problem.XML_ENTITIES)
    else:
        return Opened(head, chain([head], chunks))
    return None


def _chunks_of(body: bytes, note: Note) -> Iterator[bytes]:
    """Yield a body in pieces of bounded size, at most 50 MiB in all; a gzip file is inflated on the way."""
    return _inflated(body, note) if body.startswith(GZIP) else _pieces(body, note)


def _trimmed(head: bytes) -> bytes:
    """Return the first bytes without mark and white space, which XML forbids before its declaration and the web has."""
    return head if head.startswith((b"\xff\xfe", b"\xfe\xff", b"\0")) else head.removeprefix(b"\xef\xbb\xbf").lstrip()


def as_is(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Return the chunks."""
    return chunks


def escape_ampersands(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the chunks with every ampersand escaped that starts none of XML's own references."""
    kept = b""
    for chunk in chunks:
        chunk = kept + chunk
        # A reference may be cut by the end of a chunk.
        last = chunk.rfind(b"&", len(chunk) - _MAX_REFERENCE)
        kept = chunk[last:] if last >= 0 else b""
        yield _BARE_AMPERSAND.sub(b"&amp;", chunk[:last] if last >= 0 else chunk)
    yield _BARE_AMPERSAND.sub(b"&amp;", kept)


def _pieces(body: bytes, note: Note) -> Iterator[bytes]:
    if len(body) > MAX_BYTES:
        note(Problem.BODY_CUT)
    for at in range(0, min(len(body), MAX_BYTES), _CHUNK_BYTES):
        yield body[at : at + _CHUNK_BYTES]


def _inflated(body: bytes, note: Note) -> Iterator[bytes]:
    """Yield the content of a gzip file, member after member; pieces, members and bytes are bounded.

    The body is fed in slices: what zlib hands back as not yet used is a copy, and copying the rest of the body for each
    member or piece would make the time grow with the square of its size.
    """
    left, at = MAX_BYTES, 0
    for _ in range(_MAX_MEMBERS):
        if left <= 0 or not body.startswith(GZIP, at):
            break
        member = zlib.decompressobj(31)
        while not member.eof and left > 0:
            fed = body[at : at + _SLICE_BYTES]
            try:
                piece = member.decompress(fed, _CHUNK_BYTES)
            except zlib.error:
                note(Problem.GZIP_BROKEN)
                return
            taken = len(fed) - len(member.unconsumed_tail) - len(member.unused_data)
            at += taken
            if not piece and not taken and not member.eof:
                note(Problem.GZIP_BROKEN)
                return
            left -= len(piece)
            if piece:
                yield piece
    if left <= 0 or body.startswith(GZIP, at):
        note(Problem.BODY_CUT)
