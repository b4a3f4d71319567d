"""Feed and item rows as used by crawl processes: plain statements for both databases."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any, NamedTuple, Protocol

from holdfast.clock import moment_or_none, to_micros
from holdfast.db.raw import Row, Transaction
from holdfast.feeds.health import BY_HAND, FeedHealth
from holdfast.values import dataclass

# Values per IN: enough for few round trips, and far below SQLite's limit.
_AT_ONCE = 500


class StatementRunner(Protocol):
    def execute(self, statement: str, values: Sequence[Any] = ()) -> list[Row]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class FeedRow:
    id: int
    url: str
    url_hash: int
    kind: str
    origin: str
    last_polled_at: int | None
    content_hash: str | None
    etag: str | None
    last_modified: str | None
    count: int | None
    """Number of URLs when it was last read; None if never."""
    health: FeedHealth


class FeedItemRow(NamedTuple):
    url_hash: int
    url: str
    told_at: int | None


class WaitingItem(NamedTuple):
    id: int
    url: str
    feed_id: int
    is_feed: bool


_FEED = """id, url, url_hash, kind, origin, last_polled_at, content_hash, etag, last_modified, consecutive_errors,
       last_error_type, disabled_at, next_poll_at, last_item_count"""


def source_of(tx: Transaction, *, execution_id: int) -> int | None:
    rows = tx.execute(
        "SELECT j.source_id FROM executions e JOIN jobs j ON j.id = e.job_id WHERE e.id = ?", (execution_id,)
    )
    return int(rows[0][0]) if rows else None


def feed_by_hash(tx: Transaction, *, source_id: int, url_hash: int) -> FeedRow | None:
    rows = tx.execute(f"SELECT {_FEED} FROM feeds WHERE source_id = ? AND url_hash = ?", (source_id, url_hash))  # noqa: S608
    return _feed(rows[0]) if rows else None


def count_feeds(tx: Transaction, *, source_id: int) -> int:
    """Return the number of a source's feeds, including disabled ones."""
    return int(tx.execute("SELECT count(*) FROM feeds WHERE source_id = ?", (source_id,))[0][0])


def forget_disabled(tx: Transaction, *, source_id: int, before: int) -> int:
    """Delete discovered feeds that were disabled by errors before `before`; return how many.

    Feeds added or disabled by hand stay.
    """
    rows = tx.execute(
        "DELETE FROM feeds WHERE source_id = ? AND disabled_at IS NOT NULL AND disabled_at < ?"
        " AND origin <> 'configured' AND (last_error_type IS NULL OR last_error_type <> ?) RETURNING id",
        (source_id, before, BY_HAND),
    )
    return len(rows)


def insert_feed(tx: Transaction, *, source_id: int, url: str, url_hash: int, kind: str, origin: str, now: int) -> bool:
    """Add a feed that is due immediately; return False if the source already has it."""
    rows = tx.execute(
        "INSERT INTO feeds (source_id, url, url_hash, kind, origin, created_at, next_poll_at) VALUES (?,?,?,?,?,?,?)"
        # A crawl and a poll of one source may discover a feed at the same time.
        " ON CONFLICT (source_id, url_hash) DO NOTHING RETURNING id",
        (source_id, url, url_hash, kind, origin, now, now),
    )
    return bool(rows)


def delete_unverified(tx: Transaction, *, feed_id: int) -> None:
    tx.execute("DELETE FROM feeds WHERE id = ? AND last_item_count IS NULL AND origin <> 'configured'", (feed_id,))


def move_feed(tx: Transaction, *, feed_id: int, source_id: int, url: str, url_hash: int) -> bool:
    """Change the URL of a feed; return False if the source already has a feed there."""
    rows = tx.execute(
        "UPDATE feeds SET url = ?, url_hash = ?, etag = NULL, last_modified = NULL WHERE id = ?"
        # If two feeds redirect to one URL, the second keeps its own and is still polled there.
        " AND NOT EXISTS (SELECT 1 FROM feeds o WHERE o.source_id = ? AND o.url_hash = ?) RETURNING id",
        (url, url_hash, feed_id, source_id, url_hash),
    )
    return bool(rows)


def write_poll(tx: Transaction, row: FeedRow, *, error: str | None) -> bool:
    """Write a feed's row after a poll; return False if that poll, a later one, or an operator already changed it."""
    health = row.health
    rows = tx.execute(
        "UPDATE feeds SET last_polled_at = ?, next_poll_at = ?, consecutive_errors = ?, last_error = ?,"
        " last_error_type = ?, disabled_at = ?, kind = ?, last_item_count = ?, etag = ?, last_modified = ?,"
        # Repeating a poll after a kill must not count a failure twice, and feeds that an operator disabled stay so.
        " content_hash = ? WHERE id = ? AND (last_polled_at IS NULL OR last_polled_at < ?)"
        " AND (last_error_type IS NULL OR last_error_type <> ?) RETURNING id",
        (
            row.last_polled_at,
            _micros(health.next_poll_at),
            health.errors,
            error,
            health.trouble,
            _micros(health.disabled_at),
            row.kind,
            row.count,
            row.etag,
            row.last_modified,
            row.content_hash,
            row.id,
            row.last_polled_at,
            BY_HAND,
        ),
    )
    return bool(rows)


