"""Turns captures that nobody has compared into changes, a small batch at a time; may be stopped and run twice at once.

1. Read a batch of captures and judge each against the one before it (`verdict`).
2. Compare the texts that are not in the cache yet, outside any transaction.
3. In one short transaction judge again, for captures may have arrived meanwhile, and write what still holds.

A capture that arrives late also changes what follows it: the next ones are judged anew, up to the first that answered.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from sqlalchemy.orm import Session

from holdfast.changes import queries
from holdfast.changes.compare import Comparison, compare
from holdfast.changes.sections import read_text
from holdfast.changes.verdict import Capture, Verdict, judge
from holdfast.clock import Clock
from holdfast.db.engine import Database
from holdfast.index.queries import mark_compared

_BATCH = 64
"""Captures of one transaction: 64 take about 80 ms on SQLite, and nobody else may write meanwhile."""
_PASSES = 3
"""How often a source is gone through again for captures whose neighbours changed while they were compared."""
_FOLLOWERS = 50
Pair = tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What is to be compared."""

    source_id: int | None = None
    """All sources if None."""
    max_events: int | None = None
    since_days: float | None = None
    """Only captures of the last days."""
    backfill: bool = False
    """Also what was compared before."""
    dry_run: bool = False
    """Count what would be said, and write nothing."""


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
    database: Database, clock: Clock, wish: Wish | None = None, on_progress: OnProgress | None = None
) -> Computed:
    """Compare what waits, source by source, and return what came of it; what is done stays done if it is stopped.

    Unavailable if the database does not answer; call it again.
    """
    run = _Run(database, clock, wish or Wish(), on_progress)
    with database.read() as session:
        known = queries.source_ids(session)
    for source_id in known if run.wish.source_id is None else [run.wish.source_id]:
        for number in range(_PASSES):
            run.result.left = 0
            run.source(source_id)
            if not run.result.left or run.is_over or (run.wish.backfill and number):
                break
    return run.result


class _Run:
    """One run over some sources."""

    def __init__(self, database: Database, clock: Clock, wish: Wish, on_progress: OnProgress | None) -> None:
        self.wish, self.result = wish, Computed()
        self._database, self._clock, self._told = database, clock, on_progress
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
                plans = _plans(session, batch)
                wanted = _wanted(plans)
                missing = wanted - queries.diff_ids(session, list(wanted)).keys()
            if not batch:
                return
            last = batch[-1].id
            if self.wish.dry_run:
                self._count(plans)
            else:
                self._write(batch, {pair: self._compared(pair) for pair in sorted(missing)})
            self.result.looked_at += len(batch)
            if self._told is not None:
                self._told(self.result)

    def _compared(self, pair: Pair) -> Comparison:
        with self._database.read() as session:
            texts = [queries.text_and_headings(session, document_id) for document_id in pair]
        self.result.diffs += 1
        return compare(read_text(*texts[0]), read_text(*texts[1]))

    def _write(self, batch: list[Capture], fresh: dict[Pair, Comparison]) -> None:
        """Write a batch; what needs a diff that nobody has made yet is left for the next pass."""
        now = self._clock.now()
        with self._database.write() as session:
            queries.take_turn(session)
            for pair, found in fresh.items():
                queries.insert_diff(session, pair, found, now)
            plans = _plans(session, queries.captures(session, [capture.id for capture in batch]))
            diffs = queries.diff_ids(session, list(_wanted(plans)))
            done = {capture.id for capture in batch}
            for capture, verdict, owner in plans:
                if verdict.documents is not None and verdict.documents not in diffs:
                    done.discard(owner)
                    self.result.left += 1
                    continue
                diff_id = diffs[verdict.documents] if verdict.documents is not None else None
                queries.write_change(session, capture, verdict, diff_id, now)
                self._count([(capture, verdict, owner)])
            mark_compared(session, sorted(done))

    def _count(self, plans: Iterable[_Plan]) -> None:
        for _, verdict, _ in plans:
            self.result.events += 1
            self.result.types[verdict.type.value] += 1


_Plan = tuple[Capture, Verdict, int]
"""A capture, what to say of it, and the capture of the batch for whose sake it is said."""


def _plans(session: Session, batch: list[Capture]) -> list[_Plan]:
    """Return what to say of these captures, and of those that follow them and were compared before they arrived."""
    own = {capture.id for capture in batch}
    plans: dict[int, _Plan] = {}
    for capture in batch:
        if not capture.counts:
            continue
        plans[capture.id] = (capture, _judged(session, capture), capture.id)
        for follower in _followers(session, capture):
            if follower.compared and follower.id not in own and follower.id not in plans:
                plans[follower.id] = (follower, _judged(session, follower), capture.id)
    return list(plans.values())


def _judged(session: Session, capture: Capture) -> Verdict:
    just_before = queries.before(session, capture)
    if just_before is None or just_before.is_answered:
        return judge(capture, just_before, just_before)
    return judge(capture, just_before, queries.before(session, capture, answered=True))


def _followers(session: Session, capture: Capture) -> list[Capture]:
    """Return the captures whose verdict may hang on this one: those after it, up to the first that answered."""
    found = queries.after(session, capture, limit=1)
    if found and not found[0].is_answered:
        found = queries.after(session, capture, limit=_FOLLOWERS)
    answered = next((at for at, follower in enumerate(found) if follower.is_answered), len(found))
    return found[: answered + 1]


def _wanted(plans: list[_Plan]) -> set[Pair]:
    return {verdict.documents for _, verdict, _ in plans if verdict.documents is not None}
