"""Supervises a crawl process: pulse, leases, disk, limits, and messages from other processes."""

from __future__ import annotations

import asyncio
import math
import os
import threading
import time
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any

from holdfast import log
from holdfast.crawl.domain_worker import DomainWorker
from holdfast.crawl.engine import CrawlEngine, ProcessEnding
from holdfast.db.raw import last_refusal
from holdfast.errors import HoldfastError, Unavailable
from holdfast.failpoints import reach
from holdfast.processes.disk import is_low, shortage
from holdfast.processes.runfile import RunFile

_log = log.get()
_PULSE_S = 0.25
_DISK_S = 10.0
# Silence of our own loop that a busy machine cannot explain.
_ASLEEP_S = 1.0
_SLOW_DOMAINS = 5
_REFUSED_S = 2.0
"""Pause of fetching in seconds after the disk rejected a body or the database rejected results."""


def end_with_parent(parent: int, *, patience_s: float) -> None:
    """Ensure that this process does not outlive its supervisor by more than `patience_s`.

    The rest is cleaned up as after a kill.
    """

    def watch() -> None:
        never = threading.Event()
        while os.getppid() == parent:
            never.wait(_PULSE_S)
        never.wait(patience_s)
        os._exit(1)

    # Use a separate thread for the whole life of the process: the loop may hang, and ends before the process.
    threading.Thread(target=watch, name="parent-watch", daemon=True).start()


class ProcessWatch:
    def __init__(
        self, run: RunFile, folder: Path, *, parent: int, spent: Callable[[], float] = time.process_time
    ) -> None:
        """`spent` returns the CPU seconds used by this process."""
        self._spent = spent
        self._run, self._folder, self._parent = run, folder, parent
        self._is_orphan = False
        self._looked_at = self._awake_since = -math.inf
        """The last pulse, and the one after this process stood still last (monotonic)."""
        self._spent_s = 0.0

    @property
    def watches(self) -> Sequence[Callable[[CrawlEngine], Coroutine[None, None, None]]]:
        """Pulse, renewal, messages and loop lag: coroutines that the engine runs beside its work."""
        return self._pulse, self._renew, self._read_news, lambda engine: engine.progress.lag.watch()

    async def _pulse(self, engine: CrawlEngine) -> None:
        """Record that the loop is alive; check writer, disk and limits. Never waits for the database."""
        clock, looked_at = engine.clock, -_DISK_S
        while True:
            reach("loop")
            now = clock.monotonic()
            self._run.tick(now)
            self._note_sleep(now)
            engine.press(now + _PULSE_S)  # end now what would exceed the limit at the next check
            if os.getppid() != self._parent:
                self._leave(engine)
            is_due = now - looked_at >= _DISK_S
            if is_due or engine.progress.state == "no_space" or _is_full(engine, now):
                self._look_at_disk(engine)
            if is_due:  # not more often: a writer that waits for disk space starts nothing meanwhile
                looked_at = now
                engine.capture_writer.do(engine.results.rotate)
            if (limit := engine.limits.over(now)) is not None:
                engine.drain(_ending(engine, limit))
            self._look_at_writer(engine, now)
            engine.progress.active_domains = len(engine.leased_domains.workers)
            engine.progress.slow = slowest(engine, now)
            await asyncio.sleep(_PULSE_S)

    def _leave(self, engine: CrawlEngine) -> None:
        """Hand back the work: this process has no supervisor any more (`end_with_parent` ends it if this hangs)."""
        if not self._is_orphan:
            self._is_orphan = True
            _log.warning("crawl.orphaned")
        engine.hand_back()

    def _look_at_disk(self, engine: CrawlEngine) -> None:
        settings = engine.settings
        # The database and all data derived from captures are in the data directory, which may be another volume.
        low = next((place for place in (self._folder, settings.home) if is_low(place, settings.disk)), None)
        full = _is_full(engine, engine.clock.monotonic()) or low is not None
        progress = engine.progress
        place = low or self._folder
        # The database may be on another machine's disk, which these checks cannot see.
        refusal = last_refusal(settings.home) if full and low is None else None
        progress.trouble = (refusal.sentence() if refusal else shortage(place, settings.disk)) if full else None
        if full and progress.state == "running":
            progress.state = "no_space"
            _log.error("crawl.paused", reason="no_space", folder=str(place), message=progress.trouble)
        elif not full and progress.state == "no_space":
            progress.state = "running"
            _log.info("crawl.resumed", reason="space returned")
        engine.disk_is_full = full
        engine.look_for_room()

    def _look_at_writer(self, engine: CrawlEngine, now: float) -> None:
        if engine.capture_writer.join(0.0) and not engine.closing:
            raise HoldfastError("the writer thread has ended; the log says why")
        since = engine.capture_writer.parsing_since
        patience = engine.settings.timings.crawl_parse_s
        if since is None or engine.capture_writer.no_space.is_set():
            return
        # Do not give up a page because of time in which this process did not run.
        if now - max(since, self._awake_since) > patience:
            engine.replace_writer()

    def _note_sleep(self, now: float) -> None:
        """Detect a much delayed pulse: this process was stopped, or its machine suspended."""
        spent_s = self._spent()
        asleep_s = now - self._looked_at - (spent_s - self._spent_s)
        # Skip this if it was busy meanwhile: this detects a parser that blocks the loop for seconds.
        if asleep_s > _ASLEEP_S:
            self._awake_since = now
        self._looked_at, self._spent_s = now, spent_s

    async def _renew(self, engine: CrawlEngine) -> None:
        """Renew all leases of this process in one statement; workers check the expiry themselves."""
        while True:
            await asyncio.sleep(engine.settings.timings.lease_renew_s)
            asked_at = engine.clock.monotonic()
            try:
                leases = await engine.database.run(lambda: engine.session.frontier.renew(engine.session.owner_id))
                await engine.renewed({domain: token for domain, (token, _) in leases.items()}, asked_at=asked_at)
            except Unavailable as exc:
                _log.warning("crawl.renewal_failed", message=str(exc))

    async def _read_news(self, engine: CrawlEngine) -> None:
        """Read stops, pauses, the other processes' totals, seed redirects, and changes and exclusions by operators."""
        while True:
            try:
                news = await engine.database.run(engine.results.control.read_news)
            except Unavailable:
                await asyncio.sleep(1.0)
                continue
            engine.limits.take_news(news)
            engine.widen_scope(news.landing)
            engine.scope.exclude(news.exclusions)
            engine.hear(news.changes)
            engine.pause() if news.is_paused else engine.resume()
            if news.stop is not None:
                engine.drain()
            await asyncio.sleep(0.5)


