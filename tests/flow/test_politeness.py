"""F20: one open request per domain and never two starts too close, by the site's own log; restarts change nothing."""

from __future__ import annotations

import os
import random
import signal
import subprocess

import pytest

from tests.flow.crawler import Crawler
from tests.flow.faults.bed import rows, until
from tests.site import Site, judge

_RESTING = "SELECT count(*) FROM domains WHERE next_allowed_at > 1000000 * (strftime('%s', 'now') + 2)"
_PATIENT = {3: "delay", 11: "delay"}
"""Hosts whose robots.txt asks for two seconds."""


def _kill_all(crawler: Crawler, process: subprocess.Popen[str]) -> None:
    """Kill the supervisor and every process of a crawl without a word."""
    process.kill()
    for pid in crawler.processes():
        os.kill(pid, signal.SIGKILL)
    process.communicate()
    until(lambda: not crawler.processes(), within_s=5, what="the processes are gone")


def test_thirty_rough_hosts_are_asked_politely_by_three_processes_through_kills_and_restarts(crawler: Crawler) -> None:
    """At the default delay of a second, with 503 and Retry-After and with redirects between hosts."""
    chance = random.Random(20)
    with Site.plain(hosts=30, pages=6, rough=True) as site:
        command = [*(site.url(host) for host in range(30)), "--workers", "3"]
        process = crawler.start(*command)
        until(lambda: len(site.log()) >= 70, within_s=30, what="70 requests")
        os.kill(chance.choice(crawler.processes()), signal.SIGKILL)
        until(lambda: len(site.log()) >= 120, within_s=30, what="120 requests")
        _kill_all(crawler, process)
        result = crawler.crawl(*command, timeout_s=90)
        log = site.settled()

    assert judge(log, delay_s=1.0) == []
    assert result["resumed"] is True
    assert sum(entry.retry_after is not None for entry in log) >= 28, "the rough site asked us to stay away"
    paths = {entry.path for entry in log}
    assert {"/robots.txt", "/sitemap.xml", "/redirect/other-host"} <= paths, "they count like pages"
    captured = {url for url, (outcome, _) in crawler.outcomes().items() if outcome == "success"}
    assert captured >= set(site.urls())
    assert crawler.faults() == []


def test_a_moment_that_a_server_named_and_a_delay_that_it_asked_for_outlive_a_kill(crawler: Crawler) -> None:
    """One host asks for five seconds with a 503, the other for two between requests, in its robots.txt."""
    with Site.start(hosts=2, pages=6, robots={1: "delay"}) as site:
        seeds = [site.url(0, "/status/503?times=1&after=5"), site.url(0, "/a/p1.html")]
        command = [*seeds, *(site.url(1, f"/a/p{n}.html") for n in (1, 2)), "--scope", "page", "--delay", "0"]
        process = crawler.start(*command)
        until(lambda: any(entry.retry_after for entry in site.log()), within_s=20, what="the server asks for time")
        until(lambda: rows(crawler, _RESTING) != [(0,)], within_s=2, what="that is written down")
        until(lambda: sum(e.host == site.hosts[1] for e in site.log()) >= 2, within_s=10, what="a page of the other")
        _kill_all(crawler, process)
        result = crawler.crawl(*command)
        log = site.settled()

    assert judge(log, delay_s=0.0, delays={site.hosts[1]: 2.0}) == []
    assert result["resumed"] is True
    assert set(crawler.outcomes().values()) == {("success", "ok")}
    assert crawler.faults() == []


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(2))
def test_many_kills_never_cost_politeness(crawler: Crawler, seed: int) -> None:
    chance = random.Random(seed)
    with Site.start(hosts=30, pages=20, rough=True, robots=_PATIENT, process=True) as site:
        command = [*(site.url(host) for host in range(30)), "--workers", "4", "--delay", "0.3"]
        process = crawler.start(*command)
        for _ in range(10):
            if not _progresses(site, process, chance.randrange(20, 80)):
                break
            if chance.random() < 0.3:
                _kill_all(crawler, process)
                process = crawler.start(*command)
            else:
                os.kill(chance.choice(until(crawler.processes, within_s=20, what="a victim")), signal.SIGKILL)
        crawler.finish(process, timeout_s=300)
        log = site.settled()

    patient = {site.hosts[host]: 2.0 for host in _PATIENT}
    assert judge(log, delay_s=0.3, delays=patient) == [], f"seed {seed}"
    assert crawler.faults() == []


def _progresses(site: Site, process: subprocess.Popen[str], requests: int) -> bool:
    """Wait for so many more requests; False if the crawl ends before."""
    goal = len(site.log()) + requests
    until(lambda: len(site.log()) >= goal or process.poll() is not None, within_s=60, what="progress")
    return process.poll() is None
