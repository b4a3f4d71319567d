"""Reading: records in a row and one by one, ours and everybody's, past damage, within bounds."""

from __future__ import annotations

import gzip
import random
import struct
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from holdfast.errors import Invalid, NotFound
from holdfast.warc.member import own_header
from holdfast.warc.reader import DamagedWarc, open_record_at, read_record_at, read_records, read_response_at
from holdfast.warc.record import Profile
from holdfast.warc.writer import WarcWriter
from tests.clock import FakeClock
from tests.patience import Calls
from tests.unit.warc.archives import INFO, exchange, original, write
from tests.unit.warc.test_verify import record


def test_records_come_in_order_with_offset_length_and_ordinal(tmp_path: Path) -> None:
    sealed, ends = write(tmp_path, 3)

    records = [(r.ordinal, r.offset, r.offset + r.length, r.head.type) for r in read_records(sealed.path)]

    starts = [0, *ends]
    types = ["warcinfo", "response", "request", "response", "request", "response", "request"]
    assert records == [(n, starts[n], ends[n], types[n]) for n in range(7)]


def test_blocks_may_be_read_in_part_whole_or_not_at_all(tmp_path: Path) -> None:
    sealed, _ = write(tmp_path, 2, body=random.Random(1).randbytes(500_000))

    seen = []
    for number, one in enumerate(read_records(sealed.path)):
        if number % 3 == 0:
            seen.append(len(one.read()))
        elif number % 3 == 1:
            seen.append(len(next(one.block())))
        else:
            seen.append(0)

    assert len(seen) == 5


def test_a_response_comes_with_its_head_and_without_its_chunks(tmp_path: Path) -> None:
    writer = WarcWriter.create(tmp_path, "a", 1, INFO, FakeClock())
    chunked = writer.append_exchange(exchange(b"5\r\nhello\r\n0\r\n\r\n", headers=b"Transfer-Encoding: chunked\r\n"))
    revisit = writer.append_exchange(exchange(revisit_of=original(), profile=Profile.IDENTICAL_PAYLOAD))
    path = writer.seal().path

    head, body = read_response_at(path, chunked.ref.offset)

    assert (head.status, head.get("content-type"), body) == (200, "text/html", b"hello")
    assert read_response_at(path, revisit.ref.offset)[1] == b""
    assert chunked.request is not None
    with pytest.raises(Invalid, match="no response but a request"):
        read_response_at(path, chunked.request.offset)
    with pytest.raises(Invalid):
        read_response_at(path, chunked.ref.offset, limit=10)
    with open_record_at(path, chunked.ref.offset) as streamed:
        assert b"".join(streamed.http()[1]) == b"hello"


def test_an_offset_where_no_record_begins_is_refused(tmp_path: Path) -> None:
    sealed, ends = write(tmp_path, 1)

    for offset in (1, ends[0] - 1, ends[0] + 1, sealed.size, sealed.size + 100):
        with pytest.raises(DamagedWarc):
            read_record_at(sealed.path, offset)
    with pytest.raises(NotFound):
        read_record_at(tmp_path / "none.warc.gz", 0)


def test_damage_is_reported_passed_over_and_counted_as_one_record(tmp_path: Path) -> None:
    sealed, ends = write(tmp_path, 4)
    content = bytearray(sealed.path.read_bytes())
    content[ends[2] + 40] ^= 0x10
    sealed.path.write_bytes(content)
    damage: list[DamagedWarc] = []

    found = []
    for one in read_records(sealed.path, damage.append):
        try:
            one.read()
            found.append(one.ordinal)
        except DamagedWarc as exc:
            damage.append(exc)

    assert found == [0, 1, 2, 4, 5, 6, 7, 8]
    assert [one.offset for one in damage] == [ends[2]]


def test_without_somebody_to_tell_damage_is_raised(tmp_path: Path) -> None:
    sealed, ends = write(tmp_path, 1)
    sealed.path.write_bytes(sealed.path.read_bytes()[: ends[1]] + b"garbage")

    with pytest.raises(DamagedWarc) as caught:
        list(read_records(sealed.path))

    assert (caught.value.offset, caught.value.kind) == (ends[1], "garbage")


def test_large_foreign_members_are_streamed_with_their_length(tmp_path: Path) -> None:
    path = tmp_path / "a.warc.gz"
    noise = random.Random(1).randbytes(3 << 20)
    members = [gzip.compress(record(block=noise), 1), gzip.compress(record())]
    path.write_bytes(b"".join(members))

    records = [(one.offset, one.length, one.read()) for one in read_records(path)]

    assert records == [(0, len(members[0]), noise), (len(members[0]), len(members[1]), b"hello")]


