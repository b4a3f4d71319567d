"""What was worked out on one view and is asked for again: standings, gates, the results of the last queries.

Everything here can be worked out anew; it is thrown away with its view. Each cache has a bound, whatever is asked for.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Hashable
from typing import Final, Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
from cachetools import LRUCache
from sqlalchemy.orm import Session

from holdfast.clock import Clock
from holdfast.errors import Unavailable
from holdfast.search import counting, queries, ranking
from holdfast.search.ranking import Coefficients, PageWorth
from holdfast.search.readers import View
from holdfast.withdrawals.visibility import Mark, withdrawal_mark

_ROWS: Final = 2_000_000
"""Rows that kept results may hold altogether: some 40 MB."""
_LEAST_ROWS: Final = 1_000
"""Rows that a kept result counts for at least: one that found nothing takes memory too, and there is no end of them."""
_STANDINGS: Final = 8
"""One for each version of the ranking and breadth of a query: there are seven."""
_MARKED_BYTES: Final = 64_000_000
"""Of marks that say which documents each source has: a byte a document and source."""

Gate = npt.NDArray[np.uint8]


class Sized(Protocol):
    """Something that says how many rows it holds."""

    @property
    def size(self) -> int:
        """How many rows it holds."""
        ...


Kept = TypeVar("Kept", bound=Sized)


def _weight(kept: Sized) -> int:
    return max(_LEAST_ROWS, kept.size)


def _bytes(marks: npt.NDArray[np.bool_]) -> int:
    return marks.nbytes


class ResultCache(Generic[Kept]):
    """The notes on one view; safe to use from several threads, two of which may now and then do the same work."""

    def __init__(self, view: View) -> None:
        self.view = view
        rows, documents = len(view.columns), len(view.columns.documents.keys) + 1
        self._lock = threading.Lock()
        self._standings: LRUCache[tuple[Coefficients, int], PageWorth] = LRUCache(_STANDINGS)
        self._documents: LRUCache[int, npt.NDArray[np.bool_]] = LRUCache(max(_MARKED_BYTES, documents), _bytes)
        self._gate: tuple[Mark, Gate] | None = None
        self._hidden: Counter[int] = Counter()
        self._owned: counting.Owned | None = None
        # The count of everything, as captures and as pages, is always worth keeping.
        self._results: LRUCache[Hashable, Kept] = LRUCache(max(_ROWS, 2 * max(_LEAST_ROWS, rows)), _weight)

    def standing(self, weights: Coefficients, now_micros: int) -> PageWorth:
        """Return what pages are worth by themselves under these coefficients, today."""
        key = (weights, now_micros // 86_400_000_000)
        with self._lock:
            found = self._standings.get(key)
        if found is None:
            found = ranking.standing(self.view.columns, weights, now_micros=now_micros)
            with self._lock:
                for old in [known for known in self._standings if known[1] != key[1]]:
                    del self._standings[old]
                self._standings[key] = found
        return found

    def documents_of(self, source: int) -> npt.NDArray[np.bool_]:
        """Return which documents a source has captured."""
        with self._lock:
            found = self._documents.get(source)
        if found is None:
            found = counting.documents_of(self.view.columns, source)
            with self._lock:
                self._documents[source] = found
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
        found = self._gate = (mark, counting.gates(self.view.columns, hidden))
        return found

    def hidden_in(self, group: int) -> int:
        """Return how many captures of a page (by the place of its group) were withdrawn when the gate was last set."""
        return self._hidden[group]

    def result(self, key: Hashable, work: Callable[[], Kept]) -> Kept:
        """Return what this work gave the last time, or do it; the longest unused results are forgotten."""
        with self._lock:
            known = self._results.get(key)
        if known is not None:
            return known
        found = work()
        with self._lock:
            self._results[key] = found
        return found

    @property
    def kept(self) -> int:
        """How many results are kept."""
        return len(self._results)


CANDIDATES: Final = 200_000
"""Documents and addresses that the substrings of one search may read altogether: about 150 ms of them."""
CHECKED: Final = 50_000
"""Captures whose title, snippet and address are looked at one by one for one term, where an index cannot decide."""
CHECKS: Final = 600_000
"""Texts that one search may look at so altogether: about half a second of them."""
SECONDS: Final = 10.0
"""No search that fits the work takes a tenth of it on an idle machine; beyond, the machine has too much to do."""


class SearchTooLong(Unavailable):
    """A search used up its time before it found anything to show."""

    code = "search_too_long"


class Budget:
    """Counts what one search spends; of one thread."""

    def __init__(
        self, clock: Clock, *, candidates: int = CANDIDATES, checks: int = CHECKS, seconds: float = SECONDS
    ) -> None:
        self._clock, self._left = clock, candidates
        self._until = clock.monotonic() + seconds
        self.checks_left = checks
        """Texts that may still be looked at one by one."""
        self.spent = 0
        """Entries of the index and words of the vocabulary that were read."""

    def grant(self, wanted: int) -> int:
        """Return how many entries may be read now, of so many wanted; SearchTooLong if the time is up."""
        self.check()
        return max(0, min(wanted, self._left))

    def spend(self, entries: int) -> None:
        """Note that so many entries were read."""
        self.spent += entries
        self._left -= entries

    def check(self) -> None:
        """Refuse to go on when the time is up."""
        if self._clock.monotonic() >= self._until:
            raise SearchTooLong("this search takes too long here; ask for fewer or longer words, or try again later")
