"""Bodies while they arrive: in memory, then on disk, never past their limit, never lost to a full disk unnoticed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO

import pytest

from holdfast.errors import NoSpace
from holdfast.fetch.body import BodySink, MemoryBody, Spool, SpooledBody
from holdfast.types import Body

KIB = 1024


def _sink(tmp_path: Path, *, limit: int = 100_000_000, room: int = 64 * KIB * KIB) -> tuple[BodySink, Spool]:
    spool = Spool(tmp_path, 1024 * KIB, room)
    sink = BodySink(spool)
    sink.begin(limit)
    return sink, spool


def _content(body: Body) -> bytes:
    data = b"".join(body.chunks())
    assert data == b"".join(body.chunks())
    assert len(data) == body.size
    return data


@pytest.mark.parametrize("piece", [100, 4095, 4096, 16_384, 300_000])
@pytest.mark.parametrize("size", [0, 1, 5000, 262_144, 300_001, 1_048_576, 1_048_577])
def test_body_returns_the_written_bytes(tmp_path: Path, piece: int, size: int) -> None:
    data = os.urandom(size)
    sink, spool = _sink(tmp_path)

    for at in range(0, size, piece):
        part = data[at : at + piece]
        assert sink.write(part) == len(part)
    body = sink.finish()
    sink.begin(0)

    assert _content(body) == data
    assert isinstance(body, SpooledBody if size > 1024 * KIB else MemoryBody)
    assert spool.held_bytes == (size if isinstance(body, MemoryBody) else 0), "in the account until it is closed"
    body.close()
    body.close()
    assert spool.held_bytes == 0


def test_single_bytes_do_not_cost_an_object_each(tmp_path: Path) -> None:
    sink, _ = _sink(tmp_path)
    for _ in range(50_000):
        sink.write(b"x")

    assert len(list(sink.finish().chunks())) == 1


@pytest.mark.parametrize("limit", [0, 1, 5000, 1_100_000])
def test_the_limit_is_exact(tmp_path: Path, limit: int) -> None:
    sink, _ = _sink(tmp_path, limit=limit)
    data = os.urandom(1_200_000)

    taken = [sink.write(data[at : at + 16_384]) for at in range(0, limit + 16_384, 16_384)]
    body = sink.finish()

    assert taken[-1] == 0
    assert sink.overflowed
    assert _content(body) == data[:limit]
    body.close()


def test_a_body_of_exactly_the_limit_is_whole(tmp_path: Path) -> None:
    sink, _ = _sink(tmp_path, limit=5000)

    assert sink.write(bytes(5000)) == 5000
    assert not sink.overflowed


def test_what_was_not_handed_out_is_given_back(tmp_path: Path) -> None:
    sink, spool = _sink(tmp_path)
    sink.write(bytes(500_000))
    assert spool.held_bytes == 500_000

    sink.begin(10)
    assert spool.held_bytes == 0

    sink.begin(10_000_000)
    sink.write(bytes(2_000_000))
    assert spool.held_bytes == 0
    sink.begin(10)
    assert sink.finish().size == 0


def test_together_they_go_to_disk_earlier(tmp_path: Path) -> None:
    first, spool = _sink(tmp_path, room=400_000)
    second = BodySink(spool)
    second.begin(10_000_000)

    first.write(bytes(450_000))
    second.write(bytes(100_000))
    second.write(bytes(200_000))
    small, large = first.finish(), second.finish()

    assert isinstance(small, MemoryBody)
    assert isinstance(large, SpooledBody)
    large.close()


def test_a_full_disk_is_an_error_of_its_own(tmp_path: Path) -> None:
    class FullSpool(Spool):
        def open(self) -> BinaryIO:
            return Path("/dev/full").open("wb", buffering=0)

    sink = BodySink(FullSpool(tmp_path, 1000, 10_000))
    sink.begin(100_000)

    assert sink.write(bytes(2000)) == 0
    assert isinstance(sink.error, NoSpace)
    assert not sink.overflowed
    sink.begin(0)
    assert sink.error is None


def test_a_closed_body_is_empty_or_gone(tmp_path: Path) -> None:
    memory = MemoryBody((b"abc", b"def"))
    assert memory.size == 6
    memory.close()
    assert list(memory.chunks()) == []

    sink, _ = _sink(tmp_path)
    sink.write(bytes(2_000_000))
    spooled = sink.finish()
    spooled.close()
    with pytest.raises(ValueError, match="closed"):
        list(spooled.chunks())
