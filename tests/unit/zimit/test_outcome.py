"""What the end of a run means: every phrase, every exit."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from holdfast.config import Settings
from holdfast.jobs.endings import FailureCause
from holdfast.worker.zimit import environment_of
from holdfast.zimit.docker import crawl_environment, docker_environment
from holdfast.zimit.errors import StoreMissing
from holdfast.zimit.outcome import (
    FINALIZATION_FAILED,
    STOPPED,
    classify_exit,
    is_complete,
    is_warc_complete,
)

INFRA, CONFIG, FAILED = FailureCause.INFRA, FailureCause.CONFIG, FailureCause.FAILED


def _log(folder: Path, *lines: str) -> None:
    (folder / "archive_x.combined.log").write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize(
    ("line", "status"),
    [
        ("OSError: [Errno 107] Transport endpoint is not connected", INFRA),
        ("transport endpoint not connected", INFRA),
        ("/output is not writable", INFRA),
        ("Permission denied", INFRA),
        ("[Errno 13] no", INFRA),
        ("[Errno 1] Operation not permitted", INFRA),
        ("[Errno 17] File exists", FAILED),
        ("zimit: error: unrecognized arguments: --x", CONFIG),
        ("error: unknown option '--x'", CONFIG),
        ("docker: Cannot connect to the Docker daemon at unix:///x", INFRA),
        ("docker: Unable to find image 'x' locally", CONFIG),
        ('{"logLevel": "error", "context": "jsError", "message": "Permission denied"}', FAILED),
        ('{"logLevel": "error", "context": "storage", "message": "Permission denied"}', INFRA),
        ("something else", FAILED),
    ],
)
def test_the_end_of_the_log_tells_the_class(tmp_path: Path, line: str, status: FailureCause) -> None:
    _log(tmp_path, line)

    assert classify_exit(1, tmp_path) == (status, None)
    assert is_complete(classify_exit(0, tmp_path))


def test_only_the_end_of_the_log_counts(tmp_path: Path) -> None:
    _log(tmp_path, "Permission denied", "x" * 70_000)

    assert classify_exit(1, tmp_path) == (FAILED, None)


def test_a_directory_that_is_none_is_a_configuration_error(tmp_path: Path) -> None:
    assert classify_exit(1, tmp_path / "none") == (CONFIG, None)
    assert classify_exit(1, tmp_path / "none", str(StoreMissing(tmp_path, "errno 107"))) == (INFRA, None)


def test_what_the_tool_refused_is_never_retried(tmp_path: Path) -> None:
    said = "usage: archive-tool\narchive-tool: error: seeds: 'permission denied' is no address"

    assert classify_exit(2, tmp_path, said) == (CONFIG, None)


def test_a_run_that_was_stopped_spends_nothing(tmp_path: Path) -> None:
    assert classify_exit(1, tmp_path, "archive-tool: stopped\n") == (FAILED, STOPPED)


def _crawled(folder: Path, details: dict[str, object], *, warc: bool = True) -> None:
    entry = {"context": "crawlStatus", "message": "Crawl statistics", "details": details}
    _log(folder, json.dumps(entry), "the build failed")
    if warc:
        (folder / ".tmp1").mkdir()
        (folder / ".tmp1" / "a.warc.gz").write_bytes(b"x")


@pytest.mark.parametrize(
    ("details", "complete"),
    [
        ({"crawled": 8, "total": 10, "pending": 0, "failed": 2}, True),
        ({"crawled": 8, "total": 10, "pending": 0, "failed": 0, "limit": {"max": 8, "hit": True}}, True),
        ({"crawled": 8, "total": 10, "pending": 0, "failed": 0}, False),
        ({"crawled": 8, "total": 8, "pending": 1, "failed": 0}, False),
        ({"crawled": 8, "total": 8}, False),
        ({"crawled": 0, "total": 2, "pending": 0, "failed": 2}, False),
    ],
)
def test_a_crawl_that_came_to_its_end_is_accepted_although_the_run_failed(
    tmp_path: Path, details: dict[str, object], complete: bool
) -> None:
    _crawled(tmp_path, details)

    assert is_warc_complete(tmp_path) is complete
    assert (classify_exit(1, tmp_path)[1] == FINALIZATION_FAILED) is complete
    assert is_complete(classify_exit(1, tmp_path)) is complete


def test_without_warcs_nothing_is_complete(tmp_path: Path) -> None:
    _crawled(tmp_path, {"crawled": 8, "total": 8, "pending": 0, "failed": 0}, warc=False)

    assert not is_warc_complete(tmp_path)


def test_children_see_no_secret(tmp_path: Path) -> None:
    outer = {"PATH": "/bin", "HOLDFAST_DATABASE_URL": "s", "HOLDFAST_ADMIN_TOKEN": "s", "AWS_SECRET_ACCESS_KEY": "s",
             "HOLDFAST_CONTACT": "a@b.test", "DOCKER_HOST": "unix://x", "HOLDFAST_REDIS_URL": "s",
             "HOLDFAST_ZIMIT_IMAGE": "x"}  # fmt: skip

    assert docker_environment(outer) == {"PATH": "/bin", "DOCKER_HOST": "unix://x"}
    assert crawl_environment(outer) == {"PATH": "/bin", "HOLDFAST_CONTACT": "a@b.test"}
    assert sorted(environment_of(Settings(home=tmp_path), outer)) == ["DOCKER_HOST", "HOLDFAST_CONTACT", "PATH"]
