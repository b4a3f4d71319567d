"""Rewrites `url()`, `@import` and `image-set()` of style sheets to the archive; copies every other character.

One forward pass, so the time is linear for any input.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from holdfast.parse.addresses import after_descriptor
from holdfast.replay.address import Modifier
from holdfast.replay.links import Deadline

# Limit of a URL with escapes; longer ones are removed.
_MAX_ESCAPED = 64 * 1024
Resolve = Callable[[str, str], str | None]
"""Maps a reference and a modifier to an archive URL; None leaves the reference unchanged."""

_NEXT = re.compile(
    r"""/\*|["']|\\.|(?<![\w-])url\(|@import(?![\w-])|@namespace(?![\w-])|(?<![\w])(?:-webkit-)?image-set\(|[();]""",
    re.I | re.S,
)
_STRING_END = {quote: re.compile(rf"[{quote}\\\n\r\f]") for quote in "\"'"}
_URL_END = re.compile(r"[)\\]")
_BLANK = re.compile(r"[ \t\n\r\f]*+")
_ESCAPE = re.compile(r"\\(?:([0-9a-fA-F]{1,6})(?:\r\n|[ \t\n\r\f])?|(\r\n|.))", re.S)


class _Sheet:
    __slots__ = ("_at", "_copied", "_depth", "_imports", "_pieces", "_resolve", "_sets", "_text")

    def __init__(self, text: str, resolve: Resolve) -> None:
        self._text, self._resolve = text, resolve
        self._pieces: list[str] = []
        self._at = self._copied = 0
        # Whether the next string or url() belongs to an @import.
        self._imports = False
        self._depth = 0
        # The depths of open image-set() functions: strings directly inside one are URLs.
        self._sets: list[int] = []

    def rewrite(self, deadline: Deadline) -> str:
        while token := _NEXT.search(self._text, self._at):
            deadline.check()
            word, self._at = token[0].lower(), token.end()
            if word == "/*":
                self._at = _after(self._text, "*/", self._at)
            elif word[0] in "\"'":
                self._string(word, token.start())
            elif word == "url(":
                self._url()
            elif word == "@import":
                self._imports = True
            # Its URL identifies a vocabulary and is never requested: rewritten, the sheet would match nothing.
            elif word == "@namespace":
                self._at = _after(self._text, ";", self._at)
            else:
                self._nest(word)
        if not self._pieces:
            return self._text
        self._pieces.append(self._text[self._copied :])
        return "".join(self._pieces)

    def _nest(self, word: str) -> None:
        if word.endswith("("):
            self._depth += 1
            # A hostile sheet opens millions; no real one nests that deep.
            if len(word) > 1 and len(self._sets) < 64:
                self._sets.append(self._depth)
        elif word == ")":
            if self._sets and self._sets[-1] == self._depth:
                self._sets.pop()
            self._depth = max(0, self._depth - 1)
        elif word == ";":
            self._imports = False

    def _string(self, quote: str, start: int) -> None:
        value, self._at, is_whole = _string(self._text, self._at, quote)
        if not is_whole:
            return
        if self._imports:
            self._imports = False
            self._replace(value, start, self._at, Modifier.STYLE)
        elif self._sets and self._sets[-1] == self._depth:
            self._replace(value, start, self._at, Modifier.IMAGE)

    def _url(self) -> None:
        modifier = Modifier.STYLE if self._imports else Modifier.IMAGE
        self._imports = False
        blank = _BLANK.match(self._text, self._at)
        start = self._at = blank.end() if blank else self._at
        quote = self._text[start : start + 1]
        if quote in ("'", '"') and quote:
            value, self._at, is_whole = _string(self._text, start + 1, quote)
            end = self._at
            if not is_whole:
                self._at = _after_parenthesis(self._text, self._at)
                return
        else:
            self._at = _after_parenthesis(self._text, start)
            end = self._at - (self._text[self._at - 1 : self._at] == ")")
            value = self._text[start:end].rstrip(" \t\n\r\f")
        self._replace(value, start, end, modifier)

    def _replace(self, value: str, start: int, end: int, modifier: str) -> None:
        if "\\" in value:
            # Unescaping copies the value: do it only for possible URLs.
            if len(value) > _MAX_ESCAPED:
                return
            value = _ESCAPE.sub(_character, value)
        target = self._resolve(value, modifier)
        if target is not None:
            self._pieces += (self._text[self._copied : start], '"', target, '"')
            self._copied = end


def rewrite_css(text: str, resolve: Resolve, deadline: Deadline) -> str:
    """Rewrite the references of a sheet, or of a style attribute, to the archive; raise TooSlow on timeout."""
    # Most style attributes contain no possible URL.
    if "(" not in text and "@" not in text:
        return text
    return _Sheet(text, resolve).rewrite(deadline)


def _after(text: str, mark: str, at: int) -> int:
    found = text.find(mark, at)
    return len(text) if found < 0 else found + len(mark)


def _after_parenthesis(text: str, at: int) -> int:
    while end := _URL_END.search(text, at):
        at = end.end()
        if end[0] == ")":
            return at
        at += 1
    return len(text)


def _string(text: str, at: int, quote: str) -> tuple[str, int, bool]:
    """Return a string that opened before `at`, its end, and whether it is closed; a line break ends a broken one."""
    start = at
    while end := _STRING_END[quote].search(text, at):
        at = end.end()
        if end[0] == quote:
            return text[start : at - 1], at, True
        # CSS Syntax, "consume a string token": a line break makes a bad string, and parsing continues after it.
        if end[0] != "\\":
            return "", at, False
        at += 1
    return "", len(text), False


def _character(escape: re.Match[str]) -> str:
    digits, char = escape[1], escape[2]
    if digits is None:
        return "" if char in {"\n", "\r", "\r\n", "\f"} else char
    code = int(digits, 16)
    return chr(code) if 0 < code < 0xD800 or 0xDFFF < code < 0x110000 else "\ufffd"


_MAX_CHARS = 256 * 1024
_CANDIDATE = re.compile(r"[ \t\n\r\f,]*+([^ \t\n\r\f]+)")


def rewrite_srcset(value: str, modifier: str, resolve: Resolve, deadline: Deadline) -> str:
    """Rewrite the candidates of a srcset to the archive; raise TooSlow on timeout. An oversized list is dropped."""
    if len(value) > _MAX_CHARS:
        return ""
    pieces: list[str] = []
    at = copied = 0
    while candidate := _CANDIDATE.match(value, at):
        deadline.check()
        url, at = candidate[1], candidate.end()
        start = candidate.start(1)
        end = start + len(url.rstrip(","))
        target = resolve(value[start:end], modifier)
        if target is not None:
            pieces += (value[copied:start], target)
            copied = end
        if end == candidate.end():
            at = after_descriptor(value, at)
    return "".join((*pieces, value[copied:])) if pieces else value
