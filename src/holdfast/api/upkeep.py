"""Background work of the archive: classifying, updating the search index, comparing captures, checking alerts."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event, Thread

from sqlalchemy.exc import SQLAlchemyError

from holdfast import log
from holdfast.changes.compute import compute_pending
from holdfast.errors import HoldfastError
from holdfast.jobs.alerts import look_for_alerts
from holdfast.noise.classifier import judge_pending
from holdfast.search.directory import IndexBusy
from holdfast.search.linked_hosts import refresh_linked_hosts
from holdfast.search.outbox import drain
from holdfast.search.signals import refresh
from holdfast.wiring.archive import Archive
from holdfast.withdrawals.viewers import EVERYTHING, seen_by

_REST_S = 2.0
_DRAIN_S = 5.0
_EVENTS = 200
_JUDGED = 500
# Seconds between two checks whether the link signals are due.
_LOOK_S = 60.0
_FEW_PAGES = 50_000
_log = log.get()


class Upkeep:
    """A thread that does pending work in small steps until it is closed."""

    def __init__(self, archive: Archive, *, rest_s: float = _REST_S) -> None:
        self._archive, self._rest_s, self._ending = archive, rest_s, Event()
        self._looked_at: float | None = None
        self._judged_at: float | None = None
        self._thread = Thread(target=self._run, name="upkeep", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """Stop after the current step; does nothing if it was never started."""
        self._ending.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        clock = self._archive.clock
        while not self._ending.is_set():
            began = clock.monotonic()
            more = self.step()
            self._ending.wait(self.rest_s(clock.monotonic() - began, more=more))

    def rest_s(self, took_s: float, *, more: bool) -> float:
        # Requests share this process and its interpreter: while work is pending, leave them at least half of the time.
        return took_s if more else self._rest_s

    def step(self) -> bool:
        """Do one step of the pending work; return whether more is pending. Failures are logged and retried later."""
        with seen_by(EVERYTHING):
            return self._step()

    def _step(self) -> bool:
        archive = self._archive
        more = self._tried(
            "noise",
            lambda: (
                not judge_pending(
                    archive.database, archive.clock, most=_JUDGED, is_stopping=self._ending.is_set
                ).finished
            ),
        )
        more |= self._tried(
            "search",
            lambda: (
                not drain(
                    archive.database,
                    archive.home,
                    archive.clock,
                    limit_s=_DRAIN_S,
                    is_stopping=self._ending.is_set,
                ).finished
            ),
        )
        if archive.settings.api.changes and not self._ending.is_set():
            more |= self._tried(
                "changes",
                lambda: compute_pending(archive.database, archive.clock, max_events=_EVENTS).events >= _EVENTS,
            )
        if not more and not self._ending.is_set():
            self._tried("signals", self._signals)
        self._tried("alerts", self._alerts)
        return more

    def _alerts(self) -> bool:
        """Check the alerts: the worker that would report a problem may be the one that died."""
        archive, now = self._archive, self._archive.clock.monotonic()
        every_s = archive.settings.timings.jobs_metrics_s
        if self._judged_at is None or now - self._judged_at >= every_s:
            self._judged_at = now
            look_for_alerts(archive.database, archive.clock, every_s=every_s)
        return False

    def _signals(self) -> bool:
        """Compute link signals of pages, if no worker does and there are few enough to do it beside requests."""
        archive, now = self._archive, self._archive.clock.monotonic()
        if self._looked_at is not None and now - self._looked_at < _LOOK_S:
            return False
        self._looked_at = now
        refresh_linked_hosts(
            archive.database, archive.home, archive.clock, limit_s=_DRAIN_S, is_stopping=self._ending.is_set
        )
        return refresh(archive.database, archive.home, archive.clock, most=_FEW_PAGES, is_stopping=self._ending.is_set)

    def _tried(self, what: str, work: Callable[[], bool]) -> bool:
        try:
            return work()
        except IndexBusy:
            return False
        except (HoldfastError, SQLAlchemyError, OSError) as exc:
            _log.warning("upkeep.failed", step=what, message=str(exc).partition("\n")[0])
            return False
        except Exception:
            # If the thread ended here, no request would notice, and everything would silently become outdated.
            _log.exception("upkeep.failed", step=what)
            return False
