"""The WARC writer beside warcio on the benchmark's pages, and the size of its files beside zlib level 6."""

from __future__ import annotations

import io
import tempfile
import time
import zlib
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

from holdfast.clock import SystemClock
from holdfast.fetch.body import MemoryBody
from holdfast.types import Fetched
from holdfast.warc.member import pack
from holdfast.warc.record import sha256_of
from holdfast.warc.writer import ExchangeDraft, WarcWriter

_REQUEST = b"GET / HTTP/1.1\r\nHost: 127.0.0.10:8080\r\nUser-Agent: Holdfast/0 (+mailto:bench@example.org)\r\n\r\n"
_HEADERS = [("Server", "nginx"), ("Content-Type", "text/html; charset=utf-8"), ("Connection", "keep-alive")]


class WarcFigures(NamedTuple):
    """Microseconds for request and response with digests, and bytes against zlib level 6 of the same records."""

    ours_us: float
    warcio_us: float
    size_ratio: float


def measure(site: Path, *, pages: int = 300) -> WarcFigures:
    """Write the same exchanges with both, in turns, and keep the best of three."""
    bodies = [path.read_bytes() for path in sorted((site / "site").rglob("p*.html"))[:pages]]
    ours, theirs = [], []
    for _ in range(3):
        ours.append(_timed(lambda: _ours(bodies), len(bodies)))
        theirs.append(_timed(lambda: _warcio(bodies), len(bodies)))
    packed = sum(len(pack(body)) for body in bodies)
    return WarcFigures(min(ours), min(theirs), packed / sum(len(zlib.compress(body, 6)) for body in bodies))


def _timed(work: Callable[[], None], count: int) -> float:
    started = time.process_time()
    work()
    return (time.process_time() - started) / count * 1e6


def _ours(bodies: list[bytes]) -> None:
    head = b"HTTP/1.1 200 OK\r\n" + b"".join(f"{n}: {v}\r\n".encode() for n, v in _HEADERS) + b"\r\n"
    with tempfile.TemporaryDirectory() as folder:
        writer = WarcWriter.create(Path(folder), "bench", 1, {"software": "bench"}, SystemClock())
        for body in bodies:
            writer.append_exchange(
                ExchangeDraft(
                    fetched=Fetched(
                        url="http://127.0.0.10:8080/", status=200, started_at=datetime.now(UTC), took_s=0.0,
                        ip="127.0.0.10", request_head=_REQUEST, response_head=head, body=MemoryBody((body,)),
                    ),
                    payload_digest=sha256_of((body,)),
                )
            )  # fmt: skip
        writer.seal()


def _warcio(bodies: list[bytes]) -> None:
    with tempfile.TemporaryFile() as stream:
        writer = WARCWriter(stream, gzip=True)
        for body in bodies:
            response = writer.create_warc_record(
                "http://127.0.0.10:8080/", "response", payload=io.BytesIO(body),
                http_headers=StatusAndHeaders("200 OK", _HEADERS, protocol="HTTP/1.1"),
            )  # fmt: skip
            request = writer.create_warc_record(
                "http://127.0.0.10:8080/", "request",
                http_headers=StatusAndHeaders("GET / HTTP/1.1", [("Host", "127.0.0.10:8080")], is_http_request=True),
            )  # fmt: skip
            writer.write_request_response_pair(request, response)
