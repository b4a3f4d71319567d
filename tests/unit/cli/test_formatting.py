"""What people write behind options, and what they are shown: assignments, tables, secrets."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
import typer

from holdfast.cli.formatting import fields, table
from holdfast.cli.job_selector import slowed_text
from holdfast.cli.parameters import leaves, read_assignments
from holdfast.config.showing import redacted
from holdfast.db.models import Job
from holdfast.sources.config import merge_fields


def test_assignments_have_the_types_that_json_gives_them() -> None:
    made = read_assignments(
        ["max_depth=5", "sitemaps=false", 'exclude=["/a", "/b"]', "name_template={code}", "a.b.c=x=y"]
    )

    assert made == {
        "max_depth": 5, "sitemaps": False, "exclude": ["/a", "/b"], "name_template": "{code}", "a": {"b": {"c": "x=y"}},
    }  # fmt: skip


@pytest.mark.parametrize("words", [["max_depth"], ["=5"], ["a..b=1"], ["a=1", "a.b=2"]])
def test_what_is_no_assignment_is_refused(words: list[str]) -> None:
    with pytest.raises(typer.BadParameter):
        read_assignments(words)


def test_a_group_keeps_what_is_not_named_and_null_takes_away() -> None:
    present = {"a": 1, "zimit": {"tool_options": {"x": 1, "y": 2}}}

    assert merge_fields(present, {"a": None, "zimit": {"tool_options": {"x": 3, "y": None}}, "b": 2}) == {
        "b": 2, "zimit": {"tool_options": {"x": 3}},
    }  # fmt: skip
    assert present == {"a": 1, "zimit": {"tool_options": {"x": 1, "y": 2}}}


def test_rows_are_aligned_and_cannot_write_to_the_terminal() -> None:
    shown = table(("id", "name"), [(1, "a\x1b[31mred\nline"), (12, None), (3, True)])

    assert shown.splitlines() == ["id  name", "1   a\ufffd[31mred\ufffdline", "12  -", "3   yes"]


def test_a_table_fits_a_terminal_by_cutting_what_is_widest() -> None:
    rows = [(1, "https://example.org/a/very/long/address", "short"), (2, "x", None)]

    narrow = table(("id", "url", "name"), rows, columns=40).splitlines()
    assert max(map(len, narrow)) <= 40
    assert narrow[1] == "1   https://example.org/a/very/l…  short"
    assert "very/long/address" in table(("id", "url", "name"), rows), "nothing is cut in a pipe"
    at = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    assert "2026-01-02 03:04:05" in table(("at", "what"), [(at, "word " * 9)], columns=30), "moments stay whole"


def test_a_configuration_is_shown_by_the_names_that_set_takes() -> None:
    assert list(leaves({"a": 1, "zimit": {"tool_options": {"x": True}, "passthrough_args": []}, "b": {}})) == [
        ("a", 1), ("zimit.tool_options.x", True), ("zimit.passthrough_args", []), ("b", {}),
    ]  # fmt: skip


def test_fields_leave_out_what_is_empty_but_not_a_zero() -> None:
    at = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)

    assert fields([("a", 0), ("long", None), ("at", at), ("list", ["x", "y"]), ("none", [])]).splitlines() == [
        "a     0", "at    2026-01-02 03:04:05", "list  x, y",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("postgresql://me:pa:ss@db/holdfast", "postgresql://me:***@db/holdfast"),
        ("postgresql://db/holdfast?user=me&password=secret&x=1", "postgresql://db/holdfast?user=me&password=***&x=1"),
        ("postgresql://:secret@db/holdfast", "postgresql://:***@db/holdfast"),
        ("sqlite:////srv/holdfast.db", "sqlite:////srv/holdfast.db"),
        ("vpn up --token=abc", "vpn up --token=***"),
        ("http://localhost:3000,http://localhost:5173", "http://localhost:3000,http://localhost:5173"),
    ],
)
def test_secrets_are_not_printed(written: str, shown: str) -> None:
    assert redacted(written) == shown


@pytest.mark.parametrize(
    ("number", "unit", "unchanged", "adaptive", "said"),
    [
        (1, "minutes", 0, True, None),
        (1, "minutes", 1, True, "every 2m 00s: its start page stayed the same once"),
        (1, "hours", 5, True, "every 24h 00m: its start page stayed the same 5 times"),
        (2, "days", 3, True, None),
        (1, "minutes", 3, False, None),
        (None, "minutes", 3, True, None),
    ],
)
def test_a_job_that_an_unchanged_page_slows_down_says_so(
    number: int | None, unit: str, unchanged: int, adaptive: bool, said: str | None
) -> None:
    job = Job(interval_minutes=number, interval_type=unit, schedule_enabled=True, adaptive_scheduling=adaptive,
              unchanged_count=unchanged)  # fmt: skip

    assert slowed_text(job) == said
