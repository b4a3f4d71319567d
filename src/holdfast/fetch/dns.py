"""Resolves a host name to permitted addresses: every record is judged before one is used, and one forbidden record
rejects them all. Never waits past its timeout or caches more than its limit.
"""

from __future__ import annotations

import asyncio
from ipaddress import ip_address
from pathlib import Path
from typing import Any, NamedTuple

import pycares

from holdfast.clock import Clock
from holdfast.fetch.guard import REFUSAL, AddressGuard
from holdfast.types import FetchProblem
from holdfast.values import dataclass

_MIN_TTL_S, _MAX_TTL_S = 1.0, 300.0
# Addresses kept per name and family; all of a thousand records are checked, but few are used.
_MAX_KEPT = 4
# When a query is repeated, as shares of the timeout. Earlier queries stay open: a nameserver that takes 4 s answers the
# first of them.
_TRY_AT = (0.0, 0.2, 0.5)
# From its third answer on, c-ares uses five times the average latency, at least 0.25 s, instead of the configured
# timeout, and drops later answers. So a channel is replaced before that (measured: 0.2 ms a channel). That also empties
# its cache, which cannot be switched off.
_ANSWERS_PER_CHANNEL = 2
# Answers that a second query would only repeat.
_DEFINITE = (pycares.errno.ARES_ENODATA, pycares.errno.ARES_ENOTFOUND)
_UNANSWERED = (pycares.errno.ARES_ETIMEOUT, pycares.errno.ARES_ECANCELLED, pycares.errno.ARES_EDESTRUCTION)
_MAX_HOSTS_FILE_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolverSettings:
    """Settings for DNS lookups."""

    nameservers: tuple[str, ...] = ()
    """`address` or `address:port`; empty uses the system's nameservers."""
    hosts_file: Path | None = Path("/etc/hosts")
    timeout_s: float = 5.0
    """Limit for one name, all attempts together; any response within it is used."""
    # Shorter than the wait before a first retry, which would otherwise query no nameserver.
    negative_ttl_s: float = 0.9
    """How long a missing name, or one without addresses, is cached. A nameserver's failure is not cached."""
    max_entries: int = 10_000
    # IPv4 first, because many crawlers' networks route IPv6 badly or not at all, and a site's other family is tried as
    # soon as the first one fails (see `demote`).
    prefer_ipv6: bool = False
    """Address family to connect to first when a name has both."""


class ResolvedName(NamedTuple):
    addresses: tuple[str, ...]
    problem: FetchProblem | None = None
    message: str = ""


class _Entry(NamedTuple):
    resolved: ResolvedName
    until: float


class _Channel:
    __slots__ = ("answered", "library", "open")

    def __init__(self, servers: list[str] | None, timeout_s: float) -> None:
        self.library = pycares.Channel(timeout=timeout_s, tries=1, servers=servers, lookups="b")
        self.answered = 0
        self.open = 0


class _Question:
    """One record type of one name: sent up to three times, answered once."""

    __slots__ = ("done", "error", "in_flight", "kind", "tries")

    def __init__(self, kind: int) -> None:
        self.kind = kind
        self.tries = self.in_flight = 0
        self.done = False
        self.error: int | None = None


class _Lookup:
    """Two queries for one name, A and AAAA, and the future that waits for both."""

    __slots__ = ("answers", "future", "host", "name", "questions", "timers", "ttl_s")

    def __init__(self, host: str, name: str, future: asyncio.Future[ResolvedName]) -> None:
        self.host, self.name = host, name
        self.future = future
        self.questions = (_Question(pycares.QUERY_TYPE_A), _Question(pycares.QUERY_TYPE_AAAA))
        self.answers: list[str] = []
        self.ttl_s = _MAX_TTL_S
        self.timers: list[asyncio.TimerHandle] = []


