"""Topics for live streams: job events, all public events, health, figures, and job logs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from holdfast.api.figures import CountedWork
from holdfast.api.live.hub import Frame, frame
from holdfast.db.engine import Database
from holdfast.db.models import Execution, JobEvent, LogLine
from holdfast.errors import HoldfastError
from holdfast.jobs.journal import (
    COMPLETED,
    REPLAYED,
    STATUS,
    entry,
    last_event,
    last_lines,
    payload,
    read_events,
    read_lines,
)
from holdfast.jobs.store import OVER
from holdfast.jobs.views.listing import execution, newest_logs, numbered_execution
from holdfast.jobs.views.recorded import active_workers
from holdfast.processes.disk import low_volume
from holdfast.records import Operator, from_row, record
from holdfast.webhooks.events import Position, PublicEvent, newest, read_after, read_position
from holdfast.wiring.archive import Archive

# Poll every half second, so that pages show events within a second. A poll is one statement by the primary key, however
# many clients listen.
LOOK_S = 0.5
# Count figures again only if a run settled pages, and never for more than a tenth of the time (`CountCache`).
FIGURES_S = 1.0
CAUGHT_UP = 1000
"""Maximum number of missed events that a reconnecting client receives; beyond it, the client is sent a gap event
and must reload from the routes.
"""
_AT_ONCE = 500
_EVENTS_AT_ONCE = 200
# Limit of polls per replay. Nearly all rows may be captures without a change: a client that was away for a year would
# make us read the whole table.
_LOOKS = 50
# Send unchanged health periodically, so that a client that shows its age knows that it is current.
_AGAIN = 30


def _gap(event_id: str, *, order: int = 0, track: str = "") -> Frame:
    missed = {"message": "too many events were missed; reload from the routes"}
    return frame("gap", missed, order=order, event_id=event_id, track=track)


_Place = TypeVar("_Place")


class _Stand(Generic[_Place]):
    """The read position of a topic, replaced when a listener joins after the last one left.

    A poll may still be running then; what it writes into the old one is not read.
    """

    def __init__(self, after: _Place) -> None:
        self.after = after


class _TableTopic(ABC, Generic[_Place]):
    """Events of database tables that are read in order."""

    interval_s = LOOK_S

    def __init__(self, database: Database) -> None:
        self._database = database
        self._stand: _Stand[_Place] | None = None

    @abstractmethod
    def _newest(self, session: Session) -> _Place:
        """Return the position after all events."""

    @abstractmethod
    def _read(self, session: Session, after: _Place) -> tuple[list[Frame], _Place]:
        """Return the events after a position, and the position after them."""

    def begin(self, key: Hashable) -> None:
        if self._stand is None:
            with self._database.read() as session:
                self._stand = _Stand(self._newest(session))

    def forget(self, key: Hashable) -> None:
        self._stand = None

    def poll(self, keys: Sequence[Hashable]) -> Mapping[Hashable, Sequence[Frame]]:
        stand = self._stand
        if stand is None:
            return {}
        with self._database.read() as session:
            found, stand.after = self._read(session, stand.after)
        return {None: found}


class CrawlerTopic(_TableTopic[int]):
    name = "crawler"

    def _newest(self, session: Session) -> int:
        return last_event(session)

    def _read(self, session: Session, after: int) -> tuple[list[Frame], int]:
        rows = read_events(session, after=after, limit=_AT_ONCE)
        return [one for row in rows for one in _job_frames(row)], rows[-1].id if rows else after

    def replay(self, last_id: str | None) -> list[Frame]:
        """Return the events after the last one that a client has seen; empty for a new client."""
        after = _number(last_id)
        if after is None:
            return []
        with self._database.read() as session:
            last = last_event(session)
            rows = read_events(session, after=after, limit=CAUGHT_UP + 1)
        if len(rows) > CAUGHT_UP:
            return [_gap(str(last), order=last), Frame(last, b"", _STAGES)]
        return [one for row in rows for one in _job_frames(row)]


_STAGES = "stages"


def _job_frames(row: JobEvent) -> list[Frame]:
    """Return a job event, preceded by `pipeline:stage` if a run entered or left a stage."""
    event = frame(row.name, payload(row), order=row.id, event_id=str(row.id))
    details = row.data.get("details") or {}
    if "index_state" in details:
        stage = {"stage": "index", "status": details["index_state"]}
    elif row.name == COMPLETED or (row.name == STATUS and "owner" in details):
        stage = {"stage": "crawl", "status": row.data["status"]}
    else:
        return [event]
    known = {"job_id": row.job_id, "execution_id": row.execution_id, "timestamp": row.at.isoformat()}
    return [frame("pipeline:stage", known | stage, order=row.id, track=_STAGES), event]


def _number(last_id: str | None) -> int | None:
    return int(last_id) if last_id and last_id.isascii() and last_id.isdigit() and len(last_id) < 19 else None


class EventsTopic(_TableTopic[Position]):
    """All events that webhooks can receive."""

    name = "events"

    def _newest(self, session: Session) -> Position:
        return newest(session)

    def _read(self, session: Session, after: Position) -> tuple[list[Frame], Position]:
        found, following = read_after(session, after, limit=_EVENTS_AT_ONCE)
        return list(_event_frames(found, after, following)), following

    def replay(self, last_id: str | None) -> list[Frame]:
        """Return the events after the last one that a client has seen; empty for a new client."""
        after = read_position(last_id) if last_id else None
        if after is None:
            return []
        frames: list[Frame] = []
        with self._database.read() as session:
            end = newest(session)
            for _ in range(_LOOKS):
                if not any(new > old for new, old in zip(end, after, strict=True)):
                    return frames
                found, following = self._read(session, after)
                frames += found
                if len(frames) > CAUGHT_UP:
                    break
                after = following
        # Return the gap, and its end in each table: events that were read meanwhile are not sent again.
        seen = (Frame(order, b"", track) for track, order in end._asdict().items())
        return [_gap(str(end), order=end.jobs, track="jobs"), *seen]


def _event_frames(events: Sequence[PublicEvent], after: Position, following: Position) -> Iterator[Frame]:
    """Yield events, each with the position after it; the last one is where the next poll begins."""
    at = after
    for number, event in enumerate(events, 1):
        kind, _, row_id = event.key.partition(":")
        column = {"job": "jobs", "event": "events", "change": "changes"}[kind]
        at = following if number == len(events) else at._replace(**{column: int(row_id)})
        data = {"source": event.source, "timestamp": event.at.isoformat(), **event.data}
        yield frame(event.name.value, data, order=int(row_id), event_id=str(at), track=column)


class SampledTopic:
    """A state that is polled and sent when it changes, or when it was not sent for a long time."""

    interval_s = FIGURES_S

    def __init__(self, name: str, event: str, sample: Callable[[], dict[str, Any]]) -> None:
        self.name, self._event, self._sample = name, event, sample
        self._sent: dict[str, Any] | None = None
        self._same = self._count = 0

    def begin(self, key: Hashable) -> None:
        """Do nothing: each listener receives the state first."""

    def forget(self, key: Hashable) -> None:
        """Do nothing: no state per key is stored."""

    def poll(self, keys: Sequence[Hashable]) -> Mapping[Hashable, Sequence[Frame]]:
        """Return the state if it has changed or was not sent for a long time."""
        found = self._sample()
        self._same = self._same + 1 if found == self._sent else 0
        if self._same % _AGAIN:
            return {}
        self._sent = found
        self._count += 1
        return {None: [frame(self._event, found, order=self._count)]}

    def replay(self, _last_id: str | None) -> list[Frame]:
        # Its position precedes everything that a later poll finds.
        return [frame(self._event, self._sample(), order=-1)]


def room_of(archive: Archive) -> dict[str, Any]:
    """Return whether the volumes have room, and whether the database refused the last write for want of it."""
    return {
        "disk": "ok" if low_volume(archive.settings) is None else "low",
        "writes": "ok" if archive.database.takes_writes(archive.home) else "refused",
    }


def sample_health(archive: Archive) -> dict[str, Any]:
    try:
        with archive.database.read() as session:
            workers = len(active_workers(session, archive.clock))
        room = room_of(archive)
    except (HoldfastError, SQLAlchemyError, OSError):
        return {"status": "error", "checks": {"db": "error"}}
    status = "ok" if set(room.values()) == {"ok"} else "degraded"
    return {"status": status, "checks": {"db": "ok", **room}, "workers": workers}


@record
class CrawlerFigures:
    """Current crawl figures, as `metrics:update` of `/api/metrics/events` streams them."""

    jobs: Operator[dict[str, int]]
    """By `admin_status`."""
    pages: Operator[int]
    """Of all crawls since the archive was created."""
    pages_per_second: Operator[float]
    """In the last whole minute."""
    success_rate: Operator[float | None]
    """Over the last five whole minutes; null without any request."""
    queue: Operator[int]
    """Queued addresses."""
    domains_leased: Operator[int]
    domains_waiting: Operator[int]
    circuits: Operator[dict[str, int]]
    """Domains that are paused after failures, by state."""
    workers: Operator[int]
    alerts: Operator[list[str]]
    """Names of the firing alerts."""
    warc_bytes: Operator[int]


def read_figures(database: Database, work: CountedWork) -> CrawlerFigures:
    """Return the figures of jobs and crawls, as of the last count."""
    with database.read() as session:
        found = work.read(session)
    recorded = found.recorded
    return from_row(
        CrawlerFigures,
        recorded,
        jobs=found.jobs,
        pages=sum(counts["pages"] for counts in recorded.by_source.values()),
        alerts=sorted(name for name, fires in recorded.alerts.items() if fires),
        warc_bytes=sum(found.storage[1]["warc"].values()),
    )


class LogKey(NamedTuple):
    job_id: int
    number: int | None
    """Number of the execution; None follows the newest one, and then the next."""


class LogTopic:
    """The logs of jobs: of the newest execution of each, or of a numbered one."""

    name = "logs"
    interval_s = LOOK_S

    def __init__(self, database: Database) -> None:
        self._database = database
        self._state: dict[Hashable, _LogState] = {}

    def begin(self, key: Hashable) -> None:
        if key not in self._state:
            assert isinstance(key, LogKey)
            with self._database.read() as session:
                self._state[key] = _state_of(session, key)

    def forget(self, key: Hashable) -> None:
        self._state.pop(key, None)

    def poll(self, keys: Sequence[Hashable]) -> Mapping[Hashable, Sequence[Frame]]:
        """Return the new lines of these logs; costs one statement for all, and one more for each log with new
        lines.
        """
        found: dict[Hashable, Sequence[Frame]] = {}
        wanted = [key for key in keys if isinstance(key, LogKey)]
        with self._database.read() as session:
            newest = {log.job_id: log for log in newest_logs(session, sorted({key.job_id for key in wanted}))}
            for key in wanted:
                # Its last listener may have left since the poll started: do not add the key again.
                known, log = self._state.get(key), newest.get(key.job_id)
                if known is not None and log is not None:
                    found[key] = known.look(session, log)
        return found

    def replay(self, job_id: int, number: int | None, last_id: str | None) -> list[Frame]:
        """Return the last lines of a job's log, or those after the last one that a client has seen.

        For a numbered execution that has ended, also return the end event.
        """
        after = _number(last_id)
        with self._database.read() as session:
            run = numbered_execution(session, job_id=job_id, number=number)
            if run is None:
                return []
            lines = last_lines(session, run.id) if after is None else _missed(session, run, after)
        frames = [_replayed(job_id, lines[start : start + REPLAYED]) for start in range(0, len(lines), REPLAYED)]
        if number is not None and run.finished_at is not None:
            frames.append(_archived(job_id, run.id, run.state, lines[-1].id if lines else after or 0))
        return frames

    def missed(self, job_id: int, number: int | None, last_id: str) -> bool:
        after = _number(last_id)
        with self._database.read() as session:
            run = numbered_execution(session, job_id=job_id, number=number)
            return run is not None and (after is None or bool(read_lines(session, run.id, after=after, limit=1)))


def _missed(session: Session, run: Execution, after: int) -> list[LogLine]:
    """Return the lines after one; only the last lines if there are more than a replay may send."""
    lines = read_lines(session, run.id, after=after, limit=CAUGHT_UP + 1)
    return last_lines(session, run.id) if len(lines) > CAUGHT_UP else lines


def _state_of(session: Session, key: LogKey) -> _LogState:
    run = numbered_execution(session, job_id=key.job_id, number=key.number)
    if run is None:
        return _LogState(key)
    last = last_lines(session, run.id, limit=1)
    return _LogState(key, run.id, last[-1].id if last else 0, lines=run.log_lines, is_over=run.finished_at is not None)


class _LogState:
    def __init__(
        self, key: LogKey, execution_id: int | None = None, after: int = 0, *, lines: int = 0, is_over: bool = False
    ) -> None:
        self._key, self._execution_id, self._after = key, execution_id, after
        self._lines, self._is_over = lines, is_over

    def look(self, session: Session, newest: Execution) -> list[Frame]:
        """Return new frames; runs a statement only if the number of lines has grown.

        Of `newest` only the columns of `newest_logs` are there.
        """
        if newest.id == self._execution_id:
            return self._new(session, newest)
        frames: list[Frame] = []
        if self._execution_id is not None and not self._is_over:
            # It ended, and the next run started, between two polls: send its last lines first.
            run = execution(session, self._execution_id)
            if run is not None:
                frames = self._new(session, run)
                if not self._is_over and run.finished_at is not None:
                    return frames
        if self._key.number is not None:
            return frames
        # Lines are numbered across all executions: those of the next one follow.
        self._execution_id, self._lines, self._is_over = newest.id, 0, False
        return [*frames, *self._new(session, newest)]

    def _new(self, session: Session, log: Execution) -> list[Frame]:
        frames: list[Frame] = []
        if log.log_lines != self._lines:
            rows = read_lines(session, log.id, after=self._after, limit=_AT_ONCE)
            frames = [_line_frame(self._key.job_id, row) for row in rows]
            if rows:
                self._after = rows[-1].id
            # The page is full: the next poll reads the rest, whatever the count says.
            self._lines = log.log_lines if len(rows) < _AT_ONCE else -1
        if log.state in OVER and not self._is_over and self._lines == log.log_lines:
            self._is_over = True
            last = _archived(self._key.job_id, log.id, log.state, self._after)
            frames.append(last._replace(is_last=self._key.number is not None))
        return frames


def _line_frame(job_id: int, line: LogLine) -> Frame:
    return frame("log:line", _numbered(line, job_id), order=2 * line.id, event_id=str(line.id))


def _numbered(line: LogLine, job_id: int) -> dict[str, Any]:
    """Return a line with its number, so that a client that receives lines twice can skip the ones it has."""
    return {"id": line.id, **entry(line, job_id=job_id)}


def _replayed(job_id: int, lines: Sequence[LogLine]) -> Frame:
    replay = {"lines": [_numbered(line, job_id) for line in lines], "count": len(lines)}
    return frame("log:replay", replay, order=2 * lines[-1].id, event_id=str(lines[-1].id))


def _archived(job_id: int, execution_id: int, state: str, after: int) -> Frame:
    ended = {"job_id": job_id, "execution_id": execution_id, "status": state}
    # Its position lies between the last line and the next: a client with that line has not received this yet.
    return frame("log:archived", ended, order=2 * after + 1)
