"""What a crawl's own log and totals become in the execution's log: only what is new, in the right category."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from holdfast.jobs.endings import Counts
from holdfast.jobs.views.status import ExecutionStatus
from holdfast.worker.native import CrawlWatch
from holdfast.worker.runner import RunnerHolding

COST = (1.5, 1000)


class Notes(RunnerHolding):
    """A holding that only remembers."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, str, str, dict[str, Any]]] = []
        self.told: list[Counts] = []

    def note(self, level: str, category: str, message: str, **fields: Any) -> None:
        """Remember a line."""
        self.lines.append((level, category, message, fields))

    def progress(self, counts: Counts, metrics: dict[str, Any] | None = None) -> None:
        """Remember how far it is."""
        self.told.append(counts)


def _status(**changes: Any) -> ExecutionStatus:
    base: dict[str, Any] = {
        "execution_id": 1, "source": "ex", "state": "running", "reason": None, "stop_requested": None,
        "output_dir": Path("out"), "started_at": None, "finished_at": None, "run_seconds": 1.0, "queue": 5, "pages": 3,
        "requests": 4, "bytes": 100, "pages_s": 1.0, "active_domains": 1, "outcomes": {"success": 3},
        "condition": "running", "slow": (), "config": {}, "frontier_id": 1, "shortfalls": {}, "error": None,
        "retry_at": None,
    }  # fmt: skip
    return ExecutionStatus(**{**base, **changes})


def test_events_of_the_processes_are_passed_on_once_and_half_a_line_waits(tmp_path: Path) -> None:
    log, notes = tmp_path / "crawl.log", Notes()
    log.write_text(json.dumps({"event": "crawl.before", "level": "info"}) + "\n")
    watch = CrawlWatch(notes, log, now=0.0)
    clamped = json.dumps({"event": "crawl.retry_after_clamped", "level": "warning", "domain": "ex", "seconds": 9})
    failed = json.dumps({"event": "crawl.process_failed", "level": "error", "error": "boom"})
    with log.open("a") as file:
        file.write(f"{clamped}\nTraceback (most recent call last):\n{failed[:10]}")
    watch.read_log()
    with log.open("a") as file:
        file.write(f"{failed[10:]}\n")
    watch.read_log()
    watch.read_log()

    assert [(level, category, message) for level, category, message, _ in notes.lines] == [
        ("warning", "rate_limit", "crawl.retry_after_clamped"),
        ("error", "error", "crawl.process_failed"),
    ]
    assert notes.lines[0][3]["event_fields"] == {"domain": "ex", "seconds": 9}


def test_a_burst_of_events_is_passed_on_whole_and_a_line_that_never_ends_is_dropped(tmp_path: Path) -> None:
    log, notes = tmp_path / "crawl.log", Notes()
    watch = CrawlWatch(notes, log, now=0.0)
    padding = "x" * 200
    burst = [json.dumps({"event": "crawl.burst", "level": "info", "n": n, "padding": padding}) for n in range(1500)]
    endless = "y" * 300_000
    log.write_text("\n".join([*burst[:700], endless, *burst[700:]]) + "\n")
    assert log.stat().st_size > 10 * 65536

    watch.read_log()

    assert [fields["event_fields"]["n"] for _, _, _, fields in notes.lines] == list(range(1500))


def test_only_new_trouble_is_noted(tmp_path: Path) -> None:
    notes = Notes()
    watch = CrawlWatch(notes, tmp_path / "none.log", now=0.0)
    watch.look(_status(), COST, now=1.0)
    watch.look(_status(outcomes={"success": 3, "timeout": 2}), COST, now=2.0)
    watch.look(_status(outcomes={"success": 4, "timeout": 2}), COST, now=3.0)

    assert notes.lines == [("warning", "fetch", "pages that could not be captured", {"timeout": 2})]
    assert [one.items_failed for one in notes.told] == [0, 2, 2]
    assert (notes.told[-1].cpu_ms, notes.told[-1].peak_memory_bytes) == (1500, 1000)


def test_a_full_disk_slow_domains_and_totals_are_told(tmp_path: Path) -> None:
    notes = Notes()
    watch = CrawlWatch(notes, tmp_path / "none.log", now=0.0)
    slow = ({"domain": "ex.example", "seconds": 30.0, "why": "Retry-After"},)
    watch.look(_status(condition="no_space", slow=slow), COST, now=1.0)
    watch.look(_status(condition="no_space", slow=slow), COST, now=40.0)

    said = [(category, message) for _, category, message, _ in notes.lines]
    assert said.count(("lifecycle", "the crawl is no_space")) == 1
    assert said.count(("rate_limit", "ex.example: Retry-After")) == 1
    assert ("metrics", "totals so far") in said
    assert ("queue", "queue") in said
