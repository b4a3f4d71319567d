"""A server thread that starts a process for each queued operation.

A separate process, because importing, verifying and rebuilding need a core for minutes, and must not compete
with requests for the GIL. It ends when its server ends in any way, because that closes its standard input.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from typing import Final

from holdfast import log
from holdfast.clock import Clock
from holdfast.config import Settings
from holdfast.db.engine import Database, server_clock
from holdfast.errors import HoldfastError
from holdfast.operations.long_running import HeldOperation, OperationLeases
from holdfast.operations.uploads import remove_expired
from holdfast.processes.child_process import ChildProcess
from holdfast.processes.directory_id import directory_id
from holdfast.processes.restarts import Restarts
from holdfast.processes.runfile import RunFile

MODULE: Final = f"{__package__}.process"
"""The program of a process that runs one operation."""
AT_ONCE: Final = 2
"""Concurrent operations per server process: a long verification must not delay an import."""
_LOOK_S = 1.0
_EXPIRE_S = 60.0
_END_S = 10.0
_log = log.get()


class OperationLauncher:
    """Starts a process for each queued operation within a second; a thread of a server process."""

    def __init__(self, settings: Settings, clock: Clock) -> None:
        # Use the database server's clock if there is one: uploads expire by it.
        self._settings, self._clock = settings, server_clock(clock)
        # Use a separate connection, opened on first use: the number of those for requests is limited.
        self._database = Database(settings.database)
        self._run_folder = settings.home.resolve() / "run"
        self._run_file: RunFile | None = None
        self._leases = OperationLeases(
            self._database, clock, self._run_folder, directory=lambda: directory_id(settings.home)
        )
        self._wake, self._ending = threading.Event(), threading.Event()
        self._children: list[ChildProcess] = []
        self._restarts, self._not_before, self._expired_at = Restarts(), 0.0, -_EXPIRE_S
        self._thread = threading.Thread(target=self._run, name="operations", daemon=True)

    def start(self) -> None:
        """Start; raise OSError without space for its run file, RuntimeError without a thread. Retrying is safe."""
        # Its lock shows the next start at once that this process died between leasing an operation and running it.
        self._run_file = self._run_file or RunFile(self._run_folder)
        self._thread.start()

    def wake(self) -> None:
        self._wake.set()

    def close(self) -> None:
        """Stop the running operations and wait for them; unfinished ones are queued again."""
        self._ending.set()
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join()
        for child in self._children:
            child.close()
        for child in self._children:
            if child.wait(_END_S) is None:
                # Its lease is free at once: the lock of its run file ends with it.
                child.kill()
                child.wait()
        if self._run_file is not None:
            self._run_file.close()
            self._run_file = None
        self._database.close()

    def _run(self) -> None:
        logged = ""
        while not self._ending.is_set():
            self._wake.clear()
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
            self._wake.wait(_LOOK_S)

    def _look(self) -> None:
        now = self._clock.monotonic()
        self._reap(now)
        while len(self._children) < AT_ONCE and now >= self._not_before and not self._ending.is_set():
            held = self.take()
            if held is None:
                break
            try:
                self._children.append(_started(self._settings, held))
            except OSError as exc:
                # There is no capacity for another process now, which is not the operation's fault.
                self._leases.give_back(held)
                self._rest(now)
                _log.error("operation.not_started", operation=held.operation_id, message=str(exc))
                break
        if now - self._expired_at >= _EXPIRE_S:
            self._expired_at = now
            remove_expired(self._database, self._clock, self._settings)

    def take(self) -> HeldOperation | None:
        """Lease the oldest operation that waits for a server of this data directory."""
        return self._leases.take(self._run_file.path.name if self._run_file else None)

    def _reap(self, now: float) -> None:
        for child in [one for one in self._children if one.poll() is not None]:
            self._children.remove(child)
            child.close()
            # Restart an operation that kills its process, but with growing delays.
            if code := child.poll():
                self._rest(now)
                _log.error("operation.process_died", status=code, again_in_s=round(self._not_before - now, 2))
            else:
                self._restarts = Restarts()

    def _rest(self, now: float) -> None:
        self._not_before = now + self._restarts.wait_after_end(now)


def _started(settings: Settings, held: HeldOperation) -> ChildProcess:
    own = {"HOLDFAST_HOME": str(settings.home.resolve()), "HOLDFAST_DATABASE_URL": settings.database}
    return ChildProcess(
        [sys.executable, "-P", "-m", MODULE, str(held.operation_id), str(held.attempt)],
        {**os.environ, **own},
        # Its end is the request to end, and comes with the end of this process, too.
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
    )
