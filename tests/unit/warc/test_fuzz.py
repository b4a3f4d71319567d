"""Bytes of unknown origin: verification, reading and repair answer all of them."""

from __future__ import annotations

import gzip
import random
import struct
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.errors import Invalid
from holdfast.warc.reader import DamagedWarc, read_records
from holdfast.warc.repair import repair
from holdfast.warc.verify import verify_file
from tests.clock import FakeClock
from tests.unit.warc.archives import write
from tests.unit.warc.test_verify import record


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzz")


@pytest.fixture(scope="module")
def seeds(folder: Path) -> list[bytes]:
    """A file of ours, one of somebody else, and a plain one."""
    ours = write(folder, 2)[0].path.read_bytes()
    theirs = b"".join(gzip.compress(record(block=b"words %d " % number * 9)) for number in range(3))
    return [ours, theirs, record() * 3]


def mutated(content: bytes, dice: random.Random) -> bytes:
    """Return the bytes after a few accidents: flips, cuts, copies, insertions."""
    out = bytearray(content)
    for _ in range(dice.randint(1, 4)):
        at = dice.randrange(len(out) + 1)
        kind = dice.randrange(5)
        if kind == 0 and at < len(out):
            out[at] = dice.randrange(256)
        elif kind == 1:
            del out[at : at + dice.randrange(200)]
        elif kind == 2:
            out[at:at] = dice.randbytes(dice.randrange(40))
        elif kind == 3:
            out[at:at] = out[: dice.randrange(len(out) + 1)]
        else:
            out[at : at + 20] = bytes(20)
        out = out or bytearray(b"\0")
    return bytes(out)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 2**32), which=st.integers(0, 2))
def test_accidents_are_answered_with_a_report_and_a_repair_that_holds(
    folder: Path, seeds: list[bytes], seed: int, which: int
) -> None:
    content = mutated(seeds[which], random.Random(seed))
    name = "a.warc" if which == 2 else "a.warc.gz"
    with TemporaryDirectory(dir=folder) as room:
        path = Path(room) / name
        path.write_bytes(content)

        report = verify_file(path)
        read = _read(path)
        assert report.ok or report.problems

        if which < 2:
            repaired = repair(path, clock=FakeClock())
            if repaired.kept:
                assert not repair(path).changed
                assert read <= len(repaired.kept) + len(repaired.damaged)
            assert repaired.bad is None or repaired.bad.read_bytes() == content


OWN, GZIP, PLAIN, ZSTD, SKIPPABLE = (
    b"\x1f\x8b\x08\x10\0\0\0\0\0\xff", b"\x1f\x8b\x08\x00", b"WARC/1.1\r\n", b"\x28\xb5\x2f\xfd", b"\x5d\x2a\x4d\x18",
)  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(content=st.binary(max_size=300), prefix=st.sampled_from([b"", OWN, GZIP, PLAIN, ZSTD, SKIPPABLE]))
def test_any_bytes_at_all_are_answered(folder: Path, content: bytes, prefix: bytes) -> None:
    path = folder / "any.warc.gz"
    path.write_bytes(prefix + content)

    report = verify_file(path)
    _read(path)

    assert report.ok or report.problems


def _read(path: Path) -> int:
    """Read everything that can be read; return how many records that were."""
    count = 0
    for one in read_records(path, lambda damage: None):
        try:
            one.read()
            count += 1
        except (DamagedWarc, Invalid):
            continue
    return count


def test_members_nested_so_that_each_costs_the_whole_file_do_not_cost_it_often(folder: Path) -> None:
    """Every member of this file is stored bytes that hold all the later ones: tried one by one, that is quadratic."""
    content = b""
    for _ in range(3000):
        inner = b"WARC/1.0\r\nContent-Length: 1\r\n\r\n" + content
        pieces = [inner[at : at + 65535] for at in range(0, len(inner), 65535)]
        stored = b"".join(struct.pack("<BHH", 0, len(piece), len(piece) ^ 0xFFFF) + piece for piece in pieces)
        content = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff" + stored
    path = folder / "nested.warc.gz"
    path.write_bytes(content)

    report = verify_file(path)

    assert not report.ok
    assert report.records < 1500
