"""Slots, number by number."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.db.models import Job
from holdfast.jobs.slots import (
    SLOT,
    MovedJob,
    Reason,
    SlotTable,
    distribution,
    next_turn,
    plan_rebalance,
    refusal,
    score_of,
    slot_of,
    start_of,
)
from tests.patience import Calls

NOW = datetime(2026, 9, 1, 12, 7, 30, tzinfo=UTC)
HOUR = timedelta(hours=1)
MINUTE = timedelta(minutes=1)


def scheduled(*, interval: timedelta, state: str = "scheduled", **columns: object) -> Job:
    return Job(
        interval_minutes=interval // MINUTE, interval_type="minutes", schedule_enabled=True, state=state, **columns
    )


def at(hours: float) -> datetime:
    """Return a moment so many hours after noon."""
    return datetime(2026, 9, 1, 12, tzinfo=UTC) + timedelta(hours=hours)


def test_a_slot_is_a_quarter_of_an_hour() -> None:
    assert slot_of(at(0)) == int(at(0).timestamp()) // 900
    assert slot_of(at(0.25)) == slot_of(at(0)) + 1
    assert slot_of(at(0.25) - timedelta(microseconds=1)) == slot_of(at(0))
    assert start_of(slot_of(NOW)) == at(0)


def test_the_earliest_of_the_emptiest_slots_is_chosen() -> None:
    table = SlotTable()
    for job_id, hours in enumerate([0, 0, 0.25, 0.5, 0.5, 1.0]):
        table.put(job_id, at(hours))

    first = slot_of(at(0))
    assert table.least_loaded(first, first + 4) == first + 3
    assert table.least_loaded(first, first + 2) == first + 1
    assert table.least_loaded(first, first) == first


def test_a_job_stands_in_one_slot_only() -> None:
    table = SlotTable()
    table.put(1, at(0))
    table.put(1, at(1))
    assert (table.load(slot_of(at(0))), table.load(slot_of(at(1))), len(table)) == (0, 1, 1)

    table.remove(1)
    table.remove(1)
    assert (table.load(slot_of(at(1))), len(table)) == (0, 0)


def test_a_place_is_never_in_the_past() -> None:
    table = SlotTable()

    assert table.place(HOUR, now=NOW) == NOW  # the slot that has begun: now, not its start
    table.put(1, NOW)
    assert table.place(HOUR, now=NOW) == at(0.25)


@pytest.mark.parametrize(("interval", "slots"), [(15 * MINUTE, 1), (HOUR, 4), (24 * HOUR, 96), (48 * HOUR, 192)])
def test_a_first_run_comes_within_the_interval(interval: timedelta, slots: int) -> None:
    table = SlotTable()
    for number in range(slots):
        table.put(number, start_of(slot_of(NOW) + number))

    assert table.place(interval, now=NOW) == NOW  # all are equal: the earliest, though the slots behind are empty
    table.remove(slots - 1)
    last = table.place(interval, now=NOW)
    assert last == max(start_of(slot_of(NOW) + slots - 1), NOW)
    assert last < NOW + interval


@pytest.mark.parametrize(
    ("rhythm", "interval", "expected"),
    [
        (at(0), 15 * MINUTE, at(0.25)),
        (at(0), 6 * HOUR, at(6)),
        (at(-20), 6 * HOUR, at(4)),  # three turns were missed: the phase stays, nothing is made up for
        (at(3), 6 * HOUR, at(3)),  # forced before its turn: the turn is still to come
        (at(0), 20 * MINUTE, at(1 / 3)),
        (at(6), 6 * HOUR, at(6)),
        (at(21), 6 * HOUR, at(3)),  # set while the interval was a day: it is not any more
        (at(10 * 8760 + 3), 24 * HOUR, at(3)),  # set by a clock that was ten years ahead
    ],
)
def test_the_rhythm_is_kept_and_lies_ahead(rhythm: datetime, interval: timedelta, expected: datetime) -> None:
    assert next_turn(rhythm, interval, now=NOW) == expected


@pytest.mark.parametrize(
    ("job", "reason"),
    [
        (scheduled(id=1, interval=HOUR, next_run_at=NOW + HOUR, state="running"), Reason.JOB_RUNNING),
        (scheduled(id=1, interval=HOUR, next_run_at=None), Reason.JOB_RUNNING),
        (scheduled(id=1, interval=HOUR, next_run_at=NOW + 30 * MINUTE), Reason.PROTECTION_WINDOW),
        (scheduled(id=1, interval=HOUR, next_run_at=NOW - MINUTE), Reason.PROTECTION_WINDOW),
        (scheduled(id=1, interval=HOUR, next_run_at=NOW + 31 * MINUTE), None),
        (
            scheduled(id=1, interval=HOUR, next_run_at=NOW + HOUR, placed_at=NOW - 59 * MINUTE),
            Reason.PLACEMENT_COOLDOWN,
        ),
        (scheduled(id=1, interval=HOUR, next_run_at=NOW + HOUR, placed_at=NOW - HOUR), None),
    ],
)
def test_job_is_not_moved_for_one_of_three_reasons(job: Job, reason: Reason | None) -> None:
    assert refusal(job, now=NOW) == reason


@pytest.mark.parametrize(
    ("hours", "score"),
    [([0] * 24, 1.0), ([5] * 24, 1.0), ([24] + [0] * 23, 0.0), ([2, 0] * 12, 0.0), ([3, 1] * 12, 0.75)],
)
def test_the_score_falls_with_the_variance(hours: list[int], score: float) -> None:
    assert score_of(hours) == pytest.approx(score)


def test_jobs_that_each_have_a_slot_of_their_own_are_spread_as_evenly_as_can_be() -> None:
    apart = distribution([NOW + number * 15 * MINUTE for number in range(7)], now=NOW)
    together = distribution([NOW] * 7, now=NOW)

    assert (apart.distribution_score, apart.rebalance_advised) == (1.0, False)
    assert together.rebalance_advised


def test_the_distribution_counts_the_coming_day_by_hour() -> None:
    shown = distribution([at(0), at(1.5), at(1.75), at(23.9), at(25)], now=NOW)

    assert (shown.total_jobs, shown.peak_hour, shown.peak_count) == (4, 13, 2)
    assert {one.hour: one.job_count for one in shown.hourly_distribution if one.job_count} == {12: 1, 13: 2, 11: 1}
    assert [(slot.starts_at, slot.job_count) for slot in shown.slot_distribution] == [
        (at(0), 1),
        (at(1.5), 1),
        (at(1.75), 1),
        (at(23.75), 1),
    ]
    assert (shown.window_hours, shown.slot_minutes, shown.rebalance_advised) == (24, 15, False)
    assert distribution([], now=NOW).distribution_score == 1.0
    overdue = distribution([at(-3), at(0.1), at(0.24)], now=NOW)
    assert [(slot.starts_at, slot.job_count) for slot in overdue.slot_distribution] == [(at(0), 3)]


def test_rebalance_spreads_jobs_and_lists_all_of_them() -> None:
    turns = [scheduled(id=n, interval=24 * HOUR, next_run_at=at(5)) for n in range(96)]
    turns += [
        scheduled(id=100, interval=HOUR, next_run_at=at(5), state="running"),
        scheduled(id=101, interval=HOUR, next_run_at=at(0.3)),
        scheduled(id=102, interval=HOUR, next_run_at=at(5), placed_at=NOW),
        scheduled(id=103, interval=5 * MINUTE, next_run_at=at(1)),
        scheduled(id=104, interval=HOUR, next_run_at=None),
    ]
    plan = plan_rebalance(turns, now=NOW)

    assert {move.job_id for move in plan.moved} | {skip.job_id for skip in plan.skipped} == {job.id for job in turns}
    assert len(plan.moved) + len(plan.skipped) == len(turns)
    assert {(skip.job_id, skip.reason) for skip in plan.skipped} >= {
        (100, Reason.JOB_RUNNING), (101, Reason.PROTECTION_WINDOW), (102, Reason.PLACEMENT_COOLDOWN),
        (103, Reason.BELOW_SLOT), (104, Reason.JOB_RUNNING),
    }  # fmt: skip
    assert plan.new_distribution_score > 0.9
    assert all(move.new_time > NOW for move in plan.moved)


def test_the_longest_interval_is_moved_first() -> None:
    heap = [scheduled(id=n, interval=timedelta(hours=n), next_run_at=at(5)) for n in (1, 2, 3)]

    assert plan_rebalance(heap, now=NOW).moved == [
        MovedJob(job_id=3, old_time=at(5), new_time=at(0.25)),
        MovedJob(job_id=2, old_time=at(5), new_time=at(1)),
    ]


def test_rebalance_takes_the_emptier_hour_of_equal_slots() -> None:
    turns = [scheduled(id=n, interval=24 * HOUR, next_run_at=at(5)) for n in range(24)]
    plan = plan_rebalance(turns, now=NOW)

    assert plan.new_distribution_score == 1.0
    assert len({move.new_time.hour for move in plan.moved}) == 23


def test_rebalance_work_grows_linearly_with_jobs() -> None:
    def work(jobs: int) -> int:
        turns = [scheduled(id=n, interval=timedelta(days=1 + n % 30), next_run_at=at(5)) for n in range(jobs)]
        with Calls() as calls:
            plan = plan_rebalance(turns, now=NOW)
        assert len(plan.moved) > 0.9 * jobs
        return calls.count

    assert work(5_000) < 15 * work(500)


_turn = st.builds(
    lambda job_id, quarters, minutes, age: scheduled(
        id=job_id, interval=quarters * SLOT, next_run_at=NOW + minutes * MINUTE, placed_at=NOW - age * MINUTE
    ),
    st.integers(1, 10**6), st.integers(1, 200), st.integers(-60, 5000), st.integers(0, 200),
)  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(st.lists(_turn, max_size=60, unique_by=lambda job: job.id))
def test_rebalance_never_worsens_or_moves_protected_jobs(turns: list[Job]) -> None:
    before = distribution([t.next_run_at for t in turns if t.next_run_at], now=NOW)
    plan = plan_rebalance(turns, now=NOW)
    by_id = {job.id: job for job in turns}

    assert plan.new_distribution_score >= before.distribution_score
    assert sorted([m.job_id for m in plan.moved] + [s.job_id for s in plan.skipped]) == sorted(by_id)
    for move in plan.moved:
        assert refusal(by_id[move.job_id], now=NOW) is None
        assert NOW < move.new_time <= NOW + max(SLOT, (by_id[move.job_id].interval_minutes or 0) * MINUTE)
    assert plan_rebalance(reversed(turns), now=NOW) == plan


def test_placing_a_job_costs_the_same_among_ten_and_among_forty_thousand() -> None:
    def work(jobs: int) -> int:
        table = SlotTable()
        for number in range(jobs):
            table.put(number, start_of(slot_of(NOW) + number % 2880))
        with Calls() as calls:
            for number in range(100):
                table.put(50_000 + number, table.place(timedelta(days=30), now=NOW))
        return calls.count

    assert work(40_000) < 1.5 * work(10_000)
