"""The table of endings, row by row: what a job and its execution become; on both databases."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.db.models import Domain, Execution, ExecutionCount, Owner, Queue
from holdfast.jobs.administration.maintenance import DirectoryRun, next_due, running
from holdfast.jobs.endings import RULES, Counts, FailureCause, ReadingRule, Retry, RunEnding, RunResult
from holdfast.jobs.states import JobAction
from tests.clock import FakeClock
from tests.jobs_bed import Bed, open_bed

_FAILURES = {
    "storage": FailureCause.INFRA,
    "infra_error": FailureCause.INFRA,
    "infra_error_config": FailureCause.CONFIG,
    "lease_lost": FailureCause.LEASE_LOST,
    "no_runner": FailureCause.CONFIG,
}
_SETTLED = [rule for rule in RULES if rule.state in ("completed", "failed", "cancelled")]


@pytest.fixture
def bed(migrated_url: str, clock: FakeClock, tmp_path: Path) -> Iterator[Bed]:
    """One database with jobs that are tried twice at most."""
    with open_bed(migrated_url, clock, tmp_path, takeovers=3, infra_cooldown_s=600) as opened:
        yield opened


def _ending(rule: ReadingRule) -> RunEnding:
    failure = _FAILURES.get(rule.reason, FailureCause.FAILED) if rule.state == "failed" else None
    return RunEnding(result=RunResult(rule.state), reason=rule.reason, shortfalls={rule.reason: 3}, failure=failure)


@pytest.mark.parametrize("rule", _SETTLED, ids=lambda rule: f"{rule.state}-{rule.reason}")
def test_a_job_does_what_the_table_says(bed: Bed, rule: ReadingRule) -> None:
    job_id = bed.once(max_retries=1, retry_backoff_seconds=60)

    bed.run_once(job_id, _ending(rule))

    job, [run] = bed.job(job_id), bed.executions(job_id)
    assert (run.state, run.reason, run.shortfalls) == (rule.state, rule.reason, {rule.reason: 3})
    if rule.retry is Retry.NO:
        assert job.state == rule.state
        assert (job.current_retry_count, job.next_run_at) == (0, None)
        return
    wait = 60 if rule.retry is Retry.YES else 600
    assert job.next_run_at is not None
    assert (job.state, (job.next_run_at - bed.clock.now()).total_seconds()) == ("scheduled", wait)
    assert (job.current_retry_count, job.infra_retry_count) == ((1, 0) if wait == 60 else (0, 1))


def test_a_run_that_gave_up_hosts_is_tried_so_often_and_is_then_completed(bed: Bed, clock: FakeClock) -> None:
    job_id = bed.once(max_retries=2, retry_backoff_seconds=60)
    given_up = RunEnding(result=RunResult.COMPLETED, reason="hosts_given_up", shortfalls={"hosts_given_up": 1})
    for _ in range(3):
        bed.run_once(job_id, given_up)
        clock.advance(3600)

    runs = bed.executions(job_id)
    assert [run.resumed_from for run in runs] == [None, runs[0].id, runs[1].id]
    assert len({run.output_dir for run in runs}) == 1
    assert (bed.job(job_id).state, bed.job(job_id).current_retry_count) == ("completed", 0)


def test_a_poll_that_could_not_reach_a_host_waits_for_the_next_poll(bed: Bed) -> None:
    job_id = bed.once()
    bed.change(job_id, lambda job: setattr(job, "kind", "feed"))

    bed.run_once(
        job_id, RunEnding(result=RunResult.COMPLETED, reason="hosts_given_up", shortfalls={"hosts_given_up": 1})
    )

    assert bed.job(job_id).state == "completed"


def _lose(bed: Bed, clock: FakeClock, *, items: int) -> Execution:
    """Let a worker tell of so many pages and fall silent."""
    lease = bed.party.taken()
    bed.party.leases.report(lease, Counts(items_crawled=items), {})
    clock.advance(301)
    bed.party.scheduler.sweep()
    return bed.executions(lease.claim.job_id)[0]


def test_take_overs_are_forgiven_by_progress(bed: Bed, clock: FakeClock) -> None:
    job_id = bed.once()
    bed.party.scheduler.tick()

    counted = [_lose(bed, clock, items=items).takeovers for items in (0, 0, 0, 50, 50, 50, 80, 90, 100, 110)]

    assert counted == [1, 2, 3, 1, 2, 3, 1, 1, 1, 1]
    assert bed.executions(job_id)[0].state == "queued"


def test_a_run_that_loses_worker_after_worker_and_gets_nowhere_fails(bed: Bed, clock: FakeClock) -> None:
    job_id = bed.once(max_retries=0)
    bed.party.scheduler.tick()

    for _ in range(3):
        run = _lose(bed, clock, items=7)
        assert (run.state, run.reason) == ("queued", None)

    run = _lose(bed, clock, items=7)
    assert (run.state, run.reason, bed.job(job_id).state) == ("failed", "lease_lost", "failed")


def test_the_time_in_which_a_holder_was_dead_is_no_time_at_work(bed: Bed, clock: FakeClock) -> None:
    job_id = bed.once()
    bed.party.scheduler.tick()
    lease = bed.party.taken()
    clock.advance(100)
    bed.party.leases.renew(lease)
    clock.advance(86_400)
    bed.party.scheduler.sweep()

    [run] = bed.executions(job_id)
    assert (run.state, run.run_seconds) == ("queued", 100)


def test_what_a_holder_told_last_is_the_end_of_its_time_at_work(bed: Bed, clock: FakeClock) -> None:
    job_id = bed.once()
    bed.party.scheduler.tick()
    lease = bed.party.taken()
    clock.advance(10)
    bed.party.leases.renew(lease)
    clock.advance(15)
    bed.party.leases.report(lease, Counts(items_crawled=1), {})
    clock.advance(86_400)
    bed.party.scheduler.sweep()

    assert bed.executions(job_id)[0].run_seconds == 25


def _failed_once(bed: Bed, job_id: int) -> None:
    bed.run_once(job_id, RunEnding(result=RunResult.FAILED, failure=FailureCause.FAILED, reason="failed"))


def test_a_job_that_was_paused_between_two_tries_begins_anew(bed: Bed, clock: FakeClock) -> None:
    job_id = bed.recurring(max_retries=2)
    clock.advance(3600)
    _failed_once(bed, job_id)
    bed.party.act(job_id, JobAction.PAUSE)
    bed.party.act(job_id, JobAction.RESUME)
    clock.advance(3600)

    bed.run_once(job_id)

    assert [run.resumed_from for run in bed.executions(job_id)] == [None, None]


@pytest.mark.parametrize("max_retries", [0, 2])
def test_a_new_plan_is_no_retry_of_the_old_one(bed: Bed, clock: FakeClock, max_retries: int) -> None:
    job_id = bed.once(max_retries=max_retries)
    _failed_once(bed, job_id)

    bed.upsert(bed.source_of(job_id), max_retries=max_retries, config={"max_depth": 2})
    clock.advance(3600)
    bed.run_once(job_id)

    assert [run.resumed_from for run in bed.executions(job_id)] == [None, None]


def test_the_same_wish_again_leaves_a_retry_a_retry(bed: Bed, clock: FakeClock) -> None:
    job_id = bed.recurring(max_retries=2)
    clock.advance(3600)
    _failed_once(bed, job_id)

    bed.upsert(bed.source_of(job_id), interval_minutes=60, schedule_enabled=True, max_retries=2)
    clock.advance(3600)
    bed.run_once(job_id)

    first, second = bed.executions(job_id)
    assert second.resumed_from == first.id


def test_a_run_on_demand_begins_anew_and_a_retry_by_hand_does_not(bed: Bed, clock: FakeClock) -> None:
    job_id = bed.recurring(max_retries=0)
    clock.advance(3600)
    _failed_once(bed, job_id)
    bed.party.act(job_id, JobAction.RETRY)
    _failed_once(bed, job_id)
    bed.upsert(bed.source_of(job_id), interval_minutes=60, schedule_enabled=True, max_retries=0)
    bed.party.act(job_id, JobAction.FORCE_RUN)
    bed.run_once(job_id)

    first, second, third = bed.executions(job_id)
    assert (second.resumed_from, third.resumed_from) == (first.id, None)


def test_what_the_table_says_of_a_reason_holds_whatever_was_blamed(bed: Bed) -> None:
    job_id = bed.once(max_retries=1)

    bed.run_once(job_id, RunEnding(result=RunResult.FAILED, failure=FailureCause.FAILED, reason="no_runner"))

    assert bed.job(job_id).state == "failed"


def _retry(bed: Bed, clock: FakeClock) -> tuple[Execution, DirectoryRun]:
    """Return a first run that gave up hosts, and its retry, that runs and goes on with its frontier."""
    job_id = bed.once(max_retries=1)
    bed.run_once(job_id, RunEnding(result=RunResult.COMPLETED, reason="hosts_given_up", counts=Counts(items_crawled=5)))
    clock.advance(7200)
    bed.party.scheduler.tick()
    bed.party.taken()
    with bed.database.write() as session:
        first, retry = session.query(Execution).order_by(Execution.id)
        retry.frontier_id = first.id
        retry.items_crawled = 9
        session.add(
            Owner(id=7, kind="process", host="h", pid=1, run_file="r", started_at=clock.now(), heartbeat_at=clock.now())
        )
        session.flush()
        session.add(ExecutionCount(execution_id=first.id, owner_id=7, counts={}, updated_at=clock.now()))
        session.add(Domain(id=3, name="ex.example", created_at=clock.now()))
        session.flush()
        session.add(Queue(execution_id=first.id, domain_id=3, open=1, due_at=5_000_000))
    with bed.database.read() as session:
        [run] = running(session)
        return first, run


def test_a_retry_that_waits_for_its_turn_is_seen_to_have_something_to_ask_for(bed: Bed, clock: FakeClock) -> None:
    _first, run = _retry(bed, clock)

    with bed.database.read() as session:
        due = next_due(session, run)
    assert due is not None
