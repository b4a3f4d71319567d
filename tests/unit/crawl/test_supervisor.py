"""How a supervisor reads the end of a run that was stopped before any process of it began."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.crawl.recovery import discard
from holdfast.crawl.stopping import Stops
from holdfast.crawl.supervisor import Supervisor
from holdfast.jobs import executions
from holdfast.jobs.executions import read_ending
from holdfast.storage.store import FileKey
from holdfast.types import Outcome
from holdfast.warc import queries as files
from holdfast.worker.native import frontier_for
from tests.execution import Begin, begun_execution


def _stopped(made: Begin) -> tuple[str, str]:
    stops = Stops()
    stops.ask(1)
    supervisor = Supervisor(made.runtime, made.begun, made.plan, workers=1, show=lambda status: None)
    reading = supervisor.crawl(stops).reading
    return reading.state, reading.reason


def _all_captured(made: Begin) -> None:
    runtime, number = made.runtime, made.begun.execution_id
    _stopped(made)  # adds the seeds
    runtime.frontier.close_rest(number, outcome=Outcome.SUCCESS, reason="ok")


def _put_up_for_reading(made: Begin) -> None:
    with made.runtime.raw_db.write() as tx:
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

        reading = read_ending(made.runtime.raw_db, tmp_path, execution_id=1, unread={"max_time": 1})

        assert (reading.reason, reading.shortfalls) == ("max_time", {"max_time": 1})


@pytest.mark.parametrize("word", ["crashed", "storage"])
def test_run_that_crashed_or_had_no_room_names_earlier_shortfalls(tmp_path: Path, word: str) -> None:
    with begun_execution(tmp_path) as made:
        runtime, number = made.runtime, made.begun.execution_id
        _stopped(made)  # adds the seeds
        runtime.frontier.close_rest(number, outcome=Outcome.FAILED, reason="domain_unreachable")
        supervisor = Supervisor(runtime, made.begun, made.plan, workers=1, show=lambda status: None)
        if word == "crashed":
            supervisor._failure = "8 processes died in a row"
        else:
            supervisor._endings.append(word)

        reading = supervisor._conclude().reading

        assert (reading.state, reading.reason) == ("failed", word)
        assert reading.shortfalls == {word: 0, "hosts_given_up": 1}


def test_a_crawl_that_was_discarded_does_not_say_that_its_captures_are_kept(tmp_path: Path) -> None:
    with begun_execution(tmp_path) as made:
        executions.request_stop(
            made.runtime.raw_db, made.runtime.clock, execution_id=made.begun.execution_id, cancel=True
        )

        assert _stopped(made) == ("cancelled", "discarded")


def test_a_supervisor_whose_execution_was_ended_by_another_process_leaves_its_row_alone(tmp_path: Path) -> None:
    with begun_execution(tmp_path) as made:
        runtime, number = made.runtime, made.begun.execution_id
        executions.end(runtime.raw_db, runtime.clock, executions.ExecutionEnding(number, "cancelled", "discarded"))

        assert _stopped(made) == ("stopped", "abandoned")


def test_a_supervisor_is_there_until_its_ending_is_written_and_leaves_with_it(tmp_path: Path) -> None:
    with begun_execution(tmp_path) as made:
        runtime, number = made.runtime, made.begun.execution_id
        executions.request_stop(runtime.raw_db, runtime.clock, execution_id=number, cancel=False)
        with runtime.raw_db.write() as tx:
            tx.execute("CREATE TABLE seen (state TEXT, owners INTEGER)")
            # Who looks at the very moment at which either is written.
            for table, column in (("executions", "state"), ("owners", "ended_at")):
                tx.execute(
                    f"CREATE TRIGGER see_{table} AFTER UPDATE OF {column} ON {table} BEGIN INSERT INTO seen SELECT"
                    f" e.state, (SELECT count(*) FROM owners WHERE ended_at IS NULL) FROM executions e; END"
                )

        status = Supervisor(runtime, made.begun, made.plan, workers=0, show=lambda status: None).run()

        with runtime.raw_db.read() as tx:
            assert tx.execute("SELECT * FROM seen") == [("stopped", 1), ("stopped", 0)]
        assert (status.execution_id, status.state) == (number, "stopped")


def _retried(made: Begin) -> tuple[int, int]:
    """Return a run and the second retry after it; the one between never came to a frontier."""
    first = made.begun.execution_id
    with made.runtime.raw_db.write() as tx:
        tx.execute("UPDATE executions SET state = 'failed' WHERE id = ?", (first,))
        for number in (first + 1, first + 2):
            tx.execute(
                "INSERT INTO executions (id, job_id, number, state, config, output_dir, created_at, run_seconds,"
                " resumed_from) SELECT ?, job_id, ?, 'failed', '{}', '', created_at, 0, ? FROM executions WHERE id = ?",
                (number, number, number - 1, first),
            )
    return first, first + 2


def test_a_retry_goes_on_with_the_last_frontier_that_there_is(tmp_path: Path) -> None:
    with begun_execution(tmp_path) as made:
        _all_captured(made)
        first, retry = _retried(made)

        assert frontier_for(made.runtime, retry) == first


def test_a_retry_asks_for_everything_again_where_files_with_captures_were_struck_out(tmp_path: Path) -> None:
    with begun_execution(tmp_path) as made:
        _all_captured(made)
        first, retry = _retried(made)
        with made.runtime.raw_db.write() as tx:
            owner_id = tx.execute("SELECT max(id) FROM owners")[0][0]
            file_id = files.insert_file(
                tx, execution_id=first, owner_id=owner_id, key=FileKey("warcs/a.warc.gz"), now=0
            )
            tx.execute("UPDATE page_crawls SET warc_file_id = ?, warc_offset = 0", (file_id,))
            files.discard_file(tx, file_id)

        assert frontier_for(made.runtime, retry) == retry


def test_a_retry_that_is_discarded_takes_the_signals_of_its_frontier_along(tmp_path: Path) -> None:
    with begun_execution(tmp_path) as made:
        _all_captured(made)
        _first, retry = _retried(made)
        frontier_for(made.runtime, retry)
        with made.runtime.raw_db.write() as tx:
            tx.execute(
                "INSERT INTO signal_pages (page_id, source_id, execution_id, fetched_at, status_code, word_count)"
                " SELECT c.page_id, j.source_id, c.execution_id, 0, 200, 0 FROM page_crawls c"
                " JOIN executions e ON e.id = c.execution_id JOIN jobs j ON j.id = e.job_id"
            )

        discard(made.runtime, retry)

        with made.runtime.raw_db.read() as tx:
            assert tx.execute("SELECT count(*) FROM signal_pages")[0][0] == 0
