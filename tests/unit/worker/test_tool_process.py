"""Signals to a running tool: two requests stay two, and only a tool of this directory is meant."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from holdfast.clock import SystemClock
from holdfast.worker.tool_process import AdoptedTool, StartedTool, hurry_tools
from tests import patience

BUSY = """
import pathlib, signal, sys, time
heard = []
for number in (signal.SIGTERM, signal.SIGINT):
    signal.signal(number, lambda number, frame: heard.append(number))
signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGTERM, signal.SIGINT))
folder = pathlib.Path(sys.argv[2])
(folder / "ready").touch()
while not (folder / "go").exists():
    time.sleep(0.01)
signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGTERM, signal.SIGINT))
sys.exit(len(heard))
"""
"""A tool that is too busy to hear signals until it is told to; it ends with how many it heard."""


def _wait(done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + patience.deadline(20)
    while not done():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def _started(folder: Path) -> StartedTool:
    command = [sys.executable, "-S", "-c", BUSY, "--output-dir", str(folder)]
    tool = StartedTool(command, folder, {}, SystemClock().now())
    _wait((folder / "ready").exists)
    return tool


def _heard(tool: StartedTool, folder: Path) -> int:
    (folder / "go").touch()
    _wait(lambda: tool.poll() is not None)
    heard = tool.poll()
    assert heard is not None
    return heard


def test_a_tool_that_is_hurried_hears_two_requests_however_late_it_listens(tmp_path: Path) -> None:
    tool = _started(tmp_path)

    tool.ask_to_end()
    tool.ask_to_end(2)

    assert _heard(tool, tmp_path) == 2


def test_adopted_tool_gets_each_request_to_end_once(tmp_path: Path) -> None:
    tool = _started(tmp_path)
    adopted = AdoptedTool(tmp_path, tool.pid)

    adopted.ask_to_end()
    adopted.ask_to_end()
    assert _heard(tool, tmp_path) == 1


def test_adopted_tool_that_is_hurried_hears_two_requests(tmp_path: Path) -> None:
    tool = _started(tmp_path)
    adopted = AdoptedTool(tmp_path, tool.pid)

    adopted.ask_to_end()
    adopted.ask_to_end(2)
    assert _heard(tool, tmp_path) == 2


def test_tools_are_found_by_the_directory_that_they_write_to_and_nobody_else_is_meant(tmp_path: Path) -> None:
    tool = _started(tmp_path)
    reader = subprocess.Popen([sys.executable, "-S", "-c", "input()", str(tmp_path)], stdin=subprocess.PIPE)

    try:
        assert (hurry_tools(tmp_path), hurry_tools(tmp_path / "other")) == (1, 0)
        assert _heard(tool, tmp_path) == 2
        assert reader.poll() is None
    finally:
        reader.communicate(b"\n")