class Resolver:
    def __init__(self, settings: ResolverSettings, guard: AddressGuard, clock: Clock) -> None:
        self._settings = settings
        self._guard = guard
        self._clock = clock
        self._hosts = _read_hosts(settings.hosts_file)
        self._cache: dict[str, _Entry] = {}
        self._pending: dict[str, _Lookup] = {}
        # By try: each starts with another nameserver, so that a silent one does not use up the timeout.
        self._channels: dict[int, _Channel] = {}
        self._retired: set[_Channel] = set()

    def cached(self, host: str) -> ResolvedName | None:
        """Return the cached result for this name without waiting; None if it must be resolved."""
        entry = self._cache.get(host)
        if entry is None or entry.until < self._clock.monotonic():
            return None
        return entry.resolved

    async def resolve(self, host: str) -> ResolvedName:
        """Return the addresses of this name, or the problem; concurrent callers share one lookup."""
        known = self.cached(host)
        if known is not None:
            return known
        name = host.removesuffix(".").lower()
        local = self._local(name)
        if local is not None:
            return self._remember(host, local, _MAX_TTL_S)
        lookup = self._pending.get(host) or self._ask(host, name)
        # A cancelled caller must not cancel the lookup of the others.
        return await asyncio.shield(lookup.future)

    def demote(self, host: str, address: str) -> None:
        """Move an unresponsive address behind the others, so that the next exchange tries another."""
        entry = self._cache.get(host)
        if entry is None or address not in entry.resolved.addresses:
            return
        rest = tuple(known for known in entry.resolved.addresses if known != address)
        self._cache[host] = _Entry(ResolvedName((*rest, address)), entry.until)

    def close(self) -> None:
        for lookup in list(self._pending.values()):
            self._fail(lookup, "the resolver was closed")
        for channel in (*self._channels.values(), *self._retired):
            channel.library.close()
        self._channels.clear()
        self._retired.clear()

    def _local(self, name: str) -> ResolvedName | None:
        """Return a result that needs no nameserver: the hosts file, and names that RFC 6761 reserves for this
        machine.
        """
        addresses = self._hosts.get(name)
        if addresses is None and (name == "localhost" or name.endswith(".localhost")):
            addresses = self._hosts.get("localhost", ("127.0.0.1", "::1"))
        return None if addresses is None else self._judged(list(addresses))

    def _ask(self, host: str, name: str) -> _Lookup:
        loop = asyncio.get_running_loop()
        lookup = self._pending[host] = _Lookup(host, name, loop.create_future())
        whole_s = self._settings.timeout_s
        lookup.timers = [loop.call_later(whole_s * share, self._ask_again, lookup) for share in _TRY_AT[1:]]
        lookup.timers.append(loop.call_later(whole_s, self._settle, lookup))
        for question in lookup.questions:
            self._send(lookup, question)
        return lookup

    def _ask_again(self, lookup: _Lookup) -> None:
        """Repeat unanswered queries: a packet may have been lost."""
        for question in lookup.questions:
            if not question.done:
                self._send(lookup, question)

    def _send(self, lookup: _Lookup, question: _Question) -> None:
        if question.tries >= len(_TRY_AT) or lookup.future.done():
            return
        loop = asyncio.get_running_loop()
        channel = self._channel(question.tries)

        def answered(result: Any, error: int | None) -> None:
            # Runs on the library's thread. A loop that has closed needs no answer.
            channel.answered += error not in _UNANSWERED
            if not loop.is_closed():
                loop.call_soon_threadsafe(self._take, lookup, question, channel, result, error)

        question.tries += 1
        try:
            channel.library.query(lookup.name, question.kind, callback=answered)
        except (pycares.AresError, UnicodeError, ValueError) as exc:
            reason = f"not a name that can be looked up: {type(exc).__name__}"
            self._finish(lookup, ResolvedName((), FetchProblem.NO_SUCH_NAME, reason))
            return
        question.in_flight += 1
        channel.open += 1

    def _channel(self, turn: int) -> _Channel:
        """Return the channel of the first, second or third attempt; a new one if the present one has cached too
        much.
        """
        channel = self._channels.get(turn)
        if channel is not None and channel.answered < _ANSWERS_PER_CHANNEL:
            return channel
        if channel is not None:
            self._retire(channel)
        servers = list(self._settings.nameservers) or None
        fresh = _Channel(servers, self._settings.timeout_s)
        if turn and len(known := fresh.library.servers) > 1:
            fresh.library.close()
            at = turn % len(known)
            fresh = _Channel([*known[at:], *known[:at]], self._settings.timeout_s)
        self._channels[turn] = fresh
        return fresh

    def _retire(self, channel: _Channel) -> None:
        if channel.open:
            self._retired.add(channel)
        else:
            self._retired.discard(channel)
            channel.library.close()

    def _take(self, lookup: _Lookup, question: _Question, channel: _Channel, result: Any, error: int | None) -> None:
        channel.open -= 1
        question.in_flight -= 1
        if channel in self._retired:
            self._retire(channel)
        if lookup.future.done() or question.done:
            return
        if error is None:
            question.error = None
            for record in result.answer:
                lookup.ttl_s = min(lookup.ttl_s, record.ttl)
                if record.type in (pycares.QUERY_TYPE_A, pycares.QUERY_TYPE_AAAA):
                    lookup.answers.append(record.data.addr)
        else:
            question.error = error
            if error not in _DEFINITE:
                # Retry at once, with another nameserver if there is one: this one's answer will not change.
                self._send(lookup, question)
                if question.in_flight:
                    return
        question.done = True
        if all(other.done for other in lookup.questions):
            self._settle(lookup)

    def _settle(self, lookup: _Lookup) -> None:
        """Decide with the responses received: a family that did not answer in time is not used."""
        if lookup.answers:
            found = self._remember(lookup.host, self._judged(lookup.answers), max(_MIN_TTL_S, lookup.ttl_s))
        else:
            found = ResolvedName((), _problem(lookup), self._reason(lookup))
            if all(question.done and question.error in (None, *_DEFINITE) for question in lookup.questions):
                self._remember(lookup.host, found, self._settings.negative_ttl_s)
        self._finish(lookup, found)

    def _reason(self, lookup: _Lookup) -> str:
        """Return why there is no address, distinguishing a missing name from an unavailable nameserver."""
        errors = [question.error for question in lookup.questions]
        trouble = next((error for error in errors if error is not None and error not in _DEFINITE), None)
        if trouble not in (None, pycares.errno.ARES_ETIMEOUT):
            return "the nameserver could not tell: " + str(pycares.errno.strerror(trouble))
        if trouble is not None or not all(question.done for question in lookup.questions):
            return f"no nameserver answered within {self._settings.timeout_s:g} s"
        return "the name does not exist" if pycares.errno.ARES_ENOTFOUND in errors else "the name has no address"

    def _fail(self, lookup: _Lookup, reason: str) -> None:
        self._finish(lookup, ResolvedName((), FetchProblem.DNS, reason))

    def _finish(self, lookup: _Lookup, resolved: ResolvedName) -> None:
        self._pending.pop(lookup.host, None)
        for timer in lookup.timers:
            timer.cancel()
        if not lookup.future.done():
            lookup.future.set_result(resolved)

    def _judged(self, addresses: list[str]) -> ResolvedName:
        # One private address rejects the name: its owner controls the order of the addresses.
        if not all(map(self._guard.judge, addresses)):
            return ResolvedName((), FetchProblem.ADDRESS_FORBIDDEN, REFUSAL)
        unique = list(dict.fromkeys(addresses))
        ipv4 = [address for address in unique if ":" not in address][:_MAX_KEPT]
        ipv6 = [address for address in unique if ":" in address][:_MAX_KEPT]
        return ResolvedName(tuple(ipv6 + ipv4 if self._settings.prefer_ipv6 else ipv4 + ipv6))

    def _remember(self, host: str, resolved: ResolvedName, ttl_s: float) -> ResolvedName:
        # Remove it first, so that a renewed name becomes the youngest: the oldest is evicted.
        self._cache.pop(host, None)
        if len(self._cache) >= self._settings.max_entries:
            del self._cache[next(iter(self._cache))]
        self._cache[host] = _Entry(resolved, self._clock.monotonic() + ttl_s)
        return resolved


def _problem(lookup: _Lookup) -> FetchProblem:
    """Return whether a name is missing, by a nameserver's answer to both queries, or cannot be resolved now."""
    errors = [question.error if question.done else None for question in lookup.questions]
    is_gone = pycares.errno.ARES_ENOTFOUND in errors and all(error in _DEFINITE for error in errors)
    return FetchProblem.NO_SUCH_NAME if is_gone else FetchProblem.DNS


def _read_hosts(path: Path | None) -> dict[str, tuple[str, ...]]:
    """Return the names and addresses of a hosts file; invalid lines are skipped."""
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
