"""Who looks: whether members' sources are shown to everything that is read in this context.

A server says it once for each request. Commands, and what runs beside requests, see everything: what they make for
several viewers (counts, packages, columns) is cut to size where it is shown.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from enum import StrEnum
from typing import Final

from holdfast.values import dataclass


class Visibility(StrEnum):
    """Who may see what was captured of a source."""

    PUBLIC = "public"
    MEMBERS = "members"


@dataclass(frozen=True, slots=True, kw_only=True)
class Viewer:
    """What a reader may see."""

    sees_members: bool = False
    """Whether all members' sources are shown."""
    granted: int | None = None
    """The one members' source that is shown beside the public ones: to who holds a capability for it."""


EVERYTHING: Final = Viewer(sees_members=True)
"""Members, operators, administrators, and every command."""
PUBLIC: Final = Viewer()
"""Everybody else."""

# A context variable: many requests are worked on at once, each for a reader of its own.
_viewer: ContextVar[Viewer] = ContextVar("viewer", default=EVERYTHING)


def viewer() -> Viewer:
    """Return who looks."""
    return _viewer.get()


@contextmanager
def seen_by(looking: Viewer) -> Iterator[None]:
    """Let everything in this block be read for this viewer, on this thread and on those that it asks for an answer."""
    token = _viewer.set(looking)
    try:
        yield
    finally:
        _viewer.reset(token)
