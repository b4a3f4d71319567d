"""Logs: statistics by structure, from the end, whatever stands between; progress, names, temporary directories."""

from __future__ import annotations

import json
import tracemalloc
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from holdfast.zimit.logs import (
    announced_temp_dir,
    error_class,
    failure_text,
    last_statistics,
    lines_backwards,
    newest_log,
    read_progress,
    read_statistics,
    stage_log,
    stream_log,
)

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


def _stats(crawled: int, *, minute: float = 0, **more: Any) -> bytes:
    details = {"crawled": crawled, "total": 10, "pending": 1, "failed": 0, **more}
    moment = (AT + timedelta(minutes=minute)).isoformat().replace("+00:00", "Z")
    entry = {"timestamp": moment, "logLevel": "info", "context": "crawlStatus", "message": "Crawl statistics",
             "details": details}  # fmt: skip
    return json.dumps(entry).encode() + b"\n"


def test_statistics_are_read_with_everything_that_they_say() -> None:
    found = read_statistics(_stats(3, limit={"max": 5, "hit": True}, backend="http_warc", lastPage="x"))

    assert found is not None
    assert (found.crawled, found.total, found.pending, found.failed, found.limit_hit) == (3, 10, 1, 0, True)
    assert found.at == AT
    assert found.as_json()["backend"] == "http_warc"


@pytest.mark.parametrize(
    "details",
    [{}, None, [], {"crawled": 1}, {"total": 1}, {"crawled": "1", "total": 2}, {"crawled": True, "total": 2},
     {"crawled": -1, "total": 2}, {"crawled": 1, "total": 2**70}],
)  # fmt: skip
def test_statistics_without_usable_details_are_none(details: object) -> None:
    entry = {"context": "crawlStatus", "message": "Crawl statistics", "details": details}

    assert read_statistics(json.dumps(entry).encode()) is None


@pytest.mark.parametrize(
    "line",
    [
        b'INFO: "Crawl statistics" {"crawled": 1, "total": 1}',
        _stats(1).replace(b"crawlStatus", b"pageStatus"),
        json.dumps({"context": "general", "details": {"title": _stats(9).decode()}}).encode(),
        b'{"message": "Crawl statistics", ' + b"[" * 100_000,
        b'{"message": "Crawl statistics", "x": "' + b"x" * (2 << 20) + b'"}',
        b'\xff\xfe{"message": "Crawl statistics"}',
    ],
)
def test_lines_that_only_mention_statistics_are_none(line: bytes) -> None:
    assert read_statistics(line) is None


