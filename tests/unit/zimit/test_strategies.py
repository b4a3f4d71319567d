"""What is tried, in which order, how often; and the command that changes the VPN."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.clock import SystemClock
from holdfast.zimit.docker import Times, find_program
from holdfast.zimit.errors import ToolMissing
from holdfast.zimit.flags import Options
from holdfast.zimit.output_directory import CrawlState, load_state
from holdfast.zimit.stage import NO_PROGRESS, StopRequest, Strategies, rotate_vpn
from tests.clock import FakeClock

ALL = Options(
    seeds=(), name="x", output_dir=Path("x"), monitored=True,
    adaptive_workers=True, min_workers=2, max_reductions=5, rotates_vpn=True, vpn_command="x", max_rotations=2,
    rotation_every_s=60.0, adaptive_restart=True, max_restarts=1, backoff_s=7.0,
)  # fmt: skip


def _rotate(command: str, stop_request: StopRequest | None = None) -> bool:
    times = replace(Times(), vpn_limit=5.0, vpn_settle=0.0)
    return rotate_vpn(command, times, stop_request or StopRequest(SystemClock()))


def _python(text: str) -> str:
    """A VPN command that is this interpreter with one line of code."""
    return f"{sys.executable} -S -c '{text}'"


def _bed(tmp_path: Path, clock: FakeClock, text: str, options: Options = ALL) -> tuple[Strategies, CrawlState]:
    state = load_state(tmp_path, 3)
    return Strategies(replace(options, vpn_command=_python(text)), state, clock, _rotate), state


def _trace(strategies: Strategies, state: CrawlState, waits: list[float]) -> tuple[bool, int, int, int, int]:
    def patience(seconds: float) -> bool:
        waits.append(seconds)
        return False

    stops = strategies.answer(NO_PROGRESS, patience)
    counters = state.worker_reductions_done, state.vpn_rotations_done, state.container_restarts_done
    return stops, *counters, len(waits)


def test_each_strategy_has_its_turn_and_its_limit(tmp_path: Path, clock: FakeClock) -> None:
    strategies, state = _bed(tmp_path, clock, "pass")
    waits: list[float] = []

    turns = [_trace(strategies, state, waits) for _ in range(4)]
    clock.advance(60)
    turns += [_trace(strategies, state, waits) for _ in range(2)]

    stop, on = True, False
    assert turns == [
        (stop, 1, 0, 0, 0),  # 3 workers become 2, the least
        (on, 1, 1, 0, 0),
        (stop, 1, 1, 1, 0),  # the VPN changed a moment ago
        (on, 1, 1, 1, 1),
        (on, 1, 2, 1, 1),
        (on, 1, 2, 1, 2),
    ]
    assert waits == [7.0, 7.0]


@pytest.mark.parametrize("text", ["import sys; sys.exit(1)", "import os; os.abort()"])
def test_a_vpn_that_fails_is_not_counted_and_the_next_strategy_follows(
    tmp_path: Path, clock: FakeClock, text: str
) -> None:
    strategies, state = _bed(tmp_path, clock, text, replace(ALL, adaptive_workers=False))

    assert strategies.answer(NO_PROGRESS, lambda _seconds: False)
    assert (state.vpn_rotations_done, state.container_restarts_done) == (0, 1)


@pytest.mark.parametrize("command", ["no-such-program-anywhere up", "", "'unclosed", "sh;id"])
def test_a_command_that_is_not_on_the_path_is_never_started(command: str) -> None:
    with pytest.raises(ToolMissing):
        find_program(command)
    assert not _rotate(command)


def test_a_command_never_meets_a_shell(tmp_path: Path) -> None:
    mark = tmp_path / "mark"

    _rotate(f"echo up; touch {mark} && $(touch {mark})")

    assert not mark.exists()


def test_a_stop_ends_a_command_that_hangs() -> None:
    stop_request = StopRequest(SystemClock())
    stop_request.ask_to_stop()

    assert not _rotate(_python("import time; time.sleep(30)"), stop_request)
