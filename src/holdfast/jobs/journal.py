"""Job history: events in commit order, the logs of executions, and the retention of both.

An event exists if and only if its transaction committed. Executions are preserved in full while they are
among a job's newest hundred or at most thirty days old, whichever is less; pruning deletes logs, metrics and
stacks, and a row only if nothing refers to it.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, Final

from sqlalchemy import Select, case, delete, exists, func, insert, literal, select, update
from sqlalchemy.orm import Session, aliased

from holdfast.clock import Clock
from holdfast.config import JobSettings
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
from holdfast.events import order_events
from holdfast.jobs.store import OVER, of_source
from holdfast.outside_text import clean


def has_events(session: Session, *, before: datetime) -> bool:
    """Return whether there are events from before a moment, except the newest."""
    newest = select(func.max(JobEvent.id)).scalar_subquery()
    return session.scalar(select(JobEvent.id).where(JobEvent.at < before, JobEvent.id < newest).limit(1)) is not None


def read_events(session: Session, *, after: int, job_id: int | None = None, limit: int = 100) -> list[JobEvent]:
    """Return the events after this id, of all jobs or of one, oldest first."""
    query = select(JobEvent).where(JobEvent.id > after).order_by(JobEvent.id).limit(limit)
    return list(session.scalars(query if job_id is None else query.where(JobEvent.job_id == job_id)))


def last_event(session: Session) -> int:
    """Return the id of the newest event, 0 without any: where a new stream starts."""
    return session.scalar(select(func.coalesce(func.max(JobEvent.id), 0))) or 0


def drop_events(session: Session, *, before: datetime, limit: int) -> int:
    """Delete the oldest events from before a moment, never the newest; return how many."""
    # Delete a bounded number at a time: SQLite's other writers wait meanwhile. Never delete the newest: SQLite would
    # reuse its id, and readers that continue by id would miss that event.
    newest = select(func.max(JobEvent.id)).scalar_subquery()
    old = select(JobEvent.id).where(JobEvent.at < before, JobEvent.id < newest)
    oldest = old.order_by(JobEvent.at).limit(limit).scalar_subquery()
    return len(session.scalars(delete(JobEvent).where(JobEvent.id.in_(oldest)).returning(JobEvent.id)).all())


STATUS, PROGRESS, COMPLETED = "job:status", "job:progress", "job:completed"


def status(job_id: int, state: str, *, execution_id: int | None = None, **details: Any) -> JobEvent:
    data = {"status": state, "details": details}
    return JobEvent(name=STATUS, job_id=job_id, execution_id=execution_id, data=data)


def progress(job_id: int, execution_id: int, *, items_found: int, items_indexed: int) -> JobEvent:
    """Return the event of a running execution's counts; every 10 items or 5 s is often enough."""
    data = {"items_found": items_found, "items_indexed": items_indexed}
    return JobEvent(name=PROGRESS, job_id=job_id, execution_id=execution_id, data=data)


def completed(
    job_id: int, execution_id: int, state: str, *, duration_ms: int, items_indexed: int, error: str | None
) -> JobEvent:
    data = {"status": state, "duration_ms": duration_ms, "items_indexed": items_indexed, "error_message": error}
    return JobEvent(name=COMPLETED, job_id=job_id, execution_id=execution_id, data=data)


def emit(session: Session, happened: Sequence[JobEvent], *, now: datetime) -> None:
    """Append events in the caller's transaction; call it last."""
    if happened:
        # Do this last in the transaction: a writer that waits for this lock must not hold a row that the lock's owner
        # still needs.
        order_events(session)
        for event in happened:
            event.at = now
        session.add_all(happened)
        session.flush()


def tell_queued(session: Session, executions: Sequence[int], *, now: datetime) -> None:
    """Append the events of executions that were just queued, in one statement; call it last in the transaction."""
    if not executions:
        return
    data = {state: {"status": state, "details": {"queued": True}} for state in ("pending", "scheduled")}
    content = case(
        *((Job.state == state, literal(what, Json)) for state, what in data.items()), else_=literal({}, Json)
    )
    rows = (
        select(literal(now, Moment()), literal(STATUS), Execution.job_id, Execution.id, content)
        .join(Job, Job.id == Execution.job_id)
        .where(Execution.id.in_(executions))
        .order_by(Execution.id)
    )
    order_events(session)
    session.execute(insert(JobEvent).from_select(["at", "name", "job_id", "execution_id", "data"], rows))


