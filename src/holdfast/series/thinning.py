"""Retention and resolution of the series: minutes, then hours, then days. In small portions, by any process."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta

from holdfast.db.engine import Database
from holdfast.series.queries import (
    DAY_S,
    HOUR_S,
    count_cleanup,
    drop_oldest,
    fold_totals,
    has_old,
    has_totals_to_fold,
    roll_up,
)
from holdfast.series.raw_queries import MINUTE_S

# Ages up to which events are counted by minute, by hour and by day; totals are kept forever.
MINUTES_DAYS, HOURS_DAYS, DAYS_DAYS = 7, 90, 1825

_ROWS = 500
"""Rows that one transaction moves: 20 ms on SQLite, whose other writers wait meanwhile."""
_FOLDED_AFTER = timedelta(hours=1)


def thin_out(database: Database, *, now: datetime, portions: int) -> Counter[str]:
    """Thin out old rows, in at most `portions` short transactions; return the number of deleted rows by kind."""
    done: Counter[str] = Counter()
    steps = (
        (MINUTE_S, HOUR_S, now - timedelta(days=MINUTES_DAYS)),
        (HOUR_S, DAY_S, now - timedelta(days=HOURS_DAYS)),
        (DAY_S, None, now - timedelta(days=DAYS_DAYS)),
    )
    for step_s, into_s, before in steps:
        # Move whole hours only: the rest of a started hour would be moved minute by minute.
        whole = datetime.fromtimestamp(before.timestamp() // (into_s or step_s) * (into_s or step_s), before.tzinfo)
        with database.read() as session:
            waits = has_old(session, step_s=step_s, before=whole)
        while waits and portions > 0:
            with database.write() as session:
                if into_s is None:
                    moved = drop_oldest(session, step_s=step_s, before=whole, limit=_ROWS)
                else:
                    moved = roll_up(session, step_s=step_s, into_s=into_s, before=whole, limit=_ROWS)
                count_cleanup(session, {"series": moved}, now=now)
            done["series"] += moved
            portions, waits = portions - 1, moved == _ROWS
    before = now - _FOLDED_AFTER
    with database.read() as session:
        waits = has_totals_to_fold(session, before=before)
    while waits and portions > 0:
        with database.write() as session:
            folded = fold_totals(session, before=before, limit=_ROWS)
        done["folded"] += folded
        portions, waits = portions - 1, folded == _ROWS
    return done
