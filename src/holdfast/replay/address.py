"""The Wayback URL space: `/web/<digits><modifier>/<url>`. Only this module parses and builds such paths."""

from __future__ import annotations

import re
from calendar import monthrange
from datetime import UTC, datetime
from enum import StrEnum
from typing import NamedTuple
from urllib.parse import quote, unquote

from holdfast.errors import Invalid

# Also the limit of references in pages (`links.MAX_CHARS`).
_MAX_URL_CHARS = 8192
_FIRST = re.compile(r"([0-9]{1,14})([a-z]{2}_)?")
_YEAR = re.compile(r"([0-9]{0,14})\*")
_PASS = re.compile(r"~([A-Za-z0-9_-]{1,64})")
_AFTER = "?after="
# Bounded, so that no text makes them slow: schemes have at most 32 characters, hosts 253.
_SCHEME = re.compile(r"([a-z][a-z0-9+.\-]{0,31}):(?=/)", re.IGNORECASE)
_ANY_SCHEME = re.compile(r"[a-z][a-z0-9+.\-]{0,31}:", re.IGNORECASE)
_PORT = re.compile(r"[a-z0-9.\-]{1,253}:[0-9]", re.IGNORECASE)
# Characters of a URL in a header or link: all but spaces, quotes, brackets, controls.
_KEPT = "!#$%&'()*+,/:;=?@[]~-._"
_ODD = re.compile(rf"[^A-Za-z0-9{re.escape(_KEPT)}]")


class Modifier(StrEnum):
    """The letters after a timestamp."""

    PAGE = ""
    """A page to view: rewritten, with our bar."""
    MAIN = "mp_"
    """The same without the bar, for one of our frames."""
    FRAME = "if_"
    """A page inside a frame of an archived page."""
    FRAMESET = "fw_"
    RAW = "id_"
    """The bytes as captured."""
    IMAGE = "im_"
    SCRIPT = "js_"
    STYLE = "cs_"
    OBJECT = "oe_"

    @property
    def is_page(self) -> bool:
        """Whether a reader navigates to it."""
        return self in _PAGES


_PAGES = {Modifier.PAGE, Modifier.MAIN, Modifier.FRAME, Modifier.FRAMESET}
_MODIFIERS = {modifier.value: modifier for modifier in Modifier}


class BadReplayAddress(Invalid):
    """The address does not identify a page of the archive."""

    code = "bad_replay_address"

    def __init__(self, reason: str) -> None:
        super().__init__(f"{reason}; write /web/<digits>/<address>, as in /web/2026/http://example.com/")


class WantedAddress(NamedTuple):
    digits: str
    """1 to 14 digits; empty means a TimeGate."""
    modifier: Modifier
    url: str
    site_pass: str = ""
    """The pass of a site (`origins.SitePasses`), with which a script requests captures that it may read."""


class AddressListing(NamedTuple):
    """A request for a calendar of one address, or for the addresses with a prefix."""

    digits: str
    """The requested year, and any further digits; empty for the latest."""
    url: str
    is_prefix: bool
    after: str = ""
    """The key after which a list of addresses continues."""


def read_path(path: str) -> WantedAddress | AddressListing:
    """Parse the part of a request's target after `/web/`, query included; raise BadReplayAddress if invalid.

    The path must not be decoded, so that the escapes of the archived address stay as they are.
    """
    first, slash, rest = path.partition("/")
    # Some clients escape a calendar's star, and the path is not decoded here.
    plain = first.replace("%2A", "*").replace("%2a", "*")
    if slash and (year := _YEAR.fullmatch(plain)):
        return _listing(year[1], rest)
    site_pass = ""
    if slash and (allowed := _PASS.fullmatch(first)):
        site_pass = allowed[1]
        first, slash, rest = rest.partition("/")
        if not _FIRST.fullmatch(first):
            # Only our own pages' scripts use this form, always with a time.
            raise BadReplayAddress("there is no timestamp behind the pass of a site")
    if match := _FIRST.fullmatch(first):
        if not slash or not rest:
            raise BadReplayAddress("there is no address behind the timestamp")
        known = match[2] or ""
        # Other archives have modifiers unknown to us, all for embedded content.
        modifier = _MODIFIERS.get(known, Modifier.OBJECT)
        return WantedAddress(match[1], modifier, archived_url(rest), site_pass)
    return WantedAddress("", Modifier.PAGE, archived_url(path))


def _listing(digits: str, rest: str) -> AddressListing:
    """Return the requested list: one address, or, with a star at its end, all with this prefix."""
    before, mark, after = rest.rpartition(_AFTER)
    # An archived URL may contain `?after=`: it is ours only after a star, as in our own links.
    prefix, after = (before, after) if mark and "&" not in after and _without_star(before) else (rest, "")
    bare = _without_star(prefix)
    if bare is None:
        return AddressListing(digits, archived_url(rest), False)
    # No key contains NUL, and PostgreSQL refuses to compare with one.
    return AddressListing(digits, archived_url(bare), True, unquote(after).replace("\0", ""))


def _without_star(text: str) -> str | None:
    for star in ("*", "%2A", "%2a"):
        if text.endswith(star) and len(text) > len(star):
            return text.removesuffix(star)
    return None


