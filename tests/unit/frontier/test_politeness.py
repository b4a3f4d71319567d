"""How long a domain is left alone."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from holdfast.frontier.politeness import MAX_PENALTY, delay_between, floor_delay, penalise, relax
from holdfast.types import CircuitState


def test_a_penalty_stretches_the_delay_and_knows_no_less_than_a_second() -> None:
    assert delay_between(2.0, penalty=4.0, is_private=True) == 8.0
    assert delay_between(0.1, penalty=4.0, is_private=True) == 4.0
    assert delay_between(0.1, penalty=1.0, is_private=True) == 0.1
    assert delay_between(0.1, penalty=1.0, is_private=False) == 1.0


@given(asked=st.floats(0, 10_000), penalty=st.floats(0.01, 64), is_private=st.booleans())
def test_no_penalty_makes_the_delay_shorter(asked: float, penalty: float, is_private: bool) -> None:
    assert delay_between(asked, penalty=penalty, is_private=is_private) >= floor_delay(asked, is_private=is_private)


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
