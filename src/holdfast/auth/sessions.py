"""Browser sessions: created by signing in; ended by signing out, from another session of the user, or by expiry."""

from __future__ import annotations

from datetime import timedelta
from typing import NamedTuple

from sqlalchemy.orm import Session

from holdfast import audit, log
from holdfast.auth import queries
from holdfast.auth.credentials import digest_of, new_secret
from holdfast.auth.errors import PasswordRefused, SessionNotFound, SignInFailed, UserExists, UserNotFound
from holdfast.auth.known_browsers import known_browser, new_mark
from holdfast.auth.passwords import hash_password, is_outdated, is_password
from holdfast.auth.principal import Principal, SignInWay
from holdfast.auth.roles import Role
from holdfast.auth.throttle import SignInAttempt, Throttle
from holdfast.auth.users import (
    ProviderIdentity,
    checked_name,
    find_user,
    link_owner,
    name_of_identity,
    replace_password,
    use_link,
    use_sign_in_link,
    user_of_identity,
)
from holdfast.clock import Clock
from holdfast.config import AuthSettings
from holdfast.db.audit_events import acting
from holdfast.db.engine import Database
from holdfast.db.models import User, UserSession
from holdfast.values import dataclass

PER_USER = 50
"""Maximum number of sessions per user; the oldest are ended."""
_SWEPT = 100
_log = log.get()


@dataclass(frozen=True, slots=True, kw_only=True)
class Browser:
    """The browser that a user signs in with, and its address."""

    address: str
    agent: str
    old_secret: str | None = None
    """The secret of the browser's previous session, which ends."""
    mark: str | None = None
    """The mark from an earlier sign-in (`known_browsers`)."""


class NewSession(NamedTuple):
    """The session's secret and the marks for the browser to store."""

    secret: str
    principal: Principal
    mark: str | None = None
    """A mark that keeps other people's guesses from delaying the next sign-in; None without a password."""


class SignIn:
    """Signs users in. Thread-safe."""

    def __init__(self, database: Database, clock: Clock, settings: AuthSettings) -> None:
        self._database, self._clock, self._settings = database, clock, settings
        self._throttle = Throttle(clock)

    def with_password(self, name: str, password: str, browser: Browser) -> NewSession:
        """Start a session; raise SignInFailed if name or password is wrong, SignInThrottled after too many
        failures.
        """
        kept = name.strip().lower()[:256].replace("\x00", "")
        with self._database.write() as session:
            user = queries.user_by_name(session, kept)
            known = known_browser(user, browser.mark, now=self._clock.now())
            attempt = SignInAttempt(account=kept, address=browser.address, known_as=known)
            # Count before checking the password, so that the limit also holds for a thousand concurrent guesses.
            self._throttle.demand_room(session, attempt)
            stored = None if user is None or user.disabled_at is not None else user.password_hash
        # Do this outside the transaction: it takes longer than any statement, and SQLite has one writer.
        if not is_password(stored, password) or user is None or stored is None:
            # A name without a user may be a password that was typed into the wrong field.
            _log.warning("auth.sign_in_failed", account=user.name if user else None, address=browser.address)
            raise SignInFailed
        with acting(f"{user.name}@{browser.address}"), self._database.write() as session:
            # Lock the user: a password change ends all sessions, also one that starts at the same time.
            current = queries.locked_user(session, user.id)
            # The user was disabled, or its password changed, during the check.
            if current is None or current.disabled_at is not None or current.password_hash != stored:
                raise SignInFailed
            if is_outdated(stored):
                current.password_hash = hash_password(password)
            self._throttle.forgive(session, attempt)
            started = begin_session(session, self._clock, current, browser, settings=self._settings)
            return started._replace(mark=new_mark(current, now=self._clock.now()))

    def with_link(self, secret: str, *, name: str, password: str, browser: Browser) -> NewSession:
        """Choose a password with a one-time link and start a session.

        Raise LinkSpent, PasswordRefused or Invalid.
        """
        with self._database.read() as session:
            owner = link_owner(session, self._clock, secret)
        kept = checked_name(name) if owner is None else owner.name
        hashed = hash_password(password, name=kept)
        with acting(f"{kept}@{browser.address}"), self._database.write() as session:
            user = use_link(session, self._clock, secret, name=kept, hashed=hashed)
            started = begin_session(session, self._clock, user, browser, settings=self._settings)
            return started._replace(mark=new_mark(user, now=self._clock.now()))

    def with_sign_in_link(self, secret: str, browser: Browser) -> NewSession:
        """Start a session with a sign-in link; raise LinkSpent."""
        with self._database.write() as session:
            user = use_sign_in_link(session, self._clock, secret)
            with acting(f"{user.name}@{browser.address}"):
                return begin_session(session, self._clock, user, browser, settings=self._settings)

    def with_identity(self, identity: ProviderIdentity, browser: Browser) -> NewSession:
        """Start a session for a user of an identity provider; raise ProviderRefused if the user is disabled."""
        try:
            return self._with_identity(identity, browser)
        except UserExists:
            # Another sign-in of the same new user was faster and has created it.
            return self._with_identity(identity, browser)

    def _with_identity(self, identity: ProviderIdentity, browser: Browser) -> NewSession:
        with (
            self._database.write() as session,
            # Use the name stored here: a provider may call a user `admin`, or send a page of text.
            acting(f"{name_of_identity(session, identity)}@{browser.address}"),
        ):
            user = user_of_identity(session, self._clock, identity)
            return begin_session(session, self._clock, user, browser, settings=self._settings)

    def change_password(self, user_id: int, *, current: str, new: str, browser: Browser, keep: int | None) -> int:
        """Change a user's own password and end all other sessions; return how many ended.

        Raise PasswordRefused if the current password is wrong or the new one is rejected, SignInThrottled as for
        signing in.
        """
        with self._database.write() as session:
            user = find_user(session, user_id)
            # The session is known: strangers who guess must not keep its owner from setting a new password.
            known = None if keep is None else f"session {keep}"
            attempt = SignInAttempt(account=user.name, address=browser.address, known_as=known)
            self._throttle.demand_room(session, attempt)
        stored = user.password_hash
        if stored is None:
            raise PasswordRefused("this account has no password: it signs in at the identity provider")
        if not is_password(stored, current):
            raise PasswordRefused("current: this is not the password of this account")
        hashed = hash_password(new, name=user.name)
        with acting(f"{user.name}@{browser.address}"), self._database.write() as session:
            now_user = queries.locked_user(session, user_id)
            if now_user is None:
                raise UserNotFound(user_id)
            # Its password was changed, or the account disabled, during the check.
            if now_user.password_hash != stored or now_user.disabled_at is not None:
                raise PasswordRefused("current: the password was changed meanwhile; sign in with the new one")
            self._throttle.forgive(session, attempt)
            return replace_password(session, self._clock, now_user, hashed, keep=keep)


