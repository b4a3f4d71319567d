"""Workers and schedulers are killed and frozen at random (issue 4's proof): every job runs, none twice at once."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.process import BaseProcess

import pytest

from holdfast.db.models import Hold
from tests import patience
from tests.flow.crawler import Crawler, fetched
from tests.flow.faults.bed import rows, settled_twice, until
from tests.flow.plant import STALE_S, Plant, be_scheduler, be_worker
from tests.site import Site, judge

_DELAY_S = 0.1


@pytest.fixture
def plant(any_crawler: Crawler) -> Iterator[Plant]:
    """An installation on each kind of database; its processes do not outlive the test."""
    made = Plant(any_crawler)
    yield made
    made.end()


class Chaos:
    """Kills and freezes processes of a plant, and starts others in their place."""

    def __init__(self, plant: Plant, seed: int) -> None:
        self._plant, self._chance = plant, random.Random(seed)
        self._at_work: list[tuple[BaseProcess, Callable[[Plant], None]]] = []
        self._frozen: list[tuple[float, int]] = []
        self.kills = self.freezes = 0

    def start(self, role: Callable[[Plant], None]) -> None:
        """Start one more process."""
        self._at_work.append((self._plant.fork(role), role))

    def run(self, seconds: float) -> None:
        """Strike every half second or so, for so long; in the end nobody is frozen."""
        pause, ends = threading.Event(), time.monotonic() + seconds
        while time.monotonic() < ends:
            pause.wait(self._chance.uniform(0.3, 0.9))
            self._thaw(time.monotonic())
            process, role = self._victim()
            assert process.pid is not None
            if self._chance.random() < 0.5:
                os.kill(process.pid, signal.SIGKILL)
                process.join()
                self._at_work.remove((process, role))
                self.start(role)
                self.kills += 1
            else:
                os.kill(process.pid, signal.SIGSTOP)
                self._frozen.append((time.monotonic() + self._chance.uniform(0.5, 1.5 * STALE_S), process.pid))
                self.freezes += 1
        self._thaw(float("inf"))

    def _victim(self) -> tuple[BaseProcess, Callable[[Plant], None]]:
        """Return who is hit next: mostly somebody who holds a job."""
        holders = self._plant.holders()
        busy = [entry for entry in self._at_work if entry[0].pid in holders]
        return self._chance.choice(busy if busy and self._chance.random() < 0.7 else self._at_work)

    def _thaw(self, now: float) -> None:
        for entry in [entry for entry in self._frozen if entry[0] <= now]:
            self._frozen.remove(entry)
            if any(process.pid == entry[1] for process, _ in self._at_work):
                os.kill(entry[1], signal.SIGCONT)

    def drain(self) -> list[int | None]:
        """Ask everybody to end in good order, and return their exit codes."""
        for process, _ in self._at_work:
            process.terminate()
        for process, _ in self._at_work:
            process.join(patience.deadline(30))
        return [process.exitcode for process, _ in self._at_work]


def _everything_is_done(plant: Plant, count: int) -> bool:
    found = plant.executions()
    return len(found) == count and all(one.state == "completed" and one.index_state == "indexed" for one in found)


def _wait_for_all(plant: Plant, count: int, *, within_s: float) -> None:
    try:
        until(lambda: _everything_is_done(plant, count), within_s=within_s, what="all jobs ran and were indexed")
    except AssertionError as exc:
        states = [(one.id, one.state, one.index_state) for one in plant.executions()]
        raise AssertionError(f"{exc}: {states}\n{plant.log()[-4000:]}") from exc


def _survives(plant: Plant, *, jobs: int, pages: int, seconds: float, seed: int) -> None:
    with Site.plain(hosts=jobs, pages=pages) as site:
        for number in range(jobs):
            plant.job(f"s{number}", site.url(number), delay_s=_DELAY_S, max_depth=-1)
        chaos = Chaos(plant, seed)
        for role in (be_scheduler, be_worker, be_worker, be_scheduler, be_worker):
            chaos.start(role)
        until(lambda: len(plant.holders()) >= 2, within_s=30, what="two workers at work")
        chaos.run(seconds)
        _wait_for_all(plant, jobs, within_s=40 + 2 * seconds)
        codes = chaos.drain()
        log = site.settled()
    holds = plant.all(Hold)
    told = f"seed {seed}: {chaos.kills} kills, {chaos.freezes} freezes, {len(holds)} holds for {jobs} executions"
    print(told)

    assert codes == [0] * 5, told
    assert plant.overlaps() == [], told
    assert plant.asked_after_settled(log) == [], told
    assert settled_twice(plant.crawler) == 0, told
    assert judge(log, delay_s=_DELAY_S) == [], told
    assert rows(plant.crawler, "SELECT count(*) FROM page_crawls WHERE outcome IS NULL") == [(0,)], told
    assert _troubles(plant) == [], told
    assert [one.items_crawled for one in plant.executions()] == [pages] * jobs, told
    for one in plant.executions():
        assert plant.crawler.faults(one.id) == [], told


def _troubles(plant: Plant) -> Sequence[object]:
    """Return the pages that have no attempt that ended well or were not read to their end, and why."""
    return rows(
        plant.crawler,
        "SELECT p.url, c.attempt, c.crashes, c.outcome, c.reason, c.message FROM page_crawls c JOIN pages p"
        " ON p.id = c.page_id WHERE c.kind = 'page' AND (c.outcome = 'success' AND c.reason <> 'ok' OR"
        " c.page_id NOT IN (SELECT page_id FROM page_crawls WHERE outcome = 'success'))",
    )


def test_random_kills_and_freezes_of_two_schedulers_and_three_workers(plant: Plant) -> None:
    _survives(plant, jobs=6, pages=60, seconds=7, seed=41)


def test_a_killed_workers_execution_goes_on_within_a_stale_period_and_asks_for_nothing_again(plant: Plant) -> None:
    with Site.plain(hosts=3, pages=40) as site:
        plant.job("ex", *(site.url(host) for host in range(3)), max_depth=-1)
        first = plant.fork(be_worker)
        plant.fork(be_scheduler)
        until(lambda: len(site.log()) > 30, within_s=30, what="thirty requests")
        plant.fork(be_worker)
        crawlers = plant.crawler.processes()
        until(lambda: len(_workers(plant)) == 2, within_s=30, what="a second worker")
        assert first.pid is not None
        killed_at = time.time()
        os.kill(first.pid, signal.SIGKILL)
        first.join()
        until(lambda: len(plant.all(Hold)) == 2, within_s=30, what="taken over")
        until(lambda: not set(crawlers) & set(plant.crawler.processes()), within_s=10, what="its crawl has ended")
        _wait_for_all(plant, 1, within_s=60)
        log = site.settled()
    took_s = plant.all(Hold)[1].acquired_at.timestamp() - killed_at
    asked = fetched(log)
    print(
        f"taken over after {took_s:.2f} s (stale period {STALE_S:g} s), {asked.total() - len(asked)} pages asked again"
    )

    assert took_s < patience.allowed(STALE_S)
    assert plant.asked_after_settled(log) == []
    assert asked.total() - len(asked) <= 3, "what was in flight: one request for each domain"
    assert (len(plant.executions()), plant.executions()[0].takeovers) == (1, 1)
    assert plant.executions()[0].items_crawled == 120
    assert settled_twice(plant.crawler) == 0


def _workers(plant: Plant) -> Sequence[object]:
    return rows(plant.crawler, "SELECT id FROM owners WHERE kind IN ('worker', 'runner') AND ended_at IS NULL")


@pytest.mark.soak
@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", range(300, 306))
def test_a_long_time_of_kills_and_freezes(plant: Plant, seed: int) -> None:
    _survives(plant, jobs=24, pages=80, seconds=60, seed=seed)
