"""How long to leave a domain alone between two requests: pure. Whether an address is private is decided elsewhere."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from holdfast.types import CircuitState

MIN_DELAY_S = 1.0
"""No shorter delay outside an explicitly allowed private network."""
MAX_PENALTY = 64.0
"""Slow-down after which a server's 429 changes nothing any more: about a minute at the default delay."""
RELAX = 0.8
"""Factor of each good answer on the penalty: three forgive one doubling."""
MAX_RETRY_AFTER_S = 86_400.0
"""Longest Retry-After that is believed; a server must not be able to park a crawl for years."""


def floor_delay(asked_s: float, *, is_private: bool) -> float:
    """Return the delay to keep: what was asked for, and at least a second outside an allowed private network."""
    return max(asked_s, 0.0 if is_private else MIN_DELAY_S)


def next_slot(*, started_at: datetime, now: datetime, delay_s: float, penalty: float = 1.0,
              retry_after_s: float | None = None) -> datetime:  # fmt: skip
    """Return when a domain may be asked again, given the start of its last request and the moment of its answer.

    The delay counts from start to start. A server's Retry-After counts from its answer and wins over our own delay, but
    never shortens it.
    """
    own = started_at + timedelta(seconds=delay_s * max(penalty, 1.0))
    if retry_after_s is None:
        return own
    return max(own, now + timedelta(seconds=min(max(retry_after_s, 0.0), MAX_RETRY_AFTER_S)))


def penalise(circuit: CircuitState, *, most: float = MAX_PENALTY) -> CircuitState:
    """Return the state after a 429 or 503: twice as slow, up to a cap."""
    return replace(circuit, penalty=min(max(circuit.penalty, 1.0) * 2.0, most))


def relax(circuit: CircuitState) -> CircuitState:
    """Return the state after a good answer: a little faster, never faster than the delay itself."""
    if circuit.penalty <= 1.0:
        return circuit
    penalty = circuit.penalty * RELAX
    return replace(circuit, penalty=penalty if penalty > 1.05 else 1.0)
