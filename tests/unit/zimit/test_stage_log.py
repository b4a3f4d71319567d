"""The log of a stage: everything that a program prints is kept, and only whole lines are read."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from holdfast.zimit.logs import MAX_LINE_BYTES, stage_log, stream_log
from holdfast.zimit.stage import StageLog
from tests import patience

AT = datetime(2026, 1, 2, tzinfo=UTC)


def _record(folder: Path, code: str) -> tuple[StageLog, subprocess.Popen[bytes], list[bytes]]:
    heard: list[bytes] = []
    output = StageLog(stage_log(folder, "Test", AT), heard.append, lambda: None)
    process = subprocess.Popen(
        [sys.executable, "-S", "-c", f"import os, sys\n{code}"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, bufsize=0,
    )  # fmt: skip
    output.record(process)
    return output, process, heard


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
    assert process.stdin is not None
    process.stdin.close()


def test_the_end_of_an_endless_line_is_not_taken_for_a_line_of_its_own(tmp_path: Path) -> None:
    code = (
        "def put(data):\n"
        "    while data: data = data[os.write(1, data):]\n"
        f"put(b'x' * {MAX_LINE_BYTES}); sys.stdin.readline(); put(b'x'); sys.stdin.readline(); put(b'fake\\nnext\\n')\n"
    )
    output, process, heard = _record(tmp_path, code)
    assert process.stdin is not None
    _until(lambda: stream_log(output.log, "stdout").stat().st_size == MAX_LINE_BYTES)
    process.stdin.write(b"\n")
    _until(lambda: output.log.stat().st_size == MAX_LINE_BYTES + 1)
    process.stdin.write(b"\n")
    process.wait(patience.deadline(30))
    output.close(30)
    process.stdin.close()

    assert heard == [b"next"]
    assert output.log.stat().st_size == MAX_LINE_BYTES + 1 + len(b"fake\nnext\n")
