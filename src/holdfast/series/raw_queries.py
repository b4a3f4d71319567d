"""Adds to the series over a raw connection: one statement per batch, without SQLAlchemy, which crawls do not load."""

# ruff: noqa: S608 - statements are made of constants of this room, never of what a caller gives

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from holdfast.db.raw import Row
from holdfast.series.counting import COUNTED, Counts

MINUTE_S = 60
_MINUTE = MINUTE_S * 1_000_000
_COLUMNS = ", ".join(("execution_id", "step_s", "at", "domains_waiting", *COUNTED))
# Keep the highest number of domains of the minute, whichever process counted it.
_GROWN = ", ".join(
    (
        "domains_waiting = CASE WHEN excluded.domains_waiting > series.domains_waiting"
        " THEN excluded.domains_waiting ELSE series.domains_waiting END",
        *(f"{name} = series.{name} + excluded.{name}" for name in COUNTED),
    )
)
_ON_CONFLICT = f"ON CONFLICT (execution_id, step_s, at) DO UPDATE SET {_GROWN}"
_MARKS = f"({', '.join('?' * (len(COUNTED) + 4))})"
_SQLITE = f"INSERT INTO series ({_COLUMNS}) VALUES {_MARKS}, {_MARKS} {_ON_CONFLICT}"
# Pass one array instead of forty numbers: each number would get the smallest type that fits, and each combination of
# types its own statement.
_POSTGRESQL = f"""
INSERT INTO series ({_COLUMNS})
SELECT v.execution_id, k.step_s, k.at, v.domains, {", ".join(f"v.n[{at}]" for at in range(1, len(COUNTED) + 1))}
  FROM (SELECT ?::bigint AS execution_id, ?::bigint AS minute, ?::bigint AS domains, ?::bigint[] AS n) v
 CROSS JOIN LATERAL (VALUES ({MINUTE_S}, v.minute), (0, 0::bigint)) k (step_s, at)
{_ON_CONFLICT}"""


class SeriesTransaction(Protocol):
    """Runs statements: a raw transaction, or the frontier's."""

    def execute(self, statement: str, values: Sequence[Any] = ()) -> list[Row]: ...


def minute_of(now: int) -> int:
    return now - now % _MINUTE


def add_counts(
    tx: SeriesTransaction, execution_id: int, counts: Counts, *, now: int, domains: int = 0, is_postgres: bool
) -> None:
    """Add to the row of this minute and to the execution's total; must be the last statement of a transaction.

    Every process of an execution adds to the same two rows and waits for the previous one, so the lock must be
    short.
    """
    numbers = [counts[name] for name in COUNTED]
    if not domains and not any(numbers):
        return
    minute = minute_of(now)
    if is_postgres:
        tx.execute(_POSTGRESQL, (execution_id, minute, domains, numbers))
    else:
        tx.execute(_SQLITE, (execution_id, MINUTE_S, minute, domains, *numbers, execution_id, 0, 0, domains, *numbers))
