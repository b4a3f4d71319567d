"""Replay paths, timestamps and places: taken apart, put together, refused."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.clock import digits14
from holdfast.errors import Invalid
from holdfast.replay.address import (
    AddressListing,
    BadAcceptDatetime,
    BadReplayAddress,
    BadTimestamp,
    Modifier,
    WantedAddress,
    day_in_words,
    earliest,
    http_date,
    latest,
    parse_http_date,
    read_path,
    replay_path,
)
from holdfast.replay.finding import prefix_range
from holdfast.replay.origins import origins_of


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        ("20240301120000/http://example.org/a?b=c", WantedAddress("20240301120000", Modifier.PAGE, "http://example.org/a?b=c")),
        ("2024im_/https://example.org/i.png", WantedAddress("2024", Modifier.IMAGE, "https://example.org/i.png")),
        ("2id_/example.org", WantedAddress("2", Modifier.RAW, "http://example.org")),
        ("2024zz_/http://x/", WantedAddress("2024", Modifier.OBJECT, "http://x/")),
        ("2024/http:/example.org/merged", WantedAddress("2024", Modifier.PAGE, "http://example.org/merged")),
        ("2024/http%3A%2F%2Fexample.org%2Fa", WantedAddress("2024", Modifier.PAGE, "http://example.org/a")),
        ("2024/HTTP://Example.org/", WantedAddress("2024", Modifier.PAGE, "http://Example.org/")),
        ("2024///example.org/", WantedAddress("2024", Modifier.PAGE, "http://example.org/")),
        ("2024/example.org:8080/x", WantedAddress("2024", Modifier.PAGE, "http://example.org:8080/x")),
        ("2024/urn:x-wacz:1", WantedAddress("2024", Modifier.PAGE, "urn:x-wacz:1")),
        ("http://example.org/", WantedAddress("", Modifier.PAGE, "http://example.org/")),
        ("192.0.2.1/x", WantedAddress("", Modifier.PAGE, "http://192.0.2.1/x")),
        ("123456789012345/x", WantedAddress("", Modifier.PAGE, "http://123456789012345/x")),
        ("*/http://example.org/", AddressListing("", "http://example.org/", False)),
        ("2024*/http://example.org/", AddressListing("2024", "http://example.org/", False)),
        ("%2A/http://example.org/", AddressListing("", "http://example.org/", False)),
        ("*/http://example.org/a*", AddressListing("", "http://example.org/a", True)),
        ("*/http://example.org/*?after=org%2Cx", AddressListing("", "http://example.org/", True, "org,x")),
    ],
)  # fmt: skip
def test_a_path_says_what_is_wanted(path: str, wanted: WantedAddress | AddressListing) -> None:
    assert read_path(path) == wanted


@pytest.mark.parametrize("path", ["", "2024", "2024/", "2024im_/", "*/", "2024/" + "x" * 9000])
def test_a_path_without_an_address_is_refused(path: str) -> None:
    with pytest.raises(BadReplayAddress):
        read_path(path)


@given(st.text(max_size=60))
def test_any_path_is_read_or_refused(path: str) -> None:
    try:
        wanted = read_path(path)
    except Invalid:
        return
    assert wanted.url


@given(st.text(alphabet="ab:/?&=#%é \"'<>\\\r\n*.", min_size=1, max_size=40))
def test_a_replay_path_is_safe_in_headers_and_markup(url: str) -> None:
    path = replay_path("2024", "im_", url)

    assert path.isascii()
    assert not set(path) & set(' \r\n<>"\\')


@pytest.mark.parametrize(
    ("digits", "first", "last"),
    [
        ("2024", (2024, 1, 1, 0, 0, 0), (2024, 12, 31, 23, 59, 59)),
        ("202402", (2024, 2, 1, 0, 0, 0), (2024, 2, 29, 23, 59, 59)),
        ("20230231", (2023, 2, 28, 0, 0, 0), (2023, 2, 28, 23, 59, 59)),
        ("20241399999999", (2024, 12, 31, 23, 59, 59), (2024, 12, 31, 23, 59, 59)),
        ("0", (1, 1, 1, 0, 0, 0), (999, 12, 31, 23, 59, 59)),
        ("20240301120005", (2024, 3, 1, 12, 0, 5), (2024, 3, 1, 12, 0, 5)),
    ],
)  # fmt: skip
def test_missing_digits_are_filled_in(digits: str, first: tuple[int, ...], last: tuple[int, ...]) -> None:
    assert earliest(digits).timetuple()[:6] == first
    assert latest(digits).timetuple()[:6] == last


@pytest.mark.parametrize("digits", ["", "x", "2024-01", "١٢٣٤", "123456789012345"])
def test_what_is_no_timestamp_is_refused(digits: str) -> None:
    with pytest.raises(BadTimestamp):
        earliest(digits)


@given(st.datetimes(timezones=st.just(UTC)))
def test_dates_of_http_and_of_archives_are_read_back(moment: datetime) -> None:
    whole = moment.replace(microsecond=0)

    assert parse_http_date(http_date(moment)) == whole
    assert earliest(digits14(moment)) == whole


@pytest.mark.parametrize("text", ["", "garbage", "2024-01-01", "Mon, 99 Jan 2024 00:00:00 GMT", "Mon, 01 Jan 2024"])
def test_an_accept_datetime_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(BadAcceptDatetime):
        parse_http_date(text)


def test_the_year_zero_is_clamped() -> None:
    assert parse_http_date("Sat, 01 Jan 0000 00:00:00 GMT").year == 1


def test_a_prefix_covers_what_begins_like_it_and_nothing_else() -> None:
    low, high = prefix_range("http://example.org/a/")

    assert low <= "org,example)/a/b" < high
    assert not low <= "org,example)/ab" < high


@pytest.mark.parametrize("last", ["\ud7ff", "\U0010ffff", "a\U0010ffff\U0010ffff", "\x7f", "z"])
def test_a_prefix_of_any_character_ends_before_one_that_a_database_takes(last: str) -> None:
    low, high = prefix_range(f"urn:{last}")

    high.encode()
    assert low <= f"urn:{last}" <= f"urn:{last}more" < high


def test_a_place_knows_the_two_origins() -> None:
    app = origins_of("http", "localhost:8060", replay_origin=None)
    replay = origins_of("http", "replay.localhost:8060", replay_origin=None)

    assert (app.origin, app.prefix, app.is_replay) == (
        "http://replay.localhost:8060",
        "http://replay.localhost:8060",
        False,
    )
    assert (replay.prefix, replay.is_replay, replay.app) == ("", True, "http://localhost:8060")


def test_a_configured_origin_is_the_replay_host() -> None:
    outside = origins_of("https", "archive.example", replay_origin="https://replay.example")
    inside = origins_of(
        "http", "replay.example", replay_origin="https://replay.example", site_url="https://archive.example/"
    )

    assert outside.memento("2024", "", "http://x/") == "https://replay.example/web/2024/http://x/"
    assert (inside.is_replay, inside.app) == (True, "https://archive.example")


def test_a_day_is_told_in_the_words_of_our_pages_not_of_the_machine() -> None:
    assert day_in_words(datetime(2024, 3, 1, 23, 59, tzinfo=UTC)) == "1 March 2024"
    assert day_in_words(datetime(987, 12, 31, tzinfo=UTC)) == "31 December 0987"
