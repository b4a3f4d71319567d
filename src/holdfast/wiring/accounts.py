"""Opens what a serving process knows people by: sessions, tokens, passwords and an identity provider."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from anyio import CapacityLimiter
from anyio.to_thread import run_sync

from holdfast.auth.identities import Identities
from holdfast.auth.jwt_bearer import JwtBearer
from holdfast.auth.sessions import SignIn
from holdfast.errors import Unavailable
from holdfast.wiring.archive import Archive

_T = TypeVar("_T")
_WAITING = 32


class PasswordTurns:
    """So many passwords at once: each takes 50 ms of a core and 19 MiB, and strangers may send as many as they like."""

    def __init__(self, most: int = 2) -> None:
        # The limiter is made on the loop that serves, at the first request: an application may be built before one.
        self._most, self._waiting = most, 0
        self._limiter: CapacityLimiter | None = None

    async def run(self, work: Callable[[], _T]) -> _T:
        """Return what the work returns; Unavailable if too many wait already."""
        if self._waiting >= _WAITING:
            raise Unavailable("too many are signing in at this moment; try again in a few seconds")
        if self._limiter is None:
            self._limiter = CapacityLimiter(self._most)
        self._waiting += 1
        try:
            return await run_sync(work, limiter=self._limiter)
        finally:
            self._waiting -= 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Accounts:
    """What a serving process knows people by."""

    identities: Identities
    jwt: JwtBearer
    sign_in: SignIn
    turns: PasswordTurns = field(default_factory=PasswordTurns)


def open_accounts(archive: Archive) -> Accounts:
    """Return the accounts of an open archive; Invalid if the settings would let strangers in."""
    auth = archive.settings.auth
    return Accounts(
        identities=Identities(archive.database, archive.clock),
        jwt=JwtBearer(auth, archive.clock),
        sign_in=SignIn(archive.database, archive.clock, auth),
    )