def make_due(tx: Transaction, *, feed_id: int, now: int) -> None:
    # Update the row, not only the queue: a poll killed before reading the list then finds it due again.
    tx.execute("UPDATE feeds SET next_poll_at = ? WHERE id = ? AND disabled_at IS NULL", (now, feed_id))


# An attempt without a feed is a candidate of a search, unless it redirects: then its feed has moved on.
SETTLED = """
SELECT c.id, c.outcome,
       CASE WHEN f.id IS NULL THEN CASE WHEN c.outcome = 'success' AND c.redirected_to IS NULL THEN 1 ELSE 0 END
            WHEN f.disabled_at IS NULL AND (f.last_polled_at IS NULL OR f.last_polled_at < c.completed_at) THEN 1
            ELSE 0 END
  FROM page_crawls c JOIN pages p ON p.id = c.page_id
  LEFT JOIN feeds f ON f.source_id = ? AND f.url_hash = p.url_hash
 WHERE c.execution_id = ? AND c.kind = 'sitemap' AND c.outcome IS NOT NULL"""


def settled_lists(tx: Transaction, *, source_id: int, execution_id: int) -> list[tuple[int, str, bool]]:
    """Return settled attempts of an execution for feeds: id, outcome, and whether no feed has read the response."""
    return [(row[0], row[1], bool(row[2])) for row in tx.execute(SETTLED, (source_id, execution_id))]


def known_items(tx: Transaction, *, source_id: int, hashes: Sequence[int]) -> dict[int, int | None]:
    """Return which of these URLs are known items of a source, with the last date that a feed gave."""
    known: dict[int, int | None] = {}
    for part in _parts(hashes):
        known.update((row[0], row[1]) for row in tx.execute(KNOWN % _marks(part), (source_id, *part)))
    return known


def insert_items(tx: Transaction, items: Iterable[FeedItemRow], *, source_id: int, feed_id: int, now: int) -> None:
    """Add waiting items; one that another poll added meanwhile stays unchanged."""
    tx.many(
        "INSERT INTO feed_items (source_id, feed_id, url_hash, url, told_at, found_at) VALUES (?,?,?,?,?,?)"
        " ON CONFLICT (source_id, url_hash) DO NOTHING",
        [(source_id, feed_id, item.url_hash, item.url, item.told_at, now) for item in items],
    )


def renew_items(tx: Transaction, items: Iterable[FeedItemRow], *, source_id: int, feed_id: int, now: int) -> None:
    """Queue known items again whose date is newer."""
    tx.many(
        "UPDATE feed_items SET told_at = ?, feed_id = ?, found_at = ?, execution_id = NULL"
        " WHERE source_id = ? AND url_hash = ? AND told_at < ?",
        [(item.told_at, feed_id, now, source_id, item.url_hash, item.told_at) for item in items],
    )


def date_items(tx: Transaction, items: Iterable[FeedItemRow], *, source_id: int) -> None:
    """Store the dates of known items without queueing them."""
    tx.many(
        "UPDATE feed_items SET told_at = ? WHERE source_id = ? AND url_hash = ? AND (told_at IS NULL OR told_at < ?)",
        [(item.told_at, source_id, item.url_hash, item.told_at) for item in items],
    )


# Sort all waiting items: 50,000 items of a large sitemap must not precede today's news.
WAITING = """
SELECT i.id, i.url, i.feed_id, f.kind FROM feed_items i LEFT JOIN feeds f ON f.id = i.feed_id
 WHERE i.source_id = ? AND i.execution_id IS NULL
 ORDER BY CASE WHEN f.kind = 'sitemap' THEN 1 ELSE 0 END, i.told_at DESC NULLS LAST, i.id LIMIT ?"""
# The inner LIMIT ends the count once enough items are found.
WAITING_COUNT = """
SELECT count(*) FROM (SELECT 1 FROM feed_items WHERE source_id = ? AND execution_id IS NULL LIMIT ?) waiting"""
KNOWN = "SELECT url_hash, told_at FROM feed_items WHERE source_id = ? AND url_hash IN (%s)"


def waiting_items(tx: Transaction, *, source_id: int, limit: int) -> list[WaitingItem]:
    """Return waiting items: those of feeds before those of sitemaps, newest first."""
    rows = tx.execute(WAITING, (source_id, limit))
    return [WaitingItem(row[0], row[1], row[2], row[3] != "sitemap") for row in rows]


