"""Folders of captures are marked, and one whose mark is gone is not taken for an empty one."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.crawl.recovery import open_store
from holdfast.zimit.errors import StoreMissing
from holdfast.zimit.output_directory import SENTINEL


def test_a_folder_is_made_and_marked_at_its_first_use(tmp_path: Path) -> None:
    assert open_store(tmp_path, "ex") == (tmp_path / "warcs" / "ex").resolve()

    assert (tmp_path / "warcs" / SENTINEL).is_file()
    assert (tmp_path / "warcs" / "ex" / SENTINEL).is_file()
    assert open_store(tmp_path, "ex") == open_store(tmp_path, "ex")


@pytest.mark.parametrize("place", ["warcs", "warcs/ex"])
def test_an_empty_folder_in_its_place_is_left_alone_until_it_is_marked(tmp_path: Path, place: str) -> None:
    open_store(tmp_path, "ex")
    (tmp_path / place).rename(tmp_path / "away")
    (tmp_path / place).mkdir()

    with pytest.raises(StoreMissing, match=SENTINEL):
        open_store(tmp_path, "ex")

    assert list((tmp_path / place).iterdir()) == []
    if place == "warcs":
        with pytest.raises(StoreMissing):
            open_store(tmp_path, "another")
    else:
        assert open_store(tmp_path, "another").is_dir()
    (tmp_path / place).rmdir()
    (tmp_path / "away").rename(tmp_path / place)
    assert open_store(tmp_path, "ex").is_dir()


def test_a_folder_that_cannot_be_made_is_told_as_missing_storage(tmp_path: Path) -> None:
    (tmp_path / "warcs").write_text("no folder")

    with pytest.raises(StoreMissing):
        open_store(tmp_path, "ex")
