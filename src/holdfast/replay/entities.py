"""Attribute values as HTML writes them: character references undone and done. One pass each, and never an error."""

from __future__ import annotations

import re
from html.entities import html5

from holdfast.replay.deadline import Deadline

_STEP_CHARS = 4096
"""Characters that are escaped between two looks at the deadline."""
_REFERENCE = re.compile(r"&(?:#([0-9]{1,9});?|#[xX]([0-9a-fA-F]{1,8});?|([A-Za-z][A-Za-z0-9]{0,40})(;?))")
_SPECIAL = re.compile(r"[&\"<>]|[^\x20-\x7e]")
_NAMED = {"&": "&amp;", '"': "&quot;", "<": "&lt;", ">": "&gt;"}
# The numbers 128 to 159 mean windows-1252 (HTML standard, "numeric character reference end state").
_LATIN_HOLE = {0x80 + at: bytes((0x80 + at,)).decode("cp1252", "replace") for at in range(32)}


def unescape(value: str, deadline: Deadline | None = None) -> str:
    """Return what an attribute's value says; TooSlow if time is up.

    A name without a semicolon is left as it is before `=`, as browsers do: `?a=1&copy=2` is no copyright sign.
    """
    if "&" not in value:
        return value

    def character(match: re.Match[str]) -> str:
        if deadline is not None:
            deadline.check()
        return _character(match, value)

    return _REFERENCE.sub(character, value)


def _character(match: re.Match[str], value: str) -> str:
    decimal, hexadecimal, name, semicolon = match.groups()
    if name is not None:
        if semicolon:
            return html5.get(f"{name};", match[0])
        return match[0] if value[match.end() : match.end() + 1] == "=" else html5.get(name, match[0])
    code = int(decimal) if decimal is not None else int(hexadecimal, 16)
    if code in _LATIN_HOLE:
        return _LATIN_HOLE[code]
    return chr(code) if 0 < code < 0xD800 or 0xDFFF < code < 0x110000 else "\ufffd"


def escape(text: str, deadline: Deadline | None = None) -> str:
    """Return a text as the inside of an attribute in double quotes or of an element, in ASCII: right in any charset.

    TooSlow if time is up.
    """
    if text.isascii() and text.isprintable():
        return text.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;").replace(">", "&gt;")
    pieces = []
    for at in range(0, len(text), _STEP_CHARS):
        if deadline is not None:
            deadline.check(_STEP_CHARS // 8)
        pieces.append(_SPECIAL.sub(_reference, text[at : at + _STEP_CHARS]))
    return "".join(pieces)


def _reference(match: re.Match[str]) -> str:
    return _NAMED.get(match[0]) or f"&#{ord(match[0])};"
