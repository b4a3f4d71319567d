"""Every capture of an edition, with the shard that brought it; read in short sessions, in the order of executions."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.db.engine import Database
from holdfast.editions import queries
from holdfast.editions.queries import CaptureRow, Which
from holdfast.editions.volume import Shard, Volume


def captures_of(
    database: Database, volume: Volume, *, which: Which = Which.PAGES
) -> Iterator[tuple[Shard, CaptureRow]]:
    """Yield the captures of an edition's executions; withdrawn ones are marked."""
    for shard, run in volume.runs:
        after = -1
        while True:
            with database.read() as session:
                rows = queries.captures(session, run.id, after=after, which=which)
            yield from ((shard, row) for row in rows)
            if len(rows) < queries.STRETCH:
                break
            after = rows[-1].id
