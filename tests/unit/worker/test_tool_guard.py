"""A tool is ended before the leases of its hosts are over: gently while there is time, at once when there is none."""

from __future__ import annotations

import time
from collections.abc import Callable

from holdfast.worker.tool_process import AdoptedTool, ToolGuard
from tests import patience
from tests.clock import FakeClock


class Stubborn(AdoptedTool):
    """A tool that goes on whatever it is asked."""

    def __init__(self) -> None:
        self.heard: list[int] = []

    def ask_to_end(self, times: int = 1) -> None:
        """Remember how many requests there are by now."""
        if times not in self.heard:
            self.heard.append(times)


def _until(done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + patience.deadline(10)
    while not done():
        assert time.monotonic() < deadline, "it never came to be"
        time.sleep(0.01)


def test_a_tool_is_asked_once_and_hurried_when_the_lease_is_over() -> None:
    clock, tool = FakeClock(), Stubborn()
    until = clock.monotonic() + 54

    with ToolGuard(tool, lambda: until, clock, gently_s=15.0) as guard:
        clock.advance(38)
        assert (tool.heard, guard.lapsed) == ([], False)
        clock.advance(1)
        _until(lambda: guard.lapsed)
        guard.ask_to_end()
        _until(lambda: tool.heard == [1])
        clock.advance(15)
        _until(lambda: tool.heard == [1, 2])


def test_a_renewal_keeps_a_tool_and_one_that_was_asked_by_another_road_is_not_asked_again() -> None:
    clock, tool = FakeClock(), Stubborn()

    with ToolGuard(tool, lambda: clock.monotonic() + 54, clock, gently_s=15.0) as guard:
        clock.advance(1000)
        guard.ask_to_end()
        guard.ask_to_end()

    assert (tool.heard, guard.lapsed) == ([1], False)
