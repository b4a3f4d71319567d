"""What a body really is, from its declared type and its first bytes. Looks at 512 bytes and never past them.

Servers lie in both directions: PDF and ZIP called text/html, pages called text/plain or nothing at all.
"""

from __future__ import annotations

import re
from enum import StrEnum
from typing import NamedTuple

_SNIFF_BYTES = 512


class Form(StrEnum):
    """Which reader a body goes to."""

    HTML = "html"
    XML = "xml"
    CSS = "css"
    TEXT = "text"
    OTHER = "other"


class Sniffed(NamedTuple):
    """The reader to use, and whether the server said otherwise."""

    form: Form
    mismatch: bool = False


_BY_TYPE = {
    "text/html": Form.HTML,
    "application/xhtml+xml": Form.HTML,
    "application/vnd.wap.xhtml+xml": Form.HTML,
    "image/svg+xml": Form.HTML,
    "text/xml": Form.XML,
    "application/xml": Form.XML,
    "text/css": Form.CSS,
    "text/plain": Form.TEXT,
    "text/markdown": Form.TEXT,
    "text/csv": Form.TEXT,
}
# Types that say "I do not know"; the bytes decide.
_SILENT = frozenset({"", "application/octet-stream", "application/unknown", "unknown/unknown", "*/*", "text/*", "text"})

_MAGIC = (
    b"%PDF-",
    b"%!PS-Adobe-",
    b"PK\x03\x04",
    b"PK\x05\x06",
    b"MZ\x90",
    b"\x7fELF",
    b"GIF87a",
    b"GIF89a",
    b"\x89PNG\r\n\x1a\n",
    b"\xff\xd8\xff",
    b"RIFF",
    b"\x1f\x8b",
    b"BZh",
    b"\xfd7zXZ\0",
    b"\x28\xb5\x2f\xfd",
    b"7z\xbc\xaf\x27\x1c",
    b"Rar!\x1a\x07",
    b"OggS\0",
    b"ID3",
    b"fLaC",
    b"\x1aE\xdf\xa3",
    b"wOFF",
    b"wOF2",
    b"\0\x01\0\0",
    b"OTTO",
    b"\0\0\x01\0",
    b"II*\0",
    b"MM\0*",
    b"\xca\xfe\xba\xbe",
    b"SQLite format 3\0",
    b"{\\rtf",
    b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1",
)
_LOOKS_LIKE_HTML = re.compile(
    rb"(?:<!doctype\s+html|<html|<head|<body|<script|<title|<meta|<iframe|<table|<div|<h1|<style|<p|<a|<br|<b|<font)[\s>/]",
    re.I,
)
_LOOKS_LIKE_A_PAGE = re.compile(rb"(?:<!doctype\s+html|<html)[\s>]", re.I)
_LEADING_COMMENT = re.compile(rb"\s*(?:<\?xml[^>]{0,200}\?>\s*)?(?:<!--[^>]{0,400}-->\s*)?")
_XML_START = (b"<?xml", b"<rss", b"<feed", b"<urlset", b"<sitemapindex", b"<rdf:RDF")
_BINARY = re.compile(rb"[\x00-\x08\x0b\x0e-\x1a\x1c-\x1f]")


def media_type_of(value: str | None) -> str:
    """Return the bare media type of a Content-Type value, lower-case; an empty string if there is none."""
    return (value or "")[:1024].partition(";")[0].strip().lower()


def sniff(body: bytes, media_type: str | None) -> Sniffed:
    """Return which reader a body goes to. Never raises."""
    declared = media_type_of(media_type)
    head = body[:_SNIFF_BYTES]
    form = _BY_TYPE.get(declared)
    if form is None and declared.endswith("+xml"):
        form = Form.XML
    if form is None and declared not in _SILENT:
        return Sniffed(Form.OTHER)
    if _is_other(head):
        return Sniffed(Form.OTHER, mismatch=form is not None)
    if form is Form.TEXT:
        return Sniffed(Form.HTML, mismatch=True) if _starts(head, _LOOKS_LIKE_A_PAGE) else Sniffed(Form.TEXT)
    if form is Form.XML and _starts(head, _LOOKS_LIKE_A_PAGE):
        return Sniffed(Form.HTML, mismatch=True)
    if form is not None:
        return Sniffed(form)
    if _starts(head, _LOOKS_LIKE_HTML):
        return Sniffed(Form.HTML, mismatch=True)
    if head.removeprefix(b"\xef\xbb\xbf").lstrip().startswith(_XML_START):
        return Sniffed(Form.XML)
    return Sniffed(Form.TEXT if head else Form.OTHER)


def looks_like_html(body: bytes) -> bool:
    """Whether a body starts like a web page, whatever it was called."""
    return _starts(body[:_SNIFF_BYTES], _LOOKS_LIKE_A_PAGE)


def _starts(head: bytes, pattern: re.Pattern[bytes]) -> bool:
    head = head.removeprefix(b"\xef\xbb\xbf")
    before = _LEADING_COMMENT.match(head)
    return pattern.match(head, before.end() if before else 0) is not None


def _is_other(head: bytes) -> bool:
    """Whether the first bytes are those of a format that is no text."""
    if head.startswith(_MAGIC) or head[4:8] == b"ftyp" or head[257:262] == b"ustar":
        return True
    if head.startswith((b"\xff\xfe", b"\xfe\xff")) or _BINARY.search(head) is None:
        return False
    # Zeros in every other byte are UTF-16 without a mark; a few stray controls are a careless author.
    strange = len(_BINARY.findall(head))
    even, odd = head[::2].count(0), head[1::2].count(0)
    if (even + odd) * 3 >= len(head) and min(even, odd) * 4 <= max(even, odd):
        return False
    return strange * 8 > len(head)
