"""One stage: one container from start to end, logged, monitored, and stopped with its WARC files preserved.

Countermeasures for a failing crawl, in order: one worker fewer, another VPN exit, a restart, waiting.
"""

from __future__ import annotations

import math
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from queue import Empty, SimpleQueue
from types import FrameType
from typing import IO

from holdfast import log
from holdfast.clock import Clock
from holdfast.processes.child_process import ChildProcess
from holdfast.zimit.docker import (
    LOOKUPS,
    START_FAILURES,
    SUCCESS_CODES,
    Docker,
    Times,
    docker_environment,
    find_program,
    prepare_launch,
    relax,
    start_quietly,
)
from holdfast.zimit.errors import StoreMissing, ToolMissing
from holdfast.zimit.flags import Options
from holdfast.zimit.logs import MAX_LINE_BYTES, Statistics, error_class, read_statistics, stage_log, stream_log
from holdfast.zimit.outcome import EndState
from holdfast.zimit.output_directory import CrawlState, no_errors

Listener = Callable[[bytes], None]
_CHUNK = 64 * 1024


class StageLog:
    def __init__(self, log: Path, listener: Listener, ended: Callable[[], None]) -> None:
        self.log = log
        self.trouble: OSError | None = None
        """Why the logs could not be written, if they could not."""
        self._listener, self._ended = listener, ended
        self._lock = threading.Lock()
        self._open = 2
        self._threads: list[threading.Thread] = []
        # All before the container starts: once it runs, its storage may be unmounted, and new files would lie
        # beside it.
        self._combined = _create(log)
        self._streams = [_create(stream_log(log, name)) for name in ("stdout", "stderr")]

    @property
    def is_over(self) -> bool:
        return self._open == 0

    def start(self, command: Sequence[str], environment: Mapping[str, str]) -> ChildProcess:
        """Start a program and record both of its outputs; raise OSError if it cannot be started."""
        child = ChildProcess(command, environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for stream, own in zip((child.stdout, child.stderr), self._streams, strict=True):
            assert stream is not None
            thread = threading.Thread(target=self._copy, args=(stream, own), name="stage-log", daemon=True)
            self._threads.append(thread)
            thread.start()
        return child

    def note(self, line: str) -> None:
        """Write a line to the combined log and pass it to the listener."""
        data = line.encode() + b"\n"
        self._write(self._combined, data)
        self._listener(data)

    def close(self, timeout: float) -> None:
        for thread in self._threads:
            thread.join(timeout)
        if not self._threads:
            for own in self._streams:
                own.close()
        with self._lock:
            self._combined.close()

    def _copy(self, stream: IO[bytes], own: IO[bytes]) -> None:
        rest, endless = b"", False
        with own:
            # Read to the end whatever is written: a pipe that is not emptied stops the container.
            while chunk := os.read(stream.fileno(), _CHUNK):
                self._write(own, chunk)
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    self._write(self._combined, line + b"\n")
                    if not endless:
                        self._listener(line)
                    endless = False
                # A page may be quoted in a line without an end: it is kept in the log, and not listened to.
                if len(rest) > MAX_LINE_BYTES:
                    self._write(self._combined, rest)
                    rest, endless = b"", True
            if rest:
                self._write(self._combined, rest + b"\n")
                self._listener(rest)
        stream.close()
        with self._lock:
            self._open -= 1
        self._ended()

    def _write(self, file: IO[bytes], data: bytes) -> None:
        try:
            with self._lock:
                if not file.closed:
                    file.write(data)
        except OSError as exc:
            self.trouble = self.trouble or exc
            self._ended()


def _create(path: Path) -> IO[bytes]:
    """Create a log file that must not exist yet, unbuffered, so that an operator sees every line immediately."""
    # A new file and no link: the directory is one that the container can write to.
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
    return os.fdopen(fd, "wb", buffering=0)


_FOREVER_S = 3600.0
StageEnd = tuple[EndState | None, Path]
"""How a stage ended (None if it was stopped to be resumed with other settings), and its log."""


class Tools:
    """Objects that all stages of a run share."""

    def __init__(self, options: Options, state: CrawlState, clock: Clock, stop_request: StopRequest) -> None:
        self.options, self.state, self.clock, self.stop_request = options, state, clock, stop_request
        self.times = Times.scaled(options.time_scale)
        self.docker = Docker(self.times)
        rotate = partial(rotate_vpn, times=self.times, stop_request=stop_request)
        self.strategies = Strategies(options, state, clock, rotate)

    def create_logs(self, stage: str, listener: Listener) -> StageLog:
        path = stage_log(self.options.output_dir, stage, self.clock.now())
        return StageLog(path, listener, self.stop_request.wake)


class Stage:
    def __init__(self, tools: Tools, name: str, arguments: Sequence[str], *, watched: bool = True) -> None:
        self._tools, self._name = tools, name
        self._label, self._command = prepare_launch(tools.options, arguments)
        self._watched = watched and tools.options.monitored
        self._options, self._stop_request, self._clock = tools.options, tools.stop_request, tools.clock
        self._monitor = Monitor(limits=tools.options, started=tools.clock.monotonic())
        self._lock = threading.Lock()
        self._container: str | None = None
        self._output = tools.create_logs(name, self._hear)

    def run(self) -> StageEnd:
        """Run to the end; raise `StoreMissing` if the logs can no longer be written."""
        log.get().info("stage.begins", stage=self._name, workers=self._tools.state.current_workers)
        try:
            client = self._output.start(self._command, docker_environment())
        except OSError as exc:
            self._output.note(f"archive-tool: docker could not be started: {exc}")
            self._output.close(0)
            return EndState.DOCKER_START, self._output.log
        try:
            ended, end = self._watch()
        # Whatever happens here, no container is left running without its tool.
        except BaseException:
            self._stop(client)
            self._wait(client)
            raise
        if ended:
            # Both outputs are closed, so this is a moment.
            client.wait(math.inf, lambda: self._stop_request.stopping)
        else:
            self._stop(client)
        code = self._wait(client)
        self._output.close(self._tools.times.stop_margin)
        if (trouble := self._output.trouble) is not None:
            raise StoreMissing(self._options.output_dir, f"errno {trouble.errno}: {trouble.strerror}") from trouble
        if self._options.relax_perms_s is not None:
            self._relax(None)
        if ended:
            started = EndState.DOCKER_START if code in START_FAILURES else EndState.FAILED
            end = EndState.SUCCESS if code in SUCCESS_CODES else started
        log.get().info("stage.ended", stage=self._name, end=end.value if end else "adapted", exit_code=code)
        return end, self._output.log

    def _watch(self) -> tuple[bool, EndState | None]:
        """Return whether the container ended by itself, else why it must be stopped, as in `StageEnd`."""
        self._find_container()
        interval, relax_s = self._options.check_every_s, self._options.relax_perms_s
        next_check = self._clock.monotonic() + interval
        next_relax = self._clock.monotonic() + (relax_s or _FOREVER_S)
        while not self._output.is_over and self._output.trouble is None:
            # Looked at before each wait: a signal may have come between two of them.
            if self._stop_request.stopping:
                return False, EndState.STOPPED
            self._stop_request.wait(min(next_check, next_relax) - self._clock.monotonic())
            now = self._clock.monotonic()
            if relax_s is not None and now >= next_relax:
                self._relax(self._container)
                next_relax = now + relax_s
            if now >= next_check and not self._output.is_over:
                # A final build is not watched: it reports no statistics, and its silence would be taken for a stall.
                if self._watched and self._intervene(now):
                    return False, None
                next_check = self._clock.monotonic() + interval
        return self._output.trouble is None, EndState.FAILED

    def _intervene(self, now: float) -> bool:
        """Answer trouble, if there is any; return whether the container must be stopped."""
        state = self._tools.state
        with self._lock:
            errors = dict(self._monitor.errors)
            trouble = self._monitor.check(now)
        if errors != state.errors:
            state.update(errors=errors)
        if trouble is None or self._stop_request.stopping:
            return False
        log.get().warning("crawl.trouble", status=trouble[0], reason=trouble[1], **errors)
        stops = self._tools.strategies.answer(trouble, self._patience)
        with self._lock:
            # A signal is answered once.
            self._monitor.errors = no_errors()
        state.update(errors=no_errors())
        return stops

    def _patience(self, seconds: float) -> bool:
        return self._stop_request.wait_until(lambda: self._stop_request.stopping or self._output.is_over, seconds)

    def _hear(self, line: bytes) -> None:
        with self._lock:
            self._monitor.hear(line, self._clock.monotonic())

    def _find_container(self) -> None:
        for _ in range(LOOKUPS):
            found = self._tools.docker.containers(self._label)
            if found:
                self._container = found[0]
                log.get().info("container.started", container=found[0], label=self._label)
                return
            if self._patience(self._tools.times.lookup_every):
                return

    def _stop(self, client: ChildProcess) -> None:
        """Stop the container with its grace; a second stop request ends the grace."""
        docker, label = self._tools.docker, self._label
        # Its id may not have been found at the start.
        found = [self._container] if self._container else docker.containers(label)
        log.get().info("container.stopping", container=found[0] if found else None)
        stopped = bool(found) and docker.stop(found[0], lambda: self._stop_request.requests > 1)
        if not stopped:
            client.ask_to_end()

    def _wait(self, client: ChildProcess) -> int | None:
        """Return the exit code of `docker run`, which is the container's, and leave no container behind."""
        code = client.finish(self._tools.times.stop_grace + self._tools.times.stop_margin)
        # `docker run` itself was killed: its container goes on without it.
        if code is None or code < 0:
            for left in self._tools.docker.containers(self._label):
                self._tools.docker.stop(left)
        return code

    def _relax(self, container: str | None) -> None:
        relax(self._tools.docker, self._options.output_dir, image=self._options.image, container=container)


# A status, `stalled` or `error`, and the reason.
Trouble = tuple[str, str]
NO_STATISTICS: Trouble = ("stalled", "no_stats")
NO_PROGRESS: Trouble = ("stalled", "timeout")
TIMEOUTS: Trouble = ("error", "timeout_threshold")
HTTP_ERRORS: Trouble = ("error", "http_threshold")


class Monitor:
    """Counters of one stage. Errors are counted since the last progress or signal."""

    def __init__(self, *, limits: Options, started: float) -> None:
        self.limits = limits
        self.errors = no_errors()
        self.last: Statistics | None = None
        self.progressed: float | None = None
        self.quiet_since = started
        """Start of the wait for the first statistics: the stage's start, or the last signal about them."""

    def hear(self, line: bytes, now: float) -> None:
        found = read_statistics(line)
        if found is not None:
            # Progress forgives errors: they are counted since the last page.
            if self.last is None or found.crawled != self.last.crawled:
                self.progressed = now
                self.errors = no_errors()
            self.last = found
            return
        kind = error_class(line)
        if kind is not None:
            self.errors[kind] += 1

    def check(self, now: float) -> Trouble | None:
        """Return the first problem found: no statistics, no progress, timeouts, HTTP errors.

        A signal clears the error counters. Only a stall signal restarts its own wait, so that a stalled crawl is
        noticed even if its errors raise other signals.
        """
        signal = self._trouble(now)
        if signal is not None:
            self.errors = no_errors()
        return signal

    def _trouble(self, now: float) -> Trouble | None:
        if self.last is None and now - self.quiet_since > self.limits.stall_s:
            self.quiet_since = now
            return NO_STATISTICS
        # A crawl with nothing under way does not stand still: it is writing its files.
        waiting = self.last is not None and self.last.pending != 0
        if waiting and self.progressed is not None and now - self.progressed > self.limits.stall_s:
            self.progressed = now
            return NO_PROGRESS
        if self.errors["timeout"] >= self.limits.timeout_errors:
            return TIMEOUTS
        return HTTP_ERRORS if self.errors["http"] >= self.limits.http_errors else None


class StopRequest:
    """Interruptible waiting. Safe to wake from threads and signal handlers, because SimpleQueue is reentrant."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._wakes: SimpleQueue[None] = SimpleQueue()
        self.requests = 0
        """How often a signal asked for the end; the second time it is urgent."""

    @property
    def stopping(self) -> bool:
        return self.requests > 0

    def wake(self) -> None:
        self._wakes.put(None)

    def ask_to_stop(self, _number: int = 0, _frame: FrameType | None = None) -> None:
        self.requests += 1
        self.wake()

    def catch_signals(self) -> None:
        signal.signal(signal.SIGTERM, self.ask_to_stop)
        signal.signal(signal.SIGINT, self.ask_to_stop)

    def wait(self, seconds: float) -> bool:
        """Wait until something wakes it; return False if nothing did in these seconds."""
        try:
            self._wakes.get(timeout=max(0.0, seconds))
        except Empty:
            return False
        return True

    def wait_until(self, done: Callable[[], bool], seconds: float) -> bool:
        deadline = self._clock.monotonic() + seconds
        while not done():
            left = deadline - self._clock.monotonic()
            if left <= 0:
                return False
            self.wait(left)
        return True

    def pause(self, seconds: float) -> bool:
        """Wait unless a signal requests a stop; return whether one did."""
        return self.wait_until(lambda: self.stopping, seconds)


def rotate_vpn(command: str, times: Times, stop_request: StopRequest) -> bool:
    """Change the VPN exit and let the network settle; return whether the command succeeded in time."""
    try:
        vpn = start_quietly(find_program(command))
    except (ToolMissing, OSError) as exc:
        log.get().warning("vpn.failed", reason=str(exc))
        return False
    # A successful command may leave its connection running; of one that hangs, nothing may stay.
    code = vpn.finish(times.vpn_limit, lambda: stop_request.stopping)
    if code != 0:
        log.get().warning("vpn.failed", exit_code=code)
        return False
    log.get().info("vpn.rotated")
    stop_request.pause(times.vpn_settle)
    return True


class Strategies:
    """Choose countermeasures; the counts are in the state and survive the process."""

    def __init__(self, options: Options, state: CrawlState, clock: Clock, rotate: Callable[[str], bool]) -> None:
        """`rotate` runs the command that changes the VPN exit and returns whether it succeeded."""
        self._options, self._state, self._clock, self._rotate = options, state, clock, rotate
        self._rotated: float | None = None

    def answer(self, trouble: Trouble, patience: Callable[[float], bool]) -> bool:
        """Try the first allowed countermeasure; return whether the container must be stopped and resumed.

        `patience` waits while the crawl continues.
        """
        options, state = self._options, self._state
        events = log.get(status=trouble[0], reason=trouble[1])
        # The gentlest first: a worker less asks the site less, a restart loses requests in flight.
        may_reduce = options.adaptive_workers and state.worker_reductions_done < options.max_reductions
        if may_reduce and state.current_workers > options.min_workers:
            reductions = state.worker_reductions_done + 1
            state.update(current_workers=state.current_workers - 1, worker_reductions_done=reductions)
            events.info("crawl.workers_reduced", workers=state.current_workers)
            return True
        if options.vpn_command and self._may_rotate() and self._rotate(options.vpn_command):
            self._rotated = self._clock.monotonic()
            state.update(vpn_rotations_done=state.vpn_rotations_done + 1)
            return False
        if options.adaptive_restart and state.container_restarts_done < options.max_restarts:
            state.update(container_restarts_done=state.container_restarts_done + 1)
            events.info("crawl.restart", restarts=state.container_restarts_done)
            return True
        events.info("crawl.backoff", seconds=options.backoff_s)
        patience(options.backoff_s)
        return False

    def _may_rotate(self) -> bool:
        if not self._options.rotates_vpn or self._state.vpn_rotations_done >= self._options.max_rotations:
            return False
        return self._rotated is None or self._clock.monotonic() - self._rotated >= self._options.rotation_every_s
