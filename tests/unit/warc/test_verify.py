"""Verification: nothing that is wrong with a file stays unsaid."""

from __future__ import annotations

import gzip
import random
import tracemalloc
from pathlib import Path

import pytest
import zstandard

from holdfast.errors import NotFound
from holdfast.warc.member import pack
from holdfast.warc.record import sha256_of
from holdfast.warc.verify import verify_file
from tests.unit.warc.archives import unpacked, write


def record(*, block: bytes = b"hello", end: bytes = b"\r\n\r\n", length: str | None = None, extra: str = "",
           kind: str = "resource", date: str = "2026-09-01T12:00:00Z") -> bytes:  # fmt: skip
    """Return one plain record of somebody else's making."""
    size = str(len(block)) if length is None else length
    head = (
        f"WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Record-ID: <urn:uuid:1>\r\nWARC-Target-URI: urn:x\r\n"
        f"WARC-Date: {date}\r\n{extra}Content-Length: {size}\r\n\r\n"
    )
    return head.encode() + block + end


def kinds(path: Path, content: bytes) -> list[str]:
    path.write_bytes(content)
    return [problem.kind for problem in verify_file(path).problems]


def test_a_file_of_ours_is_well(tmp_path: Path) -> None:
    sealed, _ = write(tmp_path, 20)

    report = verify_file(sealed.path, sealed)

    assert (report.ok, report.records, report.bytes) == (True, 41, sealed.size)
    assert report.notes == []


def test_no_flipped_bit_goes_undetected(tmp_path: Path) -> None:
    sealed, _ = write(tmp_path, 4, body=b"<li class='item'><a href='/'>word</a></li>\n" * 300)
    content = sealed.path.read_bytes()
    dice = random.Random(12)
    undetected = []

    for bit in dice.sample(range(len(content) * 8), 500):
        flipped = bytearray(content)
        flipped[bit >> 3] ^= 1 << (bit & 7)
        sealed.path.write_bytes(flipped)
        report = verify_file(sealed.path)
        if report.ok:
            undetected.append(bit)

    assert undetected == []


def test_every_bit_of_a_members_header_and_trailer_counts(tmp_path: Path) -> None:
    sealed, ends = write(tmp_path, 1)
    content = sealed.path.read_bytes()
    places = [*range(29), *range(ends[0] - 8, ends[0] + 29), *range(len(content) - 8, len(content))]

    for bit in (place * 8 + shift for place in places for shift in (0, 5)):
        flipped = bytearray(content)
        flipped[bit >> 3] ^= 1 << (bit & 7)
        sealed.path.write_bytes(flipped)
        assert not verify_file(sealed.path).ok, bit


def test_a_cut_anywhere_inside_a_record_is_seen_and_between_records_by_the_manifest(tmp_path: Path) -> None:
    sealed, ends = write(tmp_path, 2)
    content = sealed.path.read_bytes()

    for size in sorted({*range(0, len(content), 23), *ends, *(end + 1 for end in ends[:-1])}):
        sealed.path.write_bytes(content[:size])
        assert verify_file(sealed.path).ok is (size in ends), size
        if size in ends[:-1]:
            assert [problem.kind for problem in verify_file(sealed.path, sealed).problems] == ["file_size"]


def test_the_manifest_sees_a_file_that_was_replaced_by_another_valid_one(tmp_path: Path) -> None:
    sealed, _ = write(tmp_path, 2)
    content = b"".join(pack(member.replace(b"/1\r\n", b"/2\r\n")) for member in unpacked(sealed.path))
    sealed.path.write_bytes(content[: sealed.size].ljust(sealed.size, b"\0"))

    assert "file_digest" in [problem.kind for problem in verify_file(sealed.path, sealed).problems]


