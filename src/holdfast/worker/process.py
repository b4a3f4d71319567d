"""One crawl process: `python -m holdfast.worker.process`, assignment on standard input, ending on standard output."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import signal
import sys
import traceback
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from ipaddress import ip_address, ip_network
from pathlib import Path
from random import Random

import uvloop

from holdfast import __version__, config, log
from holdfast.clock import Clock, SystemClock, to_micros
from holdfast.coordination.owners import Owner
from holdfast.coordination.runfile import RunFile
from holdfast.crawl.credentials import Credentials
from holdfast.crawl.crew import Capture, Crew
from holdfast.crawl.desk import Desk
from holdfast.crawl.engine import CrawlEngine, Ending
from holdfast.crawl.keeper import Keeper, end_with_parent
from holdfast.crawl.ledger import Ledger
from holdfast.crawl.limits import Limits
from holdfast.crawl.links import Sieve
from holdfast.crawl.plan import PRODUCT, CrawlPlan
from holdfast.crawl.progress import Progress
from holdfast.crawl.reading import Reader
from holdfast.crawl.seeds import validators_of
from holdfast.crawl.tape import Tape
from holdfast.failpoints import reach
from holdfast.fetch.client import Client, ClientSettings
from holdfast.fetch.dns import Resolver, ResolverSettings
from holdfast.fetch.guard import Guard
from holdfast.frontier import Frontier
from holdfast.parse import ParseChild
from holdfast.types import Visit
from holdfast.urls import Url
from holdfast.warc import queries as files
from holdfast.warc.manifest import ManifestEntry, add_to_manifest
from holdfast.warc.roots import record_root
from holdfast.warc.writer import SealedFile
from holdfast.wiring import Ground, open_ground
from holdfast.wiring.feeds import open_feeds
from holdfast.worker.assignment import Assignment
from holdfast.worker.limiting import limiter_of
from holdfast.worker.paths import relative
from holdfast.worker.rows import RowControl
from holdfast.worker.storing import policy_of

_log = log.get()


class _Ended:
    """Captures that a desk has ended: collected on its threads, taken up together on the loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, take: Callable[[Capture, Visit | None], None]) -> None:
        self._loop, self._take = loop, take
        self._captures: deque[tuple[Capture, Visit | None]] = deque()

    def add(self, capture: Capture, visit: Visit | None) -> None:
        """Keep one until `hand_over`."""
        self._captures.append((capture, visit))

    def hand_over(self) -> None:
        """Have those that were added taken up, on the loop."""
        if self._captures:
            self._loop.call_soon_threadsafe(self._take_all)

    def _take_all(self) -> None:
        while self._captures:
            self._take(*self._captures.popleft())


