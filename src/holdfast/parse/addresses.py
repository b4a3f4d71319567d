"""Extraction of URLs from attributes, `srcset`, meta refresh, and style sheets (`url()`, `@import`).

One pass over the text; nothing is interpreted or fetched.
"""

from __future__ import annotations

import re

from holdfast.parse.charset import decode_text
from holdfast.types import Link

SPACE = " \t\n\r\f"
_MAX_CHARS = 8192
MAX_SRCSET_CHARS = 64 * 1024
"""Limit on the characters read from one srcset."""
_NOT_FETCHED = frozenset(
    {
        "about",
        "blob",
        "callto",
        "chrome",
        "cid",
        "data",
        "facetime",
        "fax",
        "file",
        "ftp",
        "geo",
        "intent",
        "javascript",
        "magnet",
        "mailto",
        "market",
        "news",
        "skype",
        "sms",
        "tel",
        "urn",
        "vbscript",
        "view-source",
        "whatsapp",
    }
)
_LONGEST_SCHEME = max(map(len, _NOT_FETCHED)) + 1
# Possessive: endless commas and blanks are read once, not once from each of them.
_CANDIDATE = re.compile(r"[ \t\n\r\f,]*+([^ \t\n\r\f]+)")
_DESCRIPTOR_STOP = re.compile(r"[(),]")
# Every part is bounded, so that hostile blanks cost nothing.
_REFRESH = re.compile(r"\s{0,32}[\d.]{0,16}\s{0,32}[;,]?\s{0,32}(?:url\s{0,32}=\s{0,32})?(.*)", re.I | re.S)


def address(raw: str) -> str:
    """Return the URL to request for an href or src, still relative; an empty string without one."""
    if "#" in raw:
        raw = raw[: raw.index("#")]
    raw = raw.strip(SPACE)
    # Two of three links start with a slash or "http": skip the check of their scheme.
    if not raw or raw[0] == "/" or raw.startswith("http"):
        return raw if len(raw) <= _MAX_CHARS else ""
    colon = raw.find(":", 0, _LONGEST_SCHEME)
    if (colon > 0 and raw[:colon].lower() in _NOT_FETCHED) or len(raw) > _MAX_CHARS:
        return ""
    return raw


def srcset(value: str) -> list[str]:
    """Return the URLs in a srcset, split as in the HTML standard: a URL may contain commas."""
    found: list[str] = []
    at = 0
    value = value[:MAX_SRCSET_CHARS]
    while candidate := _CANDIDATE.match(value, at):
        url, at = candidate[1], candidate.end()
        if url.endswith(","):
            url = url.rstrip(",")
        else:
            at = after_descriptor(value, at)
        if url := address(url):
            found.append(url)
    return found


def after_descriptor(value: str, at: int) -> int:
    depth = 0
    while stop := _DESCRIPTOR_STOP.search(value, at):
        at = stop.end()
        if stop[0] == ",":
            if depth == 0:
                return at
        else:
            depth = depth + 1 if stop[0] == "(" else max(0, depth - 1)
    return len(value)


def refresh(content: str) -> str:
    """Return the URL of a meta refresh; an empty string if the page only reloads itself."""
    found = _REFRESH.fullmatch(content[: _MAX_CHARS * 2])
    target = found[1].strip(SPACE) if found else ""
    if target[:1] in {"'", '"'}:
        target = target[1:].partition(target[0])[0]
    return address(target)


def written_link(text: str) -> str:
    """Return a URL as written, absolute or relative; empty for schemes that are not crawled."""
    text = text.strip(SPACE)
    scheme, colon, _ = text[:16].partition(":")
    return "" if colon and scheme.isalnum() and scheme.lower() not in ("http", "https") else text


# A crawl follows most of these (`crawl/link_filter.py`), but can check only listed links against its scope. A listed
# link costs about 1 KB while its page is parsed.
MAX_NAMED = 25_000
"""Limit on the URLs of one kind listed per document."""
_MAX_KNOWN_OVER = 100_000


class NamedUrls(dict[str, str]):
    """The URLs that a document names, each with its relation; those over the limit are only counted."""

    __slots__ = ("_known_over", "over")

    def __init__(self) -> None:
        super().__init__()
        self._known_over: set[int] = set()
        self.over = 0
        """How many different addresses there was no room for; beyond a hundred thousand, each mention counts.

        A text that is not read to its end counts as one.
        """

    def take(self, url: str, rel: str) -> None:
        if url not in self:
            if len(self) < MAX_NAMED:
                self[url] = rel
            elif hash(url) not in self._known_over:
                self.over += 1
                if self.over <= _MAX_KNOWN_OVER:
                    self._known_over.add(hash(url))

    def listed(self) -> tuple[Link, ...]:
        new = tuple.__new__  # half the cost of the constructor that NamedTuple writes
        return tuple([new(Link, pair) for pair in self.items()])


