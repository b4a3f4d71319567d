"""Cookies of one execution (RFC 6265): set by servers or loaded from the user's cookies.txt.

A jar is never shared between sources, stays bounded however much a server sets, and rejects what could break a
header.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from holdfast.errors import Invalid

# Limit of name and value together; larger cookies are dropped, as half a session cookie is useless.
MAX_COOKIE_BYTES = 4_096
MAX_LINE_BYTES = MAX_COOKIE_BYTES + 2_048
MAX_PER_SITE = 50
MAX_TOTAL = 3_000
# Most servers reject a request with more, and the WARC would repeat it for every page.
MAX_HEADER_BYTES = 16_384
MAX_AGE = timedelta(days=400)
_MAX_HOSTS_REMEMBERED = 1_024


class CookieFileInvalid(Invalid):
    """A line of a cookies.txt is invalid. The message never repeats the cookie, which may be a credential."""

    code = "cookie_file_invalid"

    def __init__(self, line: int, problem: str) -> None:
        super().__init__(f"line {line} of the cookie file: {problem}; export it again in the Netscape format")
        self.line, self.problem = line, problem


class Cookie(NamedTuple):
    name: str
    value: str
    domain: str
    path: str
    host_only: bool
    secure: bool
    expires: datetime | None
    """None means the lifetime of the jar."""


_Key = tuple[str, str, str]


class _Asked(NamedTuple):
    secure: bool
    host: str
    path: str


_Use = tuple[str, int]
"""Site, and a number that grows with every use: the greater, the more recent."""


class CookieJar:
    """Cookies by site, which is the registrable domain by the public suffix list."""

    def __init__(
        self,
        is_public_suffix: Callable[[str], bool],
        *,
        max_per_site: int = MAX_PER_SITE,
        max_total: int = MAX_TOTAL,
    ) -> None:
        self._is_public_suffix = is_public_suffix
        self._max_per_site = max_per_site
        self._max_total = max_total
        self._all: OrderedDict[_Key, _Use] = OrderedDict()
        """Each cookie's site and last use, least recently used first."""
        self._uses = 0
        # In the order of their creation, in which cookies of equal paths are sent (section 5.4).
        self._sites: dict[str, dict[_Key, Cookie]] = {}
        self._site_of: dict[str, str] = {}

    def __len__(self) -> int:
        return len(self._all)

    def store(
        self, url: str, set_cookie_headers: Iterable[str], now: datetime, *, beside: CookieJar | None = None
    ) -> int:
        """Store the cookies of a response to this URL and return how many were rejected.

        `beside` is a jar that is sent together with this one: plain HTTP cannot overwrite its secure cookies either.
        """
        asked = _read_url(url)
        if asked is None:
            return sum(1 for _ in set_cookie_headers)
        refused = 0
        jars = (self,) if beside is None else (self, beside)
        for header in set_cookie_headers:
            cookie = self._read_header(header, asked, now)
            if cookie is None or not all(jar._may_set_beside(cookie, asked) for jar in jars):
                refused += 1
            elif cookie.expires is not None and cookie.expires <= now:
                self._remove(_key_of(cookie))
            else:
                self._add(cookie, now)
        return refused

    def header_for(self, url: str, now: datetime) -> str | None:
        """Return the Cookie header for this URL, longest path first; None if no cookie matches."""
        if not self._all:
            return None
        asked = _read_url(url)
        if asked is None:
            return None
        cookies = self._sites.get(self._site(asked.host))
        if cookies is None:
            return None
        chosen = [cookie for cookie in cookies.values() if _applies(cookie, asked, now)]
        if len(chosen) > 1:
            chosen.sort(key=_by_path)
        pairs: list[str] = []
        room = MAX_HEADER_BYTES
        for cookie in chosen:
            pair = f"{cookie.name}={cookie.value}"
            room -= len(pair) + 2
            if room < 0:
                break
            pairs.append(pair)
            self._note_use(_key_of(cookie))
        return "; ".join(pairs) or None

    def load_netscape(self, text: str) -> int:
        """Load a cookies.txt and return its number of cookies; raise `CookieFileInvalid` naming the first bad line.

        A file with a bad line changes nothing. Beyond the jar's limits, the least recently used cookies are removed.
        """
        cookies = [
            self._read_file_line(number, line.rstrip("\r"))
            for number, line in enumerate(text.removeprefix("\ufeff").split("\n"), 1)
            if line.strip() and (line[0] != "#" or line.startswith(_HTTP_ONLY))
        ]
        for cookie in cookies:
            self._add(cookie, None)
        return len(cookies)

    def _read_header(self, header: str, asked: _Asked, now: datetime) -> Cookie | None:
        """Return the cookie of one Set-Cookie header (section 5.2), or None if it is rejected."""
        pair, _, rest = header.partition(";")
        name, equals, value = (part.strip(" \t") for part in pair.partition("="))
        if len(header) > MAX_LINE_BYTES or _BREAKS_LINE.search(header) or not equals or _problem_of(name, value):
            return None
        attributes: dict[str, str] = {}
        for attribute in rest.split(";"):
            key, _, setting = attribute.partition("=")
            attributes[key.strip(" \t").lower()] = setting.strip(" \t")
        domain = attributes.get("domain", "").removeprefix(".").lower()
        path = attributes.get("path", "")
        cookie = Cookie(
            name,
            value,
            domain or asked.host,
            path if path.startswith("/") else _directory_of(asked.path),
            not domain,
            "secure" in attributes,
            _expiry(attributes, now),
        )
        if domain and not self._may_set(domain, asked.host):
            if domain != asked.host:
                return None
            cookie = cookie._replace(host_only=True)
        return cookie if _keeps_prefix(cookie, path) and (asked.secure or not cookie.secure) else None

    def _read_file_line(self, number: int, line: str) -> Cookie:
        fields = line.removeprefix(_HTTP_ONLY).split("\t")
        if len(fields) == 6:
            fields.append("")
        if len(fields) != 7:
            raise CookieFileInvalid(number, f"seven fields parted by tabs are needed, found {len(fields)}")
        domain, subdomains, path, secure, expires, name, value = fields
        domain = domain.strip().removeprefix(".").lower()
        if not _HOST.fullmatch(domain):
            raise CookieFileInvalid(number, "the first field is no host name")
        for field, flag in (("second", subdomains), ("fourth", secure)):
            if flag.upper() not in ("TRUE", "FALSE"):
                raise CookieFileInvalid(number, f"the {field} field must be TRUE or FALSE")
        if not path.startswith("/"):
            raise CookieFileInvalid(number, "the third field is no path")
        if not _EPOCH.fullmatch(expires):
            raise CookieFileInvalid(number, "the fifth field is no number of seconds since 1970")
        host_only = subdomains.upper() == "FALSE"
        if not host_only and self._is_public_suffix(domain):
            raise CookieFileInvalid(number, f"a cookie for all of {domain} would reach strangers")
        problem = _problem_of(name, value)
        cookie = Cookie(name, value, domain, path, host_only, secure.upper() == "TRUE", _moment(float(expires)))
        if not problem and not _keeps_prefix(cookie, path):
            problem = "its name promises more (__Secure-, __Host-) than the line keeps"
        if problem:
            raise CookieFileInvalid(number, problem)
        return cookie

    def _may_set(self, domain: str, host: str) -> bool:
        """Return whether a host may set a cookie for a domain and its subdomains (sections 5.1.3 and 5.3, step 5)."""
        if domain != host and (not host.endswith("." + domain) or _is_address(host)):
            return False
        return not _is_address(host) and not self._is_public_suffix(domain)

    def _may_set_beside(self, cookie: Cookie, asked: _Asked) -> bool:
        """Return whether this response may set or remove this cookie (RFC 6265bis, section 5.7, step 17)."""
        # Plain HTTP may neither change a secure cookie nor set one that would be sent in its place: an attacker on the
        # network could overwrite a session.
        if asked.secure:
            return True
        kept = self._sites.get(self._site(cookie.domain), {})
        return not any(known.secure and _overlays(cookie, known) for known in kept.values())

    def _add(self, cookie: Cookie, now: datetime | None) -> None:
        key = _key_of(cookie)
        site = self._site(cookie.domain)
        kept = self._sites.setdefault(site, {})
        kept[key] = cookie
        self._all[key] = site, 0
        self._note_use(key)
        if len(kept) > self._max_per_site:
            self._remove(min(kept, key=lambda known: self._eviction_rank(kept[known], now)))
        if len(self._all) > self._max_total:
            self._remove(next(iter(self._all)))

    def _eviction_rank(self, cookie: Cookie, now: datetime | None) -> tuple[bool, bool, int]:
        """Return the eviction order in a full site: the smallest is removed first (RFC 6265bis, section 5.7)."""
        # Evict an expired cookie first; then one that is not secure, so that plain HTTP never evicts a secure one;
        # among equals, the least recently used.
        is_live = now is None or cookie.expires is None or cookie.expires > now
        return is_live, cookie.secure, self._all[_key_of(cookie)][1]

    def _note_use(self, key: _Key) -> None:
        self._uses += 1
        self._all[key] = self._all[key][0], self._uses
        self._all.move_to_end(key)

    def _remove(self, key: _Key) -> None:
        use = self._all.pop(key, None)
        if use is not None:
            kept = self._sites[use[0]]
            del kept[key]
            if not kept:
                del self._sites[use[0]]

    def _site(self, host: str) -> str:
        site = self._site_of.get(host)
        if site is None:
            labels = host.split(".")
            first = 0 if _is_address(host) else len(labels) - 1
            while first > 0 and self._is_public_suffix(".".join(labels[first:])):
                first -= 1
            site = ".".join(labels[first:])
            # A hostile site has any number of hosts.
            if len(self._site_of) >= _MAX_HOSTS_REMEMBERED:
                self._site_of.clear()
            self._site_of[host] = site
        return site


