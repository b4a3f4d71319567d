"""Addresses as markup writes them: trimmed, without fragment, less what nobody can fetch. The caller resolves them."""

from __future__ import annotations

import re

SPACE = " \t\n\r\f"
_MAX_CHARS = 8192
_MAX_SRCSET_CHARS = 64 * 1024
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
_CANDIDATE = re.compile(r"[ \t\n\r\f,]*+([^ \t\n\r\f]+)")
_DESCRIPTOR_STOP = re.compile(r"[(),]")
_REFRESH = re.compile(r"\s{0,32}[\d.]{0,16}\s{0,32}[;,]?\s{0,32}(?:url\s{0,32}=\s{0,32})?(.*)", re.I | re.S)


def address(raw: str) -> str:
    """Return what there is to ask for in an href or src, still relative; an empty string if there is nothing."""
    if "#" in raw:
        raw = raw[: raw.index("#")]
    raw = raw.strip(SPACE)
    # Two of three links start with a slash or "http": they need no look at the scheme.
    if not raw or raw[0] == "/" or raw.startswith("http"):
        return raw if len(raw) <= _MAX_CHARS else ""
    colon = raw.find(":", 0, _LONGEST_SCHEME)
    if (colon > 0 and raw[:colon].lower() in _NOT_FETCHED) or len(raw) > _MAX_CHARS:
        return ""
    return raw


def srcset(value: str) -> list[str]:
    """Return the addresses in a srcset, as the HTML standard splits them: commas may stand inside an address."""
    found: list[str] = []
    at = 0
    value = value[:_MAX_SRCSET_CHARS]
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
    """Return where the next candidate may start: after the next comma that stands outside parentheses."""
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
    """Return the address of a meta refresh; an empty string if the page only reloads itself."""
    found = _REFRESH.fullmatch(content[: _MAX_CHARS * 2])
    target = found[1].strip(SPACE) if found else ""
    if target[:1] in {"'", '"'}:
        target = target[1:].partition(target[0])[0]
    return address(target)


def written_link(text: str) -> str:
    """Return an address as it is written, absolute or relative; nothing for schemes that are not ours."""
    text = text.strip(SPACE)
    scheme, colon, _ = text[:16].partition(":")
    return "" if colon and scheme.isalnum() and scheme.lower() not in ("http", "https") else text
