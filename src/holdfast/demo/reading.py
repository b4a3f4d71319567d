"""From sealed files to an archive that can be read: index, search, changes. For the demo; crawls nothing itself."""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from dataclasses import dataclass

from holdfast.changes.compute import compute_pending
from holdfast.clock import digits14
from holdfast.db.connect import connect
from holdfast.demo.queries import an_update, first_capture
from holdfast.index.indexer import Indexer, index_pending
from holdfast.replay.address import replay_path
from holdfast.search.drain import drain
from holdfast.wiring.archive import Archive


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
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


def read_captures(archive: Archive, front_page: str) -> Reading:
    """Index what is sealed, let search take it in, compare the captures; return what came of it."""
    with closing(connect(archive.database.url)) as hot, closing(Indexer(hot, archive.clock, archive.home)) as indexer:
        indexed = index_pending(indexer, hot, archive.clock)
    drain(archive.database, archive.home, archive.clock)
    changes: Counter[str] = compute_pending(archive.database, archive.clock).types
    with archive.database.read() as session:
        sight, first = an_update(session), first_capture(session, front_page)
    return Reading(
        files=len(indexed), records=sum(file.records for file in indexed), pages=sum(file.pages for file in indexed),
        changes=dict(changes),
        compare_path=f"/api/changes/compare?toSnapshotId={sight.to_snapshot_id}" if sight else None,
        compared_url=sight.url if sight else None,
        replay_path=replay_path(digits14(first.captured_at), "", first.url) if first else None,
    )  # fmt: skip
