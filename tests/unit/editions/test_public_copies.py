"""Copies of an edition's files: made once, and so many bytes of them; what was asked for longest ago goes first."""

from __future__ import annotations

import os
from pathlib import Path

from holdfast.editions.edition_files import open_copy

_SIZE = 64 * 1024


def _ask(cache: Path, file: Path, edition: int, *, most_bytes: int) -> bytes:
    place = cache / f"example-{edition}"
    with open_copy(place, file, "word", lambda path: [path.read_bytes()], most_bytes=most_bytes) as opened:
        return opened.read()


def _kept(cache: Path) -> list[str]:
    return sorted(path.parent.name for path in cache.glob("*/[!.]*"))


def test_copies_take_so_many_bytes_and_those_asked_for_longest_ago_go_first(tmp_path: Path) -> None:
    file, cache = tmp_path / "coverage.csv", tmp_path / "cache"
    file.write_bytes(b"x" * _SIZE)
    for year in (2021, 2022, 2023):
        _ask(cache, file, year, most_bytes=1 << 30)
    for age, year in enumerate((2022, 2021, 2023)):
        (copy,) = (cache / f"example-{year}").glob("[!.]*")
        os.utime(copy, ns=(age * 10**9, age * 10**9))
    _ask(cache, file, 2022, most_bytes=1 << 30)  # asked for again: now it is the newest

    assert _ask(cache, file, 2024, most_bytes=3 * _SIZE + 4096) == file.read_bytes()

    assert _kept(cache) == ["example-2022", "example-2023", "example-2024"]


def test_a_copy_that_is_being_read_is_read_to_its_end_and_the_last_one_stays_whatever_its_size(tmp_path: Path) -> None:
    file, cache = tmp_path / "coverage.csv", tmp_path / "cache"
    file.write_bytes(b"x" * _SIZE)
    with open_copy(cache / "a", file, "word", lambda path: [path.read_bytes()], most_bytes=0) as reading:
        _ask(cache, file, 2024, most_bytes=0)

        assert reading.read() == file.read_bytes()
    assert _kept(cache) == ["example-2024"]
