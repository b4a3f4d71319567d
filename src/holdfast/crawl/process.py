"""One crawl process: `python -m holdfast.crawl.process`, assignment on stdin, ending on stdout."""

from __future__ import annotations

import asyncio
import gc
import importlib
import json
import os
import signal
import sys
import traceback
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import lru_cache, partial
from ipaddress import ip_address, ip_network
from pathlib import Path
from random import Random

import uvloop

from holdfast import __version__, log
from holdfast.clock import Clock, SystemClock
from holdfast.config import Settings
from holdfast.crawl.assignment import Assignment, CrawlScope
from holdfast.crawl.credentials import Credentials
from holdfast.crawl.domain_worker import DomainWorker
from holdfast.crawl.engine import CrawlEngine, EngineFactories, ProcessEnding
from holdfast.crawl.link_filter import LinkFilter
from holdfast.crawl.outcomes import PageUnderWay
from holdfast.crawl.paced_client import CaptureHistory, Fetcher, PacedClient, PageRequests
from holdfast.crawl.page_reading import DocumentReader
from holdfast.crawl.politeness import DomainPoliteness
from holdfast.crawl.process_watch import ProcessWatch, end_with_parent
from holdfast.crawl.progress import CrawlEvent, CrawlLimits, CrawlProgress
from holdfast.crawl.robots_gate import RobotsFiles
from holdfast.crawl.settling import FrontierSession, PendingResults
from holdfast.crawl.storing import Originals, Storage, WarcStorage
from holdfast.crawl.warc_output import FileRows, WarcOutput
from holdfast.crawl.writer_thread import CaptureWriter
from holdfast.db.raw import Transaction
from holdfast.fetch.client import Client, ClientSettings
from holdfast.fetch.dns import Resolver, ResolverSettings
from holdfast.fetch.guard import AddressGuard
from holdfast.fetch.per_ip import AddressLimit, AddressLimiter, machine_turns
from holdfast.frontier import Frontier
from holdfast.jobs import execution_queries
from holdfast.jobs.execution_queries import from_json
from holdfast.processes.owners import OwnerProcess
from holdfast.processes.runfile import RunFile
from holdfast.sources.plan import PRODUCT, CrawlPlan
from holdfast.types import DomainLease, Visit
from holdfast.urls import Url
from holdfast.wiring import Runtime, begin_program, open_runtime
from holdfast.wiring.feeds import open_feeds

# A transfer slower than a modem for ten seconds would hold its domain until the deadline.
_MIN_RATE, _MIN_RATE_WINDOW_S = 64, 10
_CONNECTIONS = 2000
"""Limit of open connections of one process, including keep-alive ones: two for each domain it crawls."""

# Heartbeat interval of a process: each heartbeat is a commit, and two minutes of silence are allowed.
_BEAT_S = 5.0
# How long the commit of an operator's change may take and still be noticed.
_OVERLAP = timedelta(seconds=30)


class RowControl:
    """Implements the engine's `Control` with the execution's rows; use only on the database thread."""

    def __init__(
        self,
        runtime: Runtime,
        owner: OwnerProcess,
        execution_id: int,
        *,
        epoch: int | None = None,
        frontier_id: int | None = None,
    ) -> None:
        self._runtime, self._owner, self._execution_id, self._epoch = runtime, owner, execution_id, epoch
        self._frontier_id = execution_id if frontier_id is None else frontier_id
        self._landed: deque[str] = deque()
        self._beat_at = -_BEAT_S
        self._heard_at = runtime.clock.now()

    def read_news(self) -> CrawlEvent:
        """Return messages of other processes, and sometimes write that this process is alive."""
        now = self._runtime.clock.monotonic()
        beats = now - self._beat_at >= _BEAT_S
        with self._runtime.raw_db.write() if beats else self._runtime.raw_db.read() as tx:
            orders = execution_queries.run_orders(tx, self._runtime.raw_db.dialect, execution_id=self._execution_id)
            if not self._is_ours(tx):
                # Its worker fell silent: another worker holds the execution, or soon will.
                orders = orders._replace(stop="drain")
            totals = execution_queries.totals_of_others(tx, execution_id=self._frontier_id, owner_id=self._owner.id)
            if beats:
                self._owner.beat(tx)
                self._beat_at = now
        others = [from_json(counts) for counts in totals]
        # Read slightly older rows again: a change becomes visible at its commit, which may be after a later one's.
        asked_at = self._runtime.clock.now()
        changes = self._runtime.frontier.control.changed_since(self._heard_at - _OVERLAP)
        self._heard_at = asked_at
        return CrawlEvent(
            changes=tuple(changes),
            stop=orders.stop,
            other_pages=sum(o.get("pages", 0) for o in others),
            other_bytes=sum(o.get("bytes", 0) for o in others),
            landing=orders.landing,
            exclusions=orders.exclusions,
            is_paused=orders.is_paused,
        )

    def _is_ours(self, tx: Transaction) -> bool:
        return self._epoch is None or execution_queries.is_leased(
            tx, execution_id=self._execution_id, epoch=self._epoch
        )

    def note_landing(self, url: str) -> None:
        self._landed.append(url)

    def write_landings(self) -> None:
        """Add landing URLs to the execution's stored plan, for the other processes and for a resumption."""
        # Other threads may add one meanwhile: remove only those that were written.
        fresh = list(self._landed)
        if not fresh:
            return
        with self._runtime.raw_db.write() as tx:
            execution_queries.add_landing(tx, self._runtime.raw_db.dialect, execution_id=self._execution_id, urls=fresh)
        for _ in fresh:
            self._landed.popleft()


