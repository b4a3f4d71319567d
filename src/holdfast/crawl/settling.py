"""Brings finished work into the database at its rhythm: settles, gives domains back, and feeds lanes that are hungry.

What the database does not take is kept and offered again: results, what was learned of domains, domains to give back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TypeVar

from holdfast import log
from holdfast.crawl.context import CrawlContext
from holdfast.crawl.domain_worker import DomainWorker
from holdfast.crawl.domains import FEED, LINGER_S, LeasedDomains, release, unreported
from holdfast.crawl.page_reading import sitemaps_of
from holdfast.crawl.progress import Control, CrawlProgress
from holdfast.crawl.warc_output import WarcOutput
from holdfast.errors import NoSpace, Unavailable
from holdfast.failpoints import reach
from holdfast.feeds.polling import FeedPolling
from holdfast.frontier import Frontier, Settled
from holdfast.types import Attempt, DomainUpdate, FoundUrl, Outcome, Visit


class PendingResults:
    """The batch that is being collected, and the totals that it will have made."""

    def __init__(
        self,
        frontier: Frontier,
        output: WarcOutput,
        progress: CrawlProgress,
        control: Control,
        *,
        execution_id: int,
        owner_id: int,
    ) -> None:
        self._frontier, self._output, self._progress, self._control = frontier, output, progress, control
        self.execution_id, self.owner_id = execution_id, owner_id
        self.feeds: FeedPolling | None = None
        """Set where feeds are polled or noted."""
        self.visits: list[Visit] = []
        self.links = 0
        """Addresses that they found."""
        self._counted: set[int] = set()

    def rotate(self) -> None:
        """Seal the WARC file if it is full, old or idle; belongs to the desk's thread."""
        self._output.rotate()

    def add(self, visit: Visit) -> None:
        """Take a finished attempt."""
        self.visits.append(visit)
        self.links += len(visit.found)

    def take(self, limit: int) -> list[Visit]:
        """Return the next batch; the rest stays."""
        batch, self.visits = self.visits[:limit], self.visits[limit:]
        self.links -= sum(len(visit.found) for visit in batch)
        return batch

    def give_back(self, batch: Sequence[Visit]) -> None:
        """Keep a batch that could not be settled, in front."""
        self.visits[:0] = batch
        self.links += sum(len(visit.found) for visit in batch)

    @property
    def has_news(self) -> bool:
        """Whether one of them found an address that the frontier may not know."""
        return self.links > 0

    def offer(self, sitemaps: Sequence[FoundUrl]) -> None:
        """Take the sitemaps that robots files name; runs on the database's thread."""
        if self.feeds is not None:
            self.feeds.offer(sitemaps)
        else:
            self._frontier.add(self.execution_id, sitemaps)

    def settle(self, batch: Sequence[Visit], updates: Sequence[DomainUpdate]) -> Settled:
        """Sync the WARC file, then settle one batch; runs on the database's thread.

        Where seeds landed is told before that: a resumption would not follow what was found there.
        """
        self._control.tell()
        if batch:
            reach("before_sync")
            self._output.sync()
            reach("after_sync")
            if self.feeds is not None:
                self.feeds.record_visits(batch)
        for visit in batch:
            if visit.attempt.id not in self._counted:
                self._counted.add(visit.attempt.id)
                self._progress.settled(visit)
        settled = self._frontier.settle(
            self.execution_id, self.owner_id, batch, updates, counts=self._progress.counts()
        )
        reach("after_commit")
        if self.feeds is not None:  # what their items added, they have added themselves
            told = {visit.attempt.domain_id for visit in batch if visit.listing is not None or visit.feeds}
            settled = replace(settled, added=settled.added | told)
        self._counted.clear()
        for visit in settled.refused:
            self._progress.unsettled(visit)
        return settled


T = TypeVar("T")


class DatabaseThread:
    """Runs calls one after the other; answers come back to the loop in the same order."""

    def __init__(self) -> None:
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="database")

    async def run(self, call: Callable[[], T]) -> T:
        """Do something there, from the loop, and return what it gives."""
        return await asyncio.get_running_loop().run_in_executor(self._executor, call)

    def wait(self, call: Callable[[], T]) -> T:
        """Do something there, from another thread than the loop's, and return what it gives."""
        return self._executor.submit(call).result()

    def close(self) -> None:
        """Finish what was handed over, and end."""
        self._executor.shutdown(wait=True)


