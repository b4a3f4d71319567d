"""How a supervisor reads the end of a run that was stopped before any process of it began."""

from __future__ import annotations

from pathlib import Path

from holdfast.jobs import executions
from holdfast.jobs.executions import read_ending
from holdfast.jobs.live import queries
from holdfast.types import Outcome
from holdfast.worker.stops import Stops
from holdfast.worker.supervisor import Supervisor
from tests.execution import Begin, begun_execution


def _stopped(made: Begin) -> tuple[str, str]:
    stops = Stops()
    stops.ask(1)
    supervisor = Supervisor(made.ground, made.begun, made.plan, workers=1, show=lambda status: None)
    reading = supervisor.crawl(stops).reading
    return reading.state, reading.reason


def _all_captured(made: Begin) -> None:
    ground, number = made.ground, made.begun.execution_id
    _stopped(made)  # adds the seeds
    ground.frontier.close_rest(number, outcome=Outcome.SUCCESS, reason="ok")


def _put_up_for_reading(made: Begin) -> None:
    with made.ground.hot.write() as tx:
        tx.execute("INSERT INTO rereads (execution_id, page_id, domain_id, depth)"
                   " SELECT execution_id, page_id, domain_id, 0 FROM page_crawls")  # fmt: skip


def test_pages_that_are_to_be_read_again_are_work_that_a_stop_leaves(tmp_path: Path) -> None:
    with begun_execution(tmp_path) as made:
        _all_captured(made)
        assert _stopped(made) == ("completed", "done")
        _put_up_for_reading(made)

        assert _stopped(made) == ("stopped", "stopped")


def test_pages_that_were_to_be_read_again_are_left_over_by_a_limit(tmp_path: Path) -> None:
    with begun_execution(tmp_path) as made:
        _all_captured(made)

        reading = read_ending(made.ground.hot, frontier_id=made.begun.frontier_id, unread={"max_time": 1})

        assert (reading.reason, reading.shortfalls) == ("max_time", {"max_time": 1})


def test_a_crawl_that_was_discarded_does_not_say_that_its_captures_are_kept(tmp_path: Path) -> None:
    with begun_execution(tmp_path) as made:
        executions.request_stop(made.ground.hot, execution_id=made.begun.execution_id, cancel=True)

        assert _stopped(made) == ("cancelled", "discarded")


def test_the_runs_before_a_retry_are_named_the_last_one_first(tmp_path: Path) -> None:
    with begun_execution(tmp_path) as made, made.ground.hot.write() as tx:
        first = made.begun.execution_id
        for number in (first + 1, first + 2):
            tx.execute(
                "INSERT INTO executions (id, job_id, number, state, config, output_dir, created_at, run_seconds,"
                " resumed_from) SELECT ?, job_id, ?, 'failed', '{}', '', created_at, 0, ? FROM executions WHERE id = ?",
                (number, number, number - 1, first),
            )

        assert queries.runs_before(tx, execution_id=first + 2) == [first + 1, first]
