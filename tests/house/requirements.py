"""The rows of docs/requirements.md: what is asked, the files where it lives, the tests that prove it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from tests.house.promises import table_rows

_FILE = re.compile(r"`((?:[a-z_]+/)*\w+\.py)`")
_TEST_ID = re.compile(r"`(tests/[\w/]+\.py::\w+)`")
_COMMAND = re.compile(r"`(holdfast [a-z][a-z-]*)(?: ([a-z][a-z-]*))?[^`]*`")
_ROUTE = re.compile(r"`((?:GET|POST|PUT|PATCH|DELETE) /[^`]*)`")
_SETTING = re.compile(r"\bHOLDFAST_[A-Z_]+\b")
_PATH = re.compile(r"\b(?:docs|deploy|tools)/[\w./-]*\w")
_NUMBER = re.compile(r"[A-Z]{2}-\d{3}")
_NOT_BUILT = re.compile(r"not built: (?!`tests)\S")
_DIFFERS = re.compile(r"differs: (?!`tests)\S")


class RequirementRow(NamedTuple):
    """One row: its number (or its subject, where it has none), what is asked, where it lives, the proof."""

    number: str
    asked: str
    place: str
    proof: str

    @property
    def is_built(self) -> bool:
        """Whether the row says that there is something to prove."""
        return _NOT_BUILT.match(self.proof) is None


def named_tests(text: str) -> set[str]:
    return set(_TEST_ID.findall(text))


def rows(page: str) -> list[RequirementRow]:
    """Return every row of every table; ValueError names one that has not four cells."""
    found = [row for part in page.split("\n## ")[1:] for row in table_rows(part)]
    for row in found:
        if len(row) != len(RequirementRow._fields):
            raise ValueError(f"not four cells: {row[0]}")
    return [RequirementRow(*(cell.strip(" |") for cell in row)) for row in found]


def wrong_rows(found: Iterable[RequirementRow], files: Iterable[str], tests: Iterable[str]) -> list[str]:
    """Return what is wrong: a row that stands twice, a file or test that is not there, a claim without either."""
    found, files, tests = list(found), set(files), set(tests)
    times = Counter(row.number for row in found)
    wrong = [f"stands twice: {number}" for number, count in times.items() if count > 1]
    return wrong + [f"{row.number}: {what}" for row in found for what in _wrong(row, files, tests)]


def _wrong(row: RequirementRow, files: set[str], tests: set[str]) -> Iterator[str]:
    named, proven = _FILE.findall(row.place), _TEST_ID.findall(row.proof)
    yield from (f"there is no file {path}" for path in named if path not in files)
    yield from (f"there is no {test}" for test in proven if test not in tests)
    if row.is_built and not named:
        yield "no file where it lives"
    if row.is_built and not proven:
        yield "no test that proves it"
    if not row.proof.startswith("`") and row.is_built and _DIFFERS.match(row.proof) is None:
        yield "the proof is tests, `differs: …` with tests, or `not built: …` with the reason"


def unknown_names(page: str, commands: Iterable[str], routes: Iterable[str], settings: Iterable[str]) -> list[str]:
    """Return the commands, routes and settings that a page names and that do not exist."""
    commands, settings, routes = set(commands), sorted(settings), {_shape(route) for route in routes}
    groups = {command.rpartition(" ")[0] for command in commands}
    wrong = [
        f"{name} {below}".strip()
        for name, below in _COMMAND.findall(page)
        if not {name, f"{name} {below}"} & commands and (below or name not in groups)
    ]
    wrong += [route for route in _ROUTE.findall(page) if _shape(route) not in routes]
    # `HOLDFAST_FEEDS_*` names a group.
    known = {*settings, *(name[: end.end()] for name in settings for end in re.finditer("_", name))}
    return wrong + [name for name in _SETTING.findall(page) if name not in known]


def named_paths(page: str) -> set[str]:
    """Return the files and folders outside `src` and `tests` that a page names."""
    return set(_PATH.findall(page))


def _shape(route: str) -> str:
    """Return a route without its query and the names of its parameters, in which two spellings may differ."""
    return re.sub(r"\{[^}]*\}", "{}", route.partition("?")[0])


def numbers(found: Iterable[RequirementRow]) -> set[str]:
    """Return the numbers of those rows that have one."""
    return {row.number for row in found if _NUMBER.fullmatch(row.number)}


def wanted_numbers(ranges: Mapping[str, str]) -> set[str]:
    """Return the numbers that ranges stand for: `{"AB": "1-3 7"}` is four numbers."""
    spans = [(kind, *one.partition("-")[::2]) for kind, told in ranges.items() for one in told.split()]
    return {f"{kind}-{n:03d}" for kind, first, last in spans for n in range(int(first), int(last or first) + 1)}
