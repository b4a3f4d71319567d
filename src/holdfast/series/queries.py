"""Reads the series, adds to it for runs that settle nothing themselves, and thins it out as it ages.

Thinning moves sums and never loses any: minutes become hours, hours become days, and the totals of finished
runs become one row per source. Counters based on them never fall, and their cost depends only on the running
crawls.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from sqlalchemy import (
    BigInteger,
    ColumnElement,
    Delete,
    Select,
    case,
    delete,
    func,
    literal_column,
    or_,
    select,
    tuple_,
    type_coerce,
    update,
)
from sqlalchemy.orm import Session

from holdfast.clock import from_micros, to_micros
from holdfast.db.engine import insert_into
from holdfast.db.models import CleanupCount, Execution, Job, Series, SeriesTotal, Source
from holdfast.series.counting import COUNTED, Counts
from holdfast.series.raw_queries import MINUTE_S, minute_of

HOUR_S: Final = 3600
DAY_S: Final = 86_400
STEPS: Final = (MINUTE_S, HOUR_S, DAY_S)
_TOTAL: Final = from_micros(0)
_SECOND: Final = 1_000_000
# Write the condition as text: SQLite uses the partial index only if the statement repeats its condition.
_OPEN: Final[tuple[ColumnElement[Any], ...]] = tuple(
    literal_column(f"'{state}'") for state in ("queued", "running", "stopped")
)
_SUMS = tuple(func.coalesce(func.sum(getattr(Series, name)), 0).label(name) for name in COUNTED)


def _counts(row: Sequence[Any]) -> Counts:
    return Counter({name: int(value) for name, value in zip(COUNTED, row, strict=True)})


def _put(session: Session, rows: Sequence[dict[str, Any]]) -> None:
    """Add to rows of the series; their keys must be distinct."""
    put = insert_into(session, Series)
    table, new = Series.__table__.c, put.excluded
    grown: dict[str, ColumnElement[Any]] = {name: table[name] + new[name] for name in COUNTED}
    most = case((new.domains_waiting > table.domains_waiting, new.domains_waiting), else_=table.domains_waiting)
    grown["domains_waiting"] = most
    # Update in the order of keys, so that two processes that thin out the same rows cannot deadlock.
    rows = sorted(rows, key=lambda row: (row["execution_id"], -row["step_s"], row["at"]))
    session.connection().execute(
        put.on_conflict_do_update(index_elements=["execution_id", "step_s", "at"], set_=grown), rows
    )


def add_to_series(session: Session, execution_id: int, counts: Counts, *, now: datetime) -> None:
    """Add to the row of this minute and to the execution's total, in the caller's transaction."""
    numbers = {name: counts[name] for name in COUNTED}
    if any(numbers.values()):
        key = {"execution_id": execution_id, "domains_waiting": 0}
        minute = from_micros(minute_of(to_micros(now)))
        _put(
            session,
            [{**key, "step_s": MINUTE_S, "at": minute, **numbers}, {**key, "step_s": 0, "at": _TOTAL, **numbers}],
        )


def series_totals(session: Session) -> dict[str, Counts]:
    """Return the totals by source code: from a row for each recent run, and one for each source."""
    running = (
        select(Source.code, *_SUMS)
        .join(Execution, Execution.id == Series.execution_id)
        .join(Job, Job.id == Execution.job_id)
        .join(Source, Source.id == Job.source_id)
        .where(Series.at == _TOTAL, Series.step_s == 0)
        .group_by(Source.code)
    )
    kept = select(Source.code, *(getattr(SeriesTotal, name) for name in COUNTED)).join(
        Source, Source.id == SeriesTotal.source_id
    )
    found: dict[str, Counts] = {}
    for code, *numbers in (*session.execute(kept), *session.execute(running)):
        found.setdefault(code, Counter()).update(_counts(numbers))
    return found


def _open_frontiers() -> Select[int]:
    """Select the executions whose queue is or will be in use: a retry continues another execution's queue."""
    # The condition on the job, which every execution has, selects the partial index of open executions, ordered by job.
    is_open = Execution.job_id > 0, Execution.state.in_(_OPEN)
    return select(func.coalesce(Execution.frontier_id, Execution.id)).where(*is_open)


