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
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from random import Random

import uvloop

from holdfast import __version__, log
from holdfast.clock import Clock, SystemClock
from holdfast.crawl.assignment import Assignment, CrawlScope
from holdfast.crawl.credentials import Credentials
from holdfast.crawl.domain_worker import DomainWorker
from holdfast.crawl.engine import CrawlEngine, EngineFactories, ProcessEnding
from holdfast.crawl.link_filter import LinkFilter
from holdfast.crawl.outcomes import PageUnderWay
from holdfast.crawl.paced_client import (
    CaptureHistory,
    Fetcher,
    PacedClient,
    PageRequests,
    address_limiter,
    open_client,
)
from holdfast.crawl.page_reading import DocumentReader
from holdfast.crawl.politeness import DomainPoliteness
from holdfast.crawl.process_watch import ProcessWatch, end_with_parent
from holdfast.crawl.progress import CrawlLimits, CrawlProgress, RowControl
from holdfast.crawl.robots_gate import RobotsFiles
from holdfast.crawl.settling import FrontierSession, PendingResults
from holdfast.crawl.storing import Originals, Storage, WarcStorage
from holdfast.crawl.warc_output import FileRows, WarcOutput
from holdfast.crawl.writer_thread import CaptureWriter
from holdfast.fetch.client import Client, ClientSettings
from holdfast.frontier import Frontier
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
        plan = self._plan
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
        limiter = address_limiter(self._runtime.settings, plan.allow_networks, self._clock, rate=plan.per_ip_rate)
        return open_client(self._runtime.settings, settings, plan.allow_networks, self._clock, limiter)

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
