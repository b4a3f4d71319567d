"""The log of a stage: everything that a program prints is kept, and only whole lines are read."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from holdfast.processes.child_process import ChildProcess
from holdfast.zimit.logs import MAX_LINE_BYTES, stage_log, stream_log
from holdfast.zimit.stage import StageLog
from tests import patience

AT = datetime(2026, 1, 2, tzinfo=UTC)


def _record(folder: Path, code: str) -> tuple[StageLog, ChildProcess, list[bytes]]:
    heard: list[bytes] = []
    output = StageLog(stage_log(folder, "Test", AT), heard.append, lambda: None)
    command = [sys.executable, "-S", "-c", f"import os, pathlib, sys, time\n{code}"]
    return output, output.start(command, os.environ), heard


def _until(done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + patience.deadline(30)
    while not done():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_both_outputs_are_kept_apart_and_together_line_by_line(tmp_path: Path) -> None:
    code = "os.write(1, b'one\\ntw'); os.write(2, b'err\\n'); os.write(1, b'o\\nlast without end')"
    output, process, heard = _record(tmp_path, code)
    process.wait(patience.deadline(30))
    output.close(30)

    assert output.is_over
    assert stream_log(output.log, "stdout").read_bytes() == b"one\ntwo\nlast without end"
    assert stream_log(output.log, "stderr").read_bytes() == b"err\n"
    assert sorted(output.log.read_bytes().splitlines()) == [b"err", b"last without end", b"one", b"two"]
    assert sorted(heard) == [b"err", b"last without end", b"one", b"two"]


def test_the_end_of_an_endless_line_is_not_taken_for_a_line_of_its_own(tmp_path: Path) -> None:
    code = (
        "def put(data):\n"
        "    while data: data = data[os.write(1, data):]\n"
        "def until(name):\n"
        f"    while not pathlib.Path({str(tmp_path)!r}, name).exists(): time.sleep(0.005)\n"
        f"put(b'x' * {MAX_LINE_BYTES}); until('once'); put(b'x'); until('twice'); put(b'fake\\nnext\\n')\n"
    )
    output, process, heard = _record(tmp_path, code)
    _until(lambda: stream_log(output.log, "stdout").stat().st_size == MAX_LINE_BYTES)
    (tmp_path / "once").touch()
    _until(lambda: output.log.stat().st_size == MAX_LINE_BYTES + 1)
    (tmp_path / "twice").touch()
    process.wait(patience.deadline(30))
    output.close(30)

    assert heard == [b"next"]
    assert output.log.stat().st_size == MAX_LINE_BYTES + 1 + len(b"fake\nnext\n")
