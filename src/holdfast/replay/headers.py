"""Headers of an archived response: a few by allow-list, the rest as inert `X-Archive-Orig-…` headers."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from holdfast.errors import Invalid
from holdfast.replay.links import Links
from holdfast.replay.markup import refresh_into
from holdfast.warc.payload import HttpHead

ORIGINAL_PREFIX = "X-Archive-Orig-"

# Use an allow-list: a header invented tomorrow has no effect here before it is reviewed.
_ALLOWED = frozenset({"content-language", "content-disposition"})
NOTE = "X-Archive-Note"
"""Reports a problem of a record."""
_NAME = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,128}")
_UNSAFE = re.compile(r"[^\x20-\x7e\x80-\xff]")
_MAX_HEADERS = 100
_MAX_BYTES = 16 * 1024
_MAX_VALUE = 4096


def replayed_headers(head: HttpHead | None, links: Links, *, readable: bool = False) -> list[tuple[str, str]]:
    """Return the headers of an archived response that may be sent again.

    Location and Refresh point into the archive. At most 100 others, 16 KiB together, are sent under another name.
    With `readable`, a redirect inside one site points to the copy that its scripts may read.
    """
    if head is None:
        return []
    found: list[tuple[str, str]] = []
    for name, value in head.headers:
        lower = name.lower()
        if lower in _ALLOWED:
            found.append((lower.title(), clean(value)))
        elif lower == "refresh":
            found.append(("Refresh", clean(refresh_into(value, links))))
    location = head.get("location")
    if location is not None and 300 <= head.status < 400:
        written = clean(location).strip()
        target = (links.to_readable(written, links.modifier) if readable else None) or links.to(written, links.modifier)
        if target is not None:
            found.append(("Location", target))
    return [*_once(found), *_originals(head.headers)]


def _once(headers: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    first: dict[str, str] = {}
    for name, value in headers:
        first.setdefault(name, value)
    return list(first.items())


def _originals(headers: tuple[tuple[str, str], ...]) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    left = _MAX_BYTES
    for name, value in headers:
        # A name with a line break or a space would split our response.
        if not _NAME.fullmatch(name):
            continue
        value = clean(value)
        left -= len(name) + len(value) + len(ORIGINAL_PREFIX)
        if left < 0 or len(found) == _MAX_HEADERS:
            break
        found.append((f"{ORIGINAL_PREFIX}{name}", value))
    return found


def clean(value: str) -> str:
    """Return a value as a single header line in latin-1, at most 4 KiB."""
    return _UNSAFE.sub(" ", value[:_MAX_VALUE]).strip()


# No allow-same-origin (cookies, storage), allow-top-navigation, allow-popups or allow-downloads: decision 0010 has the
# measurements.
_SANDBOX = "sandbox allow-forms"
_CONTENT = "'unsafe-inline' 'unsafe-eval' data: blob:"


def replay_policy(origin: str = "'self'", *, nojs: bool = False) -> str:
    """Return the Content-Security-Policy of an archived response, which may load only from this origin."""
    parts = [
        _SANDBOX if nojs else f"{_SANDBOX} allow-scripts",
        f"default-src {origin} {_CONTENT}",
        f"form-action {origin}",
        f"base-uri {origin}",
    ]
    if nojs:
        parts += ["script-src 'none'", "connect-src 'none'"]
    return "; ".join(parts)


def connections(*origins: str) -> str:
    """Return the Connection-Allowlist: the only origins that a page may connect or navigate to, its own and these."""
    # `redirects=allow`: without it, every link to a capture at another second, and every archived redirect, shows an
    # error page. Our redirects never leave the archive.
    return f"({' '.join(('response-origin', *(_quoted(origin) for origin in origins)))});redirects=allow"


def _quoted(origin: str) -> str:
    return f'"{origin}/*"'


OWN_PAGE_POLICY = (
    "sandbox allow-forms allow-downloads; default-src 'none'; style-src 'unsafe-inline'; form-action 'none'; "
    "base-uri 'none'"
)
"""For pages that we write ourselves (calendar, not found, a file to download): no script, nothing loaded."""

GUARDS: tuple[tuple[str, str], ...] = (
    ("X-Content-Type-Options", "nosniff"),
    # A sandboxed page sends no Referer; style sheets and module scripts do, but it never leaves the archive.
    ("Referrer-Policy", "same-origin"),
    # A link makes browsers resolve a name, which tells its server that the page is being read.
    ("X-DNS-Prefetch-Control", "off"),
    # A sandboxed page has no origin: everything that it embeds is cross-origin to it.
    ("Cross-Origin-Resource-Policy", "cross-origin"),
    ("Permissions-Policy", "camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()"),
)
"""On every response of the replay space."""

READABLE = ("Access-Control-Allow-Origin", "*")
"""On responses that scripts may read, and on fonts and module scripts, which a page without an origin needs."""

_CODE = (
    *("font/", "application/font-", "application/x-font-", "application/vnd.ms-fontobject", "text/css"),
    *("text/javascript", "application/javascript", "application/x-javascript", "application/ecmascript"),
    "text/ecmascript",
)
_CODE_DESTINATIONS = frozenset({"font", "script", "style", "worker", "sharedworker", "audioworklet", "paintworklet"})


def is_code(content_type: str, destination: str) -> bool:
    """Return whether a response is a font, script or style sheet, requested as such.

    Browsers load fonts, module scripts and elements with `crossorigin` only with permission to read, and other
    sites' servers give it to every page. `destination` is Sec-Fetch-Dest, which no script can forge; it is missing
    on plain http, where the type has to suffice.
    """
    # Check type and destination together: a page fetched as a script must not become readable.
    return content_type.lower().startswith(_CODE) and (not destination or destination in _CODE_DESTINATIONS)


# Match spaces possessively: two adjacent runs could share them in very many ways.
_RANGE = re.compile(r"bytes[ \t]*+=[ \t]*+([0-9]{0,18})[ \t]*+-[ \t]*+([0-9]{0,18})[ \t]*+", re.IGNORECASE)


class RangeRefused(Invalid):
    """The requested range starts beyond the end."""

    code = "range_refused"

    def __init__(self, size: int) -> None:
        super().__init__(f"there are {size:,} bytes, and none where you asked")
        self.size = size


def parse_range(header: str | None, size: int) -> tuple[int, int] | None:
    """Return the start and the exclusive end of a Range header with one range; None for all bytes.

    Raise RangeRefused if it starts beyond the end. Several ranges are answered with the whole file (RFC 9110, section
    14.2, allows it): no client of ours requests them.
    """
    match = _RANGE.fullmatch((header or "").strip())
    if match is None or not (match[1] or match[2]):
        return None
    if not match[1]:
        count = int(match[2])
        if count == 0 or size == 0:
            raise RangeRefused(size)
        return max(0, size - count), size
    start, end = int(match[1]), int(match[2]) + 1 if match[2] else size
    if end <= start and match[2]:
        # first-pos above last-pos is invalid, and an invalid range is ignored (section 14.1.1).
        return None
    if start >= size:
        raise RangeRefused(size)
    return start, min(end, size)


class PartialContent(NamedTuple):
    """The part of a file to send: all (200), a range (206), or nothing because the range is beyond the end (416)."""

    status: int
    start: int
    end: int
    content_range: str | None
    """The Content-Range header, if any."""


def partial_content(header: str | None, size: int, *, if_range: str | None, etag: str) -> PartialContent:
    # A client appends a part to its copy: if the file changed, it must get all (RFC 9110, section 13.1.5).
    is_stale = bool(if_range) and if_range != etag
    try:
        found = None if is_stale else parse_range(header, size)
    except RangeRefused:
        return PartialContent(416, 0, 0, f"bytes */{size}")
    if found is None:
        return PartialContent(200, 0, size, None)
    start, end = found
    return PartialContent(206, start, end, f"bytes {start}-{end - 1}/{size}")
