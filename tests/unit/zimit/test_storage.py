"""What a job weighs, and whether it is whole: files at three levels, the manifest at three."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from holdfast.errors import Invalid
from holdfast.zimit.output_directory import temp_dirs_in
from holdfast.zimit.storage import (
    ErrorKind,
    ManifestLevel,
    integrity_report,
    storage_statistics,
    verify_manifest,
    verify_warc,
    warc_report,
)
from holdfast.zimit.warc_files import consolidate, discover_warcs, warcs_in
from tests.clock import FakeClock

BLOCK = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<p>kept</p>"
RECORD = (
    b"WARC/1.0\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:uuid:0b5e2a0e-3a5d-4b0e-9d3a-000000000001>\r\n"
    b"WARC-Target-URI: https://example.org/\r\nWARC-Date: 2026-01-01T00:00:00Z\r\n"
    b"Content-Type: application/http; msgtype=response\r\nContent-Length: %d\r\n\r\n" % len(BLOCK)
) + BLOCK + b"\r\n\r\n"  # fmt: skip


def _job(root: Path) -> Path:
    archive = root / ".tmp1" / "collections" / "crawl-1" / "archive"
    archive.mkdir(parents=True)
    (archive / "a.warc.gz").write_bytes(gzip.compress(RECORD) + gzip.compress(RECORD))
    (root / ".tmp1" / "profile.bin").write_bytes(b"x" * 100)
    return root


def test_a_file_with_two_names_weighs_once(tmp_path: Path, clock: FakeClock) -> None:
    job = _job(tmp_path)
    size = (job / ".tmp1" / "collections" / "crawl-1" / "archive" / "a.warc.gz").stat().st_size
    consolidate(job, warcs_in([job / ".tmp1"]), clock)
    manifest = (job / "warcs" / "manifest.json").stat().st_size

    found = storage_statistics(job)

    assert (found.warc_files, found.warc_bytes) == (1, size)
    assert (found.tmp_bytes, found.tmp_non_warc_bytes) == (size + 100, 100)
    assert found.output_bytes == size + 100 + manifest


def _file(folder: Path, data: bytes, name: str = "a.warc.gz") -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


WHOLE = gzip.compress(RECORD) * 2


@pytest.mark.parametrize(
    ("data", "verdicts"),
    [
        (WHOLE, (None, None, None)),
        (WHOLE[:-5], (None, ErrorKind.CORRUPT, ErrorKind.CORRUPT)),
        (WHOLE[:40] + b"\xff" + WHOLE[41:], (None, ErrorKind.CORRUPT, ErrorKind.CORRUPT)),
        (WHOLE + b"garbage", (None, ErrorKind.CORRUPT, ErrorKind.CORRUPT)),
        (gzip.compress(b"no record at all", mtime=0), (None, None, ErrorKind.CORRUPT)),
        (gzip.compress(RECORD.replace(b"<p>kept</p>", b"", 1), mtime=0), (None, None, ErrorKind.CORRUPT)),
        (b"", (ErrorKind.EMPTY,) * 3),
    ],
)
def test_each_level_sees_more(tmp_path: Path, data: bytes, verdicts: tuple[ErrorKind | None, ...]) -> None:
    path = _file(tmp_path, data)

    assert tuple(verify_warc(path, level).error_kind for level in (0, 1, 2)) == verdicts


def test_what_is_no_file_and_what_is_no_level(tmp_path: Path) -> None:
    (tmp_path / "d.warc.gz").mkdir()

    assert verify_warc(tmp_path / "d.warc.gz").error_kind is ErrorKind.NOT_A_FILE
    assert verify_warc(tmp_path / "none.warc.gz").error_kind is ErrorKind.NOT_A_FILE
    with pytest.raises(Invalid):
        verify_warc(tmp_path / "d.warc.gz", 3)


def test_a_disk_that_does_not_answer_is_not_a_damaged_file(tmp_path: Path) -> None:
    loop = tmp_path / "loop.warc.gz"
    loop.symlink_to(loop)
    memory = tmp_path / "memory.warc.gz"
    memory.symlink_to("/proc/self/mem")  # reading it at 0 is EIO

    assert verify_warc(memory, 1).error_kind in (ErrorKind.INFRA, ErrorKind.EMPTY)
    assert verify_warc(loop, 1).error_kind is ErrorKind.CORRUPT


def test_the_report_counts_by_kind(tmp_path: Path) -> None:
    files = [_file(tmp_path, WHOLE), _file(tmp_path, b"", "b.warc.gz"), _file(tmp_path, RECORD, "c.warc")]

    report = warc_report([verify_warc(path, 2) for path in files], 2)

    assert (report.warcs_total, report.warcs_ok, report.warcs_failed) == (3, 2, 1)
    assert report.errors["empty_file"] == 1
    assert [result.records for result in report.results] == [2, None, 1]


def test_the_manifest_is_compared_as_closely_as_asked(tmp_path: Path, clock: FakeClock) -> None:
    job = _job(tmp_path)
    consolidate(job, warcs_in([job / ".tmp1"]), clock)
    stable = job / "warcs" / "warc-000001.warc.gz"
    data = stable.read_bytes()

    def valid() -> tuple[bool, ...]:
        return tuple(verify_manifest(job, level).valid for level in ManifestLevel)

    assert valid() == (True, True, True)
    stable.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    assert valid() == (True, True, False)
    assert verify_manifest(job, ManifestLevel.HASH).hash_mismatches == [stable.name]
    stable.write_bytes(data[:-1])
    assert valid() == (True, False, False)
    stable.rename(job / "warcs" / "warc-000009.warc.gz")
    report = verify_manifest(job)
    assert (report.missing, report.orphaned) == (["warc-000001.warc.gz"], ["warc-000009.warc.gz"])
    assert report.describe().endswith("Status: FAILED")
    assert report.entries_total == 1


def test_an_orphan_alone_only_warns_and_a_missing_manifest_fails(tmp_path: Path, clock: FakeClock) -> None:
    job = _job(tmp_path)
    assert not verify_manifest(job).valid
    consolidate(job, warcs_in([job / ".tmp1"]), clock)
    (job / "warcs" / "stray.warc").write_bytes(b"x")

    report = verify_manifest(job)

    assert report.valid
    assert "warning: stray.warc" in report.describe()
    assert report.describe().endswith("Status: OK")


def test_files_that_cannot_be_seen_are_not_taken_for_files_that_are_not_there(tmp_path: Path) -> None:
    job, unseen = _job(tmp_path), tmp_path / ("x" * 300)
    assert warcs_in([job / "nowhere"]) == []

    for look in (discover_warcs, temp_dirs_in, storage_statistics):
        with pytest.raises(OSError, match="too long"):
            look(unseen)
    assert [issue.code for issue in integrity_report(unseen).issues] == ["infra_error"]
