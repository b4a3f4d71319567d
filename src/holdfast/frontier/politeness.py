"""Delay between requests, when a circuit opens, and when to retry: pure functions of the known state.

Whether an address is private is decided elsewhere.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from enum import StrEnum
from random import Random

from holdfast.types import CircuitState, FetchProblem

MIN_DELAY_S = 1.0
"""Minimum delay outside an explicitly allowed private network."""
MAX_PENALTY = 64.0
"""Slow-down above which further 429 responses have no effect: about a minute at the default delay."""
RELAX = 0.8
"""Factor of each successful response on the penalty: three cancel one doubling."""


def floor_delay(asked_s: float, *, is_private: bool) -> float:
    """Return the requested delay, but at least a second outside an allowed private network."""
    return max(asked_s, 0.0 if is_private else MIN_DELAY_S)


def delay_between(asked_s: float, *, penalty: float, is_private: bool) -> float:
    """Return the seconds between the starts of two requests, with the slow-down after 429 and 503."""
    delay_s = floor_delay(asked_s, is_private=is_private)
    # A delay of zero, allowed in a private network, would stay zero however often a server says 429.
    return delay_s if penalty <= 1.0 else max(delay_s, MIN_DELAY_S) * penalty


def penalise(circuit: CircuitState, *, most: float = MAX_PENALTY) -> CircuitState:
    """Return the state after a 429 or 503: twice as slow, up to a limit."""
    return replace(circuit, penalty=min(max(circuit.penalty, 1.0) * 2.0, most))


def relax(circuit: CircuitState) -> CircuitState:
    """Return the state after a successful response: a little faster, never faster than the delay itself."""
    if circuit.penalty <= 1.0:
        return circuit
    penalty = circuit.penalty * RELAX
    # A product alone never comes back to 1: near it, the slow-down counts as over.
    return replace(circuit, penalty=penalty if penalty > 1.05 else 1.0)


class Circuit(StrEnum):
    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


FAILURES_TO_OPEN = 5
SUCCESSES_TO_CLOSE = 2
RESET_S = 60.0


def on_success(circuit: CircuitState, *, needed: int = SUCCESSES_TO_CLOSE) -> CircuitState:
    """Return the circuit after a successful response: reachable again, but closed only after `needed` successes."""
    if circuit.state == Circuit.CLOSED:
        if circuit.failures == 0 and circuit.unreachable_since is None:
            return circuit
        return replace(circuit, failures=0, successes=0, unreachable_since=None)
    # One good answer of a server that is coming up again proves little.
    if circuit.successes + 1 >= needed:
        return CircuitState(penalty=circuit.penalty)
    return replace(circuit, state=Circuit.HALF_OPEN.value, successes=circuit.successes + 1, unreachable_since=None)


def on_failure(circuit: CircuitState, *, now: datetime, threshold: int = FAILURES_TO_OPEN) -> CircuitState:
    """Return the circuit after a failure of the domain. Any failure while it is not closed opens it again."""
    # Bounded, because a domain may be down for years and the column is an INTEGER.
    failures = min(circuit.failures + 1, 1_000_000)
    if circuit.state == Circuit.CLOSED and failures < threshold:
        return replace(circuit, failures=failures, successes=0)
    return replace(
        circuit,
        state=Circuit.OPEN.value,
        failures=failures,
        successes=0,
        opened_at=now,
        # Kept from when it was first found unreachable: patience is counted from there, not from the last try.
        unreachable_since=circuit.unreachable_since or now,
    )


def open_until(circuit: CircuitState, *, now: datetime, reset_s: float = RESET_S) -> datetime | None:
    """Return when the domain may be tried again, or None if it may be requested now."""
    if circuit.state != Circuit.OPEN or circuit.opened_at is None:
        return None
    until = circuit.opened_at + timedelta(seconds=reset_s)
    return until if until > now else None


def unreachable_for(circuit: CircuitState, *, now: datetime, since: datetime) -> timedelta:
    """Return how long the domain has been unreachable, counted from `since` at the earliest.

    The state outlives an execution; `since` is when this one started requesting, so that yesterday's outage gives
    up no domain.
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
    """Return whether an execution that started requesting at `since` should stop waiting for the domain.

    It waits `patience_s`, and for the first attempt after that. Our own attempts are at most `longest_wait_s`
    apart; a later one was set by the server, or follows an outage that lasted longer than this: if it comes too
    late, waiting is pointless.
    """
    if circuit.unreachable_since is None:
        return False
    left_s = patience_s - unreachable_for(circuit, now=now, since=since).total_seconds()
    return left_s <= 0 or (next_try_at - now).total_seconds() > left_s + longest_wait_s


def mark_unreachable(circuit: CircuitState, *, now: datetime) -> CircuitState:
    """Return the circuit of a domain that may not be requested: unreadable robots.txt, or a rest set by the server."""
    return circuit if circuit.unreachable_since is not None else replace(circuit, unreachable_since=now)


RETRIES = 3
BASE_S = 1.0
JITTER = 0.5
"""Maximum random addition to the first wait, as a share of it, so that retries do not coincide."""
# Request Timeout, Too Early, Too Many Requests: the only 4xx that say to ask again.
_AGAIN = frozenset({408, 425, 429})


def may_retry(*, status: int | None = None, problem: FetchProblem | None = None) -> bool:
    """Return whether a retry may help: 408, 425, 429, 5xx and transient network failures; no other 4xx."""
    if status is not None:
        return status in _AGAIN or 500 <= status <= 599
    return problem is not None and problem.transient


def retry_wait(number: int, *, base_s: float = BASE_S, random: Random) -> float:
    """Return the seconds between attempt `number` and the next: 1, 2, 4 and up to half a second more."""
    # The exponent is bounded: 2 ** 1024 is no float.
    return base_s * (2.0 ** min(number - 1, 16) + random.uniform(0.0, JITTER))


def next_try(number: int, *, random: Random, retries: int = RETRIES, base_s: float = BASE_S) -> float | None:
    """Return the wait before attempt `number` is repeated, or None if it was the last one.

    The domain's next turn may come later: its delay, the slow-down after 429 and 503, and Retry-After apply in
    addition.
    """
    return None if number > retries else retry_wait(number, base_s=base_s, random=random)
