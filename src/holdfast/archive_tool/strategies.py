"""What is tried when a crawl is in trouble, in order: one worker less, another VPN exit, a restart, patience."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from queue import Empty, SimpleQueue
from types import FrameType
from typing import NamedTuple

from holdfast import log
from holdfast.archive_tool.docker import Times, docker_environment
from holdfast.archive_tool.logs import Statistics, error_class, read_statistics
from holdfast.archive_tool.options import WatchOptions
from holdfast.archive_tool.state import ERROR_KINDS, CrawlState
from holdfast.clock import Clock


class Signal(NamedTuple):
    """Something must be done about the crawl."""

    status: str
    """`stalled` or `error`."""
    reason: str


NO_STATISTICS = Signal("stalled", "no_stats")
NO_PROGRESS = Signal("stalled", "timeout")
TIMEOUTS = Signal("error", "timeout_threshold")
HTTP_ERRORS = Signal("error", "http_threshold")


class TroubleLimits(NamedTuple):
    """When there is trouble."""

    stall_s: float
    timeout_errors: int
    http_errors: int


@dataclass(slots=True, kw_only=True)
class Monitor:
    """Counters of one stage. Errors are counted since the last progress or signal."""

    limits: TroubleLimits
    started: float
    errors: dict[str, int] = field(default_factory=lambda: dict.fromkeys(ERROR_KINDS, 0))
    last: Statistics | None = None
    progressed: float | None = None
    quiet_since: float = field(init=False)
    """When the wait for the first statistics began: at the start, or at the last signal about them."""

    def __post_init__(self) -> None:
        self.quiet_since = self.started

    def hear(self, line: bytes, now: float) -> None:
        """Take in one line of the log."""
        found = read_statistics(line)
        if found is not None:
            if self.last is None or found.crawled != self.last.crawled:
                self.progressed = now
                self.clear_errors()
            self.last = found
            return
        kind = error_class(line)
        if kind is not None:
            self.errors[kind] += 1

    def check(self, now: float) -> Signal | None:
        """Return what is wrong now, the first of: no statistics, no progress, timeouts, HTTP errors.

        A signal clears the error counters. Only one about a standstill begins its own wait anew: a crawl that stands
        still is noticed even if its errors keep raising other signals.
        """
        signal = self._trouble(now)
        if signal is not None:
            self.clear_errors()
        return signal

    def _trouble(self, now: float) -> Signal | None:
        if self.last is None and now - self.quiet_since > self.limits.stall_s:
            self.quiet_since = now
            return NO_STATISTICS
        waiting = self.last is not None and self.last.pending != 0
        if waiting and self.progressed is not None and now - self.progressed > self.limits.stall_s:
            self.progressed = now
            return NO_PROGRESS
        if self.errors["timeout"] >= self.limits.timeout_errors:
            return TIMEOUTS
        return HTTP_ERRORS if self.errors["http"] >= self.limits.http_errors else None

    def clear_errors(self) -> None:
        """Count errors from nothing again."""
        self.errors = dict.fromkeys(ERROR_KINDS, 0)


class Bell:
    """Waiting that can be cut short. Safe to ring from threads and from signal handlers: SimpleQueue re-enters."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._rung: SimpleQueue[None] = SimpleQueue()
        self.requests = 0
        """How often somebody asked for the end; the second time it is urgent."""

    @property
    def stopping(self) -> bool:
        """Whether somebody asked for the end."""
        return self.requests > 0

    def ring(self) -> None:
        """Wake whoever waits."""
        self._rung.put(None)

    def ask_to_stop(self, _number: int = 0, _frame: FrameType | None = None) -> None:
        """Ask for the end; also a signal handler."""
        self.requests += 1
        self.ring()

    def catch_signals(self) -> None:
        """Take SIGTERM and SIGINT as a request to end."""
        signal.signal(signal.SIGTERM, self.ask_to_stop)
        signal.signal(signal.SIGINT, self.ask_to_stop)

    def wait(self, seconds: float) -> None:
        """Return at the next ring, or after this long."""
        try:
            self._rung.get(timeout=max(0.0, seconds))
        except Empty:
            return

    def wait_until(self, done: Callable[[], bool], seconds: float) -> bool:
        """Wait until something is so, or this long has passed; return whether it is so."""
        deadline = self._clock.monotonic() + seconds
        while not done():
            left = deadline - self._clock.monotonic()
            if left <= 0:
                return False
            self.wait(left)
        return True

    def pause(self, seconds: float) -> bool:
        """Wait this long unless somebody asks for the end; return whether somebody did."""
        return self.wait_until(lambda: self.stopping, seconds)


