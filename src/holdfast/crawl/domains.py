"""The lanes of one process: started for each lease, fed with pages, interrupted, and given back when they end."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping
from datetime import timedelta

from holdfast import log
from holdfast.crawl.context import CrawlContext
from holdfast.crawl.domain_worker import DomainWorker
from holdfast.crawl.progress import CrawlLimits
from holdfast.errors import LeaseLost, Unavailable
from holdfast.types import Attempt, DomainLease, DomainUpdate, Visit

FEED = 50
"""Pages a lane takes at once; below a fifth of it the lane asks for more."""
LINGER_S = 1.5
"""How long a lane without work stays: pages under way may still bring links for it."""
_PUT_OFF_S = 5.0
"""How long a domain rests when our own disk or database was in the way."""
_log = log.get()


class LeasedDomains:
    """All lanes that work, and those that have ended and wait for their last results to be settled."""

    def __init__(
        self,
        crew: CrawlContext,
        limits: CrawlLimits,
        *,
        room: Callable[[], Awaitable[None]],
        starving: Callable[[DomainWorker], None],
    ) -> None:
        self._crew, self._limits, self._room, self._starving = crew, limits, room, starving
        self.lanes: dict[int, DomainWorker] = {}
        self._by_lease: dict[tuple[int, int], DomainWorker] = {}
        self._names: dict[str, DomainWorker] = {}
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self.ended: list[DomainWorker] = []
        self.stopping = False
        self._at_work = 0
        self._waiting = self._starving_now = 0
        self.look_again = asyncio.Event()
        """Set when there may be a domain to lease, or nothing left to do."""

    def start(self, tasks: asyncio.TaskGroup, lease: DomainLease, *, lease_until: float) -> DomainWorker:
        """Put a lane to work on a lease."""
        lane = DomainWorker(lease, self._crew, lease_until=lease_until)
        self.lanes[lease.domain_id] = self._names[lease.domain] = lane
        self._by_lease[lease.domain_id, lease.token] = lane
        self._tasks[lease.domain_id] = tasks.create_task(self._run(lane), name=f"lane {lease.domain}")
        return lane

    def named(self, domain: str) -> DomainWorker | None:
        """Return the lane of a domain that this process holds, and is not giving back at this moment."""
        lane = self._names.get(domain)
        return None if lane is None or lane.leaving else lane

    def find(self, attempt: Attempt, token: int) -> DomainWorker | None:
        """Return the lane that an attempt came from, unless it was given back and forgotten."""
        return self._by_lease.get((attempt.domain_id, token))

    def note_new(self, domain_ids: Iterable[int]) -> None:
        """Hear of domains that have something new to ask for: one that nobody here holds may be leased."""
        if any(domain_id not in self.lanes for domain_id in domain_ids):
            self.look_again.set()

    @property
    def starves(self) -> bool:
        """Whether a lane could ask now and has nothing to ask for."""
        return self._starving_now > 0

    @property
    def all_wait(self) -> bool:
        """Whether no lane has anything to ask for: only settling brings the crawl on."""
        return self._waiting >= self._at_work

    def hungry(self) -> Iterator[DomainWorker]:
        """Yield the lanes that want more pages."""
        return (lane for lane in self.lanes.values() if lane.wants_more(FEED // 5))

    def settled(self, visit: Visit) -> None:
        """Note that an attempt's result is in the database."""
        self._limits.ended(visit.attempt)
        lane = self.find(visit.attempt, visit.token)
        if lane is not None:
            lane.unsettled -= 1
            lane.holding.discard(visit.attempt.id)

    def renewed(self, leases: Mapping[int, int], *, lease_until: float) -> dict[int, int]:
        """Take the tokens that are still ours; a lane that is not among them has lost its domain.

        Return those that no lane works on: leased without our hearing of it, because the answer was lost.
        """
        for domain_id, lane in list(self.lanes.items()):
            if leases.get(domain_id) == lane.lease.token:
                lane.pace.lease_until = lease_until
            else:
                self.lose(lane)
        return {domain_id: token for domain_id, token in leases.items() if domain_id not in self.lanes}

    def lose(self, lane: DomainWorker) -> None:
        """Stop working on a domain that another process holds now; a visitor who waits for its turn gets none."""
        lane.lost = True
        lane.pace.lease_until = -math.inf
        self._stop(lane)

    def expire(self, moment: float) -> None:
        """Break off requests whose lease cannot be relied on until this moment (monotonic).

        Nobody else need have taken the domain yet: results are still offered, and the lane ends as any other.
        """
        for lane in self.lanes.values():
            if lane.working and lane.pace.lease_until <= moment:
                _log.warning("crawl.lease_expires", domain=lane.lease.domain)
                self._stop(lane)

    def awaits_word(self, now: float) -> bool:
        """Return whether a lane ended with its lease and nobody has told us yet whose the domain is."""
        return any(lane.pace.lease_until <= now and not lane.lost for lane in self.ended)

    def _stop(self, lane: DomainWorker) -> None:
        if (task := self._tasks.get(lane.lease.domain_id)) is not None and self.lanes[lane.lease.domain_id] is lane:
            task.cancel()

    def interrupt(self, *, everything: bool) -> None:
        """Stop the lanes: those that only wait at once, those in a request when it ends, or everything now."""
        self.stopping = True
        for domain_id, lane in self.lanes.items():
            lane.fed.set()
            if everything or lane.pace.waiting_since is None:
                self._tasks[domain_id].cancel()

    def releasable(self) -> list[DomainWorker]:
        """Return the ended lanes whose results are all settled, or not wanted any more, and that have no visitor."""
        return [lane for lane in self.ended if lane.lost or (lane.unsettled <= 0 and lane.visitors == 0)]

    def forget(self, lanes: Collection[DomainWorker]) -> None:
        """Forget lanes that were given back."""
        self.ended = [lane for lane in self.ended if lane not in lanes]
        for lane in lanes:
            self._by_lease.pop((lane.lease.domain_id, lane.lease.token), None)
            if self.lanes.get(lane.lease.domain_id) is lane:
                del self.lanes[lane.lease.domain_id]
                del self._tasks[lane.lease.domain_id]
            if self._names.get(lane.lease.domain) is lane:
                del self._names[lane.lease.domain]
        if lanes:
            self.look_again.set()

    def write_off(self) -> None:
        """Expect no more results: ended lanes may be given back as they are."""
        for lane in self.ended:
            lane.unsettled = 0

    async def finished(self) -> None:
        """Wait until no lane works any more."""
        while working := [task for task in self._tasks.values() if not task.done()]:
            await asyncio.wait(working)

    async def _run(self, lane: DomainWorker) -> None:
        self._at_work += 1
        try:
            while not self.stopping and (attempt := await self._next(lane)) is not None:
                if not await self._try(lane, attempt):
                    break
        except LeaseLost:
            # By our own clock only: nobody need have taken the domain, so what was fetched is still offered.
            _log.warning("crawl.lease_over", domain=lane.lease.domain)
        finally:
            self._at_work -= 1
            lane.working = False
            self.ended.append(lane)

    async def _next(self, lane: DomainWorker) -> Attempt | None:
        """Return the lane's next page; None if there is none to be had."""
        while not lane.queue:
            if lane.dry:
                return None
            lane.fed.clear()
            starves = lane.pace.next_at - self._crew.clock.monotonic() < self._crew.settings.engine.settle_s
            self._waiting += 1
            self._starving_now += starves
            try:
                if starves:
                    self._starving(lane)
                await lane.fed.wait()
            finally:
                self._waiting -= 1
                self._starving_now -= starves
            if self.stopping:
                return None
        return lane.queue.popleft()

    async def _try(self, lane: DomainWorker, attempt: Attempt) -> bool:
        """Work on one attempt; False if the lane should end."""
        await self._room()
        if self.stopping or not self._limits.may_start(attempt):
            lane.queue.appendleft(attempt)
            return False
        began = False
        try:
            began = await lane.work(attempt)
        except LeaseLost:
            raise
        except Unavailable as exc:  # the disk or the database, not the page: it stays open
            _log.warning("crawl.lane_waits", domain=lane.lease.domain, message=str(exc))
            lane.put_off_until = self._crew.clock.now() + timedelta(seconds=_PUT_OFF_S)
        except Exception as exc:
            # The one place where a lane survives what nobody foresaw; the page is closed and named.
            _log.exception("crawl.lane_failed", url=attempt.url)
            lane.give_up(attempt, "internal_error", repr(exc)[:500])
            began = True
        finally:
            self._limits.answered()
            if not began:
                self._limits.ended(attempt)
        if not began:
            lane.queue.appendleft(attempt)
        return began and lane.put_off_until is None


def release(crew: CrawlContext, lane: DomainWorker) -> DomainUpdate:
    """Return what to write when a lane's domain is given back."""
    now = crew.clock.now()
    wait = max(0.0, lane.pace.next_at - crew.clock.monotonic())
    next_allowed = now + timedelta(seconds=wait)
    if lane.put_off_until is not None:
        next_allowed = max(next_allowed, lane.put_off_until)
    return lane.manners.update(next_allowed_at=next_allowed)


def untold(lanes: Iterable[DomainWorker], updates: Iterable[DomainUpdate]) -> None:
    """Take back updates that were not written: what was learned is news again."""
    for lane, update in zip(lanes, updates, strict=True):
        lane.manners.told_to_rest(is_busy=False)
        for state in update.robots:
            if lane.manners.robots.get(state.origin) is state:
                lane.manners.learn(state)
