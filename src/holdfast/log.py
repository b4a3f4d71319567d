"""Structured events: a name and fields, one line each, never prose to parse. Secrets and controls stay out.

Written by hand: the library that did it loaded 165 ms of modules into every process and every command (decision 0014).
"""

from __future__ import annotations

import json
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
_LEVELS = {"NOTSET": 0, "DEBUG": 10, "INFO": 20, "WARN": 30, "WARNING": 30, "ERROR": 40, "CRITICAL": 50, "FATAL": 50}
_MAX_CHARS = 4096

Event = dict[str, Any]


def _write(event: Event) -> None:
    sys.stderr.write((_as_json if _settings.as_json else _as_line)(event) + "\n")
    sys.stderr.flush()


class _Settings:
    """Where events go, for the whole process."""

    level = _LEVELS["WARNING"]
    as_json = True
    sink: Callable[[Event], None] = staticmethod(_write)


_settings = _Settings()


def configure(level: str = "INFO", *, as_json: bool = True) -> None:
    """Send events of at least this level to standard error; called once, by an edge or a process entry.

    ValueError for a level that is none.
    """
    if level.upper() not in _LEVELS:
        raise ValueError(f"{level!r} is no level of events; write one of {', '.join(_LEVELS)}")
    _settings.level, _settings.as_json = _LEVELS[level.upper()], as_json


@contextmanager
def captured(level: str = "DEBUG") -> Iterator[list[Event]]:
    """Give a test the events of the block, cleaned as they would be written, instead of writing them."""
    events: list[Event] = []
    before = _settings.level, _settings.as_json, _settings.sink
    _settings.level, _settings.sink = _LEVELS[level], events.append
    try:
        yield events
    finally:
        _settings.level, _settings.as_json, _settings.sink = before


class Logger:
    """Writes events, each with the fields that were bound to it. A failure to write is nobody's business."""

    __slots__ = ("_bound",)

    def __init__(self, bound: Event) -> None:
        self._bound = bound

    def debug(self, event: str, **fields: Any) -> None:
        """Note what only its author wants to know."""
        self._say("debug", event, fields)

    def info(self, event: str, **fields: Any) -> None:
        """Note what happened."""
        self._say("info", event, fields)

    def warning(self, event: str, **fields: Any) -> None:
        """Note what somebody may want to look at."""
        self._say("warning", event, fields)

    def error(self, event: str, **fields: Any) -> None:
        """Note what went wrong."""
        self._say("error", event, fields)

    def exception(self, event: str, **fields: Any) -> None:
        """Note what went wrong, with the exception that is being handled."""
        self._say("error", event, {**fields, "exception": traceback.format_exc().strip()})

    def _say(self, level: str, event: str, fields: Event) -> None:
        if _LEVELS[level.upper()] < _settings.level:
            return
        at = datetime.now(UTC).isoformat().replace("+00:00", "Z")
        said = {**self._bound, **fields, "event": event, "level": level, "timestamp": at}
        try:
            _settings.sink({key: _clean(key, value) for key, value in said.items()})
        except (OSError, ValueError):  # standard error is closed, or a pipe that nobody reads
            return


def get(**bound: Any) -> Logger:
    """Return a logger that adds these fields to each of its events."""
    return Logger(bound)


def _clean(key: str, value: Any) -> Any:
    """Redact secrets by key, strip userinfo from addresses, and escape what could forge a second line."""
    if any(word in key.lower() for word in _SECRET_KEYS):
        return "[redacted]"
    if not isinstance(value, str):
        return value
    value = _USERINFO.sub("", value)[: _MAX_CHARS * (4 if key == "exception" else 1)]
    return _CONTROL.sub(lambda m: f"\\x{ord(m.group()):02x}", value)


def _as_json(event: Event) -> str:
    return json.dumps(event, default=repr)


def _as_line(event: Event) -> str:
    """Return an event for a person: when, how bad, what, and the fields."""
    rest = [f"{key}={value!r}" for key, value in event.items() if key not in ("timestamp", "level", "event")]
    return " ".join([event["timestamp"], f"[{event['level']}]", event["event"], *rest])
