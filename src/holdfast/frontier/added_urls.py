"""URLs that a person adds: to a running crawl, to the next run of their source, or to a job of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import field, replace
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from sqlalchemy import Row, func, select
from sqlalchemy.orm import Session

from holdfast.clock import Clock, to_micros
from holdfast.db.models import Execution, Job, Source
from holdfast.errors import Conflict, Invalid, UrlRefused
from holdfast.fetch.guard import AddressGuard, demand_public
from holdfast.frontier.attempts import UrlStatus, attempt_by_id, status_of
from holdfast.frontier.frontier import Frontier
from holdfast.frontier.sql import FrontierTransaction
from holdfast.records import Operator, record
from holdfast.sources import registry
from holdfast.sources.config import read_config
from holdfast.sources.plan import CrawlDefaults, CrawlPlan, crawl_plan, stored_plan
from holdfast.sources.queries import find_source, new_code, sources
from holdfast.types import FoundUrl, UrlKind
from holdfast.urls import DEFAULT, Normalisation, ScopeVerdict, Url, parse, parse_seed, priority, registrable
from holdfast.values import dataclass

MOST_URLS: Final = 1000
SEED_PRIORITY: Final = 3
_PORTION_OF_SOURCES = 200
_SHOWN = 5
# Kinds of jobs whose runs take no single addresses: a poll follows no link, an import asks no server.
_OTHERS = ("feed", "import")
_MOST_RUNS = 200
# States of jobs of which a run is to come, by whose run comes first.
_BY_TURN = {"scheduled": 0, "running": 1, "pending": 2, "paused": 3}


class OutOfScope(Invalid):
    """An added URL is outside the scope of the source."""

    code = "out_of_scope"

    def __init__(self, url: str, source: str, rule: str) -> None:
        super().__init__(
            f"urls: {url[:200]} is not in the scope of {source} ({rule}); widen that with: holdfast source edit "
            f"{source}, or leave the source out"
        )
        self.field = "urls"


class AddedAs(StrEnum):
    JOINED = "joined"
    """Queued in a running crawl."""
    WAITS = "waits"
    """Pending until the source's next run."""
    JOB_MADE = "job_made"
    """No run was scheduled: a new job captures them once, as soon as a worker is free."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AddRequest:
    urls: Sequence[str]
    source: str | None = None
    """The code of a source; by default it is found, or created, by host."""
    priority: int | None = None
    is_seed: bool = False
    """Whether they count as seeds: fetched first, with links at depth one."""
    policy: Normalisation = DEFAULT
    """Normalisation of the URLs: the ports that their source allows."""
    max_retries: int = 3
    """Retries of a job that is created for them."""


_WAITS_FOR = {
    "scheduled": "as soon as a worker is free",
    "running": "after its current run",
    "pending": "as soon as somebody runs it",
    "paused": "which is paused: resume it",
}


@record
class AddedPlace:
    """Where some of the URLs were added."""

    source_code: Operator[str]
    status: Operator[AddedAs]
    """`joined` a current run, `waits` for the next one, or `job_made`: a job captures them once and follows links
    only from seeds.
    """
    urls: Operator[int]
    added: Operator[int]
    """URLs that were new there."""
    raised: Operator[int] = 0
    """URLs that were already queued there and now have the higher priority."""
    execution_id: Operator[int | None] = None
    job_id: Operator[int | None] = None
    when: Operator[str]
    """When they will be crawled, as a sentence for display."""

    def joined_with(self, other: AddedPlace) -> AddedPlace:
        return replace(
            self, urls=self.urls + other.urls, added=self.added + other.added, raised=self.raised + other.raised
        )


@record
class AddReceipt:
    """Result of adding URLs."""

    added: Operator[int]
    """URLs that were new in their place."""
    total: Operator[int]
    """Distinct URLs of the request."""
    places: Operator[list[AddedPlace]]


def _made(source: str, job_id: int, urls: int) -> AddedPlace:
    when = f"Job {job_id} crawls them once, as soon as a worker is free."
    return AddedPlace(source_code=source, status=AddedAs.JOB_MADE, urls=urls, added=urls, job_id=job_id, when=when)


def _joined(source: str, execution_id: int, urls: int, *, added: int, raised: int = 0) -> AddedPlace:
    return AddedPlace(
        source_code=source,
        status=AddedAs.JOINED,
        urls=urls,
        added=added,
        raised=raised,
        execution_id=execution_id,
        when=f"Run {execution_id} of {source} crawls them; it is running.",
    )


def _waits(source: str, urls: int, next_run: tuple[int, str, datetime | None]) -> AddedPlace:
    job_id, state, at = next_run
    moment = _WAITS_FOR[state] if at is None else f"at {at:%Y-%m-%d %H:%M} UTC"
    when = f"They wait for the next run of {source}: job {job_id}, {moment}."
    return AddedPlace(source_code=source, status=AddedAs.WAITS, urls=urls, added=urls, when=when)


CrawlOnce = Callable[[Session, int, Sequence[str], AddRequest], int]
"""Returns the job that crawls these URLs of a source once; `jobs` creates it."""


@dataclass(slots=True)
class _Group:
    source_id: int
    source: str
    run: Row[Any] | None = None
    urls: dict[str, Url] = field(default_factory=dict)


class AddingUrls:
    """Adds URLs by hand: to the running crawl of their source, to its next one, or to a job of their own."""

    def __init__(
        self,
        frontier: Frontier,
        clock: Clock,
        crawl_once: CrawlOnce,
        *,
        read: Callable[[], AbstractContextManager[Session]],
        write: Callable[[], AbstractContextManager[Session]],
        guard: AddressGuard,
    ) -> None:
        self._frontier, self._clock, self._crawl_once = frontier, clock, crawl_once
        self.read, self._write = read, write
        self._guard = guard

    def add(self, request: AddRequest) -> AddReceipt:
        """Add URLs; raise Invalid for a malformed one, OutOfScope for one that its source does not reach."""
        if not 1 <= len(request.urls) <= MOST_URLS:
            raise Invalid(f"urls: name 1 to {MOST_URLS:,} addresses at once", field="urls")
        urls = {url.normalised: url for url in _parsed(request)}
        with self.read() as session:
            groups, strays = _Places(session, request.source).of(urls.values())
        # Skip URLs that join a run: it may have started with other networks.
        later = [url for group in groups if group.run is None for url in group.urls.values()]
        self._demand_public([*later, *strays], request)
        places = [self._join(group, request) for group in groups]
        places += [self._make(host, found, request) for host, found in _by_site(strays).items()]
        return AddReceipt(
            added=sum(place.added for place in places), total=sum(place.urls for place in places), places=places
        )

    def _demand_public(self, urls: Iterable[Url], request: AddRequest) -> None:
        """Raise Invalid for a URL that the network guard would never connect to."""
        for url in urls:
            try:
                demand_public(url, self._guard)
            except UrlRefused as exc:
                number = next(at for at, one in enumerate(_parsed(request)) if one.normalised == url.normalised)
                raise Invalid(f"urls[{number}]: {exc}", field=f"urls[{number}]") from exc

    def retry(self, attempt_id: int) -> AddedPlace:
        """Retry a URL that failed permanently: in its run if that is running, else in the next.

        Raise NotFound; Conflict for one that did not fail, or was tried again since.
        """
        with self.read() as session:
            attempt = attempt_by_id(session, attempt_id)
            run = next((one for one in running_crawls(session) if one.frontier_id == attempt.frontier_id), None)
        status, url = status_of(attempt), attempt.url
        if status is not UrlStatus.FAILED:
            raise Conflict(f"attempt {attempt_id} is {status.value}; only what failed for good is tried again so")
        if run is None:
            return self.add(AddRequest(urls=[url], source=attempt.source, max_retries=0)).places[0]
        if not self._frontier.reopen_one(attempt_id):
            raise Conflict(f"attempt {attempt_id} was retried meanwhile; reload it")
        audit = self._frontier.control.audit("frontier.retried", f"execution {run.execution_id}", url=url)
        self._frontier.control.tell_holder(attempt.domain, audit)
        return _joined(attempt.source, run.execution_id, 1, added=1)

    def seeds_of(self, code: str) -> tuple[str, ...]:
        """Return the seeds of a source; raise SourceNotFound."""
        with self.read() as session:
            return registry.config_of(find_source(session, code)).seeds[:MOST_URLS]

    def _join(self, group: _Group, request: AddRequest) -> AddedPlace:
        found = [_found(url, request) for url in group.urls.values()]
        is_first = bool(request.priority or request.is_seed)
        if group.run is not None and (place := self._join_run(group, group.run, found, raises=is_first)) is not None:
            # Processes keep leased URLs in a fixed order, so those that hold these domains must reload their queues.
            if is_first and (place.added or place.raised):
                for domain in sorted({one.domain for one in found}):
                    self._frontier.control.tell_holder(domain)
            return place
        with self.read() as session:
            coming = next_run(session, group.source_id)
        self._frontier.control.write(self._note(group, found))
        if coming is not None:
            return _waits(group.source, len(found), coming)
        # No run would ever crawl them.
        with self._write() as session:
            job_id = self._crawl_once(session, group.source_id, [one.url for one in found], request)
        return _made(group.source, job_id, len(found))

    def _join_run(self, group: _Group, run: Row[Any], found: Sequence[FoundUrl], *, raises: bool) -> AddedPlace | None:
        """Add to a run's queue, where queued URLs may gain priority (`raises`); None if the run has just ended."""
        raised: list[int] = []
        also = self._note(group, found, run)
        try:
            added = self._frontier.add(run.frontier_id, found, also=also, raised=raised.append if raises else None)
        except Conflict:
            return None
        return _joined(group.source, run.execution_id, len(found), added=added, raised=sum(raised))

    def _note(
        self, group: _Group, found: Sequence[FoundUrl], run: Row[Any] | None = None
    ) -> Callable[[FrontierTransaction], None]:
        """Return a callable that records added URLs: for a running run, or for the next one of their source."""
        detail: dict[str, object] = {"urls": [one.url for one in found[:_SHOWN]], "count": len(found)}
        where = {} if run is None else {"execution_id": run.frontier_id, "running": run.execution_id}
        if run is not None:
            detail["execution"] = run.execution_id
        control = self._frontier.control
        audit = control.audit("frontier.added", f"source {group.source}", **detail)
        return control.note_added(found, audit, source_id=group.source_id, **where)

    def _make(self, host: str, urls: Sequence[Url], request: AddRequest) -> AddedPlace:
        """Create a source for a host that no source reaches, and a job that crawls these URLs once."""
        addresses = [url.fetch for url in urls]
        with self._write() as session:
            code = new_code(session, name=None, seed=host)
            content = {"code": code, "name": host, "base_url": f"{urls[0].origin}/", "config": {"seeds": addresses}}
            source = registry.create(session, self._clock, registry.read_spec(content))
            job_id = self._crawl_once(session, source.id, addresses, request)
        return _made(code, job_id, len(addresses))


