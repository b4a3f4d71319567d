"""Without a declared viewer only what is public is read; programs that read everything say so where they start."""

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
# Ends with its help: what is declared before a command runs is what is looked at.
_COMMAND = """
from contextlib import suppress
from holdfast.cli.main import main
sys.argv.append("--help")
with suppress(SystemExit):
    main()
"""


def _told(before: str, *arguments: str) -> str:
    ended = subprocess.run(
        [sys.executable, "-c", _PROGRAM.format(before=before), *arguments], capture_output=True, text=True, check=True
    )
    return ended.stdout.splitlines()[-1]


@pytest.mark.parametrize("command", ["search", "start-worker", "rebuild-pages", "api", "mcp"])
def test_threads_of_a_command_see_everything_unless_it_serves_others(command: str) -> None:
    assert command in COMMANDS
    assert _told(_COMMAND, command) == str(COMMANDS[command].module not in FOR_STRANGERS)


def test_a_program_that_declares_nothing_sees_what_is_public() -> None:
    assert _told("") == "False"
