"""Users, sessions and tokens as shown to their owners and administrators; a secret only when it is created."""

from __future__ import annotations

from datetime import datetime

from holdfast.auth.principal import Principal, SignInWay
from holdfast.auth.roles import Permission, Role
from holdfast.auth.tokens import MadeToken
from holdfast.auth.users import UserState, state_of
from holdfast.db.models import ApiToken, User, UserSession
from holdfast.records import Member, Operator, Public, from_row, record


@record
class UserRecord:
    """A user."""

    id: Member[int]
    name: Member[str]
    role: Member[Role]
    state: Member[UserState]
    provider: Member[str | None]
    """The identity provider that the user signs in with; null for a password."""
    created_at: Member[datetime]
    signed_in_at: Member[datetime | None]


@record
class InvitedUser:
    """A user and the link to choose a password with, which is shown only this once."""

    user: Operator[UserRecord]
    link: Operator[str | None]
    """Works once, for 72 hours; null if a password was set."""


@record
class SignedInUser:
    """The signed-in user."""

    id: Public[int | None]
    """null for the admin token and a JWT."""
    name: Public[str]
    role: Public[Role]


@record
class SessionState:
    """The caller of this request, with role, permissions and session."""

    authenticated: Public[bool]
    user: Public[SignedInUser | None]
    way: Public[SignInWay]
    permissions: Public[list[Permission]]
    csrf_token: Public[str | None]
    """To send as X-CSRF-Token with each change; null without a session."""
    has_reference: Public[bool]
    """Whether this server serves `/docs` and `/openapi.json`."""


@record
class SessionRecord:
    """A signed-in browser."""

    id: Member[int]
    created_at: Member[datetime]
    seen_at: Member[datetime]
    expires_at: Member[datetime]
    address: Member[str]
    agent: Member[str]
    is_current: Member[bool]


@record
class EndedSessions:
    """The number of sessions that ended."""

    ended: Member[int]


@record
class TokenRecord:
    """A token, without its secret."""

    id: Member[int]
    name: Member[str]
    hint: Member[str]
    """The token's first characters."""
    scopes: Member[list[Permission]]
    created_at: Member[datetime]
    expires_at: Member[datetime]
    used_at: Member[datetime | None]


@record
class NewToken:
    """A token with its secret, which is shown only this once."""

    token: Member[TokenRecord]
    secret: Member[str]


def user_record(row: User) -> UserRecord:
    return from_row(UserRecord, row, state=state_of(row), provider=row.issuer)


def session_record(row: UserSession, *, current: int | None) -> SessionRecord:
    """Return the record of a session; `current` is the id of the one that sent the request."""
    return from_row(SessionRecord, row, is_current=row.id == current)


def token_record(row: ApiToken) -> TokenRecord:
    return from_row(TokenRecord, row)


def new_token(made: MadeToken) -> NewToken:
    return NewToken(token=token_record(made.row), secret=made.secret)


def session_state(principal: Principal, csrf_token: str | None, *, has_reference: bool) -> SessionState:
    is_known = principal.way is not SignInWay.ANONYMOUS
    user = SignedInUser(id=principal.user_id, name=principal.name, role=principal.role)
    return SessionState(
        authenticated=is_known,
        user=user if is_known else None,
        way=principal.way,
        permissions=[one for one in Permission if principal.may(one)],
        csrf_token=csrf_token,
        has_reference=has_reference,
    )
