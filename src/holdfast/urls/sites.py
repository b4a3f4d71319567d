"""What is true of every address that shares scheme, host and port, worked out once and remembered.

It refuses credentials, hosts that no resolver could know, and ports where something other than a website lives.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final, NamedTuple

from url import URL, URLError

from holdfast.urls.normalisation import Normalisation, PathAndQuery

_REMEMBERED_SITES: Final = 4096
_REMEMBERED_CHARS: Final = 300  # a host has at most 253; what is longer is refused, and not worth memory
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}
_NAME = re.compile(r"[a-z0-9_.\-]+")  # the parser lets quotes, braces and the like stand in a host
_IPV4 = re.compile(r"\d{1,3}(?:\.\d{1,3}){3}")

DENIED_PORTS: Final = frozenset(
    {
        *(1433, 1434, 1521, 3306, 5432, 6379, 7687, 9042, 9160, 11211, 26379, 27017, 27018, 27019, 28015),  # databases
        *(5984, 8086, 8529, 9200, 9300),  # stores that speak HTTP to anybody who asks
        *(1883, 2181, 4222, 4369, 5671, 5672, 8883, 9092, 15672, 25672, 61613, 61616),  # queues
        *(2375, 2376, 2377, 2379, 2380, 4243, 6443, 8500, 8600, 10250, 10255, 10256),  # machines that run machines
        *(2049, 3260, 3389, 5900, 5901, 5902, 5903, 5985, 5986, 6000, 6001, 9100),  # files, screens, printers
        *(1719, 1720, 1723, 3659, 4045, 4190, 5060, 5061, 6566, 6679, 6697, 10080),  # as browsers refuse (Fetch, 2.9)
        *range(6665, 6670),
    }
)
"""Ports above 1023 that are never asked unless a source names them: an address is not a way to talk to a database."""


class Site(NamedTuple):
    """One scheme, host and port."""

    scheme: str
    host: str
    port: int
    domain: str
    origin: str
    prefix: str
    """What a normalised address of this site starts with."""
    as_is: bool
    """Whether an address without query and escape is its own normalised form."""


def is_ip(host: str) -> bool:
    """Return whether a host, as the WHATWG parser writes it, is an address rather than a name."""
    return host.startswith("[") or _IPV4.fullmatch(host) is not None


def port_allowed(port: int, allow_ports: frozenset[int] = frozenset()) -> bool:
    """Return whether a website may live there: 80, 443, above 1023 less DENIED_PORTS, and what `allow_ports` has."""
    if port in allow_ports:
        return 0 < port < 65536
    return port in (80, 443) or (port > 1023 and port not in DENIED_PORTS)


def _host_problem(host: str) -> str | None:
    if not host:
        return "it names no host"
    if is_ip(host):
        return None
    if len(host) > 253 or any(not 0 < len(label) < 64 for label in host.split(".")):
        return "its host is no name that could be looked up (empty or over-long label)"
    return None if _NAME.fullmatch(host) else "its host has a character that no host name has"


def _build(start: str, policy: Normalisation) -> Site | str:
    try:
        parsed = URL.parse(start + "/")
    except (URLError, ValueError):
        return "it cannot be parsed"
    scheme = parsed.scheme
    if scheme not in _DEFAULT_PORTS:
        return f"only http and https are fetched, not {scheme}"
    if parsed.username or parsed.password is not None:
        return "it carries a user name or password"
    # The final dot of an absolute name is another spelling of the same host, and must not be another politeness key.
    host = (parsed.host_str or "").removesuffix(".")
    if problem := _host_problem(host):
        return problem
    default = _DEFAULT_PORTS[scheme]
    port = default if parsed.port is None else parsed.port
    if not port_allowed(port, policy.allow_ports):
        return f"port {port} is not one where websites live; a source can allow it"
    origin = f"{scheme}://{host}" if port == default else f"{scheme}://{host}:{port}"
    domain = host if port in (80, 443) else f"{host}:{port}"
    upgraded = policy.force_https and scheme == "http" and port == default
    prefix = f"https://{host}" if upgraded else origin
    as_is = prefix == start and not policy.strip_trailing_slash
    return Site(scheme, host, port, domain, origin, prefix, as_is)


class Sites:
    """The sites met under one policy, and how that policy spells what follows the host."""

    __slots__ = ("_known", "_policy", "spelling")

    def __init__(self, policy: Normalisation) -> None:
        self._policy = policy
        self._known: dict[str, Site | str] = {}
        self.spelling = PathAndQuery(policy)

    def get(self, start: str) -> Site | str:
        """Return the site of `scheme://authority`, as the parser wrote it, or the reason why it is refused."""
        return self._known.get(start) or self._learn(start)

    def _learn(self, start: str) -> Site | str:
        site = _build(start, self._policy)
        if len(start) <= _REMEMBERED_CHARS:
            if len(self._known) >= _REMEMBERED_SITES:
                self._known.clear()
            self._known[start] = site
        return site


@lru_cache(maxsize=32)
def sites_of(policy: Normalisation) -> Sites:
    """Return the one memory of sites for this policy."""
    return Sites(policy)
