"""A process steps back, and never comes forward."""

from __future__ import annotations

import os
import subprocess
import sys

from holdfast.processes.runfile import step_back

_TOLD = "from holdfast.processes.runfile import step_back; print(step_back(7), step_back(3), step_back(9))"


def test_a_process_steps_back_and_stays_there() -> None:
    base = os.nice(0)

    told = subprocess.run([sys.executable, "-c", _TOLD], capture_output=True, text=True, check=True)

    first, second, third = map(int, told.stdout.split())
    assert (first, second, third) == (max(base, 7), max(base, 7), max(base, 9))


def test_no_step_is_no_change() -> None:
    base = os.nice(0)

    assert step_back(0) == base
