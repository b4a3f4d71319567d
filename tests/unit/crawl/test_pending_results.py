"""What waits to be settled: no transaction points at WARC bytes that were not synced before, and only what is in the
database counts."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, cast

import pytest

from holdfast.clock import SystemClock
from holdfast.config import WarcSettings
from holdfast.crawl.progress import CrawlProgress
from holdfast.crawl.settling import FrontierSession, PendingResults
from holdfast.crawl.warc_output import WarcOutput
from holdfast.db.raw import RawDatabase, Transaction
from holdfast.errors import Unavailable
from holdfast.frontier import Frontier
from holdfast.types import Attempt, Outcome, Visit
from holdfast.warc.outfile import SealedFile
from tests.clock import FakeClock
from tests.contract.frontier_bed import many
from tests.execution import begun_execution
from tests.unit.crawl.test_warc_output import exchange

_BATCHES = 100


class WatchedOutput(WarcOutput):
    """A WARC output that knows how far each of its files is on disk."""

    appended = synced = (0, 0)
    whole: set[int]

    def append(self, exchange: Any) -> Any:
        appended = super().append(exchange)
        self.appended = appended.ref.warc_file_id, appended.ref.offset + appended.ref.length
        return appended

    def sync(self) -> None:
        reached = self.appended
        super().sync()
        self.synced = reached


class WatchedDatabase:
    """A connection that looks, before each commit, whether a row points at bytes that are not on disk."""

    def __init__(self, raw_db: RawDatabase, output: WatchedOutput) -> None:
        self._raw_db, self._output = raw_db, output
        self.dialect, self.generation = raw_db.dialect, raw_db.generation
        self.read, self.now_micros, self.close = raw_db.read, raw_db.now_micros, raw_db.close
        self.broken: list[str] = []
        self.commits = 0
        self.loses = False

    @contextmanager
    def write(self) -> Iterator[Transaction]:
        with self._raw_db.write() as tx:
            yield tx
            self._look(tx)
        if self.loses:
            raise Unavailable("the answer was lost")

    def _look(self, tx: Transaction) -> None:
        self.commits += 1
        rows = tx.execute(
            "SELECT warc_file_id, max(warc_offset + warc_length) FROM page_crawls"
            " WHERE warc_file_id IS NOT NULL GROUP BY warc_file_id"
        )
        file_id, end = self._output.synced
        for pointed_id, pointed_end in rows:
            if pointed_id not in self._output.whole and not (pointed_id == file_id and pointed_end <= end):
                self.broken.append(
                    f"commit {self.commits} points at {pointed_id}:{pointed_end}, synced {file_id}:{end}"
                )


class _Silent:
    """Other processes that are not there."""

    def write_landings(self) -> None: ...

    def note_landing(self, url: str) -> None: ...

    def read_news(self) -> Any: ...


def test_no_commit_points_at_bytes_that_are_not_synced(tmp_path: Path) -> None:
    chance = random.Random(5)
    with begun_execution(tmp_path / "home") as begin:
        output = _output(tmp_path)
        raw_db = WatchedDatabase(begin.runtime.raw_db, output)
        frontier = Frontier(raw_db, begin.runtime.clock)
        execution_id = begin.begun.execution_id
        frontier.add(execution_id, many("example.org", 1200))
        session = FrontierSession(
            frontier=frontier,
            originals=cast(Any, None),
            clock=begin.runtime.clock,
            execution_id=execution_id,
            owner_id=1,
        )
        results = PendingResults(
            session, output, CrawlProgress(FakeClock()), cast(Any, _Silent()), forget=lambda _found: None
        )  # fmt: skip
        lease = frontier.lease(execution_id, 1, domains=1, pages=1200)[0]
        stored: SimpleQueue[Visit] = SimpleQueue()
        capture_writer = threading.Thread(target=_store, args=(output, stored, lease.attempts, lease.token))
        capture_writer.start()
        batches = 0
        while frontier.open_count(execution_id):
            for _ in range(chance.randrange(1, 15)):
                with suppress(Empty):
                    results.add(stored.get_nowait())
            batch = results.take(200)
            batches += bool(batch)
            raw_db.loses = chance.random() < 0.2
            try:
                results.settle(batch, [])
            except Unavailable:
                results.give_back(batch)
            raw_db.loses = False
        capture_writer.join()
        output.close()

    assert raw_db.broken == []
    assert batches >= _BATCHES
    assert len(output.whole) >= 3


def _output(tmp_path: Path) -> WatchedOutput:
    settings = WarcSettings(bytes=100_000)
    (tmp_path / "warcs").mkdir()
    output = WatchedOutput(tmp_path / "warcs", "code-1", info={}, clock=SystemClock(), settings=settings)
    output.whole = set()
    ids = iter(range(1, 1000))
    output.register = lambda _path: next(ids)

    def sealed(file_id: int, _file: SealedFile) -> None:
        output.whole.add(file_id)

    output.sealed = sealed
    return output


def _store(output: WarcOutput, stored: SimpleQueue[Visit], attempts: tuple[Attempt, ...], token: int) -> None:
    """Append and rotate as the writer thread does, beside the thread that settles."""
    now = SystemClock().now()
    for attempt in attempts:
        record = output.append(exchange(attempt.url.encode() * 3)).ref
        output.rotate()
        stored.put(
            Visit(attempt=attempt, token=token, outcome=Outcome.SUCCESS, reason="ok", status=200, started_at=now,
                  finished_at=now, record=record)
        )  # fmt: skip


class _Bench:
    """Results that wait for a real frontier, and what they made the link_filter forget."""

    def __init__(self, runtime: Any, execution_id: int) -> None:
        self.raw_db = _Forgetful(runtime.raw_db)
        self.frontier, self.execution_id = Frontier(cast(Any, self.raw_db), runtime.clock), execution_id
        self.now = runtime.clock.now()
        self.frontier.add(execution_id, many("example.org", 3))
        session = FrontierSession(
            frontier=self.frontier, originals=cast(Any, None), clock=runtime.clock, execution_id=execution_id,
            owner_id=1,
        )  # fmt: skip
        self.forgotten: list[str] = []
        self.progress = CrawlProgress(FakeClock())
        self.results = PendingResults(
            session, cast(Any, _NoOutput()), self.progress, cast(Any, _Silent()),
            forget=lambda found: self.forgotten.extend(one.url for one in found),
        )  # fmt: skip
        [self.lease] = self.frontier.lease(execution_id, 1, domains=1, pages=3)

    def visits(self, token: int | None = None) -> list[Visit]:
        given = self.lease.token if token is None else token
        return [
            Visit(attempt=one, token=given, outcome=Outcome.SUCCESS, reason="ok", status=200, started_at=self.now,
                  finished_at=self.now, found=tuple(many(f"h{one.id}.example", 1)))
            for one in self.lease.attempts
        ]  # fmt: skip

    def written(self) -> tuple[int, int, dict[str, int]]:
        """The totals in the database: pages, refused results, outcomes."""
        counts = self.frontier.stats(self.execution_id).counts
        return counts["pages"], counts["refused"], counts.get("outcomes", {})

    def counted(self) -> tuple[int, int, dict[str, int]]:
        """The totals in memory, which limits are judged by."""
        return self.progress.pages, self.progress.refused, dict(self.progress.outcomes)


class _NoOutput:
    def sync(self) -> None:
        """There is no file."""


class _Forgetful:
    """A connection that takes nothing, or takes it and loses the answer."""

    def __init__(self, raw_db: RawDatabase) -> None:
        self._raw_db = raw_db
        self.dialect, self.generation = raw_db.dialect, raw_db.generation
        self.read, self.now_micros, self.close = raw_db.read, raw_db.now_micros, raw_db.close
        self.fault = ""

    @contextmanager
    def write(self) -> Iterator[Transaction]:
        with self._raw_db.write() as tx:
            yield tx
            if self.fault == "away":
                raise Unavailable("away")
        if self.fault == "answer lost":
            raise Unavailable("the answer was lost")


@contextmanager
def _bench(tmp_path: Path) -> Iterator[_Bench]:
    with begun_execution(tmp_path / "home") as begin:
        yield _Bench(begin.runtime, begin.begun.execution_id)


def test_a_refused_result_never_stands_in_the_totals_and_its_links_may_be_met_again(tmp_path: Path) -> None:
    with _bench(tmp_path) as bench:
        old, *rest = bench.visits()
        bench.results.settle([replace(old, token=old.token - 1), *rest], [])

        assert bench.written() == (2, 1, {"success": 2})
        assert bench.counted() == (2, 1, {"success": 2})
        assert bench.forgotten == [old.found[0].url]


@pytest.mark.parametrize("fault", ["away", "answer lost"])
def test_a_result_counts_once_it_is_in_the_database_and_once_only(tmp_path: Path, fault: str) -> None:
    with _bench(tmp_path) as bench:
        visits = bench.visits()
        bench.raw_db.fault = fault
        with pytest.raises(Unavailable):
            bench.results.settle(visits, [])
        assert bench.counted() == (0, 0, {}), "no limit may be judged by it"
        bench.raw_db.fault = ""
        bench.results.settle(visits, [])

        assert bench.written() == bench.counted() == (3, 0, {"success": 3})
        assert bench.forgotten == []


def test_a_result_of_an_address_that_was_dropped_meanwhile_counts_there_and_its_links_may_be_met_again(
    tmp_path: Path,
) -> None:
    with _bench(tmp_path) as bench:
        first, *rest = bench.visits()
        assert bench.frontier.close_one(first.attempt.id, outcome=Outcome.EXCLUDED, reason="dropped")
        bench.results.settle([first, *rest], [])

        assert bench.written() == (2, 0, {"success": 2, "excluded": 1})
        assert bench.counted() == (2, 0, {"success": 2})
        assert bench.forgotten == [first.found[0].url]
