"""What fills the place of a withdrawn record: exactly its length, and a reader walks over it."""

from __future__ import annotations

import gzip
import tracemalloc
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from threading import Event

import pytest
import zstandard

from holdfast import cancellation
from holdfast.exports.redaction import NOTE, blanked, filling, find_gaps
from holdfast.exports.zipping import read_segments
from holdfast.types import Fetched
from holdfast.urls import page_key
from holdfast.warc.reader import read_records
from holdfast.warc.writer import ExchangeDraft, WarcWriter
from holdfast.withdrawals.hidden_captures import HiddenRecord
from tests.clock import FakeClock

AT = datetime(2026, 1, 2, tzinfo=UTC)


@pytest.mark.parametrize("length", [22, 40, 300, 400, 5000, 65_535, 65_536, 65_600, 66_000, 67_000, 300_000])
def test_a_gzip_gap_is_whole_members_of_exactly_its_length(length: int) -> None:
    filled = b"".join(filling("a.warc.gz", length, AT))

    assert len(filled) == length
    assert length < 400 or NOTE.encode() in gzip.decompress(filled)


@pytest.mark.parametrize("length", [9, 100, 300, 5000, 200_000])
def test_a_zstd_gap_is_passed_over(length: int) -> None:
    filled = b"".join(filling("a.warc.zst", length, AT))
    frame = zstandard.compress(b"behind")

    assert len(filled) == length
    with zstandard.ZstdDecompressor().stream_reader(filled + frame, read_across_frames=True) as reader:
        assert reader.read() == b"behind"


@pytest.mark.parametrize("length", [1, 3, 400, 70_000, 131_073])
def test_a_plain_gap_has_exactly_its_length(length: int) -> None:
    assert len(b"".join(filling("a.warc", length, AT))) == length


def _written(folder: Path) -> Path:
    writer = WarcWriter.create(folder, "x", 1, {"software": "tests"}, FakeClock())
    for name in ("a", "b", "c"):
        url = f"https://example.org/{name}"
        head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n"
        sent = f"GET /{name} HTTP/1.1\r\nHost: example.org\r\n\r\n".encode()
        fetched = Fetched(
            url=url, status=200, started_at=AT, took_s=0.0, ip="192.0.2.1", request_head=sent, response_head=head,
            body=_Bytes(f"words of {name}".encode()),
        )  # fmt: skip
        writer.append_exchange(ExchangeDraft(fetched=fetched, payload_digest="sha256:00"))
    return writer.seal().path


class _Bytes:
    def __init__(self, content: bytes) -> None:
        self._content = content
        self.size = len(content)

    def chunks(self) -> Iterator[bytes]:
        """Yield the content."""
        yield self._content

    def close(self) -> None:
        """Nothing is held."""


def test_the_request_goes_with_its_response_and_nothing_else(tmp_path: Path) -> None:
    path = _written(tmp_path)
    records = list(read_records(path))
    response = next(r for r in records if r.head.type == "response" and r.head.url.endswith("/b"))

    gaps = find_gaps(path, [HiddenRecord(1, response.offset, response.length)])
    blank = tmp_path / "blank.warc.gz"
    blank.write_bytes(b"".join(read_segments(blanked(path, path.stat().st_size, gaps, AT))))

    assert gaps == sorted(
        (r.offset, r.length) for r in records if r.head.type != "warcinfo" and r.head.url.endswith("/b")
    )
    assert len(gaps) == 2
    after = list(read_records(blank))
    assert [(r.offset, r.ordinal) for r in after] == [(r.offset, r.ordinal) for r in records]
    assert [r.head.url[-1:] for r in after if r.head.type in ("response", "request")] == ["a", "a", "c", "c"]
    assert b"words of b" not in gzip.decompress(blank.read_bytes())


def _plain(path: Path, *records: tuple[str, str, str, str]) -> Path:
    """Write records of another writer: their type, target, own id, and one more field."""
    text = ""
    for number, (kind, url, name, extra) in enumerate(records):
        text += (
            f"WARC/1.1\r\nWARC-Type: {kind}\r\nWARC-Target-URI: {url}\r\nWARC-Record-ID: <urn:uuid:{name}>\r\n"
            f"WARC-Date: 2026-01-02T00:00:{number // 2:02d}Z\r\n{extra}Content-Length: 2\r\n\r\nhi\r\n\r\n"
        )
    path.write_text(text, newline="")
    return path


