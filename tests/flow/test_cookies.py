"""Who is told what about the user: headers and cookies go to the seeds' own origin and never cross to another (U20)."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from tests.flow.crawler import Crawler
from tests.flow.faults.bed import rows
from tests.flow.records import Stored, stored
from tests.site import Site
from tests.site.book import html, links
from tests.site.log import Entry

_TOKEN = "Bearer correct-horse"
_SESSION = "battery-staple"


@dataclass
class World:
    """A crawl with a token and a session cookie for the first of three hosts, which leads to the others."""

    crawler: Crawler
    log: list[Entry]
    records: list[Stored]
    port: int
    tls_port: int
    outcomes: dict[str, tuple[str, str]]

    def asked(self, path: str) -> list[Entry]:
        return [entry for entry in self.log if entry.path == path]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    folder = tmp_path_factory.mktemp("cookies")
    jar = folder / "cookies.txt"
    jar.write_text(f"# Netscape HTTP Cookie File\n127.0.0.2\tFALSE\t/\tFALSE\t0\tsession\t{_SESSION}\n")
    crawler = Crawler(folder / "home")
    with Site.start(hosts=3, tls="good", robots={2: "other-host"}) as site:
        assert site.tls_port is not None
        paths = ["echo", "set", "leave", "wall", "big", "suffix", "foreign", "odd", "expired"]
        elsewhere = [site.url(0, "/cookie/echo", scheme="https"), site.url(1, "/redirect/other-host")]
        picture = f'<img src="{site.url(2, "/assets/pixel.png")}">'
        site.serve("/start", html("start", links([*(f"/cookie/{name}" for name in paths), *elsewhere]) + picture))
        site.serve("/away", "", status=302, headers=[("Location", site.url(0, "/after", scheme="https"))])
        site.serve("/after", html("after"))
        flood = [("Set-Cookie", f"c{number}={number}; Path=/") for number in range(1_000)]
        site.serve("/flood", html("flood", links(["/after-flood"])), headers=flood)
        site.serve("/after-flood", html("asked only when the flood has been read"))
        crawler.crawl(
            site.url(0, "/start"),
            site.url(0, "/away"),
            site.url(0, "/flood"),
            "--delay",
            "0",
            "--depth",
            "1",
            "--scope",
            "any",
            "--no-sitemaps",
            "--allow-invalid-tls",
            "--cookie-file",
            str(jar),
            "--header",
            f"Authorization: {_TOKEN}",
            "--header",
            "Accept-Language: fr",
        )
        log = site.settled()
    return World(crawler, log, stored(crawler.warcs()), site.port, site.tls_port, crawler.outcomes())


def test_the_users_secrets_reach_the_seeds_own_origin_robots_file_included(world: World) -> None:
    ours = [entry for entry in world.log if (entry.host, entry.port) == ("127.0.0.2", world.port)]

    assert {"/robots.txt", "/start", "/cookie/echo"} <= {entry.path for entry in ours}
    assert {entry.authorization for entry in ours} == {_TOKEN}
    assert all(f"session={_SESSION}" in (entry.cookie or "") for entry in ours)


def test_no_secret_reaches_another_host_another_port_or_another_scheme(world: World) -> None:
    others = [entry for entry in world.log if (entry.host, entry.port) != ("127.0.0.2", world.port)]

    assert {(entry.host, entry.port == world.tls_port) for entry in others} == {
        ("127.0.0.2", True), ("127.0.0.3", False), ("127.0.0.4", False),
    }  # fmt: skip
    assert {entry.authorization for entry in others} == {None}
    assert [entry.path for entry in others if _SESSION in (entry.cookie or "")] == []
    assert [entry.path for entry in others if "visit=1" in (entry.cookie or "")] == []


def test_the_hops_that_leave_are_among_those_that_were_looked_at(world: World) -> None:
    leaving = {(entry.host, entry.path) for entry in world.log}

    assert ("127.0.0.3", "/cookie/echo") in leaving, "a redirect that sets a cookie and leads to another host"
    assert ("127.0.0.2", "/after") in leaving, "a seed that leads to another scheme and port"
    assert ("127.0.0.4", "/assets/pixel.png") in leaving, "a requisite from another host"
    assert ("127.0.0.2", "/robots/private") in leaving, "the robots.txt of that host leads back to us"


def test_a_cookie_that_is_demanded_is_brought_back(world: World) -> None:
    assert world.outcomes[f"http://127.0.0.2:{world.port}/cookie/wall"] == ("success", "ok")
    assert [("pass=1" in (entry.cookie or "")) for entry in world.asked("/cookie/wall")] == [False, True]


def test_floods_and_claims_on_others_are_bounded(world: World) -> None:
    sent = [entry.cookie or "" for entry in world.log]

    assert all((entry.cookie or "").count("=") > 40 for entry in world.asked("/after-flood"))
    assert max(cookie.count("=") for cookie in sent) <= 51
    assert not any("big=" in cookie or "b=1" in cookie for cookie in sent)


def test_harmless_headers_go_with_every_request(world: World) -> None:
    requests = [record.block for record in world.records if record.type == "request"]

    assert len(requests) > 15
    assert all(b"\r\nAccept-Language: fr\r\n" in block for block in requests)


def test_secrets_stand_nowhere_in_what_is_kept(world: World) -> None:
    """A page that repeats them is its server's own doing: the response is archived as it came."""
    secrets = (_TOKEN.split()[1].encode(), _SESSION.encode())
    around = b"".join(record.block for record in world.records if record.type in ("warcinfo", "request"))
    config = str(rows(world.crawler, "SELECT config FROM executions")).encode()

    assert b"\r\nAuthorization: [redacted]\r\n" in around
    assert b"\r\nCookie: [redacted]\r\n" in around
    for text in (around, config, world.crawler.log().encode()):
        assert not any(secret in text for secret in secrets)
    assert world.crawler.faults() == []


def test_nobody_can_hide_behind_a_header(crawler: Crawler) -> None:
    ended = crawler.run("crawl", "https://example.org/", "--header", "User-Agent: Mozilla/5.0")

    assert ended.returncode == 1
    assert "--user-agent" in ended.stderr
    assert not crawler.home.exists()
