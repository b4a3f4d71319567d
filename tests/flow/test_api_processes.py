"""Several processes serve one archive on one port: one that dies is replaced, and all end together."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from http.client import HTTPConnection, HTTPException
from pathlib import Path

from holdfast.search.outbox import drain
from tests import forked, patience
from tests.archive import Shot, build_archive
from tests.client import ADMIN, WITH_TOKEN


@contextmanager
def _serving(home: Path) -> Iterator[tuple[subprocess.Popen[str], int]]:
    command = [sys.executable, "-m", "holdfast.cli.main", "api", "--processes", "2", "--port", "0"]
    variables = {**os.environ, "HOLDFAST_HOME": str(home), "HOLDFAST_API_RATE_LIMITING": "false", **WITH_TOKEN}
    with forked.Popen(command, text=True, stdout=subprocess.PIPE, env=variables) as process:
        try:
            assert process.stdout is not None
            found = re.fullmatch(r"serving http://127\.0\.0\.1:(\d+)\n", process.stdout.readline())
            assert found is not None
            yield process, int(found[1])
        finally:
            process.kill()


def _children(process: subprocess.Popen[str]) -> set[int]:
    return set(map(int, Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()))


def _until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + patience.deadline(30)
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def _status(port: int, path: str) -> int:
    with closing(HTTPConnection("127.0.0.1", port, timeout=patience.deadline(30))) as connection:
        try:
            connection.request("GET", path)
            return connection.getresponse().status
        except (OSError, HTTPException):
            # A connection that the process had taken which was killed.
            return 0


def _searches(port: int) -> float:
    with closing(HTTPConnection("127.0.0.1", port, timeout=patience.deadline(30))) as connection:
        connection.request("GET", "/metrics", headers=ADMIN)
        told = connection.getresponse().read().decode()
    found = re.search(r"^holdfast_search_requests_total (\S+)$", told, re.MULTILINE)
    return float(found[1]) if found else 0.0


def test_a_process_that_dies_is_replaced_and_all_end_together(tmp_path: Path) -> None:
    archive = build_archive(tmp_path, [Shot(url="https://example.org/")])
    drain(archive.database, archive.home, archive.clock)
    archive.database.close()
    with _serving(tmp_path) as (process, port):
        before = _children(process)
        assert len(before) == 2
        assert {_status(port, "/api/search?q=example") for _ in range(8)} == {200}

        # Whichever process answers: each leaves what it counted when it is asked, and tells what the others left.
        _until(lambda: _searches(port) == 8)
        assert {_searches(port) for _ in range(6)} == {8}

        os.kill(min(before), signal.SIGKILL)
        _until(lambda: len(_children(process)) == 2 and min(before) not in _children(process))
        _until(lambda: _status(port, "/api/stats") == 200)
        assert {_searches(port) for _ in range(6)} == {8}

        after = _children(process)
        process.terminate()
        assert process.wait(patience.deadline(30)) == 0
        assert not any(Path(f"/proc/{pid}").exists() for pid in after)
