"""A tour of the demo's archive: what to look at, and where."""

from __future__ import annotations

from collections import Counter
from dataclasses import field

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from holdfast.clock import digits14
from holdfast.db.models import Change, PageGroup, Snapshot, WarcFile
from holdfast.replay.address import replay_path
from holdfast.urls import parse
from holdfast.values import dataclass
from holdfast.wiring.archive import Archive

FEES = "services/fees.html"
"""The page that differs in every crawl."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoTour:
    """The captures and pages to look at."""

    files: int
    records: int
    pages: int
    changes: dict[str, int]
    fees_url: str
    """A page that changed in every crawl."""
    moments: list[str] = field(default_factory=list)
    """The times of its captures, 14 digits each, earliest first."""
    snapshot_ids: list[int] = field(default_factory=list)
    """Ids of these captures, in the same order."""
    compare_path: str | None
    """The latest change, as an API path."""
    compared_url: str | None
    replay_path: str | None
    """The first version of the front page, on the replay host."""


def captures_of(session: Session, url: str) -> list[Snapshot]:
    """Return the successful captures of an address, earliest first."""
    return list(
        session.scalars(
            select(Snapshot)
            .where(Snapshot.url_hash == parse(url).hash64, Snapshot.status == 200)
            .order_by(Snapshot.captured_at, Snapshot.id)
        )
    )


def read_tour(archive: Archive, front_page: str) -> DemoTour:
    fees_url = f"{front_page}{FEES}"
    with archive.database.read() as session:
        files, records = session.execute(
            select(func.count(), func.coalesce(func.sum(WarcFile.record_count), 0)).where(WarcFile.state == "sealed")
        ).one()
        pages = session.scalar(select(func.count()).select_from(Snapshot).where(Snapshot.is_page))
        changes = Counter(session.scalars(select(Change.type).where(Change.type != "unchanged")))
        fees, front = captures_of(session, fees_url), captures_of(session, front_page)
        change = session.scalar(
            select(Change.to_snapshot_id)
            .join(PageGroup, PageGroup.id == Change.group_id)
            .where(Change.type == "updated", Change.diff_id.is_not(None), PageGroup.url == fees_url)
            .order_by(Change.id.desc())
            .limit(1)
        )
    return DemoTour(
        files=files,
        records=records or 0,
        pages=pages or 0,
        changes=dict(changes),
        fees_url=fees_url,
        moments=[digits14(one.captured_at) for one in fees],
        snapshot_ids=[one.id for one in fees],
        compare_path=f"/api/changes/compare?toSnapshotId={change}" if change else None,
        compared_url=fees_url if change else None,
        replay_path=replay_path(digits14(front[0].captured_at), "", front[0].url) if front else None,
    )
