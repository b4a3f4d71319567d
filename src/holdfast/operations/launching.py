"""A server thread that ends expired uploads, and starts a worker for operations that no worker takes.

Usually `holdfast serve` or `holdfast worker start` runs one. Several servers of a data directory may start a
worker for the same operation: its lease decides, and a worker that finds nothing to do ends.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from datetime import datetime, timedelta
from typing import Final

from holdfast import log
from holdfast.clock import Clock
from holdfast.config import Settings
from holdfast.crawl.recovery import recover_leases
from holdfast.db.engine import Database, moment_in, server_clock
from holdfast.db.models import Execution
from holdfast.errors import HoldfastError
from holdfast.jobs.kinds import OPERATIONS_AT_ONCE
from holdfast.jobs.schedule_queries import stale_ids, stale_locks
from holdfast.operations.queries import unfinished_operations
from holdfast.operations.uploads import remove_expired
from holdfast.processes.child_process import ChildProcess
from holdfast.processes.directory_id import read_directory_id
from holdfast.processes.restarts import Restarts
from holdfast.wiring import open_runtime

_PATIENCE = timedelta(seconds=2)
"""How long an operation waits for a running worker, which looks for one every second."""
_LOOK_S = 1.0
# How often to look whether the workers of running operations are dead, as workers do.
_DEAD_S = 10.0
_MOST_STALE = 1000
_EXPIRE_S = 60.0
# The worker gives its operations ten seconds to end.
_END_S = 15.0
_log = log.get()


class OperationLauncher:
    """Starts a worker while operations of this data directory wait for one; a thread of a server process."""

    def __init__(self, settings: Settings, clock: Clock) -> None:
        # Use the database server's clock if there is one: uploads expire by it.
        self._settings, self._clock = settings, server_clock(clock)
        # Use a separate connection, opened on first use: the number of those for requests is limited.
        self._database = Database(settings.database)
        self._ending = threading.Event()
        self._worker: ChildProcess | None = None
        self._restarts, self._not_before, self._expired_at = Restarts(), 0.0, -_EXPIRE_S
        self._recovered_at = -_DEAD_S
        self._thread = threading.Thread(target=self._run, name="operations", daemon=True)

    def start(self) -> None:
        """Start; raise RuntimeError without a thread. Retrying is safe."""
        self._thread.start()

    def close(self) -> None:
        """Stop the worker and wait for it; unfinished operations are queued again."""
        self._ending.set()
        if self._thread.is_alive():
            self._thread.join()
        if self._worker is not None:
            self._worker.close()
            if self._worker.wait(_END_S) is None:
                self._worker.kill()
                self._worker.wait()
        self._database.close()

    def _run(self) -> None:
        logged = ""
        while not self._ending.wait(_LOOK_S):
            try:
                self._look()
                logged = ""
            except HoldfastError as exc:
                # Log each reason once: a database that is unavailable for a night would fill the log.
                if logged != (logged := str(exc)):
                    _log.warning("operations.wait", message=logged)
            except Exception:
                # If the thread ended here, no request would notice, and operations would wait forever.
                _log.exception("operations.failed")

    def _look(self) -> None:
        now = self._clock.monotonic()
        self._reap(now)
        if self._worker is None and now >= self._not_before and self.is_needed():
            try:
                self._worker = _started(self._settings)
            except OSError as exc:
                # There is no capacity for another process now.
                self._not_before = now + self._restarts.wait_after_end(now)
                _log.error("operations.worker_not_started", message=str(exc))
        if now - self._expired_at >= _EXPIRE_S:
            self._expired_at = now
            remove_expired(self._database, self._clock, self._settings)

    def is_needed(self) -> bool:
        """Return whether operations of this data directory wait although workers have room, or their worker is dead."""
        with self._database.read() as session:
            rows = unfinished_operations(session)
            if not rows:
                return False
            now = moment_in(session, self._clock)
        here = read_directory_id(self._settings.home)
        rows = [row for row in rows if row.execution.directory == here]
        held = {row.job.id for row in rows if row.execution.state == "running"}
        waiting = [row for row in rows if row.execution.state == "queued" and _is_late(row.execution, now)]
        return (bool(waiting) and len(held) < OPERATIONS_AT_ONCE) or (bool(held) and self._is_stale(held, now))

    def _is_stale(self, held: set[int], now: datetime) -> bool:
        """Return whether the worker of one of these jobs is silent or dead."""
        elapsed = self._clock.monotonic()
        if elapsed - self._recovered_at >= _DEAD_S:
            self._recovered_at = elapsed
            with open_runtime(self._settings) as runtime:
                recover_leases(runtime)
        stale = stale_locks(now - timedelta(seconds=self._settings.timings.jobs_stale_s))
        with self._database.read() as session:
            return not held.isdisjoint(stale_ids(session, stale, limit=_MOST_STALE))

    def _reap(self, now: float) -> None:
        if self._worker is None or (code := self._worker.poll()) is None:
            return
        self._worker.close()
        self._worker = None
        # Start a worker again that ends with an error, but with growing delays.
        if code:
            self._not_before = now + self._restarts.wait_after_end(now)
            _log.error("operations.worker_died", status=code, again_in_s=round(self._not_before - now, 2))
        else:
            self._restarts = Restarts()


def _is_late(execution: Execution, now: datetime) -> bool:
    queued_at = execution.queued_at
    return execution.paused_at is None and queued_at is not None and queued_at + _PATIENCE <= now


_MODULE: Final = f"{__package__}.worker"


def _started(settings: Settings) -> ChildProcess:
    own = {"HOLDFAST_HOME": str(settings.home.resolve()), "HOLDFAST_DATABASE_URL": settings.database}
    return ChildProcess(
        [sys.executable, "-P", "-m", _MODULE],
        {**os.environ, **own},
        # Its end is the request to end, and comes with the end of this process, too.
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
    )
