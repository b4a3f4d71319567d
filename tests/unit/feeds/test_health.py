"""What an answer means for a feed, by the tables of 3.5: classes, thresholds, waits."""

from __future__ import annotations

from datetime import timedelta

import pytest

from holdfast.feeds.health import (
    DISABLE_AFTER,
    FeedHealth,
    Trouble,
    after_failure,
    after_success,
    limited_wait,
    trouble_of,
)
from holdfast.types import Outcome
from tests.clock import FakeClock

_INTERVAL = timedelta(minutes=15)


@pytest.mark.parametrize(
    ("outcome", "status", "trouble"),
    [
        (Outcome.SUCCESS, 200, None),
        (Outcome.SUCCESS, 304, None),
        (Outcome.SUCCESS, 301, None),
        (Outcome.BLOCKED_4XX, 429, "rate_limited"),
        (Outcome.BLOCKED_4XX, 403, "forbidden"),
        (Outcome.BLOCKED_4XX, 404, "not_found"),
        (Outcome.BLOCKED_4XX, 410, "gone"),
        (Outcome.BLOCKED_5XX, 500, "upstream_failure"),
        (Outcome.BLOCKED_5XX, 503, "upstream_failure"),
        (Outcome.BLOCKED_5XX, 599, "upstream_failure"),
        (Outcome.BLOCKED_5XX, 600, "unexpected"),
        (Outcome.BLOCKED_4XX, 401, "unexpected"),
        (Outcome.BLOCKED_4XX, 418, "unexpected"),
        (Outcome.FAILED, 304, "unexpected"),
        (Outcome.FAILED, 200, "network"),
        (Outcome.FAILED, None, "network"),
        (Outcome.TIMEOUT, None, "network"),
        (Outcome.BLOCKED_ROBOTS, None, "unexpected"),
        (Outcome.EXCLUDED, None, "unexpected"),
    ],
)
def test_an_ending_has_its_class(outcome: Outcome, status: int | None, trouble: str | None) -> None:
    assert trouble_of(outcome, status) == trouble


@pytest.mark.parametrize(
    ("trouble", "polls"),
    [
        (Trouble.NOT_FOUND, 3),
        (Trouble.GONE, 1),
        (Trouble.FORBIDDEN, 5),
        (Trouble.UPSTREAM_FAILURE, 10),
        (Trouble.NETWORK, 10),
        (Trouble.PARSE_ERROR, 5),
        (Trouble.RATE_LIMITED, None),
        (Trouble.UNEXPECTED, None),
    ],
)
def test_a_feed_is_disabled_after_so_many_polls_in_a_row(clock: FakeClock, trouble: Trouble, polls: int | None) -> None:
    health, seen = FeedHealth(), 0
    while health.disabled_at is None and seen < 200:
        health = after_failure(health, trouble, now=clock.now(), interval=_INTERVAL)
        seen += 1

    assert DISABLE_AFTER.get(trouble) == polls
    assert seen == (polls or 200)
    assert (health.next_poll_at is None) == (polls is not None)
    assert health.errors == seen


@pytest.mark.parametrize(
    ("errors", "minutes"),
    [(0, 5), (1, 10), (2, 20), (3, 40), (4, 80), (5, 160), (6, 320), (7, 480), (8, 480), (1000, 480)],
)
def test_a_limited_feed_waits_twice_as_long_each_time_up_to_eight_hours(errors: int, minutes: int) -> None:
    assert limited_wait(errors) == timedelta(minutes=minutes)


def test_retry_after_counts_where_it_asks_for_more(clock: FakeClock) -> None:
    def wait(seconds: float | None) -> timedelta:
        health = after_failure(
            FeedHealth(), Trouble.RATE_LIMITED, now=clock.now(), interval=_INTERVAL, retry_after_s=seconds
        )
        assert health.next_poll_at is not None
        return health.next_poll_at - clock.now()

    assert wait(None) == wait(30.0) == timedelta(minutes=10)
    assert wait(3600.0) == timedelta(hours=1)


def test_another_class_of_trouble_begins_to_count_anew(clock: FakeClock) -> None:
    health = FeedHealth()
    for trouble in (Trouble.NOT_FOUND, Trouble.NOT_FOUND, Trouble.NETWORK, Trouble.NOT_FOUND, Trouble.NOT_FOUND):
        health = after_failure(health, trouble, now=clock.now(), interval=_INTERVAL)

    assert (health.errors, health.disabled_at) == (2, None)


def test_other_troubles_wait_the_usual_time(clock: FakeClock) -> None:
    health = after_failure(FeedHealth(), Trouble.NETWORK, now=clock.now(), interval=_INTERVAL)

    assert health.next_poll_at == clock.now() + _INTERVAL


def test_success_enables_and_clears(clock: FakeClock) -> None:
    assert after_success(now=clock.now(), interval=_INTERVAL) == FeedHealth(next_poll_at=clock.now() + _INTERVAL)


def test_a_feed_that_is_disabled_keeps_the_moment_when_it_was(clock: FakeClock) -> None:
    first = after_failure(FeedHealth(), Trouble.GONE, now=clock.now(), interval=_INTERVAL)
    clock.advance(3600)
    again = after_failure(first, Trouble.GONE, now=clock.now(), interval=_INTERVAL)

    assert again.disabled_at == first.disabled_at
