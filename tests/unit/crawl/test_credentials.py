"""Which servers get the headers and cookies of a crawl's user."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.crawl.credentials import Credentials
from holdfast.errors import Invalid
from holdfast.sources.plan import CrawlPlan
from holdfast.urls import parse
from tests.clock import FakeClock

_SECRET = (("Authorization", "Bearer x"), ("X-Api-Key", "k"))


def _credentials(*seeds: str, **plan: Any) -> Credentials:
    return Credentials(CrawlPlan(seeds=seeds, contact="a@example.org", **plan))


def _sent(credentials: Credentials, url: str, clock: FakeClock) -> dict[str, str]:
    return dict(credentials.join((("Accept", "*/*"),), parse(url), clock.now()))


@pytest.mark.parametrize(
    ("seed", "url", "told"),
    [
        ("https://a.test/", "https://a.test/deep?x", True), ("https://a.test/", "http://a.test/", False),
        ("https://a.test/", "https://a.test:8443/", False), ("https://a.test/", "https://www.a.test/", False),
        ("https://a.test/", "https://b.test/", False), ("http://a.test/", "https://a.test/", True),
        ("http://a.test:8080/", "https://a.test/", False), ("http://a.test:8080/", "http://a.test:8080/x", True),
    ],
)  # fmt: skip
def test_secrets_go_to_the_seeds_own_origin_and_its_https_only(
    seed: str, url: str, told: bool, clock: FakeClock
) -> None:
    sent = _sent(_credentials(seed, headers=_SECRET), url, clock)

    assert ("Authorization" in sent, "X-Api-Key" in sent) == (told, told)


def test_harmless_headers_go_to_all_and_replace_ours(clock: FakeClock) -> None:
    credentials = _credentials("https://a.test/", headers=(("accept", "text/html"), ("Accept-Language", "fr")))

    assert _sent(credentials, "https://elsewhere.test/", clock) == {"accept": "text/html", "Accept-Language": "fr"}


@pytest.mark.parametrize(
    "name", ["User-Agent", "from", "Host", "If-None-Match", "Range", "Connection", "Content-Length"]
)
def test_headers_of_the_crawl_itself_are_refused(name: str) -> None:
    with pytest.raises(Invalid, match=name):
        _credentials("https://a.test/", headers=((name, "x"),))


def test_a_cookie_goes_back_to_the_host_and_port_that_set_it(clock: FakeClock) -> None:
    credentials = _credentials("http://a.test:8080/")
    credentials.keep(parse("http://a.test:8080/x"), ["visit=1; Path=/"], clock.now())

    assert _sent(credentials, "http://a.test:8080/y", clock)["Cookie"] == "visit=1"
    for other in ("http://a.test/", "http://a.test:8081/", "http://b.test:8080/", "https://a.test/"):
        assert "Cookie" not in _sent(credentials, other, clock)


def test_a_cookie_that_came_over_tls_never_goes_out_in_the_clear_but_one_that_did_may_go_up(clock: FakeClock) -> None:
    credentials = _credentials("https://a.test/")
    credentials.keep(parse("https://a.test/"), ["safe=1; Path=/"], clock.now())
    credentials.keep(parse("http://a.test/"), ["plain=1; Path=/"], clock.now())

    assert _sent(credentials, "http://a.test/", clock)["Cookie"] == "plain=1"
    assert set(_sent(credentials, "https://a.test/", clock)["Cookie"].split("; ")) == {"safe=1", "plain=1"}


_JAR = "a.test\tFALSE\t/\tFALSE\t0\tsession\tmine\n.a.test\tTRUE\t/\tFALSE\t0\twide\tyes\n"


def test_the_users_cookies_survive_a_flood_and_give_way_to_newer_ones_of_their_name(clock: FakeClock) -> None:
    credentials = _credentials("https://a.test/", cookies=_JAR)
    credentials.keep(parse("https://a.test/"), [f"c{n}={n}; Path=/" for n in range(1000)], clock.now())

    assert "session=mine" in _sent(credentials, "https://a.test/", clock)["Cookie"].split("; ")
    credentials.keep(parse("https://a.test/"), ["session=renewed; Path=/"], clock.now())
    pairs = _sent(credentials, "https://a.test/", clock)["Cookie"].split("; ")
    assert [pair for pair in pairs if pair.startswith("session=")] == ["session=renewed"]


def test_the_users_cookies_stay_on_https_where_every_seed_is(clock: FakeClock) -> None:
    https, http = _credentials("https://a.test/", cookies=_JAR), _credentials("http://a.test/", cookies=_JAR)

    assert "Cookie" not in _sent(https, "http://a.test/", clock)
    assert _sent(https, "https://sub.a.test/", clock)["Cookie"] == "wide=yes"
    assert "session=mine" in _sent(http, "http://a.test/", clock)["Cookie"]
    assert "Cookie" not in _sent(http, "http://a.test:8080/", clock)


def test_plain_http_cannot_set_a_cookie_over_a_secure_one_of_the_users(clock: FakeClock) -> None:
    credentials = _credentials("https://a.test/", cookies="a.test\tFALSE\t/\tTRUE\t0\tsession\tmine\n")

    credentials.keep(parse("http://a.test/"), ["session=theirs"], clock.now())

    assert _sent(credentials, "https://a.test/", clock)["Cookie"] == "session=mine"


def test_a_cookie_header_of_the_users_own_is_one_header_with_the_rest(clock: FakeClock) -> None:
    credentials = _credentials("https://a.test/", headers=(("Cookie", "mine=1"),))
    credentials.keep(parse("https://a.test/"), ["theirs=2; Path=/"], clock.now())

    joined = credentials.join((), parse("https://a.test/"), clock.now())
    assert joined == (("Cookie", "mine=1; theirs=2"),)


def test_a_bad_line_of_a_cookie_file_is_named_without_its_secret() -> None:
    with pytest.raises(Invalid, match="line 2") as refusal:
        _credentials("https://a.test/", cookies="a.test\tFALSE\t/\tFALSE\t0\ta\t1\na.test FALSE / hunter2\n")

    assert "hunter2" not in str(refusal.value)


def test_cookies_of_many_ports_are_bounded(clock: FakeClock) -> None:
    credentials = _credentials("http://a.test/")
    for port in range(20_001, 20_101):
        credentials.keep(parse(f"http://a.test:{port}/"), ["x=1; Path=/"], clock.now())

    sent = [port for port in range(20_001, 20_101) if "Cookie" in _sent(credentials, f"http://a.test:{port}/", clock)]
    assert len(sent) == 8


def test_what_is_archived_names_the_users_secrets_and_leaves_out_their_values() -> None:
    headers = (("Authorization", "Bearer hunter2"), ("Accept-Language", "fr"))
    sent = b"GET /Authorization: HTTP/1.1\r\nauthorization: Bearer hunter2\r\nAccept-Language: fr\r\n\r\n"
    kept = _credentials("https://a.test/", headers=headers).hidden(sent)

    assert b"hunter2" not in kept
    assert b"\r\nauthorization: [redacted]\r\nAccept-Language: fr\r\n\r\n" in kept
    assert kept.startswith(b"GET /Authorization: HTTP/1.1\r\n")
    assert _credentials("https://a.test/").hidden(sent) is sent, "and without secrets nothing is touched"
