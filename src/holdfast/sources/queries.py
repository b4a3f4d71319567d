"""The rows of sources."""

from __future__ import annotations

import re

from sqlalchemy import select
from sqlalchemy.orm import Session

from holdfast.clock import Clock
from holdfast.db.models import Edition, Job, PageGroup, Snapshot, Source
from holdfast.errors import Invalid
from holdfast.sources.adhoc.queries import CODE_CHARS

_CODE = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,14}[a-z0-9])?")


def source_by_code(session: Session, code: str) -> Source | None:
    """Return the source with this code."""
    return session.scalars(select(Source).where(Source.code == code)).one_or_none()


def source_by_id(session: Session, source_id: int) -> Source | None:
    """Return the source with this id."""
    return session.get(Source, source_id)


def sources(session: Session, *, enabled: bool | None = None, after: str = "", limit: int = 1000) -> list[Source]:
    """Return the sources by code, from the one after `after` on."""
    query = select(Source).where(Source.code > after).order_by(Source.code).limit(limit)
    return list(session.scalars(query if enabled is None else query.where(Source.enabled == enabled)))


def belongings(session: Session, *, source_id: int) -> str | None:
    """Return in a word what belongs to a source and would be orphaned without it, or None."""
    for what, column in (("captures", Snapshot.source_id), ("captures", PageGroup.source_id),
                         ("editions", Edition.source_id), ("jobs", Job.source_id)):  # fmt: skip
        if session.scalar(select(column).where(column == source_id).limit(1)) is not None:
            return what
    return None


def insert_source(session: Session, source: Source) -> Source:
    """Add a source and give it its id."""
    session.add(source)
    session.flush()
    return source


def delete_source(session: Session, source: Source) -> None:
    """Remove a source that nothing belongs to."""
    session.delete(source)
    session.flush()


def is_code(text: str) -> bool:
    """Return whether this may be the code of a source."""
    return _CODE.fullmatch(text) is not None


def named_source(session: Session, clock: Clock, *, code: str, name: str | None = None) -> Source:
    """Return the source that somebody named by its code, made if it is new; Invalid if that is no code."""
    if not _CODE.fullmatch(code):
        raise Invalid(f"{code!r} is no code of a source: write 1 to {CODE_CHARS} letters, digits and hyphens")
    source = source_by_code(session, code)
    if source is None:
        now = clock.now()
        source = Source(code=code, name=name or code, enabled=True, config={}, created_at=now, updated_at=now)
        session.add(source)
        session.flush()
    return source
