"""A parser that hangs is given up, and not a page that was being read while the process stood still."""

from __future__ import annotations

from pathlib import Path
from threading import Event
from types import SimpleNamespace
from typing import Any, cast

from holdfast.config import Settings
from holdfast.crawl.process_watch import ProcessWatch


class _Watched:
    """A watch over a writer that has been reading a page since moment 0."""

    def __init__(self) -> None:
        self.spent_s = 0.0
        self.watch = ProcessWatch(cast(Any, None), Path(), parent=1, spent=lambda: self.spent_s)
        self.replaced: list[float] = []
        writer = SimpleNamespace(no_space=Event(), parsing_since=0.0, join=lambda _wait: False)
        self.engine: Any = SimpleNamespace(
            capture_writer=writer, closing=False, settings=Settings(), replace_writer=lambda: self.replaced.append(1.0)
        )

    def pulse(self, now: float, *, busy: bool = True) -> None:
        self.spent_s += 0.25 if busy else 0.0
        self.watch._note_sleep(now)
        self.watch._look_at_writer(self.engine, now)


def test_a_parser_that_hangs_is_given_up_after_its_deadline() -> None:
    watched = _Watched()
    for number in range(1, 21):
        watched.pulse(number * 0.25)
    assert watched.replaced == []
    for number in range(21, 24):
        watched.pulse(number * 0.25)
    assert watched.replaced


def test_a_page_that_was_being_read_while_the_process_stood_still_has_its_whole_time_after_it() -> None:
    watched = _Watched()
    watched.pulse(0.25)
    watched.pulse(3600.0, busy=False)
    for number in range(1, 21):
        watched.pulse(3600.0 + number * 0.25)
    assert watched.replaced == []
    for number in range(21, 24):
        watched.pulse(3600.0 + number * 0.25)
    assert watched.replaced, "it hangs indeed"


def test_a_parser_that_keeps_the_loop_from_its_turns_is_given_up_all_the_same() -> None:
    watched = _Watched()
    for number in range(1, 6):
        watched.spent_s += 2.0
        watched.pulse(number * 2.0, busy=False)
    assert watched.replaced
