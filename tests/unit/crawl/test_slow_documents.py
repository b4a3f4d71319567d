"""The second thread for what takes long."""

from __future__ import annotations

import threading

from holdfast.crawl.writer_thread import SlowReader
from tests import patience


def test_things_are_done_in_order_and_all_of_them_before_it_closes() -> None:
    capture_writer, done = SlowReader(), list[int]()
    for number in range(20):
        capture_writer.put(lambda number=number: done.append(number), size=1)  # type: ignore[misc]
    capture_writer.close(wait=True)

    assert done == list(range(20))


def test_who_brings_more_than_there_is_room_for_waits() -> None:
    capture_writer, go, put = SlowReader(room_bytes=100), threading.Event(), threading.Event()

    def hold() -> None:
        go.wait()

    def bring() -> None:
        capture_writer.put(lambda: None, size=50)
        put.set()

    capture_writer.put(hold, size=80)
    bringer = threading.Thread(target=bring)
    bringer.start()
    assert not put.wait(0.05), "eighty and fifty do not fit"
    go.set()
    assert put.wait(patience.deadline(5.0))
    bringer.join()
    capture_writer.close(wait=True)


def test_one_that_is_larger_than_the_room_is_taken_when_nothing_else_is_there() -> None:
    capture_writer, done = SlowReader(room_bytes=10), threading.Event()
    capture_writer.put(done.set, size=1_000)

    assert done.wait(patience.deadline(5.0))
    capture_writer.close(wait=True)
