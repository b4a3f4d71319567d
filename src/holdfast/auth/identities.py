"""Principals of sessions and tokens, cached for one second: a revocation takes effect everywhere within it."""

from __future__ import annotations

from datetime import datetime
from threading import Lock

from cachetools import TTLCache

from holdfast import log
from holdfast.auth import queries
from holdfast.auth.principal import Principal, SignInWay
from holdfast.auth.roles import Permission, Role
from holdfast.clock import Clock
from holdfast.db.engine import Database
from holdfast.errors import Unavailable

REMEMBERED_S = 1.0
"""How long a cached database result is valid."""
_REMEMBERED = 10_000
_log = log.get()


class Identities:
    """Finds the principal for a secret's digest. Thread-safe."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database, self._clock, self._lock = database, clock, Lock()
        self._known: TTLCache[bytes, Principal | None] = TTLCache(_REMEMBERED, REMEMBERED_S, timer=clock.monotonic)
        self._sessions: dict[int, datetime] = {}
        self._tokens: dict[int, datetime] = {}

    def remembered(self, digest: bytes) -> tuple[bool, Principal | None]:
        """Return whether the digest is cached, and its principal."""
        with self._lock:
            found = self._known.get(digest, _UNKNOWN)
        return (False, None) if found is _UNKNOWN else (True, found)

    def by_session(self, digest: bytes) -> Principal | None:
        """Return the principal of a session from the database; None if it is unknown, ended or expired."""
        now = self._clock.now()
        with self._database.read() as session:
            row = queries.session_of(session, digest, now=now)
        found = None
        if row is not None:
            found = Principal(
                role=Role(row.role), name=row.name, way=SignInWay.SESSION, user_id=row.user_id, session_id=row.id
            )
        with self._lock:
            self._known[digest] = found
            if row is not None:
                self._sessions[row.id] = now
        return found

    def by_token(self, digest: bytes) -> Principal | None:
        """Return the principal of a token from the database; None if it is unknown, revoked or expired."""
        now = self._clock.now()
        with self._database.read() as session:
            row = queries.token_of(session, digest, now=now)
        found = None
        if row is not None:
            token, user = row
            found = Principal(
                role=Role(user.role),
                name=user.name,
                way=SignInWay.TOKEN,
                user_id=user.id,
                scopes=frozenset(map(Permission, token.scopes)),
                ends_at=token.expires_at,
            )
        with self._lock:
            self._known[digest] = found
            if row is not None:
                self._tokens[row[0].id] = now
        return found

    def forget(self) -> None:
        """Clear the cache: this process has just changed sessions or tokens."""
        with self._lock:
            self._known.clear()

    def flush(self) -> None:
        """Write when sessions and tokens were last used; skip it if the database is unavailable."""
        # Do not update it with each request: a crawl would wait for the writer's lock.
        with self._lock:
            sessions, self._sessions = self._sessions, {}
            tokens, self._tokens = self._tokens, {}
        if not sessions and not tokens:
            return
        try:
            with self._database.write() as session:
                queries.note_seen(session, sessions=sessions, tokens=tokens)
        except Unavailable as exc:
            _log.warning("auth.last_use_lost", message=str(exc))


_UNKNOWN = Principal(role=Role.ANONYMOUS, name="unknown", way=SignInWay.ANONYMOUS)
