"""External sort: sorted runs in a folder, merged as they are read."""

from __future__ import annotations

import fcntl
import heapq
import os
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import count, islice
from pathlib import Path
from tempfile import TemporaryDirectory

from holdfast import cancellation

# Lines held at a time: 30 MB of index lines.
_RUN_LINES = 100_000
# Runs that are merged at once. Each is an open file, and all of a process together may have about a thousand.
_OPEN_RUNS = 64

_PREFIX = ".sorting-"
# Lines that are merged between two questions whether the work is still wanted.
_CHECKED_LINES = 10_000


def sorted_lines(
    lines: Iterable[bytes], folder: Path, *, run_lines: int = _RUN_LINES, open_runs: int = _OPEN_RUNS
) -> Iterator[bytes]:
    """Yield lines, each ending in a line feed, in byte order; raise OSError if the folder has no space."""
    with _scratch_in(folder) as scratch:
        names = (scratch / str(number) for number in count())
        runs: list[list[Path]] = [[]]
        incoming = iter(lines)
        held = sorted(islice(incoming, run_lines))
        # Each sorted run is written before the next is read: only one is in memory, and the last is never written.
        for first in incoming:
            _put(runs, 0, _written(held, next(names)), names, open_runs)
            held.clear()
            held.append(first)
            held.extend(islice(incoming, run_lines - 1))
            held.sort()
        left = [run for level in runs for run in level]
        # Only at the end: levels that are not full are merged together, so that no more files are open than may be.
        while len(left) > open_runs:
            left = [*left[open_runs:], _united(left[:open_runs], next(names))]
        yield from heapq.merge(*(_read(run) for run in left), held)


@contextmanager
def _scratch_in(folder: Path) -> Iterator[Path]:
    """Create a folder for runs, deleted at the end; also delete those of killed processes."""
    with _locked(folder):
        # The owner of a folder holds its lock. Between making one and locking it another process would take it for an
        # orphan: the lock of the folder around it keeps that moment ours.
        _remove_orphans(folder)
        scratch = TemporaryDirectory(dir=folder, prefix=_PREFIX)
        owned = _opened(Path(scratch.name))
        fcntl.flock(owned, fcntl.LOCK_EX)
    try:
        with scratch:
            yield Path(scratch.name)
    finally:
        os.close(owned)


@contextmanager
def _locked(folder: Path, *, wait: bool = True) -> Iterator[None]:
    fd = _opened(folder)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(fd)


def _remove_orphans(folder: Path) -> None:
    for path in folder.glob(f"{_PREFIX}*"):
        with suppress(FileNotFoundError, BlockingIOError), _locked(path, wait=False):
            shutil.rmtree(path, ignore_errors=True)


def _opened(folder: Path) -> int:
    return os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)


def _put(runs: list[list[Path]], level: int, run: Path, names: Iterator[Path], open_runs: int) -> None:
    """Add a run to a level; merge a full level into one run of the next, so that each line is written few times."""
    if level == len(runs):
        runs.append([])
    runs[level].append(run)
    if len(runs[level]) == open_runs:
        full, runs[level] = runs[level], []
        _put(runs, level + 1, _united(full, next(names)), names, open_runs)


def _united(runs: list[Path], path: Path) -> Path:
    with path.open("wb") as file:
        for number, line in enumerate(heapq.merge(*(_read(run) for run in runs))):
            if number % _CHECKED_LINES == 0:
                cancellation.check()
            file.write(line)
    for run in runs:
        run.unlink()
    return path


def _written(lines: Iterable[bytes], path: Path) -> Path:
    with path.open("wb") as file:
        file.writelines(lines)
    return path


def _read(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        yield from file
