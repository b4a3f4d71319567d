"""Quarters of an hour over which scheduled jobs are spread: which runs when, and how even that is.

A new job lands in the slot with the least load within its interval; afterwards it keeps its rhythm. Intervals
shorter than a slot stay out of it. No time that comes out of here lies in the past.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from heapq import heapify, heappop, heappush
from itertools import takewhile
from typing import Final, NamedTuple
from weakref import ref

from sqlalchemy import select, update
from sqlalchemy.orm import Session, SessionTransaction

from holdfast import audit
from holdfast.clock import Clock, from_micros, to_micros
from holdfast.db.engine import Database
from holdfast.db.models import Job
from holdfast.sources.schedule import UNITS, Schedule

SLOT: Final = timedelta(minutes=15)
WINDOW: Final = timedelta(hours=24)
PROTECTION: Final = timedelta(minutes=30)
COOLDOWN: Final = timedelta(hours=1)
ADVISED_BELOW: Final = 0.7
"""A distribution with a lower score is worth a rebalance."""

# Whole microseconds: with floats a moment next to the border could be rounded into the wrong slot.
_SLOT_MICROS: Final = 900_000_000
_HOUR_SLOTS: Final = 4


def slot_of(moment: datetime) -> int:
    """Return the number of the quarter of an hour that a moment lies in, counted from 1970."""
    return to_micros(moment) // _SLOT_MICROS


def start_of(slot: int) -> datetime:
    """Return when a slot begins."""
    return from_micros(slot * _SLOT_MICROS)


def uses_slots(interval: timedelta) -> bool:
    """Return whether jobs at this interval are spread over slots at all."""
    return interval >= SLOT


def next_turn(rhythm_at: datetime, interval: timedelta, *, now: datetime) -> datetime:
    """Return the first turn after now that keeps the rhythm: whole intervals after the last regular one.

    For an interval of whole quarters that is the same slot phase for ever; other intervals are kept exactly
    rather than shortened to the slot below. Never more than an interval from now: one that lies further ahead was set
    while the interval was longer, because the page did not change, or by a clock that has been set back since.
    """
    # Whole intervals from the last regular turn: a run that took long must not shift all later ones.
    return rhythm_at + ((now - rhythm_at) // interval + 1) * interval


def following_turn(schedule: Schedule, rhythm_at: datetime, *, interval: timedelta, now: datetime) -> datetime:
    """Return the next turn of a schedule: its next date, or an interval after the last one where it has no dates."""
    if schedule.start is not None:
        return next(schedule.turns(now))
    return next_turn(rhythm_at, interval, now=now)


def missed_turns(schedule: Schedule, rhythm_at: datetime, *, interval: timedelta, now: datetime) -> int:
    """Return how many turns have come and gone since the last one."""
    if schedule.start is not None:
        return sum(1 for _ in takewhile(lambda turn: turn <= now, schedule.turns(rhythm_at)))
    return turns_between(rhythm_at, interval, now=now)


def turns_between(rhythm_at: datetime, interval: timedelta, *, now: datetime) -> int:
    """Return how many regular turns have come and gone since the last one; the next one that is due not counted."""
    return max(0, (now - rhythm_at) // interval)


class SlotTable:
    """How many jobs wait in each slot. Changed job by job; a placement looks at slots, never at jobs."""

    __slots__ = ("_load", "_slots")

    def __init__(self) -> None:
        self._slots: dict[int, int] = {}
        self._load: Counter[int] = Counter()

    def __len__(self) -> int:
        return len(self._slots)

    def put(self, job_id: int, moment: datetime) -> None:
        """Say that a job's next run is at this moment; its earlier place becomes free."""
        self.remove(job_id)
        slot = slot_of(moment)
        self._slots[job_id] = slot
        self._load[slot] += 1

    def remove(self, job_id: int) -> None:
        """Say that a job waits no longer; nothing happens if it did not."""
        slot = self._slots.pop(job_id, None)
        if slot is not None:
            self._load[slot] -= 1
            # A slot without jobs goes, or the table would grow with every quarter of an hour that passes.
            if not self._load[slot]:
                del self._load[slot]

    def load(self, slot: int) -> int:
        """Return how many jobs wait in a slot."""
        return self._load.get(slot, 0)

    def least_loaded(self, first: int, last: int) -> int:
        """Return the earliest slot with the least load, first and last included."""
        load = self._load.get
        best, least = first, load(first, 0)
        for slot in range(first + 1, last + 1):
            # Nothing is emptier, so at most as many slots are looked at as jobs wait.
            if not least:
                break
            here = load(slot, 0)
            if here < least:
                best, least = slot, here
        return best

    def place(self, interval: timedelta, *, now: datetime) -> datetime:
        """Return when a new or resumed job should run first, always within its interval; the table is not changed."""
        first = slot_of(now)
        slot = self.least_loaded(first, _reach(first, interval))
        # The slot that now lies in has begun already: no run is set in the past.
        return max(start_of(slot), now)


