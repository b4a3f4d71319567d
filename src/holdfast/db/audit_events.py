"""Rows of the audit log, written in the transaction of what they record, and the name under which that is done.

Apart from `holdfast.audit`, which reads them, so that a crawl need not load SQLAlchemy to write one.
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

# A context variable: requests are served on many threads, each in the name of its own client.
_ACTING: ContextVar[str | None] = ContextVar("acting", default=None)


def append_event(tx: Transaction, clock: Clock, *, action: str, subject: str, detail: dict[str, Any]) -> None:
    """Append an event in the caller's transaction: it stands if and only if what it records does."""
    tx.execute(
        "INSERT INTO audit_events (at, actor, action, subject, detail) VALUES (?, ?, ?, ?, ?)",
        (to_micros(clock.now()), acting_user(), action, subject, json.dumps(detail)),
    )


def acting_user() -> str:
    """Return the name that `acting` gave, or the user of this process and the machine."""
    return _ACTING.get() or f"{getpass.getuser()}@{socket.gethostname()}"


@contextmanager
def acting(name: str) -> Iterator[None]:
    """Let everything in this block be done in the name of the client that asked over HTTP."""
    token = _ACTING.set(name)
    try:
        yield
    finally:
        _ACTING.reset(token)
