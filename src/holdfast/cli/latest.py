"""Which execution is meant when none is named."""

from __future__ import annotations

from holdfast.db.engine import Database
from holdfast.errors import NotFound
from holdfast.jobs import queries
from holdfast.wiring import Ground


def latest_execution(ground: Ground) -> int:
    """Return the newest execution; NotFound if there is none."""
    database = Database(ground.settings.database)
    with database.read() as session:
        rows = queries.latest_executions(session, limit=1)
    database.close()
    if not rows:
        raise NotFound("no executions yet; start one with: holdfast crawl https://example.org")
    return rows[0].id
