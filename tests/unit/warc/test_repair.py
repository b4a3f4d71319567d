"""Repair: whole records stay where they are, byte for byte; what was there before is kept; twice is once."""

from __future__ import annotations

import gzip
import random
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from holdfast.errors import Conflict
from holdfast.warc.member import own_header
from holdfast.warc.record import LOST_TYPE, parse_head
from holdfast.warc.repair import lost_record, repair
from holdfast.warc.verify import verify_file
from tests.clock import FakeClock
from tests.unit.warc.archives import unpacked, write
from tests.unit.warc.test_verify import record

SHARED_MEMORY = Path("/dev/shm")


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder in memory where there is one: a thousand repairs sync three thousand times."""
    if not SHARED_MEMORY.is_dir():
        yield tmp_path
        return
    with TemporaryDirectory(dir=SHARED_MEMORY) as name:
        yield Path(name)


def test_a_file_cut_at_any_byte_keeps_every_whole_record(folder: Path) -> None:
    sealed, ends = write(folder, 100, body=b"<html>short</html>")
    content = sealed.path.read_bytes()
    dice = random.Random(11)
    edges = {end + near for end in (0, *ends) for near in (-2, -1, 0, 1, 2)}
    cuts = {cut for cut in edges if 0 <= cut <= len(content)} | {dice.randrange(len(content)) for _ in range(300)}
    bad = folder / "archive.warc.gz.bad"

    for cut in sorted(cuts):
        sealed.path.write_bytes(content[:cut])
        whole = [end for end in ends if end <= cut]

        report = repair(sealed.path)

        assert len(report.kept) == len(whole), cut
        assert report.cut_bytes == cut - (whole[-1] if whole else 0)
        if whole:
            assert sealed.path.read_bytes() == content[: whole[-1]]
        if report.changed:
            assert report.bad == bad
            assert bad.read_bytes() == content[:cut]
            bad.unlink()
        if whole and cut % 10 == 0:
            assert not repair(sealed.path).changed


def test_a_flipped_bit_costs_one_record_at_most_and_moves_none(folder: Path) -> None:
    sealed, ends = write(folder, 20)
    content = sealed.path.read_bytes()
    members = unpacked(sealed.path)
    dice = random.Random(12)

    for bit in dice.sample(range(len(content) * 8), 80):
        flipped = bytearray(content)
        flipped[bit >> 3] ^= 1 << (bit & 7)
        sealed.path.write_bytes(flipped)

        report = repair(sealed.path, clock=FakeClock())

        is_last = bit >> 3 >= ends[-2]
        assert len(report.kept) + len(report.damaged) == 41
        assert len(report.damaged) <= 1
        assert not report.moved
        assert verify_file(sealed.path).ok
        assert not repair(sealed.path).changed
        after = unpacked(sealed.path)
        assert len(after) == 41 - (is_last and len(report.damaged))
        assert sum(mine != theirs for mine, theirs in zip(members, after, strict=False)) <= 1
        assert report.bad is not None
        assert report.bad.read_bytes() == flipped
        report.bad.unlink()


def test_damaged_headers_cost_nothing_because_the_content_is_whole(tmp_path: Path) -> None:
    sealed, ends = write(tmp_path, 5)
    content = sealed.path.read_bytes()
    scribbled = bytearray(content)
    for start in (0, ends[3]):
        scribbled[start : start + 29] = b"\xff" * 29
    sealed.path.write_bytes(scribbled)

    report = repair(sealed.path)

    assert (len(report.kept), len(report.mended), report.damaged) == (11, 2, [])
    assert sealed.path.read_bytes() == content


def test_garbage_between_members_is_taken_out_or_covered(tmp_path: Path) -> None:
    sealed, ends = write(tmp_path, 5)
    content = sealed.path.read_bytes()
    for size, moved in ((7, True), (400, False), (200_000, False)):
        garbage = random.Random(size).randbytes(size)
        sealed.path.write_bytes(content[: ends[4]] + garbage + content[ends[4] :])

        report = repair(sealed.path, clock=FakeClock())

        assert len(report.kept) == 11
        assert report.moved is moved
        assert verify_file(sealed.path).ok
        assert sealed.path.stat().st_size == len(content) + (0 if moved else size)


def test_a_tail_of_zeros_is_cut(tmp_path: Path) -> None:
    sealed, _ = write(tmp_path, 3)
    content = sealed.path.read_bytes()
    sealed.path.write_bytes(content + bytes(100_000))

    report = repair(sealed.path)

    assert [(region.kind, region.length) for region in report.damaged] == [("zero_tail", 100_000)]
    assert sealed.path.read_bytes() == content


def test_a_repaired_copy_leaves_the_original_alone(tmp_path: Path) -> None:
    sealed, ends = write(tmp_path, 3)
    torn = sealed.path.read_bytes()[:-5]
    sealed.path.write_bytes(torn)

    report = repair(sealed.path, out=tmp_path / "copy.warc.gz")

    assert report.bad is None
    assert sealed.path.read_bytes() == torn
    assert (tmp_path / "copy.warc.gz").stat().st_size == ends[-2]


def test_what_an_earlier_repair_kept_is_kept(tmp_path: Path) -> None:
    sealed, _ = write(tmp_path, 3)
    content = sealed.path.read_bytes()

    kept = []
    for size in (len(content) - 5, 600, 3):
        sealed.path.write_bytes(content[:size])
        report = repair(sealed.path)
        assert report.bad is not None
        kept.append(report.bad.name)

    assert kept == ["archive.warc.gz.bad", "archive.warc.gz.bad.1", "archive.warc.gz.bad.2"]
    assert not sealed.path.exists()


def test_an_open_file_is_not_repaired_under_its_owners_hands(tmp_path: Path) -> None:
    with pytest.raises(Conflict):
        repair(tmp_path / "archive.warc.gz.open")


def test_files_of_others_are_repaired_too(tmp_path: Path) -> None:
    path = tmp_path / "theirs.warc.gz"
    members = [gzip.compress(record(block=b"words %d " % number * 100)) for number in range(9)]
    damaged = members[4][:30] + b"?" + members[4][31:]
    path.write_bytes(b"".join([*members[:4], damaged, *members[5:8], members[8][:-3]]))

    report = repair(path, clock=FakeClock())

    assert len(report.kept) == 7
    assert [region.kind for region in report.damaged] == ["gzip_data", "truncated"]
    assert not repair(path).changed
    blocks = [member.partition(b"\r\n\r\n")[2] for member in unpacked(path)]
    assert blocks[7 if report.moved is False else 6] == b"words 7 " * 100 + b"\r\n\r\n"


@pytest.mark.parametrize("length", [300, 1000, 65_000, 65_540, 65_600, 131_200, 1_000_003])
def test_a_lost_record_has_any_length_that_is_asked_for(tmp_path: Path, length: int) -> None:
    member = lost_record(length, "lost: a test", FakeClock().now())

    assert member is not None
    assert len(member) == length
    head = parse_head(gzip.decompress(member))
    assert head.get("Content-Type") == LOST_TYPE
    (tmp_path / "a.warc.gz").write_bytes(member)
    assert verify_file(tmp_path / "a.warc.gz").ok
    assert lost_record(100, "lost: a test", FakeClock().now()) is None


def test_a_repair_holds_no_more_of_a_large_damaged_region_than_of_a_small_one(tmp_path: Path) -> None:
    lost = 48 << 20
    path = tmp_path / "a.warc.gz"
    first, last = gzip.compress(record()), gzip.compress(record())
    with path.open("wb") as file:
        file.write(first)
        file.write(own_header(lost, 1))
        file.truncate(len(first) + lost)
        file.seek(0, 2)
        file.write(last)

    tracemalloc.start()
    try:
        report = repair(path, clock=FakeClock())
        held = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert held < 8 << 20
    assert [(region.offset, region.length) for region in report.damaged] == [(len(first), lost)]
    assert not report.moved
    assert path.stat().st_size == len(first) + lost + len(last)
    assert path.read_bytes().endswith(last)
    assert verify_file(path).ok


def test_headers_that_state_long_members_cost_a_repair_no_more_than_an_honest_file(tmp_path: Path) -> None:
    count, length = 40_000, 4_000_000
    path = tmp_path / "a.warc.gz"
    path.write_bytes(gzip.compress(record()) + own_header(length, 1) * count + bytes(length))

    report = repair(path, out=tmp_path / "b.warc.gz", clock=FakeClock())

    assert len(report.kept) == 1
    assert len(report.damaged) < 1000


def test_whole_records_that_swell_do_not_use_up_the_patience_with_damage(tmp_path: Path) -> None:
    path = tmp_path / "a.warc.gz"
    large = [gzip.compress(record(block=bytes(40 << 20))) for _ in range(3)]
    broken = bytearray(gzip.compress(record(block=b"lost " * 100)))
    broken[-9] ^= 0xFF
    path.write_bytes(b"".join(large) + bytes(broken) + gzip.compress(record(block=b"behind")))

    assert len(repair(path, out=tmp_path / "b.warc.gz", clock=FakeClock()).kept) == 4
