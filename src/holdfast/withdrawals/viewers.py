"""The viewer: whether reads in this context include members' sources.

Without a declaration only public data is read. A server declares the viewer of each request, and its background
threads declare themselves. Every other program calls `see_everything` once at its start: data that it creates
for several viewers (counts, packages, columns) is filtered when it is shown.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from enum import StrEnum
from typing import Final

from holdfast.values import dataclass


class Visibility(StrEnum):
    """Access to the captures of a source."""

    PUBLIC = "public"
    MEMBERS = "members"


@dataclass(frozen=True, slots=True, kw_only=True)
class Viewer:
    """The sources that a reader may see."""

    sees_members: bool = False
    """Whether all members' sources are visible."""
    granted: int | None = None
    """The one members' source that a capability shows in addition to the public sources."""


EVERYTHING: Final = Viewer(sees_members=True)
"""Members, operators, administrators, and every command."""
PUBLIC: Final = Viewer()
"""Everybody else."""

# A context variable, because a server handles many requests at once, each for its own viewer.
_viewer: ContextVar[Viewer | None] = ContextVar("viewer", default=None)
# The default viewer. A module variable, because new threads do not inherit context variables.
_undeclared = PUBLIC


def viewer() -> Viewer:
    """Return the declared viewer; without one, the viewer of this program."""
    return _viewer.get() or _undeclared


def see_everything() -> None:
    """Make this whole process read everything unless `seen_by` overrides it. A server never calls it."""
    global _undeclared
    _undeclared = EVERYTHING


@contextmanager
def seen_by(looking: Viewer) -> Iterator[None]:
    """Declare the viewer of all reads in this block, on this thread and on threads that copy its context."""
    token = _viewer.set(looking)
    try:
        yield
    finally:
        _viewer.reset(token)
