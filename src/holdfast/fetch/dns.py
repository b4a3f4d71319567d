"""Turns a host name into addresses that may be dialled: every record is seen and judged before one is used, and one
forbidden record refuses them all. It never waits past its timeout and never remembers more than its cache holds.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Any, NamedTuple

import pycares

from holdfast.clock import Clock
from holdfast.fetch.guard import REFUSAL, Guard
from holdfast.types import FetchProblem

_MIN_TTL_S, _MAX_TTL_S = 1.0, 300.0
_MAX_KEPT = 4
"""Addresses kept per name and family; a name with a thousand records is judged on all and dialled on few."""
# The library underneath keeps a cache of its own that cannot be switched off and has no bound on entries; it is emptied
# whenever the channel is set up anew.
_QUERIES_PER_CHANNEL = 10_000
_MAX_HOSTS_FILE_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolverSettings:
    """How names are looked up."""

    nameservers: tuple[str, ...] = ()
    """`address` or `address:port`; empty means those of the system."""
    hosts_file: Path | None = Path("/etc/hosts")
    timeout_s: float = 5.0
    """For everything about one name, all tries together."""
    tries: int = 2
    negative_ttl_s: float = 10.0
    max_entries: int = 10_000
    prefer_ipv6: bool = False
    """Which family is dialled first when a name has both. IPv4, because many crawlers' networks route IPv6 badly or not
    at all, and a site's other family is tried as soon as the first one fails (see `demote`)."""


class Resolved(NamedTuple):
    """What became of a name: addresses, best first, or a problem."""

    addresses: tuple[str, ...]
    problem: FetchProblem | None = None
    message: str = ""


class _Entry(NamedTuple):
    resolved: Resolved
    until: float


class _Lookup:
    """Two queries about one name, A and AAAA, and the future that waits for both."""

    __slots__ = ("answers", "errors", "future", "name", "open", "timer", "ttl_s")

    def __init__(self, name: str, future: asyncio.Future[Resolved]) -> None:
        self.name = name
        self.future = future
        self.open = 2
        self.answers: list[str] = []
        self.errors: list[int] = []
        self.ttl_s = _MAX_TTL_S
        self.timer: asyncio.TimerHandle | None = None


