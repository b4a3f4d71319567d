"""Redirects: each hop a record, none that leads astray, and a seed's landing place for every process."""

from __future__ import annotations

import json
import os
import signal
from dataclasses import dataclass

import pytest

from tests.flow.crawler import Crawler, fetched
from tests.flow.faults.bed import rows, until
from tests.flow.records import Stored, captures
from tests.site import Site, judge
from tests.site.book import html, links
from tests.site.log import Entry
from tests.site.pages import GROUPS
from tests.site.wire import Exchange


@dataclass
class World:
    """A crawl of all redirects from one page, on the first of three hosts."""

    outcomes: dict[str, tuple[str, str]]
    landed: dict[str, str | None]
    kept: dict[str, list[Stored]]
    left_out: dict[tuple[str, str], int]
    log: list[Entry]
    port: int
    faults: list[str]

    def url(self, name: str) -> str:
        return f"http://127.0.0.2:{self.port}/redirect/{name}"


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    crawler = Crawler(tmp_path_factory.mktemp("redirects") / "home")
    with Site.start(hosts=3, robots={0: "private"}) as site:
        names = [name for name in GROUPS["redirect"].pages if name != "tour"]
        own = ["/to-private", "/wander/1", "/to-seed"]
        site.serve("/start", html("start", links([f"/redirect/{name}" for name in names] + own)))
        site.serve("/to-private", "", status=302, headers=[("Location", "/private/x")])
        site.serve("/to-seed", "", status=302, headers=[("Location", "/start")])
        for step in range(1, 12):
            onward = site.url(step % 2, f"/wander/{step + 1}")
            site.serve(f"/wander/{step}", "", status=302, headers=[("Location", onward)])
        crawler.crawl(site.url(0, "/start"), site.url(1, "/a/p1.html"), "--delay", "0", "--depth", "1", "--no-sitemaps")
        log = site.settled()
    rows = [json.loads(line) for line in crawler.run("report", "--urls").stdout.splitlines()]
    report = json.loads(crawler.run("report", "--json").stdout)
    return World(
        outcomes=crawler.outcomes(), landed={row["url"]: row["redirected_to"] for row in rows},
        kept=captures(crawler.warcs()), log=log, port=site.port, faults=crawler.faults(),
        left_out={(row["rule"], row["host"]): row["count"] for row in report["excluded"]},
    )  # fmt: skip


@pytest.mark.parametrize("name", ["code", "slash", "relative", "fragment", "spaces"])
def test_a_redirect_inside_the_domain_is_followed_and_each_hop_is_a_record(world: World, name: str) -> None:
    url = world.url(name)
    target = world.landed[url]

    assert world.outcomes[url] == ("success", "ok")
    assert target is not None
    assert world.kept[url][0].status in (301, 302)
    assert world.kept[target][0].status == 200


@pytest.mark.parametrize("name", ["loop", "ping", "pong", "endless", "hops", "query-only"])
def test_loops_and_long_chains_end_after_five_hops_and_are_not_taken_up_again(world: World, name: str) -> None:
    asked = [entry.path for entry in world.log if entry.path.split("?")[0].split("/")[2:3] == [name]]

    assert world.outcomes[world.url(name)] == ("failed", "too_many_redirects")
    assert [url for url in world.outcomes if url.startswith((world.url(f"{name}/"), world.url(f"{name}?")))] == []
    assert len(asked) <= 12, "ping and pong are two pages that ask each other"


_REFUSED = [
    "file",
    "ftp",
    "gopher",
    "data",
    "javascript",
    "userinfo",
    "backslash",
    "nonsense",
    "long",
    "port",
    "loopback",
]


@pytest.mark.parametrize("name", _REFUSED)
def test_a_target_that_is_no_web_address_is_refused_and_the_hop_is_kept(world: World, name: str) -> None:
    assert world.outcomes[world.url(name)] == ("excluded", "redirect_refused")
    assert world.kept[world.url(name)][0].status == 302


@pytest.mark.parametrize(
    ("name", "host"), [("metadata", "169.254.169.254"), ("private", "10.0.0.1"), ("ipv6-loopback", "[::1]"),
                       ("mapped", "[::ffff:7f00:1]"), ("decimal", "127.0.0.1")],
)  # fmt: skip
def test_a_target_in_an_inner_network_is_left_out_and_counted(world: World, name: str, host: str) -> None:
    assert world.outcomes[world.url(name)] == ("success", "redirected")
    assert ("scope:host", host) in world.left_out
    assert not [url for url in world.outcomes if f"//{host}" in url]


