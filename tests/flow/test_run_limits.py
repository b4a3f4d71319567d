"""Built-in limits and traps: what they leave out is in the ending, by rule, everywhere that a run is shown."""

from __future__ import annotations

import json
import signal

from tests.flow.crawler import Crawler
from tests.flow.faults.bed import until
from tests.site import Site
from tests.site.book import html, links


def test_trapped_addresses_are_a_shortfall_with_counts(any_crawler: Crawler) -> None:
    crawler = any_crawler
    crawler.environment["HOLDFAST_TIMINGS_TRAPS_QUERY_VARIANTS"] = "3"
    with Site.start(hosts=1, pages=1) as site:
        site.serve("/forum", html("forum", links([f"/topic?t={n}" for n in range(10)])))
        site.serve("/topic", html("topic", links(["/forum", "/topic?t=1", "/left/out"])))
        result = crawler.crawl(site.url(0, "/forum"), "--delay", "0", "--no-sitemaps", "--exclude", "/left/")

    short = {"limits": 7, "trap:query_variants": 7}
    assert (result["state"], result["reason"], result["shortfalls"]) == ("completed", "limits", short)
    assert (result["pages"], result["research_ready"]) == (4, False)
    report = json.loads(crawler.run("report", "--json").stdout)
    status = json.loads(crawler.run("status", "1", "--json").stdout)
    for shown in (report, status):
        assert (shown["reason"], shown["shortfalls"], shown["research_ready"]) == ("limits", short, False)
    assert "7 addresses with too many queries of one path" in report["sentence"]
    assert "fell short: 7 addresses with too many queries of one path" in crawler.run("report").stdout
    assert "7 addresses with too many queries" in crawler.run("status").stdout
    assert crawler.faults() == []


def test_links_of_a_long_page_are_a_shortfall_with_counts(crawler: Crawler) -> None:
    with Site.start(hosts=1, pages=1) as site:
        site.serve("/all", html("all", links([f"/{n}" for n in range(30_000)])))
        result = crawler.crawl(site.url(0, "/all"), "--delay", "0", "--no-sitemaps", "--max-pages", "1")

    assert (result["state"], result["reason"]) == ("completed", "max_pages")
    assert result["shortfalls"] == {"max_pages": 20_000, "limits": 10_000, "over_limit:links": 10_000}


def test_run_is_done_when_only_scope_rules_left_out_links(crawler: Crawler) -> None:
    with Site.start(hosts=2, pages=1) as site:
        paths = ["/a", "/out/1", site.url(1, "/elsewhere")]
        site.serve("/start", html("start", links(paths)))
        site.serve("/a", html("a", links(["/too/deep"])))
        seed = site.url(0, "/start")
        result = crawler.crawl(seed, "--delay", "0", "--no-sitemaps", "--exclude", "/out/", "--depth", "1")
    report = json.loads(crawler.run("report", "--json").stdout)

    assert {one["rule"] for one in report["excluded"]} == {"exclude:/out/", "scope:host", "max_depth"}
    assert (result["reason"], result["shortfalls"], result["research_ready"]) == ("done", {}, True)


def test_stopped_crawl_names_built_in_limits_too(any_crawler: Crawler) -> None:
    crawler = any_crawler
    crawler.environment["HOLDFAST_TIMINGS_TRAPS_QUERY_VARIANTS"] = "3"
    with Site.start(hosts=1, pages=1) as site:
        site.serve("/forum", html("forum", links([f"/topic?t={n}" for n in range(10)] + [f"/{n}" for n in range(400)])))
        process = crawler.start(site.url(0, "/forum"), "--delay", "0.2", "--no-sitemaps")
        until(lambda: len(site.log()) > 3, within_s=30, what="pages behind the first one")
        process.send_signal(signal.SIGINT)
        result = crawler.finish(process)

    assert (result["state"], result["reason"]) == ("stopped", "stopped")
    assert set(result["shortfalls"]) == {"stopped", "limits", "trap:query_variants"}
    assert (result["shortfalls"]["limits"], result["research_ready"]) == (7, False)
