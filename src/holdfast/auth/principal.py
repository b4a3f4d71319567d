"""The principal of a request, however it signed in, and its permissions."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from holdfast.auth.roles import LOWEST_ROLE, Permission, Role
from holdfast.values import dataclass


class SignInWay(StrEnum):
    """How a request authenticated."""

    ANONYMOUS = "anonymous"
    LOCAL = "local"
    """A command on the server's machine, such as `holdfast mcp`, not an HTTP request."""
    ADMIN_TOKEN = "admin_token"  # noqa: S105 - a word, no secret
    SESSION = "session"
    TOKEN = "token"  # noqa: S105 - a word, no secret
    JWT = "jwt"


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """The authenticated caller of a request."""

    role: Role
    name: str
    """For logs and the audit log: a user's name, `admin` for the admin token, `anonymous`."""
    way: SignInWay
    user_id: int | None = None
    session_id: int | None = None
    scopes: frozenset[Permission] | None = None
    """The permissions that a token is limited to; None if only the role limits it."""
    ends_at: datetime | None = None
    """When a token expires; None for any other way of signing in."""

    def may(self, permission: Permission) -> bool:
        # The scope `operate` once included reading the control room and explaining: such tokens stay valid.
        is_part = permission in (Permission.WATCH, Permission.EXPLAIN)
        granting = (permission, Permission.OPERATE) if is_part else (permission,)
        if self.scopes is not None and permission is not Permission.READ and self.scopes.isdisjoint(granting):
            return False
        return self.role.is_at_least(LOWEST_ROLE[permission])


ANONYMOUS = Principal(role=Role.ANONYMOUS, name="anonymous", way=SignInWay.ANONYMOUS)
"""The principal of a request without credentials."""
