"""Packages in the cache: so many bytes of them, the least recently used go first, and none that is being read."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from threading import Event

import pytest
from sqlalchemy import event

from holdfast import cancellation
from holdfast.cancellation import WorkAbandoned
from holdfast.config import DiskSettings
from holdfast.db.models import Withdrawal
from holdfast.errors import NoSpace
from holdfast.exports.package_cache import LAYOUT, PackageBusy, PackageCache
from holdfast.exports.redaction import FOLDER, is_noted, noted_pages
from holdfast.steps import FileStep
from holdfast.urls import page_key
from holdfast.wiring.archive import Archive
from tests.archive import BEGIN, Shot, build_archive


@pytest.fixture
def archive(tmp_path: Path) -> Iterator[Archive]:
    """Three crawls of one page each."""
    built = build_archive(
        tmp_path / "home", [Shot(url="https://example.org/", execution=number) for number in (1, 2, 3)]
    )
    yield built
    built.database.close()


def _cache(archive: Archive, most_bytes: int) -> PackageCache:
    return PackageCache(archive.database, archive.home, most_bytes=most_bytes)


def _stored(archive: Archive) -> list[str]:
    """Return the executions whose packages are on the disk."""
    return sorted(path.parent.parent.name for path in (archive.home / "cache/wacz").rglob(LAYOUT))


def _bytes(archive: Archive) -> int:
    return sum(path.stat().st_blocks * 512 for path in (archive.home / "cache/wacz").glob("*/[!.]*/**/*"))


def test_a_cache_without_room_holds_the_package_that_was_asked_for_last(archive: Archive) -> None:
    cache = _cache(archive, 0)
    first = b"".join(cache.package(1).read())
    cache.package(2)
    stored = _stored(archive)

    again = b"".join(cache.package(1).read())

    assert (stored, _stored(archive)) == (["2"], ["1"])
    assert again == first


def test_what_was_asked_for_longest_ago_goes_first(archive: Archive) -> None:
    cache = _cache(archive, 1 << 30)
    for execution in (1, 2, 3):
        cache.package(execution)
    room_for_two = _bytes(archive) * 2 // 3 + 4096
    for age, execution in enumerate((3, 1, 2)):
        (layout,) = (archive.home / "cache/wacz" / str(execution)).rglob(LAYOUT)
        os.utime(layout, ns=(age * 10**9, age * 10**9))
    _cache(archive, 1 << 30).package(3)  # asked for, by another process: now it is the newest
    (archive.home / "cache/wacz/2").rename(archive.home / "elsewhere")
    _cache(archive, room_for_two).package(2)

    assert _stored(archive) == ["2", "3"]


def test_package_without_disk_space_is_not_started(archive: Archive) -> None:
    everything = DiskSettings(free_bytes=1 << 60, free_percent=0.0)
    cache = PackageCache(archive.database, archive.home, most_bytes=1 << 30, disk=everything)

    with pytest.raises(NoSpace, match="are kept free"):
        cache.package(1)

    assert list((archive.home / "cache/wacz").rglob("index*")) == []
    assert _cache(archive, 1 << 30).package(1).archive.size


def test_what_is_being_read_stays_until_it_is_read(archive: Archive) -> None:
    cache = _cache(archive, 0)
    whole = b"".join(cache.package(1).read())
    reading = cache.package(1).read()
    got = next(reading)

    _cache(archive, 0).package(2)
    during = _stored(archive)
    got += b"".join(reading)
    _cache(archive, 0).package(3)

    assert got == whole
    assert during == ["1", "2"]
    assert _stored(archive) == ["3"]


def test_a_package_that_another_process_removed_is_put_together_again(archive: Archive) -> None:
    cache = _cache(archive, 1 << 30)
    package = cache.package(1)
    whole = b"".join(package.read())
    _cache(archive, 0).package(2)

    with pytest.raises(PackageBusy):
        next(package.read())
    assert b"".join(cache.package(1).read()) == whole


def test_a_package_that_is_given_up_leaves_nothing_and_what_a_killed_process_left_goes(archive: Archive) -> None:
    cache, left = _cache(archive, 1 << 30), Event()
    left.set()
    with cancellation.until(left), pytest.raises(WorkAbandoned):
        cache.package(1)
    place = archive.home / "cache/wacz/1"
    remains = [path.name for path in place.iterdir()]
    (place / ".building-x/indexes").mkdir(parents=True)
    (place / ".building-x/indexes/index.cdx.gz").write_bytes(b"half")

    cache.package(2)

    assert remains == [".lock"]
    assert [path.name for path in place.iterdir()] == [".lock"]


def test_a_package_of_what_was_before_goes_when_there_is_a_new_one(archive: Archive) -> None:
    cache = _cache(archive, 1 << 30)
    cache.package(1)
    with archive.database.write() as session:
        session.connection().exec_driver_sql("UPDATE sources SET name = 'Another name'")

    cache.package(1)

    assert _stored(archive) == ["1"]


def test_takedown_changes_only_packages_that_name_the_page(tmp_path: Path) -> None:
    shots = [Shot(url=f"https://example.org/{number}", execution=number) for number in (1, 2)]
    archive = build_archive(tmp_path / "home", shots)
    cache = _cache(archive, 1 << 30)
    with archive.database.write() as session:
        session.add(Withdrawal(url_key=page_key("https://example.org/elsewhere"), subject="x", reason="x", actor="x",
                               created_at=BEGIN))  # fmt: skip
    before = [cache.package(number) for number in (1, 2)]
    with archive.database.write() as session:
        session.add(Withdrawal(url_key=page_key(shots[0].url), subject="x", reason="x", actor="x", created_at=BEGIN))
    ready = [cache.ready(cache.of_execution(number)) for number in (1, 2)]

    assert ready[0] is None
    assert ready[1] is not None
    assert (ready[1].folder, ready[1].etag) == (before[1].folder, before[1].etag)
    assert cache.package(1).etag != before[0].etag
    archive.database.close()


def test_package_build_reports_phase_and_file(archive: Archive) -> None:
    cache, steps, busy = _cache(archive, 1 << 30), list[str](), list[str]()

    def on_step(step: FileStep) -> None:
        steps.append(str(step))
        with pytest.raises(PackageBusy) as refused:
            _cache(archive, 1 << 30).package(1)  # as another process does
        busy.append(str(refused.value))

    cache.on_step = on_step
    cache.package(1)
    built = list(steps)
    cache.package(1)

    assert built == ["checking, file 1 of 1", "indexing, file 1 of 1", "listing pages, file 1 of 1"] == steps
    assert busy == [f"this package is being built ({step}); try again in a few seconds" for step in built]


def test_cache_trims_notes_of_pages(archive: Archive) -> None:
    with archive.database.write() as session:
        session.add(Withdrawal(url_key=page_key("https://example.org/elsewhere"), subject="x", reason="x", actor="x",
                               created_at=BEGIN))  # fmt: skip
    notes, cache = archive.home / "cache/wacz" / FOLDER, _cache(archive, 1 << 30)
    cache.package(1)
    kept = len(list(notes.iterdir()))
    first = b"".join(cache.package(2).read())
    without_room = _cache(archive, 0)
    without_room.package(3)

    assert (kept, list(notes.iterdir())) == (1, [])
    assert b"".join(without_room.package(2).read()) == first


@pytest.mark.parametrize("left", [b"", b"\x1f\x8b\x08", bytes(40), None], ids=["empty", "cut", "zeros", "half"])
def test_damaged_note_of_pages_is_read_again(archive: Archive, left: bytes | None) -> None:
    path = min((archive.home / "warcs").rglob("*.warc.gz"))
    keys = noted_pages(archive.home, path, "digest")
    (note,) = (archive.home / FOLDER).iterdir()
    note.write_bytes(note.read_bytes()[:-9] if left is None else left)

    assert page_key("https://example.org/") in keys
    assert noted_pages(archive.home, path, "digest") == keys
    assert is_noted(archive.home, "digest")


def test_takedowns_are_read_once_for_all_pages_of_a_package(tmp_path: Path) -> None:
    shots = [Shot(url=f"https://example.org/{number}") for number in range(1_100)]
    archive = build_archive(tmp_path / "home", shots)
    with archive.database.write() as session:
        session.add(Withdrawal(url_key=page_key(shots[0].url), subject="x", reason="x", actor="x", created_at=BEGIN))
    _cache(archive, 1 << 30).package(1)
    asked: list[str] = []

    def note(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        asked.append(statement)

    event.listen(archive.database.engine, "before_cursor_execute", note)
    cache = _cache(archive, 1 << 30)
    assert cache.ready(cache.of_execution(1)) is not None
    archive.database.close()

    assert [one for one in asked if "withdrawals.url_key IN" in one] == []


def test_package_below_another_folder_is_read_again(archive: Archive, tmp_path: Path) -> None:
    def packed() -> bytes:
        folder = tmp_path / "scratch"
        folder.mkdir(exist_ok=True)
        cache = PackageCache(archive.database, archive.home, most_bytes=1 << 30, folder=folder)
        return b"".join(cache.package(1).read())

    first = packed()

    assert packed() == first == b"".join(_cache(archive, 1 << 30).package(1).read())
