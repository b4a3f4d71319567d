"""How often signing in may fail: to an account from one address, from one address to any, and to an account from all.

Counted in the database, for all processes. A stranger who guesses fills the count of their own address and keeps no one
else waiting; only very many addresses together fill that of an account, and then its owner still signs in with a
browser that has signed in before.
"""

from __future__ import annotations

import math
from datetime import timedelta
from hashlib import sha256

from sqlalchemy.orm import Session

from holdfast.auth import queries
from holdfast.auth.errors import SignInThrottled
from holdfast.clock import Clock
from holdfast.config import AuthSettings
from holdfast.values import dataclass

_SWEPT = 100
"""Rows of past windows that each attempt removes: it adds three at most, so the table holds one window's attempts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SignInAttempt:
    """Who is signed in to, and from where."""

    account: str
    address: str
    known_as: str | None = None
    """What is known of the browser, if it has signed in to this account before: it is counted by itself."""

    @property
    def own_key(self) -> str:
        """This account from this address, or from this browser, as it is counted."""
        kind, place = ("address", self.address) if self.known_as is None else ("known", self.known_as)
        return f"account-{kind}:{_hashed(self.account, place)}"

    @property
    def address_key(self) -> str:
        """The address as it is counted."""
        return f"address:{self.address[:64]}"

    @property
    def account_key(self) -> str:
        """The account as it is counted."""
        return f"account:{_hashed(self.account)}"


def _hashed(*parts: str) -> str:
    # What people type into the field for the name is now and then their password.
    return sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()


class Throttle:
    """Lets so many attempts of a window fail."""

    def __init__(self, clock: Clock, settings: AuthSettings) -> None:
        self._clock, self._settings = clock, settings
        self._window = timedelta(minutes=settings.failure_minutes)

    def _limits(self, attempt: SignInAttempt) -> dict[str, int]:
        settings = self._settings
        own = {attempt.own_key: settings.failures_per_account_and_address}
        if attempt.known_as is not None:
            return own
        return own | {
            attempt.address_key: settings.failures_per_address,
            attempt.account_key: settings.failures_per_account,
        }

    def demand_room(self, session: Session, attempt: SignInAttempt) -> None:
        """Count an attempt as a failure until it is forgiven; SignInThrottled if there were too many.

        What is refused is not counted: an attacker who goes on does not lock the owner out for longer.
        """
        now = self._clock.now()
        began = now - self._window
        queries.delete_old_failures(session, window_began=began, limit=_SWEPT)
        limits = self._limits(attempt)
        # In one order in every process: two transactions that want the same rows never wait for each other.
        for key in sorted(limits):
            found = queries.count_failure(session, key, now=now, window_began=began)
            if found.failures > limits[key]:
                raise SignInThrottled(max(1, math.ceil((found.since + self._window - now).total_seconds())))

    def forgive(self, session: Session, attempt: SignInAttempt) -> None:
        """Take an attempt back that succeeded, and all failures of this account from the same place."""
        # In the same order as above.
        for key in sorted(self._limits(attempt)):
            if key == attempt.own_key:
                queries.forget_failures(session, key)
            else:
                # Not all of them: an attacker would have the whole count anew each time that the owner signs in.
                queries.forgive(session, [key])
