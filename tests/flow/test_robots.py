"""robots.txt from end to end: every answer that a site may give, in one crawl of many hosts."""

from __future__ import annotations

import json
from dataclasses import dataclass

import pytest

from tests.flow.crawler import Crawler
from tests.flow.records import captures
from tests.site import Site, judge
from tests.site.log import Entry

_ANSWERS = [
    "404", "403", "500", "429", "timeout", "reset", "other-host", "404", "redirect-5", "redirect-6", "loop", "inner",
    "html", "delay", "disallow", "ours", "private", "bom", "cr", "utf-16", "long", "huge", "bomb", "drip",
]  # fmt: skip
"""What each host serves, by its number; `other-host` leads to the host behind it."""
_ASKED = ("/private/x.html", "/private/open.html", "/a/p1.html")


@dataclass
class World:
    """A finished crawl and what the site saw of it."""

    crawler: Crawler
    outcomes: dict[str, tuple[str, str]]
    messages: dict[str, str | None]
    log: list[Entry]
    port: int
    seconds: float

    def outcome(self, answer: str, path: str) -> tuple[str, str]:
        """Return what became of a path on the host with this robots.txt."""
        return self.outcomes[f"http://{self.host(answer)}:{self.port}{path}"]

    def host(self, answer: str) -> str:
        return f"127.0.0.{_ANSWERS.index(answer) + 2}"

    def asked(self, answer: str) -> list[str]:
        return [entry.path for entry in self.log if entry.host == self.host(answer)]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    crawler = Crawler(tmp_path_factory.mktemp("robots") / "home")
    robots = dict(enumerate(_ANSWERS))
    with Site.start(hosts=len(_ANSWERS), robots=robots, process=True) as site:
        seeds = [site.url(host, path) for host in range(len(_ANSWERS)) for path in _ASKED]
        result = crawler.crawl(*seeds, "--scope", "page", "--delay", "0", HOLDFAST_FETCH_DEADLINE_S="2",
                               HOLDFAST_TIMINGS_CRAWL_UNREACHABLE_S="1.5")  # fmt: skip
        log = site.settled()
    rows = [json.loads(line) for line in crawler.run("report", "--urls").stdout.splitlines()]
    messages = {row["url"]: row["message"] for row in rows}
    return World(crawler, crawler.outcomes(), messages, log, site.port, result["seconds"])


_PRIVATE_ONLY = ["redirect-5", "bom", "cr", "utf-16", "private", "other-host"]
_ALL_OPEN = ["404", "403", "redirect-6", "loop", "html", "delay", "long", "huge", "bomb"]
_UNREACHABLE = ["500", "429", "timeout", "reset", "inner", "drip"]


@pytest.mark.parametrize("answer", _ALL_OPEN)
def test_no_file_or_no_rule_for_us_lets_everything_be_asked(world: World, answer: str) -> None:
    assert {world.outcome(answer, path)[0] for path in _ASKED} <= {"success", "blocked_4xx"}
    assert set(_ASKED) <= set(world.asked(answer))


@pytest.mark.parametrize("answer", _PRIVATE_ONLY)
def test_rules_are_read_whatever_their_spelling_and_wherever_they_were_found(world: World, answer: str) -> None:
    assert world.outcome(answer, "/private/x.html")[0] == "blocked_robots"
    assert world.outcome(answer, "/a/p1.html") == ("success", "ok")
    assert "/private/x.html" not in world.asked(answer)


@pytest.mark.parametrize("answer", _UNREACHABLE)
def test_a_file_that_cannot_be_read_forbids_everything_and_the_crawl_still_ends(world: World, answer: str) -> None:
    assert {world.outcome(answer, path) for path in _ASKED} == {("failed", "domain_unreachable")}
    assert set(world.asked(answer)) == {"/robots.txt"}
    assert len(world.asked(answer)) <= 3, "it is tried until an execution has waited long enough"


@pytest.mark.parametrize("answer", ["disallow", "ours"])
def test_a_whole_site_may_be_forbidden(world: World, answer: str) -> None:
    assert {world.outcome(answer, path)[0] for path in _ASKED} == {"blocked_robots"}
    assert world.asked(answer) == ["/robots.txt"]


def test_the_report_names_the_line_and_the_rule(world: World) -> None:
    url = f"http://{world.host('private')}:{world.port}/private/x.html"

    assert world.outcomes[url] == ("blocked_robots", "robots:line 2")
    assert world.messages[url] == "Disallow: /private/"
    assert world.outcome("private", "/private/open.html")[0] != "blocked_robots"


def test_a_redirect_to_another_host_waits_for_its_turn_and_its_rules_stay_with_the_first(world: World) -> None:
    target = f"127.0.0.{_ANSWERS.index('other-host') + 3}"
    asked = [entry.path for entry in world.log if entry.host == target]

    assert asked.count("/robots/private") == 1
    assert world.outcomes[f"http://{target}:{world.port}/private/x.html"][0] != "blocked_robots"


def test_an_inner_address_is_never_dialled_for_a_robots_file(world: World) -> None:
    hosts = {entry.host for entry in world.log}

    assert hosts == {f"127.0.0.{n + 2}" for n in range(len(_ANSWERS))}


def test_every_request_kept_its_distance_robots_files_and_hops_included(world: World) -> None:
    assert judge(world.log, delay_s=0.0, delays={world.host("delay"): 2.0}) == []


def test_every_robots_answer_is_archived_with_each_hop(world: World) -> None:
    kept = captures(world.crawler.warcs())
    named = {answer: f"http://{world.host(answer)}:{world.port}" for answer in _ANSWERS}

    assert kept[f"{named['private']}/robots.txt"][0].status == 200
    assert kept[f"{named['404']}/robots.txt"][0].status == 404
    assert kept[f"{named['500']}/robots.txt"][0].status == 500
    chain = [f"{named['redirect-5']}/robots/hop/{n}" for n in range(5)]
    assert all(url in kept for url in chain)
    assert kept[f"{named['huge']}/robots.txt"][0].truncated == "length"


def test_the_archive_is_whole_and_every_address_has_one_outcome(world: World) -> None:
    assert world.crawler.faults() == []
    assert len(world.outcomes) == len(_ANSWERS) * len(_ASKED)
    assert "open" not in {outcome for outcome, _ in world.outcomes.values()}
