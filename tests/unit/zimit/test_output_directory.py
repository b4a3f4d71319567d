"""Who holds an output directory, how its last run ended, and where the program itself is found."""

from __future__ import annotations

import json
import os
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from holdfast.zimit.docker import find_program
from holdfast.zimit.errors import OutputBusy, ToolMissing
from holdfast.zimit.output_directory import (
    END_NAME,
    LOCK_NAME,
    forget_end,
    hold_output,
    holder_of,
    last_end,
    note_end,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def test_a_directory_has_one_holder_who_can_be_named(tmp_path: Path) -> None:
    assert holder_of(tmp_path) is None
    with hold_output(tmp_path):
        assert holder_of(tmp_path) == os.getpid()
        with pytest.raises(OutputBusy), hold_output(tmp_path):
            pass
    assert holder_of(tmp_path) is None


@pytest.mark.parametrize(
    "told", [b"", b"[]", b'{"pid": "1"}', b'{"pid": -4, "host": 7}', b"\xff", b'{"pid": 7, "host": "x"}']
)
def test_a_holder_that_says_nonsense_is_nobody_we_could_signal(tmp_path: Path, told: bytes) -> None:
    with hold_output(tmp_path):
        (tmp_path / LOCK_NAME).write_bytes(told)
        assert holder_of(tmp_path) == 0


def test_the_end_of_a_run_stands_in_the_directory_until_the_next(tmp_path: Path) -> None:
    assert last_end(tmp_path) is None
    note_end(tmp_path, "success", 0, NOW)
    assert last_end(tmp_path) == ("success", 0)
    assert json.loads((tmp_path / END_NAME).read_text())["at"] == NOW.isoformat()
    forget_end(tmp_path)
    assert last_end(tmp_path) is None


@pytest.mark.parametrize("content", ["", "{}", "[1]", '{"state": 1, "exit_code": 0}', '{"state": "success"}'])
def test_an_end_that_makes_no_sense_is_none(tmp_path: Path, content: str) -> None:
    (tmp_path / END_NAME).write_text(content)

    assert last_end(tmp_path) is None


def _program(folder: Path, name: str, mode: int = 0o755) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / name
    path.write_text("#!/bin/sh\n")
    path.chmod(mode)
    return path


def test_a_program_is_found_beside_the_interpreter_then_on_path(tmp_path: Path) -> None:
    own, outer = _program(tmp_path / "bin", "my-tool"), {"PATH": str(tmp_path / "bin")}

    assert find_program("my-tool --x 'a b'", outer) == [str(own), "--x", "a b"]
    assert find_program(f"{sys.executable} -m holdfast.zimit", outer)[0] == sys.executable
    assert find_program("archive-tool", outer)[0] == str(Path(sys.executable).parent / "archive-tool")


@pytest.mark.parametrize("command", ["", "no-such-tool", "'unclosed", "plain-file"])
def test_a_program_that_cannot_be_found_is_told(tmp_path: Path, command: str) -> None:
    _program(tmp_path / "bin", "plain-file", 0o644)

    with pytest.raises(ToolMissing, match="HOLDFAST_ZIMIT_COMMAND"):
        find_program(command, {"PATH": str(tmp_path / "bin")})
