"""When a new, resumed or moved job runs: the slot table of this process, kept in step with the database.

Built from the rows at the start; afterwards the first placement of a transaction reads only what changed since, by
this process or another. A table that is a moment behind balances a little worse and breaks nothing.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final
from weakref import ref

from sqlalchemy.orm import Session, SessionTransaction

from holdfast.db.engine import Database
from holdfast.jobs import store
from holdfast.jobs.slots import (
    Distribution,
    MovedJob,
    Reason,
    Rebalance,
    Skipped,
    SlotTable,
    distribution,
    plan_rebalance,
    uses_slots,
)

_OVERLAP: Final = timedelta(seconds=5)
"""How far back a look for changes reaches: further than any write transaction lasts."""
_MOVES: Final = 200
"""Moves of one transaction: 200 take about 60 ms."""
_REBUILT_EVERY: Final = timedelta(minutes=10)
"""Deleted jobs and undone transactions leave traces; a table of 10,000 jobs is built anew in 0.1 s."""


class Placement:
    """Chooses slots. One for each process that creates, resumes or finishes jobs; used by one thread at a time."""

    def __init__(self) -> None:
        self.table = SlotTable()
        self._seen_at: datetime | None = None
        self._built_at: datetime | None = None
        self._read_in: ref[SessionTransaction] | None = None
        """The transaction in which rows were last read: to read all that changed for each of a thousand jobs that are
        made one after the other costs more the more there are."""

    def refresh(self, session: Session, *, now: datetime) -> None:
        """Bring the table up to date: from the rows that changed, or from all of them now and then."""
        if self._seen_at is None or self._built_at is None or now - self._built_at > _REBUILT_EVERY:
            self.table, self._built_at = SlotTable(), now
            rows = store.waiting(session)
        else:
            rows = store.waiting(session, since=self._seen_at - _OVERLAP)
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
    """Return how the coming day's runs are spread (NC-029)."""
    rows = store.waiting(session)
    return distribution((row.next_run_at for row in rows if row.next_run_at is not None and row.interval), now=now)


def preview_rebalance(session: Session, *, now: datetime) -> Rebalance:
    """Return what a rebalance would do now; nothing is changed."""
    return plan_rebalance(store.turns(session), now=now)


def rebalance(database: Database, *, now: datetime) -> Rebalance:
    """Do what the preview says; a job to which something happened in between is told as skipped.

    The plan is made before anything is locked, and written a few hundred moves at a time.
    """
    with database.read() as session:
        plan = preview_rebalance(session, now=now)
    moved: list[MovedJob] = []
    skipped = list(plan.skipped)
    for start in range(0, len(plan.moved), _MOVES):
        with database.write() as session:
            for one in plan.moved[start : start + _MOVES]:
                if store.shift(session, job_id=one.job_id, old=one.old_time, new=one.new_time, now=now):
                    moved.append(one)
                else:
                    skipped.append(Skipped(one.job_id, Reason.JOB_RUNNING))
    if len(moved) == len(plan.moved):
        return plan
    with database.read() as session:
        score = show_distribution(session, now=now).score
    return Rebalance(moved=tuple(moved), skipped=tuple(skipped), score=score)
