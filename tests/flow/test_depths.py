"""A page within the depth is not missed because a longer way to it was found first."""

from __future__ import annotations

import asyncio

import pytest

from tests.flow.crawler import Crawler
from tests.site import Site
from tests.site.wire import Exchange


@pytest.mark.parametrize("storage", ["warc", "signals"])
def test_the_links_of_a_fetched_page_count_from_the_shorter_way_that_is_found_later(
    any_crawler: Crawler, storage: str
) -> None:
    any_crawler.environment |= {"HOLDFAST_FETCH_DEADLINE_S": "60"}
    with Site.start(hosts=2, pages=1) as site:
        target = site.url(0, "/p")
        chain = {"/": "/l1", "/l1": "/l2", "/l2": "/p", "/p": "/q", "/q": "/r", "/r": "/s"}
        for path, link in chain.items():
            site.serve(path, f'<title>{path}</title><a href="{link}">on</a>', host=0)
        site.serve("/s", "<p>too deep by any way</p>", host=0)

        async def late(exchange: Exchange) -> None:
            while any_crawler.outcomes().get(target) != ("success", "ok"):  # noqa: ASYNC110 - another process does it
                await asyncio.sleep(0.05)
            await exchange.reply(f'<a href="{target}">p</a>'.encode())

        site.on("/", late, host=1)
        any_crawler.crawl(
            site.url(0), site.url(1), "--delay", "0", "--no-sitemaps", "--depth", "3", "--storage", storage,
        )  # fmt: skip

    outcomes = any_crawler.outcomes()
    assert outcomes[site.url(0, "/q")] == ("success", "ok"), "two links from the second seed"
    assert outcomes[site.url(0, "/r")] == ("success", "ok"), "three links"
    assert site.url(0, "/s") not in outcomes
    assert any_crawler.faults() == []
