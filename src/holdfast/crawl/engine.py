"""One crawl process: leases domains, runs a lane for each, settles in batches, and ends when nothing is open.

Three hands: the event loop fetches, the desk's thread files and reads, the database's thread settles and leases. The
loop alone decides. Shutdown is: stop leasing, drain the lanes, empty the desk, settle, release, seal.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from enum import StrEnum
from functools import partial

from holdfast import log
from holdfast.crawl.context import CrawlContext, FetchedPage
from holdfast.crawl.domain_worker import DomainWorker
from holdfast.crawl.domains import FEED, LeasedDomains, release
from holdfast.crawl.politeness import Pace
from holdfast.crawl.progress import Control, CrawlLimits
from holdfast.crawl.settling import DatabaseThread, PendingResults, ResultSettler
from holdfast.crawl.writer_thread import CaptureWriter
from holdfast.errors import NoSpace, Unavailable
from holdfast.failpoints import reach
from holdfast.fetch import robots_state
from holdfast.frontier import Frontier
from holdfast.types import DomainLease, FoundUrl, LeaseRefusal, Outcome, PageToReread, RobotsState, UrlKind, Visit
from holdfast.urls import parse_seed

_log = log.get()
_LEASE_AT_ONCE = 64
_MARGIN = 0.1
"""Share of a lease that is left unused, so that no request starts when it may already be over."""
_UNSETTLED_BATCHES = 5
_UNSETTLED_LINKS = 100_000
"""Results that may wait for the database, in batches and in the links that they brought (some 300 bytes each): while it
is away, fetching pauses here and not only when the leases are over."""
_MANY_DOMAINS = 10_000
_COUNT_S = 5.0
"""How long a count of so many domains is used: they take long to count, and a few more change no process's share."""
_DESK_S = 1.0
"""How long the desk may take at the end for what it has."""


_REREAD_S = 0.5
_REREADS_AT_ONCE = 50


def _tell(future: asyncio.Future[list[FoundUrl]], found: list[FoundUrl]) -> None:
    if not future.done():  # a crawl that drains does not wait for it
        future.set_result(found)


class ProcessEnding(StrEnum):
    """Why a process stopped."""

    DONE = "done"
    DRAINED = "drained"
    MAX_PAGES = "max_pages"
    MAX_BYTES = "max_bytes"
    MAX_TIME = "max_time"
    STORAGE = "storage"
    """Its time ran out while the disk had no room: what is left was not asked for, and no site is to blame."""
    REPLACE = "replace"
    """A parser hangs in a thread: everything else is settled, and a fresh process should go on."""