def _ending(engine: CrawlEngine, limit: str) -> ProcessEnding:
    """Return the ending for a reached limit; if time runs out while the disk is full, the storage is the cause."""
    # At the time limit the remaining URLs are closed and the crawl counts as complete; here they stay open.
    waits = limit == ProcessEnding.MAX_TIME and engine.disk_is_full
    return ProcessEnding.STORAGE if waits else ProcessEnding(limit)


def _is_full(engine: CrawlEngine, now: float) -> bool:
    """Return whether a recent write of records, bodies or rows failed because the disk was full."""
    return engine.capture_writer.no_space.is_set() or now - engine.progress.storage_refused_at < _REFUSED_S


def slowest(engine: CrawlEngine, now: float) -> list[dict[str, Any]]:
    rows = [row for worker in engine.leased_domains.workers.values() if (row := _why(worker, now)) is not None]
    return sorted(rows, key=lambda row: -row["seconds"])[:_SLOW_DOMAINS]


def _why(worker: DomainWorker, now: float) -> dict[str, Any] | None:
    since = worker.pace.waiting_since
    if since is not None and now - since > 2.0:
        return {
            "domain": worker.lease.domain,
            "seconds": round(now - since, 1),
            "why": f"waits for {worker.pace.requested_url}",
        }
    wait = worker.pace.next_at - now
    if wait > 2.0:
        return {"domain": worker.lease.domain, "seconds": round(wait, 1), "why": _why_later(worker, wait)}
    return None


def _why_later(worker: DomainWorker, wait: float) -> str:
    """Return why a domain is not requested yet: its Retry-After, its slow-down, the general delay, or a rest left
    by another process.
    """
    if worker.pace.is_resting:
        return "Retry-After"
    if (slow := worker.politeness.why_slow) is not None:
        return slow
    delay_s = worker.politeness.delay_s
    return f"{delay_s:g} s between requests" if wait <= delay_s + 1.0 else "rests, as noted by the last crawl"
