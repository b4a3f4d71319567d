"""How a page to parse and what came of it cross a pipe: lengths, JSON, raw bytes. Nothing in it can run code."""

from __future__ import annotations

import json
import struct
from dataclasses import asdict
from typing import Any

from holdfast.parse.page import Reading
from holdfast.types import Link, ParsedPage

REQUEST_HEAD = struct.Struct("!II")
REPLY_HEAD = struct.Struct("!I")
READY = REPLY_HEAD.pack(0)


def pack_request(body: bytes, how: Reading) -> bytes:
    """Return one page to parse as bytes: two lengths, how to read it, the body."""
    head = json.dumps({**how, "x_robots": list(how.get("x_robots", ()))}).encode("ascii")
    return REQUEST_HEAD.pack(len(head), len(body)) + head + body


def unpack_reading(head: bytes) -> Reading:
    """Return how a body is to be read. Trusts its parent, which wrote it."""
    how: Reading = json.loads(head)
    return how


def pack_reply(page: ParsedPage) -> bytes:
    """Return a parsed page as bytes: a length and JSON."""
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


_TEXTS = ("title", "description", "language", "charset", "canonical", "base", "text")


def _text(value: object) -> str | None:
    return None if value is None else str(value)


def _links(value: list[list[str]]) -> tuple[Link, ...]:
    return tuple(Link(str(url), str(rel)) for url, rel in value)
