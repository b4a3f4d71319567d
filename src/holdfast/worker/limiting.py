"""Which limit holds for one address: the plan's, else the settings'; shared by the processes of a crawl."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from ipaddress import ip_address, ip_network

from holdfast.clock import Clock
from holdfast.config import Settings
from holdfast.crawl.plan import CrawlPlan
from holdfast.fetch.per_ip import AddressLimit, AddressLimiter

_REMEMBERED_ADDRESSES = 4096
"""Of each request the address is judged: to read it anew takes 9 us."""


def limiter_of(settings: Settings, plan: CrawlPlan, clock: Clock, *, processes: int = 1) -> AddressLimiter:
    """Return the limiter of one process of a crawl."""
    return address_limiter(settings, plan.allow_networks, clock, rate=plan.per_ip_rate, processes=processes)


def address_limiter(
    settings: Settings, allow_networks: Sequence[str], clock: Clock, *, rate: float | None = None, processes: int = 1
) -> AddressLimiter:
    """Return the limiter of one process, with the rate of the settings unless one is given.

    The default is for the servers of others: in a private network that was allowed, a limit holds only if one was set.
    """
    fetch, networks = settings.fetch, tuple(map(ip_network, allow_networks))
    limit = AddressLimit(
        rate=fetch.per_ip_rate if rate is None else rate, connections=fetch.per_ip_connections
    ).shared_by(processes)
    was_set = rate is not None or {"per_ip_rate", "per_ip_connections"} & fetch.model_fields_set

    @lru_cache(maxsize=_REMEMBERED_ADDRESSES)
    def is_exempt(address: str) -> bool:
        return not was_set and any(ip_address(address) in network for network in networks)

    return AddressLimiter(limit, clock, is_exempt=is_exempt)
