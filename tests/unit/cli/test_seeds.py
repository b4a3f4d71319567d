"""Files of seeds: good lines are kept and bad ones named, whatever the file really is."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest

from holdfast.cli.seeds import read_seeds
from holdfast.errors import Invalid

_SEED = "https://example.org/a"


def test_marks_line_ends_comments_and_blank_lines_are_no_part_of_a_seed(tmp_path: Path) -> None:
    path = tmp_path / "seeds.txt"
    path.write_bytes(
        b"\xef\xbb\xbfhttps://example.org/a\r\n# a comment\r\n\r\n  example.net/b \nhttps://example.org/a\n"
    )

    assert read_seeds([], [path]) == [_SEED, "example.net/b"]


def test_a_line_that_is_no_address_is_named_and_the_others_are_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "seeds.txt"
    noise = [b"\x00\x1b[31mred", b"\xff\xfe\x80", b"javascript:alert(1)", b"http://[", b"x" * 1_000_000]
    path.write_bytes(b"\n".join([*noise, _SEED.encode(), *(b"file:///%d" % n for n in range(30))]))

    assert read_seeds([], [path]) == [_SEED]
    said = capsys.readouterr().err
    assert [f"seeds.txt, line {number}:" in said for number in (1, 2, 3, 4, 5, 6, 7)] == [True] * 5 + [False, True]
    assert "seeds.txt: 15 more lines are no addresses" in said
    assert not set(said) & {"\x00", "\x1b"}, "what a file holds cannot write to the terminal"
    assert len(said) < 20_000


def test_a_file_that_is_no_list_of_lines_is_never_held_in_memory(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "disk.img"
    with path.open("wb") as file:
        file.truncate(64 * 1024 * 1024)

    tracemalloc.start()
    with pytest.raises(Invalid, match="nothing to crawl"):
        read_seeds([], [path])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert peak < 4 * 1024 * 1024
    assert "disk.img, line 1:" in capsys.readouterr().err
