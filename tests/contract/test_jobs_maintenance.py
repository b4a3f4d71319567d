"""Looking after executions, as rows: second runs, raised options, verdicts of a backend, registered directories."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import select

from holdfast.db.engine import SessionClock
from holdfast.db.models import AuditEvent, Execution, Hold, Recovery
from holdfast.errors import Conflict, NotFound
from holdfast.jobs.administration import maintenance, recovering
from holdfast.jobs.administration.maintenance import (
    find_run,
    make_due,
    note_cleanup,
    note_storage,
    raise_options,
    run_again,
    running,
    take_to_restart,
)
from holdfast.jobs.endings import BackendVerdict, FailureCause, RunEnding, RunResult
from holdfast.jobs.imports import register_directory
from holdfast.jobs.settling import RunSettler
from holdfast.jobs.states import JobAction
from tests.clock import FakeClock
from tests.jobs_bed import DONE, Bed, failed, open_bed


@pytest.fixture
def bed(migrated_url: str, clock: FakeClock, tmp_path: Path) -> Iterator[Bed]:
    with open_bed(migrated_url, clock, tmp_path) as made:
        yield made


def _ended(bed: Bed, job_id: int, ending: RunEnding) -> Execution:
    bed.run_once(job_id, ending)
    return bed.executions(job_id)[-1]


def test_a_verdict_takes_the_place_of_the_budget_and_changes_the_job(bed: Bed) -> None:
    job_id = bed.once()
    promoted = {"zimit": {"execution_policy": {"capture_backend": "http_warc"}}}
    verdict = BackendVerdict(again=True, resets_count=True, job_config=promoted)
    first = _ended(
        bed, job_id, RunEnding(result=RunResult.FAILED, failure=FailureCause.FAILED, verdict=verdict, stage="promoted")
    )

    job = bed.job(job_id)
    assert (job.state, job.current_retry_count, job.config) == ("scheduled", 1, promoted)
    assert job.next_run_at == bed.clock.now()
    second = _ended(bed, job_id, RunEnding(result=RunResult.FAILED, verdict=BackendVerdict(again=False)))
    assert (second.resumed_from, second.output_dir, bed.job(job_id).state) == (first.id, first.output_dir, "failed")


@pytest.mark.parametrize("failure", [FailureCause.INFRA, FailureCause.CONFIG])
def test_a_verdict_is_not_heard_where_the_crawl_is_not_to_blame(bed: Bed, failure: FailureCause) -> None:
    job_id = bed.once()
    _ended(
        bed,
        job_id,
        RunEnding(result=RunResult.FAILED, failure=failure, verdict=BackendVerdict(again=True, resets_count=True)),
    )

    job = bed.job(job_id)
    assert (job.state, job.current_retry_count) == ("scheduled" if failure is FailureCause.INFRA else "failed", 0)


def test_files_beside_the_warc_files_are_kept_with_the_execution(bed: Bed) -> None:
    done = _ended(bed, bed.once(), RunEnding(result=RunResult.COMPLETED, artifacts={"combined_log": "a.log"}))

    assert done.artifacts == {"combined_log": "a.log"}


@pytest.mark.parametrize("ending", [DONE, failed(FailureCause.CONFIG)])
def test_a_job_whose_files_were_lost_goes_on_in_the_same_directory(bed: Bed, ending: RunEnding) -> None:
    job_id = bed.once()
    first = _ended(bed, job_id, ending)

    with bed.database.write() as session:
        assert run_again(session, bed.clock, job_id, reason="warcs_quarantined")
    again = _ended(bed, job_id, DONE)

    assert (again.resumed_from, again.output_dir) == (first.id, first.output_dir)
    assert bed.job(job_id).state == "completed"
    with bed.database.read() as session:
        assert [event.action for event in session.query(AuditEvent)][-1] == "job.run_again"


def test_a_retry_by_hand_goes_on_in_the_directory_where_it_failed(bed: Bed) -> None:
    job_id = bed.once()
    first = _ended(bed, job_id, failed(FailureCause.CONFIG))
    bed.party.act(job_id, JobAction.RETRY)

    second = _ended(bed, job_id, DONE)

    assert (second.resumed_from, second.output_dir, second.retry_attempt) == (first.id, first.output_dir, 0)


def test_a_job_that_waits_or_runs_is_not_sent_again(bed: Bed) -> None:
    job_id = bed.once()
    with bed.database.write() as session:
        assert not run_again(session, bed.clock, job_id, reason="x")
    bed.party.scheduler.tick()
    bed.party.taken()
    with pytest.raises(Conflict), bed.database.write() as session:
        run_again(session, bed.clock, job_id, reason="x")


def test_options_are_raised_once_and_audited(bed: Bed) -> None:
    job_id = bed.once(config={"zimit": {"tool_options": {"initial_workers": 2}}})

    for expected in (True, False):
        with bed.database.write() as session:
            assert raise_options(session, bed.clock, job_id, {"max_container_restarts": 20}, why="stalled") is expected
    assert bed.job(job_id).config["zimit"]["tool_options"] == {"initial_workers": 2, "max_container_restarts": 20}
    with bed.database.read() as session:
        [event] = session.query(AuditEvent).where(AuditEvent.action == "job.options_raised")
        assert event.detail["why"] == "stalled"


def test_a_waiting_job_is_made_due_but_no_annual_one_before_its_date(bed: Bed) -> None:
    job_id = bed.once()
    later = bed.clock.now() + timedelta(days=300)
    bed.set_next_run(job_id, later)
    bed.change(job_id, lambda job: setattr(job, "kind", "annual"))

    with pytest.raises(Conflict, match="before"), bed.database.write() as session:
        make_due(session, bed.clock, job_id)
    with bed.database.write() as session:
        make_due(session, bed.clock, job_id, force=True)
    assert bed.job(job_id).next_run_at == bed.clock.now()
    bed.run_once(job_id)
    with pytest.raises(Conflict, match="only one that waits"), bed.database.write() as session:
        make_due(session, bed.clock, job_id)


def test_a_directory_is_registered_once_and_waits_for_its_index(bed: Bed) -> None:
    with bed.database.write() as session:
        made = register_directory(session, bed.clock, source="old", name="old-1", output_dir="jobs/old-1")
    with pytest.raises(Conflict, match="is the directory of execution"), bed.database.write() as session:
        register_directory(session, bed.clock, source="old", name=None, output_dir="jobs/old-1")
    with bed.database.write() as session:
        other = register_directory(session, bed.clock, source="old", name=None, output_dir="jobs/old-2")

    assert (made.state, made.index_state, made.config["backend"]) == ("completed", "pending", "zimit")
    assert other.job_id != made.job_id
    with bed.database.read() as session:
        assert find_run(session, job_id=made.job_id).execution.id == made.id
        assert [run.execution.id for run in maintenance.runs_of_source(session, source="old", limit=9)] == [
            other.id,
            made.id,
        ]


def test_a_run_is_found_by_its_job_or_its_number(bed: Bed) -> None:
    job_id = bed.once()
    with bed.database.read() as session, pytest.raises(NotFound, match="has not run yet"):
        find_run(session, job_id=job_id)
    done = _ended(bed, job_id, DONE)

    with bed.database.read() as session:
        assert find_run(session, job_id=job_id).execution.id == done.id
        assert find_run(session, execution_id=done.id).job.id == job_id
        for wrong in ({"job_id": 77}, {"execution_id": 77}, {}):
            with pytest.raises(NotFound):
                find_run(session, **wrong)


def test_weight_and_clean_up_are_noted(bed: Bed) -> None:
    done = _ended(
        bed, bed.once(), RunEnding(result=RunResult.COMPLETED, artifacts={"state_file": "s", "combined_log": "l"})
    )

    with bed.database.write() as session:
        note_storage(session, bed.clock, done.id, {"warc_bytes": 7})
        note_cleanup(session, bed.clock, done.id, "temp_cleaned")
    [row] = bed.executions(done.job_id)
    assert (row.storage["warc_bytes"], row.cleanup_status, row.artifacts) == (7, "temp_cleaned", {"combined_log": "l"})
    assert row.cleaned_at == bed.clock.now()


def test_those_are_seen_that_run_and_those_that_wait_out_a_backoff(bed: Bed) -> None:
    bed.once("a"), bed.once("b")
    bed.party.scheduler.tick()
    first, second = bed.party.taken(), bed.party.taken("w2")
    with bed.database.read() as session:
        assert [run.job.id for run in maintenance.running(session)] == [first.claim.job_id, second.claim.job_id]
        assert maintenance.busy_count(session) == 2
    bed.party.leases.settle(first, failed(FailureCause.INFRA))
    bed.party.leases.settle(second, failed())
    with bed.database.write() as session:
        assert [job.id for job in maintenance.waiting(session, after=bed.clock.now(), limit=5)] == [second.claim.job_id]
        assert maintenance.busy_count(session) == 0


def test_a_directory_is_wanted_by_what_is_to_go_on_there(bed: Bed) -> None:
    job_id = bed.once()
    first = _ended(bed, job_id, failed())

    def is_wanted() -> bool:
        with bed.database.read() as session:
            return maintenance.is_wanted(session, job_id=job_id, output_dir=first.output_dir)

    assert not is_wanted()
    bed.set_next_run(job_id, bed.clock.now())
    bed.party.scheduler.tick()
    assert is_wanted()
    bed.party.leases.settle(bed.party.taken(), DONE)
    assert not is_wanted()


def test_notes_of_recoveries_are_forgotten_once_they_decide_nothing(bed: Bed, clock: FakeClock) -> None:
    def note() -> None:
        with bed.database.write() as session:
            recovering.add_recovery(session, Recovery(job_id=1, at=clock.now(), action="seen_slow"))

    for _ in range(30):
        note()
    clock.advance(31 * 86400)
    note()
    note()

    with bed.database.read() as session:
        assert [row.at for row in session.scalars(select(Recovery))] == [clock.now()] * 2


def test_a_hold_that_is_taken_ends_by_the_clock_of_the_database_and_not_by_a_kept_reading(
    bed: Bed, clock: FakeClock
) -> None:
    bed.once()
    bed.party.scheduler.tick()
    bed.party.taken()
    kept = SessionClock(clock)
    read_at = kept.now()
    clock.shift_wall(100)

    with bed.database.write() as session:
        (run,) = running(session)
        settler = RunSettler(bed.all_settings, bed.party.placement)
        assert take_to_restart(session, kept, settler, run, reason="auto_recover")

    with bed.database.read() as session:
        ended_at = session.scalars(select(Hold.ended_at)).one()
    assert ended_at is not None
    assert ended_at >= read_at + timedelta(seconds=100)
