"""How much a crawl takes: pages exactly, bytes and time nearly; what is left is named as over the limit."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from tests import patience
from tests.flow.crawler import Crawler
from tests.site import Site
from tests.site.book import html, links


def _reasons(crawler: Crawler) -> Counter[tuple[str, str]]:
    return Counter(crawler.outcomes().values())


def test_max_pages_is_exact_and_what_those_pages_need_is_still_fetched(crawler: Crawler) -> None:
    """Two pages in three fail or lead on, so that a limit on tries would stop too early."""
    with Site.start(hosts=3, pages=1) as site:
        for host in range(3):
            paths = [f"/page/{n}" for n in range(12)] + [f"/status/404?page={n}" for n in range(3)]
            site.serve("/start", html("start", links(paths)), host=host)
        for n in range(12):
            needs = f'<link rel="stylesheet" href="/style/{n}.css"><img src="/picture/{n}.png">'
            site.serve(f"/page/{n}", html(f"page {n}", needs + links([f"/page/{n}/below"])))
            site.serve(f"/style/{n}.css", f"body {{ background: url(/deep/{n}.png) }}", media="text/css")
            site.serve(f"/picture/{n}.png", b"\x89PNG\r\n\x1a\n", media="image/png")
            site.serve(f"/deep/{n}.png", b"\x89PNG\r\n\x1a\n", media="image/png")
        seeds = [site.url(host, "/start") for host in range(3)]
        result = crawler.crawl(*seeds, "--max-pages", "10", "--delay", "0", "--no-sitemaps")
        answered = [entry.path for entry in site.settled() if entry.status == 200]

    outcomes = crawler.outcomes()
    captured = [url for url, found in outcomes.items() if found == ("success", "ok")]
    pages = [url for url in captured if "/page/" in url or url.endswith("/start")]
    needed = [url for url in captured if url not in pages]
    assert (result["state"], result["reason"], result["queue"]) == ("completed", "max_pages", 0)
    assert result["pages"] == len(pages) == 10
    assert len(needed) == 3 * sum("/page/" in url for url in pages), "style, picture, and what the style needs"
    assert _reasons(crawler)["excluded", "over_limit:max_pages"] > 0
    assert len([path for path in answered if path.startswith(("/page/", "/start"))]) == 10, "and none thrown away"
    assert crawler.faults() == []


def test_max_bytes_stops_soon_after_and_without_requisites_no_picture_is_fetched(crawler: Crawler) -> None:
    with Site.start(hosts=1, pages=1) as site:
        site.serve("/start", html("start", links(f"/big/{n}" for n in range(40)) + '<img src="/assets/pixel.png">'))
        for n in range(40):
            site.serve(f"/big/{n}", b"x" * 50_000, media="text/plain")
        result = crawler.crawl(
            site.url(0, "/start"), "--max-bytes", "500kB", "--delay", "0.05", "--no-sitemaps", "--no-requisites"
        )
        asked = {entry.path for entry in site.settled()}

    assert (result["state"], result["reason"], result["queue"]) == ("completed", "max_bytes", 0)
    assert 500_000 <= result["bytes"] <= 552_000, "one answer more at most"
    assert _reasons(crawler)["excluded", "over_limit:max_bytes"] > 20
    assert "/assets/pixel.png" not in asked
    assert crawler.faults() == []


def test_max_time_ends_the_crawl_and_what_is_left_is_named(crawler: Crawler) -> None:
    with Site.plain(hosts=2, pages=60) as site:
        result = crawler.crawl(site.url(0), site.url(1), "--max-time", "1.5s", "--delay", "0.2")

    assert (result["state"], result["reason"], result["queue"]) == ("completed", "max_time", 0)
    assert result["seconds"] < patience.allowed(9.0), "sixty pages at that pace take twelve seconds"
    assert _reasons(crawler)["excluded", "over_limit:max_time"] > 0
    assert crawler.faults() == []


def test_a_calendar_without_end_ends_at_the_budget_of_its_host_and_what_is_left_out_is_counted(
    crawler: Crawler,
) -> None:
    with Site.start(hosts=1, pages=1) as site:
        result = crawler.crawl(
            site.url(0, "/trap/calendar"), "--delay", "0", "--no-sitemaps", "--depth", "30",
            HOLDFAST_TIMINGS_TRAPS_DOMAIN_URLS="60",
        )  # fmt: skip

    assert (result["state"], result["reason"], result["queue"]) == ("completed", "limits", 0)
    assert result["pages"] <= 61
    omitted = crawler.run("report", "--json")
    assert "trap:domain_budget" in omitted.stdout
    assert crawler.faults() == []


def test_a_directory_that_makes_up_addresses_ends_at_its_budget(crawler: Crawler) -> None:
    with Site.start(hosts=1, pages=1) as site:
        result = crawler.crawl(
            site.url(0, "/trap/random"), "--delay", "0", "--no-sitemaps", "--depth", "30",
            HOLDFAST_TIMINGS_TRAPS_DIRECTORY_URLS="25",
        )  # fmt: skip

    assert (result["state"], result["queue"]) == ("completed", 0)
    assert 20 <= result["pages"] <= 26
    assert "trap:directory_budget" in crawler.run("report", "--json").stdout


def test_pages_of_a_domain_that_an_operator_forbids_are_closed_and_the_crawl_ends(crawler: Crawler) -> None:
    with Site.start(hosts=2, pages=3) as site:
        first = crawler.crawl(site.url(1, "/"), "--max-pages", "1", "--delay", "0", "--no-sitemaps")
        assert first["pages"] == 1
        with crawler.raw_db().write() as tx:
            tx.execute("UPDATE domains SET is_allowed = ?", (False,))
        result = crawler.crawl(site.url(0, "/"), site.url(1, "/"), "--delay", "0", "--no-sitemaps")
        asked = [entry for entry in site.settled() if entry.path != "/robots.txt"]

    assert (result["state"], result["reason"], result["queue"]) == ("completed", "done", 0)
    assert crawler.outcomes(2)[site.url(1, "/")] == ("excluded", "domain_forbidden")
    assert result["outcomes"]["excluded"] >= 1
    assert result["pages"] > 1
    assert len({entry.host for entry in asked if entry.path == "/"}) == 2


def test_more_seeds_than_one_batch_are_all_crawled(crawler: Crawler, tmp_path: Path) -> None:
    """The processes begin with the first batch, and may have done it before the rest is there."""
    with Site.start(hosts=1, pages=1) as site:
        site.serve("/robots.txt", b"User-agent: *\nDisallow: /private/\n", media="text/plain")
        site.serve("/last", html("last", ""))
        lines = [site.url(0, f"/private/{n}") for n in range(10_100)]
        (tmp_path / "seeds.txt").write_text("\n".join([*lines, site.url(0, "/last")]))
        result = crawler.crawl("--seeds", str(tmp_path / "seeds.txt"), "--delay", "0", "--no-sitemaps", timeout_s=300)

    assert (result["state"], result["queue"], result["pages"]) == ("completed", 0, 1)
    assert sum(result["outcomes"].values()) == 10_101
