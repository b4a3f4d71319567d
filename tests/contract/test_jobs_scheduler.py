"""The scheduler and the leases on both databases: turns, fencing, retries, adaptive intervals, pruning, metrics."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import event, update

from holdfast.db.models import Execution
from holdfast.errors import LeaseLost
from holdfast.jobs.endings import Counts, FailureCause, RunEnding, RunResult, StartPage
from holdfast.jobs.leases import ExecutionLease, ExecutionLeases
from holdfast.jobs.schedule_queries import LeaseClaim
from holdfast.jobs.states import JobAction, State
from tests.clock import FakeClock
from tests.jobs_bed import DONE, Bed, end_holder, failed, holder, open_bed, unchanged

HOUR = timedelta(hours=1)


@pytest.fixture
def bed(migrated_url: str, clock: FakeClock, tmp_path: Path) -> Iterator[Bed]:
    with open_bed(migrated_url, clock, tmp_path) as opened:
        yield opened


def _writes(leases: ExecutionLeases) -> tuple[Callable[[ExecutionLease], object], ...]:
    """Return all that a holder can do to what it holds."""
    return leases.renew, leases.release, lambda held: leases.settle(held, DONE)


def test_a_due_job_becomes_one_queued_execution(bed: Bed, clock: FakeClock) -> None:
    job_id = bed.once()
    due = bed.job(job_id).next_run_at
    first, second = bed.party.scheduler.tick(), bed.party.scheduler.tick()

    (execution,) = bed.executions(job_id)
    assert (first.queued, second.queued) == ({job_id: execution.id}, {})
    assert (execution.state, execution.number, execution.due_at, execution.queued_at) == ("queued", 1, due, due)
    assert (bed.job(job_id).state, bed.job(job_id).next_run_at) == ("pending", None)


def test_nothing_is_queued_before_its_time(bed: Bed, clock: FakeClock) -> None:
    job_id = bed.recurring()
    bed.set_next_run(job_id, clock.now() + timedelta(seconds=1))

    assert bed.party.scheduler.tick().queued == {}
    clock.advance(1)
    assert list(bed.party.scheduler.tick().queued) == [job_id]


def test_a_look_queues_a_hundred_at_most_earliest_first(
    bed: Bed, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.jobs.scheduler.BATCH", 3)
    party = bed.another()
    ids = [bed.once(f"s{n}") for n in range(5)]
    for number, job_id in enumerate(ids):
        bed.set_next_run(job_id, clock.now() - timedelta(seconds=number))

    assert set(party.scheduler.tick().queued) == set(ids[2:])
    assert set(party.scheduler.tick().queued) == set(ids[:2])


def test_the_unique_key_has_the_last_word(bed: Bed, clock: FakeClock) -> None:
    job_id = bed.recurring()
    turn = clock.now()
    bed.set_next_run(job_id, turn)
    bed.run_once(job_id)
    bed.set_next_run(job_id, turn)  # as a clock that was set back would have it

    assert bed.party.scheduler.tick().queued == {}
    assert len(bed.executions(job_id)) == 1
    clock.advance(1)
    assert list(bed.party.scheduler.tick().queued) == [job_id]  # and the job is not stuck


def test_the_longest_waiting_is_taken_first_and_only_once(bed: Bed, clock: FakeClock) -> None:
    ids = []
    for code in ("a", "b"):
        ids.append(bed.once(code))
        clock.advance(1)
    bed.party.scheduler.tick()
    other = bed.another()
    first, second = bed.party.taken("w1"), other.taken("w2")

    assert [first.claim.job_id, second.claim.job_id] == ids
    assert bed.party.leases.take(holder(bed.party.database, "w3")) is None
    assert bed.job(ids[0]).state == "running"
    assert (bed.job(ids[0]).lock_owner, bed.job(ids[0]).lock_epoch) == (first.owner, 1)
    assert first.output_dir.parent == bed.home.resolve() / "warcs" / "a"
    assert not first.resumed


def test_a_finished_run_is_written_down(bed: Bed, clock: FakeClock) -> None:
    job_id = bed.recurring(minutes=60)
    turn = clock.now()
    bed.set_next_run(job_id, turn)
    counts = Counts(items_crawled=7, items_indexed=5, items_failed=1, items_total=8, cpu_ms=90, peak_memory_bytes=2**20)
    ending = RunEnding(result=RunResult.COMPLETED, counts=counts, metrics={"requests_total": 9}, index_state="pending")
    bed.run_once(job_id, ending, seconds=90)

    job, (execution,) = bed.job(job_id), bed.executions(job_id)
    assert (execution.state, execution.duration_ms, execution.items_crawled, execution.cpu_ms) == (
        "completed",
        90_000,
        7,
        90,
    )
    assert (execution.items_total, execution.peak_memory_bytes, execution.metrics) == (8, 2**20, {"requests_total": 9})
    assert (execution.run_seconds, execution.index_state) == (90.0, "pending")
    assert (job.state, job.lock_token, job.next_run_at) == ("scheduled", None, turn + HOUR)
    assert (job.total_runs, job.successful_runs, job.failed_runs, job.total_duration_ms) == (1, 1, 0, 90_000)
    assert bed.events(job_id)[1:] == [
        "job:status scheduled",
        "job:status running",
        "job:completed completed",
        "job:status completed",
        "job:status scheduled",
    ]
    assert bed.holds(job_id) == [("w1", "settled")]


def test_a_one_time_job_is_completed_for_good(bed: Bed, clock: FakeClock) -> None:
    job_id = bed.once()
    bed.run_once(job_id)
    clock.advance(10**6)

    assert (bed.job(job_id).state, bed.party.scheduler.tick().queued) == ("completed", {})


def test_failures_wait_longer_each_time_and_end(bed: Bed, clock: FakeClock) -> None:
    job_id = bed.recurring()
    turn = clock.now()
    bed.set_next_run(job_id, turn)
    waits = []
    for attempt in range(4):
        bed.run_once(job_id, failed(), seconds=0)
        job = bed.job(job_id)
        if job.next_run_at is not None:
            waits.append((job.next_run_at - clock.now()).total_seconds())
            assert (job.state, job.current_retry_count) == ("scheduled", attempt + 1)
            clock.advance(waits[-1])

    executions = bed.executions(job_id)
    assert waits == [60, 120, 240]
    assert (job.state, job.error_message, job.failed_runs) == ("failed", "it broke", 4)
    assert [e.retry_attempt for e in executions] == [0, 1, 2, 3]
    assert [e.resumed_from for e in executions] == [None, *(e.id for e in executions[:3])]
    assert len({e.output_dir for e in executions}) == 1  # a retry goes on in the same directory
    assert (executions[0].failure, executions[0].stack) == ("failed", "Traceback")


@pytest.mark.parametrize(("rest_s", "waits_s"), [(-5, 60), (30, 60), (1800, 1800), (90_000, 3600)])
def test_a_retry_waits_until_what_was_unreachable_may_be_asked_again(
    bed: Bed, clock: FakeClock, rest_s: int, waits_s: int
) -> None:
    job_id = bed.once()
    bed.party.scheduler.tick()
    ending = replace(failed(), not_before=clock.now() + timedelta(seconds=rest_s))
    bed.party.leases.settle(bed.party.taken(), ending)

    assert bed.job(job_id).next_run_at == clock.now() + timedelta(seconds=waits_s)


def test_a_success_after_a_retry_keeps_the_rhythm(bed: Bed, clock: FakeClock) -> None:
    job_id = bed.recurring(minutes=60)
    turn = clock.now()
    bed.set_next_run(job_id, turn)
    bed.run_once(job_id, failed())
    clock.advance(60)
    bed.run_once(job_id)

    assert (bed.job(job_id).next_run_at, bed.job(job_id).current_retry_count) == (turn + HOUR, 0)


def test_the_machines_fault_burns_no_retry_and_a_wrong_configuration_no_time(bed: Bed, clock: FakeClock) -> None:
    infra, config = bed.once("a"), bed.once("b")
    bed.run_once(infra, failed(FailureCause.INFRA), seconds=0)
    bed.run_once(config, failed(FailureCause.CONFIG), seconds=0)

    job = bed.job(infra)
    assert (job.state, job.current_retry_count, job.infra_retry_count) == ("scheduled", 0, 1)
    assert job.next_run_at == clock.now() + timedelta(minutes=10)
    assert bed.job(config).state == "failed"


def test_a_page_that_does_not_change_is_looked_at_less_often(bed: Bed, clock: FakeClock) -> None:
    job_id = bed.recurring(minutes=60)
    bed.set_next_run(job_id, clock.now())
    gaps = []
    for ending in (
        unchanged(),
        unchanged(),
        RunEnding(result=RunResult.COMPLETED, start=StartPage(not_modified=True)),
        unchanged(),
        DONE,
        unchanged("b"),
    ):
        before = clock.now()
        bed.run_once(job_id, ending, seconds=0)
        due = bed.job(job_id).next_run_at
        assert due is not None
        gaps.append((due - before) / HOUR)
        clock.advance((due - clock.now()).total_seconds())

    assert gaps == [1, 2, 4, 8, 8, 1]


def test_a_page_that_a_run_on_demand_finds_changed_is_looked_at_as_often_as_ever(bed: Bed, clock: FakeClock) -> None:
    job_id = bed.recurring(minutes=60)
    bed.set_next_run(job_id, clock.now())
    for _ in range(4):
        bed.run_once(job_id, unchanged(), seconds=0)
        due = bed.job(job_id).next_run_at
        assert due is not None
        clock.advance(min(due - clock.now(), HOUR).total_seconds())
        if due > clock.now():
            bed.party.act(job_id, JobAction.FORCE_RUN)

    bed.run_once(job_id, unchanged("b"), seconds=0)

    following = bed.job(job_id).next_run_at
    assert following is not None
    assert timedelta() < following - clock.now() <= HOUR


def test_a_clock_that_was_ten_years_ahead_lets_no_job_wait_for_it_after_its_next_run(
    bed: Bed, clock: FakeClock
) -> None:
    job_id = bed.recurring(minutes=60, adaptive_scheduling=False)
    clock.shift_wall(3650 * 86_400)
    bed.run_once(job_id, seconds=0)
    clock.shift_wall(-3650 * 86_400)
    clock.advance(60)
    bed.party.act(job_id, JobAction.FORCE_RUN)

    bed.run_once(job_id, seconds=0)

    following = bed.job(job_id).next_run_at
    assert following is not None
    assert timedelta() < following - clock.now() <= HOUR


def test_a_fixed_interval_stays_fixed(bed: Bed, clock: FakeClock) -> None:
    job_id = bed.recurring(minutes=60, adaptive_scheduling=False)
    bed.set_next_run(job_id, clock.now())
    bed.run_once(job_id, unchanged(), seconds=0)
    clock.advance(3600)
    bed.run_once(job_id, unchanged(), seconds=0)

    assert bed.job(job_id).next_run_at == clock.now() + HOUR


def test_turns_that_were_missed_are_not_made_up_for(bed: Bed, clock: FakeClock) -> None:
    job_id = bed.recurring(minutes=60)
    turn = clock.now()
    bed.set_next_run(job_id, turn)
    clock.advance(5 * 3600 + 60)
    bed.run_once(job_id)

    assert bed.job(job_id).next_run_at == turn + 6 * HOUR
    assert len(bed.executions(job_id)) == 1


def test_only_the_holder_may_renew_release_or_settle(bed: Bed) -> None:
    job_id = bed.once()
    bed.party.scheduler.tick()
    lease = bed.party.taken()
    claim = lease.claim
    for wrong in (claim._replace(token="0" * 32), claim._replace(epoch=claim.epoch + 1), LeaseClaim(999, *claim[1:])):
        stranger = type(lease)(**{name: getattr(lease, name) for name in lease.__slots__} | {"claim": wrong})
        for call in (
            bed.party.leases.renew,
            bed.party.leases.release,
            lambda held: bed.party.leases.settle(held, DONE),
        ):
            with pytest.raises(LeaseLost):
                call(stranger)

    assert bed.job(job_id).lock_token == claim.token
    assert bed.party.leases.settle(lease, DONE) is State.COMPLETED


def test_worker_that_is_back_keeps_its_new_lease(bed: Bed) -> None:
    bed.once()
    bed.party.scheduler.tick()
    end_holder(bed.database, "w1")

    lease = bed.party.taken("w1")

    assert bed.party.scheduler.sweep() == 0
    bed.party.leases.renew(lease)


def test_a_lock_is_stale_five_minutes_after_its_last_heartbeat(bed: Bed, clock: FakeClock) -> None:
    job_id = bed.once()
    bed.party.scheduler.tick()
    lease = bed.party.taken()
    for _ in range(4):
        clock.advance(299)
        bed.party.leases.renew(lease)
    clock.advance(300)
    assert bed.party.scheduler.sweep() == 0
    clock.advance(1)
    assert bed.party.scheduler.sweep() == 1

    (execution,) = bed.executions(job_id)
    assert (execution.state, execution.takeovers, bed.job(job_id).state) == ("queued", 1, "scheduled")
    with pytest.raises(LeaseLost):
        bed.party.leases.renew(lease)


def test_a_late_owner_cannot_touch_what_the_new_one_holds(bed: Bed, clock: FakeClock) -> None:
    job_id = bed.once()
    bed.party.scheduler.tick()
    late, other = bed.party.taken("late"), bed.another()
    clock.advance(301)
    other.scheduler.sweep()
    fresh = other.taken("new")
    assert (fresh.execution_id, fresh.claim.epoch, fresh.resumed) == (late.execution_id, 2, True)
    assert fresh.output_dir == late.output_dir

    for call in _writes(bed.party.leases):
        with pytest.raises(LeaseLost):
            call(late)
    assert (bed.job(job_id).lock_token, bed.job(job_id).lock_owner) == (fresh.claim.token, fresh.owner)
    other.leases.settle(fresh, DONE)
    assert bed.holds(job_id) == [("late", "lease_lost"), ("new", "settled")]
    assert [e.state for e in bed.executions(job_id)] == ["completed"]


def test_a_start_steals_nothing_from_the_living(bed: Bed, clock: FakeClock) -> None:
    ids = [bed.once(f"s{n}") for n in range(10)]
    bed.party.scheduler.tick()
    leases = [bed.party.taken(f"w{n}") for n in range(10)]
    clock.advance(60)

    assert bed.another().scheduler.start() == 0
    assert [bed.job(job_id).state for job_id in ids] == ["running"] * 10
    # but one whose owner has ended is taken over at once
    end_holder(bed.database, "w3")
    assert bed.another().scheduler.start() == 1
    assert [bed.job(job_id).state for job_id in ids].count("running") == 9
    for number, lease in enumerate(leases):
        if number != 3:
            bed.party.leases.settle(lease, DONE)


def test_start_queues_a_running_job_without_a_holder(bed: Bed) -> None:
    job_id = bed.once()
    bed.party.scheduler.tick()
    bed.party.taken("w1")
    bed.change(job_id, lambda job: setattr(job, "lock_token", None))

    assert bed.another().scheduler.sweep() == 0, "only a start searches for them"
    assert bed.another().scheduler.start() == 1
    assert [run.state for run in bed.executions(job_id)] == ["queued"]


def test_an_execution_whose_owners_keep_dying_fails(bed: Bed, clock: FakeClock) -> None:
    job_id = bed.once(max_retries=0)
    bed.party.scheduler.tick()
    for _ in range(4):
        bed.party.taken()
        clock.advance(301)
        bed.party.scheduler.sweep()

    (execution,) = bed.executions(job_id)
    assert (execution.state, execution.failure, execution.takeovers) == ("failed", "lease_lost", 4)
    assert bed.job(job_id).state == "failed"


def test_a_running_job_without_a_holder_is_put_back(bed: Bed) -> None:
    job_id = bed.once()
    bed.change(job_id, lambda job: setattr(job, "state", "running"))
    bed.set_next_run(job_id, None)

    assert bed.party.scheduler.start() == 1
    assert list(bed.party.scheduler.tick().queued) == [job_id]


def test_a_queued_execution_that_nobody_can_begin_blocks_nobody(bed: Bed, clock: FakeClock) -> None:
    stray = bed.once("a")
    clock.advance(1)
    good = bed.once("b")
    bed.party.scheduler.tick()
    bed.change(stray, lambda job: setattr(job, "state", "failed"))

    assert bed.party.taken().claim.job_id == good
    assert [(e.state, e.reason) for e in bed.executions(stray)] == [("cancelled", "stray")]


def test_a_released_execution_goes_on_with_the_next(bed: Bed, clock: FakeClock) -> None:
    job_id = bed.once()
    bed.party.scheduler.tick()
    lease = bed.party.taken("w1")
    clock.advance(30)
    bed.party.leases.release(lease)
    again = bed.party.taken("w2")

    assert (again.execution_id, again.resumed) == (lease.execution_id, True)
    assert bed.executions(job_id)[0].takeovers == 0
    clock.advance(30)
    bed.party.leases.settle(again, DONE)
    assert bed.executions(job_id)[0].run_seconds == 60.0


def test_an_execution_queued_for_later_waits_for_its_date(bed: Bed, clock: FakeClock) -> None:
    job_id = bed.once()
    bed.party.scheduler.tick()
    with bed.database.write() as session:
        session.execute(update(Execution).values(queued_at=clock.now() + timedelta(days=1)))

    assert bed.party.leases.take(holder(bed.party.database, "w1")) is None
    clock.advance(86400)
    assert bed.party.taken().claim.job_id == job_id


class _AfterTicks:
    """Ends the loop of a scheduler after some ticks, without waiting for any."""

    def __init__(self, ticks: int) -> None:
        self._left = ticks

    def wait(self, _seconds: float | None = None) -> bool:
        """Return whether it is over."""
        self._left -= 1
        return self._left < 0


def test_a_tick_that_fails_in_a_way_that_was_not_foreseen_does_not_end_the_schedule(bed: Bed, clock: FakeClock) -> None:
    told: list[int] = []

    def tell() -> None:
        told.append(len(told))
        if len(told) == 1:
            raise RuntimeError("not foreseen")

    bed.party.scheduler.run(_AfterTicks(3), on_tick=tell)

    assert told == [0, 1, 2]


def test_a_cancellation_between_two_questions_of_one_look_is_never_taken_for_a_stop(bed: Bed, clock: FakeClock) -> None:
    job_id, other = bed.once(), bed.another()
    clock.advance(1)
    bed.party.scheduler.tick()
    lease = bed.party.taken("w1")
    asked: list[str] = []

    def cancel(*told: object) -> None:
        if str(told[2]).startswith("SELECT"):
            asked.append(str(told[2]))
        if len(asked) == 1:
            other.act(job_id, JobAction.CANCEL)

    event.listen(bed.database.engine, "after_cursor_execute", cancel)
    words = [bed.party.leases.poll_signals(lease), bed.party.leases.poll_signals(lease)]

    assert len(asked) == 4
    assert [word for word in words if word.stop and not word.cancelled] == []
    assert words[1].cancelled
