"""Users: create, invite, change role, disable, delete. Every change is audited; the last administrator cannot go."""

from __future__ import annotations

import re
from datetime import timedelta
from enum import StrEnum
from hashlib import sha256
from typing import Any, Literal, get_args

from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from holdfast import audit, log
from holdfast.auth import queries
from holdfast.auth.credentials import digest_of, new_secret
from holdfast.auth.errors import LastAdministrator, LinkSpent, ProviderRefused, UserExists, UserNotFound
from holdfast.auth.passwords import hash_password
from holdfast.auth.roles import Role
from holdfast.clock import Clock
from holdfast.db.audit_events import AuditAction
from holdfast.db.models import AccountLink, User
from holdfast.errors import Invalid
from holdfast.values import dataclass

_NAME = re.compile(r"[a-z0-9](?:[a-z0-9._@+-]{0,62}[a-z0-9])?")
RESERVED = ("admin", "anonymous")
"""Names that the audit log uses for the admin token and anonymous requests."""
LINK_HOURS = 72
"""How long an invitation is valid."""
SETUP_HOURS = 24
"""How long the link that creates the first administrator is valid."""
UserRole = Literal["member", "observer", "operator", "administrator"]
ROLES = tuple(map(Role, get_args(UserRole)))


class UserState(StrEnum):
    ACTIVE = "active"
    INVITED = "invited"
    """The invitation has not been used yet."""
    DISABLED = "disabled"


def state_of(user: User) -> UserState:
    if user.disabled_at is not None:
        return UserState.DISABLED
    return UserState.ACTIVE if user.password_hash or user.subject else UserState.INVITED


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderIdentity:
    """A user as the identity provider reports it, with the role that its claims map to."""

    issuer: str
    subject: str
    name: str
    role: Role


def checked_name(name: str) -> str:
    """Return a name in its stored form; raise Invalid if it is not allowed."""
    kept = name.strip().lower()
    if not _NAME.fullmatch(kept):
        raise Invalid(
            "name: a user's name has 1 to 64 letters, digits and . _ @ + -, as in ada or ada@example.org", field="name"
        )
    if kept in RESERVED:
        raise Invalid(f"name: {kept} has a meaning of its own in the audit log; choose another name", field="name")
    return kept


def checked_role(role: Role) -> Role:
    """Return the role; raise Invalid for anonymous."""
    if role not in ROLES:
        raise Invalid(f"role: a user is {', '.join(ROLES[:-1])} or {ROLES[-1]}", field="role")
    return role


def add_user(session: Session, clock: Clock, *, name: str, role: Role, password: str | None = None) -> User:
    """Create a user, only invited if without a password; raise UserExists, Invalid or PasswordRefused."""
    kept = checked_name(name)
    hashed = None if password is None else hash_password(password, name=kept)
    return _made(session, clock, name=kept, role=checked_role(role), hashed=hashed)


def _made(session: Session, clock: Clock, *, name: str, role: Role, hashed: str | None) -> User:
    if queries.user_by_name(session, name) is not None:
        raise UserExists(name)
    user = User(
        name=name,
        role=role.value,
        password_hash=hashed,
        issuer=None,
        subject=None,
        created_at=clock.now(),
        signed_in_at=None,
        disabled_at=None,
    )
    session.add(user)
    try:
        session.flush()
    except IntegrityError as exc:
        # Another process has created one with this name since the check.
        raise UserExists(name) from exc
    _record(session, clock, "user.created", user, role=user.role)
    return user


def find_user(session: Session, user: int | str) -> User:
    """Return a user by id or name; raise UserNotFound."""
    found = session.get(User, user) if isinstance(user, int) else queries.user_by_name(session, user.strip().lower())
    if found is None:
        raise UserNotFound(user)
    return found


