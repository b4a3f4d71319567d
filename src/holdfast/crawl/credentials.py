"""The user's headers and cookies, and which servers receive them: no secret crosses an origin or is archived.

A header is sent to the seeds' own origins, and to the https origin of an http seed; harmless ones go to all
hosts. A cookie is sent to the host and port that set it (RFC 6265, but port-specific), never from https to
http.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from holdfast.errors import Invalid
from holdfast.fetch.cookies import CookieJar
from holdfast.fetch.headers import Pairs, RequestHeaders
from holdfast.sources.plan import CrawlPlan
from holdfast.urls import Url, is_public_suffix

_HARMLESS = frozenset({"accept", "accept-language", "cache-control", "dnt", "pragma", "save-data", "sec-gpc"})
_HARMLESS_BYTES = frozenset(name.encode() for name in _HARMLESS)
_OURS = frozenset(
    {"from", "if-match", "if-modified-since", "if-none-match", "if-range", "if-unmodified-since", "range", "user-agent"}
)
_WEB_PORTS = frozenset({80, 443})
# Limit of ports with a cookie jar: each jar is bounded, but a hostile site has 65,000 ports.
_MAX_JARS = 8


class Credentials:
    """The user's headers and the cookies of one process. Raises `Invalid` naming a header or line that is invalid."""

    def __init__(self, plan: CrawlPlan) -> None:
        RequestHeaders(()).join(plan.headers)
        for name, _ in plan.headers:
            if name.lower() in _OURS:
                raise Invalid(f"the header {name!r} is the crawl's own; to add to the user agent, use --user-agent")
        seeds = tuple(plan.seed_origins().values())
        self._seeds = frozenset(origin for seed in seeds for origin in _homes(seed))
        self._all = plan.headers
        self._harmless = tuple(pair for pair in plan.headers if pair[0].lower() in _HARMLESS)
        # The user's own cookies by port, separate from those that servers set: a flood of those must not evict one.
        self._given: dict[int, CookieJar] = {}
        self._jars: dict[int, CookieJar] = {}
        secret = {name.lower().encode("latin-1", "replace") for name, _ in plan.headers} - _HARMLESS_BYTES
        self._secret = frozenset(secret | ({b"cookie"} if plan.cookies else set()))
        if plan.cookies:
            self._load(plan.cookies, seeds)

    def hidden(self, request_head: bytes) -> bytes:
        """Return a request head safe to archive: names of the user's secrets remain, their values are removed."""
        if not self._secret:
            return request_head
        lines = request_head.split(b"\r\n")
        for at, line in enumerate(lines):
            name = line.partition(b":")[0]
            if name.lower() in self._secret:
                lines[at] = name + b": [redacted]"
        return b"\r\n".join(lines)

    def covers(self, url: Url) -> bool:
        return url.origin in self._seeds

    def join(self, headers: Pairs, url: Url, now: datetime) -> Pairs:
        cookie = self._cookie(url, now) if self._jars or self._given else None
        own = self._all if self.covers(url) else self._harmless
        if own:
            names = {name.lower() for name, _ in own}
            headers = (*(pair for pair in headers if pair[0].lower() not in names), *own)
        return headers if cookie is None else _with_cookie(headers, cookie)

    def _cookie(self, url: Url, now: datetime) -> str | None:
        """Return the Cookie header for a URL; cookies set by the server override those from the user."""
        jar, given = self._jars.get(_port(url)), self._given.get(_port(url))
        fresh = jar.header_for(url.fetch, now) if jar is not None else None
        brought = given.header_for(url.fetch, now) if given is not None else None
        if fresh is None or brought is None:
            return fresh or brought
        names = {pair.partition("=")[0] for pair in fresh.split("; ")}
        return "; ".join((fresh, *(pair for pair in brought.split("; ") if pair.partition("=")[0] not in names)))

    def keep(self, url: Url, values: Sequence[str], now: datetime) -> None:
        jar = self._jars.get(_port(url))
        if jar is None:
            if len(self._jars) >= _MAX_JARS:
                return
            jar = self._jars[_port(url)] = CookieJar(is_public_suffix)
        # Never send a cookie in clear text that came over TLS, whether or not the server marked it as secure.
        if url.scheme == "https":
            values = [f"{value}; Secure" for value in values]
        jar.store(url.fetch, values, now, beside=self._given.get(_port(url)))

    def _load(self, text: str, seeds: Sequence[Url]) -> None:
        # Never send a session in clear text that was opened over TLS, although the file does not say so.
        if all(seed.scheme == "https" for seed in seeds):
            text = "\n".join(map(_secured, text.split("\n")))
        for seed in seeds:
            if _port(seed) not in self._given:
                jar = self._given[_port(seed)] = CookieJar(is_public_suffix)
                jar.load_netscape(text)


def _homes(seed: Url) -> tuple[str, ...]:
    """Return the origins a seed's secrets may be sent to: its own, and the https one of an http seed."""
    upgraded = (f"https://{seed.host}",) if seed.scheme == "http" and seed.port == 80 else ()
    return (seed.origin, *upgraded)


def _port(url: Url) -> int:
    return 0 if url.port in _WEB_PORTS else url.port


def _with_cookie(headers: Pairs, cookie: str) -> Pairs:
    # Two such headers could be read differently by two servers.
    given = [value for name, value in headers if name.lower() == "cookie"]
    rest = tuple(pair for pair in headers if pair[0].lower() != "cookie") if given else headers
    return (*rest, ("Cookie", "; ".join((*given, cookie))))


def _secured(line: str) -> str:
    """Return the cookies.txt line with its cookie restricted to https."""
    fields = line.split("\t")
    if len(fields) >= 6 and fields[3].upper() == "FALSE":
        fields[3] = "TRUE"
    return "\t".join(fields)
