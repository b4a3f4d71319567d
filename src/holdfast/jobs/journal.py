"""What happened to jobs: events in the order of their commits, the logs of executions, and how much of both is kept.

An event stands if and only if what it tells of does. A job's newest hundred executions or the last thirty days are kept
whole, whichever is less; pruning lets go of logs, metrics and stacks, and of a row only if nothing refers to it.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from sqlalchemy import case, delete, exists, func, insert, literal, select, update
from sqlalchemy.orm import Session, aliased

from holdfast.clock import Clock
from holdfast.config import JobSettings
from holdfast.coordination.events import order_events
from holdfast.db.engine import Database
from holdfast.db.models import (
    Change,
    Execution,
    ExecutionCount,
    Hold,
    Job,
    JobEvent,
    LogLine,
    Owner,
    PageCrawl,
    Queue,
    Snapshot,
    WarcFile,
)
from holdfast.db.models.base import Json, Moment
from holdfast.outside_text import clean


def insert_events(session: Session, rows: Sequence[dict[str, Any]]) -> None:
    """Append events."""
    session.execute(insert(JobEvent), rows)


def insert_status(
    session: Session, executions: Sequence[int], *, now: datetime, name: str, data: Mapping[str, dict[str, Any]]
) -> None:
    """Append one event for each execution, with what is to be told for the state of its job: one statement for all."""
    content = case(
        *((Job.state == state, literal(what, Json)) for state, what in data.items()), else_=literal({}, Json)
    )
    rows = (
        select(literal(now, Moment()), literal(name), Execution.job_id, Execution.id, content)
        .join(Job, Job.id == Execution.job_id)
        .where(Execution.id.in_(executions))
        .order_by(Execution.id)
    )
    session.execute(insert(JobEvent).from_select(["at", "name", "job_id", "execution_id", "data"], rows))


def has_events(session: Session, *, before: datetime) -> bool:
    """Return whether there are events from before a moment, the newest aside."""
    newest = select(func.max(JobEvent.id)).scalar_subquery()
    return session.scalar(select(JobEvent.id).where(JobEvent.at < before, JobEvent.id < newest).limit(1)) is not None


def read_events(session: Session, *, after: int, job_id: int | None = None, limit: int = 100) -> list[JobEvent]:
    """Return the events after this one, of all jobs or of one, oldest first."""
    query = select(JobEvent).where(JobEvent.id > after).order_by(JobEvent.id).limit(limit)
    return list(session.scalars(query if job_id is None else query.where(JobEvent.job_id == job_id)))


def last_event(session: Session) -> int:
    """Return the id of the newest event, 0 if there is none: where a new stream begins."""
    return session.scalar(select(func.coalesce(func.max(JobEvent.id), 0))) or 0


def drop_events(session: Session, *, before: datetime, limit: int) -> int:
    """Remove the oldest events from before a moment, never the newest; return how many."""
    # A bounded number at a time: SQLite's other writers wait for as long as this takes.
    # Never the newest: SQLite would give its number to the next event, and readers that go by numbers would miss that.
    newest = select(func.max(JobEvent.id)).scalar_subquery()
    old = select(JobEvent.id).where(JobEvent.at < before, JobEvent.id < newest)
    oldest = old.order_by(JobEvent.at).limit(limit).scalar_subquery()
    return len(session.scalars(delete(JobEvent).where(JobEvent.id.in_(oldest)).returning(JobEvent.id)).all())


def log_size(session: Session, *, execution_id: int) -> int | None:
    """Return how many lines an execution's log has, None if there is no such execution; its row is locked."""
    # Locked: a worker and the one that took its run over may both write lines, and the limit is one for both.
    query = select(Execution.log_lines).where(Execution.id == execution_id).with_for_update()
    return session.scalar(query)


def append_lines(
    session: Session, rows: Sequence[dict[str, Any]], *, execution_id: int, size: int, dropped: int
) -> None:
    """Append lines to an execution's log, and count them and those that found no room."""
    if rows:
        session.execute(insert(LogLine), rows)
    session.execute(
        update(Execution)
        .where(Execution.id == execution_id)
        .values(
            log_lines=Execution.log_lines + len(rows),
            log_bytes=Execution.log_bytes + size,
            log_dropped=Execution.log_dropped + dropped,
        )
    )


