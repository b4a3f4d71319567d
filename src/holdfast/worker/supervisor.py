"""Runs one execution with a few processes: starts them, replaces those that die or hang, and brings it to its end."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from dataclasses import replace
from types import FrameType

from holdfast import log
from holdfast.coordination.owners import Owner
from holdfast.coordination.runfile import RunFile
from holdfast.crawl.plan import CrawlPlan
from holdfast.crawl.seeds import seeds_of
from holdfast.db.engine import Database
from holdfast.errors import Unavailable
from holdfast.jobs import executions
from holdfast.jobs.executions import Begun
from holdfast.jobs.status import Status, read_status
from holdfast.types import Outcome
from holdfast.wiring import Ground
from holdfast.worker.child import Child, fresh_name
from holdfast.worker.discard import discard
from holdfast.worker.process import Assignment
from holdfast.worker.recovery import recover

_log = log.get()
_LOOK_S = 0.1
_SHOW_S = 0.5
_DEATHS = 8
"""Deaths of processes in a row, with nothing settled between, after which the execution fails."""
_LIMITS = ("max_pages", "max_bytes", "max_time")


class Supervisor:
    """The parent of one execution's processes."""

    def __init__(self, ground: Ground, database: Database, begun: Begun, plan: CrawlPlan, *, workers: int,
                 show: Callable[[Status], None]) -> None:  # fmt: skip
        self._ground, self._database, self._begun, self._plan = ground, database, begun, plan
        self._workers, self._show = workers, show
        self._children: list[Child] = []
        self._endings: list[str] = []
        self._stops = 0
        self._deaths = 0
        self._settled = -1
        self._started = ground.clock.monotonic()
        self._failure: str | None = None

    def run(self) -> Status:
        """Bring the execution to an end and return its last status."""
        ground = self._ground
        run = RunFile(ground.run_folder)
        owner = Owner(ground.hot, ground.clock, run=run, kind="supervisor", execution_id=self._begun.execution_id)
        before = {number: signal.signal(number, self._on_signal) for number in _SIGNALS}
        try:
            ground.frontier.add(self._begun.execution_id, seeds_of(self._plan))
            for _ in range(self._workers):
                self._start()
            self._watch()
            return self._conclude()
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
            for child in self._children:
                child.kill()
            owner.end()

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        self._stops += 1
        for child in self._children:
            child.stop()

    def _start(self) -> None:
        """Start one process; a new one continues where a dead one stopped."""
        settings, begun = self._ground.settings, self._begun
        used = begun.run_seconds + self._ground.clock.monotonic() - self._started
        left = None if self._plan.max_time_s is None else max(0.0, self._plan.max_time_s - used)
        assignment = Assignment(
            plan=replace(self._plan, landing=begun.landing).to_json(), execution_id=begun.execution_id,
            source_code=begun.source_code, output_dir=str(begun.output_dir), run_file=fresh_name(),
            processes=self._workers, seconds_left=left,
        )  # fmt: skip
        self._children.append(
            Child(
                assignment, environment={"HOLDFAST_HOME": str(settings.home.resolve()),
                                         "HOLDFAST_DATABASE_URL": settings.database},
                log_path=begun.output_dir / "crawl.log", run_folder=self._ground.run_folder,
                now=self._ground.clock.monotonic(),
            )
        )  # fmt: skip

    def _watch(self) -> None:
        """Look after the processes until none is left."""
        asked: str | None = None
        shown_at = 0.0
        while self._children:
            time.sleep(_LOOK_S)
            for child in list(self._children):
                self._look_at(child)
            if self._ground.clock.monotonic() - shown_at < _SHOW_S:
                continue
            shown_at = self._ground.clock.monotonic()
            try:
                status = read_status(self._database, self._ground.clock, self._begun.execution_id)
            except Unavailable:
                continue
            self._show(status)
            if status.stop_requested is not None and asked is None:
                asked = status.stop_requested
                self._on_signal(signal.SIGTERM, None)
            if sum(status.outcomes.values()) > self._settled:
                self._settled, self._deaths = sum(status.outcomes.values()), 0

    def _look_at(self, child: Child) -> None:
        code = child.exit_code()
        if code is None:
            if child.silent_for(self._ground.clock.monotonic()) > self._ground.settings.engine.watchdog_s:
                _log.error("crawl.process_hangs", pid=child.pid)
                child.kill()
            return
        self._children.remove(child)
        ending = child.ending()
        if ending is None:
            self._after_death(child, code)
        elif ending == "replace" and not self._stops:
            self._start()
        else:
            self._endings.append(ending)

    def _after_death(self, child: Child, code: int) -> None:
        """Clean up after a process that died, and start another unless that is hopeless or unwanted."""
        _log.error("crawl.process_died", pid=child.pid, code=code)
        recover(self._ground)
        self._deaths += 1
        if self._deaths >= _DEATHS:
            self._failure = f"{self._deaths} processes died in a row; see crawl.log in {self._begun.output_dir}"
        if self._failure is None and not self._stops:
            self._start()

    def _conclude(self) -> Status:
        """Say how the execution ended, and close what will not be asked any more."""
        execution_id = self._begun.execution_id
        status = read_status(self._database, self._ground.clock, execution_id)
        limit = next((ending for ending in self._endings if ending in _LIMITS), None)
        if status.stop_requested == "cancel":
            state, reason = "cancelled", "cancelled"
            self._close_rest("cancelled")
            discard(self._ground, execution_id)
        elif self._failure is not None:
            state, reason = "failed", self._failure
        elif limit is not None and not self._stops:
            state, reason = "completed", limit
            self._close_rest(f"over_limit:{limit}")
        elif self._ground.frontier.open_count(execution_id) == 0:
            state, reason = "completed", "done"
        else:
            state, reason = "stopped", "drained"
        seconds = self._ground.clock.monotonic() - self._started
        executions.end(self._database, self._ground.clock, execution_id, state=state, reason=reason, seconds=seconds)
        return read_status(self._database, self._ground.clock, execution_id)

    def _close_rest(self, reason: str) -> None:
        while self._ground.frontier.close_rest(self._begun.execution_id, outcome=Outcome.EXCLUDED, reason=reason):
            pass


_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
