"""Writes finished work to the database periodically: settles, releases domains, and supplies workers with pages.

Data the database rejects is stored and retried: results, facts about domains, and domains to release.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from typing import TypeVar

from holdfast import log
from holdfast.clock import Clock
from holdfast.config import Settings
from holdfast.crawl.domain_worker import DomainWorker
from holdfast.crawl.domains import LINGER_S, REFILL, LeasedDomains
from holdfast.crawl.outcomes import PageUnderWay
from holdfast.crawl.paced_client import CaptureHistory
from holdfast.crawl.progress import CrawlProgress, RowControl
from holdfast.crawl.warc_output import WarcOutput
from holdfast.errors import NoSpace, Unavailable
from holdfast.failpoints import reach
from holdfast.frontier import Frontier, Settled
from holdfast.types import Attempt, DomainLease, DomainUpdate, FoundUrl, Outcome, Visit
from holdfast.values import dataclass


@dataclass(slots=True, kw_only=True)
class FrontierSession:
    frontier: Frontier
    originals: CaptureHistory
    clock: Clock
    """The database's clock: written times are compared with leases and read on other machines."""
    execution_id: int
    owner_id: int

    def lease(self, *, domains: int) -> list[DomainLease]:
        """Lease due domains, with their first pages and the history of those pages."""
        leases = self.frontier.lease(self.execution_id, self.owner_id, domains=domains, pages=REFILL)
        reach("after_lease")
        self.originals.learn(attempt for lease in leases for attempt in lease.attempts)
        return leases

    def add(self, found: Sequence[FoundUrl]) -> None:
        self.frontier.add(self.execution_id, found)

    def refill(self, wanting: Iterable[tuple[DomainLease, Collection[int]]]) -> list[list[Attempt]]:
        """Return more pages of each lease, except those its worker already holds; none for a lost lease."""
        more = [
            list(self.frontier.refill(self.execution_id, lease.domain_id, lease.token, limit=REFILL, holding=holding))
            for lease, holding in wanting
        ]
        self.originals.learn(attempt for attempts in more for attempt in attempts)
        return more

    def release(self, updates: Sequence[DomainUpdate]) -> None:
        self.frontier.release(self.execution_id, self.owner_id, updates)

    def close_domain(self, domain_id: int, token: int, outcome: Outcome, reason: str) -> int:
        """Close some open attempts of a domain; return 0 if none are open or another process has leased it."""
        # Compare the token: after a long pause of this process another one may be crawling the domain.
        return self.frontier.close_domain(self.execution_id, domain_id, outcome=outcome, reason=reason, token=token)


