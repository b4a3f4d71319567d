"""Turns captures that are not compared yet into changes, a small batch at a time; may be stopped and run twice at once.

1. Read a batch of captures and judge each against the one before it (`verdict`).
2. Compare the texts that are not in the cache yet, outside any transaction.
3. In short transactions judge again, for captures may have arrived meanwhile, and write what still holds.

A capture that arrives late also changes what follows it: the next ones are judged anew, up to the first that answered.
What was committed is not judged again by the run after a kill.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple

from sqlalchemy.orm import Session

from holdfast.changes import queries
from holdfast.changes.compare import TextComparison, compare, read_text
from holdfast.changes.verdict import ChangeVerdict, ComparedCapture, judge
from holdfast.clock import Clock
from holdfast.db.engine import Database
from holdfast.index.queries import mark_compared

# Captures of one transaction: 64 take 38 ms on SQLite, 76 at most on a busy machine; no other process writes meanwhile.
_BATCH = 64
# How often a source is gone through again for captures whose neighbours changed while they were compared.
_PASSES = 3
_FOLLOWERS = 50
# Later captures that one transaction looks at, and as many more as follow the last capture that it takes.
# Bounded, because such a transaction holds SQLite's only writer, and on PostgreSQL commands that hide or show a page
# wait for it.
_STEPS = 128
Pair = tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class ComputeWish:
    """What is to be compared."""

    source_id: int | None = None
    """All sources if None."""
    max_events: int | None = None
    since_days: float | None = None
    """Only captures of the last days."""
    backfill: bool = False
    """Also what was compared before."""
    dry_run: bool = False
    """Count the changes, and write nothing."""


@dataclass(slots=True, kw_only=True)
class Computed:
    """What came of it so far."""

    looked_at: int = 0
    events: int = 0
    types: Counter[str] = field(default_factory=Counter)
    diffs: int = 0
    """Texts that were compared; the others were in the cache."""
    left: int = 0
    """Captures that a later run will take: their neighbours changed while they were compared."""


OnProgress = Callable[[Computed], None]


def compute_pending(
    database: Database, clock: Clock, wish: ComputeWish | None = None, on_progress: OnProgress | None = None
) -> Computed:
    """Compare what waits, source by source, and return what came of it; what is done stays done if it is stopped.

    Unavailable if the database does not answer; call it again.
    """
    run = _Run(database, clock, wish or ComputeWish(), on_progress)
    with database.read() as session:
        known = queries.source_ids(session)
    for source_id in known if run.wish.source_id is None else [run.wish.source_id]:
        # What the sources before this one have left over stays counted: only the passes of one source replace each
        # other.
        left_before = run.result.left
        for number in range(_PASSES):
            run.result.left = left_before
            run.source(source_id)
            # A backfill takes everything up again with every pass: one more is enough for what was left over.
            if run.result.left == left_before or run.is_over or (run.wish.backfill and number):
                break
    return run.result


class _Run:
    """One run over some sources."""

    def __init__(self, database: Database, clock: Clock, wish: ComputeWish, on_progress: OnProgress | None) -> None:
        self.wish, self.result = wish, Computed()
        self._database, self._clock, self._on_progress = database, clock, on_progress
        days = wish.since_days
        self._since: datetime | None = None if days is None else clock.now() - timedelta(days=days)

    @property
    def is_over(self) -> bool:
        """Whether as much was done as was wished for."""
        return self.wish.max_events is not None and self.result.events >= self.wish.max_events

    def source(self, source_id: int) -> None:
        """Go through what waits of one source, by id."""
        last = -1
        while not self.is_over:
            most = _BATCH if self.wish.max_events is None else min(_BATCH, self.wish.max_events - self.result.events)
            with self._database.read() as session:
                batch = queries.pending(
                    session, source_id, after=last, limit=most, since=self._since, again=self.wish.backfill
                )
                plans = _plans(session, batch).plans
                wanted = _wanted(plans)
                # Two bodies that follow each other are compared once, whatever page or year they are of.
                missing = wanted - queries.diff_ids(session, wanted).keys()
            if not batch:
                return
            last = batch[-1].id
            if self.wish.dry_run:
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
        """Write a batch, in as many transactions as it takes; `on_progress` may raise, and end the run there."""
        ids = {capture.id for capture in batch}
        while ids:
            unread = self._write_slice(ids, fresh)
            self._report_progress(len(ids) - len(unread))
            ids, fresh = unread, {}

    def _write_slice(self, ids: set[int], fresh: dict[Pair, TextComparison]) -> set[int]:
        """Write some of these captures, and return those that are still to be written.

        What needs a diff that is not made yet is left for the next pass.
        """
        now = self._clock.now()
        with self._database.write() as session:
            # First of all: two runs that judge neighbours at once would each write a verdict that the other has
            # overtaken.
            queries.take_turn(session)
            queries.insert_diffs(session, fresh, now)
            # Read again: a capture may have arrived, or been withdrawn, since the texts were compared.
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
            # In the same transaction as the changes: a death leaves both or neither.
            mark_compared(session, sorted(ids - left - unread))
        self.result.left += len(left)
        self._count(ready)
        return unread

    def _count(self, plans: Iterable[_Plan]) -> None:
        for _, verdict, _ in plans:
            self.result.events += 1
            self.result.types[verdict.type.value] += 1


# A capture, the verdict on it, and the capture of the batch that made it necessary.
_Plan = tuple[ComparedCapture, ChangeVerdict, int]


class _Plans(NamedTuple):
    """What to say, and of which captures of the batch it was not asked any more."""

    plans: list[_Plan]
    unread: set[int]


def _plans(session: Session, batch: list[ComparedCapture], most_steps: int | None = None) -> _Plans:
    """Return what to say of these captures, and of those that follow them and were compared before they arrived.

    With `most_steps`, captures are left unread once so many that follow them were looked at; the first never is.
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
        followers = _followers(session, near, around[owner].after)
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
    return _Plans(plans, unread)


def _near(around: dict[int, queries.ComparedNeighbours]) -> set[int]:
    return {found for three in around.values() for found in three if found is not None}


def _followers(session: Session, near: dict[int, ComparedCapture], after: int | None) -> list[int]:
    """Return the captures whose verdict may hang on one before them: those after it, up to the first that answered."""
    found: list[int] = []
    while after is not None and len(found) < _FOLLOWERS:
        if after not in near:
            near |= queries.captures(session, [after])
        found.append(after)
        # Whatever comes behind an answered capture is held against that one, not against what arrived before it.
        if near[after].is_answered:
            break
        after = queries.neighbours(session, [after])[after].after
    return found


def _wanted(plans: list[_Plan]) -> set[Pair]:
    return {verdict.documents for _, verdict, _ in plans if verdict.documents is not None}
