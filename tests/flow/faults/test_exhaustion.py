"""What runs out: descriptors of a crawl and of the server, and the patience of whoever reads a log."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import httpx
import pytest

from tests import needs, patience
from tests.archive import Shot, build_archive
from tests.flow.crawler import Crawler
from tests.flow.faults.bed import lost, rows, seeds, until
from tests.site import Site
from tests.site.book import html, links

_FEW = ("prlimit", "--nofile=64:64")
_HOSTS = 150


@pytest.fixture(autouse=True)
def _limits() -> None:
    needs.program("prlimit")


def test_a_crawl_with_few_descriptors_asks_many_hosts_in_turn_and_blames_none(crawler: Crawler) -> None:
    with Site.plain(hosts=_HOSTS, pages=2) as site:
        command = crawler.command("crawl", *seeds(site), "--workers", "1", "--delay", "0", "--no-sitemaps", "--json")
        process = subprocess.Popen(
            [*_FEW, *command, "--allow-network", "127.0.0.0/8"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True, env=crawler.variables, start_new_session=True,
        )  # fmt: skip
        result = crawler.finish(process)
        missing = lost(crawler, site)

    assert (result["state"], result["outcomes"]) == ("completed", {"success": 2 * _HOSTS})
    assert missing == []
    assert rows(crawler, "SELECT count(*) FROM owners WHERE kind = 'process'") == [(1,)], "no process was replaced"
    assert crawler.faults() == []


@pytest.fixture
def port(tmp_path: Path) -> Iterator[int]:
    """The port of a server that may hold 64 descriptors."""
    build_archive(tmp_path, [Shot(url="https://example.org/")]).database.close()
    variables = {**os.environ, "HOLDFAST_API_RATE_LIMITING": "false", "HOLDFAST_TIMINGS_SERVER_HEAD_S": "60"}
    command = [*_FEW, sys.executable, "-m", "holdfast.cli.main", "api", "--port", "0", "--home", str(tmp_path)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=variables)
    assert process.stdout is not None
    try:
        yield int(process.stdout.readline().rpartition(":")[2])
        process.terminate()
        assert process.wait(patience.deadline(60)) == 0
    finally:
        process.kill()
        process.communicate()


def test_a_server_whose_descriptors_are_taken_by_idle_clients_goes_on_when_they_are_gone(port: int) -> None:
    def answered() -> bool:
        try:
            return (
                httpx.get(f"http://127.0.0.1:{port}/api/search?q=words", timeout=patience.deadline(20)).status_code
                == 200
            )
        except httpx.HTTPError:
            return False

    until(answered, within_s=20, what="its first index is made")
    with ExitStack() as stack:

        def starved() -> bool:
            # Again and again: what it had open while the first ones came (it drains its index) is free again later.
            for _ in range(200):
                idle = socket.create_connection(("127.0.0.1", port), timeout=patience.deadline(20))
                stack.enter_context(closing(idle))
            return not answered()

        until(starved, within_s=20, what="there is no descriptor left")
    until(answered, within_s=20, what="it answers as before")


def test_a_site_that_fails_for_hundreds_of_pages_leaves_no_line_a_page_in_the_log(crawler: Crawler) -> None:
    crawler.environment["HOLDFAST_LOG_LEVEL"] = "INFO"
    paths = [f"/bad/{n}" for n in range(300)]
    with Site.start(hosts=1, pages=1) as site:
        site.serve("/start", html("start", links(paths)))
        result = crawler.crawl(site.url(0, "/start"), "--delay", "0", "--no-sitemaps")

    assert result["outcomes"]["blocked_4xx"] == 300
    assert "/bad/" not in crawler.log()
    assert crawler.log().count("\n") < 30
