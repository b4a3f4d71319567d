"""What the parts of a crawl process share: handed to each, chosen by wiring, owned by the engine."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import field
from datetime import datetime, timedelta
from itertools import count
from random import Random
from threading import Lock
from typing import NamedTuple, Protocol

from cachetools import LRUCache

from holdfast.clock import Clock
from holdfast.config import Settings
from holdfast.crawl.credentials import Credentials
from holdfast.crawl.plan import CrawlPlan, Polled
from holdfast.crawl.politeness import Pace
from holdfast.crawl.progress import CrawlProgress
from holdfast.fetch.robots import RobotsFile
from holdfast.types import (
    Attempt,
    Fetched,
    FetchFailed,
    FetchRequest,
    FoundUrl,
    LeaseRefusal,
    Original,
    Outcome,
    PageToReread,
    RobotsState,
)
from holdfast.urls import Normalisation, Scope, Url
from holdfast.values import dataclass
from holdfast.warc.payload import HttpHead


class Fetcher(Protocol):
    """What a lane needs of the HTTP client; tests pass a scripted one."""

    async def fetch(self, request: FetchRequest) -> Fetched | FetchFailed:
        """Make one GET."""
        ...


class Memory(Protocol):
    """What is known of pages that were captured before: their WARC records, or their signals where those are kept."""

    def learn(self, attempts: Iterable[Attempt]) -> None:
        """Look up what these attempts need; called on the database's thread."""
        ...

    def readable(self, attempt: Attempt) -> bool:
        """Return whether a 304 would tell us all that we need."""
        ...

    def load(self, original: Original) -> tuple[HttpHead, bytes] | None:
        """Return an original's head and body; None if it cannot be read."""
        ...


_BUSY_ORIGINS = 10_000
_MET_ORIGINS = 100_000
ROBOTS_MEMORY_BYTES = 64 * 1024 * 1024
ROBOTS = "robots"
"""The reason of a capture that is a robots.txt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchedPage:
    """One attempt as it was fetched, on its way to the WARC file and the parser."""

    attempt: Attempt | None
    """None for robots.txt: stored, never an attempt of its own."""
    token: int
    started_at: datetime
    """When the last request was made."""
    hops: tuple[Fetched, ...]
    outcome: Outcome
    reason: str
    message: str | None = None
    redirected_to: str | None = None
    retry_at: datetime | None = None
    evidence: FetchFailed | None = None
    """The last answer, if it cannot be read as one: what came of it is stored all the same."""
    number: int = field(default_factory=count(1).__next__)
    """Which capture of this process it is, through every copy: the engine's table of what is under way goes by it."""

    @property
    def answered_at(self) -> datetime | None:
        """When the last answer was whole; None if there was none. What follows is our own time, not the server's."""
        return self.hops[-1].started_at + timedelta(seconds=self.hops[-1].took_s) if self.hops else None


class MissingName(NamedTuple):
    """How often in a row nameservers have said that a name does not exist, and since when (monotonic)."""

    times: int
    since: float


@dataclass(slots=True, kw_only=True)
class CrawlContext:
    """The shared hands of one crawl process."""

    plan: CrawlPlan
    settings: Settings
    clock: Clock
    """The database's: what is written down is compared with leases, and read on other machines."""
    client: Fetcher
    progress: CrawlProgress
    credentials: Credentials
    random: Random
    scope: Scope
    """Read by any thread; changed by `widen` alone, when a seed's redirect lands on another host."""
    originals: Memory
    processes: int
    """How many processes share this execution here."""
    is_private: Callable[[str], bool]
    """Whether an address lies in a network that was allowed explicitly: only there the delay may go below 1 s."""
    landed: Callable[[Url], None] = field(init=False)
    """Told where a seed landed."""
    forget: Callable[[Iterable[FoundUrl]], None] = field(init=False)
    """Told what a page brought whose result was refused."""
    read_again: Callable[[PageToReread], list[FoundUrl]] = field(init=False)
    """Reads where a stored page leads, seen from a smaller depth; from the slow desk's thread."""
    hand_over: Callable[[FetchedPage], None] = field(init=False)
    """Gives a capture to the desk."""
    borrow: Callable[[str], AbstractAsyncContextManager[Pace | LeaseRefusal]] = field(init=False)
    """Takes a turn at another domain (a robots.txt that redirects there), or says why it cannot be had."""
    recall_robots: Callable[[str], Awaitable[RobotsState | None]] = field(init=False)
    """Returns what any process has learned of an origin's robots.txt."""
    spool_full_at: float = float("-inf")
    """When the body of an answer last did not fit on the disk (monotonic)."""
    database_full_at: float = float("-inf")
    """When the database last refused results for want of room (monotonic)."""
    robots_files: LRUCache[tuple[str, datetime], RobotsFile] = field(
        default_factory=lambda: LRUCache(ROBOTS_MEMORY_BYTES, getsizeof=RobotsFile.memory_bytes)
    )
    """Parsed rules by origin and answer, so that a domain leased again is not parsed again. Bounded by memory: a file
    of 512 KiB takes up to 30 times as much when parsed, and a wildcard in the DNS has a thousand hosts with one."""
    busy_robots: LRUCache[str, int] = field(default_factory=lambda: LRUCache(_BUSY_ORIGINS))
    """How often in a row the robots.txt of an origin led to a domain that another process held."""
    missing_names: LRUCache[str, MissingName] = field(default_factory=lambda: LRUCache(_BUSY_ORIGINS))
    """Domains whose name did not exist when they were last to be asked, with how often in a row that was so."""
    polled: Mapping[int, Polled] = field(default_factory=dict)
    """What the last answers of polled feeds were marked with, by the hash of their address."""
    met_origins: LRUCache[str, bool] = field(default_factory=lambda: LRUCache(_MET_ORIGINS))
    """Origins whose sitemaps this process has taken from robots.txt; one that is forgotten offers them once more."""
    policy: Normalisation = field(init=False)
    """How this crawl tells one page from another: every address is read by it."""
    seed_origins: frozenset[str] = field(init=False)
    """Where the seeds stand."""
    _landed: set[str] = field(default_factory=set)
    _widening: Lock = field(default_factory=Lock)

    def __post_init__(self) -> None:
        self.policy = self.plan.normalisation()
        self.seed_origins = frozenset(self.plan.seed_origins())

    def widen(self, url: Url) -> bool:
        """Take the place where a seed landed into the scope; False if it is there already.

        Parsing threads and the loop both learn of such places: without the lock, one of two would be lost.
        """
        with self._widening:
            if url.normalised in self._landed:
                return False
            self._landed.add(url.normalised)
            before, self.scope = self.scope, self.scope.with_landing_hosts((url,))
            return self.scope is not before