_POLL_S = 0.1


class Vpn:
    """Runs the connect command."""

    def __init__(self, command: str, times: Times, bell: Bell) -> None:
        self._command, self._times, self._bell = command, times, bell

    def arguments(self) -> list[str] | None:
        """Return the command as a list, its program as a path; None if it makes no sense or is not on PATH."""
        try:
            words = shlex.split(self._command)
        except ValueError:
            return None
        program = shutil.which(words[0]) if words else None
        return [program, *words[1:]] if program else None

    def rotate(self) -> bool:
        """Connect anew and let the network settle; return whether the command ended well, in time."""
        arguments = self.arguments()
        if arguments is None:
            log.get().warning("vpn.command_missing", command=self._command[:100])
            return False
        try:
            process = subprocess.Popen(
                arguments,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=docker_environment(),
                start_new_session=True,
            )
        except OSError as exc:
            log.get().warning("vpn.failed", reason=str(exc))
            return False
        code = self._finish(process)
        if code != 0:
            log.get().warning("vpn.failed", exit_code=code)
            return False
        log.get().info("vpn.rotated")
        self._bell.pause(self._times.vpn_settle)
        return True

    def _finish(self, process: subprocess.Popen[bytes]) -> int | None:
        """Return the exit code; None if the time ran out or somebody asked for the end."""
        waited = 0.0
        while waited < self._times.vpn_limit and not self._bell.stopping:
            step = min(_POLL_S, self._times.vpn_limit)
            try:
                return process.wait(timeout=step)
            except subprocess.TimeoutExpired:
                waited += step
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return None


class StageAction(Enum):
    """What the stage does now."""

    STOP_CONTAINER = "stop the container and resume"
    CARRY_ON = "carry on"


class Strategies:
    """Remembers when the VPN last changed; the counts are in the state, and outlive the process."""

    def __init__(self, watch: WatchOptions, state: CrawlState, clock: Clock, vpn: Vpn | None) -> None:
        self._watch, self._state, self._clock, self._vpn = watch, state, clock, vpn
        self._rotated: float | None = None

    def answer(self, signal: Signal, patience: Callable[[float], bool]) -> StageAction:
        """Try the first strategy that may be tried; `patience` waits while the crawl goes on."""
        said = log.get(status=signal.status, reason=signal.reason)
        if self._may_reduce():
            self._state.reduce_workers()
            said.info("crawl.workers_reduced", workers=self._state.current_workers)
            return StageAction.STOP_CONTAINER
        if self._may_rotate() and self._vpn is not None and self._vpn.rotate():
            self._rotated = self._clock.monotonic()
            self._state.count_rotation()
            return StageAction.CARRY_ON
        if self._may_restart():
            self._state.count_restart()
            said.info("crawl.restart", restarts=self._state.container_restarts)
            return StageAction.STOP_CONTAINER
        said.info("crawl.backoff", seconds=self._watch.backoff_s)
        patience(self._watch.backoff_s)
        return StageAction.CARRY_ON

    def _may_reduce(self) -> bool:
        return (
            self._watch.adaptive_workers
            and self._state.current_workers > self._watch.min_workers
            and self._state.worker_reductions < self._watch.max_reductions
        )

    def _may_rotate(self) -> bool:
        if not self._watch.vpn or self._state.vpn_rotations >= self._watch.max_rotations:
            return False
        return self._rotated is None or self._clock.monotonic() - self._rotated >= self._watch.rotation_every_s

    def _may_restart(self) -> bool:
        return self._watch.adaptive_restart and self._state.container_restarts < self._watch.max_restarts
