"""What suites of operations and uploads share: a client of the upload protocol, and a party that runs what waits."""

from __future__ import annotations

import gzip
import threading
from base64 import b64encode
from collections.abc import Mapping
from hashlib import sha1
from typing import Any

import httpx

from holdfast.config import Settings
from holdfast.jobs.kinds import OperationKind
from holdfast.jobs.leases import ExecutionLease
from holdfast.operations.long_running import OperationState, find, state_of
from holdfast.operations.runner import OperationChild, OperationRunner
from holdfast.operations.running import HeldOperation, OperationWork, run_operation
from holdfast.operations.works import WORKS
from holdfast.worker.runner import RunnerHolding, StopReason, holding_for
from tests.api_bed import Server
from tests.jobs_bed import holder

UPLOADS = "/api/admin/uploads"
TUS = {"Tus-Resumable": "1.0.0"}


def warc_bytes(*urls: str, body: str = "<title>Uploaded</title><p>words of an upload</p>") -> bytes:
    """Return a small WARC file that another program wrote."""
    members = []
    for number, url in enumerate(urls or ("https://uploaded.example/",)):
        block = f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {len(body)}\r\n\r\n{body}"
        head = (
            f"WARC/1.0\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:uuid:00000000-0000-4000-8000-{number:012}>\r\n"
            f"WARC-Date: 2026-03-01T10:00:00Z\r\nWARC-Target-URI: {url}\r\n"
            f"Content-Type: application/http; msgtype=response\r\nContent-Length: {len(block)}\r\n\r\n"
        )
        members.append(gzip.compress(f"{head}{block}\r\n\r\n".encode(), mtime=0))
    return b"".join(members)


def metadata(**pairs: str) -> str:
    """Return pairs as the protocol writes them."""
    return ",".join(f"{name} {b64encode(value.encode()).decode()}" for name, value in pairs.items())


def begin(server: Server, size: int, **pairs: str) -> httpx.Response:
    """Return the answer to the wish for an upload."""
    headers = {**TUS, "Upload-Length": str(size), "Upload-Metadata": metadata(**{"source": "up", **pairs})}
    return server.client.request("POST", UPLOADS, headers=headers)


def new_upload(server: Server, size: int, **pairs: str) -> str:
    """Return where the pieces of a new upload go."""
    made = begin(server, size, **pairs)
    assert made.status_code == 201, made.text
    return made.headers["location"]


def send(server: Server, place: str, piece: bytes, offset: int, **headers: str) -> httpx.Response:
    """Return the answer to a piece."""
    sent = {**TUS, "Content-Type": "application/offset+octet-stream", "Upload-Offset": str(offset), **headers}
    return server.client.request("PATCH", place, content=piece, headers=sent)


def checksum(piece: bytes) -> str:
    """Return a piece's checksum as the protocol writes it."""
    return f"sha1 {b64encode(sha1(piece, usedforsecurity=False).digest()).decode()}"


def child_in_thread(server: Server, works: Mapping[OperationKind, OperationWork]) -> type[OperationChild]:
    """Return a child that performs operations in a thread, with these works."""

    class Child(OperationChild):
        def __init__(self, settings: Settings, lease: ExecutionLease, metrics: Mapping[str, Any]) -> None:
            self.metrics, self.end, self.error, self.code = dict(metrics), None, "", ""
            self._stopping = threading.Event()
            held = HeldOperation(lease.execution_id, lease.claim)
            options: dict[str, Any] = {"tell": self._hear, "stopping": self._stopping}
            self._thread = threading.Thread(
                target=run_operation, args=(settings, server.clock, held, works), kwargs=options
            )
            self._thread.start()

        def follow(self, holding: RunnerHolding) -> int:
            while self._thread.is_alive():
                # A worker's heartbeat looks for that.
                if holding.poll_signals() is not None or holding.is_paused:
                    self._stopping.set()
                self._thread.join(0.02)
            return 1

        def close(self) -> None:
            self._thread.join()

    return Child


def taken(server: Server, owner: str = "w1") -> ExecutionLease | None:
    """Take the operation that has waited longest, as a worker does."""
    return server.bed.party.leases.take(holder(server.bed.database, owner), operations=True)


def perform(
    server: Server,
    lease: ExecutionLease,
    works: Mapping[OperationKind, OperationWork] = WORKS,
    *,
    stop: StopReason | None = None,
) -> OperationState:
    """Run an operation with these works, as a worker does; return its state afterwards."""
    leases, settings = server.bed.party.leases, server.archive.settings
    holding = holding_for(lease, server.archive.database, leases, settings.jobs)
    if stop is not None:
        holding.ask(stop)
    ending = OperationRunner(settings, child_in_thread(server, works)).run(lease, holding)
    holding.flush()
    if ending is None:
        leases.release(lease, rest_s=holding.rest_s, has_died=holding.has_died)
    else:
        leases.settle(lease, ending)
    with server.archive.database.read() as session:
        return state_of(find(session, lease.execution_id).execution)


def run_waiting(server: Server) -> list[OperationState]:
    """Run all operations that wait, one after the other; return how they ended."""
    ended = []
    while (lease := taken(server)) is not None:
        ended.append(perform(server, lease))
    return ended


def captured(server: Server) -> None:
    """Import a file with three captures of two pages."""
    site = "https://uploaded.example"
    whole = warc_bytes(f"{site}/", f"{site}/two", f"{site}/two?utm_source=x")
    send(server, new_upload(server, len(whole)), whole, 0)
    assert run_waiting(server) == [OperationState.DONE]


def run_next(server: Server, work: OperationWork) -> OperationState:
    """Let the operation that has waited longest do this."""
    lease = taken(server)
    assert lease is not None, "nothing waits"
    return perform(server, lease, dict.fromkeys(OperationKind, work))


def operation(server: Server, number: int | str) -> dict[str, Any]:
    """Return an operation by its id or its address."""
    place = number if isinstance(number, str) else f"/api/admin/operations/{number}"
    found: dict[str, Any] = server.get(place).json()
    return found
