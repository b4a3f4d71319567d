"""Whose fault it was that a run did not work: the machine's, the configuration's or the crawl's own."""

from __future__ import annotations

import errno
import os
import traceback
from pathlib import Path

from holdfast.archive_tool.outcome import is_storage_errno
from holdfast.errors import Invalid, Unavailable
from holdfast.jobs.endings import Ending, Result
from holdfast.jobs.retries import Failure

_PROBE = ".holdfast-probe"
_TAIL_BYTES = 16_384


def crashed(exc: BaseException, output_dir: Path) -> Ending:
    """Return the ending of a run that raised this, with the stack and whose fault it was."""
    failure = failure_of(exc, output_dir)
    stack = "".join(traceback.format_exception(exc))
    error = f"{type(exc).__name__}: {exc}" if failure is Failure.FAILED else str(exc) or type(exc).__name__
    return Ending(result=Result.FAILED, failure=failure, reason=failure.value, error=error, stack=stack)


def failure_of(exc: BaseException, output_dir: Path) -> Failure:
    """Return whose fault an exception is.

    Storage and network trouble of this machine (errno), a database or a disk that is away: the machine's. What cannot
    be used as it is: the configuration's. Anything else counts as the crawl's.
    """
    seen: BaseException | None = exc
    while seen is not None:
        if isinstance(seen, OSError) and (is_storage_errno(seen.errno) or _is_denied(seen, output_dir)):
            return Failure.INFRA
        if isinstance(seen, Unavailable):
            return Failure.INFRA
        if isinstance(seen, Invalid):
            return Failure.CONFIG
        seen = seen.__cause__
    return Failure.FAILED


def _is_denied(exc: OSError, output_dir: Path) -> bool:
    if exc.errno not in (errno.EACCES, errno.EPERM) or not isinstance(exc.filename, str):
        return False
    return Path(exc.filename).is_relative_to(output_dir)


def storage_trouble(folder: Path, *, device: int | None = None) -> str | None:
    """Return what is wrong with the place that a run writes to, None if it takes a file and is where it was.

    With the device that it lay on before, another one is trouble: the mount is gone, and nothing may be written below.
    """
    probe = folder / _PROBE
    try:
        if device is not None and folder.stat().st_dev != device:
            return f"{folder} lies on another device than before: is its storage mounted?"
        fd = os.open(probe, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.write(fd, b"holdfast")
            os.fsync(fd)
        finally:
            os.close(fd)
        probe.unlink()
    except OSError as exc:
        return f"{folder} cannot be written: {exc.strerror or exc}"
    return None


def tail(path: Path) -> str:
    """Return the end of a log, for the stack of a run whose processes died; empty if it cannot be read."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - _TAIL_BYTES))
            return file.read().decode(errors="replace")
    except OSError:
        return ""
