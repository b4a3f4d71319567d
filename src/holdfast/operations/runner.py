"""Runs operations for a worker: each in a process of its own, whose progress and result come as lines of JSON.

A separate process, because importing, verifying and rebuilding need a core for minutes, and must not compete with
the worker's threads for the GIL. It ends when its worker ends in any way, because that closes its standard input.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import closing
from typing import Any, Final

from holdfast import log
from holdfast.config import Settings
from holdfast.db.engine import Database
from holdfast.errors import HoldfastError, Unavailable
from holdfast.jobs.endings import Counts, FailureCause, RunEnding, RunResult
from holdfast.jobs.leases import ExecutionLease
from holdfast.operations import queries
from holdfast.operations.long_running import find
from holdfast.operations.running import MOST_ATTEMPTS, OperationEnd
from holdfast.processes.child_process import ChildProcess, how_it_ended
from holdfast.worker.loop import RUNNERS
from holdfast.worker.runner import LEAVING, OPERATION, RunnerHolding, StopReason

MODULE: Final = f"{__package__}.process"
"""The program of a process that performs one operation."""
_TURN_S = 0.2
# How long a process may take to end when its worker ends. All of its work survives a kill.
_END_S = 10.0
# The rest after a death: half as long again after each, at most a minute.
_REST_S, _GROWTH, _LONGEST_S = 0.25, 1.5, 60.0
_log = log.get()


class OperationAbandoned(HoldfastError):
    """The operation failed every time it was started."""

    code = "operation_abandoned"

    def __init__(self, attempts: int) -> None:
        super().__init__(f"failed {attempts} times; see the server log")


class OperationRunner:
    def __init__(self, settings: Settings, child: type[OperationChild] | None = None) -> None:
        """`child` performs operations in another way than in a process."""
        self._settings, self._child = settings, child or OperationChild

    def run(self, lease: ExecutionLease, holding: RunnerHolding) -> RunEnding | None:
        """Run the operation to its end and return the ending; None releases it."""
        try:
            with closing(Database(self._settings.database)) as database, database.read() as session:
                died = queries.failed_starts(session, lease.execution_id)
                metrics = dict(find(session, lease.execution_id).execution.metrics)
        except Unavailable:
            # Nothing has failed: it is retried when the database is back.
            return None
        # An operation that kills its process every time would be restarted forever.
        if died >= MOST_ATTEMPTS:
            given_up = OperationAbandoned(died)
            return _failed(str(given_up), given_up.code, metrics)
        while (stop := holding.poll_signals()) is None:
            # It takes no place of the worker until it is resumed: then any worker leases it.
            if holding.is_paused:
                return None
            try:
                child = self._child(self._settings, lease, metrics)
            except OSError as exc:
                # There is no capacity for another process now, which is not the operation's fault.
                holding.note("error", "error", f"its process could not be started: {exc}")
                holding.rest_s = _LONGEST_S
                return None
            with closing(child):
                code = child.follow(holding)
            metrics, end = child.metrics, child.end
            if end is OperationEnd.DONE:
                return RunEnding(result=RunResult.COMPLETED, metrics=metrics)
            if end is OperationEnd.FAILED:
                return _failed(child.error, child.code, metrics)
            holding.tell(Counts(), metrics)
            # Its end may be requested: then it does not matter how it ended.
            if end is not OperationEnd.INTERRUPTED and holding.poll_signals() is None:
                why = child.error or f"its process died: {how_it_ended(code)}"
                holding.rest_s, holding.has_died = min(_REST_S * _GROWTH**died, _LONGEST_S), True
                holding.note("error", "error", why, again_in_s=round(holding.rest_s, 2))
                _log.error("operation.process_died", operation=lease.execution_id, message=why)
                return None
        if stop in LEAVING:
            return None
        return RunEnding(result=RunResult.CANCELLED, reason="cancelled", metrics=metrics)


def _failed(error: str, code: str, metrics: dict[str, Any]) -> RunEnding:
    return RunEnding(result=RunResult.FAILED, failure=FailureCause.FAILED, reason=code, error=error, metrics=metrics)


class OperationChild:
    """The process of an operation, and what it last reported."""

    def __init__(self, settings: Settings, lease: ExecutionLease, metrics: Mapping[str, Any]) -> None:
        own = {"HOLDFAST_HOME": str(settings.home.resolve()), "HOLDFAST_DATABASE_URL": settings.database}
        claim = lease.claim
        words = [lease.execution_id, claim.job_id, claim.token, claim.epoch]
        self._process = ChildProcess(
            [sys.executable, "-P", "-m", MODULE, *map(str, words)],
            {**os.environ, **own},
            # Its end is the request to end, and comes with the end of this process, too.
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self.metrics = dict(metrics)
        self.end: OperationEnd | None = None
        self.error = self.code = ""
        self._reader = threading.Thread(target=self._read, name="operation progress", daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            # A process that is killed may leave half a line.
            if line.endswith(b"\n"):
                self._hear(json.loads(line))

    def _hear(self, told: dict[str, Any]) -> None:
        end, self.error, self.code = told.pop("end", None), told.pop("error", ""), told.pop("code", "")
        self.metrics, self.end = told, end and OperationEnd(end)

    def follow(self, holding: RunnerHolding) -> int:
        """Report its progress until it has ended; request it to end if the run is stopped or paused."""
        process, waited_s = self._process, 0.0
        assert process.stdin is not None
        phase = None
        while process.poll() is None:
            stop, told = holding.wait(_TURN_S), self.metrics
            # A new phase is reported at once, the numbers now and then.
            if phase != (phase := told.get("phase")):
                holding.tell(Counts(), told)
            else:
                holding.progress(Counts(), told)
            if stop is not None or holding.is_paused:
                process.stdin.close()
                waited_s += _TURN_S
            if stop in (StopReason.NOW, StopReason.LOST) or (stop in LEAVING and waited_s > _END_S):
                process.kill()
        self._reader.join()
        return process.wait() or 0

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        self._process.close()


ALL_RUNNERS: Final = {**RUNNERS, OPERATION: OperationRunner}
"""The runners of a whole worker."""
