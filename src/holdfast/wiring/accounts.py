"""Opens the account services of a server process: sessions, tokens, passwords and an identity provider."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from contextlib import closing
from dataclasses import field
from typing import TYPE_CHECKING, TypeVar

from anyio import CapacityLimiter
from anyio.to_thread import run_sync

from holdfast.auth.identities import Identities
from holdfast.auth.jwt_bearer import JwtBearer
from holdfast.auth.queries import has_administrator
from holdfast.auth.sessions import SignIn
from holdfast.auth.users import link_url, make_setup_link
from holdfast.clock import SystemClock
from holdfast.config import Settings
from holdfast.db.engine import Database
from holdfast.errors import Unavailable
from holdfast.values import dataclass
from holdfast.wiring.archive import Archive

if TYPE_CHECKING:
    from holdfast.auth.oidc import IdentityProvider

_T = TypeVar("_T")
_WAITING = 32


class PasswordTurns:
    """Limits concurrent password checks: each takes 50 ms of a core and 19 MiB, and anybody may send any number."""

    def __init__(self, most: int = 2) -> None:
        # Create the limiter on the serving loop, at the first request: an application may be built before the loop.
        self._most, self._waiting = most, 0
        self._limiter: CapacityLimiter | None = None

    async def run(self, work: Callable[[], _T]) -> _T:
        """Run the work in turn and return its result; raise Unavailable if too many are waiting."""
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
    identities: Identities
    jwt: JwtBearer
    sign_in: SignIn
    provider: IdentityProvider | None
    turns: PasswordTurns = field(default_factory=PasswordTurns)


def setup_link(settings: Settings, address: str) -> str | None:
    """Return the one-time link that creates the first administrator, None if one exists; invalidates older links.

    Raise Unavailable if the database does not respond.
    """
    with closing(Database(settings.database)) as database:
        with database.read() as session:
            if has_administrator(session):
                return None
        with database.write() as session:
            secret = make_setup_link(session, SystemClock())
    return None if secret is None else link_url(settings.api.site_url or address, secret)


def open_accounts(archive: Archive) -> Accounts:
    """Return the accounts of an open archive; raise Invalid if the settings would admit anybody."""
    auth = archive.settings.auth
    return Accounts(
        identities=Identities(archive.database, archive.clock),
        jwt=JwtBearer(auth, archive.clock),
        sign_in=SignIn(archive.database, archive.clock, auth),
        provider=_provider_of(archive),
    )


def _provider_of(archive: Archive) -> IdentityProvider | None:
    if archive.settings.auth.oidc_issuer is None:
        return None
    # Import lazily: the provider client takes 60 ms to load, and few archives use one.
    made = importlib.import_module(".provider", __package__).provider_of(archive.settings, archive.clock)
    provider: IdentityProvider = made
    return provider
