"""What the tests of the WARC room are made of: bodies, exchanges, and files with known records."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from holdfast.types import Fetched, Original, Truncated
from holdfast.warc.outfile import SealedFile
from holdfast.warc.payload import parse_head, payload_chunks
from holdfast.warc.record import Profile, RecordIds, sha256_of
from holdfast.warc.writer import ExchangeDraft, WarcWriter
from tests.clock import FakeClock

STARTED = datetime(2026, 9, 1, 11, 59, 58, 123456, tzinfo=UTC)
REQUEST = b"GET /page HTTP/1.1\r\nHost: example.org\r\nUser-Agent: Holdfast/0.1.0 (+mailto:crawl@example.org)\r\n\r\n"
INFO = {"operator": "crawl@example.org", "isPartOf": "example-1", "robots": "obey", "description": '{"max_depth": 10}'}


class Bytes:
    """A body in memory, given out in pieces."""

    def __init__(self, content: bytes, piece: int = 65536) -> None:
        self._content, self._piece = content, piece

    @property
    def size(self) -> int:
        return len(self._content)

    def chunks(self) -> Iterator[bytes]:
        for at in range(0, len(self._content), self._piece):
            yield self._content[at : at + self._piece]

    def close(self) -> None:
        return None


def counted_ids() -> RecordIds:
    """Return ids that count: 00000000-0000-4000-8000-000000000001 and so on."""
    numbers = iter(range(1, 1_000_000))
    return lambda: f"00000000-0000-4000-8000-{next(numbers):012d}"


def exchange(
    body: bytes = b"<html>hello</html>", *, url: str = "http://example.org/page", headers: bytes = b"",
    truncated: Truncated | None = None, revisit_of: Original | None = None, profile: Profile | None = None,
) -> ExchangeDraft:  # fmt: skip
    """Return an exchange whose payload digest is right."""
    status = b"304 Not Modified" if profile is Profile.SERVER_NOT_MODIFIED else b"200 OK"
    head = b"HTTP/1.1 " + status + b"\r\nContent-Type: text/html\r\n" + headers + b"\r\n"
    content = Bytes(body)
    fetched = Fetched(
        url=url, status=int(status[:3]), started_at=STARTED, took_s=0.0, ip="192.0.2.7", request_head=REQUEST,
        response_head=head, body=content, truncated=truncated,
    )  # fmt: skip
    digest = sha256_of(payload_chunks(parse_head(head), content))
    return ExchangeDraft(fetched=fetched, payload_digest=digest, revisit_of=revisit_of, profile=profile)


def original(record_id: str = "00000000-0000-4000-8000-000000000002") -> Original:
    """Return what a page remembers of its last whole capture."""
    return Original(
        record_id=record_id, url="http://example.org/page", captured_at=STARTED,
        payload_digest=sha256_of((b"<html>hello</html>",)), warc_file_id=7, offset=600,
    )  # fmt: skip


def write(folder: Path, count: int, *, body: bytes = b"", name: str = "archive") -> tuple[SealedFile, list[int]]:
    """Seal a file of `count` exchanges; return it, and where each of its members ends."""
    writer = WarcWriter.create(folder, name, 7, INFO, FakeClock(), ids=counted_ids())
    ends = [writer.size]
    for number in range(count):
        content = body or b"<html><body>%d %s</body></html>" % (number, b"some words " * (number % 40))
        appended = writer.append_exchange(exchange(content, url=f"http://example.org/{number}"))
        assert appended.request is not None
        ends += [appended.request.offset, writer.size]
    return writer.seal(), ends


def unpacked(path: Path) -> list[bytes]:
    """Return what is inside each gzip member, by nothing but zlib."""
    members, rest = [], path.read_bytes()
    while rest:
        inflate = zlib.decompressobj(31)
        members.append(inflate.decompress(rest))
        assert inflate.eof
        rest = inflate.unused_data
    return members