class Reason(StrEnum):
    """Why a job stays where it is."""

    JOB_RUNNING = "job_running"
    """It runs, or its run is queued."""
    PROTECTION_WINDOW = "protection_window"
    """Its next run is within 30 minutes."""
    PLACEMENT_COOLDOWN = "placement_cooldown"
    """It was placed or moved less than an hour ago."""
    ALREADY_BALANCED = "already_balanced"
    """No slot within its reach is emptier."""
    BELOW_SLOT = "interval_below_slot"
    """It runs more often than slots last."""
    RUNS_ONCE = "runs_once"
    """It has no rhythm: it waits for one more try."""
    FIXED_TIME = "fixed_time"
    """Its schedule names the time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduledTurn:
    """A scheduled job, as the slots see it."""

    job_id: int
    interval: timedelta
    """Nothing at all for a job that runs once."""
    next_run_at: datetime | None
    """None while its run is queued."""
    placed_at: datetime | None = None
    running: bool = False
    fixed: bool = False
    """Whether its schedule names the time."""


class MovedJob(NamedTuple):
    """A job that another slot suits better."""

    job_id: int
    old_time: datetime
    new_time: datetime


class Skipped(NamedTuple):
    """A job that stays, and why."""

    job_id: int
    reason: Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebalance:
    """What a rebalance does: every scheduled job is in one of the two lists."""

    moved: tuple[MovedJob, ...]
    skipped: tuple[Skipped, ...]
    score: float
    """Of the distribution afterwards."""


class SlotLoad(NamedTuple):
    """How many runs begin in a quarter of an hour."""

    starts_at: datetime
    runs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Distribution:
    """How the runs of the coming day lie over its hours."""

    total_jobs: int
    hours: tuple[int, ...]
    """Runs by hour of the day, UTC, from 0 to 23."""
    slots: tuple[SlotLoad, ...]
    """Of the quarters of an hour in which runs begin, from now on."""
    score: float
    peak_hour: int
    peak_count: int
    window_hours: int = 24
    slot_minutes: int = 15

    @property
    def rebalance_advised(self) -> bool:
        """Whether it is uneven enough to do something about it."""
        return self.score < ADVISED_BELOW


def refusal(turn: ScheduledTurn, *, now: datetime) -> Reason | None:
    """Return why a job must not be moved now, or None if it may."""
    if turn.running or turn.next_run_at is None:
        return Reason.JOB_RUNNING
    if turn.fixed:
        return Reason.FIXED_TIME
    if turn.next_run_at - now <= PROTECTION:
        return Reason.PROTECTION_WINDOW
    if turn.placed_at is not None and now - turn.placed_at < COOLDOWN:
        return Reason.PLACEMENT_COOLDOWN
    return None


def score_of(counts: Iterable[int]) -> float:
    """Return how even some counts are: 1 - variance / ideal², at least 0; nothing at all is even.

    Only what could be avoided counts: seven runs cannot lie evenly over more than seven places.
    """
    counts = tuple(counts)
    ideal = sum(counts) / len(counts) if counts else 0.0
    if not ideal:
        return 1.0
    variance = sum((count - ideal) ** 2 for count in counts) / len(counts)
    # The variance that whole jobs cannot avoid: with half a job a slot, half of the slots hold one.
    share = ideal % 1
    return min(1.0, max(0.0, 1.0 - (variance - share * (1 - share)) / max(ideal, 1.0) ** 2))


def distribution(moments: Iterable[datetime], *, now: datetime) -> Distribution:
    """Return how the runs of the next 24 hours are spread; what is overdue counts as now.

    The score is that of the slots, for by slots runs are spread: those of one hour need not meet.
    """
    hours, slots, first = [0] * 24, [0] * (WINDOW // SLOT + 1), slot_of(now)
    for moment in moments:
        # It will run at the next look of a scheduler.
        if moment < now + WINDOW:
            hours[max(moment, now).hour] += 1
            slots[slot_of(max(moment, now)) - first] += 1
    peak, score = max(hours), score_of(slots[:-1] if not slots[-1] else slots)
    return Distribution(
        total_jobs=sum(hours),
        hours=tuple(hours),
        slots=tuple(SlotLoad(start_of(first + place), runs) for place, runs in enumerate(slots) if runs),
        score=score,
        peak_hour=hours.index(peak),
        peak_count=peak,
    )


class _Evenness:
    """Slots in reach by load, then by the load of their hour: the emptiest is found without looking at all of them.

    Entries of the heap that have been overtaken are thrown away when they come up. `last` only ever falls.
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
        """Return how full a slot and its hour are."""
        return self._load[slot], self._hours[slot // _HOUR_SLOTS]

    def add(self, slot: int, number: int) -> None:
        """Put a job into a slot (1) or take it out (-1)."""
        self._load[slot] += number
        hour = slot // _HOUR_SLOTS
        self._hours[hour] += number
        for near in range(hour * _HOUR_SLOTS, (hour + 1) * _HOUR_SLOTS):
            if self._first <= near <= self._last:
                heappush(self._heap, (*self.of(near), near))

    def emptiest(self, last: int) -> int:
        """Return the emptiest slot up to this one, the earliest of equals."""
        self._last = last
        # Entries are not removed when a load changes, they are passed over here: a heap finds no element quickly.
        while self._heap[0][2] > last or self._heap[0][:2] != self.of(self._heap[0][2]):
            heappop(self._heap)
        return self._heap[0][2]


def plan_rebalance(turns: Iterable[ScheduledTurn], *, now: datetime) -> Rebalance:
    """Return what a rebalance would do: those with the longest interval first, into the emptiest slot in reach.

    Of equal slots the one in the emptier hour is taken. The same jobs and the same moment give the same plan. One that
    would not make the day more even moves nothing.
    """
    ordered = sorted(turns, key=lambda turn: (-turn.interval, turn.job_id))
    times = {turn.job_id: turn.next_run_at for turn in ordered if turn.next_run_at is not None and turn.interval}
    first = slot_of(now) + 1
    reach = ordered[0].interval if ordered else WINDOW
    even = _Evenness(times.values(), first=first, last=_reach(first, reach))
    before = distribution(times.values(), now=now).score
    moved: list[MovedJob] = []
    skipped: list[Skipped] = []
    for turn in ordered:
        outcome = _consider(even, turn, first=first, now=now)
        if isinstance(outcome, MovedJob):
            moved.append(outcome)
            times[turn.job_id] = outcome.new_time
        else:
            skipped.append(outcome)
    score = distribution(times.values(), now=now).score
    # Greedy moves may make it worse: then nothing is moved at all.
    if score < before:
        skipped += [Skipped(move.job_id, Reason.ALREADY_BALANCED) for move in moved]
        moved, score = [], before
    return Rebalance(moved=tuple(moved), skipped=tuple(skipped), score=score)


def _reach(first: int, interval: timedelta) -> int:
    """Return the last slot that begins less than one interval after the first: a job waits no longer than its turn."""
    return first + max(interval // SLOT, 1) - 1


def _consider(even: _Evenness, turn: ScheduledTurn, *, first: int, now: datetime) -> MovedJob | Skipped:
    """Move a job if that helps; return what was done."""
    if not uses_slots(turn.interval):
        return Skipped(turn.job_id, Reason.BELOW_SLOT if turn.interval else Reason.RUNS_ONCE)
    reason = refusal(turn, now=now)
    if reason is not None or turn.next_run_at is None:
        return Skipped(turn.job_id, reason or Reason.JOB_RUNNING)
    here = slot_of(turn.next_run_at)
    # Its own slot is judged without it, or every slot would look emptier than the one that it is in.
    even.add(here, -1)
    target = even.emptiest(_reach(first, turn.interval))
    if even.of(target) >= even.of(here):
        even.add(here, 1)
        return Skipped(turn.job_id, Reason.ALREADY_BALANCED)
    even.add(target, 1)
    return MovedJob(turn.job_id, turn.next_run_at, start_of(target))


def scheduled_turns(session: Session) -> list[ScheduledTurn]:
    """Return every scheduled job as the slots see it, and recurring ones that run."""
    rows = session.execute(
        select(
            Job.id,
            Job.interval_minutes,
            Job.interval_type,
            Job.next_run_at,
            Job.placed_at,
            Job.state,
            Job.schedule_enabled,
            Job.anchor,
        )
        .where(Job.state.in_(("scheduled", "running")), Job.deleted_at.is_(None))
        .order_by(Job.id)
    )
    found = []
    for job_id, number, unit, moment, placed_at, state, enabled, anchor in rows:
        interval = number * UNITS[unit] if enabled and number is not None else timedelta()
        if interval or state == "scheduled":
            found.append(
                ScheduledTurn(
                    job_id=job_id,
                    interval=interval,
                    next_run_at=moment,
                    placed_at=placed_at,
                    running=state == "running",
                    fixed=anchor is not None,
                )
            )
    return found


class DueJob(NamedTuple):
    """A job and when it is due, for the slot table."""

    job_id: int
    next_run_at: datetime | None
    interval: timedelta | None


def due_jobs(session: Session, *, since: datetime | None = None) -> list[DueJob]:
    """Return what waits for its turn: everything, or what changed since a moment (then also what waits no longer)."""
    query = select(Job.id, Job.next_run_at, Job.interval_minutes, Job.interval_type)
    query = query.where(Job.next_run_at.is_not(None) if since is None else Job.updated_at >= since)
    return [
        DueJob(row[0], row[1], None if row[2] is None else row[2] * UNITS[row[3]]) for row in session.execute(query)
    ]


def shift(session: Session, *, job_id: int, old: datetime, new: datetime, now: datetime) -> bool:
    """Move a job to another time if nothing happened to it since it was looked at; False if something did."""
    moved = session.scalars(
        update(Job)
        # Compare and set: a job that was queued, paused or moved since the plan was made stays where it is.
        .where(Job.id == job_id, Job.state == "scheduled", Job.next_run_at == old)
        .values(next_run_at=new, rhythm_at=new, placed_at=now, updated_at=now)
        .returning(Job.id)
        .execution_options(synchronize_session=False)
    )
    return moved.one_or_none() is not None


# How far back a look for changes reaches: further than any write transaction lasts.
_OVERLAP: Final = timedelta(seconds=5)
# Moves of one transaction: 200 take about 60 ms.
_MOVES: Final = 200
# Deleted jobs and undone transactions leave traces in the table; one of 10,000 jobs is built anew in 0.1 s.
_REBUILT_EVERY: Final = timedelta(minutes=10)


class Placement:
    """Chooses slots. One for each process that creates, resumes or finishes jobs; used by one thread at a time."""

    def __init__(self) -> None:
        self.table = SlotTable()
        self._seen_at: datetime | None = None
        self._built_at: datetime | None = None
        # The transaction in which rows were last read. Read once in each: a thousand jobs that are made in one would
        # otherwise each read all that changed.
        self._read_in: ref[SessionTransaction] | None = None

    def refresh(self, session: Session, *, now: datetime) -> None:
        """Bring the table up to date: from the rows that changed, or from all of them now and then."""
        if self._seen_at is None or self._built_at is None or now - self._built_at > _REBUILT_EVERY:
            self.table, self._built_at = SlotTable(), now
            rows = due_jobs(session)
        else:
            # With an overlap: a transaction that was open at the last look has an older moment than its commit.
            rows = due_jobs(session, since=self._seen_at - _OVERLAP)
        self._seen_at = now
        for row in rows:
            if row.next_run_at is None or row.interval is None or not uses_slots(row.interval):
                self.table.remove(row.job_id)
            else:
                self.table.put(row.job_id, row.next_run_at)

    def place(self, session: Session, interval: timedelta, *, now: datetime) -> datetime:
        """Return when a job at this interval should run first; one that runs more often than slots last: at once."""
        if not uses_slots(interval):
            return now
        transaction = session.get_transaction()
        if transaction is None or self._read_in is None or self._read_in() is not transaction:
            self.refresh(session, now=now)
            transaction = session.get_transaction()
            self._read_in = None if transaction is None else ref(transaction)
        return self.table.place(interval, now=now)

    def note(self, job_id: int, moment: datetime | None, interval: timedelta | None) -> None:
        """Say when a job's next run is, so that the next placement counts it before anything is committed."""
        if moment is None or interval is None or not uses_slots(interval):
            self.table.remove(job_id)
        else:
            self.table.put(job_id, moment)


def show_distribution(session: Session, *, now: datetime) -> Distribution:
    """Return how the coming day's runs are spread."""
    rows = due_jobs(session)
    return distribution((row.next_run_at for row in rows if row.next_run_at is not None and row.interval), now=now)


def preview_rebalance(session: Session, *, now: datetime) -> Rebalance:
    """Return what a rebalance would do now; nothing is changed."""
    return plan_rebalance(scheduled_turns(session), now=now)


def record_rebalance(session: Session, clock: Clock, done: Rebalance) -> None:
    """Keep in the audit log that jobs were moved, in the name of who asked for it."""
    detail = {"moved": len(done.moved), "skipped": len(done.skipped)}
    audit.record(session, clock, action="scheduler.rebalanced", subject="scheduler", detail=detail)


def rebalance(database: Database, *, now: datetime) -> Rebalance:
    """Do what the preview says; a job to which something happened in between is told as skipped.

    The plan is made before anything is locked, and written a few hundred moves at a time.
    """
    with database.read() as session:
        # Planned without locks: locking all scheduled jobs would stop every worker meanwhile.
        plan = preview_rebalance(session, now=now)
    moved: list[MovedJob] = []
    skipped = list(plan.skipped)
    for start in range(0, len(plan.moved), _MOVES):
        with database.write() as session:
            for one in plan.moved[start : start + _MOVES]:
                if shift(session, job_id=one.job_id, old=one.old_time, new=one.new_time, now=now):
                    moved.append(one)
                else:
                    skipped.append(Skipped(one.job_id, Reason.JOB_RUNNING))
    if len(moved) == len(plan.moved):
        return plan
    with database.read() as session:
        score = show_distribution(session, now=now).score
    return Rebalance(moved=tuple(moved), skipped=tuple(skipped), score=score)
