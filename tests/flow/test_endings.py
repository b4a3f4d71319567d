"""A run says what it is: real crawls of servers that go away, refuse, or never let anything be asked."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pytest

from tests.flow.crawler import Crawler
from tests.flow.plant import Plant
from tests.site import Site

PAGES = 8


class _Server(ThreadingHTTPServer):
    """A small web that can be away: then connections are closed without a word."""

    daemon_threads = True

    def __init__(self, address: str) -> None:
        super().__init__((address, 0), _Page)
        self.asked: Counter[str] = Counter()
        self.goes_after: int | None = None
        """So many pages after which it goes away."""
        self.lock = threading.Lock()

    @property
    def url(self) -> str:
        return f"http://{self.server_address[0]!s}:{self.server_address[1]}/"

    def is_away(self, path: str) -> bool:
        with self.lock:
            away = self.goes_after is not None and self.asked.total() >= self.goes_after
            if not away and path != "/robots.txt":
                self.asked[path] += 1
            return away


class _Page(BaseHTTPRequestHandler):
    server: _Server
    links: ClassVar[str] = "".join(f'<a href="/{number}">{number}</a>' for number in range(PAGES))

    def do_GET(self) -> None:
        if self.server.is_away(self.path):
            self.close_connection = True
            self.connection.close()
            return
        body = b"" if self.path == "/robots.txt" else f"<html><title>{self.path}</title>{self.links}</html>".encode()
        self.send_response(404 if self.path == "/robots.txt" else 200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@contextmanager
def _served(address: str) -> Iterator[_Server]:
    with _Server(address) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def plant(any_crawler: Crawler) -> Iterator[Plant]:
    """An installation on each kind of database; its processes do not outlive the test."""
    made = Plant(any_crawler, {"HOLDFAST_TIMINGS_CRAWL_UNREACHABLE_S": "2", "HOLDFAST_POLITENESS_RETRIES": "1"})
    yield made
    made.end()


def test_a_site_that_was_lost_is_asked_again_for_what_was_given_up_and_for_nothing_else(plant: Plant) -> None:
    with _served("127.0.0.2") as steady, _served("127.0.0.3") as flaky:
        flaky.goes_after = 4
        spec = {"max_retries": 2, "retry_backoff_seconds": 600}
        job_id = plant.job("ex", steady.url, flaky.url, spec=spec, max_depth=-1, sitemaps=False)
        plant.once()
        first, job = plant.executions()[0], plant.a_job(job_id)
        told = json.loads(plant.crawler.run("status", str(first.id), "--json").stdout)

        assert (first.state, first.reason, first.shortfalls) == ("completed", "hosts_given_up", {"hosts_given_up": 1})
        assert (job.state, job.current_retry_count > 0) == ("scheduled", True)
        assert (told["research_ready"], "1 host given up" in told["sentence"]) == (False, True)

        flaky.goes_after = None
        while plant.a_job(job_id).state == "scheduled":
            plant.due(job_id)
            plant.once()

        last = plant.executions()[-1]
        everything = {"/", *(f"/{number}" for number in range(PAGES))}
        assert (last.state, last.reason, last.shortfalls) == ("completed", "done", {})
        assert (last.frontier_id, last.items_crawled) == (first.id, 2 * len(everything))
        assert plant.a_job(job_id).state == "completed"
        for server in (steady, flaky):
            assert set(server.asked) == everything
            assert set(server.asked.values()) == {1}
        report = json.loads(plant.crawler.run("report", str(last.id), "--json").stdout)
        assert (report["outcomes"], report["reason"]) == ({"success": 2 * len(everything)}, "done")
    assert plant.crawler.faults(first.id) == []


def test_a_retry_goes_on_with_the_frontier_although_storage_was_away_at_the_retry_before(plant: Plant) -> None:
    with _served("127.0.0.3") as flaky:
        flaky.goes_after = 4
        spec = {"max_retries": 3, "retry_backoff_seconds": 600}
        job_id = plant.job("ex", flaky.url, spec=spec, max_depth=-1, sitemaps=False)
        plant.once()
        first = plant.executions()[0]
        flaky.goes_after = None
        folder = Path(first.output_dir)
        mounted = folder.rename(folder.with_name("elsewhere"))
        for _ in range(2):
            plant.due(job_id)
            plant.once()
        mounted.rename(folder)
        while plant.a_job(job_id).state == "scheduled":
            plant.due(job_id)
            plant.once()

        runs = plant.executions()
        assert [run.reason for run in runs[:3]] == ["hosts_given_up", "storage", "storage"]
        assert (runs[-1].frontier_id, runs[-1].reason) == (first.id, "done")
        assert set(flaky.asked.values()) == {1}


def test_a_server_that_refuses_every_connection_is_no_success(crawler: Crawler) -> None:
    with Site.start(hosts=1) as site:
        dead = site.url(0)

    said = crawler.run("crawl", dead, "--allow-network", "127.0.0.0/8", "--json")

    result = json.loads(said.stdout.splitlines()[-1])
    assert (said.returncode, result["state"], result["reason"]) == (1, "failed", "no_server")
    assert result["shortfalls"]["no_server"] > 0
    assert crawler.faults() == []


def test_a_site_whose_robots_txt_is_out_of_order_is_no_success(crawler: Crawler, site: Site) -> None:
    site.serve("/robots.txt", "out of order", status=500, host=0)

    said = crawler.run("crawl", site.url(0), "--allow-network", "127.0.0.0/8", "--json")

    result = json.loads(said.stdout.splitlines()[-1])
    assert (said.returncode, result["state"], result["reason"]) == (1, "failed", "no_server")


def test_a_crawl_that_reached_a_limit_says_so_and_exits_well(crawler: Crawler) -> None:
    with Site.plain(hosts=1, pages=30) as site:
        result = crawler.crawl(site.url(0), "--delay", "0.02", "--max-pages", "3")

    assert (result["state"], result["reason"], list(result["shortfalls"])) == ("completed", "max_pages", ["max_pages"])
    assert result["research_ready"] is False