def test_garbage_between_members_and_zeros_at_the_end_are_told_apart_with_their_offsets(tmp_path: Path) -> None:
    sealed, ends = write(tmp_path, 2)
    content = sealed.path.read_bytes()

    sealed.path.write_bytes(content[: ends[2]] + b"garbage" + content[ends[2] :] + bytes(5000))
    report = verify_file(sealed.path)

    assert [(problem.offset, problem.kind) for problem in report.problems] == [
        (ends[2], "garbage"), (len(content) + 7, "zero_tail"),
    ]  # fmt: skip
    assert report.records == 5


def test_a_wrong_digest_is_found_in_block_and_payload(tmp_path: Path) -> None:
    path = tmp_path / "a.warc.gz"
    right, wrong = sha256_of((b"hello",)), sha256_of((b"other",))

    for block, payload, expected in [
        (right, right, []),
        (wrong, right, ["block_digest"]),
        (right, wrong, ["payload_digest"]),
        ("crc99:1", "crc99:2", []),
    ]:
        fields = f"WARC-Block-Digest: {block}\r\nWARC-Payload-Digest: {payload}\r\n"
        assert kinds(path, gzip.compress(record(extra=fields))) == expected


def test_the_payload_of_a_response_is_taken_after_transfer_decoding_and_before_is_only_noted(tmp_path: Path) -> None:
    body = b"5\r\nhello\r\n0\r\n\r\n"
    block = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + body
    path = tmp_path / "a.warc"
    noted = []

    for payload in (b"hello", body):
        fields = f"Content-Type: application/http; msgtype=response\r\nWARC-Payload-Digest: {sha256_of((payload,))}\r\n"
        path.write_bytes(record(kind="response", block=block, extra=fields))
        report = verify_file(path)
        assert report.ok
        noted.append("payload_digest" in {note.kind for note in report.notes})

    assert noted == [False, True]


@pytest.mark.parametrize("length", ["99999999999", "-1", "+5", " 5 ", "6", "4", "", "five"])
def test_a_wrong_length_is_refused_and_the_walk_goes_on_at_the_next_member(tmp_path: Path, length: str) -> None:
    path = tmp_path / "a.warc.gz"
    path.write_bytes(gzip.compress(record()) + gzip.compress(record(length=length)) + gzip.compress(record()))

    report = verify_file(path)

    assert not report.ok
    assert {problem.offset for problem in report.problems} == {len(gzip.compress(record()))}
    assert report.records >= 2


def test_mandatory_fields_are_asked_for(tmp_path: Path) -> None:
    bare = b"WARC/1.1\r\nContent-Length: 0\r\n\r\n\r\n\r\n"

    assert kinds(tmp_path / "a.warc", bare) == ["field_missing"] * 3
    assert kinds(tmp_path / "b.warc", record(kind="revisit")) == ["field_missing"]
    assert kinds(tmp_path / "c.warc", record(date="0000-00-00T00:00:00Z")) == ["field_value"]


def test_several_records_in_one_member_are_counted_and_complained_about(tmp_path: Path) -> None:
    path = tmp_path / "a.warc.gz"
    path.write_bytes(gzip.compress(record() * 3))

    report = verify_file(path)

    assert report.records == 3
    assert [problem.kind for problem in report.problems] == ["not_per_record"]


def test_a_plain_file_is_walked_past_damage_and_its_torn_end_is_seen(tmp_path: Path) -> None:
    whole = record() * 2
    path = tmp_path / "a.warc"

    assert kinds(path, whole) == []
    assert kinds(path, record(length="9") + record()) == ["record_end"]
    for size in range(len(record()) + 1, len(whole)):
        assert kinds(path, whole[:size]) != [], size


def _dictionary(raw: bytes) -> bytes:
    return (0x184D2A5D).to_bytes(4, "little") + len(raw).to_bytes(4, "little") + raw