_HTTP_ONLY = "#HttpOnly_"
_URL = re.compile(r"(http|https)://(?:[^/?#@]*@)?(\[[^\]/?#]*\]|[^/?#:\[]+)(?::[0-9]*)?([^?#]*)", re.IGNORECASE)
_HOST = re.compile(r"\[[0-9a-f:.]{2,45}\]|[a-z0-9_.-]{1,253}")
_EPOCH = re.compile(r"-?[0-9]{1,15}(?:\.[0-9]{0,9})?")
_SECONDS = re.compile(r"-?[0-9]+")
_BREAKS_LINE = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
# A pair is sent as stored: nothing in it may end the header or the pair, or leave the character set.
_BREAKS_PAIR = re.compile(r"[\x00-\x1f\x7f;]|[^\x00-\xff]")


def _read_url(url: str) -> _Asked | None:
    found = _URL.match(url)
    return _Asked(len(found[1]) == 5, found[2].lower(), found[3] or "/") if found else None


def _problem_of(name: str, value: str) -> str | None:
    """Return why this pair is rejected, or None. The reason does not repeat the pair."""
    if not name or "=" in name:
        return "it has no name that can be sent"
    if len(name) + len(value) > MAX_COOKIE_BYTES:
        return f"name and value are longer than {MAX_COOKIE_BYTES} bytes"
    if _BREAKS_PAIR.search(name) or _BREAKS_PAIR.search(value):
        return "name or value hold a character that no header can carry"
    return None


