"""One robots.txt beside its rules: delays, sitemaps, notes, size, encodings, and hostile bytes (rows B01 to B08)."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.fetch.robots import MAX_BYTES, MAX_NOTES, RobotsFile, capped, product_token


def parse(text: str, agent: str = "holdfast") -> RobotsFile:
    return RobotsFile.parse(text.encode(), agent)


def test_a_decision_shows_the_rule_as_written() -> None:
    robots = parse("User-agent: *\nDISALLOW:   /caf%c3%A9   # closed\nAllow: /caf%C3%A9/open")

    assert robots.decide("/café/back") == (False, "Disallow: /caf%c3%A9", 2)
    assert robots.decide("/café/open") == (True, "Allow: /caf%C3%A9/open", 3)
    assert robots.decide("/") == (True, None, None)


def test_a_rule_is_shown_without_what_a_terminal_or_a_database_would_choke_on() -> None:
    robots = RobotsFile.parse(b"User-agent: *\nDisallow: /a\x00\x1b[31m\xe9", "holdfast")

    assert robots.decide("/a%00%1B[31m%E9").rule == "Disallow: /a\ufffd\ufffd[31m\ufffd"


def test_a_long_rule_is_shown_in_part() -> None:
    robots = parse("User-agent: *\nDisallow: /*" + "a" * 5_000)

    assert len(robots.decide("/" + "a" * 5_000).rule or "") < 600


@pytest.mark.parametrize(
    ("text", "group"),
    [
        ("User-agent: *\nDisallow: /", "*"),
        ("User-agent: *\nDisallow: /\nUser-agent: HoldFast/2.0\nAllow: /", "holdfast"),
        ("User-agent: otherbot\nDisallow: /", None),
        ("", None),
    ],
)
def test_the_group_that_applies_is_told(text: str, group: str | None) -> None:
    assert parse(text).group == group


@pytest.mark.parametrize(
    ("agent", "token"),
    [
        ("holdfast", "holdfast"),
        ("Holdfast/0.1 (+https://example.org)", "holdfast"),
        (" my_bot-x ", "my_bot-x"),
        ("*", ""),
        ("", ""),
        ("(compatible)", ""),
    ],
)
def test_a_user_agent_is_reduced_to_its_token(agent: str, token: str) -> None:
    assert product_token(agent) == token


def test_an_agent_without_a_token_hears_the_star_only() -> None:
    robots = parse("User-agent:\nDisallow: /a\nUser-agent: *\nDisallow: /b", agent="")

    assert robots.decide("/a").allowed
    assert not robots.decide("/b").allowed


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("10", 10.0),
        ("0.5", 0.5),
        (".5", 0.5),
        ("0.0001", 0.0001),
        ("0", 0.0),
        ("1e99", 86_400.0),
        ("1e999", 86_400.0),
        ("99999999999", 86_400.0),
        ("5 # five", 5.0),
    ],
)
def test_a_crawl_delay_is_read(value: str, seconds: float) -> None:
    assert parse(f"User-agent: *\nCrawl-delay: {value}").crawl_delay == seconds


@pytest.mark.parametrize(
    "value", ["", "-1", "NaN", "nan", "inf", "ten", "5s", "1,5", "0x10", "1_0", "١٠", "9" * 33, "--", "1e"]
)
def test_a_crawl_delay_that_is_no_number_of_seconds_is_left_out_and_noted(value: str) -> None:
    robots = parse(f"User-agent: *\nCrawl-delay: {value}")

    assert robots.crawl_delay is None
    assert robots.notes == ("line 2: crawl-delay is no number of seconds",)


def test_of_many_delays_the_longest_is_kept() -> None:
    assert parse("User-agent: *\n" + "\n".join(f"Crawl-delay: {n}" for n in (3, 9, 1))).crawl_delay == 9.0


def test_a_delay_belongs_to_the_group_that_applies() -> None:
    text = "User-agent: *\nCrawl-delay: 30\nDisallow:\n\nUser-agent: holdfast\nDisallow: /x\n"

    assert parse(text).crawl_delay is None
    assert parse(text, "otherbot").crawl_delay == 30.0


def test_a_bot_with_nothing_but_a_delay_does_not_hand_it_to_the_next() -> None:
    text = "User-agent: slowbot\nCrawl-delay: 3600\n\nUser-agent: *\nDisallow: /x\n"

    assert parse(text).crawl_delay is None
    assert parse(text, "slowbot").crawl_delay == 3600.0


def test_a_cap_that_bites_is_told() -> None:
    assert capped(5.0, 30.0) == (5.0, False)
    assert capped(30.0, 30.0) == (30.0, False)
    assert capped(86_400.0, 30.0) == (30.0, True)


def test_sitemaps_are_kept_as_written_in_order_and_once_whatever_group_they_stand_in() -> None:
    robots = parse("Sitemap: /a.xml\nUser-agent: otherbot\nSITEMAP:/b.xml\nDisallow: /\nSitemap: /a.xml\nSitemap:\n")

    assert robots.sitemaps == ("/a.xml", "/b.xml")


def test_robots_keeps_every_sitemap_line() -> None:
    robots = parse("".join(f"Sitemap: file:///etc/{n}\n" for n in range(10_000)))

    assert robots.sitemaps == tuple(f"file:///etc/{n}" for n in range(10_000))
    assert robots.notes == ()


@pytest.mark.parametrize("value", ["https://example.com/" + "a" * 2_048, "https://example.com/\x00", "/\x7f"])
def test_a_sitemap_that_cannot_be_an_address_is_left_out_and_noted(value: str) -> None:
    robots = parse(f"Sitemap: {value}")

    assert robots.sitemaps == ()
    assert robots.notes == ("line 1: a sitemap address that cannot be one",)


def test_an_html_page_is_noted() -> None:
    assert parse("\n <HTML><body>\nUser-agent: *\nDisallow: /").notes == ("an HTML page, not a robots.txt: no rules",)


def test_a_rule_that_can_match_nothing_is_noted() -> None:
    assert parse("User-agent: *\nDisallow: private/").notes == ("line 2: starts with neither / nor *",)


def test_notes_are_bounded() -> None:
    robots = parse("User-agent: *\n" + "Crawl-delay: x\n" * 1_000 + "Disallow: y\n" * 1_000)

    assert len(robots.notes) == MAX_NOTES


def lines_of(size: int) -> bytes:
    """Return a file of exactly this size whose last line forbids /last."""
    start, last = b"User-agent: *\n", b"Disallow: /last\n"
    filler = b"# filler filler\n"
    room = size - len(start) - len(last)
    body = start + filler * (room // len(filler))
    return body + b"#" * (size - len(last) - len(body) - 1) + b"\n" + last


def test_at_least_five_hundred_kibibytes_are_parsed() -> None:
    robots = RobotsFile.parse(lines_of(500 * 1_024), "holdfast")

    assert not robots.decide("/last").allowed
    assert robots.notes == ()


def test_what_comes_after_512_kibibytes_is_left_out_and_noted() -> None:
    robots = RobotsFile.parse(lines_of(MAX_BYTES + 100), "holdfast")

    assert robots.decide("/last").allowed
    assert robots.notes == (f"cut after {MAX_BYTES} bytes",)


def test_the_line_that_the_cut_goes_through_is_left_out() -> None:
    body = b"User-agent: *\nDisallow: /x\n" + b"#" * (MAX_BYTES - 46) + b"\nAllow: /x/secret/place\n"
    robots = RobotsFile.parse(body, "holdfast")

    assert b"Allow: /x/" in body[:MAX_BYTES]
    assert not robots.decide("/x/secret/place").allowed


def test_a_hundred_megabytes_cost_no_more_than_the_limit() -> None:
    line = b"User-agent: *\nDisallow: /x\n"
    robots = RobotsFile.parse(line * (100 * 1024 * 1024 // len(line)), "holdfast")

    assert robots.decide("/x").line == 2


def test_a_file_of_one_endless_line_has_no_rules() -> None:
    robots = RobotsFile.parse(b"User-agent: *" + b" " * 2 * MAX_BYTES + b"Disallow: /", "holdfast")

    assert robots.decide("/").allowed


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be"])
def test_utf_16_is_read_in_both_orders_and_noted(encoding: str) -> None:
    robots = RobotsFile.parse("\ufeffUser-agent: *\r\nDisallow: /x\r\n".encode(encoding), "holdfast")

    assert robots.decide("/x").line == 2
    assert robots.notes == ("UTF-16, not UTF-8",)


SCRAPS = st.sampled_from(
    b"User-agent: *|Disallow: /|Allow: |Crawl-delay: |<html|\n|\r|*|$|%|%4|#|\xff\xfe|\xef\xbb\xbf|\xe9".split(b"|")
)


@settings(deadline=None, max_examples=150)
@given(st.lists(SCRAPS | st.binary(max_size=6), max_size=30).map(b"".join), st.text(max_size=20), st.text(max_size=30))
def test_no_bytes_no_agent_and_no_address_make_it_raise(body: bytes, agent: str, target: str) -> None:
    robots = RobotsFile.parse(body, agent)
    decision = robots.decide(target)

    assert decision.allowed or decision.rule
    assert decision.rule is None or decision.rule.isprintable()


@settings(deadline=None, max_examples=30)
@given(st.text(alphabet=st.characters(codec=None), max_size=20))
def test_lone_surrogates_in_an_address_are_compared_like_any_octet(target: str) -> None:
    robots = parse("User-agent: *\nDisallow: /*\nAllow: /\ud7ff")

    assert robots.decide("/" + target).line in (2, 3)


@pytest.mark.parametrize(
    "text",
    [
        "User-agent: * foo\nDisallow: /x",
        "User-agent: *\tand everybody else\nDisallow: /x",
        "User-agent *\nDisallow /x",
        "User-agent holdfast\nDisallow /x",
        "User-agent\tholdfast\nDisallow: /x",
    ],
)
def test_what_is_badly_written_is_obeyed_as_it_was_meant(text: str) -> None:
    assert not parse(text).decide("/x").allowed


def test_other_lines_without_a_colon_are_read_too_and_prose_is_not() -> None:
    robots = parse("User-agent *\nCrawl-delay 7\nSitemap https://example.com/s.xml\nPlease disallow /x\nRobots allow")

    assert (robots.crawl_delay, robots.sitemaps) == (7.0, ("https://example.com/s.xml",))
    assert robots.decide("/x").allowed


def test_a_name_that_only_begins_with_a_star_is_another_robot() -> None:
    assert parse("User-agent: *foo\nDisallow: /").decide("/x").allowed
