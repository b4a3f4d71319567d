"""Only public captures are read without a declared viewer; programs that read everything declare it at start."""

from __future__ import annotations

import subprocess
import sys
from threading import Thread

import pytest

from holdfast.cli.catalogue import COMMANDS, FOR_STRANGERS
from holdfast.withdrawals.viewers import EVERYTHING, PUBLIC, Viewer, seen_by, viewer


def test_viewer_is_public_when_nothing_is_declared() -> None:
    assert viewer() == PUBLIC


def test_viewer_is_public_in_a_new_thread() -> None:
    found: list[Viewer] = []
    with seen_by(EVERYTHING):
        thread = Thread(target=lambda: found.append(viewer()))
        thread.start()
        thread.join()

        assert viewer() == EVERYTHING
    assert found == [PUBLIC]


_PROGRAM = """
import sys
from threading import Thread
from holdfast.withdrawals import viewers
{before}
def tell():
    print(viewers.viewer().sees_members)
Thread(target=tell).start()
"""
# The command exits after printing its help: only the state set before a command runs is tested.
_COMMAND = """
from contextlib import suppress
from holdfast.cli.main import main
sys.argv.append("--help")
with suppress(SystemExit):
    main()
"""


def _sees_members(before: str, *arguments: str) -> str:
    ended = subprocess.run(
        [sys.executable, "-c", _PROGRAM.format(before=before), *arguments], capture_output=True, text=True, check=True
    )
    return ended.stdout.splitlines()[-1]


@pytest.mark.parametrize("command", ["search", "start-worker", "rebuild-pages", "api", "mcp"])
def test_command_threads_see_members_unless_it_serves_public(command: str) -> None:
    assert command in COMMANDS
    assert _sees_members(_COMMAND, command) == str(COMMANDS[command].module not in FOR_STRANGERS)


def test_program_without_a_declared_viewer_sees_public() -> None:
    assert _sees_members("") == "False"
