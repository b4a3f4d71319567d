"""Chores in rounds: one that fails holds up no other, and `exhaust` waits until nothing is left."""

from __future__ import annotations

import threading
from contextlib import closing
from pathlib import Path

import pytest

from holdfast import config
from holdfast.config import Settings, Timings
from holdfast.worker.background import BackgroundContext, BackgroundWork
from tests import patience


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Settings of an installation on SQLite whose background work hardly rests."""
    return config.load(home=tmp_path, timings=Timings(jobs_rest_s=0.05))


class Pile:
    """A task with so many pieces left."""

    name = "pile"

    def __init__(self, pieces: int) -> None:
        self.pieces = pieces
        self.threads: set[int] = set()

    def run_once(self) -> bool:
        """Do one piece."""
        self.threads.add(threading.get_ident())
        self.pieces -= self.pieces > 0
        return self.pieces > 0


class Broken:
    """A task that never works."""

    name = "broken"

    def __init__(self) -> None:
        self.times = 0

    def run_once(self) -> bool:
        """Fail."""
        self.times += 1
        raise OSError("the disk is away")


def test_everything_is_done_and_what_fails_is_told_and_left_for_later(settings: Settings) -> None:
    pile, broken = Pile(50), Broken()
    background = BackgroundWork(settings, [lambda _bench: broken, lambda _bench: pile])
    background.start()

    background.exhaust(lambda: True)

    assert background.stop(10)
    assert pile.pieces == 0
    assert broken.times == 1, "it is tried again after a pause, not in every round"
    assert background.errors == {"broken": "OSError: the disk is away"}
    assert len(pile.threads) == 1
    assert threading.get_ident() not in pile.threads


def test_a_task_at_work_hears_that_the_worker_ends_and_what_it_opened_is_closed(settings: Settings) -> None:
    began, closed = threading.Event(), threading.Event()

    class Long:
        name = "long"

        def __init__(self, bench: BackgroundContext) -> None:
            self._bench = bench
            bench.on_end.enter_context(closing(self))

        def run_once(self) -> bool:
            began.set()
            while not self._bench.is_stopping():
                threading.Event().wait(0.01)
            return True

        def close(self) -> None:
            closed.set()

    background = BackgroundWork(settings, [Long])
    background.start()
    assert began.wait(patience.deadline(10))

    assert background.stop(10)
    assert closed.is_set()


def test_what_is_not_wanted_any_more_is_not_waited_for(settings: Settings) -> None:
    background = BackgroundWork(settings, [lambda _bench: Pile(10**9)])
    background.start()

    background.exhaust(lambda: False)

    assert background.stop(10)