class Process:
    """The parts of one crawl process, put together and taken apart in order."""

    engine: CrawlEngine
    """Set while it runs."""

    def __init__(
        self, ground: Ground, assignment: Assignment, *, clock: Clock | None = None, client: Client | None = None
    ) -> None:
        """Open what is written to; `clock` and `client` replace the machine's clock and the network.

        The clock dates captures; what rows say is dated by the database's clock alone.
        """
        self._ground, self._assignment = ground, assignment
        self._plan = CrawlPlan.from_json(assignment.plan)
        self._clock: Clock = clock or SystemClock()
        self._given = client
        run = RunFile(ground.run_folder, assignment.run_file)
        self._owner = Owner(ground.hot, ground.clock, run=run, kind="process", execution_id=assignment.execution_id)
        self._tape = Tape(
            Path(assignment.output_dir), f"{assignment.source_code}-{self._owner.id}",
            info=warcinfo(self._plan, assignment), clock=self._clock, settings=ground.settings.warc,
        )  # fmt: skip
        self._policy = policy_of(self._plan, ground, self._tape)
        self._child = ParseChild(deadline_s=ground.settings.parse.deadline_s)

    async def run(self) -> Ending:
        """Crawl until the engine ends, then seal and say goodbye."""
        client = self._given or self._client()
        engine = self.engine = self._engine(client)
        self._obey_signals(engine)
        self._tape.register = lambda path: engine.database.wait(lambda: self._register(path))
        self._tape.sealed = lambda file_id, sealed: engine.database.wait(lambda: self._seal(file_id, sealed))
        keeper = Keeper(self._owner.run, Path(self._assignment.output_dir), parent=self._assignment.supervisor)
        ending = await engine.run(keeper.watches)
        await client.close()
        await asyncio.to_thread(self._tape.close)
        engine.close()
        self._child.close()
        self._say_goodbye()
        return ending

    def _say_goodbye(self) -> None:
        """Leave nothing behind: no lease whose answer was lost, no row of a file that was never made."""
        if strays := self._ground.frontier.free([self._owner.id]):
            _log.warning("crawl.stray_leases", domains=strays)
        with self._ground.hot.write() as tx:
            for file in files.open_files(tx, owner_id=self._owner.id):
                files.discard_file(tx, file.id)
        self._owner.end()

    def _obey_signals(self, engine: CrawlEngine) -> None:
        """Drain on the first signal, hand everything back on the second."""
        calls = iter([engine.drain])

        def stop() -> None:
            next(calls, engine.hand_back)()

        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            asyncio.get_running_loop().add_signal_handler(number, stop)

    def _client(self) -> Client:
        fetch, plan = self._ground.settings.fetch, self._plan
        settings = ClientSettings(
            user_agent=plan.agent(), from_header=plan.contact if "@" in plan.contact else "",
            connect_timeout_s=fetch.connect_s, min_bytes_per_s=fetch.min_rate,
            rate_window_s=max(1, int(fetch.min_rate_s)),
            spool_dir=Path(self._assignment.output_dir), allow_invalid_tls=plan.allow_invalid_tls,
            max_connections=fetch.connections,
        )  # fmt: skip
        guard = Guard(tuple(map(ip_network, plan.allow_networks)))
        names = Resolver(ResolverSettings(nameservers=tuple(fetch.nameservers)), guard, self._clock)
        limiter = limiter_of(self._ground.settings, plan, self._clock, processes=self._assignment.processes)
        return Client(settings, guard, self._clock, names, limiter)

    def _engine(self, client: Client) -> CrawlEngine:
        """Put the parts together."""
        ground, progress = self._ground, Progress(self._clock)
        control = RowControl(
            ground,
            self._owner,
            self._assignment.execution_id,
            epoch=self._assignment.epoch,
            frontier_id=self._assignment.frontier_id,
        )
        # A process that takes the place of another must know where seeds landed before it reads its first page.
        plan = replace(self._plan, landing=control.listen().landing or self._plan.landing)
        networks = tuple(map(ip_network, plan.allow_networks))
        crew = Crew(
            # When a domain may be asked and an attempt repeated is compared with leases: one clock for all machines.
            plan=plan, settings=ground.settings, clock=ground.clock, client=client, progress=progress,
            credentials=Credentials(plan),
            random=Random(), scope=plan.build_scope(), originals=self._policy.memory,  # noqa: S311
            processes=self._assignment.processes, polled=validators_of(plan),
            is_private=lambda ip: any(ip_address(ip) in network for network in networks),
        )  # fmt: skip
        ledger = Ledger(ground.frontier, self._tape, progress, control, execution_id=self._assignment.frontier_id,
                        owner_id=self._owner.id)  # fmt: skip
        ledger.feeds = open_feeds(ground, plan, self._assignment.frontier_id)
        left = self._assignment.seconds_left
        ends_at = None if left is None else self._clock.monotonic() + left
        limits = Limits(plan, progress, ends_at=ends_at, processes=self._assignment.processes)
        sieve, reader, loop = Sieve(crew), Reader(crew, self._child), asyncio.get_running_loop()

        def links_of(page_id: int) -> tuple[str, ...]:
            return engine.database.wait(lambda: ground.frontier.signal_links(page_id))

        def landed(url: Url) -> None:
            if crew.widen(url):
                _log.info("crawl.seed_landed", url=url.fetch)
                control.landed(url.fetch)

        def make_desk() -> Desk:
            storage = self._policy.make_storage(reader, links_of)
            ended = _Ended(loop, lambda capture, visit: engine.finished(capture, visit))
            run, clock = self._owner.run, ground.clock
            desk = Desk(storage=storage, sieve=sieve, reader=reader, run=run, clock=clock, done=ended.add)
            desk.flush = ended.hand_over
            return desk

        crew.landed, crew.forget = landed, sieve.forget
        crew.read_again = partial(reader.read_again, sieve=sieve)
        set_depth_rules(ground.frontier, plan, self._assignment)
        engine = CrawlEngine(crew, ground.frontier, ledger, make_desk=make_desk, control=control, limits=limits)
        return engine

    def _register(self, path: Path) -> int:
        """Make the row of a file that is about to be written."""
        record_root(self._ground.settings.home, path.parent)
        with self._ground.hot.write() as tx:
            return files.insert_file(
                tx, execution_id=self._assignment.execution_id, owner_id=self._owner.id,
                path=relative(self._ground.settings.home, path), now=to_micros(self._ground.clock.now()),
            )  # fmt: skip

    def _seal(self, file_id: int, sealed: SealedFile) -> None:
        """List a file that was sealed in the manifest, then complete its row: while it says open, all is done again."""
        reach("after_rename")
        add_to_manifest(sealed.path.parent, ManifestEntry.of(file_id, sealed))
        reach("after_manifest")
        with self._ground.hot.write() as tx:
            sealing = files.Sealing(sealed.size, sealed.sha256, sealed.crc32, sealed.record_count)
            files.seal_file(tx, file_id, sealing, now=to_micros(self._ground.clock.now()))
        reach("after_register")


def set_depth_rules(frontier: Frontier, plan: CrawlPlan, assignment: Assignment) -> None:
    """Say what depths mean here: others add to this frontier too, or have done so before us, as before a retry."""
    rules = frontier.depth_rules
    rules.limited = plan.max_depth is not None and plan.max_depth > 0 and not plan.polls
    others = assignment.processes > 1 or frontier.stats(assignment.frontier_id).completed > 0
    rules.shared = rules.limited and others


def warcinfo(plan: CrawlPlan, assignment: Assignment) -> dict[str, str]:
    """Return the warcinfo fields of a crawl's files: who, with what, how, and the plan without its secrets."""
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
    """Run one assignment; the ending is one line of JSON on standard output."""
    assignment = Assignment.from_json(sys.stdin.read())
    settings = config.load()
    log.configure(settings.log_level)
    end_with_parent(assignment.supervisor, patience_s=settings.lease.seconds)
    # What was loaded so far stays; a page makes some hundred tuples, and looking for circles among them after every
    # 700 costs a twentieth of its parse (measured).
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)
    gc.enable()
    code = 1
    try:
        with open_ground(settings) as ground:
            ending = uvloop.run(Process(ground, assignment).run())
        code = 0
        print(json.dumps({"ending": ending.value}), flush=True)
    except BrokenPipeError:  # a supervisor that died hears nothing
        pass
    except BaseException as exc:
        _log.error("crawl.process_failed", action="process", error=repr(exc))
        traceback.print_exc()
    # Without waiting: a parser or the database may hang in a thread. What is not settled, sealed and closed by now is
    # cleaned up as after a kill.
    os._exit(code)


if __name__ == "__main__":
    main()
