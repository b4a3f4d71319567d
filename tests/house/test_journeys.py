"""What docs/architecture.md tells of the files is true: they are there, and one hands over to the next."""

from __future__ import annotations

import importlib

from tests.house import journeys
from tests.house.floors import FLOORS
from tests.house.journeys import Step
from tests.house.source import ROOT, module_from, modules

_PAGE = (ROOT / "docs" / "architecture.md").read_text()


def test_each_step_of_the_three_journeys_leads_to_the_next_file() -> None:
    told = journeys.journeys(_PAGE)
    tables = set(importlib.import_module("holdfast.db.models").Model.metadata.tables)

    assert [len(steps) > 8 for steps in told.values()] == [True, True, True]
    for name, steps in told.items():
        assert journeys.wrong_steps(steps, modules("src/holdfast"), tables) == [], name


def test_every_numbered_line_of_a_journey_is_a_step() -> None:
    part = _PAGE.partition("### The journey of")[2].partition("\n## ")[0]
    lines = [line for line in part.split("\n") if line[:1].isdigit()]

    assert len(lines) == sum(map(len, journeys.journeys(_PAGE).values()))


def test_every_file_that_the_page_names_is_there() -> None:
    kept = {module.path.removeprefix("src/holdfast/") for module in modules("src/holdfast")}

    assert sorted(journeys.named_files(_PAGE) - kept) == []


def test_the_drawing_of_the_floors_is_the_one_that_is_held() -> None:
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in _PAGE.split("\n") if line.startswith("|")]
    drawn = {row[0].partition(" (")[0]: row[1] for row in rows if len(row) == 3}
    rooms = {path.name.removesuffix(".py") for path in (ROOT / "src" / "holdfast").iterdir()}

    for floor, held in FLOORS.items():
        built = [room for room in held if room in rooms]
        assert [name.strip() for name in drawn[floor].split(",")] == built, floor


def test_a_false_step_is_told() -> None:
    a = module_from("src/holdfast/crawl/a.py", "from holdfast.crawl import b\nrun('holdfast.crawl.c')")
    b, c = (module_from(f"src/holdfast/crawl/{name}.py", "") for name in "bc")
    true = [Step("crawl/a.py", "→", "crawl/b.py", ""), Step("crawl/a.py", "⇢", "crawl/c.py", "")]
    false = [
        Step("crawl/b.py", "→", "crawl/a.py", ""),
        Step("crawl/a.py", "⇢", "crawl/b.py", ""),
        Step("crawl/a.py", "⇒", "crawl/b.py", "none"),
        Step("crawl/a.py", "→", "crawl/gone.py", ""),
    ]

    assert journeys.wrong_steps(true, [a, b, c], ["pages"]) == []
    assert len(journeys.wrong_steps(false, [a, b, c], ["pages"])) == 4
