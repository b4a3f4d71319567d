"""The key under which archives sort and look up captures: `org,example)/path?query`, as the field's indexes have it.

The key merges more than the normalised address does (case, session ids, `www`), so it finds captures and never names
one. It refuses nothing: an archive holds addresses that nobody would ask for.
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import unquote_to_bytes

from url import URL, URLError

SURT_VERSION: Final = 1
"""Raised with any change that gives an address another key: an index built before must be built anew."""

_HAS_HOST = re.compile(r"[a-z][a-z0-9+.\-]*://", re.IGNORECASE)
_OPAQUE = re.compile(r"[a-z][a-z0-9+.\-]*:(?!\d)", re.IGNORECASE)
_PARTS = re.compile(r"[^:]*://(?:[^/?#]*@)?([^/?#]*)([^?#]*)(?:\?([^#]*))?", re.DOTALL)
_WWW = re.compile(r"^www\d*\.(?=.)")
_BLANKS = re.compile(r"\s")
_HEX = frozenset("0123456789abcdefABCDEF")
_ESCAPE = re.compile(r"%[0-9A-Fa-f]{2}")
_DOUBLED = re.compile(r"%(?:25)+")

_MUST_ESCAPE = {code: f"%{code:02x}" for code in (*range(0x21), *range(0x7F, 0x100), ord("#"), ord("%"))}

_PATH_SESSION = re.compile(r";jsessionid=[0-9a-z]{32}(?![0-9a-z])")
_ASPX_SESSION = re.compile(r"/\((?:[0-9a-z]{24}|(?:[a-z]\([0-9a-z]{24}\))+)\)(?=/)")
_QUERY_SESSION = re.compile(r"(?:jsessionid|phpsessid|sid)=[0-9a-z]{32}|aspsessionid[a-z]{8}=[a-z]{24}")


def surt(url: str) -> str:
    """Return the key of an address, without blanks and never an error; what has no host is its own key."""
    text = url.strip()
    if not text:
        return "-"
    if not _HAS_HOST.match(text):
        if _OPAQUE.match(text):
            return _BLANKS.sub("%20", text)
        text = f"http://{text}"
    host, port, path, query = _parts(text)
    labels = ",".join(reversed(_WWW.sub("", host).split(".")))
    key = f"{labels}{port}){_path(path)}"
    return f"{key}?{arguments}" if query and (arguments := _query(query)) else key


def _parts(text: str) -> tuple[str, str, str, str]:
    """Return host, `:port` if it is not the scheme's own, path and query: as parsed, or else as they look."""
    try:
        parsed = URL.parse(text)
    except (URLError, ValueError):
        parsed = None
    if parsed is None or not parsed.host_str:
        match = _PARTS.match(text)
        assert match is not None  # every text that reaches this has a scheme and `://`
        return _escaped(match[1]), "", match[2], match[3] or ""
    port = "" if parsed.port is None else f":{parsed.port}"
    return parsed.host_str.lower().strip("."), port, parsed.path, parsed.query or ""


def _path(path: str) -> str:
    text = _escaped(path)
    if ";jsessionid=" in text:
        text = _PATH_SESSION.sub("", text)
    if ".aspx" in text and "(" in text:
        text = _ASPX_SESSION.sub("", text)
    segments: list[str] = []
    for segment in text.split("/"):
        if segment == "..":
            del segments[-1:]
        elif segment not in ("", "."):
            segments.append(segment)
    return "/" + "/".join(segments)


def _query(query: str) -> str:
    text = _escaped(query)
    arguments = sorted(map(_split, text.split("&")))
    if "cftoken=" in text:
        arguments = [argument for argument in arguments if argument[0] not in ("cfid", "cftoken")]
    if "sid=" in text or "sessionid" in text:
        arguments = [argument for argument in arguments if not _QUERY_SESSION.fullmatch("".join(argument))]
    return "&".join(map("".join, arguments))


def _split(argument: str) -> tuple[str, str, str]:
    return argument.partition("=")


def _escaped(text: str) -> str:
    """Return the text in lower case, unescaped until nothing is left to unescape, then escaped once."""
    if "%" in text or not text.isascii():
        text = unquote_to_bytes(text.encode("utf-8", "surrogatepass")).decode("latin-1")
        if _ESCAPE.search(text):
            text = _unescaped(text)
    return text.translate(_MUST_ESCAPE).lower()


def _unescaped(text: str) -> str:
    """Return the text with escapes of escapes resolved too: from the left, in one pass, however deeply nested."""
    done: list[str] = []
    pending = 0  # how many `%` or `%h` stand at the end of `done`, each waiting for what the next one turns into
    for char in _DOUBLED.sub("%", text):
        while pending and char in _HEX:
            last = done[-1]
            if last == "%":
                done.append(char)
                break
            del done[-2:]
            pending -= 1
            char = chr(int(last + char, 16))
        else:
            done.append(char)
            pending = pending + 1 if char == "%" else 0
    return "".join(done)
