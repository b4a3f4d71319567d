"""The viewer: whether what is read in this context includes members' sources.

Without a declaration only what is public is read. A server declares the viewer of each request, and its background
threads declare themselves. Every other program calls `see_everything` once, where it starts: what it makes for several
viewers (counts, packages, columns) is filtered where it is shown.
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
    """The one members' source that a capability shows in addition to the public sources."""


EVERYTHING: Final = Viewer(sees_members=True)
"""Members, operators, administrators, and every command."""
PUBLIC: Final = Viewer()
"""Everybody else."""

# A context variable: a server handles many requests at once, each for a viewer of its own.
_viewer: ContextVar[Viewer | None] = ContextVar("viewer", default=None)
# The viewer where none is declared. A module variable, because new threads do not inherit context variables.
_undeclared = PUBLIC


def viewer() -> Viewer:
    """Return the declared viewer; without one, the viewer of this program."""
    return _viewer.get() or _undeclared


def see_everything() -> None:
    """Let this whole process read everything unless `seen_by` says otherwise. A server never calls it."""
    global _undeclared
    _undeclared = EVERYTHING


@contextmanager
def seen_by(looking: Viewer) -> Iterator[None]:
    """Declare the viewer of everything read in this block, on this thread and on threads that copy its context."""
    token = _viewer.set(looking)
    try:
        yield
    finally:
        _viewer.reset(token)
