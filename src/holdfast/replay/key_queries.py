"""The keys that sign capabilities of the replay host."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from sqlalchemy import delete, select
from sqlalchemy.orm import Session

from holdfast.db.models import ReplayKey

# What four bytes of a capability can name.
_LARGEST = (1 << 32) - 1


class SigningKey(NamedTuple):
    id: int
    secret: bytes
    created_at: datetime


_COLUMNS = (ReplayKey.id, ReplayKey.secret, ReplayKey.created_at)


def key(session: Session, key_id: int) -> SigningKey | None:
    row = session.execute(select(*_COLUMNS).where(ReplayKey.id == key_id)).one_or_none()
    return None if row is None else SigningKey._make(row)


def newest_key(session: Session) -> SigningKey | None:
    row = session.execute(select(*_COLUMNS).order_by(ReplayKey.id.desc()).limit(1)).one_or_none()
    return None if row is None else SigningKey._make(row)


def add_key(session: Session, secret: bytes, *, now: datetime) -> SigningKey:
    row = ReplayKey(secret=secret, created_at=now)
    session.add(row)
    session.flush()
    assert 0 < row.id <= _LARGEST
    return SigningKey(row.id, secret, now)


def drop_keys(session: Session, *, before: datetime) -> None:
    session.execute(delete(ReplayKey).where(ReplayKey.created_at < before))
