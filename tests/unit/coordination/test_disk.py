"""Room for new work: every volume that is written to is asked, not only the one of the data directory."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from holdfast import config
from holdfast.coordination.disk import is_low, low_volume, shortage

_OTHER = Path("/dev/shm")


def _free(folder: Path) -> int:
    disk = os.statvfs(folder)
    return disk.f_bavail * disk.f_frsize


@pytest.fixture
def smaller(tmp_path: Path) -> int:
    """A mark between the room of two volumes: only the smaller one is below it."""
    if not _OTHER.is_dir() or _OTHER.stat().st_dev == tmp_path.stat().st_dev or _free(_OTHER) >= _free(tmp_path):
        pytest.skip("there is no second, smaller volume on this machine")
    return (_free(_OTHER) + _free(tmp_path)) // 2


def test_the_volume_of_the_captures_counts_although_the_data_directory_has_room(tmp_path: Path, smaller: int) -> None:
    (tmp_path / "warcs").symlink_to(_OTHER)
    settings = config.load(home=tmp_path, disk={"free_bytes": smaller, "free_percent": 0})

    assert not is_low(tmp_path, settings.disk)
    assert low_volume(settings) == tmp_path / "warcs"


def test_the_volume_of_one_source_and_the_store_of_zimit_count(tmp_path: Path, smaller: int) -> None:
    (tmp_path / "warcs").mkdir()
    marks = {"free_bytes": smaller, "free_percent": 0}
    assert low_volume(config.load(home=tmp_path, disk=marks)) is None

    (tmp_path / "warcs" / "ex").symlink_to(_OTHER)
    assert low_volume(config.load(home=tmp_path, disk=marks)) == tmp_path / "warcs" / "ex"

    (tmp_path / "warcs" / "ex").unlink()
    assert low_volume(config.load(home=tmp_path, disk=marks, zimit={"store_root": _OTHER})) == _OTHER


def test_the_volume_of_a_database_that_lies_elsewhere_counts(tmp_path: Path, smaller: int) -> None:
    settings = config.load(
        home=tmp_path,
        database_url=f"sqlite:///{_OTHER}/holdfast.db",
        disk={"free_bytes": smaller, "free_percent": 0},
    )

    assert low_volume(settings) == _OTHER


def test_a_volume_that_is_not_there_is_not_asked(tmp_path: Path) -> None:
    settings = config.load(home=tmp_path, disk={"free_bytes": 0, "free_percent": 0},
                           zimit={"store_root": tmp_path / "away"})  # fmt: skip

    assert low_volume(settings) is None


def test_a_shortage_names_the_folder_what_is_free_the_settings_and_what_helps(tmp_path: Path) -> None:
    marks = config.load(home=tmp_path, disk={"free_bytes": 10**18, "free_percent": 7}).disk

    told = shortage(tmp_path, marks)

    assert told.startswith(f"{tmp_path} has ")
    assert "1,000,000,000,000.0 MB and 7 % are kept free" in told
    assert "make room" in told
    assert "HOLDFAST_DISK_FREE_BYTES" in told
    assert "HOLDFAST_DISK_FREE_PERCENT" in told


def test_where_there_is_room_the_system_has_refused(tmp_path: Path) -> None:
    marks = config.load(home=tmp_path, disk={"free_bytes": 0, "free_percent": 0}).disk

    assert "lift the quota" in shortage(tmp_path, marks)
    assert "is its storage mounted" in shortage(tmp_path / "gone", marks)
