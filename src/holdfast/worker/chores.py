"""What a worker does beside running executions: small pieces of work that wait in rows, one after the other."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Protocol

from holdfast.db.engine import Database
from holdfast.wiring import Ground


class Chore(Protocol):
    """One kind of work, taken up whenever the worker has a moment; registered in `worker.roster`."""

    @property
    def name(self) -> str:
        """What it is called in logs: a word or two."""
        ...

    def run_once(self) -> bool:
        """Do one piece, of a few seconds if possible, and return whether there was anything to do.

        Any number of workers may do so at once: the rows decide whose piece it is. What it raises is logged, and the
        chore is tried again after a pause; a piece that takes long looks at `Bench.is_stopping` between two steps.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """What chores are made with; all of it belongs to the thread that they run on."""

    ground: Ground
    database: Database
    is_stopping: Callable[[], bool]
    """Whether the worker ends: leave off at the next good moment, what is left stays in the rows."""
    on_end: ExitStack
    """What a chore keeps open is entered here: it is closed, on the same thread, when the worker ends."""