def payload(row: JobEvent) -> dict[str, Any]:
    ids: dict[str, Any] = {"job_id": row.job_id}
    if row.execution_id is not None:
        ids["execution_id"] = row.execution_id
    return {**ids, **row.data, "timestamp": row.at.isoformat()}


CATEGORIES: Final = tuple(
    f"crawler.{word}" for word in ("lifecycle", "fetch", "extract", "error", "rate_limit", "queue", "metrics")
)
LOG_NAME: Final = "logs/{job_id}/{number}.log.gz"
"""The public name of a whole log."""
REPLAYED: Final = 200
"""Lines that a new reader of a running log gets first."""
_MESSAGE_CHARS: Final = 4096
_FIELDS_CHARS: Final = 8192
# Share of the lines reserved for warnings and errors, so that the end of a noisy log still shows what failed.
_RESERVED: Final = 0.02
_BATCH: Final = 200
# Lines buffered while the database is unavailable; later ones are only counted.
_WAITING: Final = 10_000
_PAGE: Final = 1000
_SECRET: Final = re.compile(r"authorization|cookie|password|secret|token", re.I)


class LogBook:
    """Writer of one execution's log; buffered until `flush`. Used by one thread."""

    def __init__(self, database: Database, clock: Clock, execution_id: int, settings: JobSettings) -> None:
        self._database, self._clock, self._execution_id = database, clock, execution_id
        self._limit, self._least = settings.log_lines, level_number(settings.log_level)
        self._waiting: list[dict[str, Any]] = []
        self._dropped = 0

    def write(self, level: str, category: str, message: str, **fields: Any) -> None:
        """Log a line; lines below the configured level are dropped, and a full batch is written immediately."""
        number = level_number(level)
        if number < self._least:
            return
        # A database that is unavailable for hours must not fill a worker's memory.
        if len(self._waiting) >= _WAITING:
            self._dropped += 1
            return
        self._waiting.append(
            {
                "execution_id": self._execution_id,
                "at": self._clock.now(),
                "level": number,
                # Readers that filter by category would miss an unknown category.
                "category": category if category in CATEGORIES else "crawler.lifecycle",
                "message": clean(message, _MESSAGE_CHARS),
                "fields": _bounded(fields),
            }
        )
        if len(self._waiting) >= _BATCH:
            self.flush()

    def flush(self) -> None:
        """Write buffered lines in one short transaction, counting dropped ones. On Unavailable they stay buffered."""
        if not self._waiting:
            return
        with self._database.write() as session:
            # Lock the row: a worker and the one that took over its run may both write lines, and share one limit.
            mine = Execution.id == self._execution_id
            there = session.scalar(select(Execution.log_lines).where(mine).with_for_update())
            kept: list[dict[str, Any]] = []
            # Pruning may have removed the execution meanwhile: then drop the lines.
            for line in self._waiting if there is not None else ():
                quiet = line["level"] < logging.WARNING
                room = self._limit - (int(self._limit * _RESERVED) if quiet else 0) - (there or 0)
                if len(kept) < room:
                    kept.append(line)
            size = sum(len(line["message"]) + len(json.dumps(line["fields"])) for line in kept)
            if kept:
                session.execute(insert(LogLine), kept)
            grown = {"lines": len(kept), "bytes": size, "dropped": len(self._waiting) - len(kept) + self._dropped}
            values = {f"log_{name}": getattr(Execution, f"log_{name}") + count for name, count in grown.items()}
            session.execute(update(Execution).where(mine).values(values))
        self._waiting.clear()
        self._dropped = 0


def level_number(level: str) -> int:
    """Return a level as a number; an unknown level counts as info."""
    return logging.getLevelNamesMapping().get(level.upper(), logging.INFO)


def _bounded(fields: dict[str, Any]) -> dict[str, Any]:
    plain = {name: "[redacted]" if _SECRET.search(name) else value for name, value in fields.items()}
    text = json.dumps(plain, default=str)
    # Error messages can contain text of the page: one message could fill megabytes.
    if len(text) > _FIELDS_CHARS:
        return {"truncated": True, "chars": len(text)}
    # Convert values as JSON readers load them: those that JSON cannot represent become strings.
    made: dict[str, Any] = json.loads(text)
    return made


