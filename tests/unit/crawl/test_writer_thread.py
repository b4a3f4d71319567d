"""The writer thread: no answer holds up the others, nothing is stored by a writer that was given up."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Event

import pytest

from holdfast.config import WarcSettings
from holdfast.crawl.outcomes import PageUnderWay
from holdfast.crawl.page_reading import DocumentReader
from holdfast.crawl.storing import WarcStorage
from holdfast.crawl.warc_output import WarcOutput
from holdfast.crawl.writer_thread import LARGE_BYTES, CaptureWriter
from holdfast.parse import ParseChild
from holdfast.processes.runfile import RunFile, parsed_attempts
from holdfast.types import Body, FetchRequest, Visit
from holdfast.warc.record import sha256_of
from tests.unit.crawl.bed import Answer, Bed, Bytes, attempt, fetched, make_bed

_WAIT_S = 30.0


class Held:
    """A large body that comes only when it is let go."""

    def __init__(self, data: bytes) -> None:
        self.data, self.free, self.asked = data, Event(), Event()

    @property
    def size(self) -> int:
        return len(self.data)

    def chunks(self) -> Iterator[bytes]:
        self.asked.set()
        assert self.free.wait(_WAIT_S)
        yield self.data

    def close(self) -> None:
        """There is nothing to let go of."""


class Stage:
    """A writer thread with a real WARC output, and what it finished."""

    def __init__(self, folder: Path) -> None:
        self.bed: Bed = make_bed({})
        self.finished: SimpleQueue[tuple[PageUnderWay, Visit | None]] = SimpleQueue()
        self.output = WarcOutput(folder, "x", info={}, clock=self.bed.clock, settings=WarcSettings())
        self.child = ParseChild(deadline_s=60.0)
        self.run = RunFile(folder / "run", "1")
        reader = self.bed.reader(self.child)
        self.capture_writer = CaptureWriter(
            storage=WarcStorage(self.output, refer_to=lambda _attempt: None, limit=reader.max_bytes),
            link_filter=self.bed.link_filter(), reader=reader, run=self.run, clock=self.bed.clock,
            done=lambda page, visit: self.finished.put((page, visit)),
        )  # fmt: skip
        self.capture_writer.start()

    def page(self, path: str, body: Body) -> PageUnderWay:
        """Return a page to hand to the writer."""
        url = f"http://a.test/{path}"
        hop = fetched(FetchRequest(url=url), Answer(headers=(("Content-Type", "application/pdf"),)), self.bed.clock)
        return PageUnderWay(
            attempt=attempt(url), token=7, started_at=self.bed.clock.now(), hops=[replace(hop, body=body)],
            reason="ok",
        )  # fmt: skip

    def next(self) -> Visit:
        """Return the next visit that the writer has finished."""
        visit = self.finished.get(timeout=_WAIT_S)[1]
        assert visit is not None
        return visit


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    (tmp_path / "run").mkdir()
    made = Stage(tmp_path)
    yield made
    made.capture_writer.stop()
    assert made.capture_writer.join(_WAIT_S)
    made.output.close()
    made.child.close()


def test_a_large_body_that_takes_long_to_put_together_holds_no_other_up(stage: Stage) -> None:
    large = Held(b"x" * (LARGE_BYTES + 1))
    stage.capture_writer.put(stage.page("large", large))
    assert large.asked.wait(_WAIT_S)
    stage.capture_writer.put(stage.page("small", Bytes(b"y")))

    assert stage.next().attempt.url == "http://a.test/small"
    large.free.set()
    visit = stage.next()
    assert (visit.attempt.url, visit.payload_digest) == ("http://a.test/large", sha256_of((large.data,)))


def test_a_writer_that_is_told_to_stop_finishes_what_is_being_prepared(stage: Stage) -> None:
    large = Held(b"x" * (LARGE_BYTES + 1))
    stage.capture_writer.put(stage.page("large", large))
    assert large.asked.wait(_WAIT_S)
    stage.capture_writer.stop()
    large.free.set()

    assert stage.next().attempt.url == "http://a.test/large"


def test_a_body_that_cannot_be_read_closes_its_page_with_a_name(stage: Stage) -> None:
    class Broken(Held):
        def chunks(self) -> Iterator[bytes]:
            raise OSError("the disk is gone")

    stage.capture_writer.put(stage.page("large", Broken(b"x" * (LARGE_BYTES + 1))))

    assert (stage.next().reason) == "internal_error"


def test_a_page_whose_parser_fails_does_not_look_as_if_it_hung(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("a mistake of ours")

    monkeypatch.setattr(DocumentReader, "read", fail)
    stage.capture_writer.put(stage.page("odd", Bytes(b"y")))

    assert stage.next().reason == "internal_error"
    assert stage.capture_writer.parsing_since is None
    assert parsed_attempts(stage.run.path) == {}


def test_a_writer_stores_nothing_while_another_of_its_process_does(stage: Stage) -> None:
    with stage.output.appending:
        stage.capture_writer.put(stage.page("one", Bytes(b"y")))
        assert stage.capture_writer.is_storing()
        with pytest.raises(Empty):
            stage.finished.get(timeout=0.2)

    assert stage.next().reason == "ok"


def test_a_writer_that_was_given_up_hands_on_what_it_prepares_and_writes_nothing_more(stage: Stage) -> None:
    large = Held(b"x" * (LARGE_BYTES + 1))
    one, other = stage.page("large", large), stage.page("second", Held(b"x" * (LARGE_BYTES + 1)))
    stage.capture_writer.put(one)
    stage.capture_writer.put(other)
    assert large.asked.wait(_WAIT_S)
    stage.capture_writer.put(stage.page("small", Bytes(b"y")))
    stage.next()  # so both large ones are being prepared

    left = {page.number for page, _ in stage.capture_writer.abandon()}
    large.free.set()

    assert left == {one.number, other.number}
    assert stage.capture_writer.join(_WAIT_S)
    assert not stage.capture_writer.is_storing()
    assert stage.finished.empty()


def test_what_is_ended_is_told_in_batches_while_more_waits_and_none_is_kept_back(stage: Stage) -> None:
    held, free = Event(), Event()
    told: SimpleQueue[int] = SimpleQueue()

    def hold() -> None:
        held.set()
        assert free.wait(_WAIT_S)

    stage.capture_writer.do(hold)
    assert held.wait(_WAIT_S)
    stage.capture_writer.flush = lambda: told.put(stage.finished.qsize())
    for number in range(40):
        stage.capture_writer.put(stage.page(str(number), Bytes(b"y")))
    free.set()

    seen: list[int] = []
    while 40 not in seen:
        seen.append(told.get(timeout=_WAIT_S))
    assert len(seen) < 6
