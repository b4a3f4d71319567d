"""The address guard decides which addresses may be connected to. It rejects every non-public address, unless its
network was explicitly allowed; it judges resolved addresses, never their spelling.
"""

from __future__ import annotations

import re
import socket
import ssl
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Sequence
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from pathlib import Path
from typing import NamedTuple

from holdfast import log
from holdfast.clock import Clock
from holdfast.errors import Unavailable, UrlRefused
from holdfast.urls import Url, is_ip

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

# The message never contains the resolved address: responses must not map a private network.
REFUSAL = "this host does not lead to a public address; an administrator can allow its network by name"
"""Message for a rejected caller."""

# The standard library's `is_global` depends on Python's patch release and accepts several of these, so we use our own
# table: IANA's special-purpose registry, multicast, reserved space, and cloud metadata addresses.
_CLOSED_4 = (
    "0.0.0.0/8",
    "10.0.0.0/8",
    "100.64.0.0/10",
    "127.0.0.0/8",
    "168.63.129.16/32",
    "169.254.0.0/16",
    "172.16.0.0/12",
    "192.0.0.0/24",
    "192.0.2.0/24",
    "192.88.99.0/24",
    "192.168.0.0/16",
    "198.18.0.0/15",
    "198.51.100.0/24",
    "203.0.113.0/24",
    "224.0.0.0/4",
    "240.0.0.0/4",
)
# IPv6 is open only inside 2000::/3, so that mapped, compatible, NAT64, unique local, link local, site local, multicast
# and segment routing addresses fall out unlisted; inside it, what can carry or hide another address is closed.
_CLOSED_6 = ("::/3", "2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20", "4000::/2", "8000::/1")


class _Ranges(NamedTuple):
    """Closed ranges as two parallel columns of integers, sorted and disjoint: one bisection finds an entry."""

    firsts: tuple[int, ...]
    lasts: tuple[int, ...]

    def hold(self, number: int) -> bool:
        at = bisect_right(self.firsts, number) - 1
        return at >= 0 and number <= self.lasts[at]


def _ranges(networks: Sequence[Network]) -> _Ranges:
    spans = sorted((int(net.network_address), int(net.broadcast_address)) for net in networks)
    return _Ranges(tuple(first for first, _ in spans), tuple(last for _, last in spans))


_RANGES_4 = _ranges([IPv4Network(text) for text in _CLOSED_4])
_RANGES_6 = _ranges([IPv6Network(text) for text in _CLOSED_6])


class AddressGuard:
    __slots__ = ("_allowed_4", "_allowed_6", "allow_networks")

    def __init__(self, allow_networks: Sequence[Network] = ()) -> None:
        self.allow_networks: tuple[Network, ...] = tuple(allow_networks)
        self._allowed_4 = tuple(net for net in self.allow_networks if isinstance(net, IPv4Network))
        self._allowed_6 = tuple(net for net in self.allow_networks if isinstance(net, IPv6Network))
        if self.allow_networks:
            log.get().info("guard.networks_allowed", networks=[str(net) for net in self.allow_networks])

    def judge(self, address: str | Address) -> bool:
        """Return whether this address may be connected to. Anything but a plain address (a name, a zone id) may
        not.
        """
        if isinstance(address, str):
            # A zone id selects an interface of this machine and would allow link-local addresses.
            if "%" in address:
                return False
            try:
                address = ip_address(address)
            except ValueError:
                return False
        if isinstance(address, IPv4Address):
            return not _RANGES_4.hold(int(address)) or any(address in net for net in self._allowed_4)
        if address.scope_id is not None:
            return False
        return not _RANGES_6.hold(int(address)) or any(address in net for net in self._allowed_6)


MAX_URL_CHARS = 8192

_DEFAULT_PORTS = {"http": 80, "https": 443}

# WHATWG serialisation of http and https URLs: lower-case scheme and host, all ASCII; no user, no fragment. Possessive,
# so that a URL of question marks with a bad end is matched only once.
_FORM = re.compile(r"(https?://[!-.0->@-~]++)((?:/[!-\"$-~]*+)?(?:\?[!-\"$-~]*+)?)")
_ORIGIN = re.compile(
    r"(?P<scheme>https?)://"
    r"(?P<host>\[[0-9a-f:.]{2,45}\]|[a-z0-9_](?:[a-z0-9_.~!$&'()*+,;=-]{0,253}))"
    r"(?::(?P<port>[0-9]{1,5}))?"
)
_ENDS_IN_NUMBER = re.compile(r"(?:^|\.)(?:[0-9]+|0x[0-9a-f]*)\.?$")


