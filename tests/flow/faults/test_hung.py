"""Work that hangs, a page that kills, and a database that is locked or whose answers get lost."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from tests import patience
from tests.flow.crawler import Crawler, fetched
from tests.flow.faults.bed import arm, disarmed, extra, lost, rows, seeds, settled, settled_twice, until
from tests.site import Site, judge


def _events(told: str, name: str) -> int:
    return told.count(f'"event": "{name}"')


def test_a_process_whose_loop_hangs_is_killed_by_its_supervisor_and_replaced(crawler: Crawler, tmp_path: Path) -> None:
    tokens = arm(tmp_path / "tokens")
    with Site.plain(hosts=6, pages=12) as site:
        process = crawler.start(
            *seeds(site), "--delay", "0.1", HOLDFAST_FAILPOINT=f"loop:sleep:0:{tokens}",
            HOLDFAST_TIMINGS_CRAWL_WATCHDOG_S="1",
        )  # fmt: skip
        until(lambda: settled(crawler) > 5, within_s=20, what="some pages")
        hung = crawler.processes()
        arm(tokens, "loop")
        until(lambda: disarmed(tokens), within_s=5, what="a hung loop")
        until(lambda: not set(hung) & set(crawler.processes()), within_s=1 + 2, what="the end of the hung process")
        crawler.finish(process)
        missing, again = lost(crawler, site), extra(site)

    assert missing == []
    assert again <= 6 * 2
    assert crawler.faults() == []


def test_a_page_whose_parser_hangs_is_closed_and_its_process_replaced(crawler: Crawler, tmp_path: Path) -> None:
    tokens = arm(tmp_path / "tokens", "parse")
    with Site.plain(hosts=6, pages=12) as site:
        process = crawler.start(
            *seeds(site), "--delay", "0.1", HOLDFAST_FAILPOINT=f"parse@{site.hosts[0]}:hang:2:{tokens}",
            HOLDFAST_TIMINGS_CRAWL_PARSE_S="0.5",
        )  # fmt: skip
        crawler.finish(process)
        found, again = crawler.outcomes(), extra(site)
    hung = [url for url, outcome in found.items() if outcome == ("success", "parse_timeout")]
    processes = rows(crawler, "SELECT count(*) FROM owners WHERE kind = 'process'")[0][0]

    assert disarmed(tokens)
    assert len(hung) == 1
    assert site.hosts[0] in hung[0]
    assert processes == 2
    assert _events(crawler.log(), "crawl.process_died") == 0
    assert again == 0  # nobody died: what was under way was settled before the process ended
    assert crawler.faults() == []


def test_a_page_that_kills_every_process_is_quarantined_and_the_rest_is_captured(crawler: Crawler) -> None:
    with Site.plain(hosts=6, pages=12) as site:
        poison = site.url(1, "/a/p11.html?poison=1")
        process = crawler.start(
            *seeds(site), poison, "--delay", "0.1", "--workers", "2", HOLDFAST_FAILPOINT="parse@poison:crash",
        )  # fmt: skip
        _, told = process.communicate(timeout=patience.deadline(60))
        missing, asked = lost(crawler, site), fetched(site.log())

    assert process.returncode == 0, told
    assert _events(told, "crawl.process_died") == 3
    assert asked[poison.removeprefix("http://").replace(f":{site.port}", "")] == 3
    assert missing == []
    assert crawler.outcomes()[poison] == ("failed", "quarantined")
    found = rows(crawler, "SELECT crashes, message FROM page_crawls WHERE reason = 'quarantined'")
    assert [crashes for crashes, _ in found] == [3]
    assert "died while parsing this page" in found[0][1]
    assert crawler.faults() == []


def test_answers_of_the_database_that_get_lost_cost_nothing(crawler: Crawler, tmp_path: Path) -> None:
    places = ("after_commit", "after_lease", "after_release")
    tokens = arm(tmp_path / "tokens", *places, times=4)
    with Site.plain(hosts=8, pages=12) as site:
        process = crawler.start(
            *seeds(site), "--delay", "0.1", "--workers", "2",
            HOLDFAST_FAILPOINT=",".join(f"{place}:lose:0:{tokens}" for place in places),
        )  # fmt: skip
        crawler.finish(process)
        missing, again = lost(crawler, site), extra(site)

    assert disarmed(tokens), sorted(tokens.iterdir())
    assert missing == []
    assert again == 0
    assert settled_twice(crawler) == 0
    assert crawler.faults() == []


def test_a_database_that_is_locked_and_read_for_longer_than_a_lease_costs_no_page(crawler: Crawler) -> None:
    with Site.plain(hosts=6, pages=24) as site:
        process = crawler.start(*seeds(site), "--delay", "0.05", "--no-sitemaps", "--workers", "2")
        until(lambda: settled(crawler) > 10, within_s=30, what="some pages")
        path = crawler.home / "holdfast.db"
        with (
            closing(sqlite3.connect(path, isolation_level=None)) as reader,
            closing(sqlite3.connect(path, isolation_level=None, timeout=60)) as writer,
        ):
            reader.execute("BEGIN")
            reader.execute("SELECT count(*) FROM pages").fetchall()
            writer.execute("BEGIN IMMEDIATE")
            until(lambda: _events(crawler.log(), "crawl.lease_expires"), within_s=30, what="a lease runs out meanwhile")
            writer.execute("ROLLBACK")
            result = crawler.finish(process)
        missing, log = lost(crawler, site), site.settled()

    assert result["state"] == "completed"
    assert missing == []
    assert settled_twice(crawler) == 0
    assert judge(log, delay_s=0.05) == []
    assert crawler.faults() == []
