"""Listening socket of the server, and connection limits per client.

Without an admin token it listens on loopback only, and in a strict environment not at all.
"""

from __future__ import annotations

import errno
import socket
from collections import Counter
from contextlib import closing
from functools import lru_cache
from ipaddress import IPv6Address, ip_address
from urllib.parse import urlsplit

from holdfast.auth.jwt_bearer import demand_strong_secret
from holdfast.config import Settings
from holdfast.errors import Conflict, Invalid, Unavailable

END_STREAMS = "end_streams"
"""Key in the lifespan state for the callback that ends live streams when the server stops."""
_SECRET_CHARS = 16
_BACKLOG = 2048


def listen(settings: Settings) -> socket.socket:
    """Return a bound socket for the API; raise Invalid if it would be open to anybody, Conflict if the port is
    busy.
    """
    demand_closed(settings)
    host, port = settings.api.host, settings.api.port
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with closing(socket.socket(family, kind, protocol)) as listener:
            # Connections of a server that just stopped linger for a minute and would block the port.
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
            listener.listen(_BACKLOG)
            return socket.socket(family, kind, protocol, listener.detach())
    except OSError as exc:
        if exc.errno == errno.EADDRINUSE:
            raise Conflict(
                f"port {port} on {host} is taken; stop what listens there, or choose another: --port {port + 1}"
            ) from exc
        raise Invalid(
            f"cannot listen on {host}, port {port}: {exc.strerror or exc}; choose with --host and --port"
        ) from exc


def demand_closed(settings: Settings) -> None:
    """Raise Invalid for settings that leave the server unprotected on a network, or contradict each other."""
    demand_strong_secret(settings.auth)
    token = settings.api.admin_token
    if settings.api.strict and (token is None or len(token.get_secret_value()) < _SECRET_CHARS):
        raise Invalid(
            f"the environment {settings.api.environment} needs HOLDFAST_API_ADMIN_TOKEN with at least {_SECRET_CHARS} "
            "characters; make one with: openssl rand -hex 32"
        )
    if token is None and not is_loopback(settings.api.host):
        raise Invalid(
            f"without HOLDFAST_API_ADMIN_TOKEN the server listens on loopback only, not on {settings.api.host}; "
            "set one (openssl rand -hex 32) or leave out --host"
        )
    replay = urlsplit(settings.replay.origin or "").hostname
    own = {urlsplit(settings.api.site_url or "").hostname, *settings.api.allowed_hosts, settings.api.host, "localhost"}
    if replay is not None and (replay in own or is_loopback(replay, below=False)):
        raise Invalid(
            f"HOLDFAST_REPLAY_ORIGIN names {replay}, which is the application's own host; archived pages need one of "
            "their own, such as https://replay.example.org"
        )


@lru_cache(maxsize=1024)
def is_loopback(host: str, *, below: bool = True) -> bool:
    """Return whether a host is local: a loopback address, `localhost` or, with `below`, a name below it."""
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        name = host.lower()
        return name == "localhost" or (below and name.endswith(".localhost"))


class TooManyConnections(Unavailable):
    """The address has reached its limit of connections or running requests."""

    code = "too_many_connections"
    summary = "Too many connections"
    retry_after_s = 5

    def __init__(self, limit: int) -> None:
        super().__init__(
            f"{limit} connections of one address are served at once; close some, or try again in {self.retry_after_s} s"
        )


@lru_cache(maxsize=4096)
def client_key(host: str) -> str:
    """Return the key that limits are counted by: the address, or its /64 for IPv6, which one household has to itself.

    Anything else counts as one client: names made up for each request would never be limited.
    """
    try:
        address = ip_address(host)
    except ValueError:
        return "unknown"
    if isinstance(address, IPv6Address):
        # Count an IPv4 client on an IPv6 socket as IPv4: otherwise all of them would share one /64.
        return str(address.ipv4_mapped or int(address) >> 64)
    return str(address)


class AddressCounts:
    """Count per address; memory grows only with the held ones, because empty addresses are forgotten."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._held: Counter[str] = Counter()

    def take(self, key: str) -> bool:
        """Count one more of an address; return False, without counting, at its limit."""
        if self._held[key] >= self.limit:  # reading a Counter adds nothing to it
            return False
        self._held[key] += 1
        return True

    def give_back(self, key: str) -> None:
        self._held[key] -= 1
        if self._held[key] <= 0:
            del self._held[key]

    def __len__(self) -> int:
        return len(self._held)
