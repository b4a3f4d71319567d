"""Commands as people type them, run in this process: starting one takes longer than what it does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from holdfast.cli import runner
from holdfast.cli.catalogue import COMMANDS
from holdfast.cli.main import load
from holdfast.withdrawals.viewers import EVERYTHING, seen_by


class Ended(NamedTuple):
    """How a command ended, and what it said."""

    code: int
    out: str
    err: str

    @property
    def object(self) -> Any:
        """What it printed with `--json`."""
        return json.loads(self.out)


class Typist:
    """Types commands at one data directory."""

    def __init__(self, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.home, self._capsys = home, capsys

    def __call__(self, line: str, *more: str) -> Ended:
        """Run a command, its words divided by spaces; `more` are words that hold some."""
        name, *words = line.split()
        command = COMMANDS[name]
        loaded = load(command.module)
        self._capsys.readouterr()
        # As `holdfast.cli.main` declares it for the whole process.
        with pytest.raises(SystemExit) as ended, seen_by(EVERYTHING):
            runner.run(
                loaded, f"holdfast {name}", [*words, *more, "--home", str(self.home)],
                subcommand=command.subcommand,
            )  # fmt: skip
        code = ended.value.code
        return Ended(code if isinstance(code, int) else 0, *self._capsys.readouterr())
