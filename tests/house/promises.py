"""What README and docs promise, and the tests that docs/promises.md and docs/faults.md name for each promise."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable, Mapping

from tests.house.source import Module

_SENTENCE_END = re.compile(r"(?<=\.)\s+(?=[A-Z`])")
_BOLD_START = re.compile(r"^\*\*[^*]+\*\* ")
_LINK_ONLY = re.compile(r"^(?:See|Figures?:) ?\[[^\]]*\]\([^)]*\)\.?$")
_TEST_ID = re.compile(r"`(tests/[\w/]+\.py::\w+)`")


def section(page: str, heading: str) -> str:
    """Return the text below a heading of a Markdown page, up to the next heading."""
    _, found, rest = page.partition(f"## {heading}\n")
    return re.split(r"^#", rest, maxsplit=1, flags=re.M)[0] if found else ""


def bullet_sentences(text: str) -> list[str]:
    """Return every sentence of a list, without bold first words; one that only links elsewhere is none."""
    bullets = [_BOLD_START.sub("", " ".join(part.split())) for part in re.split(r"^- ", text, flags=re.M)[1:]]
    sentences = [sentence for bullet in bullets for sentence in _SENTENCE_END.split(bullet)]
    return [one for one in sentences if not _LINK_ONLY.match(one)]


def table_rows(text: str) -> list[tuple[str, ...]]:
    """Return the cells of every row of a table, its head left out."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [tuple(cell.strip() for cell in line.strip("|").split(" | ")) for line in lines[2:]]


def kept_by(page: str) -> dict[str, list[str]]:
    """Return the tests that the page of promises names for each promise."""
    rows = [row for part in page.split("\n## ")[1:] for row in table_rows(part)]
    return {row[0].strip(): _TEST_ID.findall(row[-1]) for row in rows}


def test_ids(modules: Iterable[Module]) -> set[str]:
    """Return every test that `make test` runs: what is only soaked or always skipped keeps no promise."""
    found: set[str] = set()
    for module in modules:
        of_all = [node.value for node in module.tree.body if isinstance(node, ast.Assign) and _marks_all(node)]
        for node in module.nodes:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
                marks = " ".join(ast.unparse(one) for one in [*of_all, *node.decorator_list])
                if "mark.soak" not in marks and "mark.skip(" not in marks and "mark.xfail" not in marks:
                    found.add(f"{module.path}::{node.name}")
    return found


def _marks_all(assignment: ast.Assign) -> bool:
    """Return whether this line marks every test of its file."""
    return any(isinstance(target, ast.Name) and target.id == "pytestmark" for target in assignment.targets)


def untested(promises: Iterable[str], kept: Mapping[str, list[str]], known: set[str]) -> list[str]:
    """Return what is wrong: a promise without a test, a test that is none, a row whose promise is not made any more."""
    promised = set(promises)
    wrong = [f"no test: {one}" for one in sorted(promised) if not kept.get(one)]
    wrong += [f"promised nowhere: {one}" for one in sorted(set(kept) - promised)]
    wrong += [f"no such test: {one}" for tests in kept.values() for one in tests if one not in known]
    return wrong


UNHELD = "not covered: "
"""How the last cell of a fault begins that no test holds; the reason follows."""


def unheld(page: str, known: set[str]) -> list[str]:
    """Return what is wrong with a page of faults: a row without test or reason, one told twice, a false name."""
    rows = [row for part in page.split("\n## ")[1:] for row in table_rows(part)]
    told = Counter(row[0] for row in rows)
    wrong = [f"not three cells: {row[0]}" for row in rows if len(row) != 3]
    wrong += [f"told twice: {fault}" for fault, times in told.items() if times > 1]
    for fault, tests in kept_by(page).items():
        reason = next(row[-1] for row in rows if row[0] == fault)
        has_reason = reason.startswith(UNHELD) and len(reason) > len(UNHELD)
        wrong += [f"neither a test nor a reason: {fault}"] if not tests and not has_reason else []
        wrong += [f"no such test: {one}" for one in tests if one not in known]
    return wrong