class PendingResults:
    """Pages in the writer thread, results waiting for the database, and the totals after they are settled.

    `forget` is called with the URLs found by a page whose result was rejected.
    """

    def __init__(
        self,
        session: FrontierSession,
        output: WarcOutput,
        progress: CrawlProgress,
        control: RowControl,
        *,
        forget: Callable[[Iterable[FoundUrl]], None],
    ) -> None:
        self._session, self._output = session, output
        self.forget = forget
        """Forgets URLs that were found but did not get into the database, so that they may be found again."""
        self.progress, self.control = progress, control
        self.read_settled: Callable[[Sequence[Visit]], frozenset[int]] = lambda _visits: frozenset()
        """Called with settled visits after the commit; returns domains with new pages. Set where feeds are read."""
        self.offer: Callable[[Sequence[FoundUrl]], object] = session.add
        """Adds the sitemaps named by robots files; called on the database thread."""
        self.writing: dict[int, PageUnderWay] = {}
        """Pages that the writer thread has, by number: each is finished once, whichever thread says so first."""
        self.visits: list[Visit] = []
        self.links = 0
        """Addresses that they found."""
        self._offered: set[int] = set()
        """Attempts of a batch whose settle raised: it may have been written all the same."""

    @property
    def is_empty(self) -> bool:
        return not self.writing and not self.visits

    def rotate(self) -> None:
        """Seal the WARC file if it is full, old or idle; call only on the writer thread."""
        self._output.rotate()

    def add(self, visit: Visit) -> None:
        self.visits.append(visit)
        self.links += len(visit.found)

    def take(self, limit: int) -> list[Visit]:
        """Remove and return the next batch; the rest stays."""
        batch, self.visits = self.visits[:limit], self.visits[limit:]
        self.links -= sum(len(visit.found) for visit in batch)
        return batch

    def give_back(self, batch: Sequence[Visit]) -> None:
        """Put a batch that could not be settled back in front."""
        self.visits[:0] = batch
        self.links += sum(len(visit.found) for visit in batch)

    @property
    def has_news(self) -> bool:
        """Whether a result found a URL that may be new to the frontier."""
        return self.links > 0

    def settle(self, batch: Sequence[Visit], updates: Sequence[DomainUpdate]) -> Settled:
        """Sync the WARC file, then settle one batch; runs on the database thread."""
        # Write it before settling URLs found there: a resumed run would not follow them without knowing the landing.
        self.control.write_landings()
        if batch:
            reach("before_sync")
            # Write the bytes first: after a power loss no row may refer to a missing record.
            self._output.sync()
            reach("after_sync")
        session, offered = self._session, self._offered

        def counted(refused: Sequence[Visit], repeated: Sequence[Visit]) -> list[Visit]:
            """Return the visits that count: those written now, or by an earlier settle whose response was lost."""
            # An operator or a limit closed it meanwhile and counted it.
            left_out = {id(visit) for visit in refused}
            left_out |= {id(visit) for visit in repeated if visit.attempt.id not in offered}
            first: dict[int, Visit] = {}
            for visit in batch:
                first.setdefault(visit.attempt.id, visit)
            return [visit for visit in first.values() if id(visit) not in left_out]

        try:
            settled = session.frontier.settle(
                session.execution_id,
                session.owner_id,
                batch,
                updates,
                counts=lambda refused, repeated: self.progress.counts(counted(refused, repeated), refused=len(refused)),
            )
            reach("after_commit")
            refused = {id(visit) for visit in settled.refused}
            read = self.read_settled([visit for visit in batch if id(visit) not in refused])
        except BaseException:
            self._offered = offered | {visit.attempt.id for visit in batch}
            raise
        settled = replace(settled, added=settled.added | read)
        # Check only now: a limit that counts pages which are not in the database yet would close others for them.
        self.progress.settled(counted(settled.refused, settled.repeated), refused=len(settled.refused))
        for visit in (*settled.refused, *(one for one in settled.repeated if one.attempt.id not in offered)):
            self.forget((*visit.found, *visit.shallower))
        self._offered = set()
        return settled


T = TypeVar("T")


class DatabaseThread:
    """Runs calls one after another; results return to the loop in the same order."""

    def __init__(self) -> None:
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="database")

    async def run(self, call: Callable[[], T]) -> T:
        """Run a call on this thread and return its result; use from the event loop."""
        return await asyncio.get_running_loop().run_in_executor(self._executor, call)

    def wait(self, call: Callable[[], T]) -> T:
        """Run a call on this thread and return its result; use from threads other than the event loop's."""
        return self._executor.submit(call).result()

    def close(self) -> None:
        """Finish the submitted calls, and end."""
        self._executor.shutdown(wait=True)


_log = log.get()
_SOON_S = 0.1
"""Shortest time in seconds between two settles triggered by a worker without pages."""
# Pause after the database was unavailable: do not flood a server that is coming back.
_AGAIN_S = 0.5
# Share of a lease, usually 5 s, between two checks whether a feed poll waits for one of our domains (decision 0017).
_WAY_SHARE = 1 / 12
# How long such a domain is left to the poll, which searches for domains at least twice a second.
_ASIDE_S = 3.0
# Write totals at least this often, even if nothing was settled: `holdfast status` reads them.
_REPORT_S = 1.0


