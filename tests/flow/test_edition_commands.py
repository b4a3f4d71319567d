"""What people read when they type `holdfast edition`, and how it ends when they ask for what cannot be."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.flow.commands import Said, Terminal


@pytest.fixture
def terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Terminal:
    made = Terminal(tmp_path / "home", capsys)
    assert made.type("seed-sources").code == 0
    return made


def _lines(said: Said) -> list[list[str]]:
    return [line.split() for line in said.out.splitlines()]


def test_a_plan_says_what_it_would_do_and_an_application_does_it(terminal: Terminal) -> None:
    planned = terminal.type("schedule-annual", "--year", "2099")
    none = terminal.type("edition", "list")
    applied = terminal.type("edition", "schedule", "--year", "2099", "--apply", "--max-create-per-run", "2")
    listed = terminal.type("edition", "list", "--sources", "hc")

    assert [row[:4] for row in _lines(planned)[1:4]] == [
        [code, "create", f"{code}-20990101", "2099-01-01"] for code in ("hc", "phac", "cihr")
    ]
    assert "nothing was changed; do it with --apply" in planned.out
    assert "no editions yet" in none.out
    assert _lines(applied)[3][-1] == "max_create_per_run"
    assert "nothing was changed" not in applied.out
    assert [row[:3] for row in _lines(listed)[1:]] == [["hc", "2099", "in_progress"]]


def test_an_error_changes_nothing_and_ends_with_one(terminal: Terminal) -> None:
    wrong = terminal.type("schedule-annual", "--year", "2099", "--sources", "hc,nobody", "--apply")
    year = terminal.type("schedule-annual", "--year", "2101")
    missing = terminal.type("edition", "show", "hc", "2099")
    words = terminal.type("edition", "schedule", "--year", "soon")

    assert (wrong.code, year.code, missing.code, words.code) == (1, 1, 1, 2)
    assert "there is no source 'nobody'" in wrong.out
    assert "fix the errors first" in wrong.err
    assert "between 1970 and 2100" in year.err
    assert "holdfast schedule-annual --year 2099" in missing.err
    assert "no editions yet" in terminal.type("edition", "list").out


def test_an_edition_is_shown_reported_and_printed(terminal: Terminal) -> None:
    terminal.type("plan-annual-shards", "--year", "2026", "--sources", "cihr", "--apply")

    shown = terminal.type("edition", "show", "cihr", "2026")
    early = terminal.type("edition", "ledger", "cihr", "2026")
    status = terminal.type("annual-status", "--year", "2026")
    thought = terminal.type("annual-edition-report", "--year", "2026")
    still = terminal.type("edition", "ledger", "cihr", "2026")
    reported = terminal.type("annual-edition-report", "--year", "2026", "--apply")
    table = terminal.type("edition", "ledger", "cihr", "2026", "--csv")
    unfrozen = terminal.type("edition", "verify", "cihr", "2026")
    short = terminal.type("accept-annual-shard-gap", "--job-id", "1", "--reason", "x")

    assert [row[1:3] for row in _lines(shown)[-2:]] == [["lang-en", "queued"], ["lang-fr", "queued"]]
    assert (early.code, still.code) == (1, 1)
    assert thought.out.splitlines()[:-1] == reported.out.splitlines()[:-2]
    assert "nothing was changed" in thought.out
    assert "holdfast edition report --year 2026" in early.err
    assert "0 of 3 indexed, 1 in progress, 0 failed, 2 missing" in status.out
    assert "missing seed  https://cihr-irsc.gc.ca/e/193.html  not_reached: shard_queued" in reported.out
    assert table.out.count("\n") == 3
    assert (unfrozen.code, short.code) == (1, 1)
    assert "never frozen" in unfrozen.err
    assert "give a reason" in short.err
