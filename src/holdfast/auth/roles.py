"""Five roles, and what each may do."""

from __future__ import annotations

from enum import StrEnum


class Role(StrEnum):
    """What a person or a program is trusted with; each role may do all that the ones before it may."""

    ANONYMOUS = "anonymous"
    MEMBER = "member"
    OBSERVER = "observer"
    """Reads the control room and the metrics, and changes nothing but its own account."""
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
    EXPLAIN = "explain"
    """Ask why an address is in the archive or is not, as far as the sources go that one may see."""
    WATCH = "watch"
    """Read the control room: figures, streams, sources, jobs, the frontier, domains, editions, the index."""
    OPERATE = "operate"
    """Change these, and read what readers report and send. A token with this scope may watch, too."""
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
"""The lowest role that has each permission."""