def test_the_last_usable_statistics_win_over_broken_ones_after_them(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_bytes(_stats(1) + _stats(2) + _stats(3).replace(b'"crawled": 3, ', b"") + b"\xff\xfe junk\n")

    found = last_statistics(log)

    assert found is not None
    assert found.crawled == 2


def test_a_line_of_a_hundred_megabytes_hides_nothing(tmp_path: Path) -> None:
    """W13."""
    log = tmp_path / "a.log"
    with log.open("wb") as file:
        file.write(_stats(7))
        for _ in range(100):
            file.write(b"x" * (1 << 20))
        file.write(b"\nlast\n")

    tracemalloc.start()
    found = last_statistics(log)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert found is not None
    assert found.crawled == 7
    assert peak < 8 << 20


def test_only_the_last_megabyte_of_lines_is_looked_at(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_bytes(_stats(7) + b"an ordinary line\n" * 80_000)

    assert last_statistics(log) is None


@pytest.mark.parametrize("size", [0, 1, 10, 1 << 20, (1 << 20) + 1, (1 << 21) + 3])
def test_lines_come_backwards_whole_wherever_blocks_end(tmp_path: Path, size: int) -> None:
    log = tmp_path / "a.log"
    log.write_bytes(b"first\n" + b"y" * size + b"\nlast")

    lines = list(lines_backwards(log))

    assert lines[0] == b"last"
    assert lines[-1] == b"first"
    assert len(lines) == (3 if size <= 1 << 20 else 2)


def test_progress_is_the_last_change_and_the_rate_over_what_is_seen(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_bytes(_stats(1) + _stats(5, minute=1) + _stats(5, minute=2))

    found = read_progress(log)

    assert found is not None
    assert found[:2] == (5, AT + timedelta(minutes=1))
    assert found[2] == pytest.approx(2.0)


def test_a_flat_window_counts_from_its_oldest_event(tmp_path: Path) -> None:
    log = tmp_path / "a.log"
    log.write_bytes(_stats(5, minute=1) + _stats(5, minute=2))

    found = read_progress(log)

    assert found == (5, AT + timedelta(minutes=1), 0)
    assert read_progress(tmp_path / "none.log") is None


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ({"logLevel": "error", "message": "Navigation timeout of 90000 ms exceeded"}, "timeout"),
        ({"logLevel": "warn", "message": "x", "details": {"msg": "net::ERR_NAME_NOT_RESOLVED"}}, "timeout"),
        ({"logLevel": "error", "message": "net::ERR_CONNECTION_TIMED_OUT at"}, "timeout"),
        ({"logLevel": "error", "message": "net::ERR_TIMED_OUT"}, "timeout"),
        ({"logLevel": "error", "message": "net::ERR_DNS_TIMED_OUT"}, "timeout"),
        ({"logLevel": "error", "message": "net::ERR_HTTP2_PROTOCOL_ERROR"}, "http"),
        ({"logLevel": "warn", "message": "Page Load Failed", "details": {"status": 503}}, "http"),
        ({"logLevel": "error", "message": "Page crashed"}, "other"),
        ({"logLevel": "info", "message": "net::ERR_FAILED"}, None),
        ({"logLevel": "info", "details": {"title": "Navigation timeout"}}, None),
    ],
)
def test_errors_have_a_class(line: dict[str, Any], kind: str | None) -> None:
    assert error_class(json.dumps(line).encode()) == kind


@pytest.mark.parametrize(
    ("line", "kind"),
    [(b"net::ERR_ABORTED", "http"), (b"Navigation timeout of 1 ms", "timeout"), (b"HTTP 404", "http"), (b"fine", None)],
)
def test_errors_of_other_programs_count_by_name(line: bytes, kind: str | None) -> None:
    assert error_class(line) == kind


def test_logs_of_one_second_have_different_names(tmp_path: Path) -> None:
    first = stage_log(tmp_path, "Resume Crawl - Attempt 2", AT)
    first.touch()
    second = stage_log(tmp_path, "Resume Crawl - Attempt 2", AT)

    assert first.name == "archive_resume_crawl_-_attempt_2_20260102_030405.combined.log"
    assert stream_log(first, "stderr").name.endswith("030405.stderr.log")
    assert second.name == "archive_resume_crawl_-_attempt_2_20260102_030405_02.combined.log"
    assert newest_log(tmp_path) == first
    assert newest_log(tmp_path / "none") is None


@pytest.mark.parametrize("where", ["head", "tail"])
def test_the_temporary_directory_is_the_announced_one(tmp_path: Path, where: str) -> None:
    for name in (".tmpaaa", ".tmpbbb"):
        (tmp_path / name).mkdir()
    line = b"[zimit] INFO:Output to tempdir: /output/.tmpaaa - will keep\n"
    noise = b"x\n" * 20_000
    log = tmp_path / "a.log"
    log.write_bytes(line + noise if where == "head" else noise + line)

    assert announced_temp_dir(log, tmp_path) == tmp_path / ".tmpaaa"


def test_without_an_announcement_it_is_the_newest_and_never_one_outside(tmp_path: Path) -> None:
    job = tmp_path / "job"
    job.mkdir()
    (tmp_path / ".tmpevil").mkdir()
    log = job / "a.log"
    log.write_bytes(b"Output to tempdir: /output/../.tmpevil\nOutput to tempdir: /output/.tmpgone\n")

    assert announced_temp_dir(log, job) is None
    (job / ".tmpnew").mkdir()
    assert announced_temp_dir(log, job) == job / ".tmpnew"


def test_what_says_why_a_run_failed_is_not_what_pages_say(tmp_path: Path) -> None:
    quiet = {"logLevel": "info", "context": "pageStatus", "details": {"title": "Permission denied"}}
    loud = {"logLevel": "error", "message": "disk says no"}
    log = tmp_path / "archive_x.combined.log"
    log.write_text(f"{json.dumps(quiet)}\n{json.dumps(loud)}\nplain\n")

    text = failure_text(newest_log(tmp_path))

    assert "Permission" not in text
    assert "disk says no" in text
    assert "plain" in text
