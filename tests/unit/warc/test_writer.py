"""The writer: where records stand, what other readers make of them, when a file is full, and what its digests say."""

from __future__ import annotations

import hashlib
import random
import subprocess
import zlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.errors import Conflict, Invalid
from holdfast.warc.reader import read_record_at
from holdfast.warc.record import Profile, random_ids, sha256_of, snapshot_id
from holdfast.warc.writer import WarcWriter
from tests.clock import FakeClock
from tests.unit.warc.archives import INFO, STARTED, Bytes, counted_ids, exchange, original, unpacked, write
from tests.unit.warc.peers import by_fastwarc, by_warcio, warcio_accepts


@pytest.fixture
def writer(tmp_path: Path, clock: FakeClock) -> Iterator[WarcWriter]:
    writer = WarcWriter.create(tmp_path, "archive", 7, INFO, clock, ids=counted_ids())
    yield writer
    writer.abandon()


def test_a_reference_leads_to_its_record_with_one_seek(writer: WarcWriter) -> None:
    appended = [writer.append_exchange(exchange(url=f"http://example.org/{n}")) for n in range(3)]

    sealed = writer.seal()

    for number, record in enumerate(appended):
        raw = sealed.path.read_bytes()[record.ref.offset : record.ref.offset + record.ref.length]
        assert zlib.decompress(raw, 31).startswith(b"WARC/1.1\r\nWARC-Type: response\r\n")
        head, block = read_record_at(sealed.path, record.ref.offset)
        assert (head.url, head.record_id) == (f"http://example.org/{number}", record.record_id)
        assert block.endswith(b"<html>hello</html>")
        assert record.ref.warc_file_id == 7
        assert record.ref.ordinal == 1 + 2 * number
        assert record.request is not None
        assert record.request.offset == record.ref.offset + record.ref.length


def test_the_snapshot_id_comes_from_file_and_ordinal() -> None:
    assert snapshot_id(3, 5) == 3 * 2**22 + 5


def test_other_readers_find_the_same_records_and_right_digests(writer: WarcWriter) -> None:
    # Not chunked: warcio and fastwarc take the payload's digest before the transfer encoding is removed (warcio#74).
    writer.append_exchange(exchange())
    writer.append_exchange(exchange(b"x" * 2_000_000))
    writer.append_exchange(exchange(revisit_of=original(), profile=Profile.IDENTICAL_PAYLOAD))
    sealed = writer.seal()

    theirs = by_warcio(sealed.path)

    assert len(theirs) == sealed.record_count == 7
    assert by_fastwarc(sealed.path) == by_fastwarc(sealed.path, verify_digests=True) == theirs
    assert warcio_accepts(sealed.path)
    assert subprocess.run(["gzip", "-t", str(sealed.path)], check=False).returncode == 0


def test_a_large_body_is_streamed_and_comes_back_byte_for_byte(writer: WarcWriter) -> None:
    body = random.Random(1).randbytes(3_000_000) + b"words " * 200_000
    before = writer.append_exchange(exchange())
    large = writer.append_exchange(exchange(body))
    after = writer.append_exchange(exchange())
    sealed = writer.seal()

    head, block = read_record_at(sealed.path, large.ref.offset)

    assert block.endswith(body)
    assert len(block) == head.content_length
    assert large.ref.offset > before.ref.offset
    assert read_record_at(sealed.path, after.ref.offset)[0].record_id == after.record_id
    assert len(unpacked(sealed.path)) == sealed.record_count == 7
    _assert_digests(sealed.path, sealed.sha256, sealed.crc32, sealed.size)


def test_digests_of_the_whole_file_are_known_without_reading_it(tmp_path: Path) -> None:
    sealed, ends = write(tmp_path, 30)

    _assert_digests(sealed.path, sealed.sha256, sealed.crc32, sealed.size)
    assert sealed.size == ends[-1]
    assert sealed.record_count == 61


def _assert_digests(path: Path, sha256: str, crc32: int, size: int) -> None:
    content = path.read_bytes()
    assert (hashlib.sha256(content).hexdigest(), zlib.crc32(content), len(content)) == (sha256, crc32, size)


