"""How many connections one client may hold: without a limit, a single address could occupy all of them.

A trusted proxy holds connections for many clients and is exempt; whom it names is counted by requests under way instead
(`api.middleware.at_once`), by the same key and the same number.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from ipaddress import IPv6Address, ip_address

from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from holdfast.errors import Unavailable


class TooManyConnections(Unavailable):
    """This address holds as many connections, or has as many requests under way, as it may."""

    code = "too_many_connections"
    summary = "Too many connections"
    retry_after_s = 5

    def __init__(self, limit: int) -> None:
        super().__init__(
            f"{limit} connections of one address are served at once; close some, or try again in {self.retry_after_s} s"
        )


def client_key(host: str) -> str:
    """Return whom to count for an address: itself, or its whole /64 for IPv6, where one household has them all.

    Whatever is no address counts as one client: made up anew for each request, it would never be limited.
    """
    try:
        address = ip_address(host)
    except ValueError:
        return "unknown"
    if isinstance(address, IPv6Address):
        return str(address.ipv4_mapped or int(address) >> 64)
    return str(address)


class AddressCounts:
    """How much each address holds now; as large as what is held, for an address that lets go is forgotten."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._held: Counter[str] = Counter()

    def take(self, key: str) -> bool:
        """Count one more of an address; False, and nothing is counted, if it has as many as it may."""
        if self._held[key] >= self.limit:  # reading a Counter adds nothing to it
            return False
        self._held[key] += 1
        return True

    def give_back(self, key: str) -> None:
        """Count one less."""
        self._held[key] -= 1
        if self._held[key] <= 0:
            del self._held[key]

    def __len__(self) -> int:
        return len(self._held)


class ConnectionLimits:
    """What a serving process allows: so many connections in all, and so many of one address."""

    def __init__(self, *, in_all: int, per_address: int, trusted_proxies: Sequence[str] = ()) -> None:
        self.in_all = in_all
        self._counts = AddressCounts(per_address)
        # The very rule by which the server believes what a proxy forwards: the two can never differ.
        self._trusted = ProxyHeadersMiddleware(_no_application, list(trusted_proxies)).trusted_hosts

    @property
    def per_address(self) -> int:
        """How many one address may hold."""
        return self._counts.limit

    def take(self, host: str) -> str | None:
        """Count a connection; return the key to give back, empty for one that is not counted, None if it is refused."""
        if host in self._trusted:
            return ""
        key = client_key(host)
        return key if self._counts.take(key) else None

    def give_back(self, key: str) -> None:
        """Forget a connection that is closed."""
        if key:
            self._counts.give_back(key)


async def _no_application(_scope: object, _receive: object, _send: object) -> None:
    """Serve nothing: only the rule of the middleware around it is asked."""
