"""The breaker of one domain: pure changes of a CircuitState. It defers, it never fails a page.

    closed ──(5 failures in a row)──▶ open ──(60 s)──▶ half open ──(2 successes)──▶ closed
                                       ▲                   │
                                       └──(any failure)────┘

An open circuit whose time has come is half open: nobody has to write that moment down.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from enum import StrEnum

from holdfast.types import CircuitState


class Circuit(StrEnum):
    """The words of `CircuitState.state`."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


FAILURES_TO_OPEN = 5
SUCCESSES_TO_CLOSE = 2
RESET_S = 60.0


def on_success(circuit: CircuitState, *, needed: int = SUCCESSES_TO_CLOSE) -> CircuitState:
    """Return the circuit after a good answer: the domain is reachable, whatever else is to be proven."""
    if circuit.state == Circuit.CLOSED:
        if circuit.failures == 0 and circuit.unreachable_since is None:
            return circuit
        return replace(circuit, failures=0, successes=0, unreachable_since=None)
    if circuit.successes + 1 >= needed:
        return CircuitState(penalty=circuit.penalty)
    return replace(circuit, state=Circuit.HALF_OPEN.value, successes=circuit.successes + 1, unreachable_since=None)


def on_failure(circuit: CircuitState, *, now: datetime, threshold: int = FAILURES_TO_OPEN) -> CircuitState:
    """Return the circuit after a failure of the domain. Any failure of one that was not closed opens it anew."""
    failures = min(circuit.failures + 1, 1_000_000)
    if circuit.state == Circuit.CLOSED and failures < threshold:
        return replace(circuit, failures=failures, successes=0)
    return replace(
        circuit, state=Circuit.OPEN.value, failures=failures, successes=0, opened_at=now,
        unreachable_since=circuit.unreachable_since or now,
    )  # fmt: skip


def open_until(circuit: CircuitState, *, now: datetime, reset_s: float = RESET_S) -> datetime | None:
    """Return when the domain may be tried again, or None if it may be asked now."""
    if circuit.state != Circuit.OPEN or circuit.opened_at is None:
        return None
    until = circuit.opened_at + timedelta(seconds=reset_s)
    return until if until > now else None


def unreachable_for(circuit: CircuitState, *, now: datetime, since: datetime) -> timedelta:
    """Return how long the domain has been unreachable, counted from `since` at the earliest.

    The state outlives an execution; `since` is when this one began to ask, so that yesterday's outage gives nobody up.
    """
    if circuit.unreachable_since is None:
        return timedelta()
    return max(timedelta(), now - max(circuit.unreachable_since, since))


def gives_up(
    circuit: CircuitState,
    *,
    now: datetime,
    since: datetime,
    patience_s: float,
    next_try_at: datetime,
    longest_wait_s: float = RESET_S,
) -> bool:
    """Return whether an execution that began to ask at `since` should wait for the domain no longer.

    It waits `patience_s`, and for the first try after that. Our own tries are at most `longest_wait_s` apart; one that
    is further away was named by the server, or follows an outage that lasted longer than this: if it comes too late,
    there is nothing to wait for.
    """
    if circuit.unreachable_since is None:
        return False
    left_s = patience_s - unreachable_for(circuit, now=now, since=since).total_seconds()
    return left_s <= 0 or (next_try_at - now).total_seconds() > left_s + longest_wait_s


def mark_unreachable(circuit: CircuitState, *, now: datetime) -> CircuitState:
    """Return the circuit of a domain that may not be asked: its robots.txt cannot be read, or it told us to rest."""
    return circuit if circuit.unreachable_since is not None else replace(circuit, unreachable_since=now)
