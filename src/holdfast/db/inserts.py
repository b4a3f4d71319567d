"""Inserts that may meet a row which is there already, in the words of the session's database."""

from __future__ import annotations

from typing import Any

from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

from holdfast.db.models.base import Model


def insert_into(session: Session, model: type[Model]) -> Any:
    """Return an insert that knows `on_conflict_do_nothing` and `on_conflict_do_update`."""
    if session.get_bind().dialect.name == "postgresql":
        return postgresql.insert(model)
    return sqlite.insert(model)