def change_user(
    session: Session, clock: Clock, user_id: int | str, *, role: Role | None = None, disabled: bool | None = None
) -> User:
    """Change a user's role, or disable or enable the user; raise UserNotFound or LastAdministrator."""
    user = find_user(session, user_id)
    if role is not None and checked_role(role).value != user.role:
        if role is not Role.ADMINISTRATOR:
            _demand_another(session, user)
        before, user.role = user.role, role.value
        _record(session, clock, "user.role_changed", user, **{"from": before, "to": user.role})
    if disabled is True and user.disabled_at is None:
        _demand_another(session, user)
        user.disabled_at = clock.now()
        # As with a new password, no session may start between their end and this commit.
        session.flush()
        ended = queries.delete_sessions(session, user.id)
        queries.delete_links(session, user.id)
        _record(session, clock, "user.disabled", user, sessions=ended)
    elif disabled is False and user.disabled_at is not None:
        user.disabled_at = None
        _record(session, clock, "user.enabled", user)
    session.flush()
    return user


def delete_user(session: Session, clock: Clock, user_id: int | str) -> None:
    """Delete a user with its sessions, tokens and link; raise UserNotFound or LastAdministrator."""
    user = find_user(session, user_id)
    _demand_another(session, user)
    _record(session, clock, "user.deleted", user, role=user.role)
    session.delete(user)
    session.flush()


def _demand_another(session: Session, user: User) -> None:
    """Raise LastAdministrator if this is the only administrator that can sign in."""
    if queries.administrators(session) == [user.id]:
        raise LastAdministrator


def set_password(session: Session, clock: Clock, user: User, password: str) -> None:
    """Set a user's password and end all its sessions; raise PasswordRefused."""
    replace_password(session, clock, user, hash_password(password, name=user.name))


def replace_password(session: Session, clock: Clock, user: User, hashed: str, *, keep: int | None = None) -> int:
    """Set an already hashed password; end the user's sessions except `keep` and return how many ended."""
    user.password_hash = hashed
    # Before the sessions are deleted: a concurrent sign-in waits for the row and finds the password changed, or its
    # session is already there to be deleted.
    session.flush()
    ended = queries.delete_sessions(session, user.id, keep=keep)
    queries.delete_links(session, user.id)
    _record(session, clock, "user.password_changed", user, sessions=ended)
    session.flush()
    return ended


def link_url(site: str, secret: str) -> str:
    """Return a one-time link; its secret is in the fragment, which browsers send to no server, proxy or log."""
    return f"{site.rstrip('/')}/setup#token={secret}"


def make_link(session: Session, clock: Clock, user: User, *, signs_in: bool = False) -> str:
    """Create a one-time link to choose a password, or only to sign in; return its secret. Older links end."""
    if user.disabled_at is not None:
        raise Invalid(f"{user.name} is disabled; enable the account first: holdfast user enable {user.name}")
    _record(session, clock, "user.link_made", user)
    return _new_link(session, clock, user.id, hours=LINK_HOURS, signs_in=signs_in)


def make_setup_link(session: Session, clock: Clock) -> str | None:
    """Return the secret of the link that creates the first administrator; None if one exists."""
    return None if queries.has_administrator(session) else _new_link(session, clock, None, hours=SETUP_HOURS)


def _new_link(session: Session, clock: Clock, user_id: int | None, *, hours: int, signs_in: bool = False) -> str:
    queries.delete_links(session, user_id)
    secret, now = new_secret(), clock.now()
    digest = _link_digest(secret, signs_in=signs_in)
    expires = now + timedelta(hours=hours)
    session.add(AccountLink(user_id=user_id, secret_hash=digest, created_at=now, expires_at=expires))
    session.flush()
    return secret


def _link_digest(secret: str, *, signs_in: bool = False) -> bytes | None:
    digest = digest_of(secret)
    # Use another digest: a link to choose a password must never sign in without changing it, which the owner would not
    # notice.
    return sha256(b"sign in" + digest).digest() if digest is not None and signs_in else digest


