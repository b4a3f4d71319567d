"""Compares new captures with their predecessors in small batches; safe to stop and to run in parallel.

1. Read a batch of captures and judge each against the one before it (`verdict`).
2. Compare the texts that are not in the cache yet, outside any transaction.
3. In short transactions, judge again (captures may have arrived meanwhile) and write what still holds.

A capture that arrives late also affects those after it: they are judged again, up to the first that was
answered. A run after a kill does not repeat committed work.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import field
from datetime import datetime, timedelta

from sqlalchemy.orm import Session

from holdfast.changes import queries
from holdfast.changes.compare import TextComparison, compare, read_text
from holdfast.changes.verdict import ChangeVerdict, ComparedCapture, judge
from holdfast.clock import Clock
from holdfast.db.engine import Database
from holdfast.index.queries import mark_compared
from holdfast.values import dataclass
from holdfast.withdrawals.recomparing import lock_changes

# Captures per transaction: 64 take 38 ms on SQLite, 76 at most on a busy machine, and block all other writers.
_BATCH = 64
# Limit of repeated passes over a source for captures whose neighbours changed during the comparison.
_PASSES = 3
_FOLLOWERS = 50
# Limit of later captures read per transaction, and of those that follow the last capture it takes. Such a transaction
# holds SQLite's only writer, and on PostgreSQL it blocks commands that hide or show a page.
_STEPS = 128
Pair = tuple[int, int]


@dataclass(slots=True, kw_only=True)
class Computed:
    looked_at: int = 0
    events: int = 0
    types: Counter[str] = field(default_factory=Counter)
    diffs: int = 0
    """Number of compared texts; the others were in the cache."""
    left: int = 0
    """Captures left to a later run, because their neighbours changed during the comparison."""


OnProgress = Callable[[Computed], None]


def compute_pending(
    database: Database,
    clock: Clock,
    on_progress: OnProgress | None = None,
    *,
    source_id: int | None = None,
    max_events: int | None = None,
    since_days: float | None = None,
    backfill: bool = False,
    dry_run: bool = False,
) -> Computed:
    """Compare pending captures, source by source, and return the counts; finished work survives an interruption.

    `since_days` leaves out older captures; `backfill` compares captures again that were compared before; `dry_run`
    counts the changes without writing them. Raise Unavailable if the database does not answer; it is safe to call
    this again.
    """
    since = None if since_days is None else clock.now() - timedelta(days=since_days)
    run = _Run(
        database, clock, on_progress, since=since, max_events=max_events, is_backfill=backfill, is_dry_run=dry_run
    )
    with database.read() as session:
        known = queries.source_ids(session) if source_id is None else [source_id]
    for source_id in known:
        # Keep the count of earlier sources: only the passes of one source replace each other.
        left_before = run.result.left
        for number in range(_PASSES):
            run.result.left = left_before
            run.source(source_id)
            # A backfill repeats everything in each pass: one more pass is enough for the rest.
            if run.result.left == left_before or run.is_over or (backfill and number):
                break
    return run.result


class _Run:
    def __init__(
        self,
        database: Database,
        clock: Clock,
        on_progress: OnProgress | None,
        *,
        since: datetime | None,
        max_events: int | None,
        is_backfill: bool,
        is_dry_run: bool,
    ) -> None:
        self.result = Computed()
        self._database, self._clock, self._on_progress = database, clock, on_progress
        self._since, self._is_backfill, self._is_dry_run = since, is_backfill, is_dry_run
        self._most = sys.maxsize if max_events is None else max_events

    @property
    def is_over(self) -> bool:
        return self.result.events >= self._most

    def source(self, source_id: int) -> None:
        last = -1
        while not self.is_over:
            most = min(_BATCH, self._most - self.result.events)
            with self._database.read() as session:
                batch = queries.pending(
                    session, source_id, after=last, limit=most, since=self._since, again=self._is_backfill
                )
                plans, _ = _plans(session, batch)
                wanted = _wanted(plans)
                # Compare two successive bodies once, whatever page or year they belong to.
                missing = wanted - queries.diff_ids(session, wanted).keys()
            if not batch:
                return
            last = batch[-1].id
            if self._is_dry_run:
                self._count(plans)
                self._report_progress(len(batch))
            else:
                self._write(batch, {pair: self._compared(pair) for pair in sorted(missing)})

    def _report_progress(self, looked_at: int) -> None:
        self.result.looked_at += looked_at
        if self._on_progress is not None:
            self._on_progress(self.result)

    def _compared(self, pair: Pair) -> TextComparison:
        with self._database.read() as session:
            texts = [queries.text_and_headings(session, document_id) for document_id in pair]
        self.result.diffs += 1
        return compare(read_text(*texts[0]), read_text(*texts[1]))

    def _write(self, batch: list[ComparedCapture], fresh: dict[Pair, TextComparison]) -> None:
        """Write a batch in as many transactions as needed; `on_progress` may raise to end the run."""
        ids = {capture.id for capture in batch}
        while ids:
            unread = self._write_slice(ids, fresh)
            self._report_progress(len(ids) - len(unread))
            ids, fresh = unread, {}

    def _write_slice(self, ids: set[int], fresh: dict[Pair, TextComparison]) -> set[int]:
        """Write some of these captures; return those that are still to be written.

        Captures that need a diff not computed yet are left for the next pass.
        """
        now = self._clock.now()
        with self._database.write() as session:
            # Lock first: two runs that judge neighbours at the same time would each write a verdict that the other has
            # outdated.
            lock_changes(session)
            queries.insert_diffs(session, fresh, now)
            # Read the rows again: a capture may have been added or withdrawn since the texts were compared.
            plans, unread = _plans(session, list(queries.captures(session, ids).values()), _STEPS)
            diffs = queries.diff_ids(session, _wanted(plans))
            ready = [plan for plan in plans if plan[1].documents is None or plan[1].documents in diffs]
            queries.write_changes(
                session,
                (
                    (capture, verdict, diffs[verdict.documents] if verdict.documents else None)
                    for capture, verdict, _ in ready
                ),
                now,
            )
            left = {
                owner for _, verdict, owner in plans if verdict.documents is not None and verdict.documents not in diffs
            }
            # Use the transaction of the changes: a crash leaves both or neither.
            mark_compared(session, sorted(ids - left - unread))
        self.result.left += len(left)
        self._count(ready)
        return unread

    def _count(self, plans: Iterable[_Plan]) -> None:
        for _, verdict, _ in plans:
            self.result.events += 1
            self.result.types[verdict.type.value] += 1


# A capture, its verdict, and the capture of the batch that required it.
_Plan = tuple[ComparedCapture, ChangeVerdict, int]


def _plans(
    session: Session, batch: list[ComparedCapture], most_steps: int | None = None
) -> tuple[list[_Plan], set[int]]:
    """Return verdicts for these captures, and for later ones that were compared before these arrived.

    `most_steps` stops the batch after that many later captures were read; the first capture is always processed.
    The ids of captures that were not processed are returned as well.
    """
    own = {capture.id: capture for capture in batch if capture.counts}
    around = queries.neighbours(session, own.keys())
    near = own | queries.captures(session, _near(around) - own.keys())
    owners: dict[int, int] = {}
    unread: set[int] = set()
    steps = 0
    for owner in own:
        if most_steps is not None and steps >= most_steps:
            unread.add(owner)
            continue
        followers = _followers(session, near, around[owner][2])
        owners.update(dict.fromkeys(followers, owner))
        steps += len(followers)
    late = {follower: near[follower] for follower in owners if near[follower].compared and follower not in own}
    around |= queries.neighbours(session, late.keys())
    near |= queries.captures(session, _near(around) - near.keys())
    plans: list[_Plan] = []
    for capture in (*(own[number] for number in own if number not in unread), *late.values()):
        before, answered, _ = around[capture.id]
        verdict = judge(capture, near.get(before or -1), near.get(answered or -1))
        plans.append((capture, verdict, owners.get(capture.id, capture.id) if capture.id in late else capture.id))
    return plans, unread


def _near(around: dict[int, queries.Neighbours]) -> set[int]:
    return {found for three in around.values() for found in three if found is not None}


def _followers(session: Session, near: dict[int, ComparedCapture], after: int | None) -> list[int]:
    found: list[int] = []
    while after is not None and len(found) < _FOLLOWERS:
        if after not in near:
            near |= queries.captures(session, [after])
        found.append(after)
        # Captures after an answered one are compared with that one, not with an earlier one.
        if near[after].is_answered:
            break
        after = queries.neighbours(session, [after])[after][2]
    return found


def _wanted(plans: list[_Plan]) -> set[Pair]:
    return {verdict.documents for _, verdict, _ in plans if verdict.documents is not None}
