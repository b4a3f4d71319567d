"""Room for new work: every volume that is written to is asked, not only the one of the data directory."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import pytest

from holdfast import config
from holdfast.processes.disk import is_low, low_volume, shortage, storage_trouble
from tests import needs


class _Volumes(NamedTuple):
    roomy: Path
    """A folder on the volume with more room."""
    small: Path
    """A folder on another one with less."""
    between: int
    """A mark in bytes: only the smaller volume is below it."""


def _free(folder: Path) -> int:
    disk = os.statvfs(folder)
    return disk.f_bavail * disk.f_frsize


@pytest.fixture
def volumes(tmp_path: Path) -> Iterator[_Volumes]:
    """A folder on each of two volumes of this machine."""
    with TemporaryDirectory(dir=needs.other_volume(tmp_path)) as other:
        small, roomy = sorted((tmp_path, Path(other).resolve()), key=_free)
        yield _Volumes(roomy, small, (_free(small) + _free(roomy)) // 2)


def test_the_volume_of_the_captures_counts_although_the_data_directory_has_room(volumes: _Volumes) -> None:
    (volumes.roomy / "warcs").symlink_to(volumes.small)
    settings = config.load(home=volumes.roomy, disk={"free_bytes": volumes.between, "free_percent": 0})

    assert not is_low(volumes.roomy, settings.disk)
    assert low_volume(settings) == volumes.roomy / "warcs"


def test_the_volume_of_one_source_and_the_store_of_zimit_count(volumes: _Volumes) -> None:
    home, small = volumes.roomy, volumes.small
    (home / "warcs").mkdir()
    marks = {"free_bytes": volumes.between, "free_percent": 0}
    assert low_volume(config.load(home=home, disk=marks)) is None

    (home / "warcs" / "ex").symlink_to(small)
    assert low_volume(config.load(home=home, disk=marks)) == home / "warcs" / "ex"

    (home / "warcs" / "ex").unlink()
    assert low_volume(config.load(home=home, disk=marks, zimit={"store_root": small})) == small


def test_the_volume_of_a_database_that_lies_elsewhere_counts(volumes: _Volumes) -> None:
    settings = config.load(
        home=volumes.roomy,
        database_url=f"sqlite:///{volumes.small}/holdfast.db",
        disk={"free_bytes": volumes.between, "free_percent": 0},
    )

    assert low_volume(settings) == volumes.small


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


def test_two_that_look_at_one_folder_at_once_do_not_take_it_for_broken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sync = os.fsync

    def synced(fd: int) -> None:
        sync(fd)
        for left in tmp_path.iterdir():
            left.unlink()  # the other one is done

    monkeypatch.setattr(os, "fsync", synced)

    assert storage_trouble(tmp_path) is None
    assert list(tmp_path.iterdir()) == []
