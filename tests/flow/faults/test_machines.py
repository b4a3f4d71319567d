"""Several machines, and machines whose names change: who is dead is known by the lock, and nobody ends what lives."""

from __future__ import annotations

import os
import signal
from contextlib import closing
from pathlib import Path

import pytest

from tests import patience
from tests.flow.crawler import Crawler
from tests.flow.faults.bed import extra, lost, rows, seeds, settled, settled_twice, until
from tests.site import Site, judge


def _rename(crawler: Crawler, *, is_elsewhere: bool = False) -> None:
    """Have every process been started under another host name; `is_elsewhere` hides their run files, too."""
    with closing(crawler.raw_db()) as raw_db, raw_db.write() as tx:
        tx.execute("UPDATE owners SET host = 'replaced-container' WHERE ended_at IS NULL")
        if is_elsewhere:
            tx.execute("UPDATE owners SET run_file = '/elsewhere/' || id || '.run' WHERE ended_at IS NULL")


def test_a_host_name_that_changes_between_two_starts_loses_no_page(any_crawler: Crawler) -> None:
    crawler = any_crawler
    with Site.plain(hosts=8, pages=12) as site:
        crawl = [*seeds(site), "--delay", "0.1", "--workers", "2"]
        process = crawler.start(*crawl)
        until(lambda: settled(crawler) > 20, within_s=30, what="some pages settled")
        victims = [process.pid, *crawler.processes()]
        for pid in victims:
            os.kill(pid, signal.SIGKILL)
        process.communicate()
        until(lambda: not crawler.processes(), within_s=10, what="all dead")
        _rename(crawler)

        result = crawler.crawl(*crawl)

        log = site.settled()
        missing, twice = lost(crawler, site), extra(site)

    assert (result["state"], result["resumed"], result["recovered"]["processes"]) == ("completed", True, 3)
    assert missing == []
    assert twice <= 2 * 8 * 2
    assert settled_twice(crawler) == 0
    assert judge(log, delay_s=0.1) == []
    assert crawler.faults() == []


@pytest.mark.postgres
@pytest.mark.parametrize("cancel", [False, True])
def test_stop_from_a_second_machine_leaves_the_end_to_the_first(
    crawler: Crawler, postgres_url: str, tmp_path: Path, *, cancel: bool
) -> None:
    crawler.database_url = postgres_url
    there = Crawler(tmp_path / "second", database_url=postgres_url)
    with Site.plain(hosts=4, pages=200) as site:
        process = crawler.start(*seeds(site), "--delay", "0.1")
        until(lambda: settled(crawler) > 5, within_s=30, what="some pages settled")
        _rename(crawler, is_elsewhere=True)
        os.kill(process.pid, signal.SIGSTOP)  # it hears nothing: so whoever ends it is the other machine
        option = ["--cancel"] if cancel else []

        early = there.run("stop", *option, "--wait", "0")
        state, kept = rows(crawler, "SELECT state FROM executions"), rows(crawler, "SELECT count(*) FROM warc_files")
        os.kill(process.pid, signal.SIGCONT)
        result = crawler.finish(process)

    assert (early.returncode, "replaced-container" in early.stderr) == (1, True), early.stderr
    assert (state, kept[0][0] > 0) == ([("running",)], True)
    assert result["state"] == ("cancelled" if cancel else "stopped")
    assert bool(crawler.warcs()) is not cancel
    assert crawler.faults() == []


def test_a_crawl_that_stood_still_while_another_machine_took_its_place_hands_back(
    crawler: Crawler, postgres_url: str, tmp_path: Path
) -> None:
    crawler.database_url = postgres_url
    there = Crawler(tmp_path / "second", database_url=postgres_url)
    with Site.start(4, pages=20) as site:
        crawl = [*seeds(site), "--delay", "0.2"]
        first = crawler.start(*crawl)
        until(lambda: settled(crawler) > 5, within_s=30, what="some pages settled")
        _rename(crawler, is_elsewhere=True)
        frozen = [first.pid, *crawler.processes()]
        for pid in frozen:
            os.kill(pid, signal.SIGSTOP)
        with closing(crawler.raw_db()) as raw_db, raw_db.write() as tx:
            tx.execute("UPDATE owners SET heartbeat_at = heartbeat_at - 3600000000 WHERE ended_at IS NULL")
        second = there.start(*crawl)
        until(lambda: _processes_beside(crawler) > 0, within_s=60, what="the second machine works")
        for pid in frozen:
            os.kill(pid, signal.SIGCONT)
        _, told = first.communicate(timeout=patience.deadline(60))
        state = rows(crawler, "SELECT state FROM executions")
        result = there.finish(second)
        log = site.settled()

    assert "taken up or ended by another process while this one stood still" in told
    # What the second made of it, which may be over by now; the first has ended nothing.
    assert state in ([("running",)], [("completed",)])
    assert (result["state"], result["resumed"], result["queue"]) == ("completed", True, 0)
    assert settled_twice(crawler) == 0
    assert judge(log, delay_s=0.2) == []


def _processes_beside(crawler: Crawler) -> int:
    """Return how many crawl processes work that were not renamed."""
    found = rows(
        crawler,
        "SELECT count(*) FROM owners WHERE kind = 'process' AND ended_at IS NULL AND host <> 'replaced-container'",
    )
    return int(found[0][0])
