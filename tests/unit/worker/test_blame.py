"""Whose fault a failed run was: a table of what may be raised, and the place that a run writes to."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from holdfast.db.sqlite_file import DatabaseDamaged
from holdfast.errors import HoldfastError, Invalid, NoSpace, Unavailable
from holdfast.jobs.endings import Result
from holdfast.jobs.retries import Failure
from holdfast.worker.blame import Footing, crashed, failure_of, storage_trouble, tail

OUT = Path("/archive/ex")


@pytest.mark.parametrize(
    ("exc", "failure"),
    [
        (OSError(errno.ENOTCONN, "transport endpoint"), Failure.INFRA),
        (OSError(errno.EIO, "input/output error"), Failure.INFRA),
        (OSError(errno.ETIMEDOUT, "timed out"), Failure.INFRA),
        (OSError(errno.ENETUNREACH, "unreachable"), Failure.INFRA),
        (OSError(errno.ECONNREFUSED, "refused"), Failure.INFRA),
        (OSError(errno.EHOSTUNREACH, "no route"), Failure.INFRA),
        (OSError(errno.ENOSPC, "full"), Failure.INFRA),
        (OSError(errno.ESTALE, "stale"), Failure.INFRA),
        (OSError(errno.EROFS, "read-only"), Failure.INFRA),
        (PermissionError(errno.EACCES, "denied", "/archive/ex/a.warc.gz"), Failure.INFRA),
        (PermissionError(errno.EACCES, "denied", "/etc/shadow"), Failure.FAILED),
        (FileNotFoundError(errno.ENOENT, "gone", "/archive/ex/crawl.log"), Failure.INFRA),
        (FileNotFoundError(errno.ENOENT, "gone", "/elsewhere"), Failure.FAILED),
        (Unavailable("the database does not answer"), Failure.INFRA),
        (NoSpace("full"), Failure.INFRA),
        (DatabaseDamaged("a page of it is noise"), Failure.INFRA),
        (Invalid("seeds: none"), Failure.CONFIG),
        (HoldfastError("something"), Failure.FAILED),
        (ZeroDivisionError(), Failure.FAILED),
    ],
)
def test_whose_fault_it_was(exc: Exception, failure: Failure) -> None:
    assert failure_of(exc, OUT) is failure


def test_the_cause_of_an_error_counts() -> None:
    error = RuntimeError("could not write")
    error.__cause__ = OSError(errno.EIO, "input/output error")

    assert failure_of(error, OUT) is Failure.INFRA


def test_a_crash_is_told_with_its_stack() -> None:
    try:
        raise KeyError("what nobody foresaw")
    except KeyError as exc:
        ending = crashed(exc, OUT)

    assert ending.result is Result.FAILED
    assert ending.failure is Failure.FAILED
    assert "KeyError" in (ending.error or "")
    assert "test_a_crash_is_told" in (ending.stack or "")


def test_a_place_that_takes_files_is_no_trouble_and_leaves_no_trace(tmp_path: Path) -> None:
    assert storage_trouble(tmp_path) is None
    assert list(tmp_path.iterdir()) == []
    assert "cannot be written" in (storage_trouble(tmp_path / "absent") or "")


def test_another_folder_of_the_same_name_is_not_the_same_place(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    footing = Footing(folder)
    assert footing.is_firm

    folder.rename(tmp_path / "away")
    assert not footing.is_firm
    folder.mkdir()
    assert not footing.is_firm
    folder.rmdir()
    (tmp_path / "away").rename(folder)

    assert footing.is_firm


def test_the_tail_of_a_log_is_its_end(tmp_path: Path) -> None:
    log = tmp_path / "crawl.log"
    assert tail(log) == ""
    log.write_bytes(b"x" * 100_000 + b"\nthe end\n")

    assert tail(log).endswith("the end\n")
    assert len(tail(log)) < 20_000