def _is_address(host: str) -> bool:
    return host.startswith("[") or host.rpartition(".")[2].isdigit()


def _key_of(cookie: Cookie) -> _Key:
    return cookie.domain, cookie.path, cookie.name


def _overlays(cookie: Cookie, known: Cookie) -> bool:
    """Return whether a cookie would be sent along with, or instead of, a known one of the same name."""
    if cookie.name != known.name:
        return False
    is_near = _is_at_or_below(cookie.domain, known.domain) or _is_at_or_below(known.domain, cookie.domain)
    return is_near and _path_matches(cookie.path, known.path)


def _is_at_or_below(host: str, domain: str) -> bool:
    return host == domain or host.endswith("." + domain)


def _path_matches(below: str, path: str) -> bool:
    """Return whether a path is the cookie's path or below it (section 5.1.4)."""
    return below == path or (below.startswith(path) and (path[-1] == "/" or below[len(path)] == "/"))


def _directory_of(path: str) -> str:
    return path[: path.rfind("/")] or "/"


def _keeps_prefix(cookie: Cookie, path_as_set: str) -> bool:
    """Return whether the cookie meets the requirements of its name prefix (RFC 6265bis, section 4.1.3)."""
    name = cookie.name.lower()
    if name.startswith("__host-"):
        return cookie.secure and cookie.host_only and path_as_set == "/"
    return cookie.secure or not name.startswith("__secure-")


def _by_path(cookie: Cookie) -> int:
    return -len(cookie.path)


def _applies(cookie: Cookie, asked: _Asked, now: datetime) -> bool:
    """Return whether a cookie of the same site is sent with this request (section 5.4)."""
    if cookie.domain != asked.host and (cookie.host_only or not asked.host.endswith("." + cookie.domain)):
        return False
    if cookie.secure and not asked.secure:
        return False
    if cookie.expires is not None and cookie.expires <= now:
        return False
    return _path_matches(asked.path, cookie.path)


def _expiry(attributes: dict[str, str], now: datetime) -> datetime | None:
    """Return when a cookie expires: Max-Age before Expires, invalid values ignored, at most 400 days."""
    age = attributes.get("max-age", "")
    if _SECONDS.fullmatch(age):
        return now + min(timedelta(seconds=max(int(age[:12]), 0)), MAX_AGE)
    expires = read_cookie_date(attributes.get("expires", ""))
    return None if expires is None else min(expires, now + MAX_AGE)


def _moment(epoch: float) -> datetime | None:
    """Return the time in a cookies.txt; 0, -1 and out-of-range values mean the end of the session."""
    return datetime.fromtimestamp(epoch, UTC) if 0 < epoch < 253_402_300_800 else None


_PARTS = re.compile(r"[^\t -/;-@\[-`{-~]+")
_TIME = re.compile(r"([0-9]{1,2}):([0-9]{1,2}):([0-9]{1,2})(?![0-9])")
_DAY = re.compile(r"([0-9]{1,2})(?![0-9])")
_YEAR = re.compile(r"([0-9]{2,4})(?![0-9])")
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")


def read_cookie_date(text: str) -> datetime | None:
    """Return the time of an Expires attribute in any of the formats of section 5.1.1; None if invalid."""
    clock = day = month = year = None
    for part in _PARTS.findall(text[:100]):
        if clock is None and (found := _TIME.match(part)):
            clock = int(found[1]), int(found[2]), int(found[3])
        elif day is None and (found := _DAY.match(part)):
            day = int(found[1])
        elif month is None and part[:3].lower() in _MONTHS:
            month = _MONTHS.index(part[:3].lower()) + 1
        elif year is None and (found := _YEAR.match(part)):
            year = int(found[1])
    if clock is None or day is None or month is None or year is None:
        return None
    if year < 100:
        year += 1900 if year >= 70 else 2000
    try:
        return datetime(year, month, day, *clock, tzinfo=UTC) if year >= 1601 else None
    except ValueError:
        return None