class Resolver:
    """Asks nameservers on behalf of one event loop, and remembers within bounds."""

    def __init__(self, settings: ResolverSettings, guard: Guard, clock: Clock) -> None:
        self._settings = settings
        self._guard = guard
        self._clock = clock
        self._hosts = _read_hosts(settings.hosts_file)
        self._cache: dict[str, _Entry] = {}
        self._pending: dict[str, _Lookup] = {}
        self._channel: Any = None
        self._queries = 0

    def cached(self, host: str) -> Resolved | None:
        """Return what is remembered of this name, without waiting; None if it has to be asked for."""
        entry = self._cache.get(host)
        if entry is None or entry.until < self._clock.monotonic():
            return None
        return entry.resolved

    async def resolve(self, host: str) -> Resolved:
        """Return the addresses of this name, or the problem; callers that come together share one lookup."""
        known = self.cached(host)
        if known is not None:
            return known
        name = host.removesuffix(".").lower()
        local = self._local(name)
        if local is not None:
            return self._remember(host, local, _MAX_TTL_S)
        lookup = self._pending.get(host) or self._ask(host, name)
        # A caller that is cancelled must not take the answer from the others.
        return await asyncio.shield(lookup.future)

    def demote(self, host: str, address: str) -> None:
        """Put an address that did not answer behind its siblings, so that the next exchange tries another."""
        entry = self._cache.get(host)
        if entry is None or address not in entry.resolved.addresses:
            return
        rest = tuple(known for known in entry.resolved.addresses if known != address)
        self._cache[host] = _Entry(Resolved((*rest, address)), entry.until)

    def close(self) -> None:
        """Give up every open lookup and the sockets underneath."""
        for lookup in list(self._pending.values()):
            self._fail(lookup, "the resolver was closed")
        if self._channel is not None:
            self._channel.close()
            self._channel = None

    def _local(self, name: str) -> Resolved | None:
        """Return what needs no nameserver: the hosts file, and the names that RFC 6761 keeps on this machine."""
        addresses = self._hosts.get(name)
        if addresses is None and (name == "localhost" or name.endswith(".localhost")):
            addresses = self._hosts.get("localhost", ("127.0.0.1", "::1"))
        return None if addresses is None else self._judged(list(addresses))

    def _ask(self, host: str, name: str) -> _Lookup:
        loop = asyncio.get_running_loop()
        lookup = self._pending[host] = _Lookup(host, loop.create_future())
        lookup.timer = loop.call_later(self._settings.timeout_s, self._settle, lookup)

        def answered(result: Any, error: int | None) -> None:
            # Runs on the library's own thread. A loop that has closed meanwhile no longer waits for anything.
            if not loop.is_closed():
                loop.call_soon_threadsafe(self._take, lookup, result, error)

        for kind in (pycares.QUERY_TYPE_A, pycares.QUERY_TYPE_AAAA):
            try:
                self._open_channel().query(name, kind, callback=answered)
            except (pycares.AresError, UnicodeError, ValueError) as exc:
                self._fail(lookup, f"not a name that can be looked up: {type(exc).__name__}")
                break
        return lookup

    def _open_channel(self) -> Any:
        self._queries += 1
        if self._channel is None:
            # Half of the time for the first try: the library doubles the wait for the second.
            wait_s = self._settings.timeout_s / (2**self._settings.tries - 1)
            servers = list(self._settings.nameservers) or None
            self._channel = pycares.Channel(timeout=wait_s, tries=self._settings.tries, servers=servers, lookups="b")
        elif self._queries % _QUERIES_PER_CHANNEL == 0:
            self._channel.reinit()
        return self._channel

    def _take(self, lookup: _Lookup, result: Any, error: int | None) -> None:
        if lookup.future.done():
            return
        if error is not None:
            lookup.errors.append(error)
        else:
            for record in result.answer:
                lookup.ttl_s = min(lookup.ttl_s, record.ttl)
                if record.type in (pycares.QUERY_TYPE_A, pycares.QUERY_TYPE_AAAA):
                    lookup.answers.append(record.data.addr)
        lookup.open -= 1
        if lookup.open == 0:
            self._settle(lookup)

    def _settle(self, lookup: _Lookup) -> None:
        """Decide on what has come in: a family that did not answer in time is simply not dialled."""
        if lookup.answers:
            resolved, ttl_s = self._judged(lookup.answers), max(_MIN_TTL_S, lookup.ttl_s)
        else:
            reason = "no answer in time" if lookup.open else _reason(lookup.errors)
            resolved, ttl_s = Resolved((), FetchProblem.DNS, reason), self._settings.negative_ttl_s
        self._finish(lookup, self._remember(lookup.name, resolved, ttl_s))

    def _fail(self, lookup: _Lookup, reason: str) -> None:
        self._finish(lookup, Resolved((), FetchProblem.DNS, reason))

    def _finish(self, lookup: _Lookup, resolved: Resolved) -> None:
        self._pending.pop(lookup.name, None)
        if lookup.timer is not None:
            lookup.timer.cancel()
        if not lookup.future.done():
            lookup.future.set_result(resolved)

    def _judged(self, addresses: list[str]) -> Resolved:
        if not all(map(self._guard.judge, addresses)):
            return Resolved((), FetchProblem.ADDRESS_FORBIDDEN, REFUSAL)
        unique = list(dict.fromkeys(addresses))
        ipv4 = [address for address in unique if ":" not in address][:_MAX_KEPT]
        ipv6 = [address for address in unique if ":" in address][:_MAX_KEPT]
        return Resolved(tuple(ipv6 + ipv4 if self._settings.prefer_ipv6 else ipv4 + ipv6))

    def _remember(self, host: str, resolved: Resolved, ttl_s: float) -> Resolved:
        self._cache.pop(host, None)
        if len(self._cache) >= self._settings.max_entries:
            del self._cache[next(iter(self._cache))]
        self._cache[host] = _Entry(resolved, self._clock.monotonic() + ttl_s)
        return resolved


def _reason(errors: list[int]) -> str:
    if not errors:
        return "the name has no address"
    return str(pycares.errno.strerror(errors[0]))


def _read_hosts(path: Path | None) -> dict[str, tuple[str, ...]]:
    """Return the names of a hosts file with their addresses; lines that make no sense are passed over."""
    found: dict[str, list[str]] = {}
    if path is None or not path.is_file():
        return {}
    with path.open(encoding="utf-8", errors="replace") as file:
        for line in file.read(_MAX_HOSTS_FILE_BYTES).splitlines():
            address, *names = line.partition("#")[0].split() or [""]
            if not _is_address(address):
                continue
            for name in names:
                found.setdefault(name.lower().removesuffix("."), []).append(address)
    return {name: tuple(addresses) for name, addresses in found.items()}


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True
