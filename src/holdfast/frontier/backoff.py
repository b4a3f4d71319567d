"""Which failures are tried again, and after how long: pure, with the randomness passed in."""

from __future__ import annotations

from random import Random

from holdfast.types import FetchProblem

RETRIES = 3
BASE_S = 1.0
JITTER = 0.5
"""Share of the first wait that is added at random at most, so that retries do not march in step."""
_AGAIN = frozenset({408, 425, 429})


def may_retry(*, status: int | None = None, problem: FetchProblem | None = None) -> bool:
    """Return whether asking again may help: 408, 425, 429, 5xx and transient network failures; no other 4xx."""
    if status is not None:
        return status in _AGAIN or 500 <= status <= 599
    return problem is not None and problem.transient


def retry_wait(number: int, *, base_s: float = BASE_S, random: Random) -> float:
    """Return the seconds between attempt `number` and the next: 1, 2, 4 and up to half a second more."""
    return base_s * (2.0 ** min(number - 1, 16) + random.uniform(0.0, JITTER))


def next_try(number: int, *, random: Random, retries: int = RETRIES, base_s: float = BASE_S) -> float | None:
    """Return the wait before attempt `number` is repeated, or None if it was the last one.

    The domain's next turn may come later: its delay, the slow-down after 429 and 503, and Retry-After are its own.
    """
    return None if number > retries else retry_wait(number, base_s=base_s, random=random)
