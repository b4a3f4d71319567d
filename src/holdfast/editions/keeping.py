"""Editions that are due to be accounted for: their shards have come to rest, and the last report is older than that."""

from __future__ import annotations

from collections.abc import Collection

from sqlalchemy.orm import Session

from holdfast.editions import queries
from holdfast.editions.composition import shard_counts
from holdfast.editions.volume import Volume, read_volume

_AT_REST = frozenset({"indexed", "failed", "index_failed", "cancelled"})


def next_due(session: Session, *, passed: Collection[int] = ()) -> int | None:
    """Return an edition whose report is to be written, None if there is none; those in `passed` are left out.

    A look costs a few short questions for each edition that is under way, whatever the archive's size.
    """
    for edition_id in queries.under_way(session):
        if edition_id not in passed and is_due(read_volume(session, edition_id)):
            return edition_id
    return None


def is_due(volume: Volume) -> bool:
    """Return whether nothing of an edition is going to happen by itself, and its report does not know that yet."""
    row = volume.edition
    if not volume.runs or any(not shard.state.is_accepted and shard.status not in _AT_REST for shard in volume.shards):
        return False
    if row.generated_at is None:
        return True
    counted = {"shards": row.shard_count, "indexed_shards": row.indexed_shard_count,
               "needs_review_shards": row.needs_review_shard_count}  # fmt: skip
    ended = [run.finished_at for _, run in volume.runs if run.finished_at is not None]
    return shard_counts(volume.shards) != counted or (bool(ended) and max(ended) > row.generated_at)