class ResultSettler:
    """Settles about every `settle_pages` attempts or `settle_s` seconds, whichever comes first."""

    def __init__(
        self,
        session: FrontierSession,
        results: PendingResults,
        leased_domains: LeasedDomains,
        database: DatabaseThread,
        settings: Settings,
        *,
        makes_way: bool,
    ) -> None:
        """`makes_way` says whether to give up domains that a feed poll waits for."""
        self._session, self._results, self._leased_domains = session, results, leased_domains
        self._database, self._settings, self._clock, self._makes_way = database, settings, session.clock, makes_way
        self.due = asyncio.Event()
        """Set to settle now."""
        self._turn = asyncio.Lock()
        self.patient_since = self._clock.now()
        """From when on it counts how long a domain is away."""
        self._settled_at = self._looked_at = 0.0
        self._soon: asyncio.TimerHandle | None = None
        self._sitemaps: list[FoundUrl] = []
        self.additions = 0
        """How many settles have added something."""
        self.settled: Callable[[], None] = lambda: None
        """Called after each batch, on the loop; set by the engine."""
        self.landed: Callable[[Iterable[str]], None] = lambda _places: None
        """Called with the places where seeds landed, before a page is asked for that may be one; set by the engine."""

    def soon(self) -> None:
        """Settle earlier than usual: a worker could make a request now but has no page."""
        if self._soon is None:
            wait = max(0.0, self._settled_at + _SOON_S - self._clock.monotonic())
            self._soon = asyncio.get_running_loop().call_later(wait, self.due.set)

    async def run(self) -> None:
        """Settle until cancelled; waits for a database that is temporarily unavailable."""
        while True:
            # Avoid `wait_for`: in Python 3.11 it loses a cancellation if the event is set at the same moment.
            with suppress(TimeoutError):
                async with asyncio.timeout(self._settings.timings.crawl_settle_s):
                    await self.due.wait()
            self.due.clear()
            if self._soon is not None:
                self._soon.cancel()
                self._soon = None
            try:
                await self.settle()
            except Unavailable as exc:
                if isinstance(exc, NoSpace):
                    self._results.progress.storage_refused_at = self._clock.monotonic()
                _log.warning("crawl.settle_later", message=str(exc), waiting=len(self._results.visits))
                await asyncio.sleep(_AGAIN_S)

    async def settle(self) -> None:
        async with self._turn:
            added = await self._settle_batch()
            self.settled()
            added |= await self._add_sitemaps()
            self.additions += bool(added)
            self._leased_domains.note_new(added)
            await self._make_way()
            await self.release_ended()
            await self._refill(added)

    async def finish(self) -> None:
        """Settle and release everything left, as long as the database accepts it within the lease."""
        until = self._clock.monotonic() + self._settings.timings.lease_seconds
        while self._results.visits or self._leased_domains.ended:
            try:
                await self.settle()
                if not self._results.visits:  # the unsettled attempts were not written, and stay open
                    self._leased_domains.write_off()
            except Unavailable:
                if self._clock.monotonic() > until:
                    return
                await asyncio.sleep(0.2)

    async def _settle_batch(self) -> set[int]:
        """Settle finished attempts and write domain updates; return the domains with new pages."""
        batch = self._results.take(self._settings.timings.crawl_settle_pages)
        reporters = [worker for worker in self._leased_domains.workers.values() if worker.politeness.has_news]
        now = self._clock.monotonic()
        if not (batch or reporters or now - self._settled_at > _REPORT_S):
            return set()
        self._settled_at = now
        updates = [worker.update() for worker in reporters]
        try:
            settled = await self._database.run(lambda: self._results.settle(batch, updates))
        except BaseException:
            self._results.give_back(batch)
            _take_back(reporters, updates)
            raise
        for visit in batch:
            self._leased_domains.note_ended(visit.attempt, visit.token)
        for visit in settled.refused:
            if (worker := self._leased_domains.find(visit.attempt, visit.token)) is not None:
                self._leased_domains.lose(worker)
        return set(settled.added)

    async def _add_sitemaps(self) -> set[int]:
        """Add the sitemaps that robots files named since the last call; return the domains with new pages."""
        workers = [worker for worker in self._leased_domains.workers.values() if worker.gate.sitemaps]
        self._sitemaps += [sitemap for worker in workers for sitemap in worker.gate.take_sitemaps()]
        if self._sitemaps:
            await self._database.run(lambda: self._results.offer(self._sitemaps))
            self._sitemaps = []
        return {worker.lease.domain_id for worker in workers}

    async def _make_way(self) -> None:
        # A poll is short, a crawl may last for days.
        now = self._clock.monotonic()
        held = {
            worker.lease.domain_id: worker
            for worker in self._leased_domains.workers.values()
            if worker.working and not worker.dry
        }
        if not self._makes_way or not held or now - self._looked_at < self._settings.timings.lease_seconds * _WAY_SHARE:
            return
        self._looked_at = now
        for domain_id in await self._database.run(lambda: self._session.frontier.wanted(held)):
            _log.info("crawl.makes_way", domain=held[domain_id].lease.domain)
            held[domain_id].make_way()

    async def release_ended(self) -> None:
        """Release the domains of ended workers; they are forgotten only after that is written."""
        ready = self._leased_domains.releasable()
        ours = [worker for worker in ready if not worker.lost]
        # Do this before the first await: a visitor that comes later would request a domain of another process.
        for worker in ours:
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
        updates = [worker.update() for worker in workers]
        try:
            await self._database.run(lambda: self._give_back(workers, updates))
        except BaseException:
            _take_back(workers, updates)
            raise

    def _give_back(self, workers: Sequence[DomainWorker], updates: Sequence[DomainUpdate]) -> None:
        self._session.release(updates)
        aside = [worker.lease.domain_id for worker in workers if worker.made_way]
        self._session.frontier.rest(self._session.execution_id, aside, seconds=_ASIDE_S)
        reach("after_release")

    def _gives_up(self, worker: DomainWorker) -> bool:
        until = worker.put_off_until
        if until is None:
            return False
        return worker.name_is_gone or worker.politeness.gives_up(next_try_at=until, since=self.patient_since)

    async def _close_domain(self, worker: DomainWorker) -> None:
        """Close the pages of a domain that stays unreachable; the next execution retries them."""
        lease, closed = worker.lease, 0
        # Close in batches: a domain may have a million pages, and no transaction may take minutes.
        while done := await self._database.run(
            lambda: self._session.close_domain(lease.domain_id, lease.token, Outcome.FAILED, "domain_unreachable")
        ):
            closed += done
        why = "its name does not exist" if worker.name_is_gone else "it could not be reached"
        _log.warning("crawl.domain_unreachable", domain=worker.lease.domain, closed=closed, why=why)

    def _take_more(
        self, wanting: Sequence[tuple[DomainLease, Collection[int]]]
    ) -> tuple[list[list[Attempt]], tuple[str, ...]]:
        """Return more pages of each lease, and seed redirect targets if one of the pages may be such a target."""
        more = self._session.refill(wanting)
        # As with a lease, read the landings of seeds that other processes found: they widen the scope.
        has_landing = any(_is_landing(attempt) for attempts in more for attempt in attempts)
        return more, self._results.control.read_news().landing if has_landing else ()

    async def _refill(self, added: set[int]) -> None:
        now = self._clock.monotonic()
        workers = [
            worker
            for worker in self._leased_domains.wanting()
            if worker.should_look(now, new=worker.lease.domain_id in added)
        ]
        if workers:
            # Read here, on the loop, what each worker holds: it changes with every page that starts or is settled.
            wanting = [(worker.lease, worker.holding) for worker in workers]
            more, landing = await self._database.run(lambda: self._take_more(wanting))
            self.landed(landing)
            for worker, attempts in zip(workers, more, strict=True):
                worker.refill(attempts, limit=REFILL)
        nothing_under_way = self._results.is_empty
        for worker in self._leased_domains.wanting():
            if worker.is_done(now, LINGER_S if not nothing_under_way else 0.0):
                worker.dry = True
                worker.refilled.set()
                # The worker ends now, and its domain can be released: at once if nothing else is to be settled first.
                self.due.set() if nothing_under_way else self.soon()


def _is_landing(attempt: Attempt) -> bool:
    """Return whether a page may be the redirect target of a seed."""
    return attempt.hops > 0 and attempt.depth == 0


def _take_back(workers: Iterable[DomainWorker], updates: Iterable[DomainUpdate]) -> None:
    for worker, update in zip(workers, updates, strict=True):
        worker.politeness.take_back(update)
