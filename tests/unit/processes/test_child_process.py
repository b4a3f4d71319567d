"""A child process: asked to end, waited for, and killed with what it started."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from holdfast.processes.child_process import ChildProcess
from tests import patience

_COUNTING = """
import signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, (2, 15))
print("ready", flush=True)
sys.stdin.read()
print(sorted(map(int, signal.sigpending())), flush=True)
"""
"""Says which signals came before its input ended."""
_PARENT = "import subprocess, sys, time; print(subprocess.Popen(['sleep', '600']).pid, flush=True); time.sleep({s})"
Start = Callable[[str], ChildProcess]


@pytest.fixture
def start() -> Iterator[Start]:
    children: list[ChildProcess] = []

    def begin(program: str) -> ChildProcess:
        command = [sys.executable, "-S", "-c", program]
        child = ChildProcess(command, os.environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        children.append(child)
        return child

    yield begin
    for child in children:
        child.kill()
        child.wait()
        child.close()


def _line(child: ChildProcess) -> str:
    assert child.stdout is not None
    return child.stdout.readline().decode().strip()


def _is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def _until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + patience.deadline(20)
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.parametrize(("requests", "signals"), [((1, 1), "[15]"), ((1, 2), "[2, 15]"), ((2, 3), "[2, 15]")])
def test_child_gets_two_different_requests_and_none_twice(
    start: Start, requests: tuple[int, ...], signals: str
) -> None:
    child = start(_COUNTING)
    assert _line(child) == "ready"
    for times in requests:
        child.ask_to_end(times)
    assert child.stdin is not None
    child.stdin.close()

    assert _line(child) == signals


def test_kill_ends_the_whole_tree(start: Start) -> None:
    child = start(_PARENT.format(s=600))
    grandchild = int(_line(child))
    assert child.wait(0.05) is None

    child.kill()

    assert child.wait() == -signal.SIGKILL
    _until(lambda: not _is_alive(grandchild))


@pytest.mark.parametrize("seconds", [None, 600.0])
def test_end_of_a_child_is_the_end_of_its_tree(start: Start, seconds: float | None) -> None:
    child = start(_PARENT.format(s=0))
    grandchild = int(_line(child))

    assert child.wait(seconds) == 0
    assert child.poll() == 0
    _until(lambda: not _is_alive(grandchild))


def test_finished_command_leaves_its_server_running(start: Start) -> None:
    child = start(_PARENT.format(s=0))
    server = int(_line(child))

    assert child.finish(patience.deadline(20)) == 0

    assert _is_alive(server)
    os.kill(server, signal.SIGKILL)


def test_command_is_killed_with_its_server_at_the_deadline(start: Start) -> None:
    child = start(_PARENT.format(s=600))
    server = int(_line(child))

    assert child.finish(0.05) is None

    _until(lambda: not _is_alive(server))


def test_finish_kills_the_session_before_the_deadline_when_until_is_true(start: Start) -> None:
    child = start(_PARENT.format(s=600))
    server = int(_line(child))

    assert child.wait(patience.deadline(20), lambda: True) is None
    assert _is_alive(server)
    assert child.finish(patience.deadline(20), lambda: True) is None

    _until(lambda: not _is_alive(server))
