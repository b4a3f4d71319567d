"""The breaker of a domain: when it opens, when it may be tried, when it closes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from holdfast.frontier.politeness import (
    Circuit,
    gives_up,
    mark_unreachable,
    on_failure,
    on_success,
    open_until,
    unreachable_for,
)
from holdfast.types import CircuitState

NOW = datetime(2026, 9, 1, 12, 0, tzinfo=UTC)


def _after(events: str, *, apart_s: float = 1.0) -> tuple[CircuitState, datetime]:
    """Return the circuit after failures (f) and successes (s), each some seconds after the last."""
    circuit, now = CircuitState(), NOW
    for event in events:
        now += timedelta(seconds=apart_s)
        circuit = on_success(circuit) if event == "s" else on_failure(circuit, now=now)
    return circuit, now


def test_five_failures_in_a_row_open_it() -> None:
    assert _after("ffff")[0].state == Circuit.CLOSED
    assert _after("fffff")[0].state == Circuit.OPEN


def test_a_success_starts_the_count_anew() -> None:
    assert _after("ffffsffff")[0].state == Circuit.CLOSED


def test_it_stays_open_for_a_minute_and_then_is_on_trial() -> None:
    circuit, now = _after("fffff")

    assert open_until(circuit, now=now) == now + timedelta(seconds=60)
    later = now + timedelta(seconds=60)
    assert open_until(circuit, now=later) is None


def test_two_successes_on_trial_close_it() -> None:
    circuit, now = _after("fffffs", apart_s=61)
    assert circuit.state == Circuit.HALF_OPEN
    assert open_until(circuit, now=now) is None

    assert _after("fffffss", apart_s=61)[0] == CircuitState()


def test_any_failure_on_trial_opens_it_at_once() -> None:
    for events in ("ffffff", "fffffsf"):
        circuit, now = _after(events, apart_s=61)
        assert circuit.state == Circuit.OPEN, events
        assert circuit.opened_at == now
        assert circuit.successes == 0


def test_after_it_closed_it_takes_five_failures_again() -> None:
    assert _after("fffffssffff", apart_s=61)[0].state == Circuit.CLOSED


def test_the_slow_down_outlives_the_circuit() -> None:
    circuit = CircuitState(state="half_open", failures=5, successes=1, opened_at=NOW, penalty=8.0)

    assert on_success(circuit) == CircuitState(penalty=8.0)


def test_a_good_answer_of_a_domain_in_order_changes_nothing() -> None:
    circuit = CircuitState()

    assert on_success(circuit) is circuit


def test_it_is_unreachable_from_the_moment_it_opened() -> None:
    circuit, now = _after("ffffffff", apart_s=61)
    opened = NOW + timedelta(seconds=5 * 61)

    assert circuit.unreachable_since == opened
    assert unreachable_for(circuit, now=now, since=NOW) == now - opened
    assert unreachable_for(on_success(circuit), now=now, since=NOW) == timedelta()


def test_an_outage_of_yesterday_counts_from_when_this_execution_asked() -> None:
    circuit = CircuitState(state="open", opened_at=NOW - timedelta(days=1), unreachable_since=NOW - timedelta(days=1))

    assert unreachable_for(circuit, now=NOW + timedelta(minutes=3), since=NOW) == timedelta(minutes=3)


def test_an_unreadable_robots_file_marks_the_first_moment_only() -> None:
    once = mark_unreachable(CircuitState(), now=NOW)

    assert mark_unreachable(once, now=NOW + timedelta(minutes=5)) == once
    assert on_success(once).unreachable_since is None


MINUTE = timedelta(minutes=1)


def _given_up(after_s: float, *, next_s: float = 60.0, since: datetime = NOW) -> bool:
    away = mark_unreachable(CircuitState(), now=NOW)
    now = NOW + timedelta(seconds=after_s)
    return gives_up(away, now=now, since=since, patience_s=1800.0, next_try_at=now + timedelta(seconds=next_s))


def test_a_domain_is_waited_for_as_long_as_was_promised_and_for_the_first_try_after_that() -> None:
    assert not _given_up(0.0)
    assert not _given_up(29 * 60.0)
    assert not _given_up(1799.0), "the try that comes a minute later decides"
    assert _given_up(1800.0)
    assert not _given_up(1800.0, since=NOW + 10 * MINUTE), "yesterday's outage counts not"


def test_there_is_nothing_to_wait_for_if_the_server_named_a_later_moment() -> None:
    assert not _given_up(0.0, next_s=1800.0)
    assert _given_up(0.0, next_s=1861.0)


def test_a_domain_that_was_never_unreachable_is_not_given_up() -> None:
    later = NOW + timedelta(days=1)
    assert not gives_up(CircuitState(), now=later, since=NOW, patience_s=1800.0, next_try_at=later + 90 * MINUTE)


@given(st.text("fs", max_size=40))
def test_its_words_and_figures_always_fit_together(events: str) -> None:
    circuit, now = _after(events, apart_s=61)

    assert circuit.state in set(Circuit)
    assert (circuit.state == Circuit.CLOSED) == (circuit.opened_at is None)
    assert circuit.successes < 2
    assert events[-1:] != "f" or circuit.failures > 0
    assert not events.endswith("ss") or circuit == CircuitState()
    assert open_until(circuit, now=now + timedelta(seconds=60)) is None
