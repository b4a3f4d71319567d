"""Keeps the parts of one installation running: starts them, restarts those that end, and stops them in order.

start   the front (API) first; the rest once it responds
end     of a part: restarted shortly; ten times in a minute is logged, and it is restarted once a minute
signal  the first drains: scheduler and workers, then the front; the second ends everything immediately

One thread does all of it: it waits for output, signals and timers with one selector.
"""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from types import FrameType
from typing import Final

from holdfast import log
from holdfast.clock import Clock
from holdfast.processes.child_process import how_it_ended
from holdfast.processes.part_output import Lines, tell, write
from holdfast.processes.part_process import (
    FOR_PEOPLE,
    STARTED_AGAIN,
    PartProcess,
    ServicePart,
    reap_strangers,
)
from holdfast.processes.part_states import PartState, PartStatus, write_parts
from holdfast.processes.restarts import DEATHS, WINDOW_S, Restarts

READY: Final = "serving "
"""Prefix of the line in which the front reports that it is ready; its address follows."""
_log = log.get()
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD)
# Longest time between two polls; an event ends the wait earlier.
_POLL_S = 1.0
# How long the other parts wait for the front to respond: a large archive opens slowly.
_FRONT_S = 30.0


class _Place:
    def __init__(self, part: ServicePart, now: datetime) -> None:
        self.part = part
        self.process: PartProcess | None = None
        self.state, self.since = PartState.WAITING, now
        self.start_at = 0.0
        self.started_at = 0.0
        self.starts = 0
        self.is_given_up = False
        """Whether it was killed because it did not end in time."""
        self.last_exit: str | None = None
        self.restarts = Restarts()

    def status(self) -> PartStatus:
        return PartStatus(
            name=self.part.name,
            state=self.state,
            pid=self.process.pid if self.process else None,
            since=self.since,
            restarts=max(0, self.starts - 1),
            last_exit=self.last_exit,
        )


