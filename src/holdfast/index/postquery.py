"""What was sent with a request other than GET, spelt as part of its key: as other archives' indexes spell it.

`__wb_method=POST&` and then the form's fields, a flattened JSON, or the bytes in base64 (field.md: CDXJ).
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote_plus

from holdfast.warc.payload import HttpHead, dechunk, parse_head

MAX_DATA_BYTES = 64 * 1024
_MAX_QUERY_CHARS = 4096
_REQUEST_LINE = re.compile(rb"([A-Za-z]{1,16})[ \t]")
_PART_NAME = re.compile(r'name="([^"]*)"')
_MAX_JSON_DEPTH = 60


def method_of(head: bytes) -> str | None:
    """Return the method in a request's first line, upper-case; None if there is none."""
    match = _REQUEST_LINE.match(head)
    return match[1].decode().upper() if match else None


def request_data(method: str, head: bytes, body: bytes) -> str:
    """Return what is added to the address of a request to make its key; empty for a GET."""
    if method in ("GET", "HEAD"):
        return "" if method == "GET" else "__wb_method=HEAD"
    # The request line is no status line; the headers below it are read alike.
    query = _query(parse_head(head), body) if body and method in ("POST", "PUT", "PATCH") else ""
    return f"__wb_method={method}&{query}" if query else f"__wb_method={method}"


def _query(head: HttpHead, body: bytes) -> str:
    if head.is_chunked:
        body = b"".join(dechunk((body,)))
    declared = (head.get("content-type") or "").lower()
    try:
        if declared.startswith("application/x-www-form-urlencoded"):
            query = body.decode()
        elif declared.startswith("multipart/"):
            query = _multipart(head.get("content-type") or "", body)
        elif declared.startswith(("application/json", "text/plain")):
            query = _flat(json.loads(body))
        else:
            query = _binary(body)
    except (ValueError, RecursionError):
        query = _binary(body)
    return query[:_MAX_QUERY_CHARS].replace("\0", "")


def _binary(body: bytes) -> str:
    return "__wb_post_data=" + b64encode(body).decode()


def _multipart(declared: str, body: bytes) -> str:
    boundary = declared.partition("boundary=")[2].partition(";")[0].strip().strip('"').encode()
    if not boundary:
        raise ValueError("no boundary")
    fields = []
    for part in body.split(b"--" + boundary)[1:]:
        head, _, value = part.partition(b"\r\n\r\n")
        name = _PART_NAME.search(head.decode("utf-8", "replace"))
        if name:
            said = value.removesuffix(b"\r\n").decode("utf-8", "replace")
            fields.append(f"{name[1]}={said}")
    return "&".join(fields)


def _flat(content: Any) -> str:
    """Return a JSON value as form fields: leaves by their name, a number behind a name that comes again."""
    counts: dict[str, int] = {}
    pairs = []
    for name, value in _leaves("", content, _MAX_JSON_DEPTH):
        counts[name] = counts.get(name, 0) + 1
        shown = name if counts[name] == 1 else f"{name}.{counts[name]}_"
        pairs.append(f"{quote_plus(shown)}={quote_plus(_plain(value))}")
    return "&".join(pairs)


def _leaves(name: str, content: Any, depth: int) -> Iterator[tuple[str, Any]]:
    if depth == 0:
        raise ValueError("nested too deeply")
    if isinstance(content, dict):
        for key, value in content.items():
            yield from _leaves(str(key), value, depth - 1)
    elif isinstance(content, list):
        for value in content:
            yield from _leaves(name, value, depth - 1)
    elif name:
        yield name, content


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return "null" if value is None else str(value)
