"""Computes what one state of the index adds to another from their segments, even if some were merged in between.

There is no result if a state does more than add: if rows are deleted or changed, or a document or URL differs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from holdfast.search.columns import Columns
from holdfast.search.places import Ids, Numbering
from holdfast.search.segments import (
    Entries,
    Ranges,
    Segment,
    Table,
    cleared_by,
    join_ranges,
    living_rows,
    packed_texts,
    sorted_rows,
    text_lengths,
    united,
)

_NO_RANGES: Final = np.empty((0, 2), np.int64)


def added_segment(columns: Columns, before: Sequence[Segment], after: Sequence[Segment]) -> Segment | None:
    """Return the rows added after the segments in `before`, as one segment; None if the change is not a pure
    addition.
    """
    kept = 0
    while kept < min(len(before), len(after)) and before[kept] is after[kept]:
        kept += 1
    gone, come = before[kept:], after[kept:]
    old_rows, rows = sorted_rows(living_rows(gone)), sorted_rows(living_rows(come))
    is_old = np.isin(rows["id"], old_rows["id"])
    if rows[is_old].tobytes() != old_rows.tobytes():
        return None
    if kept and _clears(columns, old_rows["id"], _ranges(gone), _ranges(come)):
        return None
    documents = _new_entries(columns.documents, gone, come, "documents")
    addresses = _new_entries(columns.addresses, gone, come, "addresses")
    if documents is None or addresses is None:
        return None
    # Copied out of the files, which are merged into others and removed, one after another.
    strings = packed_texts((documents, addresses), come)
    return Segment(
        name="",
        rows=rows[~is_old],
        documents=documents[0],
        addresses=addresses[0],
        cleared=_NO_RANGES,
        strings=strings,
    )


def _ranges(segments: Sequence[Segment]) -> Ranges:
    return join_ranges(np.concatenate([_NO_RANGES, *(segment.cleared for segment in segments)]))


def _clears(columns: Columns, merged: Ids, before: Ranges, after: Ranges) -> bool:
    if len(before) and len(after):
        # An extended range covers only the part that it did not cover before.
        at = np.maximum(np.searchsorted(before[:, 0], after[:, 0], side="right") - 1, 0)
        overlaps = (before[at, 0] <= after[:, 0]) & (after[:, 0] <= before[at, 1])
        after = np.stack((np.where(overlaps, before[at, 1] + 1, after[:, 0]), after[:, 1]), axis=1)
    # Most speak for ids that no row has had: the others are looked for among all rows.
    after = after[(after[:, 0] <= after[:, 1]) & (after[:, 0] <= columns.last_id)]
    return _count_within(columns.ids, after) != _count_within(merged, after)


# Up to this many ranges, each is compared in a pass of its own; with more, each id is looked up.
_FEW: Final = 8


def _count_within(ids: Ids, ranges: Ranges) -> int:
    if len(ranges) > _FEW:
        return int(np.count_nonzero(cleared_by(ids, ranges)))
    return sum(int(np.count_nonzero((ids >= first) & (ids <= last))) for first, last in ranges.tolist())


def _new_entries(numbering: Numbering, gone: Sequence[Segment], come: Sequence[Segment], name: str) -> Entries | None:
    """Return the documents or URLs that are not numbered yet; None if one of the others changed."""
    (old, old_from), (new, new_from) = united(gone, name), united(come, name)
    is_known = numbering.places(_keys(new)) != numbering.none
    again = new[is_known], new_from[is_known]
    # Segments were not merged, so an entry with a known key is a changed one.
    if not _equal(old, again[0]) or not _same_texts((old, old_from), gone, again, come):
        return None
    return new[~is_known], new_from[~is_known]


def _keys(table: Table) -> Ids:
    keys: Ids = table[(table.dtype.names or ())[0]].astype(np.int64)
    return keys


def _equal(some: Table, others: Table) -> bool:
    some, others = some.copy(), others.copy()
    some["offset"] = others["offset"] = 0
    return some.tobytes() == others.tobytes()


def _same_texts(some: Entries, gone: Sequence[Segment], others: Entries, come: Sequence[Segment]) -> bool:
    lengths = text_lengths(some[0])
    if not len(lengths):
        return True
    # What lies side by side is compared at once: in files that were merged that is nearly all.
    breaks = np.zeros(len(lengths) - 1, np.bool_)
    for table, origin in (some, others):
        breaks |= (table["offset"][1:] != table["offset"][:-1] + lengths[:-1]) | (origin[1:] != origin[:-1])
    firsts = np.append(0, np.flatnonzero(breaks) + 1)
    sizes = np.add.reduceat(lengths, firsts).tolist()
    mine, theirs = (
        zip(origin[firsts].tolist(), table["offset"][firsts].tolist(), strict=True) for table, origin in (some, others)
    )
    return all(
        gone[one].strings[start : start + size] == come[other].strings[begin : begin + size]
        for (one, start), (other, begin), size in zip(mine, theirs, sizes, strict=True)
    )
