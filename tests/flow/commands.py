"""Commands as people type them, by any of their names, in this process: a start of Python each would cost a second."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.typed import Typist


class Said(NamedTuple):
    """How a command ended, and what it wrote."""

    code: int
    out: str
    err: str

    @property
    def object(self) -> dict[str, Any]:
        """What `--json` printed."""
        made: dict[str, Any] = json.loads(self.out)
        return made


class Terminal:
    """Types commands that work on one data directory."""

    def __init__(self, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self._typist = Typist(home, capsys)

    def type(self, name: str, *arguments: str) -> Said:
        """Run a command to its end."""
        return Said(*self._typist(name, *arguments))
