"""What a running tool says, told on: whole lines only, statistics as counts, nothing twice."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any, cast

from holdfast.jobs.endings import Counts
from holdfast.jobs.journal import LogBook
from holdfast.worker.runner import RunnerHolding
from holdfast.worker.tool_process import KILLED, AdoptedTool, ToolFollower, end_of_log, newest_tool_log, signal_holder
from holdfast.zimit.output_directory import hold_output, holder_of, note_end
from tests.clock import FakeClock


class Book:
    """Remembers lines."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, str, dict[str, Any]]] = []

    def write(self, level: str, category: str, message: str, **fields: Any) -> None:
        """Note a line."""
        self.lines.append((level, message, fields))


def _follower(folder: Path, said: Path | None) -> tuple[ToolFollower, Book, list[Counts], FakeClock]:
    book, told, clock = Book(), list[Counts](), FakeClock()
    holding = RunnerHolding(cast(LogBook, book), clock, report=lambda counts, _: told.append(counts))
    return ToolFollower(folder, said, holding, clock), book, told, clock


def _statistics(crawled: int) -> str:
    details = {"crawled": crawled, "total": 90, "pending": 1, "failed": 2}
    return json.dumps({"context": "crawlStatus", "message": "Crawl statistics", "details": details}) + "\n"


def test_events_of_the_tool_become_lines_each_once_and_only_when_whole(tmp_path: Path) -> None:
    said = tmp_path / "tool_1.log"
    said.write_text('{"event": "stage.begins", "level": "info", "stage": "Initial"}\n{"event": "half')
    follower, book, _, _ = _follower(tmp_path, said)

    follower.look()
    follower.look()
    assert book.lines == [("info", "stage.begins", {"tool_stage": "Initial"})]

    said.write_text(said.read_text() + '", "level": "error"}\nplain words\n\n[1]\n')
    follower.look()
    assert [line[:2] for line in book.lines[1:]] == [("error", "half"), ("info", "plain words"), ("info", "[1]")]


def test_statistics_become_progress_at_once_and_a_line_now_and_then(tmp_path: Path) -> None:
    log = tmp_path / "archive_initial_20260101_000000.combined.log"
    follower, book, told, clock = _follower(tmp_path, None)
    for crawled, seconds in ((10, 0), (25, 1), (40, 40)):
        log.write_text(_statistics(crawled))
        clock.advance(seconds)
        follower.look()
        follower.look()

    assert [one.items_crawled for one in told] == [10, 25, 40]
    assert told[-1].items_total == 90
    lines = [fields["crawled"] for _, message, fields in book.lines if message == "crawl statistics"]
    assert lines == [10, 40]


def test_a_tool_that_is_left_behind_is_known_by_its_hold_and_its_last_word(tmp_path: Path, clock: FakeClock) -> None:
    with hold_output(tmp_path):
        holder = holder_of(tmp_path)
        assert holder is not None
        tool = AdoptedTool(tmp_path, holder)
        assert tool.poll() is None
    assert tool.poll() == KILLED
    note_end(tmp_path, "stopped", 1, clock.now())
    assert tool.poll() == 1
    assert "archive-tool: stopped" in end_of_log(tmp_path, None)


def test_no_process_is_signalled_that_does_not_work_in_the_directory(tmp_path: Path) -> None:
    assert not signal_holder(tmp_path, os.getpid(), signal.SIGTERM)
    assert not signal_holder(tmp_path, 0, signal.SIGTERM)


def test_the_newest_words_count(tmp_path: Path) -> None:
    assert newest_tool_log(tmp_path) is None
    for name in ("tool_20260101T000000000000Z.log", "tool_20260102T000000000000Z.log"):
        (tmp_path / name).write_text(name)

    newest = newest_tool_log(tmp_path)
    assert newest is not None
    assert end_of_log(tmp_path, newest) == "tool_20260102T000000000000Z.log"