def _parsed(request: AddRequest) -> Iterator[Url]:
    for number, written in enumerate(request.urls):
        try:
            yield parse_seed(written, request.policy)
        except UrlRefused as exc:
            raise Invalid(f"urls[{number}]: {exc}", field=f"urls[{number}]") from exc


def _found(url: Url, request: AddRequest) -> FoundUrl:
    # Add them one step from a seed, like a link of its first page: only a seed's redirect widens the scope.
    depth = 0 if request.is_seed else 1
    rank = request.priority or (SEED_PRIORITY if request.is_seed else priority(url.normalised, depth))
    return FoundUrl(url.fetch, url.hash64, url.domain, UrlKind.PAGE, depth, rank)


def _by_site(urls: Iterable[Url]) -> dict[str, list[Url]]:
    found: dict[str, list[Url]] = {}
    for url in urls:
        found.setdefault(url.host.removeprefix("www."), []).append(url)
    return found


class _Reach:
    """The scope of a run or source, and its URL normalisation."""

    def __init__(self, plan: CrawlPlan) -> None:
        self._scope, self._policy = plan.build_scope(), plan.normalisation()

    def spelled(self, url: Url) -> Url:
        return parse(url.fetch, self._policy)

    def verdict(self, url: Url) -> ScopeVerdict:
        """Return whether a URL is in scope; URLs added by hand have no depth limit."""
        return self._scope.decide(self.spelled(url), 0)

    def taken(self, urls: Iterable[Url]) -> list[Url]:
        return [url for url in urls if self.verdict(url).allowed]


