"""Which execution is meant when none is named."""

from __future__ import annotations

from holdfast.errors import NotFound
from holdfast.jobs.live import queries
from holdfast.wiring import Ground


def find_execution(ground: Ground, wanted: int | None) -> int:
    """Return the execution that is meant: this one, or the newest; NotFound if there is none."""
    with ground.hot.read() as tx:
        ids = queries.latest_executions(tx, limit=1)
        found = queries.execution(tx, wanted) if wanted is not None else None
    if not ids:
        raise NotFound("no executions yet; start one with: holdfast crawl https://example.org")
    if wanted is not None and found is None:
        raise NotFound(f"there is no execution {wanted}; see them with: holdfast status")
    return ids[0] if wanted is None else wanted
