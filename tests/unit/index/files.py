"""WARC files as others write them, well and badly; and what the index reads in them."""

from __future__ import annotations

import gzip
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from holdfast.index.capture import IndexedCapture
from holdfast.index.reading import FileReading
from tests.clock import FakeClock

NOW = datetime(2026, 9, 1, tzinfo=UTC)


def record(
    block: bytes = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<p>Body</p>",
    *,
    kind: str = "response",
    url: str | None = "http://example.org/",
    date: str | None = "2024-03-01T12:00:00Z",
    length: str | None = "",
    more: bytes = b"",
) -> bytes:
    """Return one record; `length` is written as it is, None leaves it out."""
    head = b"WARC/1.1\r\nWARC-Type: " + kind.encode() + b"\r\nWARC-Record-ID: <urn:uuid:00000000-0000-4000-8000-1>\r\n"
    if url is not None:
        head += b"WARC-Target-URI: " + url.encode() + b"\r\n"
    if date is not None:
        head += b"WARC-Date: " + date.encode() + b"\r\n"
    if kind in ("response", "revisit", "request"):
        head += b"Content-Type: application/http; msgtype=" + kind.encode() + b"\r\n"
    if length is not None:
        head += b"Content-Length: " + (length.encode() or str(len(block)).encode()) + b"\r\n"
    return head + more + b"\r\n" + block + b"\r\n\r\n"


def response(body: bytes, headers: bytes = b"Content-Type: text/html\r\n") -> bytes:
    """Return the block of a response."""
    return b"HTTP/1.1 200 OK\r\n" + headers + b"\r\n" + body


class Read(NamedTuple):
    """What the index makes of a file."""

    captures: list[IndexedCapture]
    reading: FileReading

    @property
    def kinds(self) -> dict[str, int]:
        """How often there was which trouble."""
        return {kind: one["count"] for kind, one in self.reading.warnings.kinds.items()}


def read(path: Path, *, now: datetime = NOW) -> Read:
    """Read a file to its end, at a time that may be wrong."""
    reading = FileReading(path, 1, FakeClock(now), pulse=lambda: None)
    return Read([capture for batch, _ in reading.batches() for capture in batch], reading)


def write(path: Path, *records: bytes, packed: bool = True) -> Path:
    """Write records, one gzip member each or plain."""
    path.write_bytes(b"".join(gzip.compress(one) if packed else one for one in records))
    return path
