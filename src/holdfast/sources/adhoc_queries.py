"""Finds or creates the source of an ad-hoc crawl without a session, so that a crawl process stays small."""

from __future__ import annotations

from holdfast.db.raw import Transaction
from holdfast.sources.codes import free_code


def ensure_source(tx: Transaction, *, host: str, base_url: str, now: int) -> tuple[int, str]:
    """Return the id and code of the oldest source of this front page, created if the site has none, and locked.

    Until the transaction ends no other start creates a job for it: of two concurrent starts, the second finds the
    first's job.
    """
    while True:
        # The insert returns nothing if another process just created the row; the next round then reads it.
        rows = tx.execute("SELECT id, code FROM sources WHERE base_url = ? ORDER BY id LIMIT 1", (base_url,))
        found = (
            (int(rows[0][0]), str(rows[0][1])) if rows else _insert_source(tx, host=host, base_url=base_url, now=now)
        )
        if found is not None:
            # Locks the row without a change: on PostgreSQL a second start waits here until the first one's job is
            # committed.
            tx.execute("UPDATE sources SET updated_at = updated_at WHERE id = ?", found[:1])
            return found


def _insert_source(tx: Transaction, *, host: str, base_url: str, now: int) -> tuple[int, str] | None:
    """Create a source; return None if another transaction has just created one with this code."""

    def is_taken(code: str) -> bool:
        # Used by another site: the insert finds one of this site that was just created.
        other = "SELECT 1 FROM sources WHERE code = ? AND (base_url IS NULL OR base_url <> ?)"
        return bool(tx.execute(other, (code, base_url)))

    code = free_code(is_taken, name=None, seed=host)
    rows = tx.execute(
        "INSERT INTO sources (code, name, base_url, enabled, config, created_at, updated_at)"
        " VALUES (?, ?, ?, true, '{}', ?, ?) ON CONFLICT (code) DO NOTHING RETURNING id",
        (code, host, base_url, now, now),
    )
    return (int(rows[0][0]), code) if rows else None
