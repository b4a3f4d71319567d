"""Run files: the kernel says who lives, and what a dead process had in hand can still be read."""

from __future__ import annotations

import errno
import fcntl
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from holdfast.processes.runfile import RunFile, claimed, clear_slots, is_held, last_tick, parsed_attempts

_HOLDER = """
import sys; from pathlib import Path; from holdfast.processes.runfile import RunFile
run = RunFile(Path(sys.argv[1]), "holder.run"); run.tick(12.5); run.take(0, 77, 12.25)
print("ready", flush=True); sys.stdin.read()
"""


def _dead(folder: Path) -> Path:
    """Return the run file of a process that was killed with a page in hand."""
    command = [sys.executable, "-c", _HOLDER, str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        assert is_held(folder / "holder.run")
        process.kill()
    return folder / "holder.run"


def test_a_run_file_is_held_from_its_making_to_its_closing_and_then_gone(tmp_path: Path) -> None:
    run = RunFile(tmp_path / "run")

    assert is_held(run.path)
    run.close()

    assert not is_held(run.path)
    assert not run.path.exists()


def test_a_killed_process_lets_go_and_leaves_what_it_had_in_hand(tmp_path: Path) -> None:
    path = _dead(tmp_path)

    assert not is_held(path)
    assert last_tick(path) == 12.5
    assert parsed_attempts(path) == {77: 12.25}


def test_slots_are_taken_and_put_down_one_by_one(tmp_path: Path) -> None:
    run = RunFile(tmp_path)
    run.take(0, 5, 1.0)
    run.take(1, 6, 2.0)
    run.put_down(0)

    assert parsed_attempts(run.path) == {6: 2.0}
    run.close()


def test_a_loop_that_never_ticked_has_no_last_tick(tmp_path: Path) -> None:
    run = RunFile(tmp_path)

    assert last_tick(run.path) is None
    run.close()


def test_the_living_cannot_be_claimed_and_the_dead_only_once_at_a_time(tmp_path: Path) -> None:
    living, dead = RunFile(tmp_path), _dead(tmp_path)

    with claimed(living.path) as living_ours, claimed(dead) as ours, claimed(dead) as also_ours:
        assert (living_ours, ours, also_ours) == (False, True, False)
    with claimed(dead) as ours_again:
        assert ours_again
    living.close()


def test_a_run_file_that_is_gone_can_be_claimed_by_anybody(tmp_path: Path) -> None:
    with claimed(tmp_path / "gone.run") as ours:
        assert ours


def test_a_claim_that_another_start_has_just_ended_is_not_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone, lock = tmp_path / "gone.run", fcntl.flock

    def after_the_other(fd: int, how: int) -> None:
        gone.with_suffix(".claim").unlink()
        lock(fd, how)

    monkeypatch.setattr(fcntl, "flock", after_the_other)

    with claimed(gone) as ours:
        assert not ours


def test_after_slots_are_cleared_nothing_is_being_parsed_and_the_last_tick_is_still_known(tmp_path: Path) -> None:
    path = _dead(tmp_path)

    clear_slots(path)

    assert parsed_attempts(path) == {}
    assert last_tick(path) == 12.5


def test_a_file_of_another_size_says_nothing(tmp_path: Path) -> None:
    torn = tmp_path / "torn.run"
    torn.write_bytes(b"half")

    clear_slots(torn)

    assert (parsed_attempts(torn), last_tick(torn), torn.read_bytes()) == ({}, None, b"half")


def test_a_lock_on_a_mount_that_may_only_be_read_is_asked_for_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = os.open

    def read_only(path: Any, flags: int, *rest: Any) -> int:
        if flags & os.O_RDWR:
            raise OSError(errno.EROFS, "Read-only file system", str(path))
        return opened(path, flags, *rest)

    run = RunFile(tmp_path)
    content = run.path.read_bytes()
    with monkeypatch.context() as patched:
        patched.setattr(os, "open", read_only)
        held = is_held(run.path)
    run.close()
    run.path.write_bytes(content)
    with monkeypatch.context() as patched:
        patched.setattr(os, "open", read_only)
        free = is_held(run.path)

    assert (held, free) == (True, False)


@pytest.mark.parametrize("step", ["os.ftruncate", "fcntl.flock", "mmap.mmap"])
def test_one_that_could_not_be_made_leaves_neither_a_file_nor_a_descriptor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    def refuses(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    before = len(list(Path("/proc/self/fd").iterdir()))
    with monkeypatch.context() as patched:
        patched.setattr(f"holdfast.processes.runfile.{step}", refuses)
        for _ in range(5):
            with pytest.raises(OSError, match="No space left"):
                RunFile(tmp_path)

    assert (list(tmp_path.iterdir()), len(list(Path("/proc/self/fd").iterdir()))) == ([], before)
    RunFile(tmp_path).close()
