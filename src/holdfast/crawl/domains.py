"""The domains leased by one process: starts, supplies, interrupts and releases a worker for each."""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping
from datetime import timedelta

from holdfast import log
from holdfast.clock import Clock
from holdfast.crawl.domain_worker import DomainWorker
from holdfast.crawl.progress import CrawlLimits
from holdfast.errors import LeaseLost, Unavailable
from holdfast.types import Attempt, DomainChange, DomainLease

REFILL = 50
"""Pages a worker fetches from the database in one batch; below a fifth of it the worker requests more."""
# How long a worker without pages stays: running pages may still bring links for it.
LINGER_S = 1.5
# How long a domain rests after a failure of our own disk or database.
_PUT_OFF_S = 5.0
_log = log.get()

MakeWorker = Callable[[DomainLease, float], DomainWorker]
"""Creates the worker of a lease, which is valid until the given time (monotonic)."""


class LeasedDomains:
    def __init__(
        self,
        make_worker: MakeWorker,
        limits: CrawlLimits,
        clock: Clock,
        *,
        settle_s: float,
        room: Callable[[], Awaitable[None]],
        starving: Callable[[DomainWorker], None],
    ) -> None:
        """`room` waits until pages may be fetched; `starving` is called for a worker without pages."""
        self.make_worker, self._limits, self._clock, self._settle_s = make_worker, limits, clock, settle_s
        self._room, self._starving = room, starving
        self.workers: dict[int, DomainWorker] = {}
        self._by_lease: dict[tuple[int, int], DomainWorker] = {}
        self._names: dict[str, DomainWorker] = {}
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self.ended: list[DomainWorker] = []
        self.stopping = False
        # Keep counters instead of scanning all workers: every page reads them, and there are hundreds of workers.
        self._at_work = self._waiting = self._starving_now = 0
        self.look_again = asyncio.Event()
        """Set when there may be a domain to lease, or nothing left to do."""

    def start(self, tasks: asyncio.TaskGroup, lease: DomainLease, *, lease_until: float) -> DomainWorker:
        """Start a worker for a lease; a worker with an older lease on the domain ends first."""
        worker = self.make_worker(lease, lease_until)
        before, task = self.workers.get(lease.domain_id), self._tasks.get(lease.domain_id)
        if before is not None:
            self.lose(before)
            # Facts about the server that it could not write, above all a Retry-After.
            worker.pace.not_before(before.pace.next_at)
            # Share the same set object: that worker may still pass on its current page.
            worker.unsettled = before.unsettled
        self.workers[lease.domain_id] = self._names[lease.domain] = worker
        self._by_lease[lease.domain_id, lease.token] = worker
        work = self._run(worker) if task is None else self._run_after(task, worker)
        started = self._tasks[lease.domain_id] = tasks.create_task(work, name=f"domain {lease.domain}")
        started.add_done_callback(lambda _task: self._note_end(worker))
        return worker

    def _note_end(self, worker: DomainWorker) -> None:
        # Do this also outside the task: a task that is cancelled before its first step never reaches a `finally`, and
        # its domain would be held without requests as long as this process lives.
        if worker.working:
            worker.working = False
            self.ended.append(worker)

    def named(self, domain: str) -> DomainWorker | None:
        """Return the worker of a domain that this process holds and is not releasing."""
        worker = self._names.get(domain)
        return None if worker is None or worker.leaving else worker

    def find(self, attempt: Attempt, token: int) -> DomainWorker | None:
        """Return the worker that an attempt came from, unless its domain was released and forgotten."""
        return self._by_lease.get((attempt.domain_id, token))

    def note_new(self, domain_ids: Iterable[int]) -> None:
        """Record domains with new pages: those not held here may be leased."""
        if any(domain_id not in self.workers for domain_id in domain_ids):
            self.look_again.set()

    @property
    def starves(self) -> bool:
        """Whether a worker could make a request now but has no page."""
        return self._starving_now > 0

    @property
    def all_wait(self) -> bool:
        """Whether no worker has a page to request, so that only settling can make progress."""
        return self._waiting >= self._at_work

    def wanting(self) -> Iterator[DomainWorker]:
        return (worker for worker in self.workers.values() if worker.wants_more(REFILL // 5))

    def note_ended(self, attempt: Attempt, token: int) -> None:
        """Record that an attempt is finished here: its result was settled or rejected, or it never had one."""
        self._limits.ended(attempt)
        if (worker := self.workers.get(attempt.domain_id)) is not None:
            worker.unsettled.discard(attempt.id)
            # The database rejects a result of the previous lease: then the page is still open.
            worker.has_more |= worker.lease.token != token

    def renewed(self, leases: Mapping[int, int], *, lease_until: float) -> dict[int, int]:
        """Update the renewed leases; a worker that is not among them has lost its domain.

        Return those without a worker: leased without our knowledge, because the response was lost.
        """
        for domain_id, worker in list(self.workers.items()):
            if leases.get(domain_id) == worker.lease.token:
                worker.pace.lease_until = lease_until
            else:
                self.lose(worker)
        return {domain_id: token for domain_id, token in leases.items() if domain_id not in self.workers}

    def lose(self, worker: DomainWorker) -> None:
        """Stop work on a domain now held by another process; a visitor waiting for its turn gets none."""
        worker.lost = True
        # Set it also for its visitors, which only know the pace.
        worker.pace.lease_until = -math.inf
        self._stop(worker)

    def expire(self, moment: float) -> None:
        """Abort requests whose lease is not valid until this time (monotonic)."""
        # The lease expired only by our own clock: the domain may still be ours, so still offer results.
        for worker in self.workers.values():
            if worker.working and worker.pace.lease_until <= moment:
                _log.warning("crawl.lease_expires", domain=worker.lease.domain)
                self._stop(worker)

    def awaits_renewal(self, now: float) -> bool:
        """Return whether a worker ended with its lease and the renewal result is still unknown."""
        return any(worker.pace.lease_until <= now and not worker.lost for worker in self.ended)

    def _stop(self, worker: DomainWorker) -> None:
        # A forgotten worker may have a successor on the same domain, which must continue.
        if self.workers.get(worker.lease.domain_id) is worker:
            self._tasks[worker.lease.domain_id].cancel()

    def interrupt(self, *, everything: bool) -> None:
        """Stop the workers: waiting ones immediately, those in a request when it ends, or all now if `everything`."""
        self.stopping = True
        # Do not cancel a worker in its turn: the server has its request, and its response is a page.
        for domain_id, worker in self.workers.items():
            worker.refilled.set()
            if everything or worker.pace.waiting_since is None:
                self._tasks[domain_id].cancel()

    def hear(self, changes: Iterable[DomainChange]) -> bool:
        heard = False
        for change in changes:
            worker = self.workers.get(change.domain_id)
            if worker is None or not worker.working or not worker.hear(change):
                continue
            heard = True
            self._leave(worker)
        return heard

    def give_back(self) -> None:
        for worker in self.workers.values():
            if worker.working:
                worker.give_back()
                self._leave(worker)

    def see_off(self) -> None:
        """End the workers that release their domain and whose request has ended: its response may lead to another."""
        for worker in self.workers.values():
            if worker.working and worker.pace.is_released:
                self._leave(worker)

    def _leave(self, worker: DomainWorker) -> None:
        """End a worker that releases its domain: immediately if it only waits for its turn."""
        # It would send another request, perhaps minutes from now. One without a page ends by itself: a task that is
        # cancelled before its first step would never report its end. Cancel it only once: it may be returning a
        # borrowed turn.
        task = self._tasks[worker.lease.domain_id]
        if worker.current is not None and worker.pace.waiting_since is None and not task.cancelling():
            task.cancel()

    def releasable(self) -> list[DomainWorker]:
        """Return the ended workers whose results are all settled or rejected, and that have no visitor."""
        # Include a lost domain: it may be ours again before its results are rejected (see `_run_after`).
        return [
            worker
            for worker in self.ended
            if (worker.lost or not worker.visitors)
            and (not worker.unsettled or self.workers.get(worker.lease.domain_id) is not worker)
        ]

    def forget(self, workers: Collection[DomainWorker]) -> None:
        self.ended = [worker for worker in self.ended if worker not in workers]
        for worker in workers:
            self._by_lease.pop((worker.lease.domain_id, worker.lease.token), None)
            if self.workers.get(worker.lease.domain_id) is worker:
                del self.workers[worker.lease.domain_id]
                del self._tasks[worker.lease.domain_id]
            if self._names.get(worker.lease.domain) is worker:
                del self._names[worker.lease.domain]
        if workers:
            self.look_again.set()

    def write_off(self) -> None:
        """Stop waiting for results, so that the domains of ended workers can be released."""
        for worker in self.ended:
            worker.unsettled.clear()

    async def finished(self) -> None:
        while working := [task for task in self._tasks.values() if not task.done()]:
            await asyncio.wait(working)

    async def _run(self, worker: DomainWorker) -> None:
        self._at_work += 1
        try:
            while not self.stopping and (attempt := await self._next(worker)) is not None:
                if not await self._try(worker, attempt):
                    break
        except LeaseLost:
            # The lease expired only by our own clock: the domain may still be ours, so still offer fetched pages.
            if not worker.pace.is_released:
                _log.warning("crawl.lease_over", domain=worker.lease.domain)
        finally:
            self._at_work -= 1
            self._note_end(worker)

    async def _run_after(self, task: asyncio.Task[None], worker: DomainWorker) -> None:
        await asyncio.wait([task])
        # Its results will be rejected. Until then the links of those pages count as known: when read again they would
        # be skipped, and a target that no other page links to would never be requested.
        queue, worker.queue = worker.queue, deque()
        worker.take(queue)
        await self._run(worker)

    async def _next(self, worker: DomainWorker) -> Attempt | None:
        while not worker.queue:
            if worker.dry:
                return None
            worker.refilled.clear()
            starves = worker.pace.next_at - self._clock.monotonic() < self._settle_s
            self._waiting += 1
            self._starving_now += starves
            try:
                if starves:
                    self._starving(worker)
                await worker.refilled.wait()
            finally:
                self._waiting -= 1
                self._starving_now -= starves
            if self.stopping:
                return None
        # Mark it from here on, not only when it is requested: it may first wait for capacity, and must not be taken
        # twice.
        worker.current = worker.queue.popleft()
        return worker.current

    async def _try(self, worker: DomainWorker, attempt: Attempt) -> bool:
        await self._room()
        if self.stopping or not self._limits.may_start(attempt):
            worker.queue.appendleft(attempt)
            worker.current = None
            return False
        began = False
        try:
            began = await worker.work(attempt)
        except LeaseLost:
            raise
        except Unavailable as exc:  # the disk or the database failed, not the page: it stays open
            _log.warning("crawl.domain_waits", domain=worker.lease.domain, message=str(exc))
            worker.put_off_until = self._clock.now() + timedelta(seconds=_PUT_OFF_S)
        except Exception as exc:
            # A worker survives unexpected errors only here; close the page and log its name.
            _log.exception("crawl.domain_worker_failed", url=attempt.url)
            worker.give_up(attempt, "internal_error", repr(exc)[:500])
            began = True
        finally:
            worker.current = None
            self._limits.answered()
            if not began:
                self._limits.ended(attempt)
        if not began:
            worker.queue.appendleft(attempt)
        return began and worker.put_off_until is None
