"""The journeys that docs/architecture.md tells, and whether the files are joined as it says."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from tests.house.floors import imported
from tests.house.source import PACKAGE, Module

_STEP = re.compile(r"^\d+\. `([\w/]+\.py)` (→|⇒|⇢) `([\w/]+\.py)`(?: \(rows of `(\w+)`\))?: \S", re.M)
_FILE = re.compile(r"`([a-z_]+(?:/[\w]+)+\.py)`")


class Step(NamedTuple):
    """One hand-over: from a file to a file, by a call, by rows of a table, or by starting a process."""

    giver: str
    how: str
    taker: str
    table: str


def journeys(page: str) -> dict[str, list[Step]]:
    """Return the steps of each journey of a page, by its heading."""
    parts = re.split(r"^### (The journey of .+)$", page, flags=re.M)
    return {
        name: [Step(*found) for found in _STEP.findall(text.split("\n## ")[0])]
        for name, text in zip(parts[1::2], parts[2::2], strict=True)
    }


def wrong_steps(steps: Iterable[Step], modules: Iterable[Module], tables: Iterable[str]) -> list[str]:
    """Return what is untrue of a journey: a file that is not there, or two files that are not joined as it says."""
    files = {module.path.removeprefix(f"src/{PACKAGE}/"): module for module in modules}
    found = []
    for step in steps:
        missing = [path for path in (step.giver, step.taker) if path not in files]
        if missing:
            found += [f"there is no {path}" for path in missing]
        elif step.how == "→" and not _imports(files[step.giver], files[step.taker]):
            found.append(f"{step.giver} does not import {step.taker}")
        elif step.how == "⇢" and f"{PACKAGE}.{files[step.taker].name}" not in files[step.giver].text:
            found.append(f"{step.giver} does not start {step.taker}")
        elif step.how == "⇒" and step.table not in tables:
            found.append(f"{step.giver} and {step.taker} share no table called {step.table!r}")
    return found


def _imports(giver: Module, taker: Module) -> bool:
    return any(name == taker.name or name.rpartition(".")[0] == taker.name for _, name in imported(giver))


def named_files(page: str) -> set[str]:
    """Return every file of the package that a page names."""
    return set(_FILE.findall(page))
