"""Live streams of a real server over real sockets: replay, taking up again, slow clients, and the end.

One server for all of it; the last test ends it.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple

import pytest

from holdfast import config
from holdfast.clock import SystemClock
from holdfast.config import JobSettings
from holdfast.jobs.journal import LogBook, emit, progress
from tests import forked
from tests.client import TOKEN, WITH_TOKEN
from tests.jobs_bed import Bed, open_bed
from tests.patience import allowed, deadline


class _Told(NamedTuple):
    name: str
    id: str | None
    data: Any


class _Line:
    """One client that reads a stream as it comes."""

    def __init__(self, port: int, path: str, *, last_id: str | None = None, buffer: int | None = None) -> None:
        self._socket = socket.socket()
        if buffer is not None:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        self._socket.settimeout(deadline(20))
        self._socket.connect(("127.0.0.1", port))
        known = "" if last_id is None else f"Last-Event-ID: {last_id}\r\n"
        head = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nX-Admin-Token: {TOKEN}\r\n{known}\r\n"
        self._socket.sendall(head.encode())
        self._file = self._socket.makefile("rb")
        self.status = int(self._file.readline().split()[1])
        while self._file.readline().strip():
            pass

    def events(self) -> Iterator[_Told]:
        """Yield events until the server ends the stream."""
        text = ""
        while size := int(self._file.readline() or b"0", 16):
            text += self._file.read(size).decode()
            self._file.readline()
            *blocks, text = text.split("\n\n")
            for block in blocks:
                fields = dict(line.split(": ", 1) for line in block.splitlines() if not line.startswith(":"))
                if "data" in fields:
                    yield _Told(fields["event"], fields.get("id"), json.loads(fields["data"]))

    def close(self) -> None:
        """Go."""
        self._file.close()
        self._socket.close()


class _Serving(NamedTuple):
    process: subprocess.Popen[str]
    port: int
    bed: Bed

    def listen(self, path: str, **options: Any) -> _Line:
        """Open a stream."""
        return _Line(self.port, path, **options)


@contextmanager
def _serving(home: Path, **variables: str) -> Iterator[_Serving]:
    settings = config.load(home=home)
    environment = {
        **os.environ,
        "HOLDFAST_LOG_LEVEL": "ERROR",
        "HOLDFAST_API_RATE_LIMITING": "false",
        **WITH_TOKEN,
        **variables,
    }
    process = forked.Popen(
        [sys.executable, "-m", "holdfast.cli.main", "api", "--port", "0", "--home", str(home)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line.startswith("serving"), process.stderr.read() if process.stderr else line
    try:
        with open_bed(settings.database, SystemClock(), home) as bed:
            yield _Serving(process, int(line.rpartition(":")[2]), bed)
    finally:
        process.kill()
        process.communicate()


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[_Serving]:
    """A server on an empty archive; a client that stops reading is cut off soon."""
    with _serving(
        tmp_path_factory.mktemp("home"),
        HOLDFAST_TIMINGS_SERVER_WRITE_S="0.5",
        HOLDFAST_TIMINGS_SERVER_STREAMS_PER_PRINCIPAL="99",
    ) as opened:
        yield opened


def _log(bed: Bed, execution_id: int, *messages: str) -> None:
    book = LogBook(bed.database, bed.clock, execution_id, JobSettings())
    for message in messages:
        book.write("info", "crawler.fetch", message)
    book.flush()


def test_a_log_is_replayed_followed_and_taken_up_again(serving: _Serving) -> None:
    job_id = serving.bed.once("log", max_retries=0)
    serving.bed.party.scheduler.tick()
    lease = serving.bed.party.taken()
    _log(serving.bed, lease.execution_id, *(f"line {number}" for number in range(230)))
    path = f"/api/v1/jobs/{job_id}/logs/stream/v2"

    with closing(serving.listen(path)) as line:
        told = line.events()
        greeting, replay = next(told), next(told)
        _log(serving.bed, lease.execution_id, "line 230", "line 231")
        followed = [next(told), next(told)]
    with closing(serving.listen(path, last_id=followed[0].id)) as line:
        told = line.events()
        next(told)
        again = next(told)

    assert (greeting.name, replay.name, replay.data["count"]) == ("connected", "log:replay", 200)
    assert replay.data["lines"][0]["message"] == "line 30"
    assert [(one.name, one.data["message"]) for one in followed] == [("log:line", "line 230"), ("log:line", "line 231")]
    assert [one["message"] for one in again.data["lines"]] == ["line 231"]


def test_a_client_that_does_not_read_is_dropped_while_others_go_on(serving: _Serving) -> None:
    job_id = serving.bed.once("slow", max_retries=0)
    serving.bed.party.scheduler.tick()
    lease = serving.bed.party.taken()
    path = f"/api/v1/jobs/{job_id}/logs/stream/v2"

    with closing(serving.listen(path, buffer=4096)) as slow, closing(serving.listen(path)) as quick:
        told = quick.events()
        next(told)
        for number in range(30):
            _log(serving.bed, lease.execution_id, *(f"{number} {'x' * 4000}" for _ in range(50)))
        seen = [next(told) for _ in range(1500)]
        heard = []
        # It is cut off in the middle, or reads why it was ended; it does not get everything.
        with suppress(ConnectionError, ValueError):
            heard += [one.name for one in slow.events()]

    assert [one.name for one in seen] == ["log:line"] * 1500
    assert heard.count("log:line") < 1500


def test_streams_end_within_a_second_when_the_server_is_told_to_stop(serving: _Serving) -> None:
    lines = [
        serving.listen(path)
        for path in ("/api/crawler/events", "/api/events", "/api/health/events", "/api/metrics/events")
        for _ in range(5)
    ]
    streams = [line.events() for line in lines]
    assert {next(told).name for told in streams} == {"connected"}
    job_id = serving.bed.once("ex")
    with serving.bed.database.write() as session:
        emit(session, [progress(job_id, 1, items_found=1, items_indexed=0)], now=serving.bed.clock.now())
    heard = [next(told).name for told in streams[:5]]

    began = monotonic()
    serving.process.send_signal(signal.SIGTERM)
    last = [list(told)[-1] for told in streams]
    took_s = monotonic() - began
    code = serving.process.wait(deadline(20))
    for line in lines:
        line.close()

    assert set(heard) <= {"job:status", "job:progress"}
    assert {(one.name, one.data["reason"]) for one in last} == {("end", "shutdown")}
    assert code == 0
    assert took_s < allowed(1.0)
