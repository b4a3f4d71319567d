"""How long a domain is left alone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.frontier.politeness import MAX_PENALTY, floor_delay, next_slot, penalise, relax
from holdfast.types import CircuitState

START = datetime(2026, 9, 1, 12, 0, tzinfo=UTC)
seconds = st.floats(0, 10_000)


def _wait(**changes: float | None) -> float:
    facts: dict[str, float | None] = {"delay_s": 1.0, "penalty": 1.0, "retry_after_s": None, "took_s": 0.2} | changes
    now = START + timedelta(seconds=facts.pop("took_s") or 0.0)
    slot = next_slot(started_at=START, now=now, **facts)  # type: ignore[arg-type]
    return (slot - START).total_seconds()


def test_the_delay_counts_from_start_to_start() -> None:
    assert _wait(delay_s=2.0, took_s=1.5) == 2.0


def test_a_penalty_stretches_the_delay() -> None:
    assert _wait(delay_s=2.0, penalty=4.0) == 8.0


def test_retry_after_counts_from_the_answer() -> None:
    assert _wait(retry_after_s=30.0, took_s=5.0) == 35.0


@pytest.mark.parametrize("wish", [0.0, -5.0, 0.5])
def test_retry_after_never_shortens_the_delay(wish: float) -> None:
    assert _wait(delay_s=10.0, retry_after_s=wish) == 10.0


def test_nobody_parks_a_crawl_for_years() -> None:
    assert _wait(retry_after_s=1e9, took_s=0.0) == 86_400.0


@given(delay=seconds, penalty=st.floats(0.01, 64), wish=st.one_of(st.none(), st.floats(-100, 1e12)), took=seconds)
def test_no_answer_makes_the_next_slot_earlier_than_the_delay(
    delay: float, penalty: float, wish: float | None, took: float
) -> None:
    assert _wait(delay_s=delay, penalty=penalty, retry_after_s=wish, took_s=took) >= delay * max(penalty, 1.0) - 1e-5


def test_less_than_a_second_needs_a_private_network() -> None:
    assert floor_delay(0.1, is_private=False) == 1.0
    assert floor_delay(0.1, is_private=True) == 0.1
    assert floor_delay(5.0, is_private=False) == 5.0


def test_a_penalty_doubles_up_to_a_cap_and_wears_off() -> None:
    circuit = CircuitState()
    penalties = []
    for _ in range(8):
        circuit = penalise(circuit)
        penalties.append(circuit.penalty)

    assert penalties == [2.0, 4.0, 8.0, 16.0, 32.0, MAX_PENALTY, MAX_PENALTY, MAX_PENALTY]
    answers = 0
    while circuit.penalty > 1.0:
        circuit, answers = relax(circuit), answers + 1
    assert 15 <= answers <= 20
    assert relax(circuit) is circuit
