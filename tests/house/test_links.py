"""Links of README and docs lead somewhere, each page is reached from docs/index.md, all rooms are described."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

from tests import guides
from tests.house.links import anchors, broken, unreached
from tests.house.source import PACKAGE, ROOT, tracked_files

_INDEX = "docs/index.md"


def _pages() -> dict[str, str]:
    chosen = [
        path for path in tracked_files() if path.endswith(".md") and (path.count("/") == 0 or path[:5] == "docs/")
    ]
    return {path: (ROOT / path).read_text("utf-8") for path in chosen}


def test_every_relative_link_leads_to_a_file_and_a_heading() -> None:
    readme = {"tests/site/README.md": (ROOT / "tests/site/README.md").read_text("utf-8")}

    assert broken({**_pages(), **readme}, tracked_files()) == []


def test_every_page_is_reached_from_the_index_and_the_index_from_readme() -> None:
    pages = _pages()
    decisions = [path for path in pages if path.startswith("docs/decisions/")]

    assert unreached({path for path in pages if path.startswith("docs/")} - {*decisions}, _INDEX, pages) == []
    assert _INDEX not in unreached([_INDEX], "README.md", pages), "README.md leads to docs/index.md"


def test_every_guide_is_one_whose_commands_a_test_types() -> None:
    shown = {path for path, text in _pages().items() if "```console" in text}

    assert shown <= {*guides.all_pages()}, "add these to IN_ONE_FOLDER of tests/guides.py, in the order of typing"
    assert all((ROOT / page).is_file() for page in guides.all_pages())


def test_the_rooms_that_contributors_are_shown_are_those_of_the_house() -> None:
    page = (ROOT / "docs/guides/changing-the-code.md").read_text("utf-8")
    table = page.partition("## Rooms\n")[2].partition("\n## ")[0]
    told = re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)
    there = {PurePosixPath(path).parts[2] for path in tracked_files() if path.startswith(f"src/{PACKAGE}/")}

    assert sorted(told) == sorted(name for name in there if "." not in name)


def test_links_to_no_file_and_to_no_heading_are_told() -> None:
    pages = {
        "README.md": "[a](docs/a.md#one-two) [b](docs/a.md#three) [c](gone.md) [d](https://x.example/) `[e](code.md)`",
        "docs/a.md": "# One, two\n\n[f](../README.md) [g](../docs/) [h](#one-two)\n\n```\n# Three\n[i](x.md)\n```\n",
    }

    assert broken(pages, {"README.md", "docs/a.md"}) == [
        "README.md: docs/a.md#three leads to no heading",
        "README.md: gone.md leads to no file",
    ]


def test_headings_are_spelt_as_in_addresses() -> None:
    assert anchors("# What to do when…\n## A `b-c` [d](e)\n## A `b-c` d\n") == {
        "what-to-do-when",
        "a-b-c-d",
        "a-b-c-d-1",
    }


def test_a_page_to_which_no_link_leads_is_told() -> None:
    texts = {"a.md": "[b](b.md)", "b.md": "[a](a.md#x)", "c.md": ""}

    assert unreached(texts, "a.md", texts) == ["c.md"]
