"""API tokens: secrets for programs that act for a user, with limited permissions and lifetime. Shown once."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import NamedTuple

from sqlalchemy.orm import Session

from holdfast import audit
from holdfast.auth import queries
from holdfast.auth.credentials import TOKEN_PREFIX, digest_of, new_secret
from holdfast.auth.errors import TokenNotFound
from holdfast.auth.roles import LOWEST_ROLE, Permission, Role
from holdfast.clock import Clock
from holdfast.db.models import ApiToken, User
from holdfast.errors import Conflict, Invalid

PER_USER = 100
"""Maximum number of tokens per user."""
DEFAULT_DAYS = 90
MAX_DAYS = 366
_HINT_CHARS = 8


class MadeToken(NamedTuple):
    """A new token with its secret, which cannot be read later."""

    secret: str
    row: ApiToken


def make_token(
    session: Session, clock: Clock, user: User, *, name: str, scopes: Collection[Permission], days: int = DEFAULT_DAYS
) -> MadeToken:
    """Create a token; raise Invalid if it would exceed the user's permissions, Conflict if there are too many."""
    label = " ".join(name.split())
    if not label or len(label) > 100 or not label.isprintable():
        raise Invalid("name: a token's name has 1 to 100 characters that can be shown", field="name")
    if not 1 <= days <= MAX_DAYS:
        raise Invalid(f"days: a token holds 1 to {MAX_DAYS} days", field="days")
    wanted = {Permission.READ, *scopes}
    beyond = sorted(one for one in wanted if not Role(user.role).is_at_least(LOWEST_ROLE[one]))
    if beyond:
        raise Invalid(f"scopes: {user.name} is {user.role} and has no permission {', '.join(beyond)}", field="scopes")
    if queries.count_tokens(session, user.id) >= PER_USER:
        raise Conflict(f"{user.name} has {PER_USER} tokens already; revoke some first")
    secret, now = new_secret(TOKEN_PREFIX), clock.now()
    row = ApiToken(
        user_id=user.id,
        name=label,
        secret_hash=digest_of(secret, TOKEN_PREFIX),
        hint=secret[:_HINT_CHARS],
        scopes=sorted(wanted),
        created_at=now,
        expires_at=now + timedelta(days=days),
        used_at=None,
    )
    session.add(row)
    session.flush()
    detail = {"token": row.id, "name": label, "scopes": row.scopes, "days": days}
    audit.record(session, clock, action="token.made", subject=f"user {user.name}", detail=detail)
    return MadeToken(secret, row)


def end_with(made: MadeToken, ends_at: datetime) -> MadeToken:
    """Limit a token to the lifetime of the token that created it, which could otherwise renew itself forever."""
    made.row.expires_at = min(made.row.expires_at, ends_at)
    return made


def revoke_token(session: Session, clock: Clock, user: User, token_id: int) -> None:
    """Revoke a token of a user; raise TokenNotFound, also if it belongs to another user."""
    row = session.get(ApiToken, token_id)
    if row is None or row.user_id != user.id:
        raise TokenNotFound
    detail = {"token": row.id, "name": row.name}
    session.delete(row)
    session.flush()
    audit.record(session, clock, action="token.revoked", subject=f"user {user.name}", detail=detail)
