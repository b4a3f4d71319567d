"""Near-duplicates among results: hidden behind the better-ranked one, counted, and listed on request.

A near-duplicate has nearly the same text (`fingerprints`), on any page of any source. Pages on the same subject
in other words are not near-duplicates. Everything is read from the columns; hidden captures never get here, so
they are neither counted nor replace anything.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from enum import StrEnum
from itertools import chain, pairwise, repeat
from typing import TYPE_CHECKING, Final
from urllib.parse import urlencode

import numpy as np
import numpy.typing as npt

from holdfast.search.columns import Columns
from holdfast.search.counting import PUBLIC, Folded, Keep
from holdfast.search.fingerprints import Places, Prints, has_print, near
from holdfast.search.places import Rows
from holdfast.values import dataclass
from holdfast.withdrawals.visibility import SnapshotNotFound

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

COMPARED: Final = 400
"""Number of best-ranked results compared with each other: 400 take a millisecond, 1,000 take three. Lower-ranked
results are shown as they are.
"""
# Results that are compared with all behind them at once. What they leave out need not be compared any more: of hundreds
# of captures of one text, two are compared with the rest.
_BLOCKS: Final = (2, 32, 160)
# So many are compared with each other at once: three passes over less take longer.
_FEW: Final = 160
# Documents whose fingerprints are compared at once: 6 MB of them.
_DOCUMENTS: Final = 250_000


class SimilarResults(StrEnum):
    COLLAPSE = "collapse"
    SHOW = "show"


@dataclass(frozen=True, slots=True, kw_only=True)
class Collapsed:
    kept: Places
    folded: Folded
    compared: Prints
    kept_prints: Prints

    @property
    def left_out(self) -> int:
        return len(self.folded[0])

    def counts(self, first: int, end: int) -> list[int]:
        prints = self.kept_prints[first:end]
        known = has_print(prints)
        counts = np.zeros(len(prints), np.int64)
        # Each was compared, and is no duplicate of itself.
        counts[known] = np.bincount(near(prints[known], self.compared)[0], minlength=np.count_nonzero(known)) - 1
        found: list[int] = counts.tolist()
        return found


def prints_of(columns: Columns, rows: Rows) -> Prints:
    found: Prints = columns.doc_print[columns.doc[rows]]
    return found


def collapse(columns: Columns, rows: Rows, ranked: Places) -> Collapsed:
    """Remove results that are near-duplicates of a better one from a ranked list, preserving its order."""
    ranked = ranked[:COMPARED]
    prints = prints_of(columns, rows[ranked])
    # Captures of one document need no comparing: what leaves out the first of them leaves out all.
    _, first, document = np.unique(columns.doc[rows[ranked]], return_index=True, return_inverse=True)
    known = has_print(prints)
    # By rank: the one that stands for each.
    stands = np.where(known, first[document], np.arange(len(ranked)))
    waiting = np.sort(first[known[first]])
    blocks = chain(_BLOCKS, repeat(_BLOCKS[-1]))
    while len(waiting):
        block = next(blocks) if len(waiting) > _FEW else len(waiting)
        places, others = near(prints[waiting[:block]], prints[waiting])
        behind = others > places
        places, others = places[behind], others[behind]
        alive = np.ones(len(waiting), np.bool_)
        # In the order of rank, and only those that have any: a look at each result would take longer than comparing it.
        having, starts = np.unique(places, return_index=True)
        bounds = pairwise([*starts.tolist(), len(others)])
        for place, (start, end) in zip(having.tolist(), bounds, strict=True):
            if alive[place]:
                same = others[start:end][alive[others[start:end]]]
                alive[same] = False
                stands[waiting[same]] = waiting[place]
        waiting = waiting[block:][alive[block:]]
    # What stands for the first capture of a document stands for all of them.
    stands = stands[stands]
    stays = stands == np.arange(len(ranked))
    folded = ranked[~stays], ranked[stands[~stays]]
    return Collapsed(kept=ranked[stays], folded=folded, compared=prints, kept_prints=prints[stays])


Ranked = Callable[[int, int], Places]
"""Returns the places of results in their order, from one rank to below another."""


def page_of(
    ranked: Ranked, collapsed: Collapsed | None, *, first: int, count: int
) -> tuple[Places, Sequence[int | None]]:
    end = first + count
    if collapsed is None:
        places = ranked(first, end)
        return places, [None] * len(places)
    places, similar = collapsed.kept[first:end], collapsed.counts(first, end)
    if end > len(collapsed.kept):
        # Results that were not compared follow; fewer precede them than were ranked.
        gone = collapsed.left_out
        rest = ranked(max(first + gone, len(collapsed.compared)), end + gone)
        places, similar = np.concatenate((places, rest)), similar + [0] * len(rest)
    return places, similar


# Parameters whose values are not written as they are.
_VALUES: Final = {("noise", True): "show"}
_PARAMETERS: Final = {"non_2xx": "includeNon2xx", "duplicates": "includeDuplicates", "start": "from", "end": "to"}
_OF_THE_PAGE: Final = ("page", "page_size", "explain", "similar", "similar_to")


def similar_url(request: DataclassInstance, usual: DataclassInstance) -> str:
    """Return the URL prefix that lists the near-duplicates of a result: the same query, restricted to them.

    The caller appends the number of the result, the only part that differs between the results of a page.
    """
    asked: dict[str, object] = {}
    for name in (entry.name for entry in fields(request) if entry.name not in _OF_THE_PAGE):
        value = getattr(request, name)
        if value != getattr(usual, name):
            asked[_PARAMETERS.get(name, name)] = _VALUES.get((name, value), "true" if value is True else value)
    return f"/api/search?{urlencode({**asked, 'similarTo': ''})}"


@dataclass(frozen=True, slots=True, kw_only=True)
class NearDuplicates:
    documents: npt.NDArray[np.bool_]
    row: int
    group: int

    def rows(self, columns: Columns, *, most: int) -> tuple[Rows, bool]:
        """Return the newest `most` of their captures in the order of time, and True if these are all."""
        found = columns.of_document.rows(np.flatnonzero(self.documents).astype(np.int32))[0]
        found = np.sort(found)
        return found[-most:], len(found) <= most

    def among(self, columns: Columns, rows: Rows, *, as_pages: bool) -> Keep:
        """Return which of these rows are near-duplicates: neither the capture itself nor, as pages, its own page."""
        keep: Keep = self.documents[columns.doc[rows]]
        keep &= columns.group[rows] != self.group if as_pages else rows != self.row
        return keep


def row_of(columns: Columns, snapshot_id: int, gate: npt.NDArray[np.uint8]) -> int:
    """Return the row of a capture; raise SnapshotNotFound if it is not in the index, or not visible."""
    rows = columns.rows_of_ids(np.array([snapshot_id], np.int64))
    if not len(rows) or not gate[rows[0]] & PUBLIC:
        raise SnapshotNotFound(f"capture {snapshot_id} not found; use the id of a search result")
    return int(rows[0])


def near_duplicates_of(columns: Columns, snapshot_id: int, gate: npt.NDArray[np.uint8]) -> NearDuplicates:
    """Return the near-duplicates of a capture; raise SnapshotNotFound if it is not in the index, or not visible."""
    row = row_of(columns, snapshot_id, gate)
    own = prints_of(columns, np.array([row], np.int32))
    documents = np.zeros(len(columns.doc_print), np.bool_)
    if has_print(own)[0]:
        for first in range(0, len(documents), _DOCUMENTS):
            documents[first + near(own, columns.doc_print[first : first + _DOCUMENTS])[1]] = True
    return NearDuplicates(documents=documents, row=row, group=int(columns.group[row]))
