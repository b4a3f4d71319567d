"""Commands as people type them, by any of their names, in this process: a start of Python each would cost a second."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from holdfast.cli import runner
from holdfast.cli.catalogue import COMMANDS


class Said(NamedTuple):
    """How a command ended, and what it wrote."""

    code: int
    out: str
    err: str

    @property
    def object(self) -> dict[str, Any]:
        """What `--json` printed."""
        made: dict[str, Any] = json.loads(self.out.splitlines()[-1])
        return made


class Terminal:
    """Types commands that work on one data directory."""

    def __init__(self, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self._home, self._capsys = home, capsys

    def type(self, name: str, *arguments: str) -> Said:
        """Run a command to its end."""
        command = COMMANDS[name]
        app = importlib.import_module(f"holdfast.cli.{command.module}").app_command
        words = [*arguments, "--home", str(self._home)]
        self._capsys.readouterr()
        code = 0
        try:
            runner.run(app, f"holdfast {name}", words, subcommand=command.subcommand)
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else 1
        said = self._capsys.readouterr()
        return Said(code, said.out, said.err)