def link_owner(session: Session, clock: Clock, secret: str) -> User | None:
    """Return the owner of a link, None for the one of the first administrator. Raise LinkSpent. Does not use it up."""
    digest = digest_of(secret)
    link = None if digest is None else queries.find_link(session, digest, now=clock.now())
    if link is None or (link.user_id is None and queries.has_administrator(session)):
        raise LinkSpent
    return None if link.user_id is None else find_user(session, link.user_id)


def use_link(session: Session, clock: Clock, secret: str, *, name: str, hashed: str) -> User:
    """Set the password through a one-time link, creating the first administrator if it is that link.

    Raise LinkSpent, also for the second of two concurrent uses.
    """
    user = _take_link(session, clock, secret)
    if user is None:
        return _made(session, clock, name=name, role=Role.ADMINISTRATOR, hashed=hashed)
    replace_password(session, clock, user, hashed)
    return user


def use_sign_in_link(session: Session, clock: Clock, secret: str) -> User:
    """Return the user that a one-time link signs in; raise LinkSpent, also for the second of two concurrent uses."""
    user = _take_link(session, clock, secret, signs_in=True)
    if user is None:
        raise LinkSpent
    return user


def _take_link(session: Session, clock: Clock, secret: str, *, signs_in: bool = False) -> User | None:
    """Consume a link; return its user, None if it creates the first administrator; raise LinkSpent if invalid."""
    digest = _link_digest(secret, signs_in=signs_in)
    link = None if digest is None else queries.find_link(session, digest, now=clock.now())
    if link is None:
        raise LinkSpent
    # Lock the user first, then links and sessions: a password change locks in this order.
    user = None if link.user_id is None else queries.locked_user(session, link.user_id)
    if not queries.take_link(session, link.id):
        raise LinkSpent
    if queries.has_administrator(session) if user is None else user.disabled_at is not None:
        raise LinkSpent
    return user


def name_of_identity(session: Session, identity: ProviderIdentity) -> str:
    """Return the present or future name of an identity provider's user here; never one that another user has."""
    user = queries.user_of_provider(session, issuer=identity.issuer, subject=identity.subject)
    return _free_name(session, identity.name) if user is None else user.name


def user_of_identity(session: Session, clock: Clock, identity: ProviderIdentity) -> User:
    """Return the user of an identity, created at the first sign-in; the role follows its claims.

    Matches only issuer and subject: a name or an address may pass to another person. Raise ProviderRefused if
    disabled, UserExists if another process creates the same user concurrently.
    """
    user = queries.user_of_provider(session, issuer=identity.issuer, subject=identity.subject)
    if user is None:
        user = _made(session, clock, name=_free_name(session, identity.name), role=identity.role, hashed=None)
        user.issuer, user.subject = identity.issuer, identity.subject
        try:
            session.flush()
        except IntegrityError as exc:
            raise UserExists(user.name) from exc
        return user
    if user.disabled_at is not None:
        raise ProviderRefused("this account is disabled; ask an administrator")
    if user.role != identity.role.value:
        try:
            change_user(session, clock, user.id, role=identity.role)
        except LastAdministrator:
            # This is the only administrator left who could correct a wrong claim.
            log.get().warning("auth.last_administrator_kept", user=user.name)
    return user


def _free_name(session: Session, wished: str) -> str:
    base = re.sub(r"[^a-z0-9._@+-]+", "-", wished.strip().lower())[:56].strip("._@+-") or "user"
    candidates = (base, *(f"{base}-{number}" for number in range(2, 1000)))
    for name in candidates:
        if name not in RESERVED and queries.user_by_name(session, name) is None:
            return name
    raise UserExists(base)


def _record(session: Session, clock: Clock, action: AuditAction, user: User, **detail: Any) -> None:
    audit.record(session, clock, action=action, subject=f"user {user.name}", detail=detail)
