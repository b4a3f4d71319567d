"""One stage: one container from its start to its end, recorded, watched, and stopped with its WARC files kept."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from subprocess import Popen
from typing import IO, NamedTuple

from holdfast import log
from holdfast.archive_tool.docker import (
    LOOKUPS,
    START_FAILURES,
    SUCCESS_CODES,
    Docker,
    Launch,
    Times,
    docker_environment,
    relax_with,
)
from holdfast.archive_tool.errors import StoreMissing
from holdfast.archive_tool.logs import MAX_LINE_BYTES, StageLogFile, stage_log
from holdfast.archive_tool.options import Options
from holdfast.archive_tool.state import CrawlState
from holdfast.archive_tool.strategies import Bell, Monitor, StageAction, Strategies, TroubleLimits
from holdfast.clock import Clock

Listener = Callable[[bytes], None]
_CHUNK = 64 * 1024


class StageLog:
    """Records one process until both of its outputs are closed."""

    def __init__(self, log: StageLogFile, listener: Listener, ended: Callable[[], None]) -> None:
        self.log = log
        self.trouble: OSError | None = None
        """Why the logs could not be written, if they could not."""
        self._listener, self._ended = listener, ended
        self._lock = threading.Lock()
        self._open = 2
        self._threads: list[threading.Thread] = []
        self._combined = _create(log.combined)

    @property
    def is_over(self) -> bool:
        """Whether the process has closed both of its outputs."""
        return self._open == 0

    def record(self, process: Popen[bytes]) -> None:
        """Begin; the process must have both outputs as pipes."""
        assert process.stdout is not None
        assert process.stderr is not None
        for stream, path in ((process.stdout, self.log.stdout), (process.stderr, self.log.stderr)):
            thread = threading.Thread(target=self._copy, args=(stream, _create(path)), name=path.name, daemon=True)
            self._threads.append(thread)
            thread.start()

    def note(self, line: str) -> None:
        """Write a line of our own to the combined log, and listen to it."""
        data = line.encode() + b"\n"
        self._write(self._combined, data)
        self._listener(data)

    def close(self, timeout: float) -> None:
        """Wait for what is still under way, and close the files."""
        for thread in self._threads:
            thread.join(timeout)
        with self._lock:
            self._combined.close()

    def _copy(self, stream: IO[bytes], own: IO[bytes]) -> None:
        rest, endless = b"", False
        with own:
            while chunk := os.read(stream.fileno(), _CHUNK):
                self._write(own, chunk)
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    self._write(self._combined, line + b"\n")
                    if not endless:
                        self._listener(line)
                    endless = False
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
    """Open a log that must be new, unbuffered: whoever looks at it sees everything that was said."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
    return os.fdopen(fd, "wb", buffering=0)


_FOREVER_S = 3600.0
_LOOK_S = 0.05


class End(Enum):
    """How a stage ended."""

    SUCCESS = "success"
    FAILED = "failed"
    ADAPTED = "stopped for adaptation"
    STOPPED = "stopped"
    NOT_STARTED = "not started"


class StageEnd(NamedTuple):
    """How a stage ended, with what the container said last."""

    end: End
    exit_code: int | None
    log: StageLogFile


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools:
    """What a stage works with."""

    options: Options
    state: CrawlState
    clock: Clock
    bell: Bell
    docker: Docker
    times: Times
    strategies: Strategies


