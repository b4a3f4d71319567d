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
        held: list[bytes] = []
        incoming = iter(lines)
        while part := list(islice(incoming, run_lines)):
            if held:
                runs.append(_written(held, Path(scratch) / str(len(runs))))
            part.sort()
            held = part
        yield from heapq.merge(*(_read(run) for run in runs), held)


def _written(lines: list[bytes], path: Path) -> Path:
    with path.open("wb") as file:
        file.writelines(lines)
    return path


def _read(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        yield from file
