"""Rows name files so that the data directory can be moved."""

from __future__ import annotations

from pathlib import Path

from holdfast.storage.roots import key_of, local_path, record_root


def test_a_file_in_the_data_directory_is_found_again_after_a_move(tmp_path: Path) -> None:
    stored = key_of(tmp_path / "before", tmp_path / "before" / "warcs" / "a.warc.gz")

    assert local_path(tmp_path / "after", stored) == tmp_path / "after" / "warcs" / "a.warc.gz"


def test_a_file_elsewhere_stays_where_it_is(tmp_path: Path) -> None:
    (tmp_path / "moved").mkdir()
    record_root(tmp_path / "moved", tmp_path / "big-disk")
    stored = key_of(tmp_path / "home", tmp_path / "big-disk" / "a.warc.gz")

    assert local_path(tmp_path / "moved", stored) == tmp_path / "big-disk" / "a.warc.gz"