class Stage:
    """Runs one container."""

    def __init__(self, tools: Tools, name: str, launch: Launch, *, watched: bool = True) -> None:
        self._tools, self._launch = tools, launch
        self._watched = watched and tools.options.watch.enabled
        self._options, self._bell, self._clock = tools.options, tools.bell, tools.clock
        watch = tools.options.watch
        self._monitor = Monitor(
            limits=TroubleLimits(watch.stall_s, watch.timeout_errors, watch.http_errors),
            started=tools.clock.monotonic(),
        )
        self._lock = threading.Lock()
        self._container: str | None = None
        self._output = StageLog(
            stage_log(tools.options.output_dir, name, tools.clock.now()), self._hear, tools.bell.ring
        )

    def run(self) -> StageEnd:
        """Run to the end; StoreMissing if the logs can no longer be written."""
        try:
            process = subprocess.Popen(
                self._launch.command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=docker_environment(),
                start_new_session=True,
                bufsize=0,
            )
        except OSError as exc:
            self._output.note(f"archive-tool: docker could not be started: {exc}")
            self._output.close(0)
            return StageEnd(End.NOT_STARTED, None, self._output.log)
        self._output.record(process)
        try:
            end = self._watch(process)
        except BaseException:
            self._stop(process)
            self._wait(process, End.FAILED)
            raise
        if end is not None:
            self._stop(process)
        code = self._wait(process, end)
        self._output.close(self._tools.times.stop_margin)
        self._check_tape()
        if self._options.relax_perms_s is not None:
            self._relax(None)
        return StageEnd(end or _end_of(code), code, self._output.log)

    def _watch(self, process: subprocess.Popen[bytes]) -> End | None:
        """Watch until the container ends by itself (None) or must be stopped, and why."""
        self._find_container()
        interval, relax_s = self._options.watch.interval_s, self._options.relax_perms_s
        next_check = self._clock.monotonic() + interval
        next_relax = self._clock.monotonic() + (relax_s or _FOREVER_S)
        while not self._output.is_over and self._output.trouble is None:
            if self._bell.stopping:
                return End.STOPPED
            self._bell.wait(min(next_check, next_relax) - self._clock.monotonic())
            now = self._clock.monotonic()
            if relax_s is not None and now >= next_relax:
                self._relax(self._container)
                next_relax = now + relax_s
            if now >= next_check and not self._output.is_over:
                if self._watched and self._intervene(now) is StageAction.STOP_CONTAINER:
                    return End.ADAPTED
                next_check = self._clock.monotonic() + interval
        if self._output.trouble is not None:
            return End.FAILED
        return None

    def _intervene(self, now: float) -> StageAction:
        with self._lock:
            errors = dict(self._monitor.errors)
            signal = self._monitor.check(now)
        if errors != self._tools.state.errors:
            self._tools.state.errors = errors
            self._tools.state.save()
        if signal is None or self._bell.stopping:
            return StageAction.CARRY_ON
        log.get().warning("crawl.trouble", status=signal.status, reason=signal.reason, **errors)
        action = self._tools.strategies.answer(signal, self._patience)
        with self._lock:
            self._monitor.clear_errors()
            self._tools.state.errors = dict(self._monitor.errors)
        self._tools.state.save()
        return action

    def _patience(self, seconds: float) -> bool:
        return self._bell.wait_until(lambda: self._bell.stopping or self._output.is_over, seconds)

    def _hear(self, line: bytes) -> None:
        with self._lock:
            self._monitor.hear(line, self._clock.monotonic())

    def _find_container(self) -> None:
        for _ in range(LOOKUPS):
            found = self._tools.docker.containers(f"archive_job={self._launch.label}")
            if found:
                self._container = found[0]
                log.get().info("container.started", container=found[0], label=self._launch.label)
                return
            if self._patience(self._tools.times.lookup_every):
                return

    def _stop(self, process: subprocess.Popen[bytes]) -> None:
        """Stop the container with its grace; a second request to end takes the grace away."""
        docker, label = self._tools.docker, f"archive_job={self._launch.label}"
        found = [self._container] if self._container else docker.containers(label)
        log.get().info("container.stopping", container=found[0] if found else None)
        stopped = bool(found) and docker.stop(found[0], lambda: self._bell.requests > 1)
        if not stopped:
            process.terminate()

    def _wait(self, process: subprocess.Popen[bytes], end: End | None) -> int:
        """Return the exit code of `docker run`, which is the container's; no container is left behind."""
        if end is None:
            while process.poll() is None and not self._bell.stopping:
                self._bell.wait(_LOOK_S)  # both outputs are closed, so this is a moment
        try:
            code = process.wait(timeout=self._tools.times.stop_grace + self._tools.times.stop_margin)
        except subprocess.TimeoutExpired:
            process.kill()
            code = process.wait()
        if code < 0:
            for left in self._tools.docker.containers(f"archive_job={self._launch.label}"):
                self._tools.docker.stop(left)
        return code

    def _relax(self, container: str | None) -> None:
        relax_with(self._tools.docker, self._options.output_dir, image=self._options.image, container=container)

    def _check_tape(self) -> None:
        if self._output.trouble is not None:
            raise StoreMissing(
                self._options.output_dir, f"errno {self._output.trouble.errno}: {self._output.trouble.strerror}"
            ) from self._output.trouble


def _end_of(code: int) -> End:
    if code in SUCCESS_CODES:
        return End.SUCCESS
    return End.NOT_STARTED if code in START_FAILURES else End.FAILED


def stage_name(kind: str, attempt: int) -> str:
    """Return what a stage is called."""
    return f"{kind} - Attempt {attempt}"
