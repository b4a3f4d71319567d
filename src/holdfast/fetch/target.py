"""Splits an address into what is dialled and what is asked for, once, so that check and connect never disagree. It
refuses every spelling that two parsers could read differently: users, backslashes, control characters, odd numbers.
"""

from __future__ import annotations

import re
import socket
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import NamedTuple

from holdfast.errors import UrlRefused

MAX_URL_CHARS = 8192

_DEFAULT_PORTS = {"http": 80, "https": 443}

# What WHATWG serialisation gives for http and https: lower-case scheme and host, all ASCII; no user, no fragment.
# Possessive, so that an address of question marks that ends badly is not read from each of them anew.
_FORM = re.compile(r"(https?://[!-.0->@-~]++)((?:/[!-\"$-~]*+)?(?:\?[!-\"$-~]*+)?)")
_ORIGIN = re.compile(
    r"(?P<scheme>https?)://"
    r"(?P<host>\[[0-9a-f:.]{2,45}\]|[a-z0-9_](?:[a-z0-9_.~!$&'()*+,;=-]{0,253}))"
    r"(?::(?P<port>[0-9]{1,5}))?"
)
_ENDS_IN_NUMBER = re.compile(r"(?:^|\.)(?:[0-9]+|0x[0-9a-f]*)\.?$")


class Origin(NamedTuple):
    """One place to dial: worked out once, used for every page that is asked of it."""

    scheme: str
    host: str
    """As it stands in the Host header, brackets included."""
    port: int
    literal: IPv4Address | IPv6Address | None
    """The address itself where the host spells one, by the rules that the C library dials by; None for a name."""
    address: str
    """The literal as it is dialled, if it was spelt the one way that every parser reads alike; else empty."""
    url: str
    """The origin as libcurl is given it."""
    host_line: bytes
    """The Host header: the port only when it is not the scheme's own."""


class Target(NamedTuple):
    """One origin and what to ask it for."""

    origin: Origin
    path: str
    """The request target: path and query, never empty."""


def parse_target(url: str) -> Target:
    """Return the parts of a normal http or https address; raise UrlRefused for everything else."""
    if len(url) > MAX_URL_CHARS:
        raise UrlRefused(url, f"it has more than {MAX_URL_CHARS} characters")
    match = _FORM.fullmatch(url)
    if match is None:
        raise UrlRefused(url, "it is not a plain http or https address in normal form, without fragment")
    origin, path = match.groups()
    return Target(_origin(origin), path if path[:1] == "/" else f"/{path}")


@lru_cache(maxsize=4096)
def _origin(text: str) -> Origin:
    match = _ORIGIN.fullmatch(text)
    if match is None:
        raise UrlRefused(text, "its host is not in normal form, or it carries a user")
    scheme, host, port_text = match.group("scheme", "host", "port")
    port = int(port_text) if port_text else _DEFAULT_PORTS[scheme]
    if not 0 < port < 65536:
        raise UrlRefused(text, "its port is out of range")
    authority = host if port == _DEFAULT_PORTS[scheme] else f"{host}:{port}"
    literal = _literal(host)
    return Origin(
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
    try:
        return IPv4Address(socket.inet_aton(host.removesuffix(".")))
    except OSError:
        raise UrlRefused(host, "it ends in a number and is no IPv4 address") from None
