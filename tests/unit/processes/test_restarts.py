"""When a part is started again, and how its lines are shown."""

from __future__ import annotations

import json
import os
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from holdfast.cli.serve import parts_of
from holdfast.errors import Conflict
from holdfast.processes.part_output import Lines, labelled
from holdfast.processes.part_states import PartState, PartStatus, alone_at, lock_path, read_parts, write_parts
from holdfast.processes.restarts import DEATHS, WINDOW_S, Restarts

_STATUS = PartStatus(
    name="worker", state=PartState.FAILING, pid=7, since=datetime(2026, 11, 17, tzinfo=UTC), restarts=9, last_exit="x"
)


def test_a_part_that_ends_now_and_then_is_started_again_at_once() -> None:
    restarts = Restarts()

    waits = [restarts.wait_after_end(now) for now in range(0, 6000, 300)]

    assert set(waits) == {0.25}
    assert not restarts.is_failing


def test_ten_ends_in_a_minute_are_failing_and_a_minute_of_running_is_not() -> None:
    restarts, now = Restarts(), 0.0
    for _ in range(DEATHS - 1):
        now += 1.0  # a start that fails takes about a second
        now += restarts.wait_after_end(now)
    assert not restarts.is_failing
    assert now < WINDOW_S

    assert restarts.wait_after_end(now + 1) == WINDOW_S
    assert restarts.is_failing
    assert restarts.wait_after_end(now + 2 * WINDOW_S) == WINDOW_S, "it stays so until it has run for a minute"
    assert not restarts.runs_since(now, now + WINDOW_S - 1)
    assert restarts.runs_since(now, now + WINDOW_S)
    assert restarts.wait_after_end(now + 3 * WINDOW_S) < 1


def test_restarts_wait_at_most_their_limit_while_failing() -> None:
    restarts = Restarts(failing_s=5.0)

    waits = [restarts.wait_after_end(now) for now in range(2 * DEATHS)]

    assert restarts.is_failing
    assert max(waits) == 5.0


@pytest.mark.parametrize("line", ["plain words", '["event"]', '{"event": 1}', "{broken", "[" * 20_000, "{" * 20_000])
def test_a_line_that_is_no_event_begins_with_its_part(line: str) -> None:
    assert labelled("api", line, for_people=False) == f"api | {line}"


def test_an_event_names_its_part_and_is_still_one_object() -> None:
    line = '{"page": 3, "event": "crawl.settled", "level": "info", "timestamp": "T"}'

    assert json.loads(labelled("worker-2", line, for_people=False)) == {
        "part": "worker-2", "page": 3, "event": "crawl.settled", "level": "info", "timestamp": "T",
    }  # fmt: skip
    assert labelled("worker-2", line, for_people=True) == "worker-2 | T [info] crawl.settled page=3"


def test_lines_come_whole_and_a_line_without_end_comes_in_pieces() -> None:
    reader, writer = os.pipe()
    with closing(os.fdopen(reader, "rb")) as pipe, closing(os.fdopen(writer, "wb", buffering=0)) as end:
        lines = Lines(pipe.fileno())
        end.write(b"one\ntw")
        assert list(lines.read() or ()) == ["one"]
        assert list(lines.read() or ()) == [], "nothing is there, and nothing is waited for"
        end.write(b"o\nthree")
        assert list(lines.read() or ()) == ["two"]
        assert lines.last() == "three"
        got = []
        for _ in range(40):
            end.write(b"x" * 4096)
            got += list(lines.read() or ())
        assert got
        assert max(map(len, got)) <= 2 * 64 * 1024
        end.close()
        assert lines.read() is None


def test_the_state_of_the_parts_counts_only_while_its_supervisor_lives(tmp_path: Path) -> None:
    assert read_parts(tmp_path) is None
    with alone_at(tmp_path):
        write_parts(tmp_path, [_STATUS])
        assert read_parts(tmp_path) == [_STATUS]
        with pytest.raises(Conflict, match=rf"runs already for .* \(process {os.getpid()}\); stop that one"):
            alone_at(tmp_path).__enter__()

    # As after a kill, or in a container that was started again and has the same process number: the file is there,
    # the lock is free.
    assert lock_path(tmp_path).exists()
    assert read_parts(tmp_path) is None
    with alone_at(tmp_path):
        assert read_parts(tmp_path) is not None


def test_what_runs_follows_from_the_options() -> None:
    assert [part.name for part in parts_of(workers=1)] == ["api", "scheduler", "worker"]
    assert [part.name for part in parts_of(workers=2)] == ["api", "scheduler", "worker-1", "worker-2"]
    assert [part.command[4:] for part in parts_of(workers=0, processes=3)] == [("api", "--processes", "3")]