def test_nobody_was_dialled_but_the_hosts_of_the_crawl(world: World) -> None:
    assert {entry.host for entry in world.log} == {"127.0.0.2", "127.0.0.3"}


def test_a_hop_to_another_domain_ends_the_attempt_and_is_asked_under_that_domain(world: World) -> None:
    target = f"http://127.0.0.3:{world.port}/"

    assert world.outcomes[world.url("other-host")] == ("success", "redirected")
    assert world.landed[world.url("other-host")] == target
    assert world.outcomes[target] == ("success", "ok")


def test_a_chain_that_wanders_between_two_domains_ends(world: World) -> None:
    asked = [entry.path for entry in world.log if entry.path.startswith("/wander/")]

    assert asked == [f"/wander/{n}" for n in range(1, 7)]
    last = next(url for url in world.outcomes if url.endswith("/wander/6"))
    assert world.outcomes[last] == ("failed", "too_many_redirects")


def test_robots_rules_hold_for_the_target_of_a_redirect(world: World) -> None:
    url = f"http://127.0.0.2:{world.port}/to-private"

    assert world.outcomes[url] == ("blocked_robots", "redirect_robots:line 2")
    assert url in world.kept
    assert "/private/x" not in {entry.path for entry in world.log}


def test_answers_that_only_look_like_redirects_stay_where_they_are(world: World) -> None:
    assert world.outcomes[world.url("nowhere")] == ("failed", "redirect_without_location")
    assert world.outcomes[world.url("empty")] == ("failed", "redirect_without_location")
    assert world.outcomes[world.url("not-modified")] == ("failed", "not_modified_unasked")
    assert world.kept[world.url("not-modified")][0].type == "response"


def test_no_hop_comes_too_early_and_the_archive_is_whole(world: World) -> None:
    assert judge(world.log, delay_s=0.0) == []
    assert world.faults == []


def test_where_a_seed_lands_is_in_scope_for_every_process_and_after_a_resume(crawler: Crawler) -> None:
    """The seed leads to the second host; the third host, crawled by the other process, links to pages there.

    What was met before the seed landed may have been left out; what came a second later may not.
    """
    with Site.start(hosts=3, pages=1) as site:
        site.serve("/seed", "", status=301, headers=[("Location", site.url(1, "/home"))])
        site.serve("/home", html("home", links(f"/h/{n}" for n in range(6))))
        for n in range(8):
            site.serve(f"/h/{n}", html(f"page {n}"))
            site.serve(f"/late/{n}", html(f"late {n}", links([f"/late/{n + 1}", site.url(1, f"/only-by-link/{n}")])))
            site.serve(f"/only-by-link/{n}", html("found"))
        site.on("/late/8", _never)
        seeds = [site.url(0, "/seed"), site.url(2, "/late/0")]
        process = crawler.start(*seeds, "--workers", "2", "--delay", "0.2", "--no-sitemaps")
        until(lambda: any(e.path == "/late/8" for e in site.log()), within_s=20, what="the page that never answers")
        homes = [site.url(1, f"/h/{n}") for n in range(6)]
        until(
            lambda: all(crawler.outcomes().get(url, ("",))[0] == "success" for url in homes), within_s=20, what="homes"
        )
        process.kill()
        for pid in crawler.processes():
            os.kill(pid, signal.SIGKILL)
        process.communicate()
        site.serve("/late/8", html("late 8", links([site.url(1, "/only-by-link/8")])))
        site.serve("/only-by-link/8", html("found"))
        result = crawler.crawl(*seeds, "--delay", "0.2", "--no-sitemaps")
        log = site.settled()

    outcomes = crawler.outcomes()
    wanted = [site.url(1, f"/h/{n}") for n in range(6)] + [site.url(1, f"/only-by-link/{n}") for n in range(6, 9)]
    assert {url: outcomes.get(url) for url in wanted} == {url: ("success", "ok") for url in wanted}
    assert result["resumed"] is True
    assert crawler.log().count('"crawl.seed_landed"') == 1
    config = rows(crawler, "SELECT config FROM executions")[0][0]
    assert json.loads(config)["landing"] == [site.url(1, "/home")]
    # What was committed before the kill is not asked for again; what was in flight may be.
    assert {path: n for path, n in fetched(log).items() if n > 1 and "/h/" in path} == {}
    assert judge(log, delay_s=0.2) == []
    assert crawler.faults() == []


