"""F23 and what a user does: signals, `holdfast stop`, the same command again; and a supervisor that is killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time

from holdfast.warc.manifest import read_manifest
from tests import patience
from tests.flow.crawler import FAST, Crawler
from tests.flow.faults.bed import extra, lost, rows, seeds, settled, until
from tests.site import Site, judge

_DEADLINE_S = float(FAST["HOLDFAST_FETCH_DEADLINE_S"])
_LATE = "/slow/late?after=2"
"""A page that is under way for a while: a stop finds it so."""


def _stop(crawler: Crawler, process: subprocess.Popen[str], *signals: signal.Signals) -> float:
    """Send signals to a supervisor at work, the second while it drains; return how long it took to end well."""
    sent_at = time.monotonic()
    for number in signals:
        os.kill(process.pid, number)
        until(lambda: "draining" in _conditions(crawler) or process.poll() is not None, within_s=5, what="it drains")
    result = crawler.finish(process, timeout_s=30)
    took_s = time.monotonic() - sent_at
    assert result["state"] == "stopped"
    assert rows(crawler, "SELECT count(*) FROM domains WHERE lease_expires_at > 0") == [(0,)]
    return round(took_s, 2)


def _under_way(site: Site) -> list[str]:
    """Return the slow pages that are being asked for."""
    return [f"{entry.host}{entry.path}" for entry in site.log() if entry.end is None and "/slow/" in entry.path]


def _conditions(crawler: Crawler) -> str:
    """Return what the processes at work say; those of an earlier start were draining when they ended."""
    living = "SELECT c.counts FROM execution_counts c JOIN owners o ON o.id = c.owner_id WHERE o.ended_at IS NULL"
    return str(rows(crawler, living))


def test_every_signal_drains_and_the_same_command_resumes_without_asking_twice(crawler: Crawler) -> None:
    with Site.plain(hosts=8, pages=20) as site:
        slow = [site.url(host, f"{_LATE}&n={host}{n}") for host in range(8) for n in range(2)]
        crawl = [*seeds(site), *slow, "--delay", "0.1", "--no-sitemaps"]
        took: list[float] = []
        process = crawler.start(*crawl)
        until(lambda: len(_under_way(site)) > 3, within_s=30, what="requests under way")
        took.append(_stop(crawler, process, signal.SIGTERM))
        again_after_drain = extra(site)

        process = crawler.start(*crawl)
        until(lambda: len(_under_way(site)) > 3, within_s=30, what="requests under way again")
        took.append(_stop(crawler, process, signal.SIGTERM, signal.SIGTERM))
        dropped = sum(entry.aborted for entry in site.settled())
        assert crawler.faults() == []

        for number in (signal.SIGINT, signal.SIGHUP):
            before = settled(crawler)
            process = crawler.start(*crawl)
            until(lambda before=before: settled(crawler) > before + 10, within_s=30, what="some pages")  # type: ignore[misc]
            took.append(_stop(crawler, process, number))
        last = crawler.crawl(*crawl)
        missing, again, log = lost(crawler, site), extra(site), site.settled()
    print(f"ended in {took} s; {dropped} requests dropped by the second signal, {again} pages asked again")

    assert max(took) <= _DEADLINE_S + patience.allowed(2)
    assert took[1] <= patience.allowed(2)
    assert last["state"] == "completed"
    assert missing == []
    assert again_after_drain == 0
    assert 0 < dropped <= 8
    assert again <= dropped
    assert judge(log, delay_s=0.1) == []
    assert crawler.faults() == []


def test_stop_keeps_what_was_captured_and_cancel_discards_it(crawler: Crawler) -> None:
    with Site.plain(hosts=4, pages=200) as site:
        crawl = [*seeds(site), "--delay", "0.1"]
        process = crawler.start(*crawl)
        until(lambda: settled(crawler) > 5, within_s=20, what="some pages settled")

        twice = crawler.run("crawl", *crawl, "--allow-network", "127.0.0.0/8")
        stopped = crawler.run("stop", "--json")
        result = crawler.finish(process)
        kept = crawler.warcs()

        assert (twice.returncode, stopped.returncode) == (1, 0)
        assert "crawls these seeds already" in twice.stderr
        assert json.loads(stopped.stdout) == {"executions": {"1": "stopped"}}
        assert result["state"] == "stopped"
        assert kept
        assert crawler.faults() == []

        process = crawler.start(*crawl, "--resume")
        until(lambda: settled(crawler) > result["pages"] + 5, within_s=20, what="more pages settled")
        cancelled = crawler.run("stop", "--cancel")
        result = crawler.finish(process)
        nothing = crawler.run("crawl", *crawl, "--allow-network", "127.0.0.0/8", "--resume")

    assert cancelled.returncode == 0
    assert (result["resumed"], result["state"], result["queue"]) == (True, "cancelled", 0)
    assert crawler.warcs() == []
    assert read_manifest(kept[0].parent) == {}
    assert (nothing.returncode, "nothing to resume" in nothing.stderr) == (1, True)
    assert crawler.faults() == []


def test_processes_whose_supervisor_is_killed_hand_back_and_the_same_command_resumes_at_once(crawler: Crawler) -> None:
    with Site.plain(hosts=8, pages=24) as site:
        crawl = [*seeds(site), "--delay", "0.1", "--workers", "2"]
        process = crawler.start(*crawl)
        until(lambda: settled(crawler) > 20, within_s=20, what="some pages settled")
        orphans = crawler.processes()
        process.kill()
        process.communicate()
        asked = len(site.log())
        killed_at = time.monotonic()
        again = crawler.start(*crawl)
        until(lambda: not set(orphans) & set(crawler.processes()), within_s=10, what="the orphans' end")
        gone_s = time.monotonic() - killed_at
        result = crawler.finish(again)
        log = site.settled()
        missing, repeated = lost(crawler, site), extra(site)
        resumed_s = log[asked].start - killed_at
    print(f"orphans gone after {gone_s:.1f} s, first request after {resumed_s:.1f} s, {repeated} asked again")

    assert len(orphans) == 2
    assert gone_s < patience.allowed(5)
    assert result["resumed"] is True
    assert result["state"] == "completed"
    assert missing == []
    assert repeated <= 8
    assert judge(log, delay_s=0.1) == []
    assert crawler.faults() == []


def test_a_limit_of_time_holds_over_a_supervisor_that_was_killed(crawler: Crawler) -> None:
    with Site.plain(hosts=2, pages=200) as site:
        crawl = [*seeds(site), "--delay", "0.5", "--no-sitemaps"]
        process = crawler.start(*crawl)
        until(lambda: len(site.log()) > 2, within_s=30, what="requests")
        until(lambda: rows(crawler, "SELECT 1 FROM executions WHERE run_seconds > 1.5") != [], within_s=30, what="time")
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
        until(lambda: not crawler.processes(), within_s=30, what="its processes end")
        before = len(site.settled())
        told = crawler.run("status").stdout

        result = crawler.crawl(*crawl, "--max-time", "1s")
        asked = len(site.settled()) - before

    assert (result["resumed"], result["reason"], asked) == (True, "max_time", 0)
    assert result["seconds"] > 1.5
    assert "no process works on it: the same crawl command resumes it" in told
