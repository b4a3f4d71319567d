"""Sorting more lines than memory holds: sorted runs in a folder, merged as they are read."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from itertools import count, islice
from pathlib import Path
from tempfile import TemporaryDirectory

from holdfast import cancellation

_RUN_LINES = 100_000
"""Lines held at a time: 30 MB of index lines."""
_OPEN_RUNS = 64
"""Runs that are merged at once. Each is an open file, and all of a process together may have about a thousand."""

_CHECKED_LINES = 10_000
"""Lines that are merged between two questions whether the work is still wanted."""


def sorted_lines(
    lines: Iterable[bytes], folder: Path, *, run_lines: int = _RUN_LINES, open_runs: int = _OPEN_RUNS
) -> Iterator[bytes]:
    """Yield lines, each ending in a line feed, in the order of their bytes; OSError if the folder has no room."""
    with TemporaryDirectory(dir=folder, prefix=".sorting-") as scratch:
        names = (Path(scratch) / str(number) for number in count())
        runs: list[list[Path]] = [[]]
        incoming = iter(lines)
        held = sorted(islice(incoming, run_lines))
        # A run is written before the next is read: never more than one is in memory, and the last stays there.
        for first in incoming:
            _put(runs, 0, _written(held, next(names)), names, open_runs)
            held.clear()
            held.append(first)
            held.extend(islice(incoming, run_lines - 1))
            held.sort()
        left = [run for level in runs for run in level]
        while len(left) > open_runs:
            left = [*left[open_runs:], _united(left[:open_runs], next(names))]
        yield from heapq.merge(*(_read(run) for run in left), held)


def _put(runs: list[list[Path]], level: int, run: Path, names: Iterator[Path], open_runs: int) -> None:
    """Add a run to a level; a full one becomes one run of the next, so that a line is written few times over."""
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