def begin_session(
    session: Session, clock: Clock, user: User, browser: Browser, *, settings: AuthSettings
) -> NewSession:
    """Start a session in place of the browser's previous one, and audit it."""
    now = clock.now()
    if browser.old_secret is not None and (old := digest_of(browser.old_secret)) is not None:
        queries.delete_session(session, old)
    queries.delete_expired_sessions(session, now=now, limit=_SWEPT)
    secret = new_secret()
    row = UserSession(
        user_id=user.id,
        secret_hash=digest_of(secret),
        created_at=now,
        expires_at=now + timedelta(hours=settings.session_hours),
        seen_at=now,
        address=browser.address[:64],
        agent=_plain(browser.agent),
    )
    session.add(row)
    user.signed_in_at = now
    session.flush()
    queries.delete_sessions_by_id(session, queries.oldest_sessions(session, user.id, keep=PER_USER))
    audit.record(session, clock, action="session.begun", subject=f"user {user.name}", detail={"address": row.address})
    principal = Principal(
        role=Role(user.role), name=user.name, way=SignInWay.SESSION, user_id=user.id, session_id=row.id
    )
    return NewSession(secret, principal)


def _plain(agent: str) -> str:
    return "".join(character if character.isprintable() else " " for character in agent)[:200]


def end_session(session: Session, clock: Clock, user: User, session_id: int) -> None:
    """End a session of a user; raise SessionNotFound, also if it belongs to another user."""
    row = session.get(UserSession, session_id)
    if row is None or row.user_id != user.id:
        raise SessionNotFound
    session.delete(row)
    session.flush()
    audit.record(session, clock, action="session.ended", subject=f"user {user.name}", detail={"session": session_id})


def end_sessions(session: Session, clock: Clock, user: User, *, keep: int | None = None) -> int:
    ended = queries.delete_sessions(session, user.id, keep=keep)
    audit.record(session, clock, action="session.ended_all", subject=f"user {user.name}", detail={"sessions": ended})
    return ended
