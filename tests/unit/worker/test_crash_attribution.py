"""Whose fault a failed run was: a table of what may be raised, and the place that a run writes to."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from holdfast.db.raw import DatabaseDamaged
from holdfast.errors import HoldfastError, Invalid, NoSpace, Unavailable
from holdfast.jobs.endings import FailureCause, RunResult
from holdfast.processes.disk import MountIdentity, storage_trouble
from holdfast.worker.runner import crashed, failure_of, tail
from holdfast.worker.zimit import failure_around
from holdfast.zimit.errors import OutputBusy, StoreMissing

OUT = Path("/archive/ex")


@pytest.mark.parametrize(
    ("exc", "failure"),
    [
        (OSError(errno.ENOTCONN, "transport endpoint"), FailureCause.INFRA),
        (OSError(errno.EIO, "input/output error"), FailureCause.INFRA),
        (OSError(errno.ETIMEDOUT, "timed out"), FailureCause.INFRA),
        (OSError(errno.ENETUNREACH, "unreachable"), FailureCause.INFRA),
        (OSError(errno.ECONNREFUSED, "refused"), FailureCause.INFRA),
        (OSError(errno.EHOSTUNREACH, "no route"), FailureCause.INFRA),
        (OSError(errno.ENOSPC, "full"), FailureCause.INFRA),
        (OSError(errno.ESTALE, "stale"), FailureCause.INFRA),
        (OSError(errno.EROFS, "read-only"), FailureCause.INFRA),
        (PermissionError(errno.EACCES, "denied", "/archive/ex/a.warc.gz"), FailureCause.INFRA),
        (PermissionError(errno.EPERM, "denied", "/archive/ex/a.warc.gz"), FailureCause.INFRA),
        (PermissionError(errno.EACCES, "denied", "/etc/shadow"), FailureCause.FAILED),
        (FileNotFoundError(errno.ENOENT, "gone", "/archive/ex/crawl.log"), FailureCause.INFRA),
        (FileNotFoundError(errno.ENOENT, "gone", "/elsewhere"), FailureCause.FAILED),
        (Unavailable("the database does not answer"), FailureCause.INFRA),
        (NoSpace("full"), FailureCause.INFRA),
        (DatabaseDamaged("a page of it is noise"), FailureCause.INFRA),
        (Invalid("seeds: none"), FailureCause.CONFIG),
        (HoldfastError("something"), FailureCause.FAILED),
        (ZeroDivisionError(), FailureCause.FAILED),
    ],
)
def test_whose_fault_it_was(exc: Exception, failure: FailureCause) -> None:
    assert failure_of(exc, OUT) is failure


def test_the_cause_of_an_error_counts() -> None:
    error = RuntimeError("could not write")
    error.__cause__ = OSError(errno.EIO, "input/output error")

    assert failure_of(error, OUT) is FailureCause.INFRA


@pytest.mark.parametrize(
    ("exc", "failure"),
    [
        (PermissionError(errno.EACCES, "denied", "/usr/bin/docker"), FailureCause.CONFIG),
        (HoldfastError("something"), FailureCause.CONFIG),
        (OSError(errno.ENOTCONN, "transport endpoint"), FailureCause.INFRA),
        (StoreMissing(OUT, "gone"), FailureCause.INFRA),
        (OutputBusy("another archive-tool works there"), FailureCause.INFRA),
    ],
)
def test_failure_around_a_tool_is_the_machine_or_needs_a_person(exc: Exception, failure: FailureCause) -> None:
    assert failure_around(exc, OUT) is failure


def test_a_crash_is_told_with_its_stack() -> None:
    try:
        raise KeyError("what nobody foresaw")
    except KeyError as exc:
        ending = crashed(exc, OUT)

    assert ending.result is RunResult.FAILED
    assert ending.failure is FailureCause.FAILED
    assert "KeyError" in (ending.error or "")
    assert "test_a_crash_is_told" in (ending.stack or "")


def test_a_place_that_takes_files_is_no_trouble_and_leaves_no_trace(tmp_path: Path) -> None:
    assert storage_trouble(tmp_path) is None
    assert list(tmp_path.iterdir()) == []
    assert "cannot be written" in (storage_trouble(tmp_path / "absent") or "")


def test_another_folder_of_the_same_name_is_not_the_same_place(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    mount = MountIdentity(folder)
    assert mount.is_same

    folder.rename(tmp_path / "away")
    assert not mount.is_same
    folder.mkdir()
    assert not mount.is_same
    folder.rmdir()
    (tmp_path / "away").rename(folder)

    assert mount.is_same


def test_the_tail_of_a_log_is_its_end(tmp_path: Path) -> None:
    log = tmp_path / "crawl.log"
    assert tail(log) == ""
    log.write_bytes(b"x" * 100_000 + b"\nthe end\n")

    assert tail(log).endswith("the end\n")
    assert len(tail(log)) < 20_000
