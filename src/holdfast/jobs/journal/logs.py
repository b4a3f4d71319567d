"""The log of one execution: structured lines, written in batches, readable while it runs, bounded."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterator
from typing import Any, Final

from sqlalchemy.orm import Session

from holdfast.clock import Clock
from holdfast.config import JobSettings
from holdfast.db.engine import Database
from holdfast.db.models import LogLine
from holdfast.db.text import clean
from holdfast.jobs.journal import queries

CATEGORIES: Final = tuple(
    f"crawler.{word}" for word in ("lifecycle", "fetch", "extract", "error", "rate_limit", "queue", "metrics")
)
LOG_NAME: Final = "logs/{job_id}/{number}.log.gz"
"""What a whole log is called outside (3.6 of the facts)."""
REPLAYED: Final = 200
"""Lines that a new reader of a running log is shown first."""
_MESSAGE_CHARS: Final = 4096
_FIELDS_CHARS: Final = 8192
_RESERVED: Final = 0.02
"""Share of the lines that only warnings and errors may fill: the end of a noisy log still tells what went wrong."""
_BATCH: Final = 200
_WAITING: Final = 10_000
"""Lines held while the database is away; what comes then is only counted."""
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
        if len(self._waiting) >= _WAITING:
            self._dropped += 1
            return
        self._waiting.append({
            "execution_id": self._execution_id, "at": self._clock.now(), "level": number,
            "category": category if category in CATEGORIES else "crawler.lifecycle",
            "message": clean(message, _MESSAGE_CHARS), "fields": _bounded(fields),
        })  # fmt: skip
        if len(self._waiting) >= _BATCH:
            self.flush()

    def flush(self) -> None:
        """Write what waits, in one short transaction; what finds no room is counted. Unavailable keeps it waiting."""
        if not self._waiting:
            return
        with self._database.write() as session:
            there = queries.log_size(session, execution_id=self._execution_id)
            kept: list[dict[str, Any]] = []
            for line in self._waiting if there is not None else ():
                quiet = line["level"] < logging.WARNING
                room = self._limit - (int(self._limit * _RESERVED) if quiet else 0) - (there or 0)
                if len(kept) < room:
                    kept.append(line)
            size = sum(len(line["message"]) + len(json.dumps(line["fields"])) for line in kept)
            queries.append_lines(session, kept, execution_id=self._execution_id, size=size,
                                 dropped=len(self._waiting) - len(kept) + self._dropped)  # fmt: skip
        self._waiting.clear()
        self._dropped = 0


def level_number(level: str) -> int:
    """Return a level as a number; what is no level counts as info."""
    return logging.getLevelNamesMapping().get(level.upper(), logging.INFO)


def _bounded(fields: dict[str, Any]) -> dict[str, Any]:
    plain = {name: "[redacted]" if _SECRET.search(name) else value for name, value in fields.items()}
    text = json.dumps(plain, default=str)
    if len(text) > _FIELDS_CHARS:
        return {"truncated": True, "chars": len(text)}
    made: dict[str, Any] = json.loads(text)  # as it will be read: a value that is no JSON is its text from here on
    return made


def read_lines(session: Session, execution_id: int, *, after: int = 0, level: str = "debug",
               limit: int = _PAGE) -> list[LogLine]:  # fmt: skip
    """Return lines after the one with this id, oldest first; the id of the last is where to go on."""
    return queries.lines_after(session, execution_id=execution_id, after=after, level=level_number(level), limit=limit)


def last_lines(session: Session, execution_id: int, *, level: str = "debug", limit: int = REPLAYED) -> list[LogLine]:
    """Return the newest lines of at least this level, oldest first."""
    return queries.last_lines(session, execution_id=execution_id, level=level_number(level), limit=limit)


def all_lines(database: Database, execution_id: int) -> Iterator[LogLine]:
    """Yield a whole log, a page of it at a time and no transaction in between, for a download."""
    after = 0
    while True:
        with database.read() as session:
            page = read_lines(session, execution_id, after=after)
        yield from page
        if len(page) < _PAGE:
            return
        after = page[-1].id


def entry(line: LogLine, *, job_id: int) -> dict[str, Any]:
    """Return a line as it is shown and downloaded."""
    return {
        "schema_version": 1, "timestamp": line.at.isoformat(), "level": logging.getLevelName(line.level).lower(),
        "category": line.category, "message": line.message, "job_id": job_id, "execution_id": line.execution_id,
        "fields": line.fields,
    }  # fmt: skip
