"""A whole crawl process on a clock that the test moves: a site that is away for less, or for more, than one waits."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import pytest

from holdfast.config import DiskSettings, Settings, Timings
from holdfast.crawl.assignment import Assignment, seeds_of
from holdfast.crawl.process import Process
from holdfast.db import connect
from holdfast.db.raw import RawDatabase
from holdfast.frontier import Frontier, FrontierSettings
from holdfast.jobs import executions
from holdfast.processes.runfile import new_name
from holdfast.sources.plan import CrawlPlan
from holdfast.types import Fetched, FetchFailed, FetchProblem, FetchRequest
from holdfast.wiring import Runtime, prepare
from tests.clock import FakeClock
from tests.frontier_audit import account, audit, next_due_at
from tests.unit.crawl.bed import Answer, fetched

_PAGES = 12
_BEFORE = 4
"""Pages that are answered before the site goes away."""
_HOUR_S = 3600.0


@dataclass
class Town:
    """A site of some pages that goes away for a while; `robots` is what its robots.txt answers meanwhile."""

    clock: FakeClock
    away_s: float
    robots: int | FetchProblem = FetchProblem.CONNECT
    pages_too: bool = True
    went_at: float | None = None
    asked: list[tuple[float, str]] = field(default_factory=list)

    async def fetch(self, request: FetchRequest) -> Fetched | FetchFailed:
        now = self.clock.monotonic()
        path = request.url.removeprefix("http://127.0.0.1:7000")
        self.asked.append((now, path))
        answered = len({path for _, path in self.asked if path != "/robots.txt"})
        if self.went_at is None and answered > _BEFORE:
            self.went_at = now
        is_away = self.went_at is not None and now < self.went_at + self.away_s
        if path == "/robots.txt":
            line = self.robots if is_away else 404
        else:
            line = FetchProblem.CONNECT if is_away and self.pages_too else 200
        if isinstance(line, FetchProblem):
            return FetchFailed(url=request.url, problem=line, message="away", started_at=self.clock.now(), took_s=0.0)
        links = "".join(f'<a href="/{n}">{n}</a>' for n in range(_PAGES)).encode()
        return fetched(request, Answer(line, body=links, headers=(("Content-Type", "text/html"),)), self.clock)

    async def close(self) -> None:
        """There is nothing to close."""


@dataclass
class World:
    """One execution in a database of its own, on a clock of its own."""

    runtime: Runtime
    clock: FakeClock
    plan: CrawlPlan
    execution_id: int
    assignment: Callable[[], Assignment]

    async def _run(self, town: Town) -> None:
        process = Process(self.runtime, self.assignment(), clock=self.clock, client=cast(Any, town))
        running = asyncio.create_task(process.run())
        with closing(connect(self.runtime.settings.database)) as raw_db:
            while not running.done():
                await asyncio.sleep(0.005)
                self._pass_time(process, raw_db)
        await running

    def _pass_time(self, process: Process, raw_db: RawDatabase) -> None:
        """Let the clock run to the next moment at which something is to do, once nothing is under way."""
        engine = getattr(process, "engine", None)
        if engine is None or engine.leased_domains.workers or engine.waiting or engine.results.visits:
            return
        due = next_due_at(raw_db, self.execution_id, self.clock.now())
        wait_s = 0.0 if due is None else (due - self.clock.now()).total_seconds()
        if 0.0 < wait_s < _HOUR_S * 2:  # a domain that is being leased at this moment is due after its lease
            self.clock.advance(wait_s)
        engine.leased_domains.look_again.set()

    def crawl(self, town: Town) -> Counter[tuple[str | None, str | None]]:
        """Crawl to the end; return how the addresses ended."""
        asyncio.run(self._run(town))
        assert audit(self.runtime.raw_db, self.execution_id) == []
        return Counter(
            (row.outcome and row.outcome.value, row.reason) for row in account(self.runtime.raw_db, self.execution_id)
        )


@pytest.fixture
def world(database_url: str, tmp_path: Path, clock: FakeClock) -> Iterator[World]:
    # Leases and parse deadlines are hours: the clock jumps, and none of them should end by it.
    settings = Settings(
        home=tmp_path / "home", database_url=None if database_url.startswith("sqlite") else database_url,
        disk=DiskSettings(free_bytes=0, free_percent=0.0),
        timings=Timings(
            lease_seconds=_HOUR_S * 4, crawl_parse_s=_HOUR_S * 4, crawl_settle_s=0.01
        ),
    )  # fmt: skip
    prepare(settings)
    raw_db = connect(settings.database)
    frontier = Frontier(raw_db, clock, FrontierSettings(lease_s=settings.timings.lease_seconds))
    runtime = Runtime(settings=settings, raw_db=raw_db, clock=clock, frontier=frontier)
    plan = CrawlPlan(seeds=("http://127.0.0.1:7000/0",), contact="a@example.org", delay_s=0.0, sitemaps=False,
                     allow_networks=("127.0.0.0/8",))  # fmt: skip
    begun = executions.begin(
        raw_db, clock, plan, executions.ExecutionOptions(settings.home), is_working=lambda _id: False
    )
    frontier.add(begun.execution_id, list(seeds_of(plan)))

    def assignment() -> Assignment:
        return Assignment(
            plan=plan.to_json(), execution_id=begun.execution_id, source_code=begun.source_code,
            output_dir=str(begun.output_dir), run_file=new_name(), processes=1, seconds_left=None,
            supervisor=os.getppid(),
        )  # fmt: skip

    yield World(runtime, clock, plan, begun.execution_id, assignment)
    raw_db.close()


def test_a_site_that_is_away_for_29_minutes_is_captured_to_the_end(world: World) -> None:
    ended = world.crawl(Town(world.clock, away_s=29 * 60))

    assert ended == {("success", "ok"): _PAGES}


def test_a_site_that_is_away_for_31_minutes_is_given_up_after_30_and_the_rest_is_named(world: World) -> None:
    town = Town(world.clock, away_s=31 * 60)
    ended = world.crawl(town)

    assert ended == {("success", "ok"): _BEFORE, ("failed", "domain_unreachable"): _PAGES - _BEFORE}
    assert town.went_at is not None
    last = town.asked[-1][0] - town.went_at
    assert 1800 <= last < 1860, "the promised time was waited"


@pytest.mark.parametrize("answer", [500, FetchProblem.TIMEOUT])
def test_a_site_whose_robots_file_fails_from_the_start_is_waited_for_as_long(
    world: World, answer: int | FetchProblem
) -> None:
    town = Town(world.clock, away_s=29 * 60, robots=answer, went_at=world.clock.monotonic())

    assert world.crawl(town) == {("success", "ok"): _PAGES}


def test_a_name_that_does_not_exist_is_given_up_after_a_minute(world: World) -> None:
    began = world.clock.monotonic()
    town = Town(world.clock, away_s=10 * _HOUR_S, robots=FetchProblem.NO_SUCH_NAME, went_at=began)

    assert world.crawl(town) == {("failed", "domain_unreachable"): 1}
    assert len(town.asked) >= 4, "a nameserver that is wrong once is not believed"
    assert 60 <= town.asked[-1][0] - began < 180


def test_a_name_that_is_missing_for_a_moment_is_waited_for(world: World) -> None:
    town = Town(world.clock, away_s=45, robots=FetchProblem.NO_SUCH_NAME, went_at=world.clock.monotonic())

    assert world.crawl(town) == {("success", "ok"): _PAGES}


def test_a_nameserver_that_cannot_tell_keeps_the_long_patience(world: World) -> None:
    town = Town(world.clock, away_s=29 * 60, robots=FetchProblem.DNS, went_at=world.clock.monotonic())

    assert world.crawl(town) == {("success", "ok"): _PAGES}


def test_a_robots_file_that_never_answers_closes_the_host_after_half_an_hour(world: World) -> None:
    town = Town(world.clock, away_s=31 * 60, robots=500, went_at=world.clock.monotonic())

    assert world.crawl(town) == {("failed", "domain_unreachable"): 1}
    assert {path for _, path in town.asked} == {"/robots.txt"}


def test_a_failed_re_read_of_robots_changes_nothing_for_a_site_that_answers(world: World) -> None:
    """The first read says that there is no file; an hour later every re-read fails, while pages are answered."""
    town = Town(world.clock, away_s=10 * _HOUR_S, robots=500, pages_too=False)

    class Slow(Town):
        async def fetch(self, request: FetchRequest) -> Fetched | FetchFailed:
            self.clock.advance(1_000.0)
            return await super().fetch(request)

    slow = Slow(town.clock, away_s=town.away_s, robots=500, pages_too=False)
    assert world.crawl(slow) == {("success", "ok"): _PAGES}
    assert [path for _, path in slow.asked].count("/robots.txt") > 2
    assert world.clock.now() - timedelta(hours=3) > FakeClock().now()
