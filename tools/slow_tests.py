"""Write tests/slow.txt: the tests that `make quick` leaves out, by what each of them took.

    python -m pytest tests/house tests/unit tests/contract -m "not postgres and not soak" --junitxml FILE
    python tools/slow_tests.py FILE [FILE ...]

A test with many cases counts by their mean: what they share is made once, and would count for the first alone. Names
that are there and were not run stay, so one run of `make quick`, which leaves them out, adds to the list. The rules of
the house are never left out: they are what a change breaks unseen.
"""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from xml.etree import ElementTree

_ROOT = Path(__file__).resolve().parents[1]
_LIST = _ROOT / "tests" / "slow.txt"
SLOW_S = 0.13
"""Seconds from which on a test is left out: what keeps `make quick` within two minutes on two quiet cores."""


def main(reports: Iterable[str]) -> None:
    """Judge the tests of the reports anew, and keep the rest of the list."""
    took: dict[str, list[float]] = defaultdict(list)
    for report in reports:
        # A report that pytest has just written here.
        for case in ElementTree.parse(report).iter("testcase"):  # noqa: S314
            path = _path_of(case.attrib["classname"])
            took[f"{path}::{case.attrib['name'].partition('[')[0]}"].append(float(case.attrib["time"]))
    named = {line for line in _LIST.read_text().splitlines() if line} if _LIST.exists() else set()
    slow = {name for name, seconds in took.items() if sum(seconds) / len(seconds) >= SLOW_S}
    slow = {name for name in slow if name in named or not name.startswith("house/")}
    found = sorted(slow | (named - took.keys()))
    _LIST.write_text("".join(f"{name}\n" for name in found))
    print(f"{len(found)} tests are slow: {len(set(found) - named)} are new, {len(named - set(found))} no longer")


def _path_of(dotted: str) -> str:
    """Return the file of a test below `tests`; what follows it may be a class."""
    parts = dotted.split(".")
    while not (_ROOT / "/".join(parts)).with_suffix(".py").exists():
        parts.pop()
    return "/".join(parts[1:]) + ".py"


if __name__ == "__main__":
    main(sys.argv[1:])
