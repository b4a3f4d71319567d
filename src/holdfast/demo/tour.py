"""From sealed files to an archive that can be read: index, search, changes. For the demo; crawls nothing itself."""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from dataclasses import dataclass
from typing import NamedTuple

from sqlalchemy import select
from sqlalchemy.orm import Session

from holdfast.changes.compute import compute_pending
from holdfast.clock import digits14
from holdfast.db import connect
from holdfast.db.models import Change, PageGroup, Snapshot
from holdfast.index.indexer import Indexer, index_pending
from holdfast.noise.chore import judge_pending
from holdfast.replay.address import replay_path
from holdfast.search.outbox import drain
from holdfast.urls import parse
from holdfast.wiring.archive import Archive


class VisibleChange(NamedTuple):
    """A change that can be seen."""

    to_snapshot_id: int
    url: str


def an_update(session: Session) -> VisibleChange | None:
    """Return the latest change of a page that has a diff, the front page's if there is one."""
    rows = session.execute(
        select(Change.to_snapshot_id, PageGroup.url)
        .join(PageGroup, PageGroup.id == Change.group_id)
        .where(Change.type == "updated", Change.diff_id.is_not(None))
        .order_by(Change.id.desc())
        .limit(50)
    )
    # The shortest address is the front page's, if that changed.
    return min((VisibleChange(*row) for row in rows), key=lambda change: len(change.url), default=None)


def first_capture(session: Session, url: str) -> Snapshot | None:
    """Return the first good capture of an address."""
    return session.scalars(
        select(Snapshot)
        .where(Snapshot.url_hash == parse(url).hash64, Snapshot.status == 200)
        .order_by(Snapshot.captured_at, Snapshot.id)
        .limit(1)
    ).one_or_none()


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoTour:
    """What was made of the captures, and where to look."""

    files: int
    records: int
    pages: int
    changes: dict[str, int]
    compare_path: str | None
    """A change, as the API tells it."""
    compared_url: str | None
    replay_path: str | None
    """The front page as it was first, on the replay host."""


def read_captures(archive: Archive, front_page: str) -> DemoTour:
    """Index what is sealed, let search take it in, compare the captures; return what came of it."""
    with (
        closing(connect(archive.database.url)) as raw_db,
        closing(Indexer(raw_db, archive.clock, archive.home)) as indexer,
    ):
        indexed = index_pending(indexer, raw_db, archive.clock)
    judge_pending(archive.database, archive.clock)
    # After the index and before the server starts: search answers from its own files.
    drain(archive.database, archive.home, archive.clock)
    changes: Counter[str] = compute_pending(archive.database, archive.clock).types
    with archive.database.read() as session:
        change, first = an_update(session), first_capture(session, front_page)
    return DemoTour(
        files=len(indexed),
        records=sum(file.records for file in indexed),
        pages=sum(file.pages for file in indexed),
        changes=dict(changes),
        compare_path=f"/api/changes/compare?toSnapshotId={change.to_snapshot_id}" if change else None,
        compared_url=change.url if change else None,
        replay_path=replay_path(digits14(first.captured_at), "", first.url) if first else None,
    )
