"""How much history is kept: a job's newest hundred executions or the last thirty days, whichever is less (NC-026).

Pruning lets go of logs, metrics and stacks. The row itself goes only if no file, page or edition refers to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from sqlalchemy.orm import Session

from holdfast.jobs.history import queries
from holdfast.jobs.journal.queries import drop_logs


class Pruned(NamedTuple):
    """What a pruning let go of."""

    stripped: int
    removed: int


def prune_beyond(session: Session, *, job_id: int, number: int, now: datetime) -> Pruned:
    """Prune the executions of a job up to this number; called as each run ends, so it finds one at most."""
    return _prune(session, queries.beyond(session, job_id=job_id, number=number) if number > 0 else [], now)


def prune_aged(session: Session, *, before: datetime, now: datetime, limit: int = 100) -> Pruned:
    """Prune executions that ended before a moment, so many at once: a write transaction stays short."""
    return _prune(session, queries.aged(session, before=before, limit=limit), now)


def anything_aged(session: Session, *, before: datetime) -> bool:
    """Return whether an execution is old enough to be pruned."""
    return bool(queries.aged(session, before=before, limit=1))


def _prune(session: Session, ids: Sequence[int], now: datetime) -> Pruned:
    if not ids:
        return Pruned(0, 0)
    drop_logs(session, execution_ids=ids)
    queries.strip(session, ids, now=now)
    return Pruned(len(ids), queries.forget(session, ids))
