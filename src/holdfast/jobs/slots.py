"""Quarter-hour slots over which scheduled jobs are spread: when each job runs, and how even the load is.

A new job gets the slot with the least load within its interval, and keeps its rhythm afterwards. Jobs with
intervals shorter than a slot are not spread. No returned time is in the past.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import datetime, timedelta
from enum import StrEnum
from heapq import heapify, heappop, heappush
from itertools import takewhile
from typing import Final
from weakref import ref

from sqlalchemy import select, update
from sqlalchemy.orm import Session, SessionTransaction, load_only

from holdfast import audit
from holdfast.clock import Clock, from_micros, to_micros
from holdfast.db.engine import Database
from holdfast.db.models import Job
from holdfast.jobs.store import of_source, schedule_of_job
from holdfast.records import Operator, record
from holdfast.sources.schedule import UNITS, Schedule

SLOT: Final = timedelta(minutes=15)
WINDOW: Final = timedelta(hours=24)
PROTECTION: Final = timedelta(minutes=30)
COOLDOWN: Final = timedelta(hours=1)
ADVISED_BELOW: Final = 0.7
"""A rebalance is advised for a lower score."""

# Use whole microseconds: floats could round a moment next to the border into the wrong slot.
_SLOT_MICROS: Final = 900_000_000
_HOUR_SLOTS: Final = 4


def slot_of(moment: datetime) -> int:
    """Return the number of a moment's quarter-hour, counted from 1970."""
    return to_micros(moment) // _SLOT_MICROS


def start_of(slot: int) -> datetime:
    return from_micros(slot * _SLOT_MICROS)


def uses_slots(interval: timedelta) -> bool:
    return interval >= SLOT


