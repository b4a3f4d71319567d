"""What a command loads: nearly all the time that a short one takes. Modules are counted, no clock is asked."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from typer.core import TyperGroup

from holdfast.cli import runner
from holdfast.cli.catalogue import APART, COMMANDS
from holdfast.cli.main import load

READING = {"holdfast.frontier", "holdfast.urls", "holdfast.crawl", "holdfast.zimit", "holdfast.wiring", "rich"}
HEAVY = {"pydantic", "fastapi", "alembic", "psycopg", "lxml", "selectolax", "pycurl"}


def _loaded(module: str) -> set[str]:
    """Return the modules that a fresh process has once this one of `cli` and the runner are there."""
    code = f"import sys, json, holdfast.cli.{module}, holdfast.cli.runner; print(json.dumps([*sys.modules]))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout))


@pytest.mark.parametrize(
    ("module", "absent", "most"),
    [
        ("url", HEAVY | {"sqlalchemy", "rich", "holdfast.db"}, 25),
        ("settings", HEAVY | {"sqlalchemy", "rich", "holdfast.db"}, 17),
        ("status", HEAVY | {"sqlalchemy", "holdfast.zimit", "holdfast.index", "zstandard", "brotli"}, 80),
        ("report", HEAVY | {"sqlalchemy", "holdfast.zimit", "holdfast.index"}, 67),
        ("lists", HEAVY | READING - {"holdfast.urls", "holdfast.crawl"}, 75),
        ("job_show", HEAVY | {"holdfast.frontier", "holdfast.wiring", "rich", "numpy"}, 100),
    ],
)
def test_a_command_that_reads_loads_little(module: str, absent: set[str], most: int) -> None:
    loaded = _loaded(module)

    assert loaded & absent == set()
    ours = [name for name in loaded if name.startswith("holdfast")]
    assert len(ours) <= most, sorted(ours)


@pytest.mark.parametrize(("group", "name"), APART)
def test_a_command_in_a_file_of_its_own_is_that_of_its_group(group: str, name: str) -> None:
    whole = runner.built(load(COMMANDS[group].module))
    alone = runner.built(load(APART[group, name]))

    assert isinstance(whole, TyperGroup)
    assert not isinstance(alone, TyperGroup)
    assert (alone.help, runner.options(alone)) == (whole.commands[name].help, runner.options(whole.commands[name]))  # type: ignore[arg-type]


@pytest.mark.parametrize("words", [("job", "list"), ("list-jobs",), ("feed", "list"), ("job", "show")])
def test_it_is_called_by_the_name_under_which_it_was_typed(words: tuple[str, ...]) -> None:
    command = [sys.executable, "-m", "holdfast.cli.main", *words, "--help"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)

    assert done.stdout.startswith(f"Usage: holdfast {' '.join(words)} [OPTIONS]")
