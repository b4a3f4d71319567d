"""Tests that `make quick` leaves out, `make test` does not: those of tests/slow.txt.

Measured, not felt: tools/slow_tests.py writes the list from a run's report. A name that is no test any more fails
tests/house.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

SLOW: dict[str, set[str]] = defaultdict(set)
"""Names by file below `tests`."""

for _line in Path(__file__).with_suffix(".txt").read_text().splitlines():
    _path, _, _name = _line.partition("::")
    SLOW[_path].add(_name)
