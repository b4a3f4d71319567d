"""Quarantine, clean-up, compaction and the report over a job's storage: nothing that is whole is ever lost."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from holdfast.errors import Invalid
from holdfast.warc.reader import DamagedWarc, read_records
from holdfast.zimit.storage import (
    ErrorKind,
    WarcVerdict,
    clean_temp,
    clean_temp_nonwarc,
    compact,
    integrity_report,
    quarantine,
    verify_warc,
)
from holdfast.zimit.warc_files import consolidate, discover_warcs, warcs_in
from tests.clock import FakeClock


def _record(number: int, media: str, body: bytes = b"kept") -> bytes:
    block = b"HTTP/1.1 200 OK\r\nContent-Type: %s\r\n\r\n" % media.encode() + body
    head = (
        f"WARC/1.0\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:uuid:0b5e2a0e-3a5d-4b0e-9d3a-{number:012d}>\r\n"
        f"WARC-Target-URI: https://example.org/{number}\r\nWARC-Date: 2026-01-01T00:00:00Z\r\n"
        f"Content-Type: application/http; msgtype=response\r\nContent-Length: {len(block)}\r\n\r\n"
    )
    return gzip.compress(head.encode() + block + b"\r\n\r\n")


def _job(root: Path, data: bytes | None = None) -> Path:
    job = root / "job"
    archive = job / ".tmp1" / "collections" / "crawl-1" / "archive"
    archive.mkdir(parents=True)
    (archive / "a.warc.gz").write_bytes(data or _record(1, "text/html"))
    (job / ".archive_state.json").write_text("{}")
    (job / ".zimit_resume.yaml").write_text("a: 1\n")
    return job


def _paths(job: Path) -> list[Path]:
    return [file.path for file in discover_warcs(job)]


def test_only_damaged_files_move_and_keep_their_place_below_the_job(tmp_path: Path, clock: FakeClock) -> None:
    job = _job(tmp_path)
    bad = job / ".tmp1" / "bad.warc.gz"
    bad.write_bytes(_record(2, "text/html")[:-4])
    verdicts = [verify_warc(file.path) for file in discover_warcs(job)]

    moved = quarantine(job, verdicts, clock)

    assert moved == [job / "warcs_quarantine" / "20260901120000" / ".tmp1" / "bad.warc.gz"]
    assert not bad.exists()
    assert [path.name for path in _paths(job)] == ["a.warc.gz"]


def test_nothing_outside_the_job_is_moved(tmp_path: Path, clock: FakeClock) -> None:
    job = _job(tmp_path)
    outside = tmp_path / "x.warc.gz"
    outside.write_bytes(b"damaged")

    with pytest.raises(Invalid):
        quarantine(job, [verify_warc(outside)], clock)
    assert outside.exists()


def test_a_clean_up_keeps_the_warcs_and_what_tells_of_their_making(tmp_path: Path, clock: FakeClock) -> None:
    job = _job(tmp_path)
    before = _paths(job)

    moved: dict[Path, Path] = {}
    assert clean_temp_nonwarc(job, clock, moved.update) == (1, True)

    assert list(moved.items()) == [(before[0], job / "warcs" / "warc-000001.warc.gz")]
    assert verify_warc(job / "warcs" / "warc-000001.warc.gz", 2).ok
    assert not (job / ".tmp1").exists()
    assert not (job / ".archive_state.json").exists()
    assert sorted(path.name for path in (job / "provenance").iterdir()) == ["archive_state.json", "zimit_resume.yaml"]


def test_a_clean_up_of_everything_says_when_there_was_nothing(tmp_path: Path) -> None:
    job = _job(tmp_path)

    first, second = clean_temp(job), clean_temp(job)

    assert (first, second) == ((1, True), (0, False))
    assert discover_warcs(job) == []


def test_a_compacted_copy_lacks_only_what_it_should_and_the_original_stays(tmp_path: Path, clock: FakeClock) -> None:
    page, film, sound = _record(1, "text/html"), _record(2, "video/mp4", b"x" * 5000), _record(3, "audio/ogg")
    job = _job(tmp_path, page + film + page + sound)
    files = warcs_in([job / ".tmp1"])

    made = compact(job, files, clock)

    assert len(made) == 1
    assert made[0].staged == job / "warcs_compacted" / "20260901120000" / "a.warc.gz"
    assert made[0].staged.read_bytes() == page + page
    assert made[0].dropped == 2
    assert made[0].after_bytes < made[0].before_bytes
    assert files[0].path.read_bytes() == page + film + page + sound
    assert [record.head.url for record in read_records(made[0].staged)] == ["https://example.org/1"] * 2


def test_a_damaged_file_is_never_compacted(tmp_path: Path, clock: FakeClock) -> None:
    job = _job(tmp_path, _record(1, "video/mp4") + _record(2, "text/html")[:-3])

    with pytest.raises(DamagedWarc):
        compact(job, warcs_in([job / ".tmp1"]), clock)
    assert not (job / "warcs_compacted").exists()


def test_files_with_nothing_to_drop_have_no_copy(tmp_path: Path, clock: FakeClock) -> None:
    job = _job(tmp_path)

    assert compact(job, warcs_in([job / ".tmp1"]), clock) == []


def _codes(job: Path) -> tuple[str, list[str]]:
    report = integrity_report(job)
    return report.verdict, [issue.code for issue in report.issues]


def test_the_report_goes_from_incomplete_over_pass_to_fail(tmp_path: Path, clock: FakeClock) -> None:
    job = _job(tmp_path)
    assert _codes(job) == ("incomplete", ["not_consolidated"])

    consolidate(job, warcs_in([job / ".tmp1"]), clock)
    assert _codes(job) == ("pass", [])

    details = {"crawled": 1, "total": 5, "pending": 1, "failed": 0}
    entry = {"context": "crawlStatus", "message": "Crawl statistics", "details": details}
    (job / "archive_x.combined.log").write_text(json.dumps(entry) + "\n")
    assert _codes(job) == ("incomplete", ["crawl_incomplete"])

    (job / "warcs" / "warc-000001.warc.gz").unlink()
    verdict, codes = _codes(job)
    assert verdict == "fail"
    assert "warc_missing" in codes
    (job / "warcs" / "manifest.json").write_text("{")
    assert "manifest_invalid" in _codes(job)[1]
    assert _codes(tmp_path / "none") == ("fail", ["output_dir_missing"])


def test_a_file_that_the_disk_would_not_give_is_left_alone(tmp_path: Path, clock: FakeClock) -> None:
    job = _job(tmp_path)
    path = _paths(job)[0]

    assert quarantine(job, [WarcVerdict(path=path, ok=False, error_kind=ErrorKind.INFRA, error="errno 5")], clock) == []
    assert path.exists()
