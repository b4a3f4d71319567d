"""Which captures count as duplicates (same address, UTC day and body; the earliest is canonical), settled or undone.

The rule is kept at every insert; this is for archives that somebody restored, merged or changed by hand.
"""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.clock import Clock, to_micros
from holdfast.db.audits import append_event
from holdfast.db.hot import Hot
from holdfast.index.upkeep import queries
from holdfast.index.upkeep.turns import Seen, turn
from holdfast.index.writing.batch import DAY, ranges
from holdfast.index.writing.queries import put_outbox, settle_duplicates, unsettled

_BATCH = 500


@dataclass(slots=True, kw_only=True)
class Duplicates:
    """What was found, and written if that was asked for."""

    looked: int = 0
    changed: int = 0


def dedupe(hot: Hot, clock: Clock, *, execution_id: int | None, apply: bool, seen: Seen) -> Duplicates:
    """Set the canonical capture anew for every address, day and body of an execution, or of all of them."""
    found = Duplicates()
    after = 0
    while True:
        with hot.read() as tx:
            page = queries.captures_after(tx, after=after, execution_id=execution_id, limit=_BATCH)
            days = sorted({(one.url_hash, one.captured_at - one.captured_at % DAY) for one in page})
            wrong = unsettled(tx, days, day_micros=DAY) if page else []
        if not page:
            return found
        after = page[-1].id
        found.looked += len(page)
        if wrong and apply:
            now = to_micros(clock.now())
            with turn(hot) as tx:
                wrong = settle_duplicates(tx, days, day_micros=DAY)
                put_outbox(tx, [("snapshots", first, last, {}) for first, last in ranges(wrong)], now=now)
        # Without writing, a day that spans two pages of this walk is met twice.
        found.changed += len(wrong) if apply else sum(one in {sighted.id for sighted in page} for one in wrong)
        seen(found.looked)


def restore(hot: Hot, clock: Clock, *, execution_id: int | None, apply: bool, seen: Seen) -> Duplicates:
    """Let the duplicates of an execution, or all, count as captures of their own again; it lands in the audit log."""
    found = Duplicates()
    after = 0
    while True:
        with hot.read() as tx:
            page = queries.duplicates_after(tx, after=after, execution_id=execution_id, limit=_BATCH)
        if not page:
            break
        after = page[-1]
        found.looked += len(page)
        if apply:
            with turn(hot) as tx:
                queries.clear_canonical(tx, page)
                now = to_micros(clock.now())
                put_outbox(tx, [("snapshots", first, last, {}) for first, last in ranges(page)], now=now)
            found.changed += len(page)
        seen(found.looked)
    if found.changed:
        which = "all executions" if execution_id is None else f"execution {execution_id}"
        with hot.write() as tx:
            append_event(tx, clock, action="snapshot.dedup_undone", subject=which, detail={"snapshots": found.changed})
    return found