class _Places:
    """Finds where URLs belong: first a running crawl that reaches them, then a source."""

    def __init__(self, session: Session, code: str | None) -> None:
        self._session = session
        self._named = None if code is None else find_source(session, code)
        self._runs = running_crawls(session, source_id=None if self._named is None else self._named.id)
        self._of_runs: dict[int, _Reach] = {}
        self._of_sources: dict[int, _Reach | None] = {}

    def of(self, urls: Iterable[Url]) -> tuple[list[_Group], list[Url]]:
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
                self._of_runs[run.execution_id] = _Reach(stored_plan(run.config))
            reach = self._of_runs[run.execution_id]
            if reach.verdict(url).allowed:
                return _Group(run.source_id, run.source_code, run), reach
        return None

    def _sources_of(self, urls: Iterable[Url]) -> dict[Url, tuple[_Group, _Reach]]:
        """Return, for each URL, the first source (by code) that reaches it, in one pass over all sources."""
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
        """Return the scope of the requested source; raise OutOfScope with the reason if the URL is outside it."""
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
        content = registry.content_of(source)
        if content.get("backend") == "zimit":
            return
        # Check this before compiling any rule: most sources have nothing to do with these hosts.
        seeds = " ".join(map(str, content.get("seeds") or ()))
        for site in sites:
            if site in seeds and (reach := self._reach(source)) is not None:
                yield site, reach

    def _reach(self, source: Source) -> _Reach | None:
        if source.id not in self._of_sources:
            try:
                config = read_config(registry.content_of(source))
                self._of_sources[source.id] = _Reach(crawl_plan(config, CrawlDefaults(contact="-"), number=1))
            except Invalid:
                self._of_sources[source.id] = None
        return self._of_sources[source.id]


