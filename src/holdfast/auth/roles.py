"""The five roles and their permissions."""

from __future__ import annotations

from enum import StrEnum


class Role(StrEnum):
    """How far a person or program is trusted; each role includes the permissions of the ones before it."""

    ANONYMOUS = "anonymous"
    MEMBER = "member"
    OBSERVER = "observer"
    """Reads the control room and the metrics, and changes only its own account."""
    OPERATOR = "operator"
    ADMINISTRATOR = "administrator"

    def is_at_least(self, other: Role) -> bool:
        return _RANK[self] >= _RANK[other]


_RANK = {role: rank for rank, role in enumerate(Role)}


class Permission(StrEnum):
    """The permission that a route requires; a token may be limited to some of them."""

    READ = "read"
    """Public data, and for members also data restricted to members."""
    OWN_ACCOUNT = "own_account"
    """The user's own password, sessions and tokens."""
    EXPLAIN = "explain"
    """Find out why a URL is or is not in the archive, limited to the sources that the caller may see."""
    WATCH = "watch"
    """Read the control room: figures, streams, sources, jobs, the frontier, domains, editions, the index."""
    OPERATE = "operate"
    """Change these, and read reports and messages from readers. A token with this scope also has `watch`."""
    ADMINISTER = "administer"
    """Users, tokens of others, webhooks, the audit log, settings, takedowns."""


LOWEST_ROLE = {
    Permission.READ: Role.ANONYMOUS,
    Permission.OWN_ACCOUNT: Role.MEMBER,
    Permission.EXPLAIN: Role.MEMBER,
    Permission.WATCH: Role.OBSERVER,
    Permission.OPERATE: Role.OPERATOR,
    Permission.ADMINISTER: Role.ADMINISTRATOR,
}
