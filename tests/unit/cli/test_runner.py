"""What people and scripts type by mistake: a sentence and an exit code, never a fault of the program."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.typed import Typist

_HUGE = "99999999999999999999999"
_LATIN = "caf\udce9"
"""What a shell hands over that was typed in Latin-1: the byte is no UTF-8."""


@pytest.fixture
def typed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Typist:
    home = Typist(tmp_path / "home", capsys)
    assert home("migrate up").code == 0
    return home


@pytest.mark.parametrize(
    "line",
    [f"frontier recover --minutes {_HUGE}", f"changes compute --since-days {_HUGE}", "changes compute --since-days nan",
     f"recover-stale-jobs --older-than-minutes {_HUGE}", "frontier recover --minutes inf", f"status {_HUGE}",
     "changes compute --since-days 9999999999", "edition list --year 40000", "edition compare hc 2026 99999",
     "export edition hc 40000", "job logs 1 --execution 4294967296"],
)  # fmt: skip
def test_a_number_beyond_reason_is_refused_as_an_argument(typed: Typist, line: str) -> None:
    said = typed(line)

    assert (said.code, "fault of this program" in said.err) == (2, False), said


@pytest.mark.parametrize(
    "line",
    ["source show", "search", "job list --search", "export snapshots --source", "page search", "audit --actor"],
)
def test_bytes_that_are_no_text_are_refused_as_an_argument(typed: Typist, line: str) -> None:
    said = typed(line, _LATIN)

    assert (said.code, "not UTF-8" in said.err) == (2, True), said


def test_an_export_needs_the_name_of_a_file(typed: Typist) -> None:
    for output in ("", "/"):
        said = typed("export snapshots", "-o", output)
        assert (said.code, "name a file" in said.err) == (1, True), said


@pytest.mark.parametrize("typed", ["help all", "--version", "settings", "help crawl"])
def test_command_ends_quietly_when_its_reader_has_left(typed: str, tmp_path: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "holdfast.cli.main", *typed.split()],
            stdout=writing,
            stderr=subprocess.PIPE,
            cwd=tmp_path,
            text=True,
            check=False,
        )
    finally:
        os.close(writing)

    assert (done.returncode, done.stderr) == (1, "")
