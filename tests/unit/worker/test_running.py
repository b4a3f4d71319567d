"""What a runner hears and says: the strongest word wins, progress is told when it is due, a lost run writes nothing."""

from __future__ import annotations

import threading
from pathlib import Path

from holdfast.config import JobSettings
from holdfast.db.engine import Database
from holdfast.jobs.endings import Counts
from holdfast.jobs.journal import LogBook
from holdfast.jobs.leases import LeaseUpdate
from holdfast.worker.runner import RunnerHolding, StopReason, asked_for
from tests import patience
from tests.clock import FakeClock


def _holding(tmp_path: Path, clock: FakeClock, told: list[Counts], word: StopReason | None = None) -> RunnerHolding:
    book = LogBook(Database(f"sqlite:///{tmp_path / 'none.db'}"), clock, 1, JobSettings())
    return RunnerHolding(book, clock, report=lambda counts, _: told.append(counts), listen=lambda: word)


def _items(count: int) -> Counts:
    return Counts(items_crawled=count)


def test_a_weaker_word_changes_nothing_and_a_stronger_one_wins(tmp_path: Path, clock: FakeClock) -> None:
    holding = _holding(tmp_path, clock, [])
    heard = []
    for word in (
        StopReason.DRAIN,
        StopReason.CANCEL,
        StopReason.FINISH,
        StopReason.NOW,
        StopReason.DRAIN,
        StopReason.LOST,
        StopReason.NOW,
    ):
        holding.ask(word)
        heard.append(holding.stop)

    assert heard == [
        StopReason.DRAIN,
        StopReason.CANCEL,
        StopReason.CANCEL,
        StopReason.NOW,
        StopReason.NOW,
        StopReason.LOST,
        StopReason.LOST,
    ]


def test_waiting_ends_with_the_word(tmp_path: Path, clock: FakeClock) -> None:
    holding = _holding(tmp_path, clock, [])
    threading.Timer(0.05, holding.ask, (StopReason.CANCEL,)).start()

    assert holding.wait(patience.deadline(10)) is StopReason.CANCEL
    assert holding.wait(0.0) is StopReason.CANCEL


def test_the_rows_are_asked_at_the_moment_of_the_question(tmp_path: Path, clock: FakeClock) -> None:
    holding = _holding(tmp_path, clock, [], word=StopReason.FINISH)

    assert holding.stop is None
    assert holding.poll_signals() is StopReason.FINISH


def test_a_lease_that_is_not_renewed_in_time_is_lost_whoever_is_at_fault(tmp_path: Path, clock: FakeClock) -> None:
    holding = _holding(tmp_path, clock, [])
    holding.good_until(clock.monotonic() + 10)
    clock.advance(9)
    assert holding.stop is None
    holding.good_until(clock.monotonic() + 10)
    clock.advance(9)
    assert holding.wait(0.0) is None

    clock.advance(2)

    assert holding.stop is StopReason.LOST
    holding.good_until(clock.monotonic() + 10)
    assert holding.stop is StopReason.LOST, "a run that was told so does not go on"


def test_progress_is_passed_on_each_ten_items_or_five_seconds_and_only_if_it_is_new(
    tmp_path: Path, clock: FakeClock
) -> None:
    told: list[Counts] = []
    holding = _holding(tmp_path, clock, told)
    for count in (1, 5, 9, 10, 15, 19, 20):
        holding.progress(_items(count))
    assert [one.items_crawled for one in told] == [10, 20]

    holding.progress(_items(21))
    clock.advance(5.1)
    holding.progress(_items(21))
    clock.advance(60)
    holding.progress(_items(21))

    assert [one.items_crawled for one in told] == [10, 20, 21]


def test_nothing_is_told_or_written_once_the_lease_is_lost(tmp_path: Path, clock: FakeClock) -> None:
    told: list[Counts] = []
    holding = _holding(tmp_path, clock, told)
    holding.ask(StopReason.LOST)

    holding.progress(_items(100))
    holding.note("info", "lifecycle", "too late")
    holding.flush()

    assert told == []
    assert not (tmp_path / "none.db").exists()


def test_what_the_rows_ask_becomes_the_right_word() -> None:
    assert asked_for(LeaseUpdate(None, cancelled=False)) is None
    assert asked_for(LeaseUpdate("drain", cancelled=False)) is StopReason.FINISH
    assert asked_for(LeaseUpdate("cancel", cancelled=False)) is StopReason.DISCARD
    assert asked_for(LeaseUpdate("drain", cancelled=True)) is StopReason.CANCEL
