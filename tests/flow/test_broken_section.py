"""A live site with a broken section: the section fails, and every other page is captured."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests import patience
from tests.flow.crawler import Crawler
from tests.site import Site, judge
from tests.site.book import html
from tests.site.log import Entry
from tests.site.wire import Exchange

_GOOD, _BAD = 400, 30


@dataclass
class World:
    """One crawl of such a site."""

    ended: dict[str, Any]
    outcomes: dict[str, tuple[str, str]]
    log: list[Entry]


async def _good(exchange: Exchange) -> None:
    await exchange.reply(html("good"))


async def _bad(exchange: Exchange) -> None:
    # Some never answer: the timeout of one page says nothing about the host, either.
    if exchange.number("page", 0) % 10 == 0:
        await exchange.silence()
    else:
        await exchange.reply(html("broken"), status=500)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    crawler = Crawler(tmp_path_factory.mktemp("broken") / "home")
    crawler.environment |= {
        "HOLDFAST_FETCH_DEADLINE_S": str(patience.period(1.5)),
        "HOLDFAST_TIMINGS_CRAWL_UNREACHABLE_S": "3",
    }
    with Site.start(hosts=1) as site:
        site.on("/good", _good)
        site.on("/bad", _bad)
        # Next to each other, as the pages of one section are.
        seeds = [site.url(0, f"/good?page={number}") for number in range(_GOOD)]
        bad = [site.url(0, f"/bad?page={number}") for number in range(_BAD)]
        listed = Path(crawler.home).with_name("seeds.txt")
        listed.write_text("\n".join([*seeds[:100], *bad, *seeds[100:]]))
        ended = crawler.crawl("--seeds", str(listed), "--scope", "page", "--delay", "0", timeout_s=120)
        log = site.settled()
    return World(ended, crawler.outcomes(), log)


def test_broken_section_leaves_every_good_page_captured(world: World) -> None:
    good = [found for url, found in world.outcomes.items() if "/good" in url]
    bad = Counter(found for url, found in world.outcomes.items() if "/bad" in url)

    assert good == [("success", "ok")] * _GOOD
    assert bad == {("blocked_5xx", "http_500"): 27, ("timeout", "timeout"): 3}


def test_broken_section_does_not_give_the_host_up(world: World) -> None:
    assert world.ended["reason"] != "hosts_given_up", world.ended


def test_broken_section_costs_few_checks_of_the_host(world: World) -> None:
    asked = Counter(entry.path for entry in world.log)

    assert judge(world.log, delay_s=0.0) == []
    tries = sum(count for path, count in asked.items() if path.startswith("/bad"))
    checks = sum(count - 1 for path, count in asked.items() if path.startswith("/good"))
    assert tries == _BAD * 4, "each page has its four tries"
    assert checks <= tries / 5, "one check for five failures in a row"
