"""Which execution is meant when none is named."""

from __future__ import annotations

from holdfast.db.engine import Database
from holdfast.errors import NotFound
from holdfast.jobs import queries
from holdfast.wiring import Ground


def find_execution(ground: Ground, wanted: int | None) -> int:
    """Return the execution that is meant: this one, or the newest; NotFound if there is none."""
    database = Database(ground.settings.database)
    with database.read() as session:
        rows = queries.latest_executions(session, limit=1)
        found = queries.execution(session, wanted) if wanted is not None else None
    database.close()
    if not rows:
        raise NotFound("no executions yet; start one with: holdfast crawl https://example.org")
    if wanted is not None and found is None:
        raise NotFound(f"there is no execution {wanted}; see them with: holdfast status")
    return rows[0].id if wanted is None else wanted
