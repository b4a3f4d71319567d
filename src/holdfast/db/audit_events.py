"""Appends to the audit log in the transaction of the recorded action, and holds the acting user's name.

Separate from `holdfast.audit`, which reads the log, so that a crawl need not load SQLAlchemy to write an event.
"""

from __future__ import annotations

import getpass
import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from holdfast.clock import Clock, to_micros
from holdfast.db.raw import Transaction

# A context variable, because many threads serve requests, each for its own client.
_ACTING: ContextVar[str | None] = ContextVar("acting", default=None)


def append_event(tx: Transaction, clock: Clock, *, action: str, subject: str, detail: dict[str, Any]) -> None:
    """Append an event in the caller's transaction, so that it is stored if and only if the action is."""
    tx.execute(
        "INSERT INTO audit_events (at, actor, action, subject, detail) VALUES (?, ?, ?, ?, ?)",
        (to_micros(clock.now()), acting_user(), action, subject, json.dumps(detail)),
    )


def acting_user() -> str:
    """Return the name set by `acting`, or this process's user and machine."""
    return _ACTING.get() or f"{getpass.getuser()}@{socket.gethostname()}"


@contextmanager
def acting(name: str) -> Iterator[None]:
    """Attribute everything in this block to the HTTP client with this name."""
    token = _ACTING.set(name)
    try:
        yield
    finally:
        _ACTING.reset(token)