async def _never(exchange: Exchange) -> None:
    await exchange.silence()


def test_redirect_is_counted_apart_from_pages(crawler: Crawler) -> None:
    with Site.start(hosts=2, pages=1) as site:
        site.serve("/seed", "", status=301, headers=[("Location", site.url(1, "/home"))])
        site.serve("/home", html("home", links(f"/h/{n}" for n in range(6))))
        for n in range(6):
            site.serve(f"/h/{n}", html(f"page {n}"))
        result = crawler.crawl(site.url(0, "/seed"), "--delay", "0", "--no-sitemaps", "--max-pages", "3")
    report = json.loads(crawler.run("report", "--json").stdout)
    captured = [url for url, found in crawler.outcomes().items() if found == ("success", "ok")]

    assert (result["pages"], len(captured), result["reason"]) == (3, 3, "max_pages")
    assert (report["redirects"], report["landing"]) == (1, [site.url(1, "/home")])
    printed = crawler.run("report").stdout
    assert "1 redirect to another address, not counted as pages" in printed
    assert f"a seed led to {site.url(1, '/home')}: its host is in scope too" in printed
    assert crawler.faults() == []


def test_redirect_loop_across_hosts_is_too_many_redirects(any_crawler: Crawler) -> None:
    with Site.start(hosts=3, pages=1) as site:
        for host in range(3):
            onward = site.url((host + 1) % 3, "/round")
            site.serve("/round", "", status=302, headers=[("Location", onward)], host=host)
        site.serve("/start", html("start", links(["/round"])))
        result = any_crawler.crawl(site.url(0, "/start"), site.url(1), site.url(2), "--delay", "0", "--no-sitemaps")
        asked = [entry.path for entry in site.settled() if entry.path == "/round"]

    outcomes = any_crawler.outcomes()
    assert sorted(outcomes[site.url(host, "/round")] for host in range(3)) == [
        ("failed", "too_many_redirects"), ("success", "redirected"), ("success", "redirected"),
    ]  # fmt: skip
    assert len(asked) == 3
    assert result["state"] == "completed"


def test_run_fails_when_its_seed_only_redirects_in_circles(crawler: Crawler) -> None:
    with Site.start(hosts=2, pages=1) as site:
        for host in range(2):
            onward = site.url(1 - host, "/round")
            site.serve("/round", "", status=302, headers=[("Location", onward)], host=host)
        process = crawler.start(site.url(0, "/round"), "--delay", "0", "--no-sitemaps")
        process.communicate(timeout=60)
    report = json.loads(crawler.run("report", "--json").stdout)

    assert (report["state"], report["reason"]) == ("failed", "nothing_captured")


def test_seed_that_moves_to_another_owner_is_not_followed(any_crawler: Crawler) -> None:
    crawler = any_crawler
    with Site.start(hosts=3, pages=1) as site:

        def point_to(host: int) -> None:
            site.serve("/seed", "", status=302, headers=[("Location", site.url(host, "/home"))])

        site.serve("/home", html("home", links(["/below"])))
        site.serve("/below", html("below"))
        site.serve("/steady", html("steady"))
        options = ("--delay", "0", "--no-sitemaps")
        seeds = [site.url(0, "/seed"), site.url(0, "/steady")]
        point_to(1)
        results = [crawler.crawl(*seeds, *options) for _ in range(2)]
        point_to(2)
        moved = crawler.crawl(*seeds, *options)
        asked = {entry.host for entry in site.settled()}
        report = json.loads(crawler.run("report", "--json").stdout)
        outcome = crawler.outcomes(3)[site.url(0, "/seed")]
        added = crawler.crawl(*seeds, site.url(2, "/home"), *options)

    assert [(one["reason"], one["pages"]) for one in results] == [("done", 3), ("done", 3)]
    assert (moved["reason"], moved["shortfalls"], moved["pages"]) == ("seeds_moved", {"seeds_moved": 1}, 1)
    assert site.hosts[2] not in asked, "the new owner was not asked for anything"
    assert outcome == ("excluded", f"redirect_new_owner:{site.hosts[2]}")
    assert "add that address as a seed" in report["sentence"]
    assert (added["reason"], added["pages"]) == ("done", 3)