def test_a_body_that_changes_between_two_readings_is_refused_and_leaves_no_trace(writer: WarcWriter) -> None:
    class Shrinking(Bytes):
        readings = 0

        def chunks(self) -> Iterator[bytes]:
            self.readings += 1
            return iter((b"x" * (2_000_000 - self.readings),))

    size = writer.size

    draft = exchange()
    draft = replace(draft, fetched=replace(draft.fetched, body=Shrinking(b"x" * 2_000_000)))

    with pytest.raises(Invalid, match="when read again"):
        writer.append_exchange(draft)

    assert writer.size == size
    writer.append_exchange(exchange())
    assert len(unpacked(writer.seal().path)) == 3


def test_an_address_cannot_smuggle_a_field_into_the_head(writer: WarcWriter) -> None:
    for url in ("http://example.org/\r\nWARC-Type: warcinfo", "http://example.org/\n", "http://example.org/\0"):
        with pytest.raises(Invalid):
            writer.append_exchange(exchange(url=url))

    assert writer.record_count == 1


def test_a_revisit_needs_both_an_original_and_a_profile(writer: WarcWriter) -> None:
    with pytest.raises(Invalid):
        writer.append_exchange(exchange(profile=Profile.SERVER_NOT_MODIFIED))


def test_a_line_break_in_the_crawls_description_stays_inside_its_field(tmp_path: Path, clock: FakeClock) -> None:
    writer = WarcWriter.create(tmp_path, "archive", 7, {"description": "one\r\nrobots: ignore"}, clock)

    (warcinfo,) = unpacked(writer.seal().path)

    assert b"description: one robots: ignore\r\n" in warcinfo


def test_a_file_is_full_by_size_by_age_or_idle(tmp_path: Path, clock: FakeClock) -> None:
    small = WarcWriter.create(tmp_path, "small", 1, INFO, clock, max_bytes=1200)
    old = WarcWriter.create(tmp_path, "old", 2, INFO, clock, max_age_s=100, max_idle_s=1000)
    idle = WarcWriter.create(tmp_path, "idle", 3, INFO, clock, max_age_s=1000, max_idle_s=10)

    assert not any(writer.should_seal() for writer in (small, old, idle))
    small.append_exchange(exchange())
    assert small.should_seal()
    clock.advance(9)
    idle.append_exchange(exchange())
    clock.advance(9)
    assert not idle.should_seal()
    clock.advance(1)
    assert idle.should_seal()
    assert not old.should_seal()
    # Only the time that passes counts, not what the wall clock says.
    clock.shift_wall(7200)
    assert not old.should_seal()
    clock.advance(81)
    clock.shift_wall(-14_400)
    assert old.should_seal()
    for writer in (small, old, idle):
        writer.abandon()


def test_a_sealed_file_is_never_overwritten(tmp_path: Path, clock: FakeClock) -> None:
    write(tmp_path, 1)

    with pytest.raises(Conflict):
        WarcWriter.create(tmp_path, "archive", 8, INFO, clock)


def test_while_open_the_file_says_so_in_its_name(writer: WarcWriter, tmp_path: Path) -> None:
    assert writer.path == tmp_path / "archive.warc.gz.open"
    assert [path.name for path in tmp_path.iterdir()] == ["archive.warc.gz.open"]
    assert writer.seal().path == tmp_path / "archive.warc.gz"
    assert [path.name for path in tmp_path.iterdir()] == ["archive.warc.gz"]


def test_a_file_without_captures_can_be_discarded_and_one_with_them_cannot(writer: WarcWriter, tmp_path: Path) -> None:
    WarcWriter.create(tmp_path, "empty", 8, INFO, FakeClock()).discard()
    writer.append_exchange(exchange())

    with pytest.raises(Conflict):
        writer.discard()

    assert [path.name for path in tmp_path.iterdir()] == ["archive.warc.gz.open"]


def test_random_ids_are_version_4_uuids_and_differ() -> None:
    ids = random_ids()

    made = [ids() for _ in range(1000)]

    assert len(set(made)) == 1000
    for one in made:
        assert len(one) == 36
        assert one[14] == "4"
        assert one[19] in "89ab"


def test_the_date_is_that_of_the_moment_the_capture_began(writer: WarcWriter) -> None:
    appended = writer.append_exchange(exchange())

    head, _ = read_record_at(writer.seal().path, appended.ref.offset)

    assert head.date == STARTED
    assert head.get("WARC-Payload-Digest") == sha256_of((b"<html>hello</html>",))
