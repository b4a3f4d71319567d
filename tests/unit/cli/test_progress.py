"""The live table of a crawl: a bar towards each limit that was set, and none otherwise."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from rich.console import Console

from holdfast.cli import progress
from holdfast.jobs.views.status import ExecutionStatus
from holdfast.sources.plan import CrawlPlan

_STATUS = ExecutionStatus(
    execution_id=1,
    source="ex",
    state="running",
    reason=None,
    stop_requested=None,
    output_dir=Path("x"),
    started_at=None,
    finished_at=None,
    run_seconds=30.0,
    queue=7,
    pages=25,
    requests=40,
    bytes=5_000_000,
    pages_s=1.0,
    active_domains=1,
    outcomes={},
    condition="running",
    slow=[],
    config={},
    frontier_id=1,
    shortfalls={},
    error=None,
    retry_at=None,
)


def _shown(**limits: float) -> str:
    console = Console(width=120, force_terminal=False)
    plan = CrawlPlan(seeds=("https://example.org/",), contact="t@example.org", **limits)  # type: ignore[arg-type]
    with console.capture() as captured:
        console.print(progress.panel(_STATUS, plan))
    return captured.get()


@pytest.mark.parametrize(
    ("limits", "percents"),
    [
        ({}, []),
        ({"max_pages": 100}, ["25%"]),
        ({"max_pages": 10}, ["100%"]),
        ({"max_bytes": 50_000_000, "max_time_s": 60.0}, ["10%", "50%"]),
    ],
)
def test_there_is_a_bar_towards_each_limit(limits: dict[str, float], percents: list[str]) -> None:
    assert re.findall(r"\d+%", _shown(**limits)) == percents


def test_no_command_writes_one_runs() -> None:
    bare = re.compile(r"\{[^{}]+?(?::,)?\} (?:runs|executions|jobs|captures|seeds)\b")
    folder = Path(progress.__file__).parent
    found = [
        f"{path.name}: {line.strip()}"
        for path in sorted(folder.glob("*.py"))
        for line in path.read_text().splitlines()
        if bare.search(line) and "counted(" not in line
    ]
    assert found == [], "write counted(number, noun)"
