"""How often signing in may fail: for one account, and from one address. Counted in the database, for all processes."""

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
"""Rows of past windows that each attempt removes: it adds two at most, so the table holds one window's attempts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SignInAttempt:
    """Who is signed in to, and from where."""

    account: str
    address: str

    @property
    def account_key(self) -> str:
        """The account as it is counted."""
        # Hashed: what people type into the field for the name is now and then their password.
        return f"account:{sha256(self.account.encode('utf-8', 'surrogatepass')).hexdigest()}"

    @property
    def address_key(self) -> str:
        """The address as it is counted."""
        return f"address:{self.address[:64]}"


class Throttle:
    """Lets so many attempts of a window fail."""

    def __init__(self, clock: Clock, settings: AuthSettings) -> None:
        self._clock, self._settings = clock, settings
        self._window = timedelta(minutes=settings.failure_minutes)

    def demand_room(self, session: Session, attempt: SignInAttempt) -> None:
        """Count an attempt as a failure until it is forgiven; SignInThrottled if there were too many.

        What is refused is not counted: an attacker who goes on does not lock the owner out for longer.
        """
        now = self._clock.now()
        began = now - self._window
        queries.delete_old_failures(session, window_began=began, limit=_SWEPT)
        limits = {
            attempt.account_key: self._settings.failures_per_account,
            attempt.address_key: self._settings.failures_per_address,
        }
        # In one order in every process: two transactions that want the same two rows never wait for each other.
        for key in sorted(limits):
            found = queries.count_failure(session, key, now=now, window_began=began)
            if found.failures > limits[key]:
                raise SignInThrottled(max(1, math.ceil((found.since + self._window - now).total_seconds())))

    def forgive(self, session: Session, attempt: SignInAttempt) -> None:
        """Take an attempt back that succeeded, and all failures of its account."""
        queries.forgive(session, [attempt.address_key])
        queries.forget_failures(session, attempt.account_key)