def lines_after(session: Session, *, execution_id: int, after: int, level: int, limit: int) -> list[LogLine]:
    """Return the lines of at least this level after this one, oldest first."""
    return list(
        session.scalars(
            select(LogLine)
            .where(LogLine.execution_id == execution_id, LogLine.id > after, LogLine.level >= level)
            .order_by(LogLine.id)
            .limit(limit)
        )
    )


def select_last_lines(session: Session, *, execution_id: int, level: int, limit: int) -> list[LogLine]:
    """Return the newest lines of at least this level, oldest first."""
    query = select(LogLine).where(LogLine.execution_id == execution_id, LogLine.level >= level)
    return list(reversed(session.scalars(query.order_by(LogLine.id.desc()).limit(limit)).all()))


def drop_lines(session: Session, *, execution_id: int, limit: int) -> int:
    """Remove the first lines of an execution's log, so many at most; return how many there were."""
    first = select(LogLine.id).where(LogLine.execution_id == execution_id).order_by(LogLine.id).limit(limit)
    gone = delete(LogLine).where(LogLine.id.in_(first.scalar_subquery())).returning(LogLine.id)
    return len(session.scalars(gone.execution_options(synchronize_session=False)).all())


STATUS, PROGRESS, COMPLETED = "job:status", "job:progress", "job:completed"


class NewJobEvent(NamedTuple):
    """Something that happened to a job and is to be told."""

    name: str
    job_id: int
    execution_id: int | None
    data: dict[str, Any]


def status(job_id: int, state: str, *, execution_id: int | None = None, **details: Any) -> NewJobEvent:
    """Return the event of a job's new state, or of what keeps it there."""
    return NewJobEvent(STATUS, job_id, execution_id, {"status": state, "details": details})


def progress(job_id: int, execution_id: int, *, items_found: int, items_indexed: int) -> NewJobEvent:
    """Return the event of a running execution's counts; each 10 items or 5 s are often enough."""
    return NewJobEvent(PROGRESS, job_id, execution_id, {"items_found": items_found, "items_indexed": items_indexed})


def completed(
    job_id: int, execution_id: int, state: str, *, duration_ms: int, items_indexed: int, error: str | None
) -> NewJobEvent:
    """Return the event of an execution's end, good or bad."""
    return NewJobEvent(
        COMPLETED,
        job_id,
        execution_id,
        {
            "status": state,
            "duration_ms": duration_ms,
            "items_indexed": items_indexed,
            "error_message": error,
        },
    )


def emit(session: Session, happened: Iterable[NewJobEvent], *, now: datetime) -> None:
    """Append events in the caller's transaction, as the last thing that it does."""
    rows = [
        {"at": now, "name": e.name, "job_id": e.job_id, "execution_id": e.execution_id, "data": e.data}
        for e in happened
    ]
    if rows:
        # Last in the transaction: a writer that waits for this lock must hold no row that the lock's owner still
        # needs.
        order_events(session)
        insert_events(session, rows)


def tell_queued(session: Session, executions: Sequence[int], *, now: datetime) -> None:
    """Append the events of executions that were just queued, as the last thing that the transaction does."""
    if executions:
        data = {state: {"status": state, "details": {"queued": True}} for state in ("pending", "scheduled")}
        order_events(session)
        insert_status(session, executions, now=now, name=STATUS, data=data)


def payload(row: JobEvent) -> dict[str, Any]:
    """Return what a stream says about an event, as the routes and commands print it."""
    ids: dict[str, Any] = {"job_id": row.job_id}
    if row.execution_id is not None:
        ids["execution_id"] = row.execution_id
    return {**ids, **row.data, "timestamp": row.at.isoformat()}


CATEGORIES: Final = tuple(
    f"crawler.{word}" for word in ("lifecycle", "fetch", "extract", "error", "rate_limit", "queue", "metrics")
)
LOG_NAME: Final = "logs/{job_id}/{number}.log.gz"
"""What a whole log is called outside."""
REPLAYED: Final = 200
"""Lines that a new reader of a running log is shown first."""
_MESSAGE_CHARS: Final = 4096
_FIELDS_CHARS: Final = 8192
# Share of the lines that only warnings and errors may fill: the end of a noisy log still tells what went wrong.
_RESERVED: Final = 0.02
_BATCH: Final = 200
# Lines held while the database is away; what comes then is only counted.
_WAITING: Final = 10_000
_PAGE: Final = 1000
_SECRET: Final = re.compile(r"authorization|cookie|password|secret|token", re.I)


