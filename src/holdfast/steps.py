"""Progress of long file work: imports and exports report it to commands, operations and the API."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple


class FileStep(NamedTuple):
    """The file being processed (`number` of `of`), the phase, and the bytes processed so far."""

    number: int = 0
    of: int = 0
    name: str = ""
    phase: str = ""
    done: int = 0
    total: int = 0

    def __str__(self) -> str:
        return f"{self.phase}, file {self.number} of {self.of}"


OnStep = Callable[[FileStep], None]


def ignore_step(_step: FileStep) -> None:
    """Ignore the step, for callers without progress display."""
