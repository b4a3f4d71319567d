"""Retry-After: both spellings, the clamp, and the nonsense that servers send."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.fetch.endings import MAX_WAIT_S, parse_retry_after, read_retry_after

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("0", 0.0),
        ("120", 120.0),
        ("  120\t", 120.0),
        ("1.5", 1.5),
        ("00000000000000000000000000000090", 90.0),
        ("86400", 86_400.0),
        ("Thu, 01 Jan 2026 00:01:00 GMT", 60.0),
        ("Thursday, 01-Jan-26 00:01:00 GMT", 60.0),
        ("Thu Jan  1 00:01:00 2026", 60.0),
        ("Thu, 01 Jan 2026 00:00:00 GMT", 0.0),
    ],
)
def test_a_wish_within_a_day_is_kept(value: str, seconds: float) -> None:
    assert read_retry_after(value, NOW) == (seconds, False)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("99999999999", MAX_WAIT_S),
        ("9" * 100_000, MAX_WAIT_S),
        ("86401", MAX_WAIT_S),
        ("-1", 0.0),
        ("-99999999999", 0.0),
        ("Mon, 01 Jan 1900 00:00:00 GMT", 0.0),
        ("Fri, 31 Dec 9999 23:59:59 GMT", MAX_WAIT_S),
        ("Fri, 02 Jan 2026 00:00:01 GMT", MAX_WAIT_S),
    ],
)
def test_a_wish_beyond_the_bounds_is_clamped_and_said_to_be(value: str, seconds: float) -> None:
    assert read_retry_after(value, NOW) == (seconds, True)


@pytest.mark.parametrize(
    "value",
    [
        None,
        "",
        "NaN",
        "inf",
        "1e9",
        "0x10",
        "1_000",
        "١٢",
        "soon",
        "soon please now",
        "12 seconds",
        "Thu, 99 Jan 2026 00:01:00 GMT",
        "Thu, 01 Jan 2026 99:01:00 GMT",
        "Thu, 01 Jan 2026 00:01:00 +9999",
        "Thu, " + "1 " * 50_000,
    ],
)
def test_nonsense_is_no_wish(value: str | None) -> None:
    assert parse_retry_after(value, NOW) is None


def test_the_short_form_gives_the_seconds_alone() -> None:
    assert parse_retry_after("99999999999", NOW) == MAX_WAIT_S


@settings(deadline=None, max_examples=100)
@given(st.one_of(st.text(max_size=60), st.from_regex(r"[A-Z][a-z]{2},? [0-9A-Za-z :+-]{8,40}", fullmatch=True)))
def test_no_header_makes_it_raise_or_leave_the_bounds(value: str) -> None:
    seconds = parse_retry_after(value, NOW)

    assert seconds is None or 0.0 <= seconds <= MAX_WAIT_S
