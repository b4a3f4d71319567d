"""Whose fault it was that a run did not work: the machine's, the configuration's or the crawl's own."""

from __future__ import annotations

import errno
import os
import traceback
from pathlib import Path

from holdfast.archive_tool.outcome import is_storage_errno
from holdfast.db.sqlite_file import DatabaseDamaged
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

    Storage and network trouble of this machine (errno), an output directory that is gone, a database that is away or
    damaged: the machine's. What cannot be used as it is: the configuration's. Anything else counts as the crawl's.
    """
    seen: BaseException | None = exc
    while seen is not None:
        if isinstance(seen, OSError) and (is_storage_errno(seen.errno) or _is_about_storage(seen, output_dir)):
            return Failure.INFRA
        if isinstance(seen, Unavailable | DatabaseDamaged):
            return Failure.INFRA
        if isinstance(seen, Invalid):
            return Failure.CONFIG
        seen = seen.__cause__
    return Failure.FAILED


def _is_about_storage(exc: OSError, output_dir: Path) -> bool:
    """Return whether we may not write where the run writes, or whether that place is gone altogether."""
    if exc.filename is None or not Path(os.fsdecode(exc.filename)).is_relative_to(output_dir):
        return False
    gone = exc.errno in (errno.ENOENT, errno.ENOTDIR) and not output_dir.is_dir()
    return gone or exc.errno in (errno.EACCES, errno.EPERM)


class Footing:
    """The place that a run writes to, known by device and inode: a mount that vanished is never written through."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._known = folder, identity_of(folder)

    @property
    def is_firm(self) -> bool:
        """Whether the folder is still the one that it was."""
        return self._known is not None and identity_of(self._folder) == self._known


def identity_of(path: Path) -> tuple[int, int] | None:
    """Return the device and the inode of a file or folder, None if it cannot be seen."""
    try:
        seen = path.stat()
    except OSError:
        return None
    return seen.st_dev, seen.st_ino


def storage_trouble(folder: Path) -> str | None:
    """Return what is wrong with the place that a run writes to, None if it takes a file."""
    probe = folder / _PROBE
    try:
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
