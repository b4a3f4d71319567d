"""What jobs and their runs add up to, counted beside the requests: a row a run is read, so no request does it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from sqlalchemy.orm import Session

from holdfast.api import queries
from holdfast.api.counting import AT_ONCE_S, Counting
from holdfast.clock import Clock
from holdfast.db.engine import Database
from holdfast.db.limits import take_time
from holdfast.jobs.listing.queries import admin_counts, cleanup_counts, settled_pages

FRESH_S = 5.0
"""A count is no older than this where counting is quick; a monitor asks every 15 to 60 seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkFigures:
    """Jobs by status and clean-up, pages by source, and what lies on the disk."""

    jobs: dict[str, int]
    """In document 000's words."""
    cleanups: dict[str, int]
    crawled: Mapping[str, int]
    failed: Mapping[str, int]
    """Pages, by the source's code."""
    warc_bytes: int


class Work(Counting[WorkFigures]):
    """The figures of jobs and runs, kept ready."""

    def __init__(self, database: Database, clock: Clock, *, at_once_s: float = AT_ONCE_S) -> None:
        super().__init__(
            database, clock, state=lambda _session: clock.monotonic() // FRESH_S, count=_count, at_once_s=at_once_s
        )


def _count(session: Session) -> WorkFigures:
    take_time(session)
    crawled, failed = Counter[str](), Counter[str]()
    for code, counts in queries.counts_by_source(session):
        crawled[code] += counts.get("pages", 0)
        failed[code] += queries.failures_of(counts)
    for code, done, missed in settled_pages(session):
        crawled[code] += done
        failed[code] += missed
    return WorkFigures(
        jobs=admin_counts(session), cleanups=cleanup_counts(session), crawled=crawled, failed=failed,
        warc_bytes=queries.warc_bytes(session),
    )  # fmt: skip
