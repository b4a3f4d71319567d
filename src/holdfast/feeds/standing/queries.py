"""The statements behind the overview of feeds; plain ones, so that `holdfast status` starts fast. All are bounded."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any, NamedTuple

from holdfast.db.hot import Transaction
from holdfast.feeds.troubles import BACKLOG, BY_HAND


class DisabledFeed(NamedTuple):
    """A feed that is not polled any more, because of what it answered."""

    feed_id: int
    source: str
    url: str
    trouble: str | None
    disabled_at: int


class LateFeed(NamedTuple):
    """A feed whose turn has passed."""

    source_id: int
    source: str
    kind: str
    origin: str
    next_poll_at: int


DISABLED = """
SELECT f.id, s.code, f.url, f.last_error_type, f.disabled_at FROM feeds f JOIN sources s ON s.id = f.source_id
 WHERE f.disabled_at IS NOT NULL AND f.disabled_at >= ? AND s.enabled
   AND (f.last_error_type IS NULL OR f.last_error_type <> ?)
 ORDER BY f.disabled_at DESC, f.id LIMIT ?"""
LATE = """
SELECT s.id, s.code, f.kind, f.origin, f.next_poll_at FROM feeds f JOIN sources s ON s.id = f.source_id
 WHERE f.next_poll_at IS NOT NULL AND f.next_poll_at < ? AND s.enabled
   AND EXISTS (SELECT 1 FROM jobs j WHERE j.source_id = s.id AND j.kind = 'feed' AND j.deleted_at IS NULL
                                      AND j.state IN ('pending','scheduled','running'))
 ORDER BY f.next_poll_at, f.id LIMIT ?"""


BACKLOGS = """
SELECT s.code, count(*) FROM
 (SELECT source_id, last_error_type FROM feeds WHERE next_poll_at IS NOT NULL ORDER BY next_poll_at, id LIMIT ?) f
 JOIN sources s ON s.id = f.source_id WHERE f.last_error_type = ? AND s.enabled GROUP BY s.code ORDER BY s.code"""


def backlogs(tx: Transaction, *, among: int) -> list[tuple[str, int]]:
    """Return the sources whose feeds name more than may wait, with how many feeds do so; `among` the next to poll."""
    return [(row[0], int(row[1])) for row in tx.execute(BACKLOGS, (among, BACKLOG))]


def disabled_feeds(tx: Transaction, *, since: int, limit: int) -> list[DisabledFeed]:
    """Return the feeds that their answers have disabled since a moment, the latest first."""
    return [DisabledFeed(*row) for row in tx.execute(DISABLED, (since, BY_HAND, limit))]


def late_feeds(tx: Transaction, *, before: int, limit: int) -> list[LateFeed]:
    """Return the feeds of sources that are polled whose turn was before a moment, the latest of all first."""
    return [LateFeed(*row) for row in tx.execute(LATE, (before, limit))]


def configs(tx: Transaction, source_ids: Collection[int]) -> dict[int, dict[str, Any]]:
    """Return the configurations of a few sources."""
    marks = ",".join("?" * len(source_ids))
    rows = tx.execute(f"SELECT id, config FROM sources WHERE id IN ({marks})", tuple(source_ids))  # noqa: S608
    return {row[0]: row[1] if isinstance(row[1], dict) else json.loads(row[1]) for row in rows}
