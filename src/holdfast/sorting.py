"""Sorting more lines than memory holds: sorted runs in a folder, merged as they are read."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

_RUN_LINES = 100_000
"""Lines held at a time: 30 MB of index lines."""


def sorted_lines(lines: Iterable[bytes], folder: Path, *, run_lines: int = _RUN_LINES) -> Iterator[bytes]:
    """Yield lines, each ending in a line feed, in the order of their bytes; OSError if the folder has no room."""
    with TemporaryDirectory(dir=folder, prefix=".sorting-") as scratch:
        runs: list[Path] = []
        incoming = iter(lines)
        held = sorted(islice(incoming, run_lines))
        # A run is written before the next is read: never more than one is in memory, and the last stays there.
        for first in incoming:
            runs.append(_written(held, Path(scratch) / str(len(runs))))
            held.clear()
            held.append(first)
            held.extend(islice(incoming, run_lines - 1))
            held.sort()
        yield from heapq.merge(*(_read(run) for run in runs), held)


def _written(lines: list[bytes], path: Path) -> Path:
    with path.open("wb") as file:
        file.writelines(lines)
    return path


def _read(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        yield from file
