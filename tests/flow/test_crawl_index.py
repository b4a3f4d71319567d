"""A crawl whose files are indexed while it runs: when it ends, what it captured can be found."""

from __future__ import annotations

import json

from tests.flow.crawler import Crawler
from tests.site import Site
from tests.site.book import html, links


def test_what_a_crawl_captures_is_found_when_it_ends(any_crawler: Crawler) -> None:
    with Site.start(hosts=1, pages=1) as site:
        site.serve("/start", html("start", links([f"/{n}" for n in range(8)])))
        for n in range(8):
            site.serve(f"/{n}", html(f"Heron number {n}", "<main><p>The heron waits in the reeds.</p></main>"))
        # Files of a few records each: some are sealed, and read, while the crawl still runs.
        any_crawler.crawl(site.url(0, "/start"), "--index", "--delay", "0", "--no-sitemaps", HOLDFAST_WARC_BYTES="4096")
    found = json.loads(any_crawler.run("search", "heron reeds", "--json").stdout)
    listed = json.loads(any_crawler.run("warc", "list", "--json").stdout)

    assert found["total"] == 8
    assert len(listed["files"]) > 1
    assert {file["index"] for file in listed["files"]} == {"indexed"}
    assert any_crawler.faults() == []


def test_the_last_line_of_a_crawl_names_the_index_only_where_it_is_the_next_step(crawler: Crawler) -> None:
    crawler.environment["HOLDFAST_ALLOW_NETWORKS"] = "127.0.0.0/8"
    with Site.start(hosts=1, pages=1) as site:
        site.serve("/start", html("start", "<main><p>The heron waits in the reeds.</p></main>"))
        told = [
            crawler.run("crawl", site.url(0, "/start"), "--delay", "0", "--no-sitemaps", how).stdout.splitlines()
            for how in ("--no-index", "--index")
        ]

    steps = [line for lines in told for line in lines if line.startswith("next: ")]
    assert [line.split("   ·   ")[0] for line in steps] == ["next: holdfast index", "next: holdfast report 2"]
