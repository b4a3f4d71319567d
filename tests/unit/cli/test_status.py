"""What `holdfast status --json` says of a crawl that no process works on: the same as the words do."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from holdfast.cli.status import status
from holdfast.processes.owners import OwnerProcess
from holdfast.processes.runfile import RunFile
from tests.execution import begun_execution
from tests.typed import Typist


@pytest.mark.parametrize("execution", [1, None])
@pytest.mark.parametrize("is_worked_on", [True, False])
def test_a_crawl_that_no_process_works_on_is_told_as_that(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], execution: int | None, *, is_worked_on: bool
) -> None:
    with begun_execution(tmp_path) as made:
        runtime = made.runtime
        owner = OwnerProcess(
            runtime.raw_db, runtime.clock, run=RunFile(runtime.run_folder), kind="supervisor", execution_id=1
        )
        if not is_worked_on:
            owner.end()
        status(execution=execution, json=True, home=tmp_path)
        found = json.loads(capsys.readouterr().out)
        status(execution=execution, home=tmp_path)
        words = capsys.readouterr().out
        if is_worked_on:
            owner.end()

    shown = found if execution is not None else found["executions"][0]
    assert (shown["state"], shown["is_abandoned"]) == ("running", not is_worked_on)
    assert ("no process works on it" in words) is not is_worked_on


def test_a_crawl_that_no_process_works_on_is_not_watched_for_ever(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with begun_execution(tmp_path):
        ended = Typist(tmp_path, capsys)("status --watch")

    assert (ended.code, "no process works on it: the same crawl command resumes it" in ended.out) == (0, True)


def test_a_paused_run_that_was_handed_back_is_still_told_to_be_paused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with begun_execution(tmp_path) as made, made.runtime.raw_db.write() as tx:
        tx.execute("UPDATE executions SET state = 'queued', paused_at = 1, paused_by = 'ada' WHERE id = 1", ())
    words = Typist(tmp_path, capsys)("status 1").out

    assert ("queued" in words, "paused since 1970-01-01 00:00 UTC by ada; go on with: holdfast resume 1" in words) == (
        True,
        True,
    )


@pytest.mark.parametrize("how", ["held", "left", "queued"])
def test_a_run_that_nothing_works_on_is_not_said_to_go_on_when_it_is_resumed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], how: str
) -> None:
    with begun_execution(tmp_path) as made:
        runtime = made.runtime
        owner = OwnerProcess(
            runtime.raw_db, runtime.clock, run=RunFile(runtime.run_folder), kind="supervisor", execution_id=1
        )
        if how != "held":
            owner.end()
        with runtime.raw_db.write() as tx:
            tx.execute("UPDATE executions SET state = ?, paused_at = 1", ("queued" if how == "queued" else "running",))
        words = Typist(tmp_path, capsys)("resume 1").out
        again = Typist(tmp_path, capsys)("resume 1").out
        if how == "held":
            owner.end()

    assert words.startswith("execution 1 goes on after" if how == "held" else "execution 1 is paused no more")
    assert ("as soon as a worker, or the same crawl command, takes it up" in words) is (how != "held")
    assert again == "execution 1 is not paused\n"
