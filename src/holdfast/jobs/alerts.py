"""Alerts for conditions that need a person, derived from metrics and heartbeats; stored as rows, sent as events.

Any number of processes may check; one has the turn. `deploy/prometheus/rules.yml` has the same rules for
Prometheus.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final, Literal

from sqlalchemy import ColumnElement, case, delete, func, or_, select, update
from sqlalchemy.orm import Session

from holdfast import log
from holdfast.clock import Clock, from_micros
from holdfast.db.engine import Database, insert_into, moment_in, server_clock
from holdfast.db.models import Alert, AlertTurn, Execution, Job, JobEvent, Owner, Series, Source
from holdfast.events import EventName, record_event
from holdfast.jobs.journal import STATUS
from holdfast.processes.owners import GONE, WORKER_KINDS
from holdfast.records import Operator, from_row, record
from holdfast.series.counting import STATUSES
from holdfast.series.queries import SeriesPoint, last_minutes
from holdfast.series.raw_queries import MINUTE_S

_log = log.get()
MINUTES: Final = 5
"""Consecutive whole minutes for which a condition must hold."""
ERROR_SHARE: Final = 0.2
FEWEST_ANSWERS: Final = 10
"""Minimum number of responses in those minutes for a meaningful error rate."""
GROWTH: Final = 0.1
SMALLEST_QUEUE: Final = 1000
"""A shorter queue may grow at any rate: each crawl starts with one."""
QUIET: Final = timedelta(minutes=MINUTES)
"""How long crawls must be healthy to resolve an alert: one good minute, or one without requests, is too little."""
STALLED: Final = timedelta(hours=1)
"""Time without a new page after which a run is stalled; the same default as `holdfast auto-recover`."""
_KEPT: Final = timedelta(days=90)
# Share of the interval after which the next check may run: timers are never exact.
_EARLY: Final = 0.8


class AlertName(StrEnum):
    HIGH_ERROR_RATE = "high_error_rate"
    FRONTIER_BACKLOG = "frontier_backlog"
    WORKER_SILENT = "worker_silent"
    CRAWL_STALLED = "crawl_stalled"


class AlertSeverity(StrEnum):
    WARNING = "warning"
    CRITICAL = "critical"


@record
class AlertRecord:
    """A condition that needs attention: when it started, and when it was resolved."""

    id: Operator[int]
    name: Operator[AlertName]
    severity: Operator[AlertSeverity]
    state: Operator[Literal["firing", "resolved"]]
    since: Operator[datetime]
    last_seen_at: Operator[datetime]
    resolved_at: Operator[datetime | None]
    value: Operator[float]
    """The last measurement: a share, growth per minute, or seconds of silence."""
    message: Operator[str]


def alert_record(row: Alert) -> AlertRecord:
    return from_row(AlertRecord, row, state="firing" if row.resolved_at is None else "resolved")


def _alert(name: AlertName, since: datetime, value: float, message: str) -> Alert:
    severity = AlertSeverity.CRITICAL if name is AlertName.WORKER_SILENT else AlertSeverity.WARNING
    return Alert(name=name.value, severity=severity.value, since=since, value=value, message=message)


def judge(
    points: Sequence[SeriesPoint],
    workers: Sequence[Owner],
    runs: Sequence[tuple[int, str, datetime]] = (),
    *,
    now: datetime,
) -> list[Alert]:
    """Return current problems, from the last whole minutes of all crawls, the open workers and their runs."""
    found = (_error_rate(points), _backlog(points), _silent(workers, now), _stalled(runs, now))
    return [one for one in found if one is not None]


def _error_rate(points: Sequence[SeriesPoint]) -> Alert | None:
    """Find 4xx and 5xx above a fifth of all responses in each of the minutes."""
    answers = [sum(point.counts[name] for name in STATUSES) for point in points]
    errors = [point.counts["status_4xx"] + point.counts["status_5xx"] for point in points]
    if not points or sum(answers) < FEWEST_ANSWERS:
        return None
    # A minute without a response interrupts the streak: without requests nothing fails.
    if not all(some and bad > ERROR_SHARE * some for bad, some in zip(errors, answers, strict=True)):
        return None
    share = sum(errors) / sum(answers)
    message = (
        f"{share:.0%} of {sum(answers):,} answers in the last {len(points)} minutes were 4xx or 5xx; which sites: "
        "holdfast status, and the report of the execution"
    )
    return _alert(AlertName.HIGH_ERROR_RATE, points[0].at, round(share, 4), message)


def _backlog(points: Sequence[SeriesPoint]) -> Alert | None:
    """Find a queue that grew by more than a tenth in each of the minutes."""
    rates = []
    for point in points:
        before = point.queue - point.counts["queue"]
        if before < SMALLEST_QUEUE or point.counts["queue"] <= GROWTH * before:
            return None
        rates.append(point.counts["queue"] / before)
    if not rates:
        return None
    message = (
        f"the queue grows by {min(rates):.0%} a minute or more and has {points[-1].queue:,} addresses; a trap, or a "
        "scope that is too wide? see: holdfast frontier list"
    )
    return _alert(AlertName.FRONTIER_BACKLOG, points[0].at, round(rates[-1], 4), message)


def _silent(workers: Sequence[Owner], now: datetime) -> Alert | None:
    silent = [owner for owner in workers if now - owner.heartbeat_at > GONE]
    if not silent:
        return None
    first = min(silent, key=lambda owner: owner.heartbeat_at)
    others = f" and {len(silent) - 1} more" if len(silent) > 1 else ""
    age_s = round((now - first.heartbeat_at).total_seconds(), 1)
    message = (
        f"worker {first.host}/{first.id}{others} has not been heard of for {age_s // 60:.0f} minutes; start one again: "
        "holdfast start-worker"
    )
    return _alert(AlertName.WORKER_SILENT, first.heartbeat_at, age_s, message)


def _stalled(runs: Sequence[tuple[int, str, datetime]], now: datetime) -> Alert | None:
    stalled = [run for run in runs if now - run[2] > STALLED]
    if not stalled:
        return None
    execution_id, source, moved_at = stalled[0]
    age_s = round((now - moved_at).total_seconds(), 1)
    others = f" and {len(stalled) - 1} more" if len(stalled) > 1 else ""
    message = (
        f"execution {execution_id} of {source}{others} has captured nothing for {age_s // 60:.0f} minutes; "
        f"see: holdfast status {execution_id}, and restart it with: holdfast auto-recover --apply"
    )
    return _alert(AlertName.CRAWL_STALLED, moved_at, age_s, message)


def look_for_alerts(database: Database, clock: Clock, *, every_s: float) -> bool:
    """Check for alerts and store changes; return False if another process did so less than `every_s` ago."""
    with database.read() as session:
        now = moment_in(session, server_clock(clock))
        before = now - timedelta(seconds=every_s * _EARLY)
        # Check without writing: several processes check, and SQLite has one writer.
        if not is_due(session, now=now, before=before):
            return False
        # Read before the write transaction: this reads some hundred rows.
        found = judge(
            last_minutes(session, now=now, minutes=MINUTES),
            open_workers(session),
            running_jobs(session),
            now=now,
        )
    with database.write() as session:
        if not take_turn(session, now=now, before=before):
            return False
        drop_resolved(session, before=now - _KEPT)
        for name, data in _write(session, found, now):
            record_event(session, name, at=now, data=data)
    return True


def _write(session: Session, found: Sequence[Alert], now: datetime) -> list[tuple[EventName, dict[str, Any]]]:
    open_rows = {row.name: row for row in firing(session)}
    events: list[tuple[EventName, dict[str, Any]]] = []
    for one in found:
        row = open_rows.pop(one.name, None)
        if row is None:
            row = one
            session.add(row)
            _log.warning("alert.firing", name=row.name, value=row.value, message=row.message)
            events.append((EventName.ALERT_FIRING, _facts(row)))
        row.last_seen_at, row.value, row.message = now, one.value, one.message
    for row in open_rows.values():
        # A worker's return is certain at once; shares of minutes fluctuate.
        if row.name != AlertName.WORKER_SILENT and now - row.last_seen_at < QUIET:
            continue
        row.resolved_at = now
        _log.info("alert.resolved", name=row.name)
        events.append((EventName.ALERT_RESOLVED, _facts(row)))
    session.flush()
    return events


def _facts(row: Alert) -> dict[str, Any]:
    facts = {name: getattr(row, name) for name in ("name", "severity", "since", "value", "message")}
    return {**facts, "since": row.since.isoformat()}


_ONLY = 1


def _passed(now: datetime, before: datetime) -> ColumnElement[bool]:
    # A time well ahead of now means that a wrong clock was set back: without this, no process would check until then.
    return or_(AlertTurn.looked_at <= before, AlertTurn.looked_at > now + (now - before))


def is_due(session: Session, *, now: datetime, before: datetime) -> bool:
    """Return whether no process has checked since a moment; nothing is locked."""
    passed = session.scalar(select(_passed(now, before)).where(AlertTurn.id == _ONLY))
    return passed is None or bool(passed)


def take_turn(session: Session, *, now: datetime, before: datetime) -> bool:
    """Claim the turn to check; False if another process checked since `before`. Held until the transaction ends."""
    new = insert_into(session, AlertTurn).values(id=_ONLY, looked_at=from_micros(0))
    session.execute(new.on_conflict_do_nothing())
    moved = update(AlertTurn).where(AlertTurn.id == _ONLY, _passed(now, before)).values(looked_at=now)
    returned = moved.returning(AlertTurn.id).execution_options(synchronize_session=False)
    return session.scalar(returned) is not None


def firing(session: Session) -> list[Alert]:
    """Return the unresolved alerts, oldest first."""
    return list(session.scalars(select(Alert).where(Alert.resolved_at.is_(None)).order_by(Alert.id)))


def list_alerts(session: Session, *, is_firing: bool | None, before: int | None, limit: int) -> list[Alert]:
    """Return alerts, newest first: all, firing ones, or resolved ones."""
    query = select(Alert).order_by(Alert.id.desc()).limit(limit)
    if is_firing is not None:
        query = query.where(Alert.resolved_at.is_(None) if is_firing else Alert.resolved_at.is_not(None))
    return list(session.scalars(query if before is None else query.where(Alert.id < before)))


def drop_resolved(session: Session, *, before: datetime, limit: int = 500) -> int:
    oldest = select(Alert.id).where(Alert.resolved_at < before).order_by(Alert.resolved_at).limit(limit)
    gone = delete(Alert).where(Alert.id.in_(oldest)).returning(Alert.id)
    return len(session.scalars(gone.execution_options(synchronize_session=False)).all())


def open_workers(session: Session) -> list[Owner]:
    """Return the workers whose rows are open, oldest first; a killed worker never reports its end."""
    query = select(Owner).where(Owner.ended_at.is_(None), Owner.kind.in_(WORKER_KINDS))
    return list(session.scalars(query.order_by(Owner.id)))


def running_jobs(session: Session) -> list[tuple[int, str, datetime]]:
    """Return the running, unpaused runs of jobs, the one with the oldest progress first; not limited.

    Each has its source's code, and when it last captured a page, was leased or was resumed.
    """
    # Walk the key from the newest minute back to one with a page; a run without a page in all kept minutes is stalled.
    of_run = Series.execution_id == func.coalesce(Execution.frontier_id, Execution.id), Series.step_s == MINUTE_S
    captured = select(Series.at).where(*of_run, Series.pages > 0).order_by(Series.at.desc()).limit(1)
    changes = select(JobEvent.at).where(JobEvent.job_id == Job.id, JobEvent.name == STATUS).order_by(JobEvent.id.desc())
    resumed_at = case((Execution.paused_seconds > 0, changes.limit(1).correlate(Job).scalar_subquery()))
    captured_at = captured.correlate(Execution).scalar_subquery()
    # Start from the locked jobs, by their index: without statistics SQLite would scan all executions.
    locked = select(Job.id).where(Job.lock_token.is_not(None))
    rows = session.execute(
        select(Execution.id, Source.code, Job.lock_acquired_at, captured_at, resumed_at)
        .join(Job, Job.id == Execution.job_id)
        .join(Source, Source.id == Job.source_id)
        .where(Execution.job_id.in_(locked), Execution.state == "running", Execution.paused_at.is_(None))
    )
    found = ((number, code, max(filter(None, moments))) for number, code, *moments in rows)
    return sorted(found, key=lambda one: one[2])
