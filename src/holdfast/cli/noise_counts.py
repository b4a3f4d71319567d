"""Counts of a run's noise captures for `holdfast report`, which imports this only for its tables."""

from __future__ import annotations

from contextlib import closing

from holdfast.db.engine import Database
from holdfast.noise.queries import counts_of


def noise_counts(database_url: str, execution_id: int) -> dict[str, int]:
    """Return the number of the run's captures that do not show their page, by reason."""
    with closing(Database(database_url)) as database, database.read() as session:
        return counts_of(session, execution_id)
