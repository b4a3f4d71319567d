"""Near-duplicates among results: left out behind the better-ranked one, counted, and listed when asked for.

A near-duplicate has nearly the same text (`fingerprints`), on any page of any source. This is not likeness of subject:
pages about the same thing in other words are none. Everything is read from the columns; what may not be seen never
gets here, so it is neither counted nor leaves anything out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
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
from holdfast.withdrawals.visibility import SnapshotNotFound

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

COMPARED: Final = 400
"""Results that are compared with each other, the best-ranked ones: that takes a millisecond, of 1,000 three. What comes
behind them is shown as it is."""
# Results that are compared with all behind them at once. What they leave out need not be compared any more: of hundreds
# of captures of one text, two are compared with the rest.
_BLOCKS: Final = (2, 32, 160)
# So many are compared with each other at once: three passes over less take longer.
_FEW: Final = 160
# Documents whose fingerprints are compared at once: 6 MB of them.
_DOCUMENTS: Final = 250_000


class SimilarResults(StrEnum):
    """What is done with near-duplicates of a better result."""

    COLLAPSE = "collapse"
    SHOW = "show"


@dataclass(frozen=True, slots=True, kw_only=True)
class Collapsed:
    """What is left of a ranked list; what stands behind the results that were compared is left as it is."""

    kept: Places
    """Of the results that were compared, the places of those that are shown, best first."""
    folded: Folded
    compared: Prints
    """The fingerprints of all that were compared."""
    kept_prints: Prints

    @property
    def left_out(self) -> int:
        """How many results are near-duplicates of a better one."""
        return len(self.folded[0])

    def counts(self, first: int, end: int) -> list[int]:
        """Return how many near-duplicates some of those that were kept have among all that were compared."""
        prints = self.kept_prints[first:end]
        known = has_print(prints)
        counts = np.zeros(len(prints), np.int64)
        # Each was compared, and is no duplicate of itself.
        counts[known] = np.bincount(near(prints[known], self.compared)[0], minlength=np.count_nonzero(known)) - 1
        found: list[int] = counts.tolist()
        return found


def prints_of(columns: Columns, rows: Rows) -> Prints:
    """Return the fingerprints of the texts of captures."""
    found: Prints = columns.doc_print[columns.doc[rows]]
    return found


def collapse(columns: Columns, rows: Rows, ranked: Places) -> Collapsed:
    """Leave out of a ranked list, in its order, what is a near-duplicate of a result that stays."""
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
"""Gives the places of results in their order, from one rank to below another."""


def page_of(
    ranked: Ranked, collapsed: Collapsed | None, *, first: int, count: int
) -> tuple[Places, Sequence[int | None]]:
    """Return the places of one page of results, and how many near-duplicates each has, where these are collapsed."""
    end = first + count
    if collapsed is None:
        places = ranked(first, end)
        return places, [None] * len(places)
    places, similar = collapsed.kept[first:end], collapsed.counts(first, end)
    if end > len(collapsed.kept):
        # What was not compared follows; in front of it are fewer results than were ranked.
        gone = collapsed.left_out
        rest = ranked(max(first + gone, len(collapsed.compared)), end + gone)
        places, similar = np.concatenate((places, rest)), similar + [0] * len(rest)
    return places, similar


# How parameters are written whose values are not just told.
_VALUES: Final = {("noise", True): "show"}
_PARAMETERS: Final = {"non_2xx": "includeNon2xx", "duplicates": "includeDuplicates", "start": "from", "end": "to"}
_OF_THE_PAGE: Final = ("page", "page_size", "explain", "similar", "similar_to")


def similar_url(request: DataclassInstance, usual: DataclassInstance) -> str:
    """Return the address that lists the near-duplicates of a result: the same question, of them alone.

    The number of the result is to be put behind it: it is all that the results of a page do not share.
    """
    asked: dict[str, object] = {}
    for name in (entry.name for entry in fields(request) if entry.name not in _OF_THE_PAGE):
        value = getattr(request, name)
        if value != getattr(usual, name):
            asked[_PARAMETERS.get(name, name)] = _VALUES.get((name, value), "true" if value is True else value)
    return f"/api/search?{urlencode({**asked, 'similarTo': ''})}"


@dataclass(frozen=True, slots=True, kw_only=True)
class NearDuplicates:
    """The near-duplicates of one capture in the whole archive."""

    documents: npt.NDArray[np.bool_]
    """By document place."""
    row: int
    group: int

    def rows(self, columns: Columns, *, most: int) -> tuple[Rows, bool]:
        """Return their captures, in the order of time, the newest `most` of them, and whether these are all."""
        found = columns.of_document.rows(np.flatnonzero(self.documents).astype(np.int32))[0]
        found = np.sort(found)
        return found[-most:], len(found) <= most

    def among(self, columns: Columns, rows: Rows, *, as_pages: bool) -> Keep:
        """Return which of these rows are near-duplicates: neither the capture itself nor, as pages, its own page."""
        keep: Keep = self.documents[columns.doc[rows]]
        keep &= columns.group[rows] != self.group if as_pages else rows != self.row
        return keep


def row_of(columns: Columns, snapshot_id: int, gate: npt.NDArray[np.uint8]) -> int:
    """Return the row of a capture; SnapshotNotFound if the index has it not, or it may not be seen."""
    rows = columns.rows_of_ids(np.array([snapshot_id], np.int64))
    if not len(rows) or not gate[rows[0]] & PUBLIC:
        raise SnapshotNotFound(f"no capture {snapshot_id} can be found; its number is that of a search result")
    return int(rows[0])


def near_duplicates_of(columns: Columns, snapshot_id: int, gate: npt.NDArray[np.uint8]) -> NearDuplicates:
    """Return the near-duplicates of a capture; SnapshotNotFound if the index has it not, or it may not be seen."""
    row = row_of(columns, snapshot_id, gate)
    own = prints_of(columns, np.array([row], np.int32))
    documents = np.zeros(len(columns.doc_print), np.bool_)
    if has_print(own)[0]:
        for first in range(0, len(documents), _DOCUMENTS):
            documents[first + near(own, columns.doc_print[first : first + _DOCUMENTS])[1]] = True
    return NearDuplicates(documents=documents, row=row, group=int(columns.group[row]))
