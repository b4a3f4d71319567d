"""The definition of a crawl: one frozen value, passed from the command line or a job to every process."""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from holdfast import __version__
from holdfast.errors import Invalid
from holdfast.urls import DEFAULT, Normalisation, Scope, ScopeKind, Url, normalisation_of, parse_seed
from holdfast.values import dataclass

if TYPE_CHECKING:
    from holdfast.sources.config import SourceConfig

PRODUCT = "Holdfast"

# The beginning of a seed that says all of its origin: of a million seeds that begin alike, one is read.
_PLAIN_ORIGIN = re.compile(r"https?://[a-z0-9.-]+(?::[0-9]+)?(?=[/?#])")

# Pages a second that one process manages: 357 to 488 were measured on pages of 54 KB (docs/benchmarks.md).
_PROCESS_RATE = 300


class Polled(NamedTuple):
    """A due feed or sitemap, with the validators of its last response."""

    url: str
    etag: str | None = None
    last_modified: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CrawlPlan:
    """Seeds, scope, limits and politeness of one crawl. `headers` and `cookies` may hold secrets: see `public`."""

    seeds: tuple[str, ...]
    contact: str
    scope: str = ScopeKind.HOST.value
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    max_depth: int | None = 10
    max_pages: int | None = None
    max_bytes: int | None = None
    max_time_s: float | None = None
    delay_s: float = 1.0
    per_ip_rate: float | None = None
    """Requests per second to one IP address, including private ones; None uses the settings."""
    user_agent: str | None = None
    sitemaps: bool = True
    requisites: bool = True
    headers: tuple[tuple[str, str], ...] = ()
    cookies: str = ""
    robots: str = "obey"
    robots_reason: str | None = None
    allow_networks: tuple[str, ...] = ()
    allow_invalid_tls: bool = False
    strip_trailing_slash: bool = False
    force_https: bool = False
    """Whether an http URL and its https form are the same page."""
    tracking: tuple[str, ...] | None = None
    """Query parameters that do not change a page, `utm_*` for a family; None for the default list."""
    allow_ports: tuple[int, ...] = ()
    """Ports that may be requested although websites rarely use them."""
    storage: str = "warc"
    """`warc` stores everything; `signals` drops bodies after extracting links, language and keywords."""
    landing: tuple[str, ...] = ()
    """Redirect targets of seeds; their hosts are in scope too."""
    feeds: str = "off"
    """`poll` checks feeds and sitemaps for new items and follows no links; `notice` records feeds named by pages."""
    lists: tuple[Polled, ...] = ()
    search: bool = False
    """Whether to look for feeds on the first seed, at the usual paths and in robots.txt."""

    def agent(self) -> str:
        """Return the complete User-Agent, which always contains the product token and the contact."""
        contact = self.contact if "://" in self.contact else f"mailto:{self.contact}"
        own = f"{PRODUCT}/{__version__} (+{contact})"
        return f"{self.user_agent} {own}" if self.user_agent else own

    def seed_urls(self) -> tuple[Url, ...]:
        """Return the distinct seed URLs; raise `Invalid` naming the first invalid one."""
        return tuple(self.each_seed_url())

    def each_seed_url(self) -> Iterator[Url]:
        # One by one: a million of them take seconds to read, and much room if kept.
        policy = self.normalisation()
        if not self.seeds:
            raise Invalid("nothing to crawl: name at least one seed, for example: holdfast crawl https://example.org")
        met: set[int] = set()
        for seed in self.seeds:
            url = parse_seed(seed, policy)
            if url.hash64 not in met:
                met.add(url.hash64)
                yield url

    def first_seed_url(self) -> Url:
        return next(self.each_seed_url())

    def seed_origins(self) -> Mapping[str, Url]:
        """Return the seeds' origins, each with its first seed; computed once."""
        return _origins_of(self.seeds, self.normalisation())

    def busy_processes(self) -> int:
        if self.max_pages or self.max_bytes:
            return 1  # only one process counts exactly: several pass a limit by what each has under way
        # macOS cannot say which cores a process may use.
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        # One process holds a domain at a time, so the delay limits the rate; a process that waits only costs memory.
        domains = len({url.domain for url in self.seed_origins().values()})
        wanted = domains if not self.delay_s else min(domains, math.ceil(domains / self.delay_s / _PROCESS_RATE))
        return max(1, min(cores, wanted))

    def normalisation(self) -> Normalisation:
        return normalisation_of(
            strip_trailing_slash=self.strip_trailing_slash,
            force_https=self.force_https,
            tracking=self.tracking,
            allow_ports=self.allow_ports,
        )

    @property
    def polls(self) -> bool:
        """Whether feeds and sitemaps are polled: sitemaps then list new items, and seeds are not crawled."""
        return self.feeds == "poll"

    @property
    def keeps_bodies(self) -> bool:
        return self.storage == "warc"

    def build_scope(self) -> Scope:
        """Return the scope rules; raise `Invalid` naming a pattern that does not compile."""
        scope = self._scope_of(self.each_seed_url())
        policy = self.normalisation()
        return scope.with_landing_hosts(parse_seed(landing, policy) for landing in self.landing)

    def check_scope(self) -> None:
        """Raise `Invalid` if a pattern does not compile; of the seeds, only the first is read."""
        self._scope_of((self.first_seed_url(),))

    def _scope_of(self, seeds: Iterable[Url]) -> Scope:
        return Scope.build(
            seeds,
            ScopeKind(self.scope),
            include=self.include,
            exclude=self.exclude,
            max_depth=None if self.max_depth is not None and self.max_depth < 0 else self.max_depth,
        )

    def fingerprint(self) -> str:
        """Return the identity of a crawl: two commands with equal seeds, scope and body storage are the same crawl."""
        # A crawl that was stopped is resumed by the same command, also with another delay or another limit.
        seeds = sorted(url.normalised for url in self.each_seed_url())
        same: list[Any] = [seeds, self.scope, sorted(self.include), sorted(self.exclude)]
        same += [] if self.keeps_bodies else [self.storage]
        # With another normalisation a URL has another identity, so the crawls must not share state.
        if self.normalisation() != DEFAULT:
            same += [[self.strip_trailing_slash, self.force_https, self.tracking, sorted(self.allow_ports)]]
        return hashlib.sha256(json.dumps(same).encode()).hexdigest()

    def public(self) -> dict[str, Any]:
        """Return the plan for storing and archiving, without header values and cookies."""
        plan = replace(self, headers=tuple((name, "[redacted]") for name, _ in self.headers), cookies="")
        return {**asdict(plan), "cookies": bool(self.cookies)}

    def to_json(self) -> str:
        """Return the whole plan, secrets included, for passing to a child process."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Self:
        fields: dict[str, Any] = json.loads(text)
        fields["headers"] = tuple((name, value) for name, value in fields["headers"])
        fields["lists"] = tuple(Polled(*values) for values in fields["lists"])
        frozen: Any = {name: tuple(value) if isinstance(value, list) else value for name, value in fields.items()}
        return cls(**frozen)


@lru_cache(maxsize=1)
def _origins_of(seeds: tuple[str, ...], policy: Normalisation) -> Mapping[str, Url]:
    found: dict[str, Url] = {}
    met: set[str] = set()
    for seed in seeds:
        begins = _PLAIN_ORIGIN.match(seed)
        if begins is not None:
            if begins[0] in met:
                continue
            met.add(begins[0])
        url = parse_seed(seed, policy)
        found.setdefault(url.origin, url)
    return found


class CrawlDefaults(NamedTuple):
    contact: str
    user_agent: str | None = None
    allow_networks: tuple[str, ...] = ()
    max_time_s: float | None = None
    """Maximum working time of any execution: no site holds a worker forever."""
    delay_s: float = 1.0
    """Seconds between two requests to a domain, for sources that set no delay."""


def crawl_plan(config: SourceConfig, house: CrawlDefaults, *, number: int) -> CrawlPlan:
    """Return the plan of a job's execution with this number, which selects the user agent in rotation."""
    return CrawlPlan(
        seeds=config.seeds,
        contact=house.contact,
        scope=config.scope,
        include=config.include,
        exclude=config.exclude,
        max_depth=config.max_depth,
        max_pages=config.max_pages,
        max_bytes=config.quota_bytes,
        delay_s=house.delay_s if config.delay_s is None else config.delay_s,
        # The shorter of the two holds: a trap site must not keep a worker for longer than the server allows.
        max_time_s=min((one for one in (config.max_time_s, house.max_time_s) if one), default=None),
        per_ip_rate=config.per_ip_rate,
        # By the execution's number: a worker that takes it over keeps the same name towards the site.
        user_agent=config.user_agent(number) or house.user_agent,
        sitemaps=config.sitemaps,
        requisites=config.requisites,
        robots=config.robots,
        robots_reason=config.robots_reason,
        allow_networks=house.allow_networks,
        storage=config.storage,
        strip_trailing_slash=config.strip_trailing_slash,
        force_https=config.force_https,
        tracking=config.tracking,
        allow_ports=config.allow_ports,
        feeds="notice" if config.feeds else "off",
    )


_JUDGING = (
    *("seeds", "scope", "include", "exclude", "max_depth", "delay_s", "robots", "storage", "landing"),
    *("strip_trailing_slash", "force_https", "tracking", "allow_ports"),
)


def stored_plan(config: Mapping[str, Any]) -> CrawlPlan:
    """Return the rules of the plan that an execution was started with, and those added since it started."""
    values = {name: config[name] for name in _JUDGING if name in config}
    if added := config.get("exclusions"):
        values["exclude"] = [*values.get("exclude", ()), *added]
    frozen: Any = {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}
    return CrawlPlan(contact=str(config.get("contact") or "-"), **frozen)
