"""What the demo points at: a change to look at, and the front page's first capture."""

from __future__ import annotations

from typing import NamedTuple

from sqlalchemy import select
from sqlalchemy.orm import Session

from holdfast.db.models import Change, PageGroup, Snapshot
from holdfast.urls import parse


class Sight(NamedTuple):
    """A change that can be seen."""

    to_snapshot_id: int
    url: str


def an_update(session: Session) -> Sight | None:
    """Return the latest change of a page that has a diff, the front page's if there is one."""
    rows = session.execute(
        select(Change.to_snapshot_id, PageGroup.url)
        .join(PageGroup, PageGroup.id == Change.group_id)
        .where(Change.type == "updated", Change.diff_id.is_not(None))
        .order_by(Change.id.desc())
        .limit(50)
    )
    return min((Sight(*row) for row in rows), key=lambda sight: len(sight.url), default=None)


def first_capture(session: Session, url: str) -> Snapshot | None:
    """Return the first good capture of an address."""
    return session.scalars(
        select(Snapshot)
        .where(Snapshot.url_hash == parse(url).hash64, Snapshot.status == 200)
        .order_by(Snapshot.captured_at, Snapshot.id)
        .limit(1)
    ).one_or_none()
