"""One crawl process: leases domains, runs a lane for each, settles in batches, and ends when nothing is open.

Three hands: the event loop fetches, the desk's thread files and reads, the database's thread settles and leases. The
loop alone decides. Shutdown is: stop leasing, drain the lanes, empty the desk, settle, release, seal.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from datetime import datetime
from enum import StrEnum
from typing import TypeVar

from holdfast import log
from holdfast.crawl.control import Control
from holdfast.crawl.crew import Capture, Crew
from holdfast.crawl.desk import Desk
from holdfast.crawl.fleet import FEED, LINGER_S, Fleet, farewell
from holdfast.crawl.lane import Lane
from holdfast.crawl.ledger import Ledger
from holdfast.crawl.limits import Limits
from holdfast.crawl.pace import Pace
from holdfast.crawl.seeds import sitemaps_of
from holdfast.errors import Unavailable
from holdfast.frontier import Frontier
from holdfast.types import Attempt, DomainLease, Outcome, Visit

T = TypeVar("T")

_log = log.get()
_LEASE_AT_ONCE = 64
_MARGIN = 0.1
"""Share of a lease that is left unused, so that no request starts when it may already be over."""

_SOON_S = 0.1
"""Shortest time between two settles that a hungry lane may cause."""
_SAY_S = 1.0
"""Totals are written at least this often, also when nothing was settled: `holdfast status` reads them."""


class Ending(StrEnum):
    """Why a process stopped."""

    DONE = "done"
    DRAINED = "drained"
    MAX_PAGES = "max_pages"
    MAX_BYTES = "max_bytes"
    MAX_TIME = "max_time"
    REPLACE = "replace"
    """A parser hangs in a thread: everything else is settled, and a fresh process should go on."""


class CrawlEngine:
    """Runs until nothing is open, a limit is reached, or somebody says stop."""

    def __init__(self, crew: Crew, frontier: Frontier, ledger: Ledger, *, make_desk: Callable[[], Desk],
                 control: Control, limits: Limits) -> None:  # fmt: skip
        self.crew, self.frontier, self.ledger = crew, frontier, ledger
        self.limits, self.control = limits, control
        self.fleet = Fleet(crew, limits, room=self._enter, starving=self._settle_soon)
        self.started_at: datetime = crew.clock.now()
        self.ending = Ending.DONE
        self.waiting = 0
        """Captures at the desk."""
        self._make_desk = make_desk
        self.desk = make_desk()
        self._database = ThreadPoolExecutor(max_workers=1, thread_name_prefix="database")
        self.room = asyncio.Event()
        """Set while fetched pages may be put on the desk and the disk has room."""
        self._due = asyncio.Event()
        self._settled_at = 0.0
        self._soon: asyncio.TimerHandle | None = None
        self._draining = asyncio.Event()
        crew.hand_over = self._hand_over
        crew.borrow = self._borrow

    async def db(self, call: Callable[[], T]) -> T:
        """Do something on the database's thread."""
        return await asyncio.get_running_loop().run_in_executor(self._database, call)

    def db_wait(self, call: Callable[[], T]) -> T:
        """Do something on the database's thread, from another thread than the loop's."""
        return self._database.submit(call).result()

    async def run(self, keep: Callable[[CrawlEngine], Sequence[asyncio.Task[None]]]) -> Ending:
        """Crawl to the end and return why it ended. `keep` starts what watches over the process."""
        self.room.set()
        self.desk.start()
        async with asyncio.TaskGroup() as tasks:
            keepers = [*keep(self), asyncio.create_task(self._settle_loop(), name="settler")]
            try:
                await self._lease_loop(tasks)
                self.fleet.interrupt(everything=False)
                await self.fleet.finished()
                await asyncio.to_thread(self._clear_desk)
                await self._settle_rest()
            finally:
                for keeper in keepers:
                    keeper.cancel()
                await asyncio.gather(*keepers, return_exceptions=True)
        return self.ending

    def close(self) -> None:
        """Let go of the database's thread; called last."""
        self._database.shutdown(wait=True)

    def drain(self, ending: Ending = Ending.DRAINED) -> None:
        """Stop leasing, let requests under way finish, and end."""
        if not self._draining.is_set():
            self.ending = ending
            self.crew.progress.state = "draining"
            self._draining.set()
            self._due.set()
            self.fleet.interrupt(everything=False)

    def hand_back(self) -> None:
        """End at once: requests under way are dropped, their attempts stay open."""
        self.drain()
        self.fleet.interrupt(everything=True)

    # From lane to desk, and back from the desk's thread.

    async def _enter(self) -> None:
        while not self.room.is_set() and not self.fleet.stopping:
            await self.room.wait()

    def _hand_over(self, capture: Capture) -> None:
        self.waiting += 1
        if self.waiting >= self.crew.settings.engine.backlog:
            self.room.clear()
        self.desk.put(capture)

    def finished(self, capture: Capture, visit: Visit | None) -> None:
        """Take a capture back from the desk, on the loop."""
        self.waiting -= 1
        if self.waiting < self.crew.settings.engine.backlog and not self.desk.no_space.is_set():
            self.room.set()
        if visit is not None:
            self.ledger.add(visit)
            if len(self.ledger.visits) >= self.crew.settings.engine.settle_pages:
                self._due.set()
        elif capture.attempt is not None:
            self.limits.ended(capture.attempt)
            if (lane := self.fleet.find(capture.attempt, capture.token)) is not None:
                lane.unsettled -= 1

    def replace_desk(self) -> None:
        """Give up a desk whose parser hangs: blame its page, hand the rest to a new desk, and end soon."""
        hung, self.desk = self.desk, self._make_desk()
        self.desk.start()
        for capture, visit in hung.abandon():
            if visit is not None:
                _log.error("crawl.parse_hangs", url=visit.attempt.url)
                self.finished(capture, visit)
            else:
                self.desk.put(capture)
        self.drain(Ending.REPLACE)

    def _clear_desk(self) -> None:
        self.desk.stop()
        self.desk.join(self.crew.settings.parse.deadline_s * 4)

    # Settling, feeding, releasing.

    def _settle_soon(self) -> None:
        """Settle before the usual time: a lane could ask now and has nothing to ask for."""
        if self._soon is None:
            wait = max(0.0, self._settled_at + _SOON_S - self.crew.clock.monotonic())
            self._soon = asyncio.get_running_loop().call_later(wait, self._due.set)

    async def _settle_loop(self) -> None:
        while True:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._due.wait(), self.crew.settings.engine.settle_s)
            self._due.clear()
            if self._soon is not None:
                self._soon.cancel()
                self._soon = None
            try:
                await self.settle()
            except Unavailable as exc:
                _log.warning("crawl.settle_later", message=str(exc), waiting=len(self.ledger.visits))

    async def settle(self) -> None:
        """Settle one batch, give back lanes that have ended, and feed those that are hungry."""
        batch = self.ledger.take(self.crew.settings.engine.settle_pages)
        updates = [farewell(self.crew, lane) for lane in self.fleet.lanes.values() if lane.manners.has_news]
        added: set[int] = set()
        now = self.crew.clock.monotonic()
        if batch or updates or now - self._settled_at > _SAY_S:
            self._settled_at = now
            try:
                settled = await self.db(lambda: self.ledger.settle(batch, updates))
            except BaseException:
                self.ledger.give_back(batch)
                raise
            added = set(settled.added)
            for visit in batch:
                self.fleet.settled(visit)
            for visit in settled.refused:
                if (lane := self.fleet.find(visit.attempt, visit.token)) is not None:
                    self.fleet.lose(lane)
        added |= await self._add_sitemaps()
        await self._release()
        await self._feed(added)

    async def _add_sitemaps(self) -> set[int]:
        """Add the sitemaps that robots files named since last time; return the domains that have something new."""
        lanes = [lane for lane in self.fleet.lanes.values() if lane.gate.sitemaps]
        found = [sitemap for lane in lanes for sitemap in sitemaps_of(self.crew, lane.gate)]
        if found:
            await self.db(lambda: self.frontier.add(self.ledger.execution_id, found))
        return {lane.lease.domain_id for lane in lanes}

    async def _settle_rest(self) -> None:
        """Settle and release all that is left, as long as the database takes it within the lease."""
        await asyncio.sleep(0)  # what the desk sent last is on the loop now
        until = self.crew.clock.monotonic() + self.crew.settings.lease.seconds
        while self.ledger.visits or self.fleet.ended:
            try:
                await self.settle()
            except Unavailable:
                if self.crew.clock.monotonic() > until:
                    return
                await asyncio.sleep(0.5)

    async def _release(self) -> None:
        ready = self.fleet.releasable()
        given_up = [lane for lane in ready if not lane.lost and self._gives_up(lane)]
        for lane in given_up:
            await self._close_domain(lane)
        updates = [farewell(self.crew, lane) for lane in ready if not lane.lost]
        if updates:
            await self.db(lambda: self.frontier.release(self.ledger.execution_id, self.ledger.owner_id, updates))

    def _gives_up(self, lane: Lane) -> bool:
        until = lane.put_off_until
        return until is not None and lane.manners.gives_up(next_try_at=until, since=self.started_at)

    async def _close_domain(self, lane: Lane) -> None:
        """Close the pages of a domain that stays unreachable; the next execution tries again."""
        closed = 0
        while True:
            done = await self.db(
                lambda: self.frontier.close_domain(
                    self.ledger.execution_id, lane.lease.domain_id, outcome=Outcome.FAILED, reason="domain_unreachable"
                )
            )
            closed += done
            if not done:
                break
        self.crew.progress.outcomes[Outcome.FAILED.value] += closed
        _log.warning("crawl.domain_unreachable", domain=lane.lease.domain, closed=closed)

    async def _feed(self, added: set[int]) -> None:
        """Bring more pages to the lanes that want some; end those for which nothing more can come."""
        now = self.crew.clock.monotonic()
        lanes = [lane for lane in self.fleet.hungry() if lane.should_look(now, new=lane.lease.domain_id in added)]
        if lanes:
            for lane, attempts in zip(lanes, await self.db(lambda: self._more(lanes)), strict=True):
                lane.refill(attempts, limit=FEED)
        nothing_under_way = not self.waiting and not self.ledger.visits
        for lane in self.fleet.hungry():
            if lane.is_done(now, LINGER_S if not nothing_under_way else 0.0):
                lane.dry = True
                lane.fed.set()

    # Leasing.

    async def _lease_loop(self, tasks: asyncio.TaskGroup) -> None:
        idle = 0
        while not self._draining.is_set():
            try:
                leased = await self._lease(tasks) if self.room.is_set() else 0
                busy = bool(leased or self.fleet.lanes or self.ledger.visits or self.waiting)
                idle = 0 if busy else idle + 1
                if idle >= 2 and await self._is_over():
                    return
            except Unavailable as exc:
                _log.warning("crawl.database_unavailable", message=str(exc))
                await asyncio.sleep(1.0)
            if not leased or len(self.fleet.lanes) >= self.crew.settings.engine.domains:
                await asyncio.sleep(0.1 if idle < 5 else 0.5)

    async def _is_over(self) -> bool:
        if self.limits.pages_reached():
            self.ending = Ending.MAX_PAGES
            return True
        return await self.db(lambda: self.frontier.open_count(self.ledger.execution_id)) == 0

    async def _lease(self, tasks: asyncio.TaskGroup) -> int:
        """Take domains that are due, as many as this process has places for; return how many."""
        working = len(self.fleet.lanes)
        places = min(self.crew.settings.engine.domains - working, _LEASE_AT_ONCE)
        if places <= 0:
            return 0
        before = self.crew.clock.monotonic()
        leases = await self.db(lambda: self._take(working, places))
        for lease in leases:
            self.fleet.start(tasks, lease, lease_until=self.lease_until(before))
        return len(leases)

    def _take(self, working: int, places: int) -> list[DomainLease]:
        """Lease on the database's thread, and learn where the originals of what was leased lie."""
        leases = self.frontier.lease(
            self.ledger.execution_id, self.ledger.owner_id, domains=self._share(working, places), pages=FEED
        )
        self.crew.originals.learn(attempt for lease in leases for attempt in lease.attempts)
        return leases

    def _more(self, lanes: Sequence[Lane]) -> list[list[Attempt]]:
        """Return more pages for each lane, on the database's thread; none for a lane that has lost its lease."""
        more = [
            list(self.frontier.refill(self.ledger.execution_id, lane.lease.domain_id, lane.lease.token, limit=FEED,
                                      holding=lane.holding))
            for lane in lanes
        ]  # fmt: skip
        self.crew.originals.learn(attempt for attempts in more for attempt in attempts)
        return more

    def _share(self, working: int, places: int) -> int:
        """Return how many domains to take: this process's part of those with work, so that all processes have some."""
        processes = self.crew.processes
        if processes <= 1:
            return places
        domains = self.frontier.open_domains(self.ledger.execution_id)
        return max(0, min(places, math.ceil(domains / processes) - working))

    def lease_until(self, asked_at: float) -> float:
        """Return until when a lease that was asked for at this moment may be relied on (monotonic)."""
        return asked_at + self.crew.settings.lease.seconds * (1.0 - _MARGIN)

    @asynccontextmanager
    async def _borrow(self, domain: str) -> AsyncIterator[Pace | None]:
        """Take a turn at another domain: our own lane's, or a lease of its own for this one request."""
        lane = self.fleet.named(domain)
        if lane is not None and not lane.lost:
            yield lane.pace
            return
        before = self.crew.clock.monotonic()
        lease = await self.db(lambda: self.frontier.lease_named(self.ledger.owner_id, domain))
        if lease is None:
            yield None
            return
        visitor = Lane(lease, self.crew, lease_until=self.lease_until(before))
        try:
            yield visitor.pace
        finally:
            update = farewell(self.crew, visitor)
            await self.db(lambda: self.frontier.release(self.ledger.execution_id, self.ledger.owner_id, [update]))