class SeriesPoint(NamedTuple):
    """Counts from one time on, for the length of a step."""

    at: datetime
    counts: Counts
    domains_waiting: int
    queue: int
    """Length of the queue at its end."""


def _selected(execution_id: int | None, source: str | None) -> list[ColumnElement[bool]]:
    clauses: list[ColumnElement[bool]] = [Series.step_s.in_(STEPS)]
    if execution_id is not None:
        # A retry continues the queue of another execution, and its activity is recorded there.
        own = select(func.coalesce(Execution.frontier_id, Execution.id)).where(Execution.id == execution_id)
        clauses.append(Series.execution_id == own.scalar_subquery())
    if source is not None:
        of_source = (
            select(Execution.id)
            .join(Job, Job.id == Execution.job_id)
            .join(Source, Source.id == Job.source_id)
            .where(Source.code == source)
        )
        clauses.append(Series.execution_id.in_(of_source))
    return clauses


def series_points(
    session: Session,
    *,
    since: datetime,
    until: datetime,
    step_s: int,
    execution_id: int | None = None,
    source: str | None = None,
) -> list[SeriesPoint]:
    """Return one point for each step from `since` to `until`, including steps without activity."""
    step, clauses = step_s * _SECOND, _selected(execution_id, source)
    # Use whole microseconds, which both databases round down alike; write them as text, because PostgreSQL cannot group
    # by a parameter.
    place = type_coerce(Series.at, BigInteger).op("/")(literal_column(str(step)))
    rows = session.execute(
        select(place, func.max(Series.domains_waiting), *_SUMS)
        .where(Series.at >= since, Series.at < until, *clauses)
        .group_by(place)
    )
    found = {int(number): (int(domains), _counts(numbers)) for number, domains, *numbers in rows}
    later = session.scalar(select(func.coalesce(func.sum(Series.queue), 0)).where(Series.at >= until, *clauses))
    queue = queue_length(session, execution_id, source) - int(later or 0)
    points: list[SeriesPoint] = []
    first, last = to_micros(since) // step, -(-to_micros(until) // step)
    for number in reversed(range(first, last)):
        domains, counts = found.get(number, (0, Counter()))
        # An interrupted run left attempts open, which are no longer queued.
        points.append(SeriesPoint(from_micros(number * step), counts, domains, max(0, queue)))
        queue -= counts["queue"]
    return points[::-1]


def queue_length(session: Session, execution_id: int | None = None, source: str | None = None) -> int:
    """Return the number of open attempts of an execution, or of all unfinished ones."""
    query = select(func.coalesce(func.sum(Series.queue), 0)).where(
        Series.step_s == 0, Series.at == _TOTAL, *_selected(execution_id, source)[1:]
    )
    # For one execution, finished or not, count what it left; for all, count only what will still be requested.
    if execution_id is None:
        query = query.where(Series.execution_id.in_(_open_frontiers()))
    return int(session.scalar(query) or 0)


def has_old(session: Session, *, step_s: int, before: datetime) -> bool:
    query = select(Series.execution_id).where(Series.step_s == step_s, Series.at < before).limit(1)
    return session.scalar(query) is not None


def roll_up(session: Session, *, step_s: int, into_s: int, before: datetime, limit: int) -> int:
    """Move the oldest rows of one step to rows of a longer one; return how many."""
    key = Series.execution_id, Series.at
    taken = _oldest(step_s, before, limit).returning(*key, Series.domains_waiting, *_TOTALLED)
    merged: dict[tuple[int, int], dict[str, Any]] = {}
    count = 0
    for execution_id, at, domains, *numbers in session.execute(taken.execution_options(synchronize_session=False)):
        count += 1
        start = to_micros(at) // (into_s * _SECOND) * into_s * _SECOND
        row = merged.setdefault(
            (execution_id, start),
            {
                **{"execution_id": execution_id, "step_s": into_s, "at": from_micros(start), "domains_waiting": 0},
                **dict.fromkeys(COUNTED, 0),
            },
        )
        row["domains_waiting"] = max(row["domains_waiting"], domains)
        for name, number in zip(COUNTED, numbers, strict=True):
            row[name] += number
    if merged:
        _put(session, list(merged.values()))
    return count


