"""How long to leave a domain alone between two requests: pure. Whether an address is private is decided elsewhere."""

from __future__ import annotations

from dataclasses import replace

from holdfast.types import CircuitState

MIN_DELAY_S = 1.0
"""No shorter delay outside an explicitly allowed private network."""
MAX_PENALTY = 64.0
"""Slow-down after which a server's 429 changes nothing any more: about a minute at the default delay."""
RELAX = 0.8
"""Factor of each good answer on the penalty: three forgive one doubling."""


def floor_delay(asked_s: float, *, is_private: bool) -> float:
    """Return the delay to keep: what was asked for, and at least a second outside an allowed private network."""
    return max(asked_s, 0.0 if is_private else MIN_DELAY_S)


def delay_between(asked_s: float, *, penalty: float, is_private: bool) -> float:
    """Return the seconds between the starts of two requests, with the slow-down after 429 and 503."""
    delay_s = floor_delay(asked_s, is_private=is_private)
    return delay_s if penalty <= 1.0 else max(delay_s, MIN_DELAY_S) * penalty


def penalise(circuit: CircuitState, *, most: float = MAX_PENALTY) -> CircuitState:
    """Return the state after a 429 or 503: twice as slow, up to a cap."""
    return replace(circuit, penalty=min(max(circuit.penalty, 1.0) * 2.0, most))


def relax(circuit: CircuitState) -> CircuitState:
    """Return the state after a good answer: a little faster, never faster than the delay itself."""
    if circuit.penalty <= 1.0:
        return circuit
    penalty = circuit.penalty * RELAX
    return replace(circuit, penalty=penalty if penalty > 1.05 else 1.0)