def _lines(execution_id: int, level: str) -> Select[LogLine]:
    return select(LogLine).where(LogLine.execution_id == execution_id, LogLine.level >= level_number(level))


def read_lines(
    session: Session, execution_id: int, *, after: int = 0, level: str = "debug", limit: int = _PAGE
) -> list[LogLine]:
    """Return lines after this id, oldest first; the last line's id is where to continue."""
    query = _lines(execution_id, level).where(LogLine.id > after).order_by(LogLine.id)
    return list(session.scalars(query.limit(limit)))


def last_lines(session: Session, execution_id: int, *, level: str = "debug", limit: int = REPLAYED) -> list[LogLine]:
    """Return the newest lines of at least this level, oldest first."""
    newest = _lines(execution_id, level).order_by(LogLine.id.desc()).limit(limit)
    return list(session.scalars(newest))[::-1]


def all_lines(database: Database, execution_id: int) -> Iterator[LogLine]:
    """Yield a whole log, one page at a time without a transaction in between, for a download."""
    after = 0
    while True:
        with database.read() as session:
            # Read a page at a time: a client that downloads for an hour holds no transaction meanwhile.
            page = read_lines(session, execution_id, after=after)
        yield from page
        if len(page) < _PAGE:
            return
        after = page[-1].id


def entry(line: LogLine, *, job_id: int) -> dict[str, Any]:
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


def aged(session: Session, *, before: datetime, limit: int) -> list[int]:
    """Return the closed, unpruned executions that ended before a moment, oldest first."""
    return list(
        session.scalars(
            select(Execution.id)
            .where(
                Execution.finished_at < before,
                Execution.finished_at.is_not(None),
                Execution.pruned_at.is_(None),
                Execution.state.in_(OVER),
            )
            .order_by(Execution.finished_at, Execution.id)
            .limit(limit)
        )
    )


def forget(session: Session, ids: Sequence[int]) -> None:
    """Delete those executions that nothing refers to, never a job's latest."""
    later = aliased(Execution)
    # Keep the latest: the numbering of executions continues from it, and lists show it.
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


# Lines of logs that one transaction removes: SQLite takes 0.1 s for them (measured).
_LINES = 10_000


def prune_beyond(session: Session, *, job_id: int, number: int, now: datetime) -> None:
    """Prune the executions of a job up to this number; called as each run ends, so it finds one or two."""
    if number <= 0:
        return
    old = Execution.job_id == job_id, Execution.number <= number, Execution.pruned_at.is_(None)
    _prune(session, session.scalars(select(Execution.id).where(*old, Execution.state.in_(OVER))).all(), now)


def prune_aged(
    session: Session, *, before: datetime, now: datetime, limit: int = 100, lines: int = _LINES
) -> tuple[int, bool]:
    """Prune executions that ended before a moment; `limit` and `lines` keep the transaction short.

    Return how many were pruned, and whether all that were found are.
    """
    return _prune(session, aged(session, before=before, limit=limit), now, lines=lines)


def anything_aged(session: Session, *, before: datetime) -> bool:
    return bool(aged(session, before=before, limit=1))


def _prune(session: Session, ids: Sequence[int], now: datetime, *, lines: int = _LINES) -> tuple[int, bool]:
    """Prune as many of these as fit in a short transaction: a log that is too long loses only a part of it."""
    room, done = lines, []
    for execution_id in ids:
        # Remove a log of 100,000 lines in several transactions: one would block SQLite's writers.
        first = select(LogLine.id).where(LogLine.execution_id == execution_id).order_by(LogLine.id).limit(room)
        gone = delete(LogLine).where(LogLine.id.in_(first.scalar_subquery())).returning(LogLine.id)
        room -= len(session.scalars(gone.execution_options(synchronize_session=False)).all())
        if room <= 0:
            break
        done.append(execution_id)
    if done:
        # The metrics of an operation are its result.
        of_operation = Execution.job_id.in_(select(Job.id).where(~of_source()))
        kept = case((of_operation, Execution.metrics), else_=literal({}, Json))
        session.execute(
            update(Execution)
            .where(Execution.id.in_(done))
            .values(stack=None, metrics=kept, pruned_at=now)
            .execution_options(synchronize_session=False)
        )
        forget(session, done)
    return len(done), room > 0