@pytest.mark.parametrize("kind", ["warc", "warc.gz", "warc.zst"])
def test_plain_gzip_and_zstd_give_the_same_records(tmp_path: Path, kind: str) -> None:
    packers: dict[str, Callable[[bytes], bytes]] = {
        "warc": bytes, "warc.gz": gzip.compress, "warc.zst": zstandard.compress,
    }  # fmt: skip
    pack = packers[kind]
    path = tmp_path / f"a.{kind}"
    packed = [pack(record(block=b"words %d" % number)) for number in range(5)]
    path.write_bytes(b"".join(packed))

    records = [(one.offset, one.length, one.read()) for one in read_records(path)]

    starts = [sum(map(len, packed[:number])) for number in range(5)]
    assert records == [(starts[n], len(packed[n]), b"words %d" % n) for n in range(5)]
    assert read_record_at(path, starts[3])[1] == b"words 3"


def test_many_records_in_one_member_are_all_read(tmp_path: Path) -> None:
    path = tmp_path / "a.warc.gz"
    path.write_bytes(gzip.compress(b"".join(record(block=b"%d" % number) for number in range(4))))

    assert [one.read() for one in read_records(path)] == [b"0", b"1", b"2", b"3"]


def test_a_length_beyond_the_member_is_damage_not_a_record(tmp_path: Path) -> None:
    path = tmp_path / "a.warc.gz"
    path.write_bytes(gzip.compress(record(length="99999999")) + gzip.compress(record()))
    damage: list[DamagedWarc] = []

    assert [one.ordinal for one in read_records(path, damage.append)] == [1]
    assert [one.kind for one in damage] == ["content_length"]


class _Ended(Exception):
    pass


def _beats(until: int) -> tuple[list[None], Callable[[], None]]:
    """Return a list of beats, and a pulse that fills it and ends the reading at the last one."""
    beats: list[None] = []

    def pulse() -> None:
        beats.append(None)
        if len(beats) >= until:
            raise _Ended

    return beats, pulse


def _never_whole(path: Path, count: int) -> Path:
    """Write members that are nested: each begins like a record, holds all that follow, and ends without a trailer."""
    start = b"WARC/1.1\r\n"
    header = b"\x1f\x8b\x08\0\0\0\0\0\0\xff"
    unit = header + _stored(start) + b"\0" + struct.pack("<HH", len(header), len(header) ^ 0xFFFF)
    bomb = zlib.compressobj(9, wbits=-15)
    path.write_bytes(unit * count + header + bomb.compress(bytes(8 << 20)) + bomb.flush(zlib.Z_SYNC_FLUSH))
    return path


def _stored(data: bytes) -> bytes:
    return b"\0" + struct.pack("<HH", len(data), len(data) ^ 0xFFFF) + data


def test_a_damaged_file_costs_no_more_than_its_budget_however_its_members_are_nested(tmp_path: Path) -> None:
    path = _never_whole(tmp_path / "a.warc.gz", 2000)
    damage: list[DamagedWarc] = []
    beats, pulse = _beats(1_000_000)

    assert list(read_records(path, damage.append, pulse)) == []

    # Each member inflates to eight megabytes: of two thousand, the budget lasts for a dozen.
    assert 1 <= len(damage) < 100
    assert len(beats) < 100_000


def test_headers_of_ours_that_state_long_members_are_not_all_summed_up(tmp_path: Path) -> None:
    count, length = 40_000, 4_000_000
    path = tmp_path / "a.warc.gz"
    path.write_bytes(own_header(length, 1) * count + bytes(length))
    damage: list[DamagedWarc] = []

    assert list(read_records(path, damage.append)) == []

    assert len(damage) < 1000


def test_a_long_member_can_be_left_while_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.warc.gz"
    path.write_bytes(gzip.compress(record(block=bytes(64 << 20)))[:-8] + b"\0" * 8)
    beats, pulse = _beats(50)

    with pytest.raises(_Ended):
        list(read_records(path, lambda _damage: None, pulse))

    assert len(beats) == 50


def test_breaks_between_records_are_passed_over_in_pieces(tmp_path: Path) -> None:
    path = tmp_path / "a.warc.gz"
    path.write_bytes(gzip.compress(record(block=b"one") + b"\r\n" * 200_000 + record(block=b"two")))
    plain = tmp_path / "a.warc"
    plain.write_bytes(gzip.decompress(path.read_bytes()))

    for each in (path, plain):
        with Calls() as calls:
            assert [one.read() for one in read_records(each)] == [b"one", b"two"]
        assert calls.count < 5000
