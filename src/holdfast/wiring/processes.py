"""Several processes that serve one socket: each child is restarted when it dies, and all end together.

They share the archive and its search index; the first of them does maintenance, and the index has one writer
at a time in any case, by its file lock.
"""

from __future__ import annotations

import os
import select
import signal
import sys
from collections.abc import Callable
from contextlib import suppress

from holdfast import log
from holdfast.clock import Clock
from holdfast.processes.parent_death import die_with
from holdfast.processes.restarts import LONGEST_S, Restarts
from holdfast.wiring.shared_places import ServedProcess, SharedPlaces

_log = log.get()
# Set in each child: its application is created from an import path and cannot otherwise learn its number.
_this: ServedProcess | None = None
_READY = b"."


def this_process() -> ServedProcess | None:
    """Return which of several server processes this is; None if it is the only one."""
    return _this


class ServingProcesses:
    def __init__(
        self, count: int, serve: Callable[[int, Callable[[], None]], int], *, drain_s: float, clock: Clock
    ) -> None:
        """`serve` runs in each child: it receives its number and a ready callback, and returns its exit code."""
        self._count, self._serve, self._drain_s, self._clock = count, serve, drain_s, clock
        # Created before the children, which share it.
        self._places = SharedPlaces(count)
        self._numbers: dict[int, int] = {}
        self._begun: dict[int, float] = {}
        # However often they die, for there may be no other process that serves readers.
        self._restarts = [Restarts(failing_s=LONGEST_S) for _ in range(count)]
        self._due: dict[int, float] = {}
        """When each dead child is restarted (monotonic)."""
        self._answering = 0
        self._is_stopping = False

    def run(self, ready: Callable[[], None]) -> int:
        """Serve until SIGINT or SIGTERM; call `ready` when all children respond. Return 1 if they failed to start."""
        self._said, self._saying = os.pipe()
        woken, waking = os.pipe()
        os.set_blocking(waking, False)
        previous = {number: signal.signal(number, _nothing) for number in _HEARD}
        wakeup = signal.set_wakeup_fd(waking)
        try:
            for number in range(self._count):
                self._begin(number)
            return self._watch(woken, ready)
        finally:
            signal.set_wakeup_fd(wakeup)
            for number, handler in previous.items():
                signal.signal(number, handler)
            for end in (self._said, self._saying, woken, waking):
                os.close(end)

    def _watch(self, woken: int, ready: Callable[[], None]) -> int:
        failed, deadline = False, float("inf")
        while self._numbers or self._due:
            patience = max(0.0, min([deadline, *self._due.values()]) - self._clock.monotonic())
            heard, _, _ = select.select([woken, self._said], [], [], min(patience, 3600.0))
            if self._clock.monotonic() >= deadline:
                self._tell(signal.SIGKILL)
            if self._said in heard:
                # Also read the message of a restarted child: unread, it would keep this loop awake.
                before, self._answering = self._answering, self._answering + len(os.read(self._said, 4096))
                if before < self._count <= self._answering:
                    ready()
            numbers = os.read(woken, 4096) if woken in heard else b""
            if not self._is_stopping and {signal.SIGINT, signal.SIGTERM} & set(numbers):
                deadline = self._stop()
            for number, code in self._ended():
                if self._is_stopping:
                    continue
                if self._answering < self._count:
                    # What stops one child from starting stops all of them; its log has the reason.
                    failed, deadline = True, self._stop()
                    continue
                _log.warning("api.process_died", process=number, status=code)
                self._due[number] = self._restart_at(number)
            for number, at in list(self._due.items()):
                if self._clock.monotonic() >= at:
                    del self._due[number]
                    self._begin(number)
        return 1 if failed else 0

    def _stop(self) -> float:
        """Let all children finish their requests; return the deadline."""
        self._is_stopping = True
        self._due.clear()
        self._tell(signal.SIGTERM)
        return self._clock.monotonic() + self._drain_s

    def _tell(self, number: signal.Signals) -> None:
        for pid in self._numbers:
            with suppress(ProcessLookupError):
                os.kill(pid, number)

    def _ended(self) -> list[tuple[int, int]]:
        ended = []
        while self._numbers:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                break
            ended.append((self._numbers.pop(pid), os.waitstatus_to_exitcode(status)))
        return ended

    def _restart_at(self, number: int) -> float:
        restarts, now = self._restarts[number], self._clock.monotonic()
        restarts.runs_since(self._begun[number], now)
        return now + restarts.wait_after_end(now)

    def _say_ready(self) -> None:
        os.write(self._saying, _READY)

    def _begin(self, number: int) -> None:
        self._begun[number] = self._clock.monotonic()
        parent, pid = os.getpid(), os.fork()
        if pid:
            self._numbers[pid] = number
            return
        code = 1
        try:
            signal.set_wakeup_fd(-1)
            for heard in _HEARD:
                # These signals end the child until the server handles them itself.
                signal.signal(heard, signal.SIG_DFL)
            die_with(parent, signal.SIGTERM)
            global _this
            _this = ServedProcess(number, self._places)
            code = self._serve(number, self._say_ready)
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            # Not `sys.exit`: only the parent may clean up what it opened.
            os._exit(code)


_HEARD = (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD)


def _nothing(_number: int, _frame: object) -> None:
    """Signal handler without action: the loop reads the signal's number."""
