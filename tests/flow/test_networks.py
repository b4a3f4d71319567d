"""Which machines a crawl asks, and as whom: seen from the servers, by links, embedded files, redirects, sitemaps."""

from __future__ import annotations

from tests.flow.crawler import Crawler
from tests.site import Site
from tests.site.book import html, links


def test_a_network_that_was_not_named_hears_nothing_by_any_road(crawler: Crawler) -> None:
    with Site.start(hosts=2, pages=2) as site:
        inner = f"http://{site.hosts[1]}:{site.port}"
        embedded = f'<img src="{inner}/picture.png"><iframe src="{inner}/frame"></iframe><script src="{inner}/s.js">'
        site.serve("/start", html("start", links([f"{inner}/", f"{inner}/a/p1.html", "/away"]) + embedded))
        site.serve("/away", "", status=302, headers=[("Location", f"{inner}/landing")])
        site.serve("/robots.txt", f"User-agent: *\nSitemap: {inner}/sitemap.xml\n", media="text/plain")
        ended = crawler.run(
            "crawl",
            site.url(0, "/start"),
            "--scope",
            "any",
            "--delay",
            "0",
            "--allow-network",
            f"{site.hosts[0]}/32",
            "--json",
        )
        asked = site.settled()

    assert ended.returncode == 0, ended.stderr
    assert {entry.host for entry in asked} == {site.hosts[0]}
    assert {"/start", "/away"} <= {entry.path for entry in asked}
    assert {reason for _, reason in crawler.outcomes().values() if reason == "address_forbidden"}


def test_every_request_says_who_we_are_and_whom_to_write_to(crawler: Crawler) -> None:
    with Site.start(hosts=1, pages=3) as site:
        site.serve("/start", html("start", links(["/a/p1.html"]) + '<img src="/picture.png">'))
        crawler.crawl(site.url(0, "/start"), "--delay", "0", "--user-agent", "Own/1.0")
        asked = site.settled()

    assert {"/robots.txt", "/start", "/a/p1.html", "/picture.png"} <= {entry.path for entry in asked}
    agents = {entry.user_agent or "" for entry in asked}
    assert [agent for agent in agents if "Holdfast" not in agent or "tests@example.org" not in agent] == []
