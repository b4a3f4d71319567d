"""The key of the passes: one for all processes of an archive, also after a power loss cut its file short."""

from __future__ import annotations

from pathlib import Path

from holdfast.replay.origins import KEY_FILE, site_passes

_PAGE = "https://example.org/"


def _pass(home: Path) -> str:
    site_passes.cache_clear()  # as another process would begin
    return site_passes(home).of(_PAGE)


def test_processes_make_the_same_passes(tmp_path: Path) -> None:
    assert _pass(tmp_path) == _pass(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [KEY_FILE]


def test_a_key_that_was_cut_short_is_made_anew_for_all(tmp_path: Path) -> None:
    (tmp_path / KEY_FILE).write_bytes(b"")

    assert _pass(tmp_path) == _pass(tmp_path)
    assert len((tmp_path / KEY_FILE).read_bytes()) == 32