_MAX_CSS_BYTES = 8 * 1024 * 1024
# A token costs a microsecond; real sheets of this size have a tenth of these.
_MAX_TOKENS = 200_000

# Each alternative is a few fixed characters, so the search is linear whatever the input.
_NEXT = re.compile(r"""/\*|["']|\\.|(?<![\w-])url\(|@import|@namespace""", re.I | re.S)
_STRING_END = {quote: re.compile(rf"[{quote}\\\n\r\f]") for quote in "\"'"}
_URL_END = re.compile(r"[)\\]")
_BLANK = re.compile(r"[ \t\n\r\f]*")
_ESCAPE = re.compile(r"\\(?:([0-9a-fA-F]{1,6})(?:\r\n|[ \t\n\r\f])?|(\r\n|.))", re.S)
_FONTS = (".woff2", ".woff", ".ttf", ".otf", ".eot")


def css_links(sheet: bytes | str, charset: str | None = None) -> NamedUrls:
    """Return the URLs in a style sheet, as written: imports, fonts and images.

    `charset` is the HTTP header's, for bytes. Never raises.
    """
    text = sheet if isinstance(sheet, str) else decode_text(sheet[:_MAX_CSS_BYTES], charset)[0]
    found = NamedUrls()
    gather_css(text[:_MAX_CSS_BYTES], found)
    found.over += len(sheet) > _MAX_CSS_BYTES
    return found


def gather_css(text: str, found: NamedUrls) -> None:
    at, rel = 0, ""
    for _ in range(_MAX_TOKENS):
        token = _NEXT.search(text, at)
        if token is None:
            return
        word, at = token[0].lower(), token.end()
        if word == "/*":
            end = text.find("*/", at)
            if end < 0:
                return
            at = end + 2
        elif word == "@import":
            at, rel = _skip_blank(text, at), "css"
            if text[at : at + 1] not in {'"', "'"} and text[at : at + 4].lower() != "url(":
                rel = ""
        # Its URL is a name, and nothing can be fetched there.
        elif word == "@namespace":
            end = text.find(";", at)
            if end < 0:
                return
            at = end
        elif word == "url(":
            value, at = _url(text, at)
            _add(found, value, rel)
            rel = ""
        elif word in {'"', "'"}:
            value, at = _string(text, at, word)
            if rel:
                _add(found, value, rel)
                rel = ""
    found.over += _NEXT.search(text, at) is not None


def _add(found: NamedUrls, value: str, rel: str) -> None:
    url = address(_unescaped(value))
    if url and url not in found:
        # A style sheet does not state the type of a URL: recognise fonts by their file extension.
        path = url.partition("?")[0].lower()
        found.take(url, rel or ("font" if path.endswith(_FONTS) else "img"))


def _url(text: str, at: int) -> tuple[str, int]:
    """Return the content of a url() that opened before `at`, quoted or not, and its end."""
    while text[at : at + 1] in {" ", "\t", "\n", "\r", "\f"}:
        at += 1
    if (quote := text[at : at + 1]) in {'"', "'"}:
        value, at = _string(text, at + 1, quote)
        # The rest of a broken string, up to the parenthesis, is not a new one.
        return (value, at) if value or text[at - 1] == quote else ("", _after_parenthesis(text, at))
    end = _after_parenthesis(text, at)
    return text[at:end].removesuffix(")"), end


def _after_parenthesis(text: str, at: int) -> int:
    while end := _URL_END.search(text, at):
        at = end.end()
        if end[0] == ")":
            return at
        at += 1
    return len(text)


def _string(text: str, at: int, quote: str) -> tuple[str, int]:
    start = at
    while end := _STRING_END[quote].search(text, at):
        at = end.end()
        if end[0] == quote:
            return text[start : at - 1], at
        if end[0] != "\\":
            return "", at
        at += 1
    return text[start:], len(text)


def _skip_blank(text: str, at: int) -> int:
    while True:
        blank = _BLANK.match(text, at)
        at = blank.end() if blank else at
        if not text.startswith("/*", at):
            return at
        end = text.find("*/", at + 2)
        if end < 0:
            return len(text)
        at = end + 2


def _unescaped(value: str) -> str:
    return _ESCAPE.sub(_character, value) if "\\" in value else value


def _character(escape: re.Match[str]) -> str:
    digits, char = escape[1], escape[2]
    if digits is None:
        return "" if char in {"\n", "\r", "\r\n", "\f"} else char
    code = int(digits, 16)
    # By the CSS standard, zero, surrogates and code points beyond Unicode become U+FFFD.
    return chr(code) if 0 < code < 0xD800 or 0xDFFF < code < 0x110000 else "\ufffd"
