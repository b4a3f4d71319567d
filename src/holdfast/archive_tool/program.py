"""Where the program `archive-tool` is found: beside the interpreter that runs us, then on PATH (HA-002). No shell."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from holdfast.errors import Invalid


class ToolMissing(Invalid):
    """The command that runs zimit crawls cannot be started; trying again changes nothing."""

    code = "tool_missing"

    def __init__(self, command: str, reason: str) -> None:
        super().__init__(f"cannot run {command[:200]!r}: {reason}; set HOLDFAST_ZIMIT_COMMAND, or install it")


def find_program(command: str, outer: Mapping[str, str] = os.environ) -> list[str]:
    """Return the words of the command with the path of its program in front; ToolMissing if there is none."""
    try:
        words = shlex.split(command)
    except ValueError as exc:
        raise ToolMissing(command, str(exc)) from exc
    if not words:
        raise ToolMissing(command, "it is empty")
    beside = Path(sys.executable).parent / words[0]
    if "/" not in words[0] and beside.is_file() and os.access(beside, os.X_OK):
        return [str(beside), *words[1:]]
    found = shutil.which(words[0], path=outer.get("PATH", os.defpath))
    if found is None:
        raise ToolMissing(command, "there is no such program beside the interpreter or on PATH")
    return [found, *words[1:]]
