"""Cancellation of work that no client waits for: long loops check between two portions whether to continue.

A thread cannot be stopped from outside. A server runs the work of a request inside `until`, and sets the event
when the client disconnects; `check` then ends the work at its next portion. Outside of `until` it never does.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Event

from holdfast.errors import Unavailable

# A context variable: many requests are worked on at once, each with a client of its own.
_ended: ContextVar[Event | None] = ContextVar("ended", default=None)


class WorkAbandoned(Unavailable):
    """The client disconnected, so the request was not completed."""

    code = "work_abandoned"

    def __init__(self) -> None:
        super().__init__("the client left before this was finished, so it was given up; ask again")


@contextmanager
def until(ended: Event) -> Iterator[None]:
    """Make `check` end the work of this block, on this thread, once the event is set."""
    token = _ended.set(ended)
    try:
        yield
    finally:
        _ended.reset(token)


def check() -> None:
    """Raise WorkAbandoned if the client has disconnected. Cheap: it only reads a flag."""
    ended = _ended.get()
    if ended is not None and ended.is_set():
        raise WorkAbandoned
