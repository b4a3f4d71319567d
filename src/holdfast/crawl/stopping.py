"""Stops runs from outside: requests go to the process that holds the run; only unheld runs are ended here.

A job's run is ended by the worker that holds it, or by the one that takes it over: never from here. A crawl
without a job is ended here if no process works on it on any machine; this is decided while holding its
supervisor's place, so that of two simultaneous starts one yields.
"""

from __future__ import annotations

import math
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from types import FrameType

from holdfast.config import Settings
from holdfast.crawl.recovery import discard, recover
from holdfast.jobs import execution_queries, executions
from holdfast.processes.owners import GONE, OwnerProcess, living_owners
from holdfast.processes.runfile import RunFile
from holdfast.records import Operator, record
from holdfast.wiring import Runtime, open_runtime


@record
class StoppingExecution:
    """An execution that was requested to stop and has not ended, and the process that ends it."""

    execution_id: Operator[int]
    state: Operator[str]
    holder: Operator[str | None]
    """The process that ends it; null if the next worker does."""
    heard_at: Operator[datetime | None]
    """The holder's last heartbeat."""
    is_silent: Operator[bool] = False

    def sentence(self) -> str:
        """Describe what the execution waits for."""
        run = f"execution {self.execution_id}"
        if self.holder is None:
            return f"{run} is {self.state} and no process works on it: the next worker ends it (holdfast start-worker)"
        heard = f"last heartbeat at {self.heard_at:%H:%M:%S} UTC" if self.heard_at else "no heartbeat yet"
        if self.is_silent:
            return f"{run} is held by {self.holder}, {heard}: a worker that takes it over ends it"
        return f"{run} is still draining at {self.holder}, {heard}; check again with: holdfast status"


@record
class StopReceipt:
    """Executions that received a stop request."""

    execution_ids: Operator[list[int]]
    held: Operator[list[StoppingExecution]]
    """Executions that have not ended yet."""


def stop_execution(settings: Settings, execution_id: int, *, discard: bool) -> StopReceipt:
    """Request an execution to drain, or to be discarded; raise NotFound."""
    with open_runtime(settings) as runtime:
        ids = ask_to_stop(runtime, execution_id=execution_id, cancel=discard)
        held = still_held(runtime, ids)
    return StopReceipt(execution_ids=ids, held=held)


def ask_to_stop(runtime: Runtime, *, execution_id: int | None, cancel: bool) -> list[int]:
    """Request one execution, or all running ones, to stop, and end those without a process; return their ids.

    Raise `NotFound` if there are none to stop. With `cancel`, the process that ends the run discards its captures.
    """
    ids = executions.request_stop(runtime.raw_db, runtime.clock, execution_id=execution_id, cancel=cancel)
    for one in ids:
        _end_abandoned(runtime, one, cancel=cancel)
    return ids


def still_held(runtime: Runtime, ids: list[int]) -> list[StoppingExecution]:
    """Return which of these executions have not ended, with the process that will end them."""
    found = []
    for one in ids:
        # Read this before its state: a process that leaves in between has written its ending in the same step.
        living = living_owners(runtime.raw_db, runtime.clock, execution_id=one, folder=runtime.run_folder)
        with runtime.raw_db.read() as tx:
            holding = execution_queries.holding(tx, execution_id=one)
        if holding.state not in ("running", "queued"):
            continue
        if holding.is_of_job:
            silent = holding.heard_at is None or holding.heard_at <= runtime.clock.now() - GONE
            found.append(_stopping(one, holding.state, holding.owner, holding.heard_at, silent=silent))
            continue
        last = max(living, key=lambda owner: owner.heartbeat_at, default=None)
        name = f"{last.host} (pid {last.pid})" if last else None
        found.append(_stopping(one, holding.state, name, last.heartbeat_at if last else None))
    return found


def _stopping(
    number: int, state: str, holder: str | None, heard_at: datetime | None, *, silent: bool = False
) -> StoppingExecution:
    return StoppingExecution(execution_id=number, state=state, holder=holder, heard_at=heard_at, is_silent=silent)


def _end_abandoned(runtime: Runtime, execution_id: int, *, cancel: bool) -> None:
    """End a crawl without a job whose processes are gone; do nothing if one is alive, or if it is a job's run."""
    if _is_held(runtime, execution_id, before=None):
        return
    # Decide while holding the supervisor's place: a concurrent start yields to us, or we to it.
    run = RunFile(runtime.run_folder)
    place = OwnerProcess(runtime.raw_db, runtime.clock, run=run, kind="supervisor", execution_id=execution_id)
    try:
        if _is_held(runtime, execution_id, before=place.id):
            return
        recover(runtime)
        if cancel:
            # Renew meanwhile, so that no other start considers us dead.
            runtime.frontier.close_all(execution_id, "cancelled", between=partial(_beat, runtime, place))
            discard(runtime, execution_id)
        state, reason = ("cancelled", "discarded") if cancel else ("stopped", "stopped")
        executions.end(runtime.raw_db, runtime.clock, executions.ExecutionEnding(execution_id, state, reason))
    finally:
        place.end()


def _beat(runtime: Runtime, place: OwnerProcess) -> None:
    with runtime.raw_db.write() as tx:
        place.beat(tx)


def _is_held(runtime: Runtime, execution_id: int, *, before: int | None) -> bool:
    with runtime.raw_db.read() as tx:
        holding = execution_queries.holding(tx, execution_id=execution_id)
    if holding.is_of_job or holding.state not in execution_queries.OPEN:
        return True
    living = living_owners(runtime.raw_db, runtime.clock, execution_id=execution_id, folder=runtime.run_folder)
    return any(before is None or owner.id < before for owner in living)


_LOOK_S = 0.1
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Stops:
    """Counts stop requests by an operator or a worker: the first drains, the second hands back immediately."""

    def __init__(self) -> None:
        self._asked = 0
        self._is_abandoned = False

    @property
    def count(self) -> int:
        return self._asked

    @property
    def abandoned(self) -> bool:
        """Whether another process has the execution now: end, and write nothing."""
        return self._is_abandoned

    def abandon(self) -> None:
        """Record that another process has the execution now: hand back immediately, and write nothing."""
        self._is_abandoned = True
        self.ask(2)

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for the first stop request up to the timeout; return whether it has come."""
        # Avoid an Event: the handler may interrupt a thread that holds the event's lock.
        left = math.inf if timeout is None else timeout
        while not self.count and left > 0:
            time.sleep(min(_LOOK_S, left))
            left -= _LOOK_S
        return self.count > 0

    def ask(self, times: int) -> None:
        """Raise the number of stop requests to at least `times`."""
        self._asked = max(self._asked, times)


@contextmanager
def obeying_signals() -> Iterator[Stops]:
    """Count signals during the block; only on the main thread, in a process that does nothing else."""
    stops = Stops()

    def count(_number: int, _frame: FrameType | None) -> None:
        # The next check passes it on, so that it misses no process that is just starting.
        stops.ask(stops.count + 1)

    before = {number: signal.signal(number, count) for number in _SIGNALS}
    try:
        yield stops
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
