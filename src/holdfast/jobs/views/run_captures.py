"""What a run captured of an address: the capture that its record became, once that is indexed and if it may be seen."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from sqlalchemy import select
from sqlalchemy.orm import Session

from holdfast.db.models import PageCrawl, Snapshot
from holdfast.warc.record import snapshot_id
from holdfast.withdrawals.visibility import visible


class CaptureOfRun(NamedTuple):
    """One capture."""

    snapshot_id: int
    captured_at: datetime
    url: str


def captures_of(session: Session, attempt_ids: Sequence[int]) -> dict[int, CaptureOfRun]:
    """Return what was captured by these attempts, by their ids; one that stored nothing is left out."""
    stored = session.execute(
        select(PageCrawl.id, PageCrawl.warc_file_id, PageCrawl.warc_ordinal).where(
            PageCrawl.id.in_(attempt_ids), PageCrawl.warc_file_id.is_not(None), PageCrawl.warc_ordinal.is_not(None)
        )
    )
    numbers = {attempt: snapshot_id(file or 0, ordinal or 0) for attempt, file, ordinal in stored}
    rows = session.execute(
        select(Snapshot.id, Snapshot.captured_at, Snapshot.url).where(Snapshot.id.in_(numbers.values()), *visible())
    )
    found = {row[0]: CaptureOfRun(*row) for row in rows}
    return {attempt: found[number] for attempt, number in numbers.items() if number in found}