def drop_oldest(session: Session, *, step_s: int, before: datetime, limit: int) -> int:
    """Delete the oldest rows of a step; return how many. Their counts stay in the totals."""
    dropped = _oldest(step_s, before, limit).returning(Series.execution_id)
    return len(session.scalars(dropped.execution_options(synchronize_session=False)).all())


def _oldest(step_s: int, before: datetime, limit: int) -> Delete:
    oldest = (
        select(Series.execution_id, Series.at)
        .where(Series.step_s == step_s, Series.at < before)
        .order_by(Series.at, Series.execution_id)
        .limit(limit)
    )
    return delete(Series).where(Series.step_s == step_s, tuple_(Series.execution_id, Series.at).in_(oldest))


_TOTALLED = tuple(getattr(Series, name) for name in COUNTED)


def _over(before: datetime) -> list[ColumnElement[bool]]:
    """Return the conditions for totals of runs that ended before a time and have counts to fold."""
    return [
        Series.step_s == 0,
        Series.at == _TOTAL,
        Execution.id == Series.execution_id,
        Execution.state.not_in(_OPEN),
        Execution.finished_at < before,
        Series.execution_id.not_in(_open_frontiers()),
        or_(Series.queue == 0, *(number != 0 for number in _TOTALLED[:-1])),
    ]


def has_totals_to_fold(session: Session, *, before: datetime) -> bool:
    return session.scalar(select(Series.execution_id).where(*_over(before)).limit(1)) is not None


def fold_totals(session: Session, *, before: datetime, limit: int) -> int:
    """Add the totals of runs that ended before a time to their source's; return how many.

    A run whose queue was not empty keeps a row with only that: a retry may continue it.
    """
    over = (
        select(Series.execution_id, Job.source_id, *_TOTALLED)
        .where(Job.id == Execution.job_id, *_over(before))
        .order_by(Series.execution_id)
        .limit(limit)
        # Skip rows that another process is folding or settling now; the next call takes them.
        .with_for_update(of=Series, skip_locked=True)
    )
    rows = session.execute(over).all()
    by_source: dict[int, Counts] = {}
    for _, source_id, *found in rows:
        by_source.setdefault(source_id, Counter()).update(_counts(found))
    ids = [row[0] for row in rows]
    if ids:
        total = Series.execution_id.in_(ids), Series.step_s == 0, Series.at == _TOTAL
        session.execute(delete(Series).where(*total, Series.queue == 0).execution_options(synchronize_session=False))
        rest = update(Series).where(*total).values(dict.fromkeys(COUNTED[:-1], 0))
        session.execute(rest.execution_options(synchronize_session=False))
        _keep(session, by_source)
    return len(ids)


def _keep(session: Session, by_source: Mapping[int, Counts]) -> None:
    put = insert_into(session, SeriesTotal)
    table = SeriesTotal.__table__.c
    # Leave the queue: it belongs to the run.
    names = COUNTED[:-1]
    grown = {name: table[name] + put.excluded[name] for name in names}
    rows = [{"source_id": number, **{name: counts[name] for name in names}} for number, counts in by_source.items()]
    session.connection().execute(
        put.on_conflict_do_update(index_elements=["source_id"], set_=grown),
        sorted(rows, key=lambda row: row["source_id"]),
    )


def count_cleanup(session: Session, removed: Mapping[str, int], *, now: datetime) -> None:
    rows = [{"name": name, "removed": count, "last_at": now} for name, count in sorted(removed.items()) if count]
    if rows:
        put = insert_into(session, CleanupCount)
        grown = {"removed": CleanupCount.__table__.c.removed + put.excluded.removed, "last_at": put.excluded.last_at}
        session.connection().execute(put.on_conflict_do_update(index_elements=["name"], set_=grown), rows)


def cleanups(session: Session) -> list[CleanupCount]:
    return list(session.scalars(select(CleanupCount).order_by(CleanupCount.name)))


def last_minutes(session: Session, *, now: datetime, minutes: int) -> list[SeriesPoint]:
    """Return the last full minutes of all executions, oldest first."""
    until = from_micros(minute_of(to_micros(now)))
    return series_points(session, since=until - timedelta(minutes=minutes), until=until, step_s=MINUTE_S)
