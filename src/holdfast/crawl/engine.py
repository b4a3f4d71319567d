"""One crawl process: leases domains, runs a worker for each, settles in batches, and ends when nothing is open.

Three threads: the event loop fetches, the writer thread stores and parses, the database thread settles and
leases. Only the loop makes decisions. Shutdown order: stop leasing, drain the workers, empty the writer,
settle, release, seal.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from datetime import timedelta
from enum import StrEnum
from functools import partial
from typing import NamedTuple

from holdfast import log
from holdfast.config import Settings
from holdfast.crawl.assignment import CrawlScope
from holdfast.crawl.domain_worker import DomainWorker
from holdfast.crawl.domains import LeasedDomains, MakeWorker
from holdfast.crawl.outcomes import PageUnderWay
from holdfast.crawl.politeness import Pace
from holdfast.crawl.progress import CrawlLimits
from holdfast.crawl.settling import DatabaseThread, FrontierSession, PendingResults, ResultSettler
from holdfast.crawl.writer_thread import CaptureWriter
from holdfast.errors import NoSpace, Unavailable
from holdfast.fetch import robots
from holdfast.types import (
    DomainChange,
    DomainLease,
    FoundUrl,
    LeaseRefusal,
    Outcome,
    PageToReread,
    RobotsRecord,
    UrlKind,
    Visit,
)
from holdfast.urls import parse_seed

_BACKLOG = 64
"""Fetched pages that may wait for parsing before fetching pauses; they are held in memory."""

_log = log.get()
_LEASE_AT_ONCE = 64
# Share of a lease that is left unused, so that no request starts after it may have expired.
_MARGIN = 0.1
# Most results that wait for the database, as batches and as links (some 300 bytes each): while it is unavailable,
# fetching pauses here instead of only when the leases expire.
_UNSETTLED_BATCHES = 5
_UNSETTLED_LINKS = 100_000
# From this many domains on, reuse a count for this many seconds: counting is slow, and a few more domains do not change
# a process's share.
_MANY_DOMAINS = 10_000
_COUNT_S = 5.0
_WRITE_S = 1.0
"""Time limit in seconds for the writer thread's remaining work at shutdown."""
_REREAD_S = 0.5
_REREADS_AT_ONCE = 50


def _resolve(future: asyncio.Future[list[FoundUrl] | None], found: list[FoundUrl] | None) -> None:
    if not future.done():  # a draining crawl does not wait for it
        future.set_result(found)


class ProcessEnding(StrEnum):
    DONE = "done"
    DRAINED = "drained"
    MAX_PAGES = "max_pages"
    MAX_BYTES = "max_bytes"
    MAX_TIME = "max_time"
    STORAGE = "storage"
    """Its time ran out while the disk was full: the remaining URLs were not requested, through no fault of a site."""
    REPLACE = "replace"
    """A parser hangs in a thread: everything else is settled, and a new process should continue."""


class EngineFactories(NamedTuple):
    make_worker: MakeWorker
    make_writer: Callable[[], CaptureWriter]
    read_again: Callable[[PageToReread], list[FoundUrl] | None]
    """Returns the links of a stored page when reached at a smaller depth; called on the thread for slow documents."""


