"""Values of the whole installation, the same for every process on every machine that shares the database.

Uses a raw connection, because crawl processes do not load SQLAlchemy.
"""

from __future__ import annotations

from contextlib import closing
from functools import lru_cache
from typing import Final
from uuid import uuid4

from holdfast.clock import SystemClock
from holdfast.config import Settings
from holdfast.db import connect
from holdfast.db.audit_events import append_event
from holdfast.db.raw import Transaction, sqlite_path
from holdfast.db.schema import SCHEMA, prepare, schema_of

_CONTACT: Final = "contact"
_ARCHIVE_ID: Final = "archive_id"


def read_contact(database_url: str) -> str | None:
    """Return the configured contact; None if it is not set, or the database is missing or too old."""
    path = sqlite_path(database_url)
    if (path is not None and not path.exists()) or schema_of(database_url) != SCHEMA:
        return None
    with closing(connect(database_url)) as raw_db, raw_db.read() as tx:
        return _read(tx, _CONTACT)


def write_contact(settings: Settings, contact: str) -> None:
    """Store a contact for the whole installation; a change is audited."""
    prepare(settings)
    with closing(connect(settings.database)) as raw_db, raw_db.write() as tx:
        before = _read(tx, _CONTACT)
        if before != contact:
            tx.execute(
                "INSERT INTO installation (name, value) VALUES (?, ?)"
                " ON CONFLICT (name) DO UPDATE SET value = excluded.value",
                (_CONTACT, contact),
            )
            detail = {"before": before, "after": contact}
            append_event(tx, SystemClock(), action="contact.changed", subject=_CONTACT, detail=detail)


@lru_cache(maxsize=64)
def archive_id(database_url: str) -> str:
    """Return the random id of an archive, created at the first call; raise DatabaseReadOnly if it cannot be.

    It never changes, so a process reads it once. All servers of a database share it, and no two databases do.
    """
    with closing(connect(database_url)) as raw_db:
        with raw_db.read() as tx:
            known = _read(tx, _ARCHIVE_ID)
        if known is not None:
            return known
        with raw_db.write() as tx:
            # If two servers start together, one creates the id and both use it.
            insert = "INSERT INTO installation (name, value) VALUES (?, ?) ON CONFLICT (name) DO NOTHING"
            tx.execute(insert, (_ARCHIVE_ID, uuid4().hex))
            made = _read(tx, _ARCHIVE_ID)
    assert made is not None
    return made


def _read(tx: Transaction, name: str) -> str | None:
    rows = tx.execute("SELECT value FROM installation WHERE name = ?", (name,))
    return str(rows[0][0]) if rows else None