# Cache this: the IP address of each request is checked, and parsing it again takes 9 us.
_REMEMBERED_ADDRESSES = 4096


def limiter_of(settings: Settings, plan: CrawlPlan, clock: Clock) -> AddressLimiter:
    return address_limiter(settings, plan.allow_networks, clock, rate=plan.per_ip_rate)


def address_limiter(
    settings: Settings, allow_networks: Sequence[str], clock: Clock, *, rate: float | None = None
) -> AddressLimiter:
    """Return this machine's address limiter, with the rate of the settings unless one is given."""
    fetch, networks = settings.fetch, tuple(map(ip_network, allow_networks))
    limit = AddressLimit(rate=fetch.per_ip_rate if rate is None else rate, connections=fetch.per_ip_connections)
    # The default protects others' servers: in an allowed private network, a limit applies only if one was set.
    was_set = rate is not None or {"per_ip_rate", "per_ip_connections"} & fetch.model_fields_set

    @lru_cache(maxsize=_REMEMBERED_ADDRESSES)
    def is_exempt(address: str) -> bool:
        return not was_set and any(ip_address(address) in network for network in networks)

    return AddressLimiter(limit, clock, is_exempt=is_exempt, machine=machine_turns(settings.home))


LinksOf = Callable[[int], tuple[str, ...]]
"""Returns the links of a page whose body is not stored; called from the writer thread."""


def policy_of(
    plan: CrawlPlan, runtime: Runtime, output: WarcOutput, execution_id: int
) -> tuple[CaptureHistory, Callable[[DocumentReader, LinksOf], Storage]]:
    """Return the history of captures that a plan reads, and how to make its storage."""
    if plan.keeps_bodies:
        originals = Originals(runtime.raw_db, runtime.settings.home, execution_id)
        return originals, lambda reader, _: WarcStorage(
            output, refer_to=reader.may_refer_to, limit=reader.max_bytes, polls=plan.polls
        )
    # Import it by name: the tables for folding letters take time and memory that other crawls do not need.
    signals = importlib.import_module("holdfast.crawl.signal_storage")
    history = signals.SignalHistory(runtime.frontier)
    return history, lambda reader, links_of: signals.SignalStorage(
        history, links_of, limit=reader.max_bytes, allow_ports=plan.allow_ports
    )


_log = log.get()


def _connect(reader: DocumentReader, engine: CrawlEngine, frontier: Frontier, frontier_id: int) -> None:
    """Let a reader query the frontier, on the database thread, for the targets of redirects."""
    reader.find_redirect = lambda url: engine.database.wait(
        lambda: frontier.find_redirect(frontier_id, domain=url.domain, url_hash=url.hash64)
    )
    reader.find_capture = lambda attempt: engine.database.wait(
        lambda: frontier.find_capture(attempt.page_id, but_not_in=frontier_id)
    )


