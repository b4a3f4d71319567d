"""Snapshots and changes as rows, read in short sessions: while a reader is slow, no transaction waits for it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from holdfast import cancellation
from holdfast.changes.compare import DIFF_VERSION, NORMALISATION_VERSION
from holdfast.changes.feed import compare_path
from holdfast.changes.listing.events import Event
from holdfast.changes.listing.queries import events_of
from holdfast.db.engine import Database
from holdfast.exports import queries
from holdfast.exports.queries import Reach, SnapshotRow
from holdfast.exports.tables import Row
from holdfast.jobs.names import execution_name
from holdfast.jobs.queries import job_names

_PAGE = 500


class Extent(NamedTuple):
    """How much of what is in reach is exported: behind which id, how many rows."""

    reach: Reach = Reach()
    after: int = -1
    limit: int | None = None
    """All, if None."""


def snapshot_rows(database: Database, extent: Extent, *, site: str) -> Iterator[Row]:
    """Yield the rows of `SNAPSHOT_COLUMNS`, by id; `site` is what their links begin with."""
    left, after = extent.limit, extent.after
    while left is None or left > 0:
        cancellation.check()
        most = _PAGE if left is None else min(_PAGE, left)
        page, until = _snapshot_page(database, extent.reach, after, most)
        with database.read() as session:
            names = job_names(session, (row.execution_id for row in page))
        yield from (_snapshot(row, names.get(row.execution_id), site) for row in page)
        left = None if left is None else left - len(page)
        if len(page) == most:
            after = page[-1].id
        elif until is not None:
            after = until
        else:
            return


def _snapshot_page(database: Database, reach: Reach, after: int, most: int) -> tuple[list[SnapshotRow], int | None]:
    """Return the next rows, and up to which id they are all; None if nothing is behind them. By file if days count."""
    with database.read() as session:
        if not reach.has_dates:
            return queries.snapshots_after(session, reach, after=after, limit=most), None
        ids = queries.next_stretch(session, reach, after=after)
        if ids is None:
            return [], None
        return queries.snapshots_within(session, reach, ids, limit=most), ids.last


def _snapshot(row: SnapshotRow, job_name: str | None, site: str) -> Row:
    return (
        row.id, row.source_code, row.source_name, row.url, row.group, row.captured_at, row.language, row.status,
        row.media_type, row.title, row.execution_id, execution_name(row.source_code, row.execution_id, job_name),
        f"{site}/api/snapshot/{row.id}", row.backend, row.fidelity,
    )  # fmt: skip


def change_rows(database: Database, extent: Extent, *, site: str) -> Iterator[Row]:
    """Yield the rows of `CHANGE_COLUMNS`, by id; of some days in the order of time."""
    left, after = extent.limit, extent.after
    while left is None or left > 0:
        cancellation.check()
        with database.read() as session:
            ids = queries.changes_after(session, extent.reach, after=after, limit=_PAGE)
            page = events_of(session, ids) if ids else []
        if not ids:
            return
        yield from (_change(event, site) for event in page[:left])
        after, left = ids[-1], None if left is None else left - len(page)


def _change(event: Event, site: str) -> Row:
    has_diff = event.diff_id is not None
    return (
        event.id, event.source_code, event.source_name, event.group, event.from_snapshot_id, event.to_snapshot_id,
        event.from_captured_at, event.to_captured_at, event.from_execution_id, event.to_execution_id, event.type,
        event.summary, event.added_sections, event.removed_sections, event.changed_sections, event.added_lines,
        event.removed_lines, event.ratio, event.high_noise, bool(event.truncated),
        f"v{DIFF_VERSION}" if has_diff else None, f"v{NORMALISATION_VERSION}" if has_diff else None,
        event.computed_at, f"{site}{compare_path(event)}",
    )  # fmt: skip
