"""How far long work on files is: imports and exports report it to commands, operations and the API."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple


class FileStep(NamedTuple):
    """The file that is being processed (`number` of `of`), the phase, and its bytes processed so far."""

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
    """Ignore the step: no command or operation watches."""
