"""Who asks: one principal a request, whatever way they signed in, and what it may do."""

from __future__ import annotations

from enum import StrEnum

from holdfast.values import dataclass


class Role(StrEnum):
    """What somebody is trusted with; each role may do all that the ones before it may."""

    ANONYMOUS = "anonymous"
    MEMBER = "member"
    OPERATOR = "operator"
    ADMINISTRATOR = "administrator"

    def is_at_least(self, other: Role) -> bool:
        """Return whether this role may do all that the other may."""
        return _RANK[self] >= _RANK[other]


_RANK = {role: rank for rank, role in enumerate(Role)}


class Permission(StrEnum):
    """What a route asks for; a token may be limited to some of them."""

    READ = "read"
    """What is public, and for members what is theirs."""
    OWN_ACCOUNT = "own_account"
    """One's own password, sessions and tokens."""
    WATCH = "watch"
    """Figures, streams and the state of everything."""
    OPERATE = "operate"
    """Sources, jobs, the frontier, imports, editions, reports."""
    ADMINISTER = "administer"
    """Users, tokens of others, webhooks, the audit log, settings, takedowns."""


LOWEST_ROLE = {
    Permission.READ: Role.ANONYMOUS,
    Permission.OWN_ACCOUNT: Role.MEMBER,
    Permission.WATCH: Role.OPERATOR,
    Permission.OPERATE: Role.OPERATOR,
    Permission.ADMINISTER: Role.ADMINISTRATOR,
}
"""The lowest role that has each permission."""


class Way(StrEnum):
    """How somebody showed who they are."""

    ANONYMOUS = "anonymous"
    LOOPBACK = "loopback"
    """A user of this machine, where no admin token is set and nothing says that others reach the server."""
    ADMIN_TOKEN = "admin_token"  # noqa: S105 - a word, no secret
    SESSION = "session"
    TOKEN = "token"  # noqa: S105 - a word, no secret
    JWT = "jwt"


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """Who asks."""

    role: Role
    name: str
    """For logs and the audit log: a user's name, `admin` for the admin token, `anonymous`."""
    way: Way
    user_id: int | None = None
    session_id: int | None = None
    scopes: frozenset[Permission] | None = None
    """What a token is limited to; None if to nothing but its role."""

    def may(self, permission: Permission) -> bool:
        """Return whether this principal has a permission."""
        if self.scopes is not None and permission is not Permission.READ and permission not in self.scopes:
            return False
        return self.role.is_at_least(LOWEST_ROLE[permission])


ANONYMOUS = Principal(role=Role.ANONYMOUS, name="anonymous", way=Way.ANONYMOUS)
"""Who shows nothing."""