def test_everything_about_a_withdrawn_page_goes_whatever_names_it(tmp_path: Path) -> None:
    page, other = "https://example.org/b", "https://example.org/c"
    path = _plain(
        tmp_path / "x.warc",
        ("response", page, "1", ""),
        ("request", "http://www.example.org/b?utm_source=x", "2", ""),
        ("resource", f"urn:text:{page}", "3", ""),
        ("resource", f"urn:pageInfo:{page}", "4", ""),
        ("metadata", "", "5", "WARC-Refers-To: <urn:uuid:1>\r\n"),
        ("conversion", "", "6", "WARC-Refers-To: <urn:uuid:5>\r\n"),
        ("revisit", other, "7", "WARC-Refers-To: <urn:uuid:1>\r\n"),
        ("response", other, "8", ""),
    )
    records = list(read_records(path))

    gaps = find_gaps(path, [], lambda keys: keys & {page_key(page)})

    assert [r.head.record_id for r in records if (r.offset, r.length) not in gaps] == ["7", "8"]


def test_the_request_of_a_withdrawn_capture_goes_by_its_moment(tmp_path: Path) -> None:
    url = "https://example.org/b"
    path = _plain(tmp_path / "x.warc", *((kind, url, f"{n}", "") for n in "12" for kind in ("request", "response")))
    records = list(read_records(path))

    gaps = find_gaps(path, [HiddenRecord(1, records[1].offset, records[1].length)])

    assert gaps == [(r.offset, r.length) for r in records[:2]]


def test_what_names_a_withdrawn_record_by_way_of_others_goes_in_whatever_order(tmp_path: Path) -> None:
    count = 300
    chain = (("metadata", "", f"{n}", f"WARC-Refers-To: <urn:uuid:{n + 1}>\r\n") for n in range(count))
    path = _plain(tmp_path / "x.warc", *chain, ("response", "https://example.org/b", f"{count}", ""))
    records = list(read_records(path))

    gaps = find_gaps(path, [HiddenRecord(1, records[-1].offset, records[-1].length)])

    assert gaps == [(r.offset, r.length) for r in records]


def test_looking_for_gaps_holds_a_few_bytes_of_each_record(tmp_path: Path) -> None:
    count = 20_000
    path = _plain(
        tmp_path / "x.warc",
        *(
            (kind, f"https://example.org/a/rather/long/way/to/page-{n}", f"{kind}-{n}", extra)
            for n in range(count // 2)
            for kind, extra in (("response", ""), ("request", f"WARC-Concurrent-To: <urn:uuid:response-{n}>\r\n"))
        ),
    )
    asked: list[int] = []

    def withdrawn(keys: set[str]) -> set[str]:
        asked.append(len(keys))
        return keys & {page_key("http://example.org/a/rather/long/way/to/page-7")}

    tracemalloc.start()
    try:
        gaps = find_gaps(path, [], withdrawn)
        held = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert len(gaps) == 2
    assert max(asked) <= 500
    assert held < 2_000_000 + 100 * count


def test_looking_for_gaps_ends_inside_a_record_when_its_client_has_left(tmp_path: Path) -> None:
    path = tmp_path / "x.warc.gz"
    head = (
        b"WARC/1.1\r\nWARC-Type: resource\r\nWARC-Record-ID: <urn:uuid:1>\r\nWARC-Date: 2026-01-02T00:00:00Z\r\n"
        b"WARC-Target-URI: https://example.org/b\r\nContent-Length: 50000000\r\n\r\n"
    )
    path.write_bytes(gzip.compress(head + bytes(50_000_000) + b"\r\n\r\n"))
    ended = Event()

    def leave(_keys: set[str]) -> set[str]:
        ended.set()
        return set()

    with cancellation.until(ended), pytest.raises(cancellation.WorkAbandoned):
        find_gaps(path, [], leave)


def test_gaps_at_both_ends_and_side_by_side(tmp_path: Path) -> None:
    path = tmp_path / "x.warc.gz"
    path.write_bytes(bytes(range(200)) * 10)
    gaps = [(0, 400), (400, 400), (1500, 500)]

    content = b"".join(read_segments(blanked(path, 2000, gaps, AT)))

    assert len(content) == 2000
    assert content[800:1500] == path.read_bytes()[800:1500]
