"""Stopping from outside: only what no process holds is ended here; on both databases."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.audit import audit_events
from holdfast.cli import crawl as cli_crawl
from holdfast.crawl.stopping import ask_to_stop, still_held
from holdfast.db.audit_events import acting_user
from holdfast.errors import Unavailable
from holdfast.jobs import executions
from holdfast.jobs.endings import RunEnding
from holdfast.jobs.leases import ExecutionLease
from holdfast.jobs.views.status import is_abandoned
from holdfast.processes.owners import OwnerProcess
from holdfast.processes.runfile import RunFile
from holdfast.sources.plan import CrawlPlan
from holdfast.wiring import Runtime, open_runtime
from holdfast.worker.runner import RunnerHolding
from tests.contract.frontier_bed import many
from tests.contract.worker_bed import DONE, WorkerBed


@pytest.fixture
def bed(migrated_url: str, tmp_path: Path) -> Iterator[WorkerBed]:
    """One database in a data directory."""
    made = WorkerBed(migrated_url, tmp_path)
    yield made
    made.database.close()


def _crawl(runtime: Runtime) -> int:
    plan = CrawlPlan(seeds=("https://a.example/",), contact="tests@example.org")
    wish = executions.ExecutionOptions(runtime.settings.home)
    begun = executions.begin(runtime.raw_db, runtime.clock, plan, wish, is_working=lambda _: False)
    runtime.frontier.add(begun.execution_id, many("a.example", 3))
    return begun.execution_id


def _state(runtime: Runtime, execution_id: int) -> tuple[str, str | None, int]:
    with runtime.raw_db.read() as tx:
        state, word = tx.execute("SELECT state, stop_requested FROM executions WHERE id = ?", (execution_id,))[0]
    return state, word, runtime.frontier.open_count(execution_id)


@pytest.mark.parametrize("kind", ["supervisor", "process"])
def test_a_crawl_with_a_live_process_elsewhere_is_left_a_word_and_nothing_of_it_is_touched(
    bed: WorkerBed, kind: str
) -> None:
    with open_runtime(bed.settings) as runtime:
        number = _crawl(runtime)
        run = RunFile(runtime.run_folder)
        there = OwnerProcess(runtime.raw_db, runtime.clock, run=run, kind=kind, execution_id=number)
        with runtime.raw_db.write() as tx:
            tx.execute("UPDATE owners SET host = 'far', run_file = '/far/x.run' WHERE id = ?", (there.id,))

        assert ask_to_stop(runtime, execution_id=number, cancel=True) == [number]

        assert _state(runtime, number) == ("running", "cancel", 3)
        [held] = still_held(runtime, [number])
        assert (held.is_silent, "far" in held.sentence()) == (False, True)
        there.end()


@pytest.mark.parametrize(("cancel", "state", "left"), [(False, "stopped", 3), (True, "cancelled", 0)])
def test_a_crawl_whose_processes_are_gone_is_ended_here(bed: WorkerBed, state: str, left: int, *, cancel: bool) -> None:
    with open_runtime(bed.settings) as runtime:
        number = _crawl(runtime)

        ask_to_stop(runtime, execution_id=number, cancel=cancel)

        assert _state(runtime, number) == (state, None, left)
        assert still_held(runtime, [number]) == []
        with runtime.raw_db.read() as tx:
            assert tx.execute("SELECT count(*) FROM owners WHERE ended_at IS NULL") == [(0,)]


@pytest.mark.parametrize("cancel", [False, True])
def test_who_asked_for_a_stop_and_whether_to_throw_away_stands_in_the_audit_log(
    bed: WorkerBed, *, cancel: bool
) -> None:
    with open_runtime(bed.settings) as runtime:
        number = _crawl(runtime)

        ask_to_stop(runtime, execution_id=None, cancel=cancel)

        with bed.database.read() as session:
            [event] = audit_events(session, action="execution.stop_asked")
    assert (event.actor, event.subject) == (acting_user(), f"execution {number}")
    assert event.detail == {"discard": cancel}


@pytest.mark.parametrize("cancel", [False, True])
def test_the_run_of_a_job_is_never_ended_from_outside(bed: WorkerBed, *, cancel: bool) -> None:
    job_id = bed.job("ex")
    seen: list[Any] = []

    def play(lease: ExecutionLease, _holding: RunnerHolding) -> RunEnding:
        with open_runtime(bed.settings) as runtime:
            runtime.frontier.add(lease.execution_id, many("a.example", 3))
            ask_to_stop(runtime, execution_id=lease.execution_id, cancel=cancel)
            seen.append(_state(runtime, lease.execution_id))
            seen.append(still_held(runtime, [lease.execution_id])[0].is_silent)
        return DONE

    bed.work(play)

    assert seen == [("running", "cancel" if cancel else "drain", 3), False]
    assert bed.get(job_id).state in ("completed", "scheduled")


def test_who_waits_for_the_end_waits_for_who_writes_it_and_for_nobody_else(bed: WorkerBed) -> None:
    with open_runtime(bed.settings) as runtime, open_runtime(bed.settings) as other:
        number = _crawl(runtime)
        run = RunFile(other.run_folder)
        there = OwnerProcess(other.raw_db, other.clock, run=run, kind="supervisor", execution_id=number)
        ending = executions.ExecutionEnding(number, "stopped", "stopped")
        going = threading.Timer(0.3, lambda: executions.end(other.raw_db, other.clock, ending, also=there.leave))
        going.start()

        assert cli_crawl._wait(runtime, [number], 60.0) == {number: "stopped"}

        going.join()
        there.end()
        with runtime.raw_db.write() as tx:
            tx.execute("UPDATE executions SET state = 'running' WHERE id = ?", (number,))
        with pytest.raises(Unavailable, match="no process works on it"):
            cli_crawl._wait(runtime, [number], 60.0)


@pytest.mark.parametrize(
    "is_said_to_be_left",
    [
        lambda runtime, number: bool(still_held(runtime, [number])),
        lambda runtime, number: is_abandoned(runtime.raw_db, runtime.clock, number, folder=runtime.run_folder),
    ],
    ids=["stop", "status"],
)
def test_who_leaves_while_it_is_looked_for_has_ended(
    bed: WorkerBed, monkeypatch: pytest.MonkeyPatch, is_said_to_be_left: Callable[[Runtime, int], bool]
) -> None:
    with open_runtime(bed.settings) as runtime, open_runtime(bed.settings) as other:
        number = _crawl(runtime)
        run = RunFile(other.run_folder)
        there = OwnerProcess(other.raw_db, other.clock, run=run, kind="supervisor", execution_id=number)
        ending = executions.ExecutionEnding(number, "stopped", "stopped")
        read, questions = runtime.raw_db.read, itertools.count(1)

        def leaving() -> Any:
            if next(questions) == 2:
                executions.end(other.raw_db, other.clock, ending, also=there.leave)
            return read()

        monkeypatch.setattr(runtime.raw_db, "read", leaving)

        assert not is_said_to_be_left(runtime, number)
        there.end()