class CrawlEngine:
    """Runs until nothing is open, a limit is reached, or somebody says stop."""

    def __init__(
        self,
        crew: CrawlContext,
        frontier: Frontier,
        ledger: PendingResults,
        *,
        make_writer: Callable[[], CaptureWriter],
        control: Control,
        limits: CrawlLimits,
    ) -> None:
        self.crew, self.frontier, self.ledger = crew, frontier, ledger
        self.limits, self.control = limits, control
        self._started_at = crew.clock.now()
        self._heard: set[str] = set(crew.plan.landing)
        """Places where seeds landed that were told to us."""
        self.database = DatabaseThread()
        self.leased_domains = LeasedDomains(crew, limits, room=self._enter, starving=self._starving)
        self.settler = ResultSettler(
            crew, frontier, ledger, self.leased_domains, database=self.database, at_desk=lambda: self.waiting
        )
        self.ending = ProcessEnding.DONE
        self._none_over_limit_at = -1
        """After how many additions there was no page over the limit."""
        self._open_domains, self._counted_until = 0, -math.inf
        self._under_way: dict[int, FetchedPage] = {}
        """Captures that the desk has, by number: each is finished once, whichever thread says so first."""
        self._make_writer = make_writer
        self.capture_writer = make_writer()
        self.room = asyncio.Event()
        """Set while fetched pages may be put on the desk, the disk has room, and the database takes results."""
        self.disk_is_full = False
        self._draining = asyncio.Event()
        self._drain_until = math.inf
        self.closing = False
        """Whether the desk was told to finish."""
        self._visiting: set[int] = set()
        """Domains that are held for one request of another domain's lane."""
        self.settler.settled = self.look_for_room
        crew.hand_over = self._hand_over
        crew.borrow = self._borrow
        crew.recall_robots = self._recall_robots

    async def run(self, watches: Sequence[Callable[[CrawlEngine], Coroutine[None, None, None]]]) -> ProcessEnding:
        """Crawl to the end and return why it ended. `watches` look after the process meanwhile."""
        self.room.set()
        self.capture_writer.start()
        async with asyncio.TaskGroup() as tasks:
            # If one of these fails, all ends: a process that cannot settle, renew or hear is better replaced.
            at_work = [
                tasks.create_task(self.settler.run()),
                tasks.create_task(self._read_again()),
                *(tasks.create_task(watch(self)) for watch in watches),
            ]
            await self._lease_loop(tasks)
            self.leased_domains.interrupt(everything=False)
            await self.leased_domains.finished()
            await self._clear_desk()
            await self.settler.finish()
            for task in at_work:
                task.cancel()
        return self.ending

    def close(self) -> None:
        """Let go of the database's thread; called last."""
        self.database.close()

    def drain(self, ending: ProcessEnding = ProcessEnding.DRAINED) -> None:
        """Stop leasing, let requests under way finish, and end."""
        if not self._draining.is_set():
            self.ending = ending
            self.crew.progress.state = "draining"
            self._drain_until = self.crew.clock.monotonic() + self.crew.settings.fetch.deadline_s
            self._draining.set()
            self.leased_domains.look_again.set()
            self.settler.due.set()
            self.leased_domains.interrupt(everything=False)

    def hand_back(self) -> None:
        """End at once: requests under way are dropped, their attempts stay open."""
        self.drain()
        self._drain_until = -math.inf
        self.leased_domains.interrupt(everything=True)

    def press(self, now: float) -> None:
        """Break off what does not end by itself: requests whose lease runs out, lanes that drain for too long."""
        self.leased_domains.expire(now)
        if now > self._drain_until:  # a chain of redirects, or a robots.txt before its page
            self.leased_domains.interrupt(everything=True)

    # From lane to desk, and back from the desk's thread.

    async def _enter(self) -> None:
        while not self.room.is_set() and not self.leased_domains.stopping:
            await self.room.wait()

    @property
    def waiting(self) -> int:
        """How many captures are at the desk."""
        return len(self._under_way)

    def look_for_room(self) -> None:
        """Let fetching go on, or pause it: what is fetched and not yet settled stays bounded, whatever holds it up."""
        engine = self.crew.settings.engine
        is_full = (
            self.waiting >= engine.backlog
            or len(self.ledger.visits) >= _UNSETTLED_BATCHES * engine.settle_pages
            or self.ledger.links >= _UNSETTLED_LINKS
            or self.capture_writer.no_space.is_set()
            or self.disk_is_full
        )
        if is_full:
            self.room.clear()
        else:
            self.room.set()

    def _hand_over(self, capture: FetchedPage) -> None:
        self._under_way[capture.number] = capture
        self.look_for_room()
        self.capture_writer.put(capture)

    def finished(self, capture: FetchedPage, visit: Visit | None) -> None:
        """Take a capture back from the desk, on the loop; a second word on the same one counts for nothing."""
        if self._under_way.pop(capture.number, None) is None:
            return
        for hop in capture.hops:
            hop.body.close()
        if visit is not None:
            self.ledger.add(visit)
            if len(self.ledger.visits) >= self.crew.settings.engine.settle_pages or self._nothing_moves():
                self.settler.due.set()
            elif visit.found and self.leased_domains.starves:
                self.settler.soon()  # what this page brought may be what a lane waits for
        elif capture.attempt is not None:
            self.limits.ended(capture.attempt)
            if (worker := self.leased_domains.find(capture.attempt, capture.token)) is not None:
                worker.unsettled -= 1
        self.look_for_room()

    def _starving(self, worker: DomainWorker) -> None:
        """Hear of a lane that has nothing to ask for: settle early if that may bring it something."""
        if self._nothing_moves():
            self.settler.due.set()
        elif worker.has_more or self.ledger.has_news:
            self.settler.soon()

    def _nothing_moves(self) -> bool:
        """Return whether nothing is under way but what is to be settled."""
        return not self.waiting and self.leased_domains.all_wait

    def replace_desk(self) -> None:
        """Give up a desk whose parser hangs: blame its page, hand the rest to a new desk, and end soon."""
        hung, self.capture_writer = self.capture_writer, self._make_writer()
        self.capture_writer.start()
        for capture, visit in hung.abandon():
            if visit is not None:
                _log.error("crawl.parse_hangs", url=visit.attempt.url)
                self.finished(capture, visit)
            else:
                self.capture_writer.put(capture)
        if self.closing:
            self.capture_writer.stop()
        self.drain(ProcessEnding.REPLACE)

    async def _clear_desk(self) -> None:
        """Let the desk finish what it was given; what it cannot finish in time stays open."""
        self.closing = True
        self.capture_writer.stop()
        now = self.crew.clock.monotonic
        until = now() + max(_DESK_S, min(self._drain_until - now(), self.crew.settings.parse.deadline_s))
        while self.waiting and now() < until:  # noqa: ASYNC110 - the desk is another thread
            await asyncio.sleep(0.01)
        if self.waiting:
            _log.warning("crawl.left_on_desk", captures=self.waiting)
            for _ in self.capture_writer.abandon():
                pass
        # Not for the thread's end: it may wait for a document that takes long, and what that says counts no more.
        while self.capture_writer.is_filing():  # noqa: ASYNC110 - the file is sealed after this
            await asyncio.sleep(0.01)

    # Leasing.

    async def _lease_loop(self, tasks: asyncio.TaskGroup) -> None:
        idle = 0
        while not self._draining.is_set():
            leased = 0
            self.leased_domains.look_again.clear()
            try:
                leased = await self._lease(tasks) if self.room.is_set() else 0
                busy = bool(leased or self.leased_domains.workers or self.ledger.visits or self.waiting)
                idle = 0 if busy else idle + 1
                if idle and await self._is_over():
                    return
            except Unavailable as exc:
                if isinstance(exc, NoSpace):
                    self.crew.database_full_at = self.crew.clock.monotonic()
                _log.warning("crawl.database_unavailable", message=str(exc))
                await self._pause(1.0)
            if not leased or len(self.leased_domains.workers) >= self.crew.settings.engine.domains:
                await self._pause(0.1 if 0 < idle < 5 else 0.5)

    async def _pause(self, seconds: float) -> None:
        """Wait, unless we drain, a new domain was found, or the last lane has gone."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.leased_domains.look_again.wait()

    async def _is_over(self) -> bool:
        return await self.database.run(self._count_open) == 0

    def _count_open(self) -> int:
        """Return how many attempts are left, on the database's thread; those of domains that nobody may ask end now.

        So do those of domains that another execution found unreachable, and that may not be tried again within what an
        execution waits for one: no lane would ever open to find that out.
        """
        execution_id, politeness = self.ledger.execution_id, self.crew.settings.politeness
        # Beyond our own rhythm: a try that comes within it is waited for, as a lane does.
        patience_s = politeness.unreachable_s + max(politeness.circuit_reset_s, robots_state.LONGEST.total_seconds())
        hopeless = self.frontier.hopeless_domains(execution_id, since=self._started_at, patience_s=patience_s)
        for held in self.frontier.forbidden_domains(execution_id):
            self._close_domain(held, Outcome.EXCLUDED, "domain_forbidden")
        for held in hopeless:
            _log.warning("crawl.domain_unreachable", domain_id=held[0], action="not asked")
            self._close_domain(held, Outcome.FAILED, "domain_unreachable")
        again = self.frontier.reread_count(execution_id) if self.frontier.depth_rules.limited else 0
        return self.frontier.open_count(execution_id) + again

    def _close_domain(self, held: tuple[int, int], outcome: Outcome, reason: str) -> None:
        """Close what is open of a (domain, token), unless another process has taken the domain since it was seen."""
        domain_id, token = held
        close = partial(self.frontier.close_domain, self.ledger.execution_id, domain_id, token=token)
        while close(outcome=outcome, reason=reason):
            pass

    async def _close_pages(self) -> None:
        """Close the pages that are over the limit; what the captured ones need is still fetched.

        Only if there may be some: to find none among all that is still to be fetched takes a second where that is much.
        Without a lane of ours all look again: another process may have added some with its last settle.
        """
        additions = self.settler.additions
        if additions == self._none_over_limit_at and self.leased_domains.workers:
            return
        closed = await self.database.run(
            lambda: self.frontier.close_rest(
                self.ledger.execution_id,
                outcome=Outcome.EXCLUDED,
                reason=f"over_limit:{ProcessEnding.MAX_PAGES}",
                kinds=(UrlKind.PAGE, UrlKind.SITEMAP),
            )
        )
        if closed:
            self.ending = ProcessEnding.MAX_PAGES
        else:
            self._none_over_limit_at = additions

    async def _read_again(self) -> None:
        """Count the links of pages anew to which a shorter way was found, from what is stored of them; for ever."""
        if not self.frontier.depth_rules.limited:
            return
        while True:
            await asyncio.sleep(_REREAD_S)
            try:
                for reread in await self.database.run(self._rereads):
                    found = await self._found_again(reread)
                    await self.database.run(partial(self._add_again, reread, found))
                    self.leased_domains.look_again.set()
            except Unavailable as exc:
                _log.warning("crawl.reread_later", message=str(exc))

    def _rereads(self) -> list[PageToReread]:
        """Return some pages to read again, on the database's thread, with where they are stored."""
        if self.limits.pages_done():
            self.frontier.forget_rereads(self.ledger.execution_id)
            return []
        found = self.frontier.rereads(self.ledger.execution_id, limit=_REREADS_AT_ONCE)
        if not self.crew.plan.keeps_bodies:
            return [replace(one, links=self.frontier.signal_links(one.attempt.page_id)) for one in found]
        self.crew.originals.learn(one.attempt for one in found)
        return found

    async def _found_again(self, reread: PageToReread) -> list[FoundUrl]:
        loop = asyncio.get_running_loop()
        read: asyncio.Future[list[FoundUrl]] = loop.create_future()

        def work() -> None:
            try:
                found = self.crew.read_again(reread)
            except Exception:  # what is stored cannot be read: it leads nowhere, as a page that is gone
                _log.exception("crawl.reread_failed", url=reread.attempt.url)
                found = []
            loop.call_soon_threadsafe(_tell, read, found)

        self.capture_writer.later(work, size=self.crew.settings.parse.max_bytes)
        return await read

    def _add_again(self, reread: PageToReread, found: Sequence[FoundUrl]) -> None:
        self.frontier.read_again(self.ledger.execution_id, reread, found)

    async def _lease(self, tasks: asyncio.TaskGroup) -> int:
        """Take domains that are due, as many as this process has places for; return how many."""
        if self.limits.pages_done():
            await self._close_pages()
        elif self.limits.pages_reached() and (self.leased_domains.workers or self.waiting or self.ledger.visits):
            return 0  # if a page that is under way fails, another may take its place
        elif self.limits.bytes_reached():
            return 0  # what is under way may be smaller than is expected of it
        working = len(self.leased_domains.workers)
        places = min(self.crew.settings.engine.domains - working, _LEASE_AT_ONCE)
        before = self.crew.clock.monotonic()
        if places <= 0 or self.leased_domains.awaits_word(before):
            return 0
        leases, landing = await self.database.run(lambda: self._take(working, places))
        until = self.lease_until(before)
        if leases and self.crew.clock.monotonic() >= until:
            # The answer took longer than the lease lasts: what we got may be another's by now.
            await self._let_go([(lease.domain_id, lease.token) for lease in leases])
            return 0
        self.widen_scope(landing)
        for lease in leases:
            self.leased_domains.start(tasks, lease, lease_until=until)
        return len(leases)

    def widen_scope(self, landing: Iterable[str]) -> None:
        """Take the places where seeds landed, seen by any process, into the scope."""
        for address in landing:
            if address not in self._heard:
                self._heard.add(address)
                self.crew.widen(parse_seed(address, self.crew.policy))

    def _take(self, working: int, places: int) -> tuple[list[DomainLease], tuple[str, ...]]:
        """Lease on the database's thread, and learn where the originals of what was leased lie, and where seeds landed.

        The latter in the same breath: the page that a seed leads to may be the first of a domain that is leased here,
        and its links count only for those who know.
        """
        leases = self.frontier.lease(
            self.ledger.execution_id, self.ledger.owner_id, domains=self._share(working, places), pages=FEED
        )
        reach("after_lease")
        self.crew.originals.learn(attempt for lease in leases for attempt in lease.attempts)
        return leases, self.control.listen().landing if leases and self.crew.processes > 1 else ()

    def _share(self, working: int, places: int) -> int:
        """Return how many domains to take: this process's part of those with work, so that all processes have some.

        Those of an owner that is frozen or cut off come on top: nobody else may be there to take them.
        """
        processes = self.crew.processes
        if processes <= 1:
            return places
        now = self.crew.clock.monotonic()
        if now >= self._counted_until:
            self._open_domains = self.frontier.open_domains(self.ledger.execution_id)
            self._counted_until = now + (_COUNT_S if self._open_domains >= _MANY_DOMAINS else 0.0)
        ours = max(0, math.ceil(self._open_domains / processes) - working)
        return min(places, ours + self.frontier.expired_domains())

    def lease_until(self, asked_at: float) -> float:
        """Return until when a lease that was asked for at this moment may be relied on (monotonic)."""
        return asked_at + self.crew.settings.lease.seconds * (1.0 - _MARGIN)

    @asynccontextmanager
    async def _borrow(self, domain: str) -> AsyncIterator[Pace | LeaseRefusal]:
        """Take a turn at another domain: our own lane's, or a lease of its own for this one request."""
        worker = self.leased_domains.named(domain)
        if worker is not None and not worker.lost:
            worker.visitors += 1  # its domain is not given back while one of ours waits for its turn there
            try:
                yield worker.pace
            finally:
                worker.visitors -= 1
                if not worker.working:
                    self.settler.soon()
            return
        before = self.crew.clock.monotonic()
        lease = await self.database.run(partial(self._lease_named, domain))
        if isinstance(lease, LeaseRefusal):
            yield lease
            return
        visitor = DomainWorker(lease, self.crew, lease_until=self.lease_until(before))
        self._visiting.add(lease.domain_id)
        try:
            yield visitor.pace
        finally:
            update = release(self.crew, visitor)
            try:
                await self.database.run(
                    lambda: self.frontier.release(self.ledger.execution_id, self.ledger.owner_id, [update])
                )
            except Unavailable as exc:
                _log.warning("crawl.release_later", domain=domain, message=str(exc))  # by `renewed`, as a stray
            finally:
                self._visiting.discard(lease.domain_id)

    def _lease_named(self, domain: str) -> DomainLease | LeaseRefusal:
        """Take a domain for one request, on the database's thread."""
        lease = self.frontier.lease_named(self.ledger.owner_id, domain)
        if lease is None:
            return LeaseRefusal.BARRED if self.frontier.is_barred(domain) else LeaseRefusal.HELD
        return lease

    async def _recall_robots(self, origin: str) -> RobotsState | None:
        return await self.database.run(lambda: self.frontier.robots(origin))

    async def renewed(self, leases: Mapping[int, int], *, asked_at: float) -> None:
        """Take what the database says we hold; let go of what nobody here works on (its answer was lost)."""
        strays = self.leased_domains.renewed(leases, lease_until=self.lease_until(asked_at))
        idle = [(domain_id, token) for domain_id, token in strays.items() if domain_id not in self._visiting]
        await self._let_go(idle)

    async def _let_go(self, leases: Sequence[tuple[int, int]]) -> None:
        if leases:
            _log.warning("crawl.stray_leases", domains=len(leases))
            await self.database.run(lambda: self.frontier.let_go(leases))
