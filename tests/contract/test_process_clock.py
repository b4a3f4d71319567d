"""Machines whose clocks are ten seconds apart keep a delay: what they write is dated by the database's clock."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, cast

import pytest

from holdfast import config
from holdfast.clock import Clock, SystemClock
from holdfast.crawl.assignment import Assignment
from holdfast.crawl.engine import CrawlEngine
from holdfast.crawl.process import Process
from holdfast.db import connect
from holdfast.db.raw import DatabaseClock
from holdfast.frontier import Frontier, FrontierSettings
from holdfast.jobs import executions
from holdfast.sources.plan import CrawlPlan
from holdfast.types import UrlKind
from holdfast.wiring import Runtime
from tests.clock import FakeClock
from tests.contract.frontier_bed import found
from tests.frontier_audit import next_due_at
from tests.unit.crawl.bed import Answer, Line, Web

_PLAN = CrawlPlan(seeds=("http://a.test/",), contact="tests@example.org", delay_s=5.0)
_PAGE = "http://a.test/1"


class Skewed(SystemClock):
    """A machine's clock that is wrong."""

    def __init__(self, by_s: float) -> None:
        super().__init__()
        self._by = timedelta(seconds=by_s)

    def now(self) -> datetime:
        return super().now() + self._by


@contextmanager
def _runtime(url: str, home: Path, machine: Clock) -> Iterator[Runtime]:
    raw_db = connect(url)
    # Processes on one file are on one machine, whose clock they share.
    clock = DatabaseClock(raw_db, machine if raw_db.dialect == "postgresql" else SystemClock())
    try:
        yield Runtime(settings=config.load(home=home), raw_db=raw_db, clock=clock,
                     frontier=Frontier(raw_db, clock, FrontierSettings(lease_s=60.0)))  # fmt: skip
    finally:
        raw_db.close()


def _on_machine(runtime: Runtime, machine: Clock, answer: Line, work: Callable[[CrawlEngine], Any]) -> Any:
    """Do something with the engine of a crawl process on a machine."""

    async def run() -> Any:
        web = Web(FakeClock(), {_PAGE: answer})
        process = Process(runtime, _assignment(runtime), clock=machine)
        engine = process.build_engine(cast(Any, web))
        try:
            found = work(engine)
            return await found if asyncio.iscoroutine(found) else found
        finally:
            engine.close()

    return asyncio.run(run())


def _assignment(runtime: Runtime) -> Assignment:
    begun = executions.begin(
        runtime.raw_db,
        runtime.clock,
        _PLAN,
        executions.ExecutionOptions(runtime.settings.home),
        is_working=lambda _execution_id: False,
    )
    folder = runtime.settings.home / "out"
    folder.mkdir(exist_ok=True)
    return Assignment(
        plan=_PLAN.to_json(), execution_id=begun.execution_id, source_code="a", output_dir=str(folder),
        run_file=f"run-{id(runtime)}", processes=1, seconds_left=None, supervisor=1,
    )  # fmt: skip


async def _ask_once(engine: CrawlEngine) -> tuple[int, float]:
    """Lease the domain, ask for its page, and give it back; return the execution and when it may be asked again."""
    execution_id = engine.session.execution_id
    engine.session.frontier.add(execution_id, [found("a.test", 1)._replace(url=_PAGE, kind=UrlKind.PAGE),
                                       found("a.test", 2)._replace(url="http://a.test/2")])  # fmt: skip
    [lease] = engine.session.frontier.lease(execution_id, engine.session.owner_id, domains=1, pages=1)
    worker = engine.leased_domains.make_worker(lease, float("inf"))
    now = engine.clock.monotonic()
    worker.pace.asked(sent_at=now, first_byte_at=now)
    engine.session.release([worker.update()])
    return execution_id, now


@pytest.mark.parametrize("skew_s", [-10.0, 10.0])
def test_a_machine_whose_clock_is_wrong_gives_a_domain_back_until_its_delay_is_over(
    migrated_url: str, tmp_path: Path, skew_s: float
) -> None:
    machine = Skewed(skew_s)
    with _runtime(migrated_url, tmp_path, machine) as wrong, _runtime(migrated_url, tmp_path, SystemClock()) as right:
        execution_id, _ = _on_machine(wrong, machine, Answer(), _ask_once)
        due_at = next_due_at(right.raw_db, execution_id, right.clock.now())
        early = right.frontier.lease(execution_id, 999, domains=1, pages=1)

        assert early == [], "the delay counts for the other machine too"
        assert due_at is not None
        assert timedelta(0) < due_at - right.clock.now() <= timedelta(seconds=5.1), "and is not longer than asked for"


@pytest.mark.parametrize("skew_s", [-10.0, 10.0])
def test_a_page_is_tried_again_when_its_time_has_come_by_the_databases_clock(
    migrated_url: str, tmp_path: Path, skew_s: float
) -> None:
    machine = Skewed(skew_s)

    def retry(engine: CrawlEngine) -> datetime:
        engine.session.frontier.add(engine.session.execution_id, [found("a.test", 1)._replace(url=_PAGE)])
        [lease] = engine.session.frontier.lease(
            engine.session.execution_id, engine.session.owner_id, domains=1, pages=1
        )
        worker = engine.leased_domains.make_worker(lease, float("inf"))
        worker.politeness.went_badly()
        again = worker.politeness.retry_at(lease.attempts[0].number)
        assert again is not None
        return again

    with _runtime(migrated_url, tmp_path, machine) as wrong, _runtime(migrated_url, tmp_path, SystemClock()) as right:
        again = _on_machine(wrong, machine, Answer(), retry)

        assert timedelta(0) <= again - right.clock.now() <= timedelta(seconds=3)