class DialledOrigin(NamedTuple):
    """An origin to connect to: computed once, used for all its pages."""

    scheme: str
    host: str
    """As in the Host header, brackets included."""
    port: int
    literal: IPv4Address | IPv6Address | None
    """The address if the host is an IP literal by the C library's parsing rules; None for a name."""
    address: str
    """The IP literal to connect to, if spelled in the form that every parser reads alike; else empty."""
    url: str
    """The origin as passed to libcurl."""
    host_line: bytes
    """The Host header, with the port only if it is not the scheme's default."""


class FetchTarget(NamedTuple):
    origin: DialledOrigin
    path: str
    """The request target: path and query, never empty."""


def parse_target(url: str) -> FetchTarget:
    """Return the parts of a normal http or https URL; raise `UrlRefused` for everything else."""
    if len(url) > MAX_URL_CHARS:
        raise UrlRefused(url, f"it has more than {MAX_URL_CHARS} characters")
    match = _FORM.fullmatch(url)
    if match is None:
        raise UrlRefused(url, "it is not a plain http or https address in normal form, without fragment")
    origin, path = match.groups()
    return FetchTarget(_origin(origin), path if path[:1] == "/" else f"/{path}")


@lru_cache(maxsize=4096)
def _origin(text: str) -> DialledOrigin:
    match = _ORIGIN.fullmatch(text)
    if match is None:
        raise UrlRefused(text, "its host is not in normal form, or it carries a user")
    scheme, host, port_text = match.group("scheme", "host", "port")
    port = int(port_text) if port_text else _DEFAULT_PORTS[scheme]
    if not 0 < port < 65536:
        raise UrlRefused(text, "its port is out of range")
    authority = host if port == _DEFAULT_PORTS[scheme] else f"{host}:{port}"
    literal = _literal(host)
    return DialledOrigin(
        scheme=scheme,
        host=host,
        port=port,
        literal=literal,
        address=str(literal) if host in (str(literal), f"[{literal}]") else "",
        url=f"{scheme}://{host}:{port}/",
        host_line=f"Host: {authority}\r\n".encode("ascii"),
    )


def _literal(host: str) -> IPv4Address | IPv6Address | None:
    if host[0] == "[":
        try:
            return ip_address(host[1:-1])
        except ValueError:
            raise UrlRefused(host, "it is no IPv6 address") from None
    if _ENDS_IN_NUMBER.search(host) is None:
        return None
    # Use the C library's rules, as connecting does: 0x7f.1 and 2130706433 are 127.0.0.1 there.
    try:
        return IPv4Address(socket.inet_aton(host.removesuffix(".")))
    except OSError:
        raise UrlRefused(host, "it ends in a number and is no IPv4 address") from None


# Debian and Alpine, Fedora and its derivatives, SUSE, and OpenSSL's default.
_BUNDLES = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
)
_MAX_HOSTS = 10_000


def trust_store(configured: Path | None = None) -> str:
    """Return the CA certificate file: the configured one, else OpenSSL's, else the system's.

    Raise `Unavailable` if none exists: an https crawl without trusted authorities would fail page by page.
    """
    if configured is not None:
        candidates = [str(configured)]
    else:
        default = ssl.get_default_verify_paths().cafile
        candidates = [*([default] if default else []), *_BUNDLES]
    for candidate in candidates:
        if Path(candidate).is_file():
            return candidate
    raise Unavailable("no certificate bundle was found; install ca-certificates or name one in the settings")


class InvalidHosts:
    # Remembered, so that not every connection fails first; briefly, because a certificate may be renewed.

    __slots__ = ("_clock", "_seen", "_ttl_s")

    def __init__(self, clock: Clock, ttl_s: float = 300.0) -> None:
        self._clock = clock
        self._ttl_s = ttl_s
        self._seen: OrderedDict[tuple[str, int], float] = OrderedDict()

    def add(self, host: str, port: int) -> None:
        """Record a failure; beyond the limit, the oldest one is forgotten."""
        self._seen.pop((host, port), None)
        self._seen[host, port] = self._clock.monotonic() + self._ttl_s
        if len(self._seen) > _MAX_HOSTS:
            self._seen.popitem(last=False)

    def known(self, host: str, port: int) -> bool:
        until = self._seen.get((host, port))
        if until is None:
            return False
        if until < self._clock.monotonic():
            del self._seen[host, port]
            return False
        return True


def demand_public(url: Url, guard: AddressGuard, *, allowed_by: str = "HOLDFAST_ALLOW_NETWORKS") -> None:
    """Raise `UrlRefused` for an IP address that is never connected to; `allowed_by` names the setting that allows
    it.
    """
    # A name is checked when it is resolved; an address can be rejected now.
    if is_ip(url.host) and not guard.judge(url.host.strip("[]")):
        raise UrlRefused(url.fetch, f"it is not public; allow its network with {allowed_by}")