class LogBook:
    """Where one execution's lines are written; buffered until `flush`. Used by one thread."""

    def __init__(self, database: Database, clock: Clock, execution_id: int, settings: JobSettings) -> None:
        self._database, self._clock, self._execution_id = database, clock, execution_id
        self._limit, self._least = settings.log_lines, level_number(settings.log_level)
        self._waiting: list[dict[str, Any]] = []
        self._dropped = 0

    def write(self, level: str, category: str, message: str, **fields: Any) -> None:
        """Note a line; below the level of the settings it is dropped, and a full batch is written at once."""
        number = level_number(level)
        if number < self._least:
            return
        # A database that is away for hours must not fill the memory of a worker.
        if len(self._waiting) >= _WAITING:
            self._dropped += 1
            return
        self._waiting.append(
            {
                "execution_id": self._execution_id,
                "at": self._clock.now(),
                "level": number,
                # A word that readers do not know would be lost to those that filter by category.
                "category": category if category in CATEGORIES else "crawler.lifecycle",
                "message": clean(message, _MESSAGE_CHARS),
                "fields": _bounded(fields),
            }
        )
        if len(self._waiting) >= _BATCH:
            self.flush()

    def flush(self) -> None:
        """Write what waits, in one short transaction; what finds no room is counted. Unavailable keeps it waiting."""
        if not self._waiting:
            return
        with self._database.write() as session:
            there = log_size(session, execution_id=self._execution_id)
            kept: list[dict[str, Any]] = []
            # The execution may have been removed with its history meanwhile: then the lines have no place.
            for line in self._waiting if there is not None else ():
                quiet = line["level"] < logging.WARNING
                room = self._limit - (int(self._limit * _RESERVED) if quiet else 0) - (there or 0)
                if len(kept) < room:
                    kept.append(line)
            size = sum(len(line["message"]) + len(json.dumps(line["fields"])) for line in kept)
            append_lines(
                session,
                kept,
                execution_id=self._execution_id,
                size=size,
                dropped=len(self._waiting) - len(kept) + self._dropped,
            )
        self._waiting.clear()
        self._dropped = 0


def level_number(level: str) -> int:
    """Return a level as a number; what is no level counts as info."""
    return logging.getLevelNamesMapping().get(level.upper(), logging.INFO)


def _bounded(fields: dict[str, Any]) -> dict[str, Any]:
    plain = {name: "[redacted]" if _SECRET.search(name) else value for name, value in fields.items()}
    text = json.dumps(plain, default=str)
    # A page decides how long an error is: one line must not be megabytes of a log.
    if len(text) > _FIELDS_CHARS:
        return {"truncated": True, "chars": len(text)}
    # As it will be read: a value that is no JSON is its text from here on.
    made: dict[str, Any] = json.loads(text)
    return made


def read_lines(
    session: Session, execution_id: int, *, after: int = 0, level: str = "debug", limit: int = _PAGE
) -> list[LogLine]:
    """Return lines after the one with this id, oldest first; the id of the last is where to go on."""
    return lines_after(session, execution_id=execution_id, after=after, level=level_number(level), limit=limit)


def last_lines(session: Session, execution_id: int, *, level: str = "debug", limit: int = REPLAYED) -> list[LogLine]:
    """Return the newest lines of at least this level, oldest first."""
    return select_last_lines(session, execution_id=execution_id, level=level_number(level), limit=limit)


def all_lines(database: Database, execution_id: int) -> Iterator[LogLine]:
    """Yield a whole log, a page of it at a time and no transaction in between, for a download."""
    after = 0
    while True:
        with database.read() as session:
            # A page at a time: a download that a slow client reads for an hour holds no transaction meanwhile.
            page = read_lines(session, execution_id, after=after)
        yield from page
        if len(page) < _PAGE:
            return
        after = page[-1].id


