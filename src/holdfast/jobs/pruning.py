"""How much history is kept: a job's newest hundred executions or the last thirty days, whichever is less (NC-026).

Pruning lets go of logs, metrics and stacks. The row itself goes only if no file, page or edition refers to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from sqlalchemy.orm import Session

from holdfast.jobs.history import queries
from holdfast.jobs.journal.queries import drop_lines

_LINES = 10_000
"""Lines of logs that one transaction removes: SQLite takes 0.1 s for them (measured)."""


class Pruned(NamedTuple):
    """What a pruning let go of."""

    stripped: int
    removed: int
    is_all: bool = True
    """Whether there was time for all that was found."""


def prune_beyond(session: Session, *, job_id: int, number: int, now: datetime) -> Pruned:
    """Prune the executions of a job up to this number; called as each run ends, so it finds one or two."""
    return _prune(session, queries.beyond(session, job_id=job_id, number=number) if number > 0 else [], now)


def prune_aged(session: Session, *, before: datetime, now: datetime, limit: int = 100, lines: int = _LINES) -> Pruned:
    """Prune executions that ended before a moment, so many of them and of their lines: a transaction stays short."""
    return _prune(session, queries.aged(session, before=before, limit=limit), now, lines=lines)


def anything_aged(session: Session, *, before: datetime) -> bool:
    """Return whether an execution is old enough to be pruned."""
    return bool(queries.aged(session, before=before, limit=1))


def _prune(session: Session, ids: Sequence[int], now: datetime, *, lines: int = _LINES) -> Pruned:
    """Prune as many of these as one short transaction can: those whose log is too long for it lose a part of it."""
    room, done = lines, []
    for execution_id in ids:
        room -= drop_lines(session, execution_id=execution_id, limit=room)
        if room <= 0:
            break
        done.append(execution_id)
    if done:
        queries.strip(session, done, now=now)
    return Pruned(len(done), queries.forget(session, done) if done else 0, is_all=room > 0)
