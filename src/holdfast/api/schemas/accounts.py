"""Accounts as the routes take and show them; no answer holds a hash, and a secret only when it is made."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from holdfast.api.schemas.base import Answer, RequestForm
from holdfast.auth.principal import Principal, SignInWay
from holdfast.auth.roles import Permission, Role
from holdfast.auth.tokens import DEFAULT_DAYS, MAX_DAYS
from holdfast.auth.users import UserRole, UserState, state_of
from holdfast.db.models import ApiToken, User, UserSession

# Bounded here, so that a megabyte is refused before it is hashed.
PasswordText = Annotated[str, Field(min_length=1, max_length=1024, description="12 characters to 256 bytes.")]
NameText = Annotated[str, Field(min_length=1, max_length=256, description="What is typed to sign in.")]


class SignInForm(RequestForm):
    """A name and its password."""

    name: NameText
    password: PasswordText


class LoginForm(RequestForm):
    """The same in an older spelling."""

    username: NameText
    password: PasswordText


class PasswordForm(RequestForm):
    """A new password."""

    current: PasswordText
    new: PasswordText


class TokenForm(RequestForm):
    """A token that is wanted."""

    name: Annotated[str, Field(min_length=1, max_length=100, description="To tell it from others.")]
    scopes: Annotated[
        list[Literal["read", "own_account", "explain", "watch", "operate", "administer"]],
        Field(min_length=1, max_length=6, description="What it may do; never more than its user."),
    ]
    days: Annotated[int, Field(ge=1, le=MAX_DAYS, description="How long it holds.")] = DEFAULT_DAYS


class UserForm(RequestForm):
    """A user that is invited."""

    name: NameText
    role: UserRole


class UserChangesForm(RequestForm):
    """What is changed of a user; what is left out stays."""

    role: UserRole | None = None
    disabled: bool | None = None


class UserShown(Answer):
    """A user."""

    id: int
    name: str
    role: Role
    state: UserState
    provider: str | None = Field(description="The identity provider that the user signs in with; null for a password.")
    created_at: datetime
    signed_in_at: datetime | None

    @classmethod
    def of(cls, user: User) -> UserShown:
        """Return a row as it is shown."""
        return cls(
            id=user.id,
            name=user.name,
            role=Role(user.role),
            state=state_of(user),
            provider=user.issuer,
            created_at=user.created_at,
            signed_in_at=user.signed_in_at,
        )


class InvitedUser(Answer):
    """A user and the link to choose a password with; it is shown this once."""

    user: UserShown
    link: str = Field(description="Works once, and for 72 hours.")


class SignedInUser(Answer):
    """Who is signed in."""

    id: int | None = Field(description="null for the admin token and a JWT.")
    name: str
    role: Role


class SessionState(Answer):
    """Who asks."""

    authenticated: bool
    user: SignedInUser | None
    way: SignInWay
    permissions: list[Permission]
    csrf_token: str | None = Field(description="For X-CSRF-Token with each change; null without a session.")
    has_reference: bool = Field(description="Whether this server has `/docs` and `/openapi.json`.")

    @classmethod
    def of(cls, principal: Principal, csrf_token: str | None, *, has_reference: bool) -> SessionState:
        """Return a principal as it is shown."""
        is_known = principal.way is not SignInWay.ANONYMOUS
        user = SignedInUser(id=principal.user_id, name=principal.name, role=principal.role)
        return cls(
            authenticated=is_known,
            user=user if is_known else None,
            way=principal.way,
            permissions=[one for one in Permission if principal.may(one)],
            csrf_token=csrf_token,
            has_reference=has_reference,
        )


class SessionShown(Answer):
    """A browser that is signed in."""

    id: int
    created_at: datetime
    seen_at: datetime
    expires_at: datetime
    address: str
    agent: str
    is_current: bool

    @classmethod
    def of(cls, row: UserSession, *, current: int | None) -> SessionShown:
        """Return a row as it is shown."""
        return cls(
            id=row.id,
            created_at=row.created_at,
            seen_at=row.seen_at,
            expires_at=row.expires_at,
            address=row.address,
            agent=row.agent,
            is_current=row.id == current,
        )


class EndedSessions(Answer):
    """How many sessions ended."""

    ended: int


class TokenShown(Answer):
    """A token, without its secret."""

    id: int
    name: str
    hint: str = Field(description="Its first characters.")
    scopes: list[Permission]
    created_at: datetime
    expires_at: datetime
    used_at: datetime | None

    @classmethod
    def of(cls, row: ApiToken) -> TokenShown:
        """Return a row as it is shown."""
        return cls(
            id=row.id,
            name=row.name,
            hint=row.hint,
            scopes=[Permission(one) for one in row.scopes],
            created_at=row.created_at,
            expires_at=row.expires_at,
            used_at=row.used_at,
        )


class NewToken(Answer):
    """A token with its secret, which is shown this once."""

    token: TokenShown
    secret: str
