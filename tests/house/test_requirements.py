"""docs/requirements.md is complete and true of the files and tests that it names; numbers stand nowhere else."""

from __future__ import annotations

import importlib

import pytest

from tests.house import promises, requirements
from tests.house.program import commands, variables
from tests.house.requirements import RequirementRow
from tests.house.source import ROOT, modules

_PAGE = (ROOT / "docs" / "requirements.md").read_text()
_ASKED = {
    "HA": "1-15 20-25 30-38 40-45 50-61 70-71 80-86 90-93 100 110-112",
    "TC": "1-3 10-15 20-28 30-43 50-52 60-66 70-73 80-87 90",
    "NC": "1-12 20-31 40-62",
    "TR": "1-13",
}
_OTHER_VARIABLES = ("HOLDFAST_CONFIG", "HOLDFAST_BENCH_WEB", "HOLDFAST_CONTCT")
"""Where settings are read from, what only `bench` reads, and the misspelt one of docs/troubleshooting.md."""


def test_every_number_has_one_row_and_there_is_no_other() -> None:
    found, wanted = requirements.numbers(requirements.rows(_PAGE)), requirements.wanted_numbers(_ASKED)

    assert len(wanted) == 180
    assert sorted(wanted ^ found) == []


def test_every_row_names_files_and_tests_that_are_there_or_says_why_it_has_none() -> None:
    files = {module.path.removeprefix("src/holdfast/") for module in (*modules("src/holdfast"), *modules("tests"))}

    wrong = requirements.wrong_rows(requirements.rows(_PAGE), files, promises.test_ids(modules("tests")))
    assert wrong == [], "docs/requirements.md names for each row where it lives and a test that would fail otherwise"


def test_every_name_in_the_docs_exists() -> None:
    routes = importlib.import_module("tests.api_routes").PERMISSIONS
    program, settings = ["holdfast help", *commands()], [*variables(), *_OTHER_VARIABLES]
    tests = promises.test_ids(modules("tests"))
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]

    for page in [*pages, *(ROOT / "docs" / "guides").glob("*.md")]:
        # Settings of earlier versions are named there and nowhere else.
        text = page.read_text().partition("## Removed settings")[0] if page.name == "settings.md" else page.read_text()
        assert requirements.unknown_names(text, program, routes, settings) == [], page.name
        assert [path for path in requirements.named_paths(text) if not (ROOT / path).exists()] == [], page.name
        assert sorted(requirements.named_tests(text) - tests) == [], page.name


def test_unknown_command_route_and_setting_are_reported() -> None:
    page = (
        "`holdfast a` `holdfast b c` `holdfast b` `holdfast b d --x` `holdfast e` `GET /x/{id}?y=1` `POST /x/{id}`"
        " HOLDFAST_X_A `HOLDFAST_X_*` `HOLDFAST_Y`, docs/a.md."
    )

    wrong = requirements.unknown_names(page, ["holdfast a", "holdfast b c"], ["GET /x/{number}"], ["HOLDFAST_X_A"])
    assert wrong == ["holdfast b d", "holdfast e", "POST /x/{id}", "HOLDFAST_Y"]
    assert requirements.named_paths(page) == {"docs/a.md"}


@pytest.mark.parametrize(
    ("place", "proof", "wrong"),
    [
        ("`a/b.py`", "`tests/a.py::test_a`", []),
        ("`a/b.py` `holdfast x`", "differs: smaller: `tests/a.py::test_a`", []),
        ("—", "not built: no reader asked for it", []),
        ("`a/c.py`", "`tests/a.py::test_a`", ["x: there is no file a/c.py"]),
        ("`a/b.py`", "`tests/a.py::test_b`", ["x: there is no tests/a.py::test_b"]),
        ("`a/b.py`", "not built: only half `tests/a.py::test_b`", ["x: there is no tests/a.py::test_b"]),
        ("somewhere", "`tests/a.py::test_a`", ["x: no file where it lives"]),
        ("`a/b.py`", "differs: much", ["x: no test that proves it"]),
        ("—", "not built: ", 3),
        ("`a/b.py`", "mostly: `tests/a.py::test_a`", 1),
    ],
)
def test_a_row_with_a_false_name_or_without_proof_is_told(place: str, proof: str, wrong: list[str] | int) -> None:
    told = requirements.wrong_rows([RequirementRow("x", "y", place, proof)], ["a/b.py"], ["tests/a.py::test_a"])

    assert told == wrong or len(told) == wrong


def test_a_number_that_stands_twice_and_a_row_of_other_shape_are_told() -> None:
    row = RequirementRow("x", "y", "—", "not built: later")
    table = "\n## A\n\n| a | b | c | d |\n|---|---|---|---|\n"

    assert requirements.wrong_rows([row, row], [], []) == ["stands twice: x"]
    assert requirements.rows(f"{table}| x | y | — | not built: later |\n") == [row]
    with pytest.raises(ValueError, match="x"):
        requirements.rows(f"{table}| x | y | not built: later |\n")