class _FinishedPages:
    """Finished pages, collected on the writer's threads and processed together on the event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, take: Callable[[PageUnderWay, Visit | None], None]) -> None:
        self._loop, self._take = loop, take
        self._pages: deque[tuple[PageUnderWay, Visit | None]] = deque()

    def add(self, page: PageUnderWay, visit: Visit | None) -> None:
        self._pages.append((page, visit))

    def hand_over(self) -> None:
        if self._pages:
            self._loop.call_soon_threadsafe(self._take_all)

    def _take_all(self) -> None:
        while self._pages:
            self._take(*self._pages.popleft())


class Process:
    engine: CrawlEngine
    """Set while it runs."""

    def __init__(
        self, runtime: Runtime, assignment: Assignment, *, clock: Clock | None = None, client: Client | None = None
    ) -> None:
        """Open the outputs; `clock` and `client` replace the machine's clock and the network.

        The clock dates captures; rows are dated only by the database's clock.
        """
        self._runtime, self._assignment = runtime, assignment
        self._plan = CrawlPlan.from_json(assignment.plan)
        self._clock: Clock = clock or SystemClock()
        self._given = client
        run = RunFile(runtime.run_folder, assignment.run_file)
        self._owner = OwnerProcess(
            runtime.raw_db, runtime.clock, run=run, kind="process", execution_id=assignment.execution_id
        )
        self._output = WarcOutput(
            Path(assignment.output_dir),
            f"{assignment.source_code}-{self._owner.id}",
            info=warcinfo(self._plan, assignment),
            clock=self._clock,
            settings=runtime.settings.warc,
        )
        self._files = FileRows(
            runtime.raw_db,
            runtime.clock,
            runtime.settings.home,
            execution_id=assignment.execution_id,
            owner_id=self._owner.id,
        )
        self._history, self._make_storage = policy_of(self._plan, runtime, self._output, assignment.execution_id)

    async def run(self) -> ProcessEnding:
        client = self._given or self._client()
        engine = self.engine = self.build_engine(client)
        self._obey_signals(engine)
        self._output.register = lambda path: engine.database.wait(lambda: self._files.insert(path))
        self._output.sealed = lambda file_id, sealed: engine.database.wait(lambda: self._files.seal(file_id, sealed))
        watch = ProcessWatch(self._owner.run, Path(self._assignment.output_dir), parent=self._assignment.supervisor)
        ending = await engine.run(watch.watches)
        await client.close()
        await asyncio.to_thread(self._output.close)
        engine.close()
        self._reader.close()
        self._clean_up()
        return ending

    def _clean_up(self) -> None:
        """Release leases whose response was lost and delete rows of files that were never created."""
        if strays := self._runtime.frontier.free([self._owner.id]):
            _log.warning("crawl.stray_leases", domains=strays)
        self._files.discard_open()
        self._owner.end()

    def _obey_signals(self, engine: CrawlEngine) -> None:
        """Drain on the first signal, hand everything back on the second."""
        calls = iter([engine.drain])

        def stop() -> None:
            next(calls, engine.hand_back)()

        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            asyncio.get_running_loop().add_signal_handler(number, stop)

    def _client(self) -> Client:
        fetch, plan = self._runtime.settings.fetch, self._plan
        settings = ClientSettings(
            user_agent=plan.agent(),
            from_header=plan.contact if "@" in plan.contact else "",
            connect_timeout_s=self._runtime.settings.timings.crawl_connect_s,
            min_bytes_per_s=_MIN_RATE,
            rate_window_s=_MIN_RATE_WINDOW_S,
            spool_dir=Path(self._assignment.output_dir),
            allow_invalid_tls=plan.allow_invalid_tls,
            max_connections=_CONNECTIONS,
        )
        guard = AddressGuard(tuple(map(ip_network, plan.allow_networks)))
        names = Resolver(ResolverSettings(nameservers=tuple(fetch.nameservers)), guard, self._clock)
        limiter = limiter_of(self._runtime.settings, plan, self._clock)
        return Client(settings, guard, self._clock, names, limiter)

    def build_engine(self, client: Fetcher) -> CrawlEngine:
        runtime, progress, assignment = self._runtime, CrawlProgress(self._clock), self._assignment
        epoch, frontier_id = assignment.epoch, assignment.frontier_id
        control = RowControl(runtime, self._owner, assignment.execution_id, epoch=epoch, frontier_id=frontier_id)
        # A replacement process must know the redirects of seeds, and the URLs skipped since, before it reads its first
        # page.
        news = control.read_news()
        plan = replace(self._plan, landing=news.landing or self._plan.landing)
        scope, credentials, loop = CrawlScope(plan), Credentials(plan), asyncio.get_running_loop()
        scope.exclude(news.exclusions)
        session = FrontierSession(
            frontier=runtime.frontier,
            originals=self._history,
            # Times of next requests and retries are compared with leases: use one clock for all machines.
            clock=runtime.clock,
            execution_id=assignment.frontier_id,
            owner_id=self._owner.id,
        )
        links = LinkFilter(scope, runtime.settings, runtime.clock, forgot=runtime.frontier.depth_rules.share)

        def landed(url: Url) -> None:
            if not credentials.covers(url):
                _log.info("crawl.credentials_withheld", origin=url.origin)
            if scope.widen(url):
                _log.info("crawl.seed_landed", url=url.fetch)
                control.note_landing(url.fetch)

        reader = self._reader = DocumentReader(scope, self._history, runtime.settings, runtime.clock, landed)

        paced = PacedClient(client, self._requests(scope, credentials, reader), runtime.settings, progress)
        robots, random = RobotsFiles(scope, runtime.settings, runtime.clock), Random()  # noqa: S311

        def make_worker(lease: DomainLease, lease_until: float) -> DomainWorker:
            politeness = DomainPoliteness(
                lease, runtime.settings, runtime.clock, delay_s=plan.delay_s, lease_until=lease_until, random=random
            )
            return DomainWorker(politeness, paced, robots, engine)

        def make_writer() -> CaptureWriter:
            storage = self._make_storage(
                reader, lambda page_id: engine.database.wait(lambda: runtime.frontier.signal_links(page_id))
            )
            finished = _FinishedPages(loop, lambda page, visit: engine.finished(page, visit))
            run, clock = self._owner.run, runtime.clock
            writer = CaptureWriter(
                storage=storage, link_filter=links, reader=reader, run=run, clock=clock, done=finished.add
            )
            writer.flush = finished.hand_over
            return writer

        results = PendingResults(session, self._output, progress, control, forget=links.forget)
        self._open_feeds(plan, results)
        ends_at = None if (left := assignment.seconds_left) is None else self._clock.monotonic() + left
        limits = CrawlLimits(plan, progress, ends_at=ends_at, processes=assignment.processes)
        set_depth_rules(runtime.frontier, plan, assignment)
        factories = EngineFactories(make_worker, make_writer, partial(reader.read_again, link_filter=links))
        engine = CrawlEngine(session, results, limits, scope, runtime.settings, factories)
        _connect(reader, engine, runtime.frontier, assignment.frontier_id)
        if news.is_paused:  # do this before its first request, also as a replacement
            engine.pause()
        return engine

    def _open_feeds(self, plan: CrawlPlan, results: PendingResults) -> None:
        feeds = open_feeds(self._runtime, plan, self._assignment.frontier_id)
        if feeds is not None:
            results.read_settled, results.offer = feeds.read_settled, feeds.offer
            if plan.polls:
                feeds.resume()

    def _requests(self, scope: CrawlScope, credentials: Credentials, reader: DocumentReader) -> PageRequests:
        settings, clock = self._runtime.settings.fetch, self._runtime.clock
        return PageRequests(scope, settings, credentials, self._history, clock, parsed_bytes=reader.max_bytes)


def set_depth_rules(frontier: Frontier, plan: CrawlPlan, assignment: Assignment) -> None:
    """Configure whether depths are limited and shared with other processes of this frontier."""
    # It is shared if other processes add to this frontier, or have added to it before, as before a retry.
    rules = frontier.depth_rules
    rules.limited = plan.max_depth is not None and plan.max_depth > 0 and not plan.polls
    others = assignment.processes > 1 or frontier.stats(assignment.frontier_id).completed > 0
    rules.shared = rules.limited and others


def warcinfo(plan: CrawlPlan, assignment: Assignment) -> dict[str, str]:
    """Return the warcinfo fields of a crawl's files: operator, software, settings, and the plan without secrets."""
    return {
        "software": f"{PRODUCT}/{__version__}",
        "format": "WARC File Format 1.1",
        "conformsTo": "http://iipc.github.io/warc-specifications/specifications/warc-format/warc-1.1/",
        "operator": plan.contact,
        "http-header-user-agent": plan.agent(),
        "robots": plan.robots,
        "isPartOf": f"{assignment.source_code}-{assignment.execution_id}",
        "description": json.dumps(plan.public(), ensure_ascii=True),
    }


def main() -> None:
    """Run one assignment; print the ending as one line of JSON."""
    assignment = Assignment.from_json(sys.stdin.read())
    settings = begin_program()
    end_with_parent(assignment.supervisor, patience_s=settings.timings.lease_seconds)
    # Objects loaded so far stay; a page creates some hundred tuples, and collecting garbage after every 700 costs a
    # twentieth of its parse (measured).
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)
    gc.enable()
    code = 1
    try:
        with open_runtime(settings) as runtime:
            ending = uvloop.run(Process(runtime, assignment).run())
        code = 0
        print(json.dumps({"ending": ending.value}), flush=True)
    except BrokenPipeError:  # the supervisor has died and reads nothing
        pass
    except BaseException as exc:
        _log.error("crawl.process_failed", action="process", error=repr(exc))
        traceback.print_exc()
    # Exit without waiting: a parser or the database may hang in a thread. The next start cleans up everything not
    # settled, sealed and closed by now, as after a kill.
    os._exit(code)


if __name__ == "__main__":
    main()
