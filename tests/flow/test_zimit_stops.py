"""Runs of zimit that are stopped, cancelled, discarded or left behind: no file is lost, nothing runs twice."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.jobs.endings import RunResult
from holdfast.worker import zimit
from holdfast.worker.runner import StopReason
from holdfast.zimit.output_directory import holder_of
from tests.flow.zimit.bed import Step
from tests.flow.zimit_bed import WHOLE, ZimitBed, open_zimit_bed


@pytest.fixture
def bed(tmp_path: Path) -> Iterator[ZimitBed]:
    with open_zimit_bed(tmp_path, None) as made:
        yield made


def _hanging(bed: ZimitBed) -> list[Step]:
    mark = str(bed.engine.root / "mark")
    return [{"warc": "a.warc.gz"}, {"queue": {"left": 1}}, {"stats": [1, 9, 1, 0]}, {"touch": mark}, {"hang": 60}]


def test_a_drain_stops_the_container_and_the_next_worker_goes_on_with_what_is_there(bed: ZimitBed) -> None:
    bed.job()
    bed.engine.script(_hanging(bed), WHOLE)
    lease = bed.take()
    with bed.running(lease) as (holding, ends):
        bed.engine.wait_for(bed.engine.root / "mark")
        holding.ask(StopReason.DRAIN)
    assert ends == [None]
    bed.jobs.leases.release(lease)
    assert len(bed.engine.calls("stop")) == 1

    again = bed.take()
    assert (again.execution_id, again.output_dir) == (lease.execution_id, lease.output_dir)
    assert bed.settled(again) == "completed"
    bed.index()

    assert len(bed.snapshots()) == 2
    assert "/output/.zimit_resume.yaml" in bed.engine.zimit(1)


@pytest.mark.parametrize(
    ("word", "result"), [(StopReason.FINISH, RunResult.COMPLETED), (StopReason.CANCEL, RunResult.CANCELLED)]
)
def test_who_stops_or_cancels_a_run_keeps_what_was_captured(bed: ZimitBed, word: StopReason, result: RunResult) -> None:
    bed.job()
    bed.engine.script(_hanging(bed))
    lease = bed.take()
    with bed.running(lease) as (holding, ends):
        bed.engine.wait_for(bed.engine.root / "mark")
        holding.ask(word)
    [ending] = ends
    assert ending is not None
    assert (ending.result, ending.index_state) == (result, "pending")
    assert len(bed.files()) == 1


def test_who_discards_a_run_keeps_nothing(bed: ZimitBed) -> None:
    bed.job()
    bed.engine.script(_hanging(bed))
    lease = bed.take()
    with bed.running(lease) as (holding, ends):
        bed.engine.wait_for(bed.engine.root / "mark")
        holding.ask(StopReason.DISCARD)
    [ending] = ends
    assert ending is not None
    assert ending.result is RunResult.CANCELLED
    assert not lease.output_dir.exists()
    assert bed.files() == []


def test_who_discards_a_retry_keeps_what_the_run_before_it_gave_to_the_archive(bed: ZimitBed) -> None:
    bed.job()
    bed.engine.script([{"warc": "b.warc.gz"}, {"exit": 127}], _hanging(bed))
    assert bed.settled(bed.take()) == "scheduled"
    lease = bed.take()
    with bed.running(lease) as (holding, _ends):
        bed.engine.wait_for(bed.engine.root / "mark")
        holding.ask(StopReason.DISCARD)

    [file] = bed.files()
    assert (bed.settings.home / file.path).is_file()
    assert [path.name for path in lease.output_dir.iterdir()] == ["archive"]


def test_a_stronger_word_does_not_take_the_grace_away(bed: ZimitBed) -> None:
    bed.job()
    bed.engine.script(_hanging(bed))
    lease = bed.take()
    with bed.running(lease) as (holding, ends):
        bed.engine.wait_for(bed.engine.root / "mark")
        for word in (StopReason.DRAIN, StopReason.FINISH, StopReason.CANCEL):
            holding.ask(word)
    assert ends[0] is not None
    assert ends[0].result is RunResult.CANCELLED
    assert bed.engine.calls("kill") == []
    assert (lease.output_dir / ".zimit_resume.yaml").is_file(), "the queue was saved on the way out"


def test_a_tool_that_a_dead_worker_left_behind_is_adopted_not_doubled(bed: ZimitBed) -> None:
    bed.job()
    heard = bed.engine.heard
    bed.engine.script([*_hanging(bed)[:-1], {"await": str(heard)}, {"stats": [9, 9, 0, 0]}])
    lease = bed.take()
    pid = os.fork()
    if pid == 0:  # the worker that dies
        bed.run(lease)
        os._exit(0)
    bed.engine.wait_for(bed.engine.root / "mark")
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    assert holder_of(lease.output_dir) is not None

    with bed.running(lease) as (_holding, ends):
        bed.engine.wait_until(lambda: "a tool that was left behind goes on" in bed.lines(lease.execution_id))
        heard.touch()

    [ending] = ends
    assert ending is not None
    assert (ending.result, ending.counts.items_crawled, len(bed.files())) == (RunResult.COMPLETED, 9, 1)
    assert len(bed.engine.calls("run")) == 1


def test_a_tool_that_dies_while_it_is_adopted_is_followed_by_one_that_resumes(bed: ZimitBed) -> None:
    bed.job()
    bed.engine.script(_hanging(bed), WHOLE)
    lease = bed.take()
    pid = os.fork()
    if pid == 0:
        bed.run(lease)
        os._exit(0)
    bed.engine.wait_for(bed.engine.root / "mark")
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)

    with bed.running(lease) as (_holding, ends):
        bed.engine.wait_until(lambda: "a tool that was left behind goes on" in bed.lines(lease.execution_id))
        holder = holder_of(lease.output_dir)
        assert holder
        os.kill(holder, signal.SIGKILL)

    [ending] = ends
    assert ending is not None
    assert (ending.result, len(bed.files()), len(bed.engine.calls("run"))) == (RunResult.COMPLETED, 2, 2)


def test_a_tool_that_does_not_end_in_time_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zimit, "_STOP_S", 1.0)
    mark = tmp_path / "mark"
    deaf = tmp_path / "deaf.py"
    deaf.write_text(
        "import pathlib, signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        f"pathlib.Path({str(mark)!r}).touch()\ntime.sleep(60)\n"
    )
    with open_zimit_bed(tmp_path, None, command=f"{sys.executable} {deaf}") as bed:
        bed.job()
        lease = bed.take()
        with bed.running(lease) as (holding, ends):
            bed.engine.wait_for(mark)
            holding.ask(StopReason.DRAIN)
        assert ends == [None]
        assert "the tool did not end in time and is killed" in bed.lines(lease.execution_id)


def test_a_crawl_that_ended_while_nobody_was_there_is_not_run_again(bed: ZimitBed) -> None:
    bed.job()
    bed.engine.script(WHOLE)
    lease = bed.take()
    assert bed.run(lease) is not None  # and the worker dies before it settles

    ending = bed.run(lease)

    assert ending is not None
    assert (ending.result, ending.index_state, len(bed.files())) == (RunResult.COMPLETED, "pending", 1)
    assert len(bed.engine.calls("run")) == 1


def test_a_tool_that_somebody_else_ends_is_handed_back(bed: ZimitBed) -> None:
    bed.job()
    bed.engine.script(_hanging(bed))
    lease = bed.take()
    with bed.running(lease) as (_holding, ends):
        bed.engine.wait_for(bed.engine.root / "mark")
        holder = holder_of(lease.output_dir)
        assert holder
        os.kill(holder, signal.SIGTERM)
    assert ends == [None]
    end = json.loads((lease.output_dir / ".archive_end.json").read_text())
    assert (end["state"], end["exit_code"]) == ("stopped", 1)
