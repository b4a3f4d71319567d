"""A file is sent to a real server in pieces; the server is killed in the middle, twice, and nothing is lost."""

from __future__ import annotations

import gzip
import os
import random
import signal
import socket
import subprocess
import sys
import time
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

import httpx

from tests import forked
from tests.client import ADMIN, WITH_TOKEN
from tests.patience import allowed, deadline

_TUS = {"Tus-Resumable": "1.0.0"}
_PIECE = {**_TUS, "Content-Type": "application/offset+octet-stream"}
_URL = "https://uploaded.example/large"
_MARK = b"the end of a large page"


def _warc() -> bytes:
    """Return a WARC file of 20 MiB that does not compress."""
    body = random.Random(12).randbytes(20 << 20) + _MARK
    block = b"HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\n\r\n" + body
    head = (
        "WARC/1.0\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:uuid:00000000-0000-4000-8000-000000000001>\r\n"
        f"WARC-Date: 2026-03-01T10:00:00Z\r\nWARC-Target-URI: {_URL}\r\n"
        f"Content-Type: application/http; msgtype=response\r\nContent-Length: {len(block)}\r\n\r\n"
    )
    return gzip.compress(head.encode() + block + b"\r\n\r\n", compresslevel=1, mtime=0)


@contextmanager
def _serving(home: Path, **variables: str) -> Iterator[tuple[subprocess.Popen[str], httpx.Client]]:
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
        text=True,
        env=environment,
    )
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line.startswith("serving http://127.0.0.1:"), line
    try:
        with httpx.Client(base_url=line.split()[1], headers=ADMIN, timeout=deadline(30)) as client:
            yield process, client
    finally:
        process.kill()
        process.communicate()


def _until(ask: Callable[[], Any], holds: Callable[[Any], bool], seconds: float = 30.0) -> Any:
    began = time.monotonic()
    while not holds(found := ask()):
        assert time.monotonic() - began < deadline(seconds), found
        time.sleep(0.05)
    return found


def test_an_upload_goes_on_after_the_server_was_killed_and_its_page_is_replayed(tmp_path: Path) -> None:
    home, whole = tmp_path / "home", _warc()
    pairs = {"source": "up", "filename": "large.warc.gz", "sha256": sha256(whole).hexdigest()}
    metadata = ",".join(f"{name} {b64encode(value.encode()).decode()}" for name, value in pairs.items())

    with _serving(home) as (process, client):
        made = client.post(
            "/api/admin/uploads", headers={**_TUS, "Upload-Length": str(len(whole)), "Upload-Metadata": metadata}
        )
        place = made.headers["location"]
        with closing(socket.create_connection((client.base_url.host, client.base_url.port or 0))) as line:
            headers = {**ADMIN, **_PIECE, "Host": f"127.0.0.1:{client.base_url.port}", "Upload-Offset": "0"}
            head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
            line.sendall(f"PATCH {place} HTTP/1.1\r\n{head}Content-Length: {len(whole)}\r\n\r\n".encode())
            line.sendall(whole[: 18 << 20])
            _until(lambda: client.get(place).json()["received"], lambda received: received >= 16 << 20)
            process.send_signal(signal.SIGKILL)
            process.wait()

    # The process that imports it dies behind the row of the file; so does the server.
    with _serving(home, HOLDFAST_FAILPOINT="import_registered:kill") as (process, client):
        asked = client.head(place, headers=_TUS)
        offset = int(asked.headers["upload-offset"])
        sent = client.patch(place, headers={**_PIECE, "Upload-Offset": str(offset)}, content=whole[offset:])
        operation = sent.headers["holdfast-operation"]
        begun = _until(lambda: client.get(operation).json(), lambda found: found["attempt"] > 0)
        _until(lambda: list(home.glob("warcs/up/*/*.warc.gz")), bool)
        process.send_signal(signal.SIGKILL)
        process.wait()

    with _serving(home) as (process, client):
        done = _until(lambda: client.get(operation).json(), lambda found: found["finishedAt"] is not None)
        shown = client.get(place).json()
        replayed = client.get(f"/web/20260301100000id_/{_URL}", headers={"Host": "replay.localhost"})
        process.send_signal(signal.SIGTERM)
        ended = process.wait(deadline(30))

    assert made.status_code == 201
    assert 16 << 20 <= offset <= 18 << 20
    assert sent.status_code == 204
    waited = datetime.fromisoformat(begun["startedAt"]) - datetime.fromisoformat(begun["createdAt"])
    # No worker runs: two seconds pass until the server starts one, and that has to load.
    assert waited.total_seconds() < allowed(6.0)
    assert (done["state"], done["result"]["failed"], done["result"]["snapshots"]) == ("done", 0, 1), done
    assert done["attempt"] > 1
    assert shown["state"] == "imported"
    assert replayed.content.endswith(_MARK)
    assert list((home / "uploads").iterdir()) == []
    assert ended == 0


@contextmanager
def _worker(home: Path, **variables: str) -> Iterator[subprocess.Popen[bytes]]:
    environment = {**os.environ, "HOLDFAST_LOG_LEVEL": "ERROR", "HOLDFAST_CONTACT": "ops@example.org", **variables}
    process = forked.Popen(
        [sys.executable, "-m", "holdfast.cli.main", "worker", "start", "--home", str(home)], env=environment
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def test_import_survives_the_deaths_of_its_process_and_of_its_worker(tmp_path: Path) -> None:
    home, whole = tmp_path / "home", _warc()
    pairs = {"source": "up", "filename": "large.warc.gz"}
    metadata = ",".join(f"{name} {b64encode(value.encode()).decode()}" for name, value in pairs.items())

    with _serving(home) as (_, client):
        # The process that imports it dies behind the row of the file; its worker lives, and starts the next.
        with _worker(home, HOLDFAST_FAILPOINT="import_registered:kill") as worker:
            made = client.post(
                "/api/admin/uploads", headers={**_TUS, "Upload-Length": str(len(whole)), "Upload-Metadata": metadata}
            )
            place = made.headers["location"]
            sent = client.patch(place, headers={**_PIECE, "Upload-Offset": "0"}, content=whole)
            operation = sent.headers["holdfast-operation"]
            tried = _until(lambda: client.get(operation).json(), lambda found: found["attempt"] > 1)
            lives = worker.poll() is None
            worker.send_signal(signal.SIGKILL)
            worker.wait()
        with _worker(home):
            done = _until(lambda: client.get(operation).json(), lambda found: found["finishedAt"] is not None)
            listed = client.get("/api/v1/jobs").json()["total"]
            replay = {"Host": "replay.localhost"}
            replayed = _until(
                lambda: client.get(f"/web/20260301100000id_/{_URL}", headers=replay), lambda got: got.is_success
            )

    assert lives
    assert tried["state"] == "running"
    assert (done["state"], done["result"]["failed"]) == ("done", 0), done
    assert replayed.content.endswith(_MARK)
    assert done["attempt"] > 2
    assert listed == 0