def running_crawls(session: Session, *, source_id: int | None = None) -> list[Row[Any]]:
    """Return the running crawls that have no stop request, newest first: execution_id, frontier_id, source_id,
    source_code, config.
    """
    statement = (
        select(
            Execution.id.label("execution_id"),
            func.coalesce(Execution.frontier_id, Execution.id).label("frontier_id"),
            Source.id.label("source_id"),
            Source.code.label("source_code"),
            Execution.config,
        )
        .join(Job, Job.id == Execution.job_id)
        .join(Source, Source.id == Job.source_id)
        .where(Execution.state == "running", Execution.stop_requested.is_(None), Job.kind.not_in(_OTHERS))
        .order_by(Execution.id.desc())
        .limit(_MOST_RUNS)
    )
    rows = session.execute(statement if source_id is None else statement.where(Source.id == source_id))
    # A run of zimit has no plan of ours in its row, and no frontier.
    found: list[Any] = [row for row in rows if row.config.get("seeds") and row.config.get("contact")]
    return found


def next_run(session: Session, source_id: int) -> tuple[int, str, datetime | None] | None:
    """Return the job of a source that runs next (a working one first, a paused one last), its state and its time,
    which is set only while it waits to be queued.
    """
    rows = session.execute(
        select(Job.id, Job.state, Job.next_run_at)
        .where(Job.source_id == source_id, Job.kind.not_in(_OTHERS), Job.state.in_(_BY_TURN), Job.deleted_at.is_(None))
        .order_by(Job.id)
    )
    found = [(number, state, at) for number, state, at in rows if state is not None]
    return min(found, key=lambda one: (_BY_TURN[one[1]], to_micros(one[2]) if one[2] else 0), default=None)
