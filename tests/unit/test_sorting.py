"""Sorting outside memory: the order of all lines, whatever their number, and never more than one run at hand."""

from __future__ import annotations

import resource
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from holdfast.sorting import sorted_lines


@pytest.mark.parametrize("count", [0, 1, 6, 7, 8, 14, 15, 100])
def test_lines_come_in_order_however_they_fall_into_runs(tmp_path: Path, count: int) -> None:
    lines = [b"%03d\n" % number for number in range(count)]
    shuffled = lines[:]
    Random(1).shuffle(shuffled)

    assert list(sorted_lines(shuffled, tmp_path, run_lines=7)) == lines
    assert list(tmp_path.iterdir()) == []


def test_any_number_of_runs_is_merged_with_a_few_open_files(tmp_path: Path) -> None:
    lines = [b"%05d\n" % number for number in range(30_000)]
    shuffled = lines[:]
    Random(1).shuffle(shuffled)
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    open_now = len(list(Path("/proc/self/fd").iterdir()))
    resource.setrlimit(resource.RLIMIT_NOFILE, (open_now + 80, before[1]))
    try:
        assert list(sorted_lines(shuffled, tmp_path, run_lines=10)) == lines
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("runs", [3, 4, 9, 16, 27, 40])
def test_levels_of_runs_lose_no_line(tmp_path: Path, runs: int) -> None:
    lines = [b"%d\n" % (number * 7919 % 1000) for number in range(2 * runs)]

    assert list(sorted_lines(lines, tmp_path, run_lines=2, open_runs=3)) == sorted(lines)


def _peak(count: int, folder: Path) -> int:
    def lines() -> Iterator[bytes]:
        chance = Random(count)
        for _ in range(count):
            yield b"%d%0200d\n" % (chance.getrandbits(64), 0)

    tracemalloc.start()
    try:
        for _ in sorted_lines(lines(), folder, run_lines=1000):
            pass
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_many_lines_take_no_more_memory_than_some(tmp_path: Path) -> None:
    assert _peak(8000, tmp_path) < 1.6 * _peak(1000, tmp_path)


def test_what_a_killed_process_left_goes_and_what_another_sorts_with_stays(tmp_path: Path) -> None:
    (tmp_path / ".sorting-killed").mkdir()
    (tmp_path / ".sorting-killed/0").write_bytes(b"half of it\n")
    lines = [b"%d\n" % number for number in range(10)]
    other = sorted_lines(lines, tmp_path, run_lines=2)
    first = next(other)
    beside = {path.name for path in tmp_path.iterdir()}

    found = list(sorted_lines(reversed(lines), tmp_path, run_lines=2))

    assert (first, len(beside), ".sorting-killed" in beside) == (lines[0], 1, False)
    assert found == lines
    assert [first, *other] == lines
    assert list(tmp_path.iterdir()) == []
