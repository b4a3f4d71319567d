"""The policy around robots.txt: what each answer means, how long it holds, and when to ask again (rows B04 and B05)."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from holdfast.fetch.robots import (
    MAX_BYTES,
    RobotsRead,
    RobotsVerdict,
    needs_fetch,
    next_try_at,
    read_answer,
    verdict,
)
from holdfast.types import FetchProblem, RobotsAnswer, RobotsRecord

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ORIGIN = "https://example.com"
SECOND, HOUR, DAY = timedelta(seconds=1), timedelta(hours=1), timedelta(days=1)
OUTAGE = RobotsRead(origin=ORIGIN, status=503)


def answered(status: int, body: bytes = b"") -> RobotsRead:
    return RobotsRead(origin=ORIGIN, status=status, body=body)


def state_after(*tries: tuple[timedelta, RobotsRead]) -> RobotsRecord:
    state: RobotsRecord | None = None
    for after, read in tries:
        state = read_answer(state, read, NOW + after)
    assert state is not None
    return state


@pytest.mark.parametrize("status", [200, 203, 204, 206, 299])
def test_success_is_rules(status: int) -> None:
    state = read_answer(None, answered(status, b"User-agent: *"), NOW)

    assert state == RobotsRecord(
        origin=ORIGIN,
        answer=RobotsAnswer.RULES,
        fetched_at=NOW,
        checked_at=NOW,
        status=status,
        body=b"User-agent: *",
    )
    assert verdict(state, NOW) is RobotsVerdict.RULES


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410, 418, 451, 499])
def test_a_client_error_means_that_there_is_no_file(status: int) -> None:
    state = read_answer(None, answered(status, b"User-agent: *\nDisallow: /"), NOW)

    assert (state.answer, state.status, state.body, state.failures) == (RobotsAnswer.ALLOW_ALL, status, b"", 0)
    assert verdict(state, NOW) is RobotsVerdict.ALLOW


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504, 599, 600, 999, 304, 302, 100])
def test_too_many_requests_server_errors_and_the_unheard_of_disallow(status: int) -> None:
    state = read_answer(None, answered(status, b"User-agent: *\nAllow: /"), NOW)

    assert (state.answer, state.status, state.body, state.failures) == (RobotsAnswer.UNREACHABLE, status, b"", 1)
    assert verdict(state, NOW) is RobotsVerdict.DISALLOW


@pytest.mark.parametrize("problem", list(FetchProblem))
def test_no_response_disallows_whatever_the_reason(problem: FetchProblem) -> None:
    state = read_answer(None, RobotsRead(origin=ORIGIN, failure=problem), NOW)

    assert verdict(state, NOW) is RobotsVerdict.DISALLOW
    assert state.status is None


def test_a_body_that_broke_off_is_a_failure_although_its_status_was_good() -> None:
    broken = RobotsRead(origin=ORIGIN, status=200, body=b"User-agent: *\nDis", failure=FetchProblem.DISCONNECTED)

    assert verdict(read_answer(None, broken, NOW), NOW) is RobotsVerdict.DISALLOW


def test_a_sixth_redirect_means_that_there_is_no_file() -> None:
    state = read_answer(None, RobotsRead(origin=ORIGIN, status=301, too_many_redirects=True), NOW)

    assert verdict(state, NOW) is RobotsVerdict.ALLOW


def test_a_redirect_that_the_guard_refused_disallows() -> None:
    refused = RobotsRead(origin=ORIGIN, status=302, failure=FetchProblem.ADDRESS_FORBIDDEN)

    assert verdict(read_answer(None, refused, NOW), NOW) is RobotsVerdict.DISALLOW


def test_the_body_is_kept_up_to_the_limit_of_the_parser() -> None:
    state = read_answer(None, answered(200, b"#" * (MAX_BYTES + 1)), NOW)

    assert len(state.body) == MAX_BYTES


def test_without_a_state_nothing_is_known_and_the_file_is_asked_for() -> None:
    assert verdict(None, NOW) is RobotsVerdict.UNKNOWN
    assert needs_fetch(None, NOW)


@pytest.mark.parametrize("status", [200, 404])
def test_an_answer_is_asked_for_anew_after_an_hour(status: int) -> None:
    state = read_answer(None, answered(status), NOW)

    assert next_try_at(state) == NOW + HOUR
    assert not needs_fetch(state, NOW + HOUR - SECOND)
    assert needs_fetch(state, NOW + HOUR)


@pytest.mark.parametrize(("status", "held"), [(200, RobotsVerdict.RULES), (404, RobotsVerdict.ALLOW)])
def test_an_answer_is_never_used_beyond_a_day(status: int, held: RobotsVerdict) -> None:
    state = read_answer(None, answered(status), NOW)

    assert verdict(state, NOW + DAY) is held
    assert verdict(state, NOW + DAY + SECOND) is RobotsVerdict.UNKNOWN
    assert needs_fetch(state, NOW + DAY)


def test_failures_are_retried_for_half_an_hour_at_most_a_minute_apart_and_then_every_hour() -> None:
    state: RobotsRecord | None = None
    at = NOW
    waits: list[timedelta] = []
    while sum(waits, timedelta()) < 2 * HOUR:
        state = read_answer(state, OUTAGE, at)
        waits.append(next_try_at(state) - at)
        assert not needs_fetch(state, next_try_at(state) - SECOND)
        at = next_try_at(state)
        assert needs_fetch(state, at)

    assert waits[:6] == [n * SECOND for n in (2, 4, 8, 16, 32, 60)]
    short = waits[: waits.index(HOUR)]
    assert max(short) == 60 * SECOND
    assert 30 * 60 * SECOND <= sum(short, timedelta()) < 31 * 60 * SECOND


def test_a_failure_long_after_the_last_one_begins_a_new_outage() -> None:
    state: RobotsRecord | None = None
    for _ in range(100):
        state = read_answer(state, OUTAGE, NOW)
    assert state is not None
    assert next_try_at(state) == NOW + HOUR

    again = read_answer(state, OUTAGE, NOW + HOUR)
    assert next_try_at(again) == NOW + HOUR + 2 * SECOND


def test_a_copy_read_within_a_day_stays_in_force_during_an_outage() -> None:
    state = state_after((0 * HOUR, answered(200, b"rules")), (HOUR, OUTAGE), (HOUR + 2 * SECOND, OUTAGE))

    assert verdict(state, NOW + 23 * HOUR) is RobotsVerdict.RULES
    assert (state.body, state.fetched_at, state.checked_at) == (b"rules", NOW, NOW + HOUR + 2 * SECOND)
    assert (state.failures, state.status) == (2, 503)
    assert next_try_at(state) == NOW + HOUR + 6 * SECOND


def test_a_copy_older_than_a_day_is_dropped_by_the_next_failure() -> None:
    state = state_after((0 * HOUR, answered(200, b"rules")), (DAY + SECOND, OUTAGE))

    assert (state.answer, state.body) == (RobotsAnswer.UNREACHABLE, b"")
    assert verdict(state, NOW + DAY + SECOND) is RobotsVerdict.DISALLOW


def test_a_copy_is_asked_for_when_it_expires_and_not_an_hour_later() -> None:
    minutes = timedelta(minutes=1)
    state = state_after((0 * HOUR, answered(200)), *[((23 * 60 + 50) * minutes, OUTAGE)] * 50)

    assert state.failures == 50
    assert next_try_at(state) == NOW + DAY


def test_a_missing_file_stays_missing_for_a_day_of_outage() -> None:
    state = state_after((0 * HOUR, answered(404)), (HOUR, OUTAGE), (HOUR + 2 * SECOND, OUTAGE))

    assert verdict(state, NOW + DAY) is RobotsVerdict.ALLOW
    assert (state.fetched_at, state.failures, next_try_at(state)) == (NOW, 2, NOW + HOUR + 6 * SECOND)
    assert verdict(read_answer(state, OUTAGE, NOW + DAY + SECOND), NOW + DAY + SECOND) is RobotsVerdict.DISALLOW


def test_one_good_answer_ends_an_outage() -> None:
    state = state_after((0 * HOUR, OUTAGE), (2 * SECOND, OUTAGE), (6 * SECOND, answered(404)))

    assert (state.failures, verdict(state, NOW + 6 * SECOND)) == (0, RobotsVerdict.ALLOW)
    assert next_try_at(state) == NOW + 6 * SECOND + HOUR


def test_a_new_answer_replaces_a_copy_of_any_age() -> None:
    state = state_after((0 * HOUR, answered(200, b"old")), (HOUR, answered(200, b"new")))

    assert (state.body, state.fetched_at) == (b"new", NOW + HOUR)


def test_thirty_days_of_outage_still_disallow_and_remember_since_when() -> None:
    state = state_after((0 * HOUR, OUTAGE), (DAY, OUTAGE), (31 * DAY, OUTAGE))

    assert verdict(state, NOW + 40 * DAY) is RobotsVerdict.DISALLOW
    assert (state.fetched_at, state.failures) == (NOW, 1)
    assert needs_fetch(state, NOW + 40 * DAY)


def test_a_state_from_a_clock_that_ran_ahead_is_no_answer() -> None:
    ahead = read_answer(None, answered(200), NOW + 2 * HOUR)

    assert verdict(ahead, NOW) is RobotsVerdict.UNKNOWN
    assert needs_fetch(ahead, NOW)


def test_a_clock_that_differs_by_seconds_does_not_matter() -> None:
    ahead = read_answer(None, answered(200), NOW + 3 * SECOND)

    assert verdict(ahead, NOW) is RobotsVerdict.RULES
    assert not needs_fetch(ahead, NOW)
