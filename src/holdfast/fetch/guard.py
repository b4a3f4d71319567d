"""The address guard: says which addresses may be dialled at all. It refuses whatever is not public, unless its network
was explicitly allowed; it judges resolved addresses, never their spelling.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import NamedTuple

from holdfast import log

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

REFUSAL = "this host does not lead to a public address; an administrator can allow its network by name"
"""What a refused caller is told. The resolved address is never part of it: answers must not map a private network."""

# The standard library's `is_global` depends on the patch release of Python and passes several of these, so the table is
# ours: IANA's special-purpose registry, multicast, reserved space, and the metadata addresses of cloud providers.
_CLOSED_4 = (
    "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "168.63.129.16/32", "169.254.0.0/16",
    "172.16.0.0/12", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15",
    "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
)  # fmt: skip
# IPv6 is open only inside 2000::/3, so that mapped, compatible, NAT64, unique local, link local, site local, multicast
# and segment routing addresses fall out unlisted; inside it, what can carry or hide another address is closed.
_CLOSED_6 = ("::/3", "2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20", "4000::/2", "8000::/1")


class _Ranges(NamedTuple):
    """Closed ranges as two parallel columns of integers, sorted and disjoint: one bisection answers."""

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


class Guard:
    """Judges every address before a socket is made for it, IP literals included."""

    __slots__ = ("_allowed_4", "_allowed_6", "allow_networks")

    def __init__(self, allow_networks: Sequence[Network] = ()) -> None:
        self.allow_networks: tuple[Network, ...] = tuple(allow_networks)
        self._allowed_4 = tuple(net for net in self.allow_networks if isinstance(net, IPv4Network))
        self._allowed_6 = tuple(net for net in self.allow_networks if isinstance(net, IPv6Network))
        if self.allow_networks:
            log.get().info("guard.networks_allowed", networks=[str(net) for net in self.allow_networks])

    def judge(self, address: str | Address) -> bool:
        """Return whether this address may be dialled. What is no plain address (a name, a zone id) may not."""
        if isinstance(address, str):
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
