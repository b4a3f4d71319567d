"""What was worked out on one view and is asked for again: standings, gates, the results of the last queries.

Everything here can be worked out anew; it is thrown away with its view, and never holds more than a few million rows.
"""

from __future__ import annotations

import threading
from collections import Counter, OrderedDict
from collections.abc import Callable, Hashable
from typing import Final, Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
from sqlalchemy.orm import Session

from holdfast.db.visibility import Mark, withdrawal_mark
from holdfast.search import counting, queries, ranking
from holdfast.search.ranking import Coefficients, Standing
from holdfast.search.shelf import View

_ROWS: Final = 2_000_000
"""Rows that kept results may hold altogether: some 40 MB."""

Gate = npt.NDArray[np.uint8]


class Sized(Protocol):
    """Something that says how many rows it holds."""

    @property
    def size(self) -> int:
        """How many rows it holds."""
        ...


Kept = TypeVar("Kept", bound=Sized)


class Notes(Generic[Kept]):
    """The notes on one view; safe to use from several threads, two of which may now and then do the same work."""

    def __init__(self, view: View) -> None:
        self.view = view
        self._lock = threading.Lock()
        self._standings: dict[tuple[Coefficients, int], Standing] = {}
        self._documents: dict[int, npt.NDArray[np.bool_]] = {}
        self._gate: tuple[Mark, Gate] | None = None
        self._hidden: Counter[int] = Counter()
        self._owned: counting.Owned | None = None
        self._results: OrderedDict[Hashable, Kept] = OrderedDict()

    def standing(self, weights: Coefficients, now_micros: int) -> Standing:
        """Return what pages are worth by themselves under these coefficients, today."""
        key = (weights, now_micros // 86_400_000_000)
        found = self._standings.get(key)
        if found is None:
            found = ranking.standing(self.view.columns, weights, now_micros=now_micros)
            with self._lock:
                if any(day != key[1] for _, day in self._standings):
                    self._standings = {}
                self._standings[key] = found
        return found

    def documents_of(self, source: int) -> npt.NDArray[np.bool_]:
        """Return which documents a source has captured."""
        found = self._documents.get(source)
        if found is None:
            found = self._documents[source] = counting.documents_of(self.view.columns, source)
        return found

    def owned(self) -> counting.Owned:
        """Return the rows of every profile and host."""
        found = self._owned
        if found is None:
            found = self._owned = counting.owned_rows(self.view.columns)
        return found

    def gate(self, session: Session) -> tuple[Mark, Gate]:
        """Return what each row may pass, with a mark that changes when something is withdrawn or lifted."""
        mark = withdrawal_mark(session)
        known = self._gate
        if known is not None and known[0] == mark:
            return known
        hidden = self.view.columns.rows_of_ids(np.array(queries.withdrawn_ids(session), np.int64))
        self._hidden = Counter(self.view.columns.group[hidden].tolist())
        self._gate = (mark, counting.gates(self.view.columns, hidden))
        return self._gate

    def hidden_in(self, group: int) -> int:
        """Return how many captures of a page (by the place of its group) were withdrawn when the gate was last set."""
        return self._hidden[group]

    def result(self, key: Hashable, work: Callable[[], Kept]) -> Kept:
        """Return what this work gave the last time, or do it; the longest unused results are forgotten."""
        with self._lock:
            if key in self._results:
                self._results.move_to_end(key)
                return self._results[key]
        found = work()
        with self._lock:
            self._results[key] = found
            while len(self._results) > 1 and sum(one.size for one in self._results.values()) > _ROWS:
                self._results.popitem(last=False)
        return found
