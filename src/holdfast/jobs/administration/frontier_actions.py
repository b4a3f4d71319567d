"""What operators do to the frontier: settings of domains, purges, addresses added by hand; for routes and commands.

Every change is audited in the transaction that makes it. What takes long goes in portions, each of them committed, and
ends when the caller says so: it is asked before each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, Final, NamedTuple

from sqlalchemy.orm import Session

from holdfast.clock import Clock
from holdfast.crawl.plan import CrawlPlan
from holdfast.db.audit_events import acting_user, append_event
from holdfast.db.models import Source
from holdfast.db.raw import RawDatabase
from holdfast.errors import Conflict, Invalid, UrlRefused
from holdfast.fetch.guard import AddressGuard, demand_public
from holdfast.frontier import Frontier
from holdfast.frontier.control import CLEARED, PORTION, PURGED, DomainSettings, DomainWish
from holdfast.frontier.sql import FrontierTransaction
from holdfast.jobs.administration.actions import JobActions
from holdfast.jobs.administration.frontier_queries import NextRun, RunningCrawl, has_job, next_run, running_crawls
from holdfast.jobs.specs import CrawlDefaults, JobSpec, crawl_plan
from holdfast.jobs.views.frontier_queries import AttemptOfSource, UrlStatus, attempt_by_id
from holdfast.sources import registry
from holdfast.sources.config import read_config
from holdfast.sources.queries import find_source, new_code, sources
from holdfast.types import FoundUrl, Outcome, UrlKind
from holdfast.urls import DEFAULT, Normalisation, Scope, ScopeVerdict, Url, parse, parse_seed, priority, registrable

MOST_URLS: Final = 1000
"""Addresses of one call."""
ADHOC: Final = "adhoc"
SEED_PRIORITY: Final = 3
_PORTION_OF_SOURCES = 200
_SHOWN = 5


class OutOfScope(Invalid):
    """An address is added to a source that does not reach it."""

    code = "out_of_scope"

    def __init__(self, url: str, source: str, rule: str) -> None:
        super().__init__(
            f"urls: {url[:200]} is not in the scope of {source} ({rule}); widen that with: holdfast source edit "
            f"{source}, or leave the source out"
        )
        self.field = "urls"


class AddedAs(StrEnum):
    """What becomes of addresses that were added."""

    JOINED = "joined"
    """They are in the queue of a run that is under way."""
    WAITS = "waits"
    """They are taken by the source's next run."""
    JOB_MADE = "job_made"
    """No run was to come: a job was made for them, which runs once, as soon as a worker is free."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AddWish:
    """Which addresses are to be crawled."""

    urls: Sequence[str]
    source: str | None = None
    """The code of a source; without one it is found, or made."""
    priority: int | None = None
    is_seed: bool = False
    """Whether they count as seeds: asked first, and their links are one step away."""
    policy: Normalisation = DEFAULT
    """By which they are read: the ports that their source allows."""


_WAITS_FOR = {
    "scheduled": "as soon as a worker is free",
    "running": "after its current run",
    "pending": "as soon as somebody runs it",
    "paused": "which is paused: resume it",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class AddedPlace:
    """Where some of the addresses went."""

    source: str
    as_what: AddedAs
    urls: int
    added: int
    """Those that were not known there."""
    raised: int = 0
    """Those that were queued there already, and now have the higher priority that was asked for."""
    execution_id: int | None = None
    job_id: int | None = None
    next_run: NextRun | None = None
    """The job that takes what waits."""

    @property
    def when(self) -> str:
        """When they are crawled, in a sentence for people."""
        if self.as_what is AddedAs.JOINED:
            return f"Run {self.execution_id} of {self.source} crawls them; it is under way."
        if self.next_run is None:
            return f"Job {self.job_id} crawls them once, as soon as a worker is free."
        job_id, state, at = self.next_run
        moment = _WAITS_FOR[state] if at is None else f"at {at:%Y-%m-%d %H:%M} UTC"
        return f"They wait for the next run of {self.source}: job {job_id}, {moment}."

    def joined_with(self, other: AddedPlace) -> AddedPlace:
        """Return both as one, for two additions to the same place."""
        return replace(
            self, urls=self.urls + other.urls, added=self.added + other.added, raised=self.raised + other.raised
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Added:
    """What became of an addition."""

    places: tuple[AddedPlace, ...]

    @property
    def added(self) -> int:
        """How many addresses are new where they went."""
        return sum(place.added for place in self.places)

    @property
    def total(self) -> int:
        """How many addresses were named, each once."""
        return sum(place.urls for place in self.places)


@dataclass(frozen=True, slots=True, kw_only=True)
class Closed:
    """What a purge or a clearing took from the queue."""

    closed: int
    is_done: bool
    """Whether nothing is left; otherwise the caller ran out of time, and the same call goes on."""
    executions: tuple[int, ...] = ()


def domain_of(written: str) -> str:
    """Return a domain as the frontier spells it: with its port if that is neither 80 nor 443; Invalid if it is none."""
    return parse_seed(written.strip()).domain


def _audit(clock: Clock, action: str, subject: str, **detail: Any) -> Callable[[FrontierTransaction], None]:
    def write(tx: FrontierTransaction) -> None:
        append_event(tx, clock, action=action, subject=subject, detail=detail)

    return write


def set_domain(frontier: Frontier, clock: Clock, name: str, wish: DomainWish) -> DomainSettings:
    """Change the delay of a domain, pause or forbid it; a crawl that runs hears of it within a second."""
    changed = {
        "delay_s": wish.delay_s,
        "default_delay": wish.default_delay or None,
        "allowed": wish.allowed,
        "paused": wish.paused,
    }
    said = {key: value for key, value in changed.items() if value is not None}
    if not said:
        raise Invalid("nothing is to be changed; name a delay, whether the domain is paused, or whether it is allowed")
    return frontier.control.set_domain(name, wish, also=_audit(clock, "domain.changed", name, **said))


def refresh_robots(frontier: Frontier, clock: Clock, name: str) -> None:
    """Let the robots files of a domain be read anew before its next page."""
    frontier.control.ask_robots_again(name, also=_audit(clock, "domain.robots_refreshed", name))


def reset_domain(raw_db: RawDatabase, frontier: Frontier, clock: Clock, name: str) -> bool:
    """Forget that a domain could not be reached; False if nothing was in the way. NotFound, or Conflict while held."""
    lifted = frontier.reset(name)
    with raw_db.write() as tx:
        append_event(tx, clock, action="domain.reset", subject=name, detail={"lifted": lifted})
    return lifted


def purge(
    frontier: Frontier, clock: Clock, name: str, *, execution_id: int | None, goes_on: Callable[[], bool]
) -> Closed:
    """Take what is queued of a domain from one execution, or from all; DomainUnknown."""
    domain_id, queued = frontier.control.queued_executions(name)
    executions = [one for one in queued if execution_id is None or one == execution_id]

    def portions() -> Iterator[int]:
        for one in executions:
            while closed := frontier.close_domain(
                one, domain_id, outcome=Outcome.EXCLUDED, reason=PURGED, limit=PORTION
            ):
                yield closed

    closed, is_done = _in_portions(portions(), goes_on)
    # Last: who holds the domain takes what is still queued, which is nothing.
    audit = _audit(clock, "domain.purged", name, closed=closed, executions=executions)
    frontier.control.tell_holder(name, also=audit)
    return Closed(closed=closed, is_done=is_done, executions=tuple(executions))


def drop_attempt(frontier: Frontier, clock: Clock, attempt: AttemptOfSource) -> None:
    """Take one queued address from its execution; Conflict if it is not queued."""
    row = attempt.row
    if not frontier.close_one(row.id, outcome=Outcome.EXCLUDED, reason=PURGED):
        raise Conflict(f"attempt {row.id} is {row.status.value}, not queued; there is nothing to take away")
    audit = _audit(clock, "frontier.dropped", f"execution {attempt.frontier_id}", url=row.url)
    frontier.control.tell_holder(row.domain, also=audit)


def clear(frontier: Frontier, clock: Clock, execution_id: int, *, goes_on: Callable[[], bool]) -> Closed:
    """Take everything that is queued from an execution; one that runs then ends."""

    def portions() -> Iterator[int]:
        while closed := frontier.close_rest(execution_id, outcome=Outcome.EXCLUDED, reason=CLEARED, limit=PORTION):
            yield closed

    closed, is_done = _in_portions(portions(), goes_on)
    subject = f"execution {execution_id}"
    frontier.control.tell_holders(execution_id, also=_audit(clock, "frontier.cleared", subject, closed=closed))
    return Closed(closed=closed, is_done=is_done, executions=(execution_id,))


def _in_portions(portions: Iterable[int], goes_on: Callable[[], bool]) -> tuple[int, bool]:
    total = 0
    for closed in portions:
        total += closed
        if not goes_on():
            return total, False
    return total, True


@dataclass(slots=True)
class _Group:
    """Addresses that go to one place."""

    source_id: int
    source: str
    run: RunningCrawl | None = None
    urls: dict[str, Url] = field(default_factory=dict)


class AddingUrls:
    """Adds addresses by hand: to the run of their source, to its next one, or to a job of their own."""

    def __init__(
        self,
        frontier: Frontier,
        clock: Clock,
        actions: JobActions,
        *,
        read: Callable[[], AbstractContextManager[Session]],
        write: Callable[[], AbstractContextManager[Session]],
        guard: AddressGuard,
    ) -> None:
        self._frontier, self._clock, self._actions, self.read, self._write = frontier, clock, actions, read, write
        self._guard = guard

    def add(self, wish: AddWish) -> Added:
        """Add addresses; Invalid names the one that is none, OutOfScope the one that its source does not reach."""
        if not 1 <= len(wish.urls) <= MOST_URLS:
            raise Invalid(f"urls: name 1 to {MOST_URLS:,} addresses at once", field="urls")
        urls = {url.normalised: url for url in _parsed(wish)}
        with self.read() as session:
            groups, strays = _Places(session, wish.source).of(urls.values())
        # Not what joins a run: that may have been begun with networks of its own.
        later = [url for group in groups if group.run is None for url in group.urls.values()]
        self._demand_public([*later, *strays], wish)
        places = [self._join(group, wish) for group in groups]
        places += [self._make(host, found, wish) for host, found in _by_site(strays).items()]
        return Added(places=tuple(places))

    def _demand_public(self, urls: Iterable[Url], wish: AddWish) -> None:
        """Raise Invalid for an address that no run of ours would ever dial."""
        for url in urls:
            try:
                demand_public(url, self._guard)
            except UrlRefused as exc:
                number = next(at for at, one in enumerate(_parsed(wish)) if one.normalised == url.normalised)
                raise Invalid(f"urls[{number}]: {exc}", field=f"urls[{number}]") from exc

    def retry(self, attempt_id: int) -> AddedPlace:
        """Ask once more for an address that failed for good: in its run if that is under way, else in the next.

        NotFound; Conflict for one that did not fail, or that was tried again since.
        """
        with self.read() as session:
            attempt = attempt_by_id(session, attempt_id)
            run = next((one for one in running_crawls(session) if one.frontier_id == attempt.frontier_id), None)
        status, url = attempt.row.status, attempt.row.url
        if status is not UrlStatus.FAILED:
            raise Conflict(f"attempt {attempt_id} is {status.value}; only what failed for good is tried again so")
        if run is None:
            return self.add(AddWish(urls=[url], source=attempt.source)).places[0]
        if not self._frontier.reopen_one(attempt_id):
            raise Conflict(f"attempt {attempt_id} was tried again meanwhile; look at it anew")
        audit = _audit(self._clock, "frontier.retried", f"execution {run.execution_id}", url=url)
        self._frontier.control.tell_holder(attempt.row.domain, also=audit)
        return AddedPlace(source=attempt.source, as_what=AddedAs.JOINED, urls=1, added=1, execution_id=run.execution_id)

    def seeds_of(self, code: str) -> tuple[str, ...]:
        """Return the seeds of a source; SourceNotFound."""
        with self.read() as session:
            return registry.config_of(find_source(session, code)).seeds[:MOST_URLS]

    def _join(self, group: _Group, wish: AddWish) -> AddedPlace:
        """Add to a run that is under way, or let wait for the next."""
        found = [_found(url, wish) for url in group.urls.values()]
        is_first = bool(wish.priority or wish.is_seed)
        if group.run is not None and (place := self._join_run(group, group.run, found, raises=is_first)) is not None:
            if is_first and (place.added or place.raised):
                self._ask_first(found)
            return place
        with self.read() as session:
            coming = next_run(session, group.source_id)
        detail = {"urls": [one.url for one in found[:_SHOWN]], "count": len(found)}
        audit = _audit(self._clock, "frontier.added", f"source {group.source}", **detail)
        self._frontier.control.wait(found, source_id=group.source_id, by=acting_user(), also=audit)
        if coming is not None:
            waits = AddedAs.WAITS
            return AddedPlace(source=group.source, as_what=waits, urls=len(found), added=len(found), next_run=coming)
        # No run would ever take them.
        with self._write() as session:
            job_id = self._job(session, group.source_id, [one.url for one in found], wish)
        made = AddedAs.JOB_MADE
        return AddedPlace(source=group.source, as_what=made, urls=len(found), added=len(found), job_id=job_id)

    def _join_run(
        self, group: _Group, run: RunningCrawl, found: Sequence[FoundUrl], *, raises: bool
    ) -> AddedPlace | None:
        """Add to the queue of a run, where queued ones may be put forward; None if it has just ended."""
        raised: list[int] = []
        control = self._frontier.control
        note = control.note_added(
            found, source_id=group.source_id, execution_id=run.frontier_id, by=acting_user(), running=run.execution_id
        )
        detail = {"urls": [one.url for one in found[:_SHOWN]], "count": len(found), "execution": run.execution_id}
        audit = _audit(self._clock, "frontier.added", f"source {group.source}", **detail)

        def also(tx: FrontierTransaction) -> None:
            note(tx)
            audit(tx)

        try:
            added = self._frontier.add(run.frontier_id, found, also=also, raised=raised.append if raises else None)
        except Conflict:
            return None
        return AddedPlace(
            source=group.source,
            as_what=AddedAs.JOINED,
            urls=len(found),
            added=added,
            raised=sum(raised),
            execution_id=run.execution_id,
        )

    def _ask_first(self, found: Sequence[FoundUrl]) -> None:
        """Let the processes that hold the domains look anew: what they took already has an order of its own."""
        for domain in sorted({one.domain for one in found}):
            self._frontier.control.tell_holder(domain, also=lambda _tx: None)

    def _make(self, host: str, urls: Sequence[Url], wish: AddWish) -> AddedPlace:
        """Make a source for a host that none reaches, and a job that crawls these addresses once."""
        addresses = [url.fetch for url in urls]
        with self._write() as session:
            code = new_code(session, name=None, seed=host)
            content = {"code": code, "name": host, "base_url": f"{urls[0].origin}/", "config": {"seeds": addresses}}
            source = registry.create(session, self._clock, registry.read_spec(content))
            job_id = self._job(session, source.id, addresses, wish)
        return AddedPlace(
            source=code, as_what=AddedAs.JOB_MADE, urls=len(addresses), added=len(addresses), job_id=job_id
        )

    def _job(self, session: Session, source_id: int, addresses: Sequence[str], wish: AddWish) -> int:
        """Return the pending job of a source, or create one that crawls these addresses once.

        The new job follows links and sitemaps only from seeds; of other pages it captures nothing but their requisites.
        """
        known = has_job(session, source_id, ADHOC)
        if known is not None:
            return known
        config = {"seeds": list(addresses)} | ({} if wish.is_seed else {"max_depth": 0, "sitemaps": False})
        spec = JobSpec(source_id=source_id, config=config, adaptive_scheduling=False)
        return self._actions.add(session, spec, kind=ADHOC, at=self._clock.now()).job.id


def _parsed(wish: AddWish) -> Iterator[Url]:
    for number, written in enumerate(wish.urls):
        try:
            yield parse_seed(written, wish.policy)
        except UrlRefused as exc:
            raise Invalid(f"urls[{number}]: {exc}", field=f"urls[{number}]") from exc


def _found(url: Url, wish: AddWish) -> FoundUrl:
    # One step from a seed, as a link of its first page: only a seed's redirect widens the scope of a run.
    depth = 0 if wish.is_seed else 1
    rank = wish.priority or (SEED_PRIORITY if wish.is_seed else priority(url.normalised, depth))
    return FoundUrl(url.fetch, url.hash64, url.domain, UrlKind.PAGE, depth, rank)


def _by_site(urls: Iterable[Url]) -> dict[str, list[Url]]:
    found: dict[str, list[Url]] = {}
    for url in urls:
        found.setdefault(url.host.removeprefix("www."), []).append(url)
    return found


class _Reach(NamedTuple):
    """What a run or a source takes, and how it spells addresses."""

    scope: Scope
    policy: Normalisation

    @classmethod
    def of(cls, plan: CrawlPlan) -> _Reach:
        return cls(plan.build_scope(), plan.normalisation())

    def spelled(self, url: Url) -> Url:
        return parse(url.fetch, self.policy)

    def verdict(self, url: Url) -> ScopeVerdict:
        """Return whether an address is taken; by hand it may be as deep as one likes."""
        return self.scope.decide(self.spelled(url), 0)

    def taken(self, urls: Iterable[Url]) -> list[Url]:
        return [url for url in urls if self.verdict(url).allowed]


class _Places:
    """Finds where addresses belong: a run that reaches them first, then a source."""

    def __init__(self, session: Session, code: str | None) -> None:
        self._session = session
        self._named = None if code is None else find_source(session, code)
        self._runs = running_crawls(session, source_id=None if self._named is None else self._named.id)
        self._of_runs: dict[int, _Reach] = {}
        self._of_sources: dict[int, _Reach | None] = {}

    def of(self, urls: Iterable[Url]) -> tuple[list[_Group], list[Url]]:
        """Return the addresses by where they go, and those that no source reaches."""
        groups: dict[tuple[int, int | None], _Group] = {}
        strays: list[Url] = []
        places = {url: self._run_of(url) for url in urls}
        places |= self._sources_of([url for url, place in places.items() if place is None])
        for url, place in places.items():
            if place is None:
                strays.append(url)
                continue
            group, reach = place
            key = group.source_id, None if group.run is None else group.run.execution_id
            spelled = reach.spelled(url)
            groups.setdefault(key, group).urls[spelled.normalised] = spelled
        return list(groups.values()), strays

    def _run_of(self, url: Url) -> tuple[_Group, _Reach] | None:
        for run in self._runs:
            if run.execution_id not in self._of_runs:
                self._of_runs[run.execution_id] = _Reach.of(stored_plan(run.config))
            reach = self._of_runs[run.execution_id]
            if reach.verdict(url).allowed:
                return _Group(run.source_id, run.source_code, run), reach
        return None

    def _sources_of(self, urls: Iterable[Url]) -> dict[Url, tuple[_Group, _Reach]]:
        """Return the first source by its code that reaches each address, in one pass over all sources."""
        if self._named is not None:
            named = self._named
            return {url: (_Group(named.id, named.code), self._demanded(named, url)) for url in urls}
        found: dict[Url, tuple[_Group, _Reach]] = {}
        left: dict[str, list[Url]] = {}
        for url in urls:
            left.setdefault(registrable(url.host), []).append(url)
        after: str | None = ""
        while left and after is not None:
            rows = sources(self._session, enabled=True, after=after, limit=_PORTION_OF_SOURCES)
            for source in rows:
                for site, reach in self._covering(source, left):
                    found |= {url: (_Group(source.id, source.code), reach) for url in reach.taken(left[site])}
                    left[site] = [url for url in left[site] if url not in found]
            left = {site: rest for site, rest in left.items() if rest}
            after = rows[-1].code if len(rows) == _PORTION_OF_SOURCES else None
        return found

    def _demanded(self, source: Source, url: Url) -> _Reach:
        """Return the reach of the source that was named; a sentence says why an address is none of its."""
        code = source.code
        if not source.enabled:
            raise Conflict(f"{code} is disabled, so nothing is crawled there; enable it: holdfast source enable {code}")
        if registry.content_of(source).get("backend") == "zimit":
            raise Conflict(
                f"{code} is crawled by zimit, which takes no single addresses; make it a seed with: holdfast source "
                f"edit {code}"
            )
        reach = self._reach(source)
        if reach is None:
            raise OutOfScope(url.fetch, code, "it has no seeds")
        if not (verdict := reach.verdict(url)).allowed:
            raise OutOfScope(url.fetch, code, verdict.rule)
        return reach

    def _covering(self, source: Source, sites: Iterable[str]) -> Iterator[tuple[str, _Reach]]:
        """Yield those of the sites that a source may reach, with its reach."""
        content = registry.content_of(source)
        if content.get("backend") == "zimit":
            return
        # Before any rule is compiled: most sources have nothing to do with these hosts.
        seeds = " ".join(map(str, content.get("seeds") or ()))
        for site in sites:
            if site in seeds and (reach := self._reach(source)) is not None:
                yield site, reach

    def _reach(self, source: Source) -> _Reach | None:
        if source.id not in self._of_sources:
            try:
                config = read_config(registry.content_of(source))
                self._of_sources[source.id] = _Reach.of(crawl_plan(config, CrawlDefaults(contact="-"), number=1))
            except Invalid:
                self._of_sources[source.id] = None
        return self._of_sources[source.id]


def stored_plan(config: Mapping[str, Any]) -> CrawlPlan:
    """Return the plan of a run as far as it says what is in scope, with the rules that were added since it began."""
    depth = config.get("max_depth")
    return CrawlPlan(
        seeds=tuple(config["seeds"]),
        contact=str(config["contact"]),
        scope=str(config.get("scope", "host")),
        include=tuple(config.get("include") or ()),
        exclude=(*(config.get("exclude") or ()), *(config.get("exclusions") or ())),
        max_depth=int(depth) if depth is not None else None,
        strip_trailing_slash=bool(config.get("strip_trailing_slash")),
        force_https=bool(config.get("force_https")),
        tracking=None if config.get("tracking") is None else tuple(config["tracking"]),
        allow_ports=tuple(config.get("allow_ports") or ()),
        landing=tuple(config.get("landing") or ()),
    )