class ServiceSupervisor:
    def __init__(
        self,
        parts: Sequence[ServicePart],
        *,
        home: Path,
        clock: Clock,
        drain_s: float,
        environment: Mapping[str, str],
        on_ready: Callable[[str], None],
    ) -> None:
        self._home, self._clock, self._drain_s = home, clock, drain_s
        self._environment, self._on_ready = dict(environment), on_ready
        self._places = [_Place(part, clock.now()) for part in parts]
        self._selector = selectors.DefaultSelector()
        self._begun_at = clock.monotonic()
        self._stops: list[int] = []
        self._stopping_at: float | None = None
        self._is_ready = False
        self._failed = False
        self._statuses: list[PartStatus] = []

    def run(self) -> int:
        """Run until a signal; return the exit code: 0 drained, 1 not started or not drained, 128 + signal if killed
        early.
        """
        reader, writer = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        before = {number: signal.signal(number, self._on_signal) for number in _SIGNALS}
        # A signal then ends the selector's wait: Python runs handlers between instructions, not inside a system call.
        old_fd = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        self._selector.register(reader, selectors.EVENT_READ)
        try:
            while not self._is_over():
                self._poll()
                self._wait(reader)
            return self._exit_code()
        finally:
            for place in self._places:
                if place.process is not None:
                    place.process.kill()
                    self._take_end(place, wait=True)
            signal.set_wakeup_fd(old_fd)
            for number, handler in before.items():
                signal.signal(number, handler)
            self._selector.close()
            os.close(reader)
            os.close(writer)

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        if number != signal.SIGCHLD:
            self._stops.append(number)

    def _exit_code(self) -> int:
        if len(self._stops) > 1:
            return 128 + self._stops[-1]
        return 1 if self._failed else 0

    def _is_over(self) -> bool:
        if len(self._stops) > 1:
            return True
        return self._stopping_at is not None and all(place.process is None for place in self._places)

    def _poll(self) -> None:
        """Reap, stop or start the parts that are due, and write the state of the parts."""
        now = self._clock.monotonic()
        for place in self._places:
            if place.process is not None and self._take_end(place):
                self._after_end(place, now)
        reap_strangers([place.process.pid for place in self._places if place.process is not None])
        if self._stops and self._stopping_at is None:
            self._stopping_at = now
            _log.info("serve.stops", signal=signal.Signals(self._stops[0]).name, within_s=self._drain_s)
        if self._stopping_at is None:
            self._start_due(now)
        else:
            self._drain(now - self._stopping_at)
        statuses = [place.status() for place in self._places]
        if statuses != self._statuses:
            self._statuses = statuses
            write_parts(self._home, statuses)

    def _start_due(self, now: float) -> None:
        front_is_up = self._is_ready or now - self._begun_at > _FRONT_S
        for place in self._places:
            if place.process is not None:
                if place.restarts.runs_since(place.started_at, now):
                    self._set(place, PartState.RUNNING)
                    _log.info("serve.part_recovered", part=place.part.name)
            elif now >= place.start_at and (front_is_up or place.part.is_front):
                self._start(place, now)

    def _start(self, place: _Place, now: float) -> None:
        place.starts += 1
        place.started_at = now
        try:
            place.process = process = PartProcess(place.part, self._environment)
        except (OSError, subprocess.SubprocessError) as exc:
            # The system has no memory or process id left: the running parts must not end because of that.
            place.last_exit = f"it could not be started: {exc}"
            self._after_end(place, now)
            return
        if not place.restarts.is_failing:
            self._set(place, PartState.STARTING if place.part.is_front else PartState.RUNNING)
        for lines in (process.output, process.errors):
            self._selector.register(lines.fd, selectors.EVENT_READ, (place, lines))
        _log.info("serve.part_starts", part=place.part.name, pid=process.pid, start=place.starts)

    def _set(self, place: _Place, state: PartState) -> None:
        if place.state is not state:
            place.state, place.since = state, self._clock.now()

    def _take_end(self, place: _Place, *, wait: bool = False) -> bool:
        process = place.process
        assert process is not None
        code = process.wait() if wait else process.poll()
        if code is None:
            return False
        for lines in (process.output, process.errors):
            self._drain_pipe(place, lines)
        process.close()
        place.process, place.last_exit = None, how_it_ended(code)
        return True

    def _drain_pipe(self, place: _Place, lines: Lines) -> None:
        with suppress(KeyError):
            self._selector.unregister(lines.fd)
        # Limit the reads: a process that inherited the pipe may write forever.
        for _ in range(64):
            came = lines.read()
            if came is None:
                break
            whole = list(came)
            self._pass_on(place, lines, whole)
            if not whole:
                break
        if rest := lines.last():
            tell(place.part.name, rest)

    def _after_end(self, place: _Place, now: float) -> None:
        if self._stopping_at is not None:
            self._set(place, PartState.STOPPED)
            return
        if place.part.is_front and not self._is_ready:
            # The front never served (port in use, invalid setting): a retry would fail the same way.
            _log.error("serve.not_begun", part=place.part.name, ended=place.last_exit)
            self._failed = True
            self._stopping_at = now
            return
        was_failing = place.restarts.is_failing
        wait_s = place.restarts.wait_after_end(now)
        place.start_at = now + wait_s
        if place.restarts.is_failing:
            self._set(place, PartState.FAILING)
            if not was_failing:
                _log.error(
                    "serve.part_failing",
                    part=place.part.name,
                    ended=place.last_exit,
                    message=f"it ended {DEATHS} times within {WINDOW_S:g} s; the rest goes on, and it is tried again "
                    "once a minute",
                )
        else:
            self._set(place, PartState.WAITING)
            _log.warning("serve.part_ended", part=place.part.name, ended=place.last_exit, again_in_s=round(wait_s, 2))

    def _drain(self, elapsed: float) -> None:
        """Stop the parts, those behind the front first; by thirds of the time: signal, signal again, the front."""
        third = self._drain_s / 3
        behind = [place for place in self._places if place.process is not None and not place.part.is_front]
        for place in behind:
            # At the second signal a worker does not wait for requests in flight: it releases its crawls.
            self._ask(place, 1 if elapsed < third else 2)
        if behind and elapsed >= 2 * third:
            self._give_up(behind)
        if not behind or elapsed >= 2 * third:
            front = [place for place in self._places if place.process is not None and place.part.is_front]
            for place in front:
                self._ask(place, 1)
            if elapsed >= self._drain_s:
                self._give_up(front)

    def _ask(self, place: _Place, times: int) -> None:
        if place.process is not None:
            self._set(place, PartState.STOPPING)
            place.process.ask_to_end(times)

    def _give_up(self, places: Sequence[_Place]) -> None:
        for place in places:
            if place.process is not None and not place.is_given_up:
                _log.error("serve.part_killed", part=place.part.name, message="it did not end in time")
                place.is_given_up = self._failed = True
                place.process.kill()

    def _wait(self, reader: int) -> None:
        """Wait for output, a signal or the next timer, and pass on the parts' output."""
        for key, _ in self._selector.select(self._rest_s()):
            if key.fd == reader:
                with suppress(BlockingIOError):
                    os.read(reader, 1024)
                continue
            place, lines = key.data
            came = lines.read()
            if came is None:
                self._selector.unregister(key.fd)
            else:
                self._pass_on(place, lines, list(came))

    def _rest_s(self) -> float:
        if self._stopping_at is not None:
            return 0.1
        now = self._clock.monotonic()
        waiting = [place.start_at - now for place in self._places if place.process is None]
        return max(0.02, min([_POLL_S, *waiting]))

    def _pass_on(self, place: _Place, lines: Lines, came: Sequence[str]) -> None:
        is_said = place.process is not None and lines is place.process.output
        for line in came:
            if is_said and place.part.is_front and line.startswith(READY):
                self._ready(place, line.removeprefix(READY).strip())
            elif place.part.is_front and line.startswith(FOR_PEOPLE):
                write(sys.stderr, line)
            else:
                tell(place.part.name, line)

    def _ready(self, place: _Place, address: str) -> None:
        if not place.restarts.is_failing and self._stopping_at is None:
            self._set(place, PartState.RUNNING)
        if self._is_ready:
            return
        self._is_ready = True
        # A restarted front keeps its port, even if the kernel chose it at first.
        self._environment["HOLDFAST_API_PORT"] = address.rpartition(":")[2]
        self._environment[STARTED_AGAIN] = "1"
        self._on_ready(address)
