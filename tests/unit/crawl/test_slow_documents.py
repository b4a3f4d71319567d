"""The thread for documents that take long to read."""

from __future__ import annotations

import threading

from holdfast.crawl.writer_thread import SlowReader
from tests import patience


def test_things_are_done_in_order_and_all_of_them_before_it_closes() -> None:
    slow_reader, done = SlowReader(), list[int]()
    for number in range(20):
        slow_reader.put(lambda number=number: done.append(number), size=1)  # type: ignore[misc]
    slow_reader.close(wait=True)

    assert done == list(range(20))


def test_who_brings_more_than_there_is_room_for_waits() -> None:
    slow_reader, go, put = SlowReader(room_bytes=100), threading.Event(), threading.Event()

    def hold() -> None:
        go.wait()

    def bring() -> None:
        slow_reader.put(lambda: None, size=50)
        put.set()

    slow_reader.put(hold, size=80)
    bringer = threading.Thread(target=bring)
    bringer.start()
    assert not put.wait(0.05), "eighty and fifty do not fit"
    go.set()
    assert put.wait(patience.deadline(5.0))
    bringer.join()
    slow_reader.close(wait=True)


def test_one_that_is_larger_than_the_room_is_taken_when_nothing_else_is_there() -> None:
    slow_reader, done = SlowReader(room_bytes=10), threading.Event()
    slow_reader.put(done.set, size=1_000)

    assert done.wait(patience.deadline(5.0))
    slow_reader.close(wait=True)
