"""A run that is paused: its site is asked for nothing, whoever holds it, until it is resumed; and it can be stopped."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from contextlib import closing

import pytest

from holdfast.clock import SystemClock
from holdfast.jobs.administration.run_pausing import pause_run, resume_run
from holdfast.jobs.views.status import read_status
from tests import patience
from tests.flow.crawler import Crawler, fetched
from tests.flow.faults.bed import grown, rows, until
from tests.flow.plant import Plant
from tests.site import Site, judge

_HEARD_S = 0.8
"""Beyond the half second in which a process hears of it."""
_QUIET_S = 1.0


@pytest.fixture
def any_plant(any_crawler: Crawler) -> Iterator[Plant]:
    """An installation on each kind of database; its processes do not outlive the test."""
    made = Plant(any_crawler)
    yield made
    made.end()


@pytest.fixture
def plant(crawler: Crawler) -> Iterator[Plant]:
    """The same on SQLite."""
    made = Plant(crawler)
    yield made
    made.end()


def _pause(plant: Plant) -> None:
    with plant.jobs() as jobs, jobs.database.write() as session:
        assert pause_run(session, jobs.clock, 1).is_changed


def _resume(plant: Plant) -> None:
    with plant.jobs() as jobs, jobs.database.write() as session:
        assert resume_run(session, jobs.clock, 1).is_changed


def _rests(site: Site) -> int:
    """Wait until the site is asked no more, see that it stays so for a while, and return how often it was asked."""
    before, deadline = -1, time.monotonic() + patience.deadline(10)
    while (now := len(site.log())) != before:
        assert time.monotonic() < deadline, "it is still asked"
        before = now
        time.sleep(_HEARD_S)
    time.sleep(_QUIET_S)
    assert len(site.log()) == now
    return now


def test_a_paused_crawl_gives_its_hosts_back_asks_nothing_and_its_time_stands_still(plant: Plant) -> None:
    crawler = plant.crawler
    # So many pages that it is not over before it is paused, however busy the machine is.
    with Site.plain(hosts=2, pages=400) as site:
        limit = ("--max-time", "600s")
        process = crawler.start(site.url(0), site.url(1), "--delay", "0.1", "--workers", "2", *limit)
        until(lambda: len(site.log()) > 6, within_s=30, what="six requests")
        _pause(plant)
        paused_at = time.monotonic()
        asked = _rests(site)
        with closing(crawler.raw_db()) as raw_db:
            waits = read_status(raw_db, SystemClock(), 1)
        held = rows(crawler, "SELECT count(*) FROM domains WHERE lease_expires_at > 0")
        paused_s = time.monotonic() - paused_at
        _resume(plant)
        grown(site, by=5)
        os.kill(process.pid, signal.SIGINT)
        crawler.finish(process)
        log = site.settled()

    assert (waits.state, waits.condition, waits.active_domains) == ("running", "paused", 0)
    assert (waits.queue > 0, waits.paused_by is not None, waits.slow) == (True, True, [])
    assert held == [(0,)], "another crawl may ask these hosts meanwhile"
    counts = fetched(log)
    assert (len(log) > asked, counts.total()) == (True, len(counts)), "nothing was asked for twice"
    assert judge(log, delay_s=0.1) == []
    [row] = rows(
        crawler, "SELECT state, paused_at, paused_seconds, run_seconds, finished_at - started_at FROM executions"
    )
    assert row[:2] == ("stopped", None)
    # What it was paused for is no time at work; its supervisor looks twice a second.
    assert row[2] >= paused_s - 0.1
    assert row[3] <= row[4] / 1e6 - paused_s + patience.allowed(1.0)
    assert crawler.faults() == []


def test_a_paused_run_stays_paused_under_the_next_worker_and_can_be_stopped(any_plant: Plant) -> None:
    crawler = any_plant.crawler
    with Site.plain(hosts=1, pages=400) as site:
        job_id = any_plant.job("ex", site.url(0), max_depth=-1, delay_s=0.1)
        worker = any_plant.worker()
        until(lambda: len(site.log()) > 5, within_s=30, what="five requests")
        _pause(any_plant)
        asked = _rests(site)
        assert worker.pid is not None
        os.kill(worker.pid, signal.SIGKILL)  # its process hands back by itself
        worker.join()
        any_plant.worker()
        until(lambda: rows(crawler, "SELECT count(*) FROM holds") == [(2,)], within_s=30, what="another holder")
        until(crawler.processes, within_s=30, what="its process")
        assert _rests(site) == asked
        [run] = any_plant.executions()
        assert (run.state, run.paused_at is not None, run.takeovers) == ("running", True, 0)
        _resume(any_plant)
        grown(site, by=3)
        _pause(any_plant)
        asked = _rests(site)
        stopped = crawler.run("stop", "1")
        assert len(site.log()) == asked

    assert (stopped.returncode, stopped.stdout.strip()) == (0, "execution 1: completed")
    [run] = any_plant.executions()
    assert (run.reason, run.paused_at, run.paused_by) == ("stopped", None, None)
    assert run.paused_seconds > 2 * _QUIET_S
    assert run.run_seconds < (run.duration_ms or 0) / 1000 - 2 * _QUIET_S
    assert any_plant.a_job(job_id).state == "completed"


def test_a_worker_that_is_told_to_end_hands_a_paused_run_back_and_nothing_is_asked_again(plant: Plant) -> None:
    with Site.plain(hosts=1, pages=40) as site:
        plant.job("ex", site.url(0), max_depth=-1, delay_s=0.15)
        worker = plant.worker()
        until(lambda: len(site.log()) > 2, within_s=30, what="two requests")
        _pause(plant)
        asked = _rests(site)
        worker.terminate()
        worker.join(patience.deadline(30))
        assert worker.exitcode == 0
        [run] = plant.executions()
        assert (run.state, run.paused_at is not None) == ("queued", True)
        _resume(plant)  # between two workers
        plant.once()
        counts = fetched(site.settled())

    assert (asked < 40, counts.total()) == (True, len(counts))
    [run] = plant.executions()
    assert (run.state, run.reason, run.items_crawled) == ("completed", "done", 40)
    assert plant.crawler.faults() == []