class CrawlEngine:
    def __init__(
        self,
        session: FrontierSession,
        results: PendingResults,
        limits: CrawlLimits,
        scope: CrawlScope,
        settings: Settings,
        factories: EngineFactories,
    ) -> None:
        self.session, self.results, self.limits, self.scope = session, results, limits, scope
        self.settings, self.clock, self.progress, self._factories = settings, session.clock, results.progress, factories
        self._known_landings: set[str] = set(scope.plan.landing)
        """Places where seeds landed that this process knows of."""
        self.database = DatabaseThread()
        self.leased_domains = LeasedDomains(
            factories.make_worker,
            limits,
            self.clock,
            settle_s=settings.timings.crawl_settle_s,
            room=self._wait_for_room,
            starving=self._starving,
        )
        self.settler = ResultSettler(
            session, results, self.leased_domains, self.database, settings, makes_way=not scope.plan.polls
        )
        self.ending = ProcessEnding.DONE
        self._none_over_limit_at = -1
        """After how many additions there was no page over the limit."""
        self._open_domains, self._counted_until = 0, -math.inf
        self.capture_writer = factories.make_writer()
        self.room = asyncio.Event()
        """Set while fetched pages may be handed to the writer, the disk has room, and the database takes results."""
        self.disk_is_full = False
        self.is_paused = False
        """Whether an operator paused it: it sends no requests and does not end by itself."""
        self._draining = asyncio.Event()
        self._drain_until = math.inf
        self.closing = False
        """Whether the writer was asked to finish."""
        self._visiting: set[int] = set()
        """Domains that are held for one request of another domain's worker."""
        self.settler.settled = self.look_for_room
        self.settler.landed = self.widen_scope

    async def run(self, watches: Sequence[Callable[[CrawlEngine], Coroutine[None, None, None]]]) -> ProcessEnding:
        """Crawl to the end and return why it ended. `watches` supervise the process meanwhile."""
        self.room.set()
        self.capture_writer.start()
        async with asyncio.TaskGroup() as tasks:
            # If one of these fails, end the process: one that cannot settle, renew or stop should be replaced.
            at_work = [
                tasks.create_task(self.settler.run()),
                tasks.create_task(self._reread()),
                *(tasks.create_task(watch(self)) for watch in watches),
            ]
            await self._lease_loop(tasks)
            self.leased_domains.interrupt(everything=False)
            await self.leased_domains.finished()
            await self._finish_writing()
            await self.settler.finish()
            for task in at_work:
                task.cancel()
        return self.ending

    def close(self) -> None:
        """Shut down the database thread; called last."""
        self.database.close()

    def drain(self, ending: ProcessEnding = ProcessEnding.DRAINED) -> None:
        """Stop leasing, let running requests finish, and end."""
        if not self._draining.is_set():
            self.ending = ending
            self.progress.state = "draining"
            self._drain_until = self.clock.monotonic() + self.settings.fetch.deadline_s
            self._draining.set()
            self.leased_domains.look_again.set()
            self.settler.due.set()
            self.leased_domains.interrupt(everything=False)

    def pause(self) -> None:
        """Request nothing more until `resume`: running requests finish and are stored, all domains are released."""
        if not self.is_paused:
            _log.info("crawl.paused", reason="operator")
            self.is_paused = True
            self.limits.pause(self.clock.monotonic())
            # Release them for others, too: a leased domain without requests would keep another crawl of it waiting.
            self.leased_domains.give_back()
            self.settler.soon()

    def resume(self) -> None:
        if self.is_paused:
            _log.info("crawl.resumed", reason="operator")
            self.is_paused = False
            self.limits.resume(self.clock.monotonic())
            # No domain was tried during the pause: count the time that one is unreachable from here.
            self.settler.patient_since = self.clock.now()
            self.leased_domains.look_again.set()

    def hand_back(self) -> None:
        """End immediately: running requests are dropped, their attempts stay open."""
        self.drain()
        self._drain_until = -math.inf
        self.leased_domains.interrupt(everything=True)

    def press(self, now: float) -> None:
        """Abort work that does not end by itself: requests whose lease expires, workers that leave or drain."""
        self.leased_domains.expire(now)
        self.leased_domains.see_off()
        if now > self._drain_until:  # a chain of redirects, or a robots.txt before its page
            self.leased_domains.interrupt(everything=True)

    # This part passes pages from workers to the writer thread, and back.

    async def _wait_for_room(self) -> None:
        while not self.room.is_set() and not self.leased_domains.stopping:
            await self.room.wait()

    @property
    def waiting(self) -> int:
        return len(self.results.writing)

    def look_for_room(self) -> None:
        """Resume or pause fetching, to bound the fetched but unsettled pages whatever delays them."""
        is_full = (
            self.waiting >= _BACKLOG
            or len(self.results.visits) >= _UNSETTLED_BATCHES * self.settings.timings.crawl_settle_pages
            or self.results.links >= _UNSETTLED_LINKS
            or self.capture_writer.no_space.is_set()
            or self.disk_is_full
        )
        if is_full:
            self.room.clear()
        else:
            self.room.set()

    def hand_over(self, page: PageUnderWay) -> None:
        self.results.writing[page.number] = page
        self.look_for_room()
        self.capture_writer.put(page)

    def finished(self, page: PageUnderWay, visit: Visit | None) -> None:
        """Take a page back from the writer, on the event loop."""
        # A replaced writer may finish its page at the same time: ignore the second result.
        if self.results.writing.pop(page.number, None) is None:
            if visit is not None:
                self.results.forget((*visit.found, *visit.shallower))
            return
        for hop in page.hops:
            hop.body.close()
        if visit is not None:
            self.results.add(visit)
            if len(self.results.visits) >= self.settings.timings.crawl_settle_pages or self._nothing_moves():
                self.settler.due.set()
            elif visit.found and self.leased_domains.starves:
                self.settler.soon()  # a worker may be waiting for links of this page
        elif page.attempt is not None:
            self.leased_domains.note_ended(page.attempt, page.token)
        self.look_for_room()

    def _starving(self, worker: DomainWorker) -> None:
        """Write results to the database early if they may contain new pages for a worker that has run out."""
        if self._nothing_moves():
            self.settler.due.set()
        elif worker.has_more or self.results.has_news:
            self.settler.soon()

    def _nothing_moves(self) -> bool:
        return not self.results.writing and self.leased_domains.all_wait

    def replace_writer(self) -> None:
        """Abandon a writer whose parser hangs: close its page, give the rest to a new writer, and end soon."""
        hung, self.capture_writer = self.capture_writer, self._factories.make_writer()
        self.capture_writer.start()
        for page, visit in hung.abandon():
            if visit is not None:
                _log.error("crawl.parse_hangs", url=visit.attempt.url)
                self.finished(page, visit)
            else:
                self.capture_writer.put(page)
        if self.closing:
            self.capture_writer.stop()
        self.drain(ProcessEnding.REPLACE)

    async def _finish_writing(self) -> None:
        """Let the writer finish its pages; those it cannot finish in time stay open."""
        self.closing = True
        self.capture_writer.stop()
        now = self.clock.monotonic
        until = now() + max(_WRITE_S, min(self._drain_until - now(), self.settings.timings.crawl_parse_s))
        while self.waiting and now() < until:  # noqa: ASYNC110 - the writer is another thread
            await asyncio.sleep(0.01)
        if self.waiting:
            _log.warning("crawl.left_unwritten", pages=self.waiting)
            for _ in self.capture_writer.abandon():
                pass
        # Do not wait for the thread's end: it may be parsing a slow document, whose result no longer counts.
        while self.capture_writer.is_storing():  # noqa: ASYNC110 - the file is sealed after this
            await asyncio.sleep(0.01)

    # This part leases domains.

    async def _lease_loop(self, tasks: asyncio.TaskGroup) -> None:
        idle = 0
        while not self._draining.is_set():
            leased = 0
            self.leased_domains.look_again.clear()
            try:
                may_lease = self.room.is_set() and not self.is_paused
                leased = await self.lease_domains(tasks) if may_lease else 0
                busy = bool(leased or self.leased_domains.workers or self.results.visits or self.waiting)
                idle = 0 if busy or self.is_paused else idle + 1
                if idle and await self._is_over():
                    return
            except Unavailable as exc:
                if isinstance(exc, NoSpace):
                    self.progress.storage_refused_at = self.clock.monotonic()
                _log.warning("crawl.database_unavailable", message=str(exc))
                await self._pause(1.0)
            if not leased or len(self.leased_domains.workers) >= self.settings.engine.domains:
                await self._pause(0.1 if 0 < idle < 5 else 0.5)

    async def _pause(self, seconds: float) -> None:
        """Wait, unless the process drains, a new domain was found, or the last worker has ended."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self.leased_domains.look_again.wait()

    async def _is_over(self) -> bool:
        return await self.database.run(self._count_open) == 0

    def _count_open(self) -> int:
        """Return the number of open attempts, on the database thread; ends those of forbidden domains first."""
        execution_id, timings = self.session.execution_id, self.settings.timings
        # Also end domains that another execution found unreachable and that may not be retried within an execution's
        # waiting time: no worker would ever start to notice. Retries within our own interval are waited for, as a
        # worker does.
        longest_wait_s = max(timings.crawl_circuit_reset_s, robots.LONGEST_WAIT.total_seconds())
        hopeless = self.session.frontier.hopeless_domains(
            execution_id, since=self.settler.patient_since, patience_s=timings.crawl_unreachable_s + longest_wait_s
        )
        for held in self.session.frontier.forbidden_domains(execution_id):
            self._close_domain(held, Outcome.EXCLUDED, "domain_forbidden")
        for held in self._long_paused():
            _log.warning("crawl.domain_paused", domain_id=held[0], action="not asked")
            self._close_domain(held, Outcome.FAILED, "domain_paused")
        for held in hopeless:
            _log.warning("crawl.domain_unreachable", domain_id=held[0], action="not asked")
            self._close_domain(held, Outcome.FAILED, "domain_unreachable")
        left = self.session.frontier.open_count(execution_id)
        again = self.session.frontier.reread_count(execution_id) if self.session.frontier.depth_rules.limited else 0
        if again and not left and self.limits.pages_done():
            self.ending = ProcessEnding.MAX_PAGES  # their targets would exceed the limit
            return 0
        return left + again

    def _long_paused(self) -> list[tuple[int, int]]:
        """Return domains paused for longer than an execution waits for an unreachable domain."""
        waited = timedelta(seconds=self.settings.timings.crawl_unreachable_s)
        before = self.clock.now() - waited
        # Do this only now that nothing else is left: a forgotten pause must not hold a job forever.
        if before < self.settler.patient_since:
            return []
        return self.session.frontier.paused_domains(self.session.execution_id, before=before)

    def _close_domain(self, held: tuple[int, int], outcome: Outcome, reason: str) -> None:
        """Close the open attempts of a (domain, token), unless another process has leased the domain since."""
        while self.session.close_domain(*held, outcome, reason):
            pass

    async def _close_pages(self) -> None:
        """Close the pages over the limit; resources that captured pages need are still fetched."""
        additions = self.settler.additions
        # Query only if there may be some: finding none in a long queue takes a second. Without a worker of our own
        # always query: another process may have added some with its last settle.
        if additions == self._none_over_limit_at and self.leased_domains.workers:
            return
        closed = await self.database.run(
            lambda: self.session.frontier.close_rest(
                self.session.execution_id,
                outcome=Outcome.EXCLUDED,
                reason=f"over_limit:{ProcessEnding.MAX_PAGES}",
                kinds=(UrlKind.PAGE, UrlKind.SITEMAP),
            )
        )
        if closed:
            self.ending = ProcessEnding.MAX_PAGES
        else:
            self._none_over_limit_at = additions

    async def _reread(self) -> None:
        """Repeatedly re-evaluate the stored links of pages for which a shorter path was found; runs until
        cancelled.
        """
        if not self.session.frontier.depth_rules.limited:
            return
        while True:
            await asyncio.sleep(_REREAD_S)
            try:
                for reread in await self.database.run(self._rereads):
                    found = await self._found_again(reread)
                    try:
                        await self.database.run(partial(self._add_again, reread, found))
                    except BaseException:
                        # It will be parsed again, and its links must not count as added.
                        self.results.forget(found or ())
                        raise
                    self.leased_domains.look_again.set()
            except Unavailable as exc:
                _log.warning("crawl.reread_later", message=str(exc))

    def _rereads(self) -> list[PageToReread]:
        if self.limits.pages_done():
            return []
        found = self.session.frontier.rereads(self.session.execution_id, limit=_REREADS_AT_ONCE)
        if not self.scope.plan.keeps_bodies:
            return [replace(one, links=self.session.frontier.signal_links(one.attempt.page_id)) for one in found]
        self.session.originals.learn(one.attempt for one in found)
        return found

    async def _found_again(self, reread: PageToReread) -> list[FoundUrl] | None:
        loop = asyncio.get_running_loop()
        read: asyncio.Future[list[FoundUrl] | None] = loop.create_future()

        def work() -> None:
            try:
                found = self._factories.read_again(reread)
            except Exception:
                _log.exception("crawl.reread_failed", url=reread.attempt.url)
                found = None
            loop.call_soon_threadsafe(_resolve, read, found)

        self.capture_writer.later(work)
        return await read

    def _add_again(self, reread: PageToReread, found: Sequence[FoundUrl] | None) -> None:
        if found is None:
            _log.warning("crawl.reread_fetches", url=reread.attempt.url, message="its record cannot be read here")
            if self.session.frontier.fetch_again(self.session.execution_id, reread):
                self.progress.fetched_again()
            return
        self.session.frontier.read_again(self.session.execution_id, reread, found)

    async def lease_domains(self, tasks: asyncio.TaskGroup) -> int:
        """Lease due domains up to this process's capacity; return how many."""
        if self.limits.pages_done():
            await self._close_pages()
        elif self.limits.pages_reached() and (self.leased_domains.workers or self.waiting or self.results.visits):
            return 0  # if a running page fails, another may take its place
        elif self.limits.bytes_reached():
            return 0  # running responses may be smaller than expected
        working = len(self.leased_domains.workers)
        places = min(self.settings.engine.domains - working, _LEASE_AT_ONCE)
        before = self.clock.monotonic()
        if places <= 0 or self.leased_domains.awaits_renewal(before):
            return 0
        leases, landing = await self.database.run(lambda: self._take(working, places))
        until = self.lease_until(before)
        if leases and self.clock.monotonic() >= until:
            # The response took longer than the lease lasts: another process may hold the domain by now.
            await self._let_go([(lease.domain_id, lease.token) for lease in leases])
            return 0
        self.widen_scope(landing)
        for lease in leases:
            self.leased_domains.start(tasks, lease, lease_until=until)
        if self.is_paused:  # paused since the query
            self.leased_domains.give_back()
        return len(leases)

    def widen_scope(self, landing: Iterable[str]) -> None:
        """Add the URLs where seeds landed, as seen by any process, to the scope."""
        for address in landing:
            if address not in self._known_landings:
                self._known_landings.add(address)
                self.scope.widen(parse_seed(address, self.scope.normalisation))

    def hear(self, changes: Sequence[DomainChange]) -> None:
        """Apply domain changes by an operator: release the domains held here so that they are leased with the new
        values.
        """
        if self.leased_domains.hear(changes):
            self.settler.soon()
        if changes:
            self.leased_domains.look_again.set()

    def _take(self, working: int, places: int) -> tuple[list[DomainLease], tuple[str, ...]]:
        leases = self.session.lease(domains=self._share(working, places))
        # Read both together: the target of a seed may be the first page of a domain that is leased here, and its links
        # count only for a process that knows of the landing.
        return leases, self.results.control.read_news().landing if leases and self.limits.processes > 1 else ()

    def _share(self, working: int, places: int) -> int:
        """Return how many domains to lease: this process's share, so that every process gets some."""
        processes = self.limits.processes
        if processes <= 1:
            return places
        now = self.clock.monotonic()
        if now >= self._counted_until:
            self._open_domains = self.session.frontier.open_domains(self.session.execution_id)
            self._counted_until = now + (_COUNT_S if self._open_domains >= _MANY_DOMAINS else 0.0)
        ours = max(0, math.ceil(self._open_domains / processes) - working)
        # Add those of a frozen or disconnected owner: there may be no other process to lease them.
        return min(places, ours + self.session.frontier.expired_domains())

    def lease_until(self, asked_at: float) -> float:
        """Return the time until which a lease requested at `asked_at` is valid (monotonic)."""
        return asked_at + self.settings.timings.lease_seconds * (1.0 - _MARGIN)

    @asynccontextmanager
    async def borrow(self, domain: str) -> AsyncIterator[Pace | LeaseRefusal]:
        """Yield a turn at another domain: from this process's own worker, or by a lease for this one request."""
        worker = self.leased_domains.named(domain)
        if worker is not None and not worker.lost:
            worker.visitors += 1  # do not release its domain while one of our workers waits for its turn there
            try:
                yield worker.pace
            finally:
                worker.visitors -= 1
                if not worker.working:
                    self.settler.soon()
            return
        before = self.clock.monotonic()
        lease = await self.database.run(partial(self._lease_named, domain))
        if isinstance(lease, LeaseRefusal):
            yield lease
            return
        visitor = self.leased_domains.make_worker(lease, self.lease_until(before))
        self._visiting.add(lease.domain_id)
        try:
            yield visitor.pace
        finally:
            update = visitor.update()
            try:
                await self.database.run(lambda: self.session.release([update]))
            except Unavailable as exc:
                _log.warning("crawl.release_later", domain=domain, message=str(exc))  # `renewed` reports it as a stray
            finally:
                self._visiting.discard(lease.domain_id)

    def _lease_named(self, domain: str) -> DomainLease | LeaseRefusal:
        lease = self.session.frontier.lease_named(self.session.owner_id, domain)
        if lease is None:
            return LeaseRefusal.BARRED if self.session.frontier.is_barred(domain) else LeaseRefusal.HELD
        return lease

    async def recall_robots(self, origin: str) -> RobotsRecord | None:
        return await self.database.run(lambda: self.session.frontier.robots(origin))

    async def renewed(self, leases: Mapping[int, int], *, asked_at: float) -> None:
        """Update the leases confirmed by the database; release those without a worker (their response was lost)."""
        strays = self.leased_domains.renewed(leases, lease_until=self.lease_until(asked_at))
        idle = [(domain_id, token) for domain_id, token in strays.items() if domain_id not in self._visiting]
        await self._let_go(idle)

    async def _let_go(self, leases: Sequence[tuple[int, int]]) -> None:
        if leases:
            _log.warning("crawl.stray_leases", domains=len(leases))
            await self.database.run(lambda: self.session.frontier.let_go(leases))
