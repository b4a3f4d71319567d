"""Running totals of one process, and its slow domains with the reasons; written with each settle, never ahead of it."""

from __future__ import annotations

import asyncio
import math
from collections import Counter, deque
from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from holdfast.clock import Clock
from holdfast.db.raw import Transaction
from holdfast.jobs import execution_queries
from holdfast.jobs.execution_queries import from_json
from holdfast.processes.owners import OwnerProcess
from holdfast.sources.plan import CrawlPlan
from holdfast.types import REDIRECTED, Attempt, DomainChange, Outcome, UrlKind, Visit
from holdfast.values import dataclass
from holdfast.wiring import Runtime

_STEP_S = 0.05
# Each class of the histogram is a quarter wider than the previous one: that is the precision of percentiles.
_GROWTH = 1.25
_CLASSES = 60


class LagMeter:
    """Event loop lag since the start of a process, in milliseconds; uses a few hundred bytes however long it runs."""

    def __init__(self) -> None:
        self._classes = [0] * _CLASSES
        self._count = 0
        self.worst_ms = 0.0

    async def watch(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + _STEP_S
            await asyncio.sleep(_STEP_S)
            self.note(loop.time() - due)

    def note(self, late_s: float) -> None:
        """Count one lag, and the samples that were missed meanwhile."""
        # Count a stall of a second as twenty slow samples, not one: otherwise a blocked loop would look better.
        while True:
            late_ms = max(late_s, 0.0) * 1000.0
            self.worst_ms = max(self.worst_ms, late_ms)
            self._classes[min(int(math.log(late_ms + 1.0, _GROWTH)), _CLASSES - 1)] += 1
            self._count += 1
            late_s -= _STEP_S
            if late_s <= 0:
                return

    def percentile(self, share: float) -> float:
        """Return the lag below which this share of samples stays; too high by at most a quarter and 1 ms."""
        left = math.ceil(self._count * share)
        for number, count in enumerate(self._classes):
            left -= count
            if left <= 0:
                return float(min(_GROWTH ** (number + 1) - 1.0, self.worst_ms))
        return self.worst_ms

    def figures(self) -> list[float]:
        """Return the median, 99th percentile and maximum lag, as written to the database."""
        return [round(self.percentile(0.5), 1), round(self.percentile(0.99), 1), round(self.worst_ms, 1)]


_RATE_S = 10.0


# Use plain integers instead of a metrics library: this runs for every page.
class CrawlProgress:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._samples: deque[tuple[float, int]] = deque([(clock.monotonic(), 0)])
        self.pages = 0
        """Pages captured: attempts of kind page that ended well and did not only lead elsewhere."""
        self.requests = 0
        self.wire_bytes = 0
        self.outcomes: Counter[str] = Counter()
        self.retries = 0
        self.refused = 0
        """Results that came after the lease was gone."""
        self.state = "running"
        self.trouble: str | None = None
        """What keeps it from going on, in words, with what helps."""
        self.storage_refused_at = -math.inf
        """When the disk last did not take the body of an answer, or the database results, for want of room
        (monotonic)."""
        self.active_domains = 0
        self.slow: list[dict[str, Any]] = []
        self.lag = LagMeter()

    def asked(self, wire_bytes: int) -> None:
        self.requests += 1
        self.wire_bytes += wire_bytes

    def settled(self, visits: Iterable[Visit], *, refused: int) -> None:
        # Skip those: another process holds the domain by now, settles the attempt itself, and counts it.
        tally = self._with(visits, refused)
        self.pages, self.retries, self.refused, self.outcomes = tally

    def fetched_again(self) -> None:
        """Uncount a captured page that is fetched once more: it counts when that is settled."""
        self.pages -= 1
        self.outcomes[Outcome.SUCCESS.value] -= 1

    def _with(self, visits: Iterable[Visit], refused: int) -> tuple[int, int, int, Counter[str]]:
        """Return pages, retries, rejected results and outcomes as they will be after these visits are settled."""
        pages, retries, outcomes = self.pages, self.retries, Counter(self.outcomes)
        for visit in visits:
            if visit.retry_at is not None:
                retries += 1
                continue
            outcomes[visit.outcome.value] += 1
            is_page = visit.attempt.kind is UrlKind.PAGE and visit.reason != REDIRECTED
            pages += is_page and visit.outcome is Outcome.SUCCESS
        return pages, retries, self.refused + refused, outcomes

    def _rate(self) -> float:
        """Return pages per second over the last ten seconds, and record a sample."""
        now = self._clock.monotonic()
        while len(self._samples) > 1 and now - self._samples[1][0] >= _RATE_S:
            self._samples.popleft()
        since, pages = self._samples[0]
        self._samples.append((now, self.pages))
        return round((self.pages - pages) / (now - since), 2) if now > since else 0.0

    def counts(self, visits: Iterable[Visit] = (), *, refused: int = 0) -> dict[str, Any]:
        """Return the totals to write to the database together with these visits."""
        pages, retries, refusals, outcomes = self._with(visits, refused)
        return {
            "pages": pages,
            "requests": self.requests,
            "bytes": self.wire_bytes,
            "outcomes": dict(outcomes),
            "retries": retries,
            "refused": refusals,
            "state": self.state,
            "trouble": self.trouble,
            "active_domains": self.active_domains,
            "pages_s": self._rate(),
            "slow": self.slow,
            "loop_lag_ms": self.lag.figures(),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class CrawlEvent:
    stop: str | None = None
    """`drain`, `cancel` or None."""
    other_pages: int = 0
    other_bytes: int = 0
    """Bytes that the other processes of this execution have settled."""
    landing: tuple[str, ...] = ()
    """URLs where seeds landed, as seen by any process."""
    exclusions: tuple[str, ...] = ()
    """Exclude rules that an operator has added since the crawl started."""
    is_paused: bool = False
    """Whether an operator has paused the run."""
    changes: tuple[DomainChange, ...] = ()
    """Domains that an operator changed recently; each is repeated for a while."""


# Heartbeat interval of a process: each heartbeat is a commit, and two minutes of silence are allowed.
_BEAT_S = 5.0
# How long the commit of an operator's change may take and still be noticed.
_OVERLAP = timedelta(seconds=30)


class RowControl:
    """Messages between this process and others, by the execution's rows; use only on the database thread."""

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
        """Store the URL where a seed landed for the next `write_landings`; callable from any thread."""
        self._landed.append(url)

    def write_landings(self) -> None:
        """Add landing URLs to the execution's stored plan, for the other processes and for a resumption.

        Must happen before anything found there is settled.
        """
        # Other threads may add one meanwhile: remove only those that were written.
        fresh = list(self._landed)
        if not fresh:
            return
        with self._runtime.raw_db.write() as tx:
            execution_queries.add_landing(tx, self._runtime.raw_db.dialect, execution_id=self._execution_id, urls=fresh)
        for _ in fresh:
            self._landed.popleft()


# Assumed size of a response before the first one.
_UNKNOWN_BYTES = 64 * 1024


class CrawlLimits:
    """Limits checked before each page; exact in one process, off by the running requests of others in several."""

    def __init__(self, plan: CrawlPlan, progress: CrawlProgress, *, ends_at: float | None, processes: int = 1) -> None:
        self._plan, self._progress, self.processes = plan, progress, processes
        self._ends_at = ends_at
        """Monotonic moment at which `--max-time` is over."""
        self._paused_at: float | None = None
        self._others = CrawlEvent()
        self._under_way = 0
        self._asking = 0
        """Attempts that were started and have not been answered."""

    def take_news(self, news: CrawlEvent) -> None:
        self._others = news

    def pause(self, now: float) -> None:
        """Stop the clock of the time limit: a pause does not count."""
        if self._paused_at is None:
            self._paused_at = now

    def resume(self, now: float) -> None:
        if self._paused_at is not None and self._ends_at is not None:
            self._ends_at += now - self._paused_at
        self._paused_at = None

    def may_start(self, attempt: Attempt) -> bool:
        """Return whether this attempt may be requested now, and count it as running until `answered`."""
        if self.bytes_reached() or (attempt.kind is UrlKind.PAGE and self.pages_reached()):
            return False
        self._under_way += attempt.kind is UrlKind.PAGE
        self._asking += 1
        return True

    def answered(self) -> None:
        """Record that a started attempt sends no more requests: its bytes are counted."""
        self._asking -= 1

    def bytes_reached(self) -> bool:
        """Return whether the byte limit is reached, or may be by running requests: the last ones are sent one by
        one.
        """
        limit, progress = self._plan.max_bytes, self._progress
        if limit is None:
            return False
        # The size of a response is known only on arrival. So no request starts that would exceed the limit if all
        # running ones had the average size so far: only larger responses let a crawl exceed it.
        if not self._asking:
            return self._bytes >= limit
        each = progress.wire_bytes / progress.requests if progress.requests else _UNKNOWN_BYTES
        expected = each * (self._asking + 1) * self.processes  # the others are as busy as we are
        return self._bytes + expected > limit

    @property
    def _bytes(self) -> int:
        return self._others.other_bytes + self._progress.wire_bytes

    def ended(self, attempt: Attempt) -> None:
        """Record that a started attempt is settled or put back."""
        if attempt.kind is UrlKind.PAGE:
            self._under_way -= 1

    def pages_reached(self) -> bool:
        """Return whether the page limit is reached, counting running pages."""
        limit = self._plan.max_pages
        return limit is not None and self._others.other_pages + self._progress.pages + self._under_way >= limit

    def pages_done(self) -> bool:
        """Return whether the page limit is reached by captured pages alone: no more pages will be requested."""
        limit = self._plan.max_pages
        return limit is not None and self._others.other_pages + self._progress.pages >= limit

    def over(self, now: float) -> str | None:
        """Return the limit that ends the crawl now, or None; always None while paused."""
        if self._paused_at is not None:
            return None
        if self._ends_at is not None and now >= self._ends_at:
            return "max_time"
        limit = self._plan.max_bytes
        if limit is not None and self._bytes >= limit:
            return "max_bytes"
        return None
