"""Structured events: a name and fields, one line each, never prose to parse. Secrets and controls stay out."""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import MutableMapping
from typing import Any

import structlog

_SECRET_KEYS = ("authorization", "cookie", "password", "secret", "token_value")
_USERINFO = re.compile(r"(?<=://)[^/@\s]{1,512}@")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def _clean(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Redact secrets by key, strip userinfo from addresses, and escape what could forge a second line."""
    for key, value in event.items():
        if any(word in key.lower() for word in _SECRET_KEYS):
            event[key] = "[redacted]"
        elif isinstance(value, str):
            value = _USERINFO.sub("", value)[:4096]
            event[key] = _CONTROL.sub(lambda m: f"\\x{ord(m.group()):02x}", value)
    return event


def configure(level: str = "INFO", *, as_json: bool = True) -> None:
    """Send events of at least this level to standard error; called once, by an edge or a process entry."""
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            _clean,
            structlog.processors.JSONRenderer() if as_json else structlog.dev.ConsoleRenderer(colors=False),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[level.upper()]),
        logger_factory=structlog.WriteLoggerFactory(file=sys.stderr),
        cache_logger_on_first_use=False,
    )


def get(**bound: Any) -> structlog.typing.FilteringBoundLogger:
    """Return a logger that adds these fields to each of its events."""
    logger: structlog.typing.FilteringBoundLogger = structlog.get_logger(**bound)
    return logger
