"""What suites of operations and uploads share: a client of the upload protocol, and a party that runs what waits."""

from __future__ import annotations

import gzip
from base64 import b64encode
from hashlib import sha1
from typing import Any

import httpx

from holdfast.operations.long_running import OperationLeases, OperationState
from holdfast.operations.running import run_operation
from holdfast.operations.works import WORKS
from tests.api_bed import Server

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


def begun(server: Server, size: int, **pairs: str) -> str:
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


def run_waiting(server: Server) -> list[OperationState]:
    """Run all operations that wait, one after the other, in this process; return how they ended."""
    archive, ended = server.archive, []
    leases = OperationLeases(archive.database, server.clock, archive.home.resolve() / "run")
    while (held := leases.take()) is not None:
        ended.append(run_operation(archive.settings, server.clock, held, WORKS))
    return ended


def operation(server: Server, number: int | str) -> dict[str, Any]:
    """Return an operation by its id or its address."""
    place = number if isinstance(number, str) else f"/api/admin/operations/{number}"
    found: dict[str, Any] = server.get(place).json()
    return found
