"""How a page to parse and what came of it cross a pipe: lengths, JSON, raw bytes. Nothing in it can run code."""

from __future__ import annotations

import json
import struct
from dataclasses import asdict
from typing import Any, TypeGuard

from holdfast.parse.document import DocumentReading, ParsedDocument
from holdfast.parse.page import Reading
from holdfast.types import Link, ParsedPage

REQUEST_HEAD = struct.Struct("!II")
REPLY_HEAD = struct.Struct("!I")
READY = REPLY_HEAD.pack(0)


def pack_request(body: bytes, how: Reading | DocumentReading) -> bytes:
    """Return one page to parse as bytes: two lengths, how to read it, the body."""
    head = json.dumps(how, default=list).encode("ascii")
    return REQUEST_HEAD.pack(len(head), len(body)) + head + body


def unpack_reading(head: bytes) -> Reading | DocumentReading:
    """Return how a body is to be read. Trusts its parent, which wrote it."""
    how: Reading | DocumentReading = json.loads(head)
    return how


def is_for_index(how: Reading | DocumentReading) -> TypeGuard[DocumentReading]:
    """Whether a request asks for a document, not for a page's links."""
    return "kind" in how


def pack_reply(page: ParsedPage | ParsedDocument) -> bytes:
    """Return a parsed page or document as bytes: a length and JSON."""
    reply = json.dumps(asdict(page)).encode("ascii")
    return REPLY_HEAD.pack(len(reply)) + reply


def unpack_reply(reply: bytes) -> ParsedPage:
    """Return the parsed page in a reply. Raises ValueError, TypeError or KeyError if it is none."""
    fields: dict[str, Any] = json.loads(reply)
    texts = {name: _text(fields[name]) for name in _TEXTS}
    return ParsedPage(
        **texts,
        links=_links(fields["links"]),
        resources=_links(fields["resources"]),
        nofollow=fields["nofollow"] is True,
        noindex=fields["noindex"] is True,
        problems=tuple(str(problem) for problem in fields["problems"]),
    )


def unpack_document(reply: bytes) -> ParsedDocument:
    """Return the document in a reply. Raises ValueError, TypeError or KeyError if it is none."""
    fields: dict[str, Any] = json.loads(reply)
    texts = {name: _text(fields[name]) for name in ("title", "description", "language", "canonical", "base")}
    lists = {name: tuple(str(one) for one in fields[name]) for name in ("headings", "hrefs", "problems")}
    details = {str(name): str(value) for name, value in fields["details"].items()}
    noindex = fields["noindex"] is True
    return ParsedDocument(
        title=texts["title"], description=texts["description"], language=texts["language"],
        canonical=texts["canonical"], base=texts["base"], text=str(fields["text"]), headings=lists["headings"],
        hrefs=lists["hrefs"], noindex=noindex, details=details, problems=lists["problems"],
    )  # fmt: skip


_TEXTS = ("title", "description", "language", "charset", "canonical", "base", "text")


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _links(value: list[list[str]]) -> tuple[Link, ...]:
    return tuple(Link(str(url), str(rel)) for url, rel in value)