_log = log.get()
_SOON_S = 0.1
"""Shortest time between two settles that a hungry lane may cause."""
_AGAIN_S = 0.5
"""Wait after the database was away: a server that comes back must not meet a crowd."""
_WAY_SHARE = 1 / 12
"""Share of a lease, 5 s mostly, between two looks whether a poll of feeds waits for what we hold (decision 0017)."""
_ASIDE_S = 3.0
"""How long such a domain is left to the other, who looks for it ten times a second."""
_SAY_S = 1.0
"""Totals are written at least this often, also when nothing was settled: `holdfast status` reads them."""


class ResultSettler:
    """The rhythm of one process: about `settle_pages` attempts or `settle_s` seconds, whichever comes first."""

    def __init__(
        self,
        crew: CrawlContext,
        frontier: Frontier,
        ledger: PendingResults,
        leased_domains: LeasedDomains,
        *,
        database: DatabaseThread,
        at_desk: Callable[[], int],
    ) -> None:
        self._crew, self._frontier, self._ledger, self._leased_domains = crew, frontier, ledger, leased_domains
        self._database, self._at_desk = database, at_desk
        self.due = asyncio.Event()
        """Set to settle now."""
        self._turn = asyncio.Lock()
        self._started_at = crew.clock.now()
        self._settled_at = self._looked_at = 0.0
        self._soon: asyncio.TimerHandle | None = None
        self._sitemaps: list[FoundUrl] = []
        self.additions = 0
        """How many settles have added something."""
        self.settled: Callable[[], None] = lambda: None
        """Called after each batch, on the loop; set by the engine."""

    def soon(self) -> None:
        """Settle before the usual time: a lane could ask now and has nothing to ask for."""
        if self._soon is None:
            wait = max(0.0, self._settled_at + _SOON_S - self._crew.clock.monotonic())
            self._soon = asyncio.get_running_loop().call_later(wait, self.due.set)

    async def run(self) -> None:
        """Settle for ever; a database that is away for a while is waited for."""
        while True:
            # Not `wait_for`: in Python 3.11 that forgets a cancellation if the event is set at the same moment.
            with suppress(TimeoutError):
                async with asyncio.timeout(self._crew.settings.engine.settle_s):
                    await self.due.wait()
            self.due.clear()
            if self._soon is not None:
                self._soon.cancel()
                self._soon = None
            try:
                await self.settle()
            except Unavailable as exc:
                if isinstance(exc, NoSpace):
                    self._crew.database_full_at = self._crew.clock.monotonic()
                _log.warning("crawl.settle_later", message=str(exc), waiting=len(self._ledger.visits))
                await asyncio.sleep(_AGAIN_S)

    async def settle(self) -> None:
        """Settle one batch, give back lanes that have ended, and feed those that are hungry."""
        async with self._turn:
            added = await self._settle_batch()
            self.settled()
            added |= await self._add_sitemaps()
            self.additions += bool(added)
            self._leased_domains.note_new(added)
            await self._make_way()
            await self._release()
            await self._feed(added)

    async def finish(self) -> None:
        """Settle and release all that is left, as long as the database takes it within the lease."""
        until = self._crew.clock.monotonic() + self._crew.settings.lease.seconds
        while self._ledger.visits or self._leased_domains.ended:
            try:
                await self.settle()
                if not self._ledger.visits:  # what is unsettled now was left on the desk, and stays open
                    self._leased_domains.write_off()
            except Unavailable:
                if self._crew.clock.monotonic() > until:
                    return
                await asyncio.sleep(0.2)

    async def _settle_batch(self) -> set[int]:
        """Settle what is finished and write what was learned; return the domains that have something new."""
        batch = self._ledger.take(self._crew.settings.engine.settle_pages)
        reporters = [worker for worker in self._leased_domains.workers.values() if worker.manners.has_news]
        now = self._crew.clock.monotonic()
        if not (batch or reporters or now - self._settled_at > _SAY_S):
            return set()
        self._settled_at = now
        updates = [release(self._crew, worker) for worker in reporters]
        try:
            settled = await self._database.run(lambda: self._ledger.settle(batch, updates))
        except BaseException:
            self._ledger.give_back(batch)
            unreported(reporters, updates)
            raise
        for visit in batch:
            self._leased_domains.settled(visit)
        for visit in settled.refused:
            self._crew.forget((*visit.found, *visit.shallower))
            if (worker := self._leased_domains.find(visit.attempt, visit.token)) is not None:
                self._leased_domains.lose(worker)
        return set(settled.added)

    async def _add_sitemaps(self) -> set[int]:
        """Add the sitemaps that robots files named since last time; return the domains that have something new."""
        workers = [worker for worker in self._leased_domains.workers.values() if worker.gate.sitemaps]
        self._sitemaps += [sitemap for worker in workers for sitemap in sitemaps_of(self._crew, worker.gate)]
        if self._sitemaps:
            await self._database.run(lambda: self._ledger.offer(self._sitemaps))
            self._sitemaps = []
        return {worker.lease.domain_id for worker in workers}

    async def _make_way(self) -> None:
        """Give up the domains that a poll of feeds waits for: it is short, a crawl may last for days."""
        now = self._crew.clock.monotonic()
        held = {
            worker.lease.domain_id: worker
            for worker in self._leased_domains.workers.values()
            if worker.working and not worker.dry
        }
        if self._crew.plan.polls or not held or now - self._looked_at < self._crew.settings.lease.seconds * _WAY_SHARE:
            return
        self._looked_at = now
        for domain_id in await self._database.run(lambda: self._frontier.wanted(held)):
            _log.info("crawl.makes_way", domain=held[domain_id].lease.domain)
            held[domain_id].make_way()

    async def _release(self) -> None:
        """Give back the domains of lanes that have ended; they are forgotten only when that is written."""
        ready = self._leased_domains.releasable()
        ours = [worker for worker in ready if not worker.lost]
        for worker in ours:  # before the first wait: who visits it from here on would ask a domain that is another's
            worker.leaving = True
        try:
            for worker in ours:
                if self._gives_up(worker):
                    await self._close_domain(worker)
            await self._release_all(ours)
        except BaseException:
            for worker in ours:
                worker.leaving = False
            raise
        self._leased_domains.forget(ready)

    async def _release_all(self, workers: Sequence[DomainWorker]) -> None:
        if not workers:
            return
        updates = [release(self._crew, worker) for worker in workers]
        try:
            await self._database.run(lambda: self._give_back(workers, updates))
        except BaseException:
            unreported(workers, updates)
            raise

    def _give_back(self, workers: Sequence[DomainWorker], updates: Sequence[DomainUpdate]) -> None:
        self._frontier.release(self._ledger.execution_id, self._ledger.owner_id, updates)
        aside = [worker.lease.domain_id for worker in workers if worker.made_way]
        self._frontier.rest(self._ledger.execution_id, aside, seconds=_ASIDE_S)
        reach("after_release")

    def _gives_up(self, worker: DomainWorker) -> bool:
        until = worker.put_off_until
        if until is None:
            return False
        return worker.name_is_gone or worker.manners.gives_up(next_try_at=until, since=self._started_at)

    async def _close_domain(self, worker: DomainWorker) -> None:
        """Close the pages of a domain that stays unreachable; the next execution tries again."""
        close = partial(
            self._frontier.close_domain,
            self._ledger.execution_id,
            worker.lease.domain_id,
            outcome=Outcome.FAILED,
            reason="domain_unreachable",
            token=worker.lease.token,  # after a long pause of this process another one may crawl it, and well
        )
        closed = 0
        while done := await self._database.run(close):
            closed += done
        why = "its name does not exist" if worker.name_is_gone else "it could not be reached"
        _log.warning("crawl.domain_unreachable", domain=worker.lease.domain, closed=closed, why=why)

    async def _feed(self, added: set[int]) -> None:
        """Bring more pages to the lanes that want some; end those for which nothing more can come."""
        now = self._crew.clock.monotonic()
        workers = [
            worker
            for worker in self._leased_domains.hungry()
            if worker.should_look(now, new=worker.lease.domain_id in added)
        ]
        if workers:
            for worker, attempts in zip(workers, await self._database.run(lambda: self._more(workers)), strict=True):
                worker.refill(attempts, limit=FEED)
        nothing_under_way = not self._at_desk() and not self._ledger.visits
        for worker in self._leased_domains.hungry():
            if worker.is_done(now, LINGER_S if not nothing_under_way else 0.0):
                worker.dry = True
                worker.fed.set()
                # It ends now, and its domain can go back: at once if nothing else is to be settled before the end.
                self.due.set() if nothing_under_way else self.soon()

    def _more(self, workers: Sequence[DomainWorker]) -> list[list[Attempt]]:
        """Return more pages for each lane, on the database's thread; none for a lane that has lost its lease."""
        more = [
            list(
                self._frontier.refill(
                    self._ledger.execution_id,
                    worker.lease.domain_id,
                    worker.lease.token,
                    limit=FEED,
                    holding=worker.holding,
                )
            )
            for worker in workers
        ]
        self._crew.originals.learn(attempt for attempts in more for attempt in attempts)
        return more
