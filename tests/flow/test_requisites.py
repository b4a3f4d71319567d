"""What a page needs to be shown is fetched with it, also from other hosts; where that leads is not followed."""

from __future__ import annotations

from tests.flow.crawler import Crawler, fetched
from tests.flow.records import captures
from tests.site import Site
from tests.site.book import html, links


def test_everything_that_a_page_embeds_is_captured_and_nothing_that_is_behind_it(crawler: Crawler) -> None:
    """Host 0 is crawled; host 1 only lends pictures, styles and a frame; feeds met as pages lead on."""
    with Site.start(hosts=2, pages=1, robots={1: "sitemaps"}) as site:
        away = site.url(1, "/assets/style.css")
        body = (
            f'<img src="{site.url(1, "/assets/icon.png")}" srcset="/assets/pixel.png?1x 1x, /assets/pixel.png?2x 2x">'
            f'<picture><source srcset="/assets/pixel.png?wide 800w"></picture><iframe src="/frame"></iframe>'
            f'<iframe src="{site.url(1, "/outside-frame")}"></iframe><embed src="/assets/film.mp4">'
            f'<div style="background: url(/assets/pixel.png?inline)"></div>'
        )
        head = f'<link rel="stylesheet" href="{away}"><style>@import "/assets/print.css";</style>'
        site.serve("/start", html("start", body + links(["/feed/rss", "/feed/atom", "/also", "/endless"]), head=head))
        site.serve("/frame", html("frame", '<img src="/assets/pixel.png?framed">' + links(["/by-frame"])))
        outside = '<img src="/assets/pixel.png?out">' + links(["/not-ours"])
        site.serve("/outside-frame", html("outside", outside), host=1)
        site.serve("/by-frame", html("found in a frame"))
        site.serve("/also", html("also", links([site.url(1, "/assets/icon.png")])))
        site.serve("/endless", html("endless", head='<link rel="stylesheet" href="/assets/import/0.css">'))
        result = crawler.crawl(site.url(0, "/start"), "--delay", "0", "--depth", "2")
        log = site.settled()

    outcomes, kept = crawler.outcomes(), captures(crawler.warcs())
    here = [f"/assets/pixel.png?{name}" for name in ("1x", "2x", "wide", "inline", "framed")]
    here += ["/assets/print.css", "/assets/film.mp4", "/frame", "/by-frame", "/meta/title?item=2", "/meta/title?atom=1"]
    there = ["style.css", "theme.css", "print.css", "pixel.png", "logo.svg", "font.woff2", "icon.png"]
    wanted = [site.url(0, path) for path in here] + [site.url(1, f"/assets/{name}") for name in there]
    wanted += [site.url(1, "/outside-frame"), site.url(1, "/assets/pixel.png?out")]
    assert {url: outcomes.get(url) for url in wanted} == {url: ("success", "ok") for url in wanted}
    assert all(kept[url][0].status == 200 for url in wanted)
    asked = fetched(log)
    assert set(asked.values()) == {1}
    assert not [path for path in asked if "not-ours" in path or "/sitemap/" in path], "not even its sitemap"
    chain = sorted(url for url in outcomes if "/assets/import/" in url)
    assert len(chain) == 11, "a style sheet that imports a sheet that imports a sheet is followed, but not for ever"
    pages = ["/start", "/frame", "/feed/rss", "/feed/atom", "/also", "/endless", "/by-frame", "/meta/title?"]
    assert result["pages"] == sum(any(p in url for p in pages) and "127.0.0.2" in url for url in outcomes)
    assert crawler.faults() == []
