"""`holdfast explain` after a real crawl: what came of each address and why, the same by command and over HTTP."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from holdfast import config
from holdfast.clock import SystemClock
from holdfast.db.engine import Database
from holdfast.wiring.archive import Archive
from tests.client import asking
from tests.flow.commands import Terminal
from tests.flow.crawler import Crawler
from tests.site import Site


def test_what_a_crawl_did_is_explained_by_command_and_route_alike(
    crawler: Crawler, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOLDFAST_ALLOW_NETWORKS", "127.0.0.0/8")
    monkeypatch.setenv("HOLDFAST_CONTACT", "tests@example.org")
    with Site.start(hosts=1) as site:
        site.serve("/robots.txt", "User-agent: *\nDisallow: /secret\n", media="text/plain")
        site.serve("/", "<title>Start</title><a href='/a?utm_source=x'>a</a><a href='/secret'>no</a>")
        site.serve("/a", "<title>A</title><p>Some words.</p>")
        start, page, secret = site.url(0, "/"), site.url(0, "/a"), site.url(0, "/secret")
        crawler.crawl(start, "--delay", "0.05")
        terminal = Terminal(crawler.home, capsys)
        terminal.type("index")
        asked = terminal.type("explain", f"{page}?utm_medium=y#top", "--json")
        assert asked.code == 0, asked.err
        told = asked.object
        forbidden = terminal.type("explain", secret)
        settings = config.load(home=crawler.home)
        database = Database(settings.database)
        try:
            with asking(Archive(settings=settings, database=database, clock=SystemClock())) as client:
                routed = client.get("/api/explain", params={"url": f"{page}?utm_medium=y#top"}).json()
        finally:
            database.close()
        live = terminal.type("explain", secret, "--live", "--json").object

    (attempt,) = told["attempts"]["items"]
    assert (attempt["outcome"], attempt["status"], attempt["foundOn"]) == ("success", 200, start)
    assert attempt["record"]["snapshot"] == told["snapshots"]["items"][0]["id"]
    assert attempt["record"]["recordId"] == told["snapshots"]["items"][0]["recordId"]
    assert [step["step"] for step in told["address"]["steps"]] == ["fragment", "tracking"]
    assert told["sources"]["inScope"][0]["rule"] == "scope:host"
    assert (told["robots"]["known"], told["robots"]["allowed"], told["robots"]["live"]) == ("rules", True, False)
    assert told["outlook"]["next"]["kind"] == "never"
    assert json.dumps({**routed, "at": None}) == json.dumps({**told, "at": None})
    assert (forbidden.code, "robots.txt forbids it, by line 2, Disallow: /secret" in forbidden.out) == (0, True)
    assert "blocked_robots" in forbidden.out
    assert (live["robots"]["live"], live["robots"]["line"]) == (True, 2)
