"""Events for other systems: one list over the rows of jobs, changes and rare events.

Each kind of row is read by id, in commit order; the three ids together are a position.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import func, select
from sqlalchemy.orm import InstrumentedAttribute, Session

from holdfast.db.models import Change, Event, Job, JobEvent, Snapshot, Source
from holdfast.events import EventName
from holdfast.jobs.journal import COMPLETED, PROGRESS, STATUS
from holdfast.jobs.store import OVER
from holdfast.outside_text import clean
from holdfast.withdrawals.visibility import is_withdrawn

# Change ids that one pass reads: nearly all of them may be captures without a change.
_CHANGES_AT_ONCE = 20_000
_ERROR_CHARS = 500
_CHANGE = "change"


class Position(NamedTuple):
    """How far each kind of row has been read."""

    jobs: int = 0
    events: int = 0
    changes: int = 0

    def __str__(self) -> str:
        return ".".join(map(str, self))


def read_position(written: str) -> Position | None:
    parts = written.split(".")
    if len(parts) != len(Position._fields) or not all(part.isdecimal() and len(part) < 19 for part in parts):
        return None
    return Position(*map(int, parts))


class PublicEvent(NamedTuple):
    """One event; contains no text written by a page or a reader."""

    key: str
    """Kind and id of the row: `job:17`."""
    name: EventName
    at: datetime
    source: str | None
    data: dict[str, Any]

    def body(self) -> str:
        message = {"type": self.name.value, "timestamp": self.at.isoformat(), "data": self.data}
        return json.dumps(message, separators=(",", ":"))


def newest(session: Session) -> Position:
    columns = (select(func.coalesce(func.max(model.id), 0)).scalar_subquery() for model in (JobEvent, Event, Change))
    return Position(*session.execute(select(*columns)).one())


def read_after(session: Session, after: Position, *, limit: int) -> tuple[list[PublicEvent], Position]:
    """Return the events after a position, at most `limit` of each kind, and the position to continue from.

    Jobs come first, then rare events, then changes; each kind in its order.
    """
    # Read the last ids before the rows: a row that is added in between is read next time instead of being skipped.
    last = newest(session)
    most = min(last.changes, after.changes + _CHANGES_AT_ONCE)
    jobs, jobs_at = _rows_after(session, _JOBS, JobEvent.id, after.jobs, last.jobs, limit)
    rare, rare_at = _rows_after(session, _RARE, Event.id, after.events, last.events, limit)
    changes, changes_at = _rows_after(session, _CHANGES, Change.id, after.changes, most, limit)
    found = (*(_of_job(*row) for row in jobs), *(_rare(*row) for row in rare), *(_of_change(*row) for row in changes))
    return [event for event in found if event is not None], Position(jobs_at, rare_at, changes_at)


def _rows_after(
    session: Session, query: Any, number: InstrumentedAttribute[int], after: int, last: int, limit: int
) -> tuple[Sequence[Any], int]:
    """Return the first rows with ids after one, up to the last, and the id up to which that was all."""
    if last <= after:
        return (), last
    rows = session.execute(query.where(number > after, number <= last).order_by(number).limit(limit)).all()
    return rows, rows[-1][0].id if len(rows) == limit else last


_JOBS = (
    select(JobEvent, Job.kind, Source.code)
    .outerjoin(Job, Job.id == JobEvent.job_id)
    .outerjoin(Source, Source.id == Job.source_id)
    .where(JobEvent.name != PROGRESS)
)
_RARE = select(Event, Source.code).outerjoin(Source, Source.id == Event.source_id)
_BY_STATE = {state: EventName(f"job.{state}") for state in ("scheduled", "paused", *OVER)}
_BY_STATE["pending"] = EventName.JOB_SCHEDULED
_BY_ENDING = {state: EventName(f"execution.{state}") for state in OVER}
_BY_INDEX = {state: EventName(f"execution.{state}") for state in ("indexed", "index_failed")}


def _of_job(row: JobEvent, kind: str | None, code: str | None) -> PublicEvent | None:
    name = _name_of(row)
    if name is None:
        return None
    data: dict[str, Any] = {"jobId": row.job_id, "executionId": row.execution_id, "source": code, "kind": kind}
    details = row.data.get("details", {})
    if name in _BY_ENDING.values():
        data |= {"durationMs": row.data.get("duration_ms"), "itemsIndexed": row.data.get("items_indexed")}
    optional = {
        "errorMessage": row.data.get("error_message") or details.get("error"),
        "reason": details.get("reason"),
        "nextRunAt": details.get("next_run_at"),
    }
    data |= {word: clean(str(value), _ERROR_CHARS) for word, value in optional.items() if value is not None}
    return PublicEvent(f"job:{row.id}", name, row.at, code, data)


def _name_of(row: JobEvent) -> EventName | None:
    if row.name == COMPLETED:
        return _BY_ENDING.get(row.data.get("status", ""))
    if row.name != STATUS:
        return None
    details: dict[str, Any] = row.data.get("details", {})
    if "index_state" in details:
        return _BY_INDEX.get(details["index_state"])
    if details.get("queued"):
        return EventName.EXECUTION_QUEUED
    if details.get("created"):
        return EventName.JOB_CREATED
    # Skipped turns are published beside the state, which has its own event.
    if "skipped_turns" in details:
        return None
    # A paused run; its job's own pause is reported by its state.
    if "run_paused" in details:
        return EventName.EXECUTION_PAUSED if details["run_paused"] else EventName.EXECUTION_RESUMED
    if row.data.get("status") == "running":
        return EventName.EXECUTION_STARTED if "owner" in details else None
    return _BY_STATE.get(row.data.get("status", ""))


def _rare(row: Event, code: str | None) -> PublicEvent | None:
    # A newer program on the same database may have written an unknown event.
    if row.name not in tuple(EventName):
        return None
    return PublicEvent(f"event:{row.id}", EventName(row.name), row.at, code, row.data)


_EVENT_OF_CHANGE = dict.fromkeys(("updated", "gone", "error"), EventName.CHANGE_DETECTED)
_EVENT_OF_CHANGE["new_page"] = EventName.CHANGE_NEW_PAGE
_CHANGES = (
    select(Change, Source.code, Snapshot.url, is_withdrawn())
    .join(Source, Source.id == Change.source_id)
    .outerjoin(Snapshot, Snapshot.id == Change.to_snapshot_id)
    .where(Change.type.in_(tuple(_EVENT_OF_CHANGE)))
)


def _of_change(row: Change, code: str, url: str | None, hidden: bool) -> PublicEvent:
    data = {
        "changeId": row.id,
        "type": row.type,
        "source": code,
        # The event stays, without its address: a webhook may lag by days.
        "url": None if hidden else url,
        "fromSnapshotId": row.from_snapshot_id,
        "toSnapshotId": row.to_snapshot_id,
        "fromCapturedAt": None if row.from_captured_at is None else row.from_captured_at.isoformat(),
        "toCapturedAt": row.to_captured_at.isoformat(),
        "executionId": row.to_execution_id,
    }
    return PublicEvent(f"{_CHANGE}:{row.id}", _EVENT_OF_CHANGE[row.type], row.computed_at, code, data)


def withdrawn_changes(session: Session, keys: Sequence[str]) -> set[str]:
    """Return those of these events (`change:17`) whose capture was taken down."""
    numbers = [int(number) for kind, _, number in (key.partition(":") for key in keys) if kind == _CHANGE]
    if not numbers:
        return set()
    query = select(Change.id).join(Snapshot, Snapshot.id == Change.to_snapshot_id)
    found = session.scalars(query.where(Change.id.in_(numbers), is_withdrawn()).order_by(Change.id))
    return {f"{_CHANGE}:{number}" for number in found}


def without_address(body: str) -> str:
    message = json.loads(body)
    message["data"]["url"] = None
    return json.dumps(message, separators=(",", ":"))