def count_waiting(tx: Transaction, *, source_id: int, limit: int) -> int:
    """Return the number of waiting items, counted up to `limit`."""
    return int(tx.execute(WAITING_COUNT, (source_id, limit))[0][0])


def take_items(tx: StatementRunner, ids: Sequence[int], *, execution_id: int) -> int:
    """Assign waiting items to an execution that is still running; return how many were available."""
    taken = 0
    for part in _parts(ids):
        statement = (
            f"UPDATE feed_items SET execution_id = ? WHERE execution_id IS NULL AND id IN ({_marks(part)})"  # noqa: S608
            # A suspended worker may return after its execution was taken over: it then claims nothing.
            " AND EXISTS (SELECT 1 FROM executions e WHERE e.id = ? AND e.state = 'running') RETURNING id"
        )
        taken += len(tx.execute(statement, (execution_id, *part, execution_id)))
    return taken


# Reasons of attempts closed without a request: their items are released, but not those that a rule excluded. An open
# attempt of an ended execution was lost with its process.
_UNASKED = """
SELECT p.url_hash FROM page_crawls c JOIN pages p ON p.id = c.page_id WHERE c.execution_id = ? AND c.kind = 'page'
   AND (c.outcome IS NULL OR (c.outcome = 'excluded'
        AND c.reason IN ('over_limit:max_time', 'over_limit:max_bytes', 'stopped', 'cancelled')))"""


def unasked(tx: Transaction, *, job_id: int, limit: int) -> dict[int, list[int]]:
    """Return the URL hashes that a job's last executions never requested: left open, or closed for lack of time."""
    latest = tx.execute(
        "SELECT id FROM executions WHERE job_id = ? AND state IN ('completed', 'failed', 'cancelled')"
        " ORDER BY number DESC LIMIT ?",
        (job_id, limit),
    )
    found = {number: [row[0] for row in tx.execute(_UNASKED, (number,))] for (number,) in latest}
    return {number: hashes for number, hashes in found.items() if hashes}


def release_items(tx: Transaction, hashes: Sequence[int], *, source_id: int, execution_id: int) -> int:
    """Make items of an execution wait again; return how many."""
    statement = (
        "UPDATE feed_items SET execution_id = NULL WHERE source_id = ? AND execution_id = ?"
        " AND url_hash IN (%s) RETURNING id"
    )
    return sum(len(tx.execute(statement % _marks(part), (source_id, execution_id, *part))) for part in _parts(hashes))


def item_ids(tx: Transaction) -> tuple[int, int] | None:
    """Return the smallest and the largest id of all items; None without any."""
    first, last = tx.execute("SELECT min(id), max(id) FROM feed_items")[0]
    return None if first is None else (first, last)


def old_items(tx: Transaction, *, start: int, limit: int, before: int) -> list[int]:
    """Return, among the next `limit` ids from `start`, the claimed items last listed before `before`."""
    # Limit by id before filtering by date: no index has both, and the table may be long.
    rows = tx.execute(
        "SELECT id FROM (SELECT id, execution_id, found_at FROM feed_items WHERE id >= ? ORDER BY id LIMIT ?) stretch"
        " WHERE execution_id IS NOT NULL AND found_at < ?",
        (start, limit, before),
    )
    return [row[0] for row in rows]


def delete_items(tx: Transaction, ids: Sequence[int], *, before: int) -> int:
    """Delete these items, unless they wait or were listed again meanwhile; return how many."""
    statement = "DELETE FROM feed_items WHERE id IN (%s) AND execution_id IS NOT NULL AND found_at < ? RETURNING id"
    return sum(len(tx.execute(statement % _marks(part), (*part, before))) for part in _parts(ids))


def unpolled(tx: Transaction, ids: Sequence[int], *, since: int) -> list[FeedRow]:
    """Return those of these feeds that were not polled since a time."""
    statement = f"SELECT {_FEED} FROM feeds WHERE (last_polled_at IS NULL OR last_polled_at < ?) AND id IN (%s)"  # noqa: S608
    return [_feed(row) for part in _parts(ids) for row in tx.execute(statement % _marks(part), (since, *part))]


def _parts(values: Sequence[int]) -> Iterator[Sequence[int]]:
    return (values[start : start + _AT_ONCE] for start in range(0, len(values), _AT_ONCE))


def _marks(values: Sequence[int]) -> str:
    return ",".join("?" * len(values))


def _micros(moment: datetime | None) -> int | None:
    return None if moment is None else to_micros(moment)


def _feed(row: Row) -> FeedRow:
    health = FeedHealth(
        errors=row[9], trouble=row[10], disabled_at=moment_or_none(row[11]), next_poll_at=moment_or_none(row[12])
    )
    return FeedRow(
        id=row[0],
        url=row[1],
        url_hash=row[2],
        kind=row[3],
        origin=row[4],
        last_polled_at=row[5],
        content_hash=row[6],
        etag=row[7],
        last_modified=row[8],
        count=row[13],
        health=health,
    )
