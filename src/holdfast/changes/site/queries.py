"""The captures of two executions: a stretch of one by id, and what both hold of given pages or documents."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import select
from sqlalchemy.orm import Session

from holdfast.db.models import Execution, Job, Snapshot
from holdfast.db.visibility import visible
from holdfast.errors import NotFound
from holdfast.index.queries import Holding, holding_of
from holdfast.types import BROKEN_OFF

_MAX_TWINS = 50
"""Captures of one document that are looked at to find out whether a page moved."""


class Held(NamedTuple):
    """One capture of a page in one of the two executions."""

    id: int
    execution_id: int
    url: str
    url_hash: int
    captured_at: datetime
    status: int | None
    body_hash: bytes | None
    document_id: int | None
    truncated: str | None = None
    """Why the stored body is short (WARC-Truncated)."""

    @property
    def broke_off(self) -> bool:
        """Whether the body ended before its server had sent all of it: what is missing was not removed."""
        return self.truncated in BROKEN_OFF and (self.status is None or self.status < 300)

    @property
    def is_ok(self) -> bool:
        """Whether the page was there, and came whole."""
        return not self.broke_off and (self.status is None or 200 <= self.status < 300 or self.status == 304)

    @property
    def has_failed(self) -> bool:
        """Whether nothing can be said: the server failed or forbade it, or the body broke off."""
        refused = self.status is not None and self.status >= 400 and self.status not in (404, 410)
        return self.broke_off or refused


_COLUMNS: tuple[Any, ...] = (
    Snapshot.id, Snapshot.execution_id, Snapshot.url, Snapshot.url_hash, Snapshot.captured_at, Snapshot.status,
    Snapshot.body_hash, Snapshot.document_id, Snapshot.truncated,
)  # fmt: skip


def source_of(session: Session, execution_id: int) -> int:
    """Return the source that an execution belongs to; NotFound if there is no such execution."""
    query = select(Job.source_id).join(Execution, Execution.job_id == Job.id).where(Execution.id == execution_id)
    found = session.scalar(query)
    if found is None:
        raise NotFound(f"there is no execution {execution_id}; see them with: holdfast status")
    return found


Holdings = Mapping[int, Holding]
"""Where the captures of each execution stand, by execution; one without a file is left out."""


def holdings_of(session: Session, executions: Collection[int]) -> dict[int, Holding]:
    """Return where the captures of these executions stand. Reads a row a file: once for each slice of a walk."""
    found = {execution_id: holding_of(session, execution_id) for execution_id in executions}
    return {execution_id: holding for execution_id, holding in found.items() if holding is not None}


def stretch(session: Session, execution_id: int, *, after: int, limit: int) -> list[Held]:
    """Return the next captures of pages of an execution, by id."""
    rows = session.execute(
        select(*_COLUMNS)
        .where(Snapshot.execution_id == execution_id, Snapshot.is_page, Snapshot.id > after, *visible())
        .order_by(Snapshot.id)
        .limit(limit)
    )
    return [Held._make(row) for row in rows]


def of_pages(session: Session, holdings: Holdings, pages: Collection[int]) -> dict[tuple[int, int], Held]:
    """Return the last capture of each of these pages in each execution, by execution and page.

    Of a page's history only the stretch is read in which the execution's captures lie.
    """
    rows: list[Held] = []
    for holding in holdings.values():
        found = session.execute(
            select(*_COLUMNS).where(Snapshot.url_hash.in_(pages), Snapshot.is_page, *holding.clauses(), *visible())
        )
        rows += map(Held._make, found)
    last: dict[tuple[int, int], Held] = {}
    for held in sorted(rows, key=lambda held: (held.captured_at, held.id)):
        last[held.execution_id, held.url_hash] = held
    return last


def twins(session: Session, holdings: Holdings, document_id: int) -> list[Held]:
    """Return captures of a document in these executions, by id; only the first few where it is everywhere."""
    found: list[Held] = []
    for execution_id, holding in holdings.items():
        # A snapshot's id begins with its file's: the index on documents is read only where this execution's lie.
        rows = session.execute(
            select(*_COLUMNS)
            .where(
                Snapshot.document_id == document_id,
                Snapshot.id.between(holding.first_id, holding.last_id),
                Snapshot.execution_id + 0 == execution_id,
                Snapshot.is_page,
                *visible(),
            )
            .order_by(Snapshot.id)
            .limit(_MAX_TWINS)
        )
        found += map(Held._make, rows)
    return found
