"""Whose fault it was that a run did not work: the machine's, the configuration's or the crawl's own."""

from __future__ import annotations

import errno
import os
import traceback
from pathlib import Path

from holdfast.archive_tool.outcome import is_storage_errno
from holdfast.db.raw import DatabaseDamaged
from holdfast.errors import Invalid, Unavailable
from holdfast.jobs.endings import FailureCause, RunEnding, RunResult

_TAIL_BYTES = 16_384


def crashed(exc: BaseException, output_dir: Path) -> RunEnding:
    """Return the ending of a run that raised this, with the stack and whose fault it was."""
    failure = failure_of(exc, output_dir)
    stack = "".join(traceback.format_exception(exc))
    error = f"{type(exc).__name__}: {exc}" if failure is FailureCause.FAILED else str(exc) or type(exc).__name__
    return RunEnding(result=RunResult.FAILED, failure=failure, reason=failure.value, error=error, stack=stack)


def failure_of(exc: BaseException, output_dir: Path) -> FailureCause:
    """Return whose fault an exception is.

    Storage and network trouble of this machine (errno), an output directory that is gone, a database that is away or
    damaged: the machine's. What cannot be used as it is: the configuration's. Anything else counts as the crawl's.
    """
    seen: BaseException | None = exc
    while seen is not None:
        if isinstance(seen, OSError) and (is_storage_errno(seen.errno) or _is_about_storage(seen, output_dir)):
            return FailureCause.INFRA
        if isinstance(seen, Unavailable | DatabaseDamaged):
            return FailureCause.INFRA
        if isinstance(seen, Invalid):
            return FailureCause.CONFIG
        seen = seen.__cause__
    return FailureCause.FAILED


def _is_about_storage(exc: OSError, output_dir: Path) -> bool:
    """Return whether we may not write where the run writes, or whether that place is gone altogether."""
    if exc.filename is None or not Path(os.fsdecode(exc.filename)).is_relative_to(output_dir):
        return False
    gone = exc.errno in (errno.ENOENT, errno.ENOTDIR) and not output_dir.is_dir()
    return gone or exc.errno in (errno.EACCES, errno.EPERM)


def tail(path: Path) -> str:
    """Return the end of a log, for the stack of a run whose processes died; empty if it cannot be read."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - _TAIL_BYTES))
            return file.read().decode(errors="replace")
    except OSError:
        return ""