def archived_url(text: str) -> str:
    """Return the address at the end of a replay path; raise BadReplayAddress if it is missing.

    Repairs `http:/host`, which proxies produce that merge slashes; without a scheme it is http.
    """
    url = text.strip()
    # Clients that treat the URL as one path segment escape its colon and slashes.
    if url[:12].lower().startswith(("http%3a", "https%3a")):
        url = re.sub("%3a", ":", url, count=1, flags=re.IGNORECASE).replace("%2F", "/").replace("%2f", "/")
    if not url or len(url) > _MAX_URL_CHARS:
        raise BadReplayAddress("there is no address" if not url else f"an address has {_MAX_URL_CHARS} characters")
    if match := _SCHEME.match(url):
        # nginx merges `//` in a path unless configured otherwise (`merge_slashes off`).
        return f"{match[1].lower()}://{url[match.end() :].lstrip('/')}"
    if url.startswith("//"):
        return f"http:{url}"
    # `host:8080/x` looks like a scheme, too: a number after the colon is a port.
    if _ANY_SCHEME.match(url) and not _PORT.match(url):
        return url
    return f"http://{url}"


def replay_path(digits: str, modifier: str, url: str, *, site_pass: str = "") -> str:
    """Return the path that replays a capture; the address is unchanged except for escapes that make it header-safe."""
    return f"/web/{'~' + site_pass + '/' if site_pass else ''}{digits}{modifier}/{safe(url)}"


def raw_path(snapshot_id: int) -> str:
    return f"/api/snapshots/raw/{snapshot_id}"


def safe(url: str) -> str:
    """Escape everything in an address that could end a header, a link or an attribute."""
    return quote(url, safe=_KEPT) if _ODD.search(url) else url


def is_storable(text: str) -> bool:
    """Return whether a database can store this text: no NUL, no lone surrogates."""
    return "\0" not in text and not any("\ud800" <= char <= "\udfff" for char in text)


_DIGITS = re.compile(r"[0-9]{1,14}")
_HTTP_DATE = re.compile(
    r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun), ([0-9]{2}) (Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) ([0-9]{4})"
    r" ([0-9]{2}):([0-9]{2}):([0-9]{2}) GMT"
)
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
)
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


class BadTimestamp(Invalid):
    """The timestamp does not consist of 1 to 14 digits."""

    code = "bad_timestamp"

    def __init__(self, text: str) -> None:
        super().__init__(f"{text[:40]!r} is no timestamp; write 1 to 14 digits, as in 2026 or 20260131120000")


class BadAcceptDatetime(Invalid):
    """The Accept-Datetime header has no date that RFC 7089 allows."""

    code = "bad_accept_datetime"

    def __init__(self, text: str) -> None:
        super().__init__(f"Accept-Datetime is {text[:60]!r}; write it as in: Thu, 01 Jan 2026 00:00:00 GMT")


def earliest(digits: str) -> datetime:
    """Return the earliest time that 1 to 14 digits can mean; raise BadTimestamp if they are invalid."""
    return _padded(digits, last=False)


def latest(digits: str) -> datetime:
    """Return the latest time that 1 to 14 digits can mean, microseconds included; raise BadTimestamp if invalid."""
    return _padded(digits, last=True)


def _padded(digits: str, *, last: bool) -> datetime:
    """Return a time with missing digits filled in. Month 13 or day 99 become the nearest valid value."""
    if not _DIGITS.fullmatch(digits):
        raise BadTimestamp(digits)
    # Pad down for the start of a period and up for its end, like other CDX servers.
    filled = digits + ("99999999999999" if last else "00000000000000")[len(digits) :]
    year = _within(int(filled[:4]), 1, 9999)
    month = _within(int(filled[4:6]), 1, 12)
    day = _within(int(filled[6:8]), 1, monthrange(year, month)[1])
    hour, minute, second = (_within(int(filled[at : at + 2]), 0, top) for at, top in ((8, 23), (10, 59), (12, 59)))
    return datetime(year, month, day, hour, minute, second, 999_999 if last else 0, tzinfo=UTC)


def _within(number: int, low: int, high: int) -> int:
    return min(max(number, low), high)


def parse_http_date(text: str) -> datetime:
    """Parse an Accept-Datetime header; raise BadAcceptDatetime if it is invalid. The year 0 counts as the year 1."""
    match = _HTTP_DATE.fullmatch(text.strip())
    if match is None:
        raise BadAcceptDatetime(text)
    day, month, year, hour, minute, second = match.groups()
    try:
        return datetime(
            # `datetime` begins with the year 1.
            max(int(year), 1),
            _MONTHS.index(month) + 1,
            int(day),
            int(hour),
            int(minute),
            # `datetime` cannot represent a leap second (`23:59:60`).
            min(int(second), 59),
            tzinfo=UTC,
        )
    except ValueError as exc:
        raise BadAcceptDatetime(text) from exc


def http_date(moment: datetime) -> str:
    # Not strftime, which uses the machine's locale for names of days and months.
    at = moment.astimezone(UTC)
    return (
        f"{_DAYS[at.weekday()]}, {at.day:02} {_MONTHS[at.month - 1]} {at.year:04}"
        f" {at.hour:02}:{at.minute:02}:{at.second:02} GMT"
    )


def day_in_words(moment: datetime) -> str:
    """Return the day for people, independent of the machine's locale: 1 March 2024."""
    at = moment.astimezone(UTC)
    return f"{at.day} {MONTHS[at.month - 1]} {at.year:04}"
