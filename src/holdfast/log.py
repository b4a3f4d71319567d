"""Structured events: a name and fields, one line each, never prose to parse. Secrets are redacted.

A thin layer over the standard library's `logging`: log lines and warnings of libraries pass the same formatter
and the same redaction as our own events (decision 0014). Control characters are escaped.
"""

from __future__ import annotations

import json
import logging
import re
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

_SECRET_KEYS = ("authorization", "cookie", "password", "secret", "token_value")
_USERINFO = re.compile(r"(?<=://)[^/@\s]{1,512}@")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_LEVELS = logging.getLevelNamesMapping()
_MAX_CHARS = 4096
# Under which name a record carries the fields of one of our events.
_FIELDS = "holdfast_fields"
LIBRARY_EVENT = "library.log"
"""The event of a line from a library; `library` has its name and `message` the line."""

Event = dict[str, Any]


def _clean(key: str, value: Any) -> Any:
    """Redact secrets by key, strip userinfo from addresses, and escape what could forge a second line."""
    if any(word in key.lower() for word in _SECRET_KEYS):
        return "[redacted]"
    if not isinstance(value, str):
        return value
    # A trace is cut later than a message: its end names the error.
    value = _USERINFO.sub("", value)[: _MAX_CHARS * (4 if key == "exception" else 1)]
    return _CONTROL.sub(lambda m: f"\\x{ord(m.group()):02x}", value)


def _event_of(record: logging.LogRecord) -> Event:
    """Convert a record to a cleaned event; every log line passes through here."""
    fields: Event | None = record.__dict__.get(_FIELDS)
    if fields is None:
        name, fields = LIBRARY_EVENT, {"library": record.name, "message": _message_of(record)}
        if record.exc_info:
            fields["exception"] = "".join(traceback.format_exception(*record.exc_info)).strip()
    else:
        name = record.msg
    at = datetime.fromtimestamp(record.created, UTC).isoformat().replace("+00:00", "Z")
    event = {**fields, "event": name, "level": record.levelname.lower(), "timestamp": at}
    return {key: _clean(key, value) for key, value in event.items()}


def _message_of(record: logging.LogRecord) -> str:
    """Return a library's message; if its arguments do not fit, the unformatted message."""
    # The standard library catches this where it writes: a library's mistake must not end what it was doing.
    try:
        return record.getMessage()
    except (TypeError, ValueError, KeyError):
        return f"{record.msg} {record.args!r}"


class _JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return json.dumps(_event_of(record), default=repr)


class _LineFormatter(logging.Formatter):
    """Writes an event for people: time, level, name and fields."""

    def format(self, record: logging.LogRecord) -> str:
        event = _event_of(record)
        rest = [f"{key}={value!r}" for key, value in event.items() if key not in ("timestamp", "level", "event")]
        return " ".join([event["timestamp"], f"[{event['level']}]", event["event"], *rest])


class _StderrHandler(logging.Handler):
    """Writes to the current standard error, which a test or a daemon may have replaced."""

    def emit(self, record: logging.LogRecord) -> None:
        # Standard error may be closed, or a pipe without a reader. A line that is lost must not stop a crawl; the
        # standard library would print a trace of its own instead, to the same place.
        try:
            sys.stderr.write(self.format(record) + "\n")
            sys.stderr.flush()
        except (OSError, ValueError):
            return


class _CapturingHandler(logging.Handler):
    def __init__(self, events: list[Event]) -> None:
        super().__init__()
        self._append: Callable[[Event], None] = events.append

    def emit(self, record: logging.LogRecord) -> None:
        self._append(_event_of(record))


_handler = _StderrHandler()
_handler.setFormatter(_JsonFormatter())
_logger = logging.getLogger("holdfast")
_logger.addHandler(_handler)
_logger.setLevel(logging.WARNING)
# The root logger gets the same handler (`configure`): handed on, each event would be written twice.
_logger.propagate = False


def configure(level: str = "INFO", *, as_json: bool = True) -> None:
    """Send events of at least this level to standard error; called once, by an edge or a process entry.

    Log lines and warnings of libraries become events too. Raise ValueError for an invalid level.
    """
    if level.upper() not in _LEVELS:
        raise ValueError(f"{level!r} is no level of events; write one of {', '.join(_LEVELS)}")
    # At least 1: NOTSET would let the root logger decide, which is silent below WARNING.
    _logger.setLevel(max(_LEVELS[level.upper()], 1))
    _handler.setFormatter(_JsonFormatter() if as_json else _LineFormatter())
    root = logging.getLogger()
    if _handler not in root.handlers:
        root.addHandler(_handler)
    # A library is heard when something is wrong. Its chatter below that (uvicorn's start, each step of alembic) is not
    # what an operator chose a level for.
    root.setLevel(max(_LEVELS[level.upper()], logging.WARNING))
    logging.captureWarnings(True)


@contextmanager
def captured(level: str = "DEBUG") -> Iterator[list[Event]]:
    """Collect the events of the block for a test, cleaned as usual, instead of writing them."""
    events: list[Event] = []
    before, handlers = _logger.level, list(_logger.handlers)
    _logger.setLevel(_LEVELS[level])
    _logger.handlers[:] = [_CapturingHandler(events)]
    try:
        yield events
    finally:
        _logger.setLevel(before)
        _logger.handlers[:] = handlers


class Logger:
    __slots__ = ("_bound",)

    def __init__(self, bound: Event) -> None:
        self._bound = bound

    def debug(self, event: str, **fields: Any) -> None:
        self._write(logging.DEBUG, event, fields)

    def info(self, event: str, **fields: Any) -> None:
        self._write(logging.INFO, event, fields)

    def warning(self, event: str, **fields: Any) -> None:
        """Log something that may need an operator's attention."""
        self._write(logging.WARNING, event, fields)

    def error(self, event: str, **fields: Any) -> None:
        self._write(logging.ERROR, event, fields)

    def exception(self, event: str, **fields: Any) -> None:
        self._write(logging.ERROR, event, {**fields, "exception": traceback.format_exc().strip()})

    def _write(self, level: int, event: str, fields: Event) -> None:
        if not _logger.isEnabledFor(level):
            return
        # Made by hand: `Logger.log` would walk the stack for a file and a line that no event shows.
        record = logging.LogRecord(_logger.name, level, "", 0, event, None, None)
        record.__dict__[_FIELDS] = {**self._bound, **fields}
        _logger.handle(record)


def get(**bound: Any) -> Logger:
    """Return a logger that adds these fields to each of its events."""
    return Logger(bound)
