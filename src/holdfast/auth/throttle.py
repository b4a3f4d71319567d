"""Limits on failed sign-ins: per account and address, per address, and per account.

Counted in the database, for all processes. A stranger who guesses exhausts the limit of their own address and
delays no one else. Only very many addresses together exhaust an account's limit, and even then its owner can
sign in with a browser that has signed in before.
"""

from __future__ import annotations

import math
from datetime import timedelta
from hashlib import sha256

from sqlalchemy.orm import Session

from holdfast.auth import queries
from holdfast.auth.errors import SignInThrottled
from holdfast.clock import Clock
from holdfast.values import dataclass

# Failed sign-ins per window; after them the next must wait for its end. Across all addresses an account has a higher
# limit, otherwise anybody could lock its owner out; a browser that has signed in before does not count there.
FAILURE_MINUTES = 15
FAILURES_PER_ACCOUNT_AND_ADDRESS, FAILURES_PER_ADDRESS, FAILURES_PER_ACCOUNT = 10, 30, 100

_SWEPT = 100
"""Expired rows that each attempt deletes: it adds three at most, so the table holds one window's attempts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SignInAttempt:
    """The account to sign in to, and the address of the client."""

    account: str
    address: str
    known_as: str | None = None
    """The browser's name if it has signed in to this account before: its failures are counted separately."""

    @property
    def own_key(self) -> str:
        """The key that counts this account from this address, or from this known browser."""
        kind, place = ("address", self.address) if self.known_as is None else ("known", self.known_as)
        return f"account-{kind}:{_hashed(self.account, place)}"

    @property
    def address_key(self) -> str:
        return f"address:{self.address[:64]}"

    @property
    def account_key(self) -> str:
        return f"account:{_hashed(self.account)}"


def _hashed(*parts: str) -> str:
    # People sometimes type their password into the field for the name.
    return sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()


class Throttle:
    """Limits failed sign-ins per window."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._window = timedelta(minutes=FAILURE_MINUTES)

    def _limits(self, attempt: SignInAttempt) -> dict[str, int]:
        own = {attempt.own_key: FAILURES_PER_ACCOUNT_AND_ADDRESS}
        if attempt.known_as is not None:
            return own
        return own | {
            attempt.address_key: FAILURES_PER_ADDRESS,
            attempt.account_key: FAILURES_PER_ACCOUNT,
        }

    def demand_room(self, session: Session, attempt: SignInAttempt) -> None:
        """Count an attempt as a failure until `forgive`; raise SignInThrottled if there were too many.

        Rejected attempts are not counted: an attacker who goes on does not lock the owner out for longer.
        """
        now = self._clock.now()
        began = now - self._window
        queries.delete_old_failures(session, window_began=began, limit=_SWEPT)
        limits = self._limits(attempt)
        # Use one order in every process, so that two transactions with the same rows cannot deadlock.
        for key in sorted(limits):
            failures, since = queries.count_failure(session, key, now=now, window_began=began)
            if failures > limits[key]:
                raise SignInThrottled(max(1, math.ceil((since + self._window - now).total_seconds())))

    def forgive(self, session: Session, attempt: SignInAttempt) -> None:
        """Uncount a successful attempt, and all failures of this account from the same place."""
        # Use the same order as above.
        for key in sorted(self._limits(attempt)):
            if key == attempt.own_key:
                queries.forget_failures(session, key)
            else:
                # Keep some: otherwise an attacker would get the full limit again each time the owner signs in.
                queries.forgive(session, [key])
