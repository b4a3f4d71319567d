"""Domains in trouble: a circuit that opens and closes, servers that ask for time, and those that never come back."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import pytest

from tests.flow.crawler import Crawler
from tests.site import Site, judge
from tests.site.book import html
from tests.site.log import Entry
from tests.site.wire import Exchange

STORM, ILL, DEAD, BUSY, FOREVER, RECOVERING, SHY = range(7)
"""Hosts by number: asks for less; fails for a while; never answers; asks for two seconds; asks for a century; its
robots.txt cannot be read at first; its robots.txt asks for three seconds."""


@dataclass
class World:
    """One crawl of all of them."""

    outcomes: dict[str, tuple[str, str]]
    log: list[Entry]
    hosts: list[str]
    port: int
    faults: list[str]
    events: str

    def of(self, host: int) -> set[tuple[str, str]]:
        """Return the outcomes of a host's pages."""
        return {found for url, found in self.outcomes.items() if f"//{self.hosts[host]}:" in url}

    def asked(self, host: int) -> list[Entry]:
        return [entry for entry in self.log if entry.host == self.hosts[host]]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    crawler = Crawler(tmp_path_factory.mktemp("trouble") / "home")
    crawler.environment["HOLDFAST_TIMINGS_CRAWL_UNREACHABLE_S"] = "8"
    with Site.start(hosts=7, robots={RECOVERING: "recovering"}) as site:
        site.on("/robots.txt", _shy_robots, host=SHY)
        site.on("/dead", _reset)
        seeds = [site.url(STORM, "/status/429?times=1"), *(site.url(STORM, f"/a/p{n}.html") for n in (1, 2))]
        seeds += [site.url(ILL, f"/status/500?times=2&page={n}") for n in range(4)]
        seeds += [site.url(DEAD, f"/dead?page={n}") for n in range(12)]
        seeds += [site.url(BUSY, "/status/503?times=1&after=2"), site.url(BUSY, "/a/p1.html")]
        seeds += [site.url(FOREVER, "/status/after-huge"), *(site.url(FOREVER, f"/a/p{n}.html") for n in range(1, 9))]
        seeds += [site.url(host, f"/a/p{n}.html") for host in (RECOVERING, SHY) for n in (1, 2)]
        crawler.crawl(*seeds, "--scope", "page", "--delay", "0", timeout_s=60)
        log = site.settled()
    return World(crawler.outcomes(), log, site.hosts, site.port, crawler.faults(), crawler.log())


async def _reset(exchange: Exchange) -> None:
    exchange.reset()


async def _shy_robots(exchange: Exchange) -> None:
    if exchange.visits == 1:
        await exchange.reply(html("later"), status=503, headers=[("Retry-After", "3")])
    else:
        await exchange.reply("User-agent: *\nDisallow:\n", media="text/plain")


def test_nobody_was_asked_before_the_moment_that_they_named(world: World) -> None:
    assert judge(world.log, delay_s=0.0) == []
    assert {entry.retry_after for entry in world.log} >= {2.0, 3.0, 86_400.0}


def test_a_429_slows_the_domain_down_and_good_answers_forgive_it(world: World) -> None:
    starts = [entry.start for entry in world.asked(STORM)]
    statuses = [entry.status for entry in world.asked(STORM)]
    refused = statuses.index(429)
    gaps = [later - earlier for earlier, later in itertools.pairwise(starts)][refused:]

    assert world.of(STORM) == {("success", "ok")}
    assert gaps[0] >= 1.99, "twice as slow as the slowest that we would go"
    assert gaps == sorted(gaps, reverse=True)


def test_a_circuit_opens_after_five_failures_and_its_pages_are_captured_when_it_closes(world: World) -> None:
    asked = world.asked(ILL)
    failures = [number for number, entry in enumerate(asked) if entry.status == 500]

    assert world.of(ILL) == {("success", "ok")}
    assert len(failures) == 8
    for number in failures[4:]:
        assert asked[number + 1].start - asked[number].start >= 0.99, "open, then one try, then open again"


def test_a_domain_that_never_comes_back_is_given_up_with_its_name(world: World) -> None:
    assert ("failed", "domain_unreachable") in world.of(DEAD)
    assert world.of(DEAD) <= {("failed", "domain_unreachable"), ("failed", "disconnected")}
    assert len(world.asked(DEAD)) <= 16, "five failures, then one try a second"
    assert '"crawl.domain_unreachable"' in world.events


def test_a_server_that_wants_to_be_left_alone_for_longer_than_we_wait_is_left_alone_at_once(world: World) -> None:
    asked = [entry.path for entry in world.asked(FOREVER)]

    assert asked[-1] == "/status/after-huge"
    before = {f"http://{world.hosts[FOREVER]}:{world.port}{path}" for path in asked[1:-1]}
    for url, found in world.outcomes.items():
        if f"//{world.hosts[FOREVER]}:" in url:
            assert found == (("success", "ok") if url in before else ("failed", "domain_unreachable"))
    assert '"crawl.retry_after_clamped"' in world.events


@pytest.mark.parametrize("host", [RECOVERING, SHY])
def test_a_robots_file_that_comes_back_in_time_opens_the_domain(world: World, host: int) -> None:
    assert world.of(host) == {("success", "ok")}


def test_every_page_has_an_outcome_and_the_archive_is_whole(world: World) -> None:
    assert len(world.outcomes) == 3 + 4 + 12 + 2 + 9 + 4
    assert "open" not in {outcome for outcome, _ in world.outcomes.values()}
    assert world.faults == []
