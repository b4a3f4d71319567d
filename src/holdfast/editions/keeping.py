"""Editions that are due to be accounted for: their shards have come to rest, and the last report is older than that."""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy.orm import Session

from holdfast.editions import queries
from holdfast.editions.volume import Volume, read_volume

_AT_REST = frozenset({"indexed", "failed", "index_failed", "cancelled"})


def due(session: Session, *, passed: Collection[int] = ()) -> list[int]:
    """Return the editions whose report is to be written, those in `passed` left out; mostly none.

    Mostly one question: what waits for its date, and what has not changed since its report, is not looked at.
    """
    return [found for found in queries.unaccounted(session)
            if found not in passed and is_at_rest(read_volume(session, found))]  # fmt: skip


def is_at_rest(volume: Volume) -> bool:
    """Return whether nothing of an edition is going to happen by itself."""
    return bool(volume.shards) and all(shard.state.is_accepted or shard.status in _AT_REST for shard in volume.shards)