def next_turn(rhythm_at: datetime, interval: timedelta, *, now: datetime) -> datetime:
    """Return the first turn after `now` in the rhythm: whole intervals after the last regular one.

    With an interval of whole quarter-hours the slot phase never changes; other intervals are exact rather than
    rounded down to a slot. Never more than an interval from now: a later `rhythm_at` was set while the interval
    was longer, because the page did not change, or by a clock that was set back since.
    """
    # Count whole intervals from the last regular turn: a long run must not shift all later ones.
    return rhythm_at + ((now - rhythm_at) // interval + 1) * interval


def following_turn(schedule: Schedule, rhythm_at: datetime, *, interval: timedelta, now: datetime) -> datetime:
    """Return the next turn of a schedule: its next date, or one interval after the last turn if it has no dates."""
    if schedule.start is not None:
        return next(schedule.turns(now))
    return next_turn(rhythm_at, interval, now=now)


def missed_turns(schedule: Schedule, rhythm_at: datetime, *, interval: timedelta, now: datetime) -> int:
    """Return how many turns have passed since the last one, excluding the next one due."""
    if schedule.start is not None:
        return sum(1 for _ in takewhile(lambda turn: turn <= now, schedule.turns(rhythm_at)))
    return max(0, (now - rhythm_at) // interval)


class SlotTable:
    """Number of jobs per slot. Updated job by job; placement reads slots, never jobs."""

    __slots__ = ("_load", "_slots")

    def __init__(self) -> None:
        self._slots: dict[int, int] = {}
        self._load: Counter[int] = Counter()

    def __len__(self) -> int:
        return len(self._slots)

    def put(self, job_id: int, moment: datetime) -> None:
        self.remove(job_id)
        slot = slot_of(moment)
        self._slots[job_id] = slot
        self._load[slot] += 1

    def remove(self, job_id: int) -> None:
        slot = self._slots.pop(job_id, None)
        if slot is not None:
            self._load[slot] -= 1
            # Remove a slot without jobs: otherwise the table would grow with every quarter-hour.
            if not self._load[slot]:
                del self._load[slot]

    def load(self, slot: int) -> int:
        return self._load.get(slot, 0)

    def least_loaded(self, first: int, last: int) -> int:
        """Return the earliest slot with the least load; the range includes both ends."""
        load = self._load.get
        best, least = first, load(first, 0)
        for slot in range(first + 1, last + 1):
            # No slot can be emptier than that, so this reads at most as many slots as there are waiting jobs.
            if not least:
                break
            here = load(slot, 0)
            if here < least:
                best, least = slot, here
        return best

    def place(self, interval: timedelta, *, now: datetime) -> datetime:
        """Return the first run of a new or resumed job, always within its interval; does not change the table."""
        first = slot_of(now)
        slot = self.least_loaded(first, _reach(first, interval))
        # The current slot has already started: do not place a run in the past.
        return max(start_of(slot), now)


class Reason(StrEnum):
    JOB_RUNNING = "job_running"
    """It is running, or its run is queued."""
    PROTECTION_WINDOW = "protection_window"
    """Its next run is within 30 minutes."""
    PLACEMENT_COOLDOWN = "placement_cooldown"
    """It was placed or moved less than an hour ago."""
    ALREADY_BALANCED = "already_balanced"
    """No slot in range has less load."""
    BELOW_SLOT = "interval_below_slot"
    RUNS_ONCE = "runs_once"
    """It has no rhythm: it waits for a single retry."""
    FIXED_TIME = "fixed_time"


@record
class MovedJob:
    """A job that moves to a better slot."""

    job_id: Operator[int]
    old_time: Operator[datetime]
    new_time: Operator[datetime]


@record
class SkippedJob:
    """A job that stays, and the reason."""

    job_id: Operator[int]
    reason: Operator[Reason]


@record
class Rebalance:
    """Result of a rebalance: every scheduled job is in one of the two lists."""

    moved: Operator[list[MovedJob]]
    skipped: Operator[list[SkippedJob]]
    new_distribution_score: Operator[float]


@record
class HourLoad:
    """Number of runs that start in an hour of the day, UTC."""

    hour: Operator[int]
    job_count: Operator[int]


@record
class SlotLoad:
    """Number of runs that start in a quarter of an hour."""

    starts_at: Operator[datetime]
    job_count: Operator[int]


@record
class Distribution:
    """Distribution of the runs of the next 24 hours."""

    window_hours: Operator[int]
    slot_minutes: Operator[int]
    total_jobs: Operator[int]
    hourly_distribution: Operator[list[HourLoad]]
    slot_distribution: Operator[list[SlotLoad]]
    """The slots of the next 24 hours in which runs start, in order; overdue runs are in the first."""
    distribution_score: Operator[float]
    """0 to 1; 1 is perfectly even."""
    peak_hour: Operator[int]
    peak_count: Operator[int]
    rebalance_advised: Operator[bool]
    """Whether the score is below 0.7."""


def refusal(job: Job, *, now: datetime) -> Reason | None:
    if job.state == "running" or job.next_run_at is None:
        return Reason.JOB_RUNNING
    if job.anchor is not None:
        return Reason.FIXED_TIME
    if job.next_run_at - now <= PROTECTION:
        return Reason.PROTECTION_WINDOW
    if job.placed_at is not None and now - job.placed_at < COOLDOWN:
        return Reason.PLACEMENT_COOLDOWN
    return None


def score_of(counts: Iterable[int]) -> float:
    """Return how even some counts are: 1 - variance / ideal², at least 0; no counts are even.

    Only avoidable unevenness counts: seven runs cannot be spread evenly over more than seven places.
    """
    counts = tuple(counts)
    ideal = sum(counts) / len(counts) if counts else 0.0
    if not ideal:
        return 1.0
    variance = sum((count - ideal) ** 2 for count in counts) / len(counts)
    # Whole jobs cannot avoid this variance: with half a job per slot, half of the slots have one.
    share = ideal % 1
    return min(1.0, max(0.0, 1.0 - (variance - share * (1 - share)) / max(ideal, 1.0) ** 2))


def distribution(moments: Iterable[datetime], *, now: datetime) -> Distribution:
    """Return the distribution of the runs of the next 24 hours; overdue runs count as now.

    The score is based on slots, because runs are spread by slot: those of one hour need not overlap.
    """
    hours, slots, first = [0] * 24, [0] * (WINDOW // SLOT + 1), slot_of(now)
    for moment in moments:
        # The next tick of a scheduler will run it.
        if moment < now + WINDOW:
            hours[max(moment, now).hour] += 1
            slots[slot_of(max(moment, now)) - first] += 1
    peak, score = max(hours), score_of(slots[:-1] if not slots[-1] else slots)
    return Distribution(
        window_hours=WINDOW // timedelta(hours=1),
        slot_minutes=SLOT // timedelta(minutes=1),
        total_jobs=sum(hours),
        hourly_distribution=[HourLoad(hour=hour, job_count=count) for hour, count in enumerate(hours)],
        slot_distribution=[
            SlotLoad(starts_at=start_of(first + place), job_count=runs) for place, runs in enumerate(slots) if runs
        ],
        distribution_score=score,
        peak_hour=hours.index(peak),
        peak_count=peak,
        rebalance_advised=score < ADVISED_BELOW,
    )


class _Evenness:
    """Slots in range by load, then by the load of their hour: finds the emptiest without scanning all of them.

    Outdated heap entries are discarded when they come up. `last` only ever decreases.
    """

    def __init__(self, moments: Iterable[datetime], *, first: int, last: int) -> None:
        self._load = Counter(map(slot_of, moments))
        self._hours = Counter[int]()
        for slot, load in self._load.items():
            self._hours[slot // _HOUR_SLOTS] += load
        self._first, self._last = first, last
        self._heap = [(*self.of(slot), slot) for slot in range(first, last + 1)]
        heapify(self._heap)

    def of(self, slot: int) -> tuple[int, int]:
        return self._load[slot], self._hours[slot // _HOUR_SLOTS]

    def add(self, slot: int, number: int) -> None:
        self._load[slot] += number
        hour = slot // _HOUR_SLOTS
        self._hours[hour] += number
        for near in range(hour * _HOUR_SLOTS, (hour + 1) * _HOUR_SLOTS):
            if self._first <= near <= self._last:
                heappush(self._heap, (*self.of(near), near))

    def emptiest(self, last: int) -> int:
        """Return the emptiest slot up to `last`, the earliest of equals."""
        self._last = last
        # Skip outdated entries here instead of removing them when a load changes: a heap cannot find an element
        # quickly.
        while self._heap[0][2] > last or self._heap[0][:2] != self.of(self._heap[0][2]):
            heappop(self._heap)
        return self._heap[0][2]


def _interval(job: Job) -> timedelta:
    """Return the interval of a job; zero if it runs once."""
    schedule = schedule_of_job(job)
    return timedelta() if schedule is None else schedule.interval


def plan_rebalance(jobs: Iterable[Job], *, now: datetime) -> Rebalance:
    """Plan a rebalance: jobs with the longest interval first, into the emptiest slot in range.

    Of equal slots it takes the one in the emptier hour. The plan is deterministic. A plan that would not make the
    day more even moves nothing.
    """
    intervals = {job: _interval(job) for job in jobs}
    ordered = sorted(intervals, key=lambda job: (-intervals[job], job.id))
    times = {job.id: job.next_run_at for job in ordered if job.next_run_at is not None and intervals[job]}
    first = slot_of(now) + 1
    reach = intervals[ordered[0]] if ordered else WINDOW
    even = _Evenness(times.values(), first=first, last=_reach(first, reach))
    before = distribution(times.values(), now=now).distribution_score
    moved: list[MovedJob] = []
    skipped: list[SkippedJob] = []
    for job in ordered:
        outcome = _consider(even, job, intervals[job], first=first, now=now)
        if isinstance(outcome, MovedJob):
            moved.append(outcome)
            times[job.id] = outcome.new_time
        else:
            skipped.append(outcome)
    score = distribution(times.values(), now=now).distribution_score
    # Greedy moves may make the day worse: then move nothing at all.
    if score < before:
        skipped += [SkippedJob(job_id=move.job_id, reason=Reason.ALREADY_BALANCED) for move in moved]
        moved, score = [], before
    return Rebalance(moved=moved, skipped=skipped, new_distribution_score=score)


def _reach(first: int, interval: timedelta) -> int:
    return first + max(interval // SLOT, 1) - 1


def _consider(even: _Evenness, job: Job, interval: timedelta, *, first: int, now: datetime) -> MovedJob | SkippedJob:
    if not uses_slots(interval):
        return SkippedJob(job_id=job.id, reason=Reason.BELOW_SLOT if interval else Reason.RUNS_ONCE)
    reason = refusal(job, now=now)
    if reason is not None or job.next_run_at is None:
        return SkippedJob(job_id=job.id, reason=reason or Reason.JOB_RUNNING)
    here = slot_of(job.next_run_at)
    # Judge its own slot without it: otherwise every other slot would look emptier.
    even.add(here, -1)
    target = even.emptiest(_reach(first, interval))
    if even.of(target) >= even.of(here):
        even.add(here, 1)
        return SkippedJob(job_id=job.id, reason=Reason.ALREADY_BALANCED)
    even.add(target, 1)
    return MovedJob(job_id=job.id, old_time=job.next_run_at, new_time=start_of(target))


def due_jobs(session: Session, *, since: datetime | None = None) -> list[tuple[int, datetime | None, timedelta | None]]:
    """Return jobs with their next run and interval: all pending ones, or those that changed since a moment."""
    query = select(Job.id, Job.next_run_at, Job.interval_minutes, Job.interval_type)
    query = query.where(Job.next_run_at.is_not(None) if since is None else Job.updated_at >= since)
    return [(row[0], row[1], None if row[2] is None else row[2] * UNITS[row[3]]) for row in session.execute(query)]


def shift(session: Session, *, job_id: int, old: datetime, new: datetime, now: datetime) -> bool:
    """Move a job to another time if it has not changed since it was read; return False otherwise."""
    moved = session.scalars(
        update(Job)
        # Compare and set: leave a job that was queued, paused or moved since the plan was made.
        .where(Job.id == job_id, Job.state == "scheduled", Job.next_run_at == old)
        .values(next_run_at=new, rhythm_at=new, placed_at=now, updated_at=now)
        .returning(Job.id)
        .execution_options(synchronize_session=False)
    )
    return moved.one_or_none() is not None


# How far back a search for changes reaches: longer than any write transaction lasts.
_OVERLAP: Final = timedelta(seconds=5)
# Number of moves per transaction: 200 take about 60 ms.
_MOVES: Final = 200
# Deleted jobs and rollbacks leave traces in the table; rebuilding one of 10,000 jobs takes 0.1 s.
_REBUILT_EVERY: Final = timedelta(minutes=10)


class Placement:
    """Chooses slots. One per process that creates, resumes or finishes jobs; used by one thread at a time."""

    def __init__(self) -> None:
        self.table = SlotTable()
        self._seen_at: datetime | None = None
        self._built_at: datetime | None = None
        # The transaction in which rows were last read. It reads once per transaction: otherwise each of a thousand new
        # jobs would read all changes.
        self._read_in: ref[SessionTransaction] | None = None

    def refresh(self, session: Session, *, now: datetime) -> None:
        if self._seen_at is None or self._built_at is None or now - self._built_at > _REBUILT_EVERY:
            self.table, self._built_at = SlotTable(), now
            rows = due_jobs(session)
        else:
            # Overlap with the last read: a transaction that was open then has an older time than its commit.
            rows = due_jobs(session, since=self._seen_at - _OVERLAP)
        self._seen_at = now
        for job_id, moment, interval in rows:
            self.note(job_id, moment, interval)

    def place(self, session: Session, interval: timedelta, *, now: datetime) -> datetime:
        """Return the first run of a job at this interval; immediately if the interval is shorter than a slot."""
        if not uses_slots(interval):
            return now
        transaction = session.get_transaction()
        if transaction is None or self._read_in is None or self._read_in() is not transaction:
            self.refresh(session, now=now)
            transaction = session.get_transaction()
            self._read_in = None if transaction is None else ref(transaction)
        return self.table.place(interval, now=now)

    def note(self, job_id: int, moment: datetime | None, interval: timedelta | None) -> None:
        """Record a job's next run, so that the next placement counts it before anything is committed."""
        if moment is None or interval is None or not uses_slots(interval):
            self.table.remove(job_id)
        else:
            self.table.put(job_id, moment)


# Only the columns that a plan reads: whole rows of 10,000 jobs would be many megabytes.
_PLANNED: Final = (
    *(Job.state, Job.next_run_at, Job.placed_at),
    *(Job.schedule_enabled, Job.interval_minutes, Job.interval_type, Job.anchor, Job.adaptive_scheduling),
)


def show_distribution(session: Session, *, now: datetime) -> Distribution:
    rows = due_jobs(session)
    return distribution((moment for _, moment, interval in rows if moment is not None and interval), now=now)


def preview_rebalance(session: Session, *, now: datetime) -> Rebalance:
    """Plan a rebalance of every scheduled job, and of the recurring jobs that are running; change nothing."""
    jobs = session.scalars(
        select(Job)
        .where(Job.state.in_(("scheduled", "running")), Job.deleted_at.is_(None), of_source())
        .order_by(Job.id)
        .options(load_only(*_PLANNED))
    )
    return plan_rebalance([job for job in jobs if job.state == "scheduled" or _interval(job)], now=now)


def record_rebalance(session: Session, clock: Clock, done: Rebalance) -> None:
    detail = {"moved": len(done.moved), "skipped": len(done.skipped)}
    audit.record(session, clock, action="scheduler.rebalanced", subject="scheduler", detail=detail)


def rebalance(database: Database, *, now: datetime) -> Rebalance:
    """Apply the planned moves; report jobs that changed meanwhile as skipped.

    The plan is made before anything is locked, and written a few hundred moves at a time.
    """
    with database.read() as session:
        # Plan without locks: locking all scheduled jobs would stop every worker meanwhile.
        plan = preview_rebalance(session, now=now)
    moved: list[MovedJob] = []
    skipped = list(plan.skipped)
    for start in range(0, len(plan.moved), _MOVES):
        with database.write() as session:
            for one in plan.moved[start : start + _MOVES]:
                if shift(session, job_id=one.job_id, old=one.old_time, new=one.new_time, now=now):
                    moved.append(one)
                else:
                    skipped.append(SkippedJob(job_id=one.job_id, reason=Reason.JOB_RUNNING))
    if len(moved) == len(plan.moved):
        return plan
    with database.read() as session:
        score = show_distribution(session, now=now).distribution_score
    return Rebalance(moved=moved, skipped=skipped, new_distribution_score=score)
