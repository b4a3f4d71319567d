"""What is tried, in which order, how often; and the command that changes the VPN."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.archive_tool.docker import Times, find_program
from holdfast.archive_tool.errors import ToolMissing
from holdfast.archive_tool.flags import Options
from holdfast.archive_tool.output_directory import CrawlState, load_state
from holdfast.archive_tool.stage import NO_PROGRESS, StageAction, StopRequest, Strategies, Vpn
from holdfast.clock import SystemClock
from tests.clock import FakeClock

ALL = Options(
    seeds=(), name="x", output_dir=Path("x"), monitored=True,
    adaptive_workers=True, min_workers=2, max_reductions=5, rotates_vpn=True, vpn_command="x", max_rotations=2,
    rotation_every_s=60.0, adaptive_restart=True, max_restarts=1, backoff_s=7.0,
)  # fmt: skip


def _vpn(text: str, stop_request: StopRequest | None = None) -> Vpn:
    """A VPN command that is this interpreter with one line of code."""
    times = replace(Times(), vpn_limit=5.0, vpn_settle=0.0)
    return Vpn(f"{sys.executable} -S -c '{text}'", times, stop_request or StopRequest(SystemClock()))


def _bed(tmp_path: Path, clock: FakeClock, vpn: Vpn | None, options: Options = ALL) -> tuple[Strategies, CrawlState]:
    state = load_state(tmp_path, 3)
    return Strategies(options, state, clock, vpn), state


def _trace(strategies: Strategies, state: CrawlState, waits: list[float]) -> tuple[StageAction, int, int, int, int]:
    def patience(seconds: float) -> bool:
        waits.append(seconds)
        return False

    action = strategies.answer(NO_PROGRESS, patience)
    return action, state.worker_reductions, state.vpn_rotations, state.container_restarts, len(waits)


def test_each_strategy_has_its_turn_and_its_limit(tmp_path: Path, clock: FakeClock) -> None:
    strategies, state = _bed(tmp_path, clock, _vpn("pass"))
    waits: list[float] = []

    turns = [_trace(strategies, state, waits) for _ in range(4)]
    clock.advance(60)
    turns += [_trace(strategies, state, waits) for _ in range(2)]

    stop, on = StageAction.STOP_CONTAINER, StageAction.CARRY_ON
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
    strategies, state = _bed(tmp_path, clock, _vpn(text), replace(ALL, adaptive_workers=False))

    assert strategies.answer(NO_PROGRESS, lambda _seconds: False) is StageAction.STOP_CONTAINER
    assert (state.vpn_rotations, state.container_restarts) == (0, 1)


@pytest.mark.parametrize("command", ["no-such-program-anywhere up", "", "'unclosed", "sh;id"])
def test_a_command_that_is_not_on_the_path_is_never_started(command: str) -> None:
    vpn = Vpn(command, Times(), StopRequest(SystemClock()))

    with pytest.raises(ToolMissing):
        find_program(command)
    assert not vpn.rotate()


def test_a_command_never_meets_a_shell(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    vpn = Vpn(f"echo up; touch {mark} && $(touch {mark})", replace(Times(), vpn_settle=0.0), StopRequest(SystemClock()))

    vpn.rotate()

    assert not mark.exists()


def test_a_stop_ends_a_command_that_hangs() -> None:
    stop_request = StopRequest(SystemClock())
    stop_request.ask_to_stop()

    assert not _vpn("import time; time.sleep(30)", stop_request).rotate()