def entry(line: LogLine, *, job_id: int) -> dict[str, Any]:
    """Return a line as it is shown and downloaded."""
    return {
        "schema_version": 1,
        "timestamp": line.at.isoformat(),
        "level": logging.getLevelName(line.level).lower(),
        "category": line.category,
        "message": line.message,
        "job_id": job_id,
        "execution_id": line.execution_id,
        "fields": line.fields,
    }


_CLOSED = ("completed", "failed", "cancelled")


def beyond(session: Session, *, job_id: int, number: int) -> list[int]:
    """Return the closed, unpruned executions of a job up to this number."""
    return list(
        session.scalars(
            select(Execution.id).where(
                Execution.job_id == job_id,
                Execution.number <= number,
                Execution.pruned_at.is_(None),
                Execution.state.in_(_CLOSED),
            )
        )
    )


def aged(session: Session, *, before: datetime, limit: int) -> list[int]:
    """Return the closed, unpruned executions that ended before a moment, oldest first."""
    return list(
        session.scalars(
            select(Execution.id)
            .where(
                Execution.finished_at < before,
                Execution.finished_at.is_not(None),
                Execution.pruned_at.is_(None),
                Execution.state.in_(_CLOSED),
            )
            .order_by(Execution.finished_at, Execution.id)
            .limit(limit)
        )
    )


def strip(session: Session, ids: Sequence[int], *, now: datetime) -> None:
    """Let go of the stacks and metrics of executions."""
    session.execute(
        update(Execution)
        .where(Execution.id.in_(ids))
        .values(stack=None, metrics={}, pruned_at=now)
        .execution_options(synchronize_session=False)
    )


def forget(session: Session, ids: Sequence[int]) -> int:
    """Remove those of the executions that nothing refers to, never a job's latest; return how many."""
    later = aliased(Execution)
    # Never the latest: numbers of executions count on from it, and lists show it.
    newest = select(func.max(later.id)).where(later.job_id == Execution.job_id).scalar_subquery()
    referring = [
        exists().where(table.execution_id == Execution.id)
        for table in (WarcFile, PageCrawl, Snapshot, Owner, Queue, ExecutionCount)
    ]
    retried = aliased(Execution)
    referring.append(exists().where(retried.job_id == Execution.job_id, retried.resumed_from == Execution.id))
    referring.append(exists().where(Change.to_execution_id == Execution.id))
    referring.append(exists().where(Job.id == Execution.job_id, Job.edition_id.is_not(None)))
    gone = session.scalars(
        delete(Execution)
        .where(Execution.id.in_(ids), Execution.id < newest, *(~refers for refers in referring))
        .returning(Execution.id)
        .execution_options(synchronize_session=False)
    ).all()
    if gone:
        session.execute(delete(Hold).where(Hold.execution_id.in_(gone)))
    return len(gone)


# Lines of logs that one transaction removes: SQLite takes 0.1 s for them (measured).
_LINES = 10_000


class Pruned(NamedTuple):
    """What a pruning let go of."""

    stripped: int
    removed: int
    is_all: bool = True
    """Whether there was time for all that was found."""


def prune_beyond(session: Session, *, job_id: int, number: int, now: datetime) -> Pruned:
    """Prune the executions of a job up to this number; called as each run ends, so it finds one or two."""
    return _prune(session, beyond(session, job_id=job_id, number=number) if number > 0 else [], now)


def prune_aged(session: Session, *, before: datetime, now: datetime, limit: int = 100, lines: int = _LINES) -> Pruned:
    """Prune executions that ended before a moment, so many of them and of their lines: a transaction stays short."""
    return _prune(session, aged(session, before=before, limit=limit), now, lines=lines)


def anything_aged(session: Session, *, before: datetime) -> bool:
    """Return whether an execution is old enough to be pruned."""
    return bool(aged(session, before=before, limit=1))


def _prune(session: Session, ids: Sequence[int], now: datetime, *, lines: int = _LINES) -> Pruned:
    """Prune as many of these as one short transaction can: those whose log is too long for it lose a part of it."""
    room, done = lines, []
    for execution_id in ids:
        # A log of 100,000 lines is removed in several transactions: one would keep SQLite's writers waiting.
        room -= drop_lines(session, execution_id=execution_id, limit=room)
        if room <= 0:
            break
        done.append(execution_id)
    if done:
        strip(session, done, now=now)
    return Pruned(len(done), forget(session, done) if done else 0, is_all=room > 0)
