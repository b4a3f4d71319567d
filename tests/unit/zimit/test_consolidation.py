"""Consolidation: stable names by hard link, again without effect, never over other bytes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from holdfast.errors import Unavailable
from holdfast.zimit.warc_files import (
    ManifestStatus,
    ToolWarcFile,
    consolidate,
    discover_warcs,
    next_number,
    read_job_manifest,
    source_of,
    warcs_in,
)
from tests import needs
from tests.clock import FakeClock


def _temp(job: Path, name: str, data: bytes = b"record", folder: str = ".tmp1") -> Path:
    path = job / folder / "collections" / "crawl-1" / "archive" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def _found(job: Path) -> list[ToolWarcFile]:
    return warcs_in(sorted(job.glob(".tmp*")))


def test_every_file_gets_a_name_and_an_entry(tmp_path: Path, clock: FakeClock) -> None:
    source = _temp(tmp_path, "a.warc.gz", b"one")
    _temp(tmp_path, "b.warc", b"two")

    paths, created = consolidate(tmp_path, _found(tmp_path), clock)

    assert created == 2
    assert [path.name for path in paths] == ["warc-000001.warc.gz", "warc-000002.warc"]
    assert paths[0].samefile(source)
    content = json.loads((tmp_path / "warcs" / "manifest.json").read_text())
    assert sorted(content) == ["created_at", "entries", "output_dir", "updated_at", "version", "warcs_dir"]
    assert content["entries"][0] == {
        "source_path": str(source), "stable_name": "warc-000001.warc.gz", "link_type": "hardlink", "size_bytes": 3,
        "sha256": "7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed",
    }  # fmt: skip


def test_the_same_again_changes_nothing(tmp_path: Path, clock: FakeClock) -> None:
    _temp(tmp_path, "a.warc.gz")
    consolidate(tmp_path, _found(tmp_path), clock)
    before = (tmp_path / "warcs" / "manifest.json").read_bytes()
    clock.advance(100)

    paths, created = consolidate(tmp_path, _found(tmp_path), clock)

    assert (len(paths), created) == (1, 0)
    assert (tmp_path / "warcs" / "manifest.json").read_bytes() == before


def test_numbers_go_on_after_the_highest_and_leave_gaps(tmp_path: Path, clock: FakeClock) -> None:
    stable = tmp_path / "warcs"
    stable.mkdir()
    (stable / "warc-000007.warc.gz").write_bytes(b"kept")
    (stable / "warc-000003.warc").write_bytes(b"kept too")
    _temp(tmp_path, "a.warc.gz")

    paths, _ = consolidate(tmp_path, _found(tmp_path), clock)

    assert [path.name for path in paths] == ["warc-000008.warc.gz"]
    assert (stable / "warc-000007.warc.gz").read_bytes() == b"kept"
    assert next_number(stable) == 9


def test_a_dry_run_writes_nothing(tmp_path: Path, clock: FakeClock) -> None:
    _temp(tmp_path, "a.warc.gz")

    assert consolidate(tmp_path, _found(tmp_path), clock, dry_run=True)[1] == 1
    assert not (tmp_path / "warcs").exists()


@pytest.mark.parametrize(
    "text",
    [
        "", "{", "[]", '{"version": 9}', '{"version": 1, "entries": [{}], "created_at": 1}',
        '{"version": 1, "created_at": "x", "entries": [{"stable_name": "../x"}]}',
    ],
)  # fmt: skip
def test_a_manifest_that_makes_no_sense_is_made_anew(tmp_path: Path, clock: FakeClock, text: str) -> None:
    _temp(tmp_path, "a.warc.gz")
    consolidate(tmp_path, _found(tmp_path), clock)
    (tmp_path / "warcs" / "warc-000009.warc").write_bytes(b"nobody knows from where")
    (tmp_path / "warcs" / "manifest.json").write_text(text)
    assert read_job_manifest(tmp_path / "warcs")[0] is ManifestStatus.INVALID

    paths, created = consolidate(tmp_path, _found(tmp_path), clock)

    assert (len(paths), created) == (1, 0)
    status, entries, _ = read_job_manifest(tmp_path / "warcs")
    assert status is ManifestStatus.VALID
    assert {entry.stable_name: entry.link_type for entry in entries} == {
        "warc-000001.warc.gz": "hardlink", "warc-000009.warc": "found",
    }  # fmt: skip


def test_a_stable_file_that_was_lost_is_linked_again_under_a_new_number(tmp_path: Path, clock: FakeClock) -> None:
    _temp(tmp_path, "a.warc.gz", b"one")
    _temp(tmp_path, "b.warc.gz", b"two")
    consolidate(tmp_path, _found(tmp_path), clock)
    (tmp_path / "warcs" / "warc-000001.warc.gz").unlink()

    paths, _ = consolidate(tmp_path, _found(tmp_path), clock)

    assert [path.name for path in paths] == ["warc-000003.warc.gz", "warc-000002.warc.gz"]


def test_another_disk_needs_permission_to_copy(tmp_path: Path, clock: FakeClock) -> None:
    source = needs.other_volume(tmp_path) / f"holdfast-{tmp_path.name}.warc.gz"
    source.write_bytes(b"far away")
    try:
        seen = source.stat()
        file = ToolWarcFile(source, seen.st_size, seen.st_dev, seen.st_ino)
        with pytest.raises(Unavailable):
            consolidate(tmp_path, [file], clock)
        paths, _ = consolidate(tmp_path, [file], clock, allow_copy=True)
    finally:
        source.unlink()

    assert paths[0].read_bytes() == b"far away"
    assert read_job_manifest(tmp_path / "warcs")[1][0].link_type == "copy"


def _discovered(job: Path) -> tuple[str, int]:
    files = discover_warcs(job)
    return source_of(job, files), len(files)


def test_discovery_returns_each_file_of_any_folder_once(tmp_path: Path, clock: FakeClock) -> None:
    assert _discovered(tmp_path) == ("none", 0)
    _temp(tmp_path, "a.warc.gz", b"one")
    _temp(tmp_path, "empty.warc.gz", b"")
    _temp(tmp_path, "notes.txt", b"no")
    (tmp_path / ".tmp1" / "dangling.warc.gz").symlink_to(tmp_path / "nowhere")
    assert _discovered(tmp_path) == ("temp", 1)

    consolidate(tmp_path, _found(tmp_path), clock)
    assert _discovered(tmp_path) == ("stable", 1)

    _temp(tmp_path, "c.warc", b"three", folder=".tmp-http-warc")
    assert _discovered(tmp_path) == ("mixed", 2)