def test_a_zstd_file_is_read_with_and_without_a_dictionary(tmp_path: Path) -> None:
    path = tmp_path / "a.warc.zst"
    samples: list[bytes | bytearray | memoryview] = [record(block=b"words %d " % number * 40) for number in range(300)]
    trained = zstandard.train_dictionary(4096, samples)
    plain = b"".join(zstandard.compress(sample) for sample in samples)
    packer = zstandard.ZstdCompressor(dict_data=trained, write_checksum=True)
    packed = b"".join(packer.compress(sample) for sample in samples)
    raw = trained.as_bytes()

    for content in (plain, _dictionary(raw) + packed, _dictionary(zstandard.compress(raw)) + packed):
        path.write_bytes(content)
        report = verify_file(path)
        assert (report.ok, report.records) == (True, 300)
        path.write_bytes(content[:-3])
        assert not verify_file(path).ok


def test_a_dictionary_that_swells_is_damage_and_is_never_held(tmp_path: Path) -> None:
    path = tmp_path / "a.warc.zst"
    swollen = zstandard.compress(bytes(200 << 20))
    for raw in (swollen, swollen[:100]):
        path.write_bytes(_dictionary(raw) + zstandard.compress(record()))
        tracemalloc.start()
        report = verify_file(path)
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()

        assert [problem.kind for problem in report.problems] == ["zstd_data"]
        assert most < 64 << 20


def test_a_zstd_frame_that_wants_a_larger_window_than_8_mib_is_damage(tmp_path: Path) -> None:
    settings = zstandard.ZstdCompressionParameters.from_level(1, window_log=27)
    packer = zstandard.ZstdCompressor(compression_params=settings).compressobj()
    path = tmp_path / "a.warc.zst"
    path.write_bytes(zstandard.compress(record()) + packer.compress(record()) + packer.flush())

    report = verify_file(path)

    assert (report.ok, report.records) == (False, 1)


def test_a_missing_file_an_empty_one_and_one_that_is_something_else(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        verify_file(tmp_path / "nothing.warc")

    assert kinds(tmp_path / "a.warc.gz", b"") == ["empty_file"]
    assert kinds(tmp_path / "b.warc.gz", b"PK\x03\x04 what is this") == ["garbage"]
    assert kinds(tmp_path / "c.warc", b"WARC/1.0") == ["record_header"]


def test_a_swollen_member_costs_no_memory_to_speak_of(tmp_path: Path) -> None:
    """What comes out of a member is passed on in pieces, whatever it claims to be."""
    path = tmp_path / "bomb.warc.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(record(block=b"", end=b"", length=str(64 << 20)))
        for _ in range(64):
            file.write(bytes(1 << 20))
        file.write(b"\r\n\r\n")

    report = verify_file(path)

    assert (report.ok, report.records) == (True, 1)


def test_a_head_without_end_is_refused_early(tmp_path: Path) -> None:
    endless = b"WARC/1.0\r\n" + b"".join(b"X-%d: %d\r\n" % (n, n) for n in range(20_000))

    assert kinds(tmp_path / "a.warc.gz", gzip.compress(endless)) == ["record_header"]


def test_heads_of_thousands_of_fields_are_looked_at_in_linear_time(tmp_path: Path) -> None:
    many = "".join(f"a{number}:\r\n" for number in range(4500)) * 2
    content = b"".join(record(extra=many[: 60 * 1024].rpartition("\n")[0] + "\n") for _ in range(60))

    (tmp_path / "a.warc").write_bytes(content)
    report = verify_file(tmp_path / "a.warc")

    assert (report.records, report.ok) == (60, True)
    assert "field_repeated" in {note.kind for note in report.notes}


def test_heads_that_all_state_the_rest_of_a_plain_file_are_not_each_read_to_the_end(tmp_path: Path) -> None:
    path = tmp_path / "a.warc"
    head = record(length="4000000").partition(b"\r\n\r\n")[0] + b"\r\n\r\n"
    path.write_bytes(head * 20_000 + b"x" * 4_000_000)

    report = verify_file(path)

    assert report.problem_count < 1000
    assert "honest" in report.problems[-1].detail
