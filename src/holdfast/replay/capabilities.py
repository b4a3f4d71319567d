"""Signed, expiring URLs for members' captures on the replay host, which has no sessions.

A capability precedes a replay path (`/!…/web/<digits>/<address>`) and states which members' source may be seen
besides the public ones, and until when. It does not identify a user, so it can be passed on: therefore it
expires soon, opens one source, and is useless in the API. The keys are in the database, for all processes of an
archive; a new one is created every week, and an old one is deleted when nothing that it signed can be valid.
"""

from __future__ import annotations

import hmac
import re
import secrets
import struct
from base64 import urlsafe_b64decode, urlsafe_b64encode
from datetime import datetime, timedelta
from threading import Lock
from typing import Final

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from holdfast.clock import Clock
from holdfast.db.engine import Database
from holdfast.db.models import ReplayKey
from holdfast.errors import HoldfastError

MEMBERS_S: Final = 3600.0
"""Lifetime of a members' capture's signed URL."""
_ROTATED: Final = timedelta(days=7)
LONGEST: Final = timedelta(days=1)
"""Maximum lifetime of a capability: a key is stored for so long after its last use."""
_KEY_BYTES: Final = 32
_MAC_BYTES: Final = 16
# The purpose is part of the signed bytes, so that nothing else signed with the same key is a capability.
_MEANING: Final = b"holdfast replay capability\0"
_FACTS: Final = struct.Struct(">BIQI")
_VERSION: Final = 1
_PATH: Final = re.compile(r"/!([A-Za-z0-9_-]{1,128})(?=/|$)")


def split_root(path: str) -> tuple[str, str]:
    """Split a path into its capability, empty if it has none, and the rest."""
    found = _PATH.match(path)
    return (found[1], path[found.end() :] or "/") if found else ("", path)


def without_capability(path: str) -> str:
    """Return a path as it may be logged: a capability is as good as a password while it lasts."""
    return split_root(path)[1]


class ReplayKeys:
    """Signs and verifies capabilities; one per process, for any number of threads."""

    def __init__(self, database: Database, clock: Clock, *, lasts_s: float) -> None:
        self._database, self._clock, self._lasts = database, clock, timedelta(seconds=lasts_s)
        self._known: dict[int, ReplayKey] = {}
        self._newest: ReplayKey | None = None
        self._lock = Lock()

    def root(self, source_id: int) -> str:
        """Return the prefix of replay paths for a viewer of a source: `/!` and a capability."""
        key = self._signing_key()
        ends = int((self._clock.now() + self._lasts).timestamp())
        facts = _FACTS.pack(_VERSION, key.id, source_id, ends)
        return f"/!{urlsafe_b64encode(facts + _mac(key, facts)).rstrip(b'=').decode()}"

    def read(self, text: str) -> tuple[int, datetime] | None:
        """Return the source that a capability opens, and its expiry; None if it is invalid or expired.

        May read a key from the database.
        """
        try:
            raw = urlsafe_b64decode(text + "=" * (-len(text) % 4))
            facts, mac = raw[: _FACTS.size], raw[_FACTS.size :]
            version, key_id, source_id, ends = _FACTS.unpack(facts)
        except (ValueError, struct.error):
            return None
        key = self._key(key_id) if version == _VERSION else None
        now = self._clock.now()
        if key is None or now - key.created_at > _ROTATED + LONGEST:
            return None
        # Compare in constant time, so that a capability cannot be guessed letter by letter.
        if not hmac.compare_digest(mac, _mac(key, facts)) or ends <= now.timestamp():
            return None
        return source_id, datetime.fromtimestamp(ends, now.tzinfo)

    def knows(self, text: str) -> bool:
        """Return whether a capability can be verified without querying the database."""
        try:
            raw = urlsafe_b64decode(text + "=" * (-len(text) % 4))[: _FACTS.size]
            return _FACTS.unpack(raw)[1] in self._known
        except (ValueError, struct.error):
            return True

    def _key(self, key_id: int) -> ReplayKey | None:
        known = self._known.get(key_id)
        if known is None:
            with self._database.read() as session:
                known = session.get(ReplayKey, key_id)
            if known is not None:
                self._known[key_id] = known
        return known

    def _signing_key(self) -> ReplayKey:
        with self._lock:
            now = self._clock.now()
            if self._newest is None or now - self._newest.created_at > _ROTATED:
                self._newest = self._renewed(now)
                self._known[self._newest.id] = self._newest
            return self._newest

    def _renewed(self, now: datetime) -> ReplayKey:
        with self._database.read() as session:
            found = session.scalar(select(ReplayKey).order_by(ReplayKey.id.desc()).limit(1))
        if found is not None and now - found.created_at <= _ROTATED:
            return found
        try:
            with self._database.write() as session:
                # Another process may have added one meanwhile: two new keys do no harm, both are read.
                return _add_key(session, now)
        except HoldfastError:
            # On a read-only disk only this process uses the key, which expires like any other.
            own = self._known.get(0)
            if own is not None and now - own.created_at <= _ROTATED:
                return own
            return ReplayKey(id=0, secret=secrets.token_bytes(_KEY_BYTES), created_at=now)


def _add_key(session: Session, now: datetime) -> ReplayKey:
    """Add a new key, and delete those that can have signed nothing that is still valid."""
    made = ReplayKey(secret=secrets.token_bytes(_KEY_BYTES), created_at=now)
    session.add(made)
    session.flush()
    # A capability has four bytes for the id.
    assert 0 < made.id < 1 << 32
    session.execute(delete(ReplayKey).where(ReplayKey.created_at < now - _ROTATED - LONGEST))
    return made


def _mac(key: ReplayKey, facts: bytes) -> bytes:
    return hmac.digest(key.secret, _MEANING + facts, "sha256")[:_MAC_BYTES]
