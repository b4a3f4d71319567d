"""Boolean queries with fields: combines sets of rows with a substring of title, snippet or URL, or with words.

Trigrams give candidates, which are checked in the strings themselves; for words the index decides. A set may be
stored as its complement, so `NOT x` costs the same as `x`, and the whole archive is listed only if the query
has nothing else. A very frequent term is read in part: its set is then not exact but contains nothing wrong,
and the sets it is joined with are checked row by row instead.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import reduce
from threading import Lock
from typing import Final

import numpy as np
import numpy.typing as npt

from holdfast.clock import Clock
from holdfast.errors import Unavailable
from holdfast.search.analysis import languages_of
from holdfast.search.columns import Columns
from holdfast.search.engine import IndexReader
from holdfast.search.places import Numbering, Rows
from holdfast.search.query import And, Field, Node, Not, Or, Term, terms_in
from holdfast.values import dataclass

CANDIDATES: Final = 200_000
"""Limit on documents and URLs read for all substrings of one search: about 150 ms."""
CHECKED: Final = 50_000
"""Limit on captures whose title, snippet and URL are checked one by one for one term, if no index can decide."""
CHECKS: Final = 600_000
"""Limit on such checks in one search: about half a second."""
SECONDS: Final = 10.0
"""Time limit; a search within the other limits takes less than a tenth of it unless the machine is overloaded."""


class SearchTooLong(Unavailable):
    """A search used up its time before it found any results."""

    code = "search_too_long"


class Budget:
    """Limits of one search; used by one thread."""

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
        """Return how many of `wanted` entries may be read now; raise SearchTooLong if the time is up."""
        self.check()
        return max(0, min(wanted, self._left))

    def spend(self, entries: int) -> None:
        self.spent += entries
        self._left -= entries

    def check(self) -> None:
        """Raise SearchTooLong if the time is up."""
        if self._clock.monotonic() >= self._until:
            raise SearchTooLong(_TOO_LONG)

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Wait for the lock of expensive work: one search per process at a time computes guesses and substrings.

        Searches for words, which take less time, then share the interpreter with one of them and not with all. Raise
        SearchTooLong if the time is up first.
        """
        self.check()
        if not _turns.acquire(timeout=max(0.0, self._until - self._clock.monotonic())):
            raise SearchTooLong(_TOO_LONG)
        try:
            yield
        finally:
            _turns.release()


_TOO_LONG: Final = "this search takes too long here; ask for fewer or longer words, or try again later"
_turns: Final = Lock()


def looked_at(count: int, budget: Budget, *, newest_first: bool) -> slice:
    looks = min(count, CHECKED, max(0, budget.checks_left))
    return slice(count - looks, count) if newest_first else slice(0, looks)


# Documents or addresses that are read for one term and field.
_EACH: Final = 50_000
_GRAM: Final = 3
_OF_ADDRESSES: Final = (Field.URL, Field.NAMES)
_WORDED: Final = (Field.TEXT, Field.NAMES)

Keep = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class RowSet:
    """Rows in ascending order, or all rows except these."""

    rows: Rows
    complement: bool = False
    exact: bool = True
    """False if rows are missing; then it is never a complement."""


# A set of more than this share of all rows is handled as one mark a row: sorting it would take ten times as long.
_DENSE: Final = 16


def _joined(parts: Sequence[Rows], size: int) -> Rows:
    if sum(map(len, parts)) * _DENSE < size:
        return np.unique(np.concatenate(parts))
    return np.flatnonzero(_marks(parts, size)).astype(np.int32)


def _marks(parts: Sequence[Rows], size: int) -> Keep:
    marks = np.zeros(size, np.bool_)
    for part in parts:
        marks[part] = True
    return marks


def intersection(a: RowSet, b: RowSet, size: int) -> RowSet:
    if a.complement and b.complement:
        return RowSet(_joined([a.rows, b.rows], size), True)
    if a.complement or b.complement:
        kept, gone = (b, a) if a.complement else (a, b)
        if (len(kept.rows) + len(gone.rows)) * _DENSE < size:
            return RowSet(np.setdiff1d(kept.rows, gone.rows, assume_unique=True))
        return RowSet(kept.rows[~_marks([gone.rows], size)[kept.rows]])
    if (len(a.rows) + len(b.rows)) * _DENSE < size:
        return RowSet(np.intersect1d(a.rows, b.rows, assume_unique=True))
    few, many = (a, b) if len(a.rows) < len(b.rows) else (b, a)
    return RowSet(few.rows[_marks([many.rows], size)[few.rows]])


def inverse(a: RowSet) -> RowSet:
    return RowSet(a.rows, not a.complement)


def union(a: RowSet, b: RowSet, size: int) -> RowSet:
    if not a.complement and not b.complement:
        return RowSet(_joined([a.rows, b.rows], size))
    return inverse(intersection(inverse(a), inverse(b), size))


class Substrings:
    def __init__(self, reader: IndexReader, columns: Columns, budget: Budget, *, each: int = _EACH) -> None:
        self._reader, self._columns, self._budget, self._each = reader, columns, budget, each
        self._languages = languages_of(columns.languages)
        self._places: dict[Term, tuple[Rows, bool]] = {}
        # Which texts of a field were looked at for a term, in order, and which of them hold it: as large as the looks
        # that a search has; a mark for each text and term would grow with the archive.
        self._looked_at: dict[Term, tuple[Rows, Keep]] = {}

    def places(self, term: Term) -> tuple[Rows, bool]:
        """Return documents (URLs for a URL term) whose text in the term's field has it, and True if all were read."""
        known = self._places.get(term)
        if known is None:
            known = self._places[term] = self._look_up(term)
        return known

    def _look_up(self, term: Term) -> tuple[Rows, bool]:
        limit = self._budget.grant(self._each)
        if not limit:
            return np.empty(0, np.int32), False
        if is_worded := term.field in _WORDED:
            candidates = self._reader.with_text(term, self._languages, limit=limit)
        else:
            candidates = self._reader.substring(term.text, term.field, limit=limit)
        self._budget.spend(len(candidates.keys))
        found = self._numbering(term.field).known(candidates.keys)
        # Trigrams allow more than is there (`abcd` where `abc` and `bcd` stand apart), but for a term of one trigram.
        if not is_worded and len(term.text) > _GRAM:
            found = self._holding(term, found)
        return found, candidates.count <= len(candidates.keys)

    def _holding(self, term: Term, places: Rows) -> Rows:
        if term.field not in _WORDED:
            return self._columns.strings(term.field).holding(places, term.text.encode())
        numbers = self._numbering(term.field)
        found = self._reader.with_text(term, self._languages, limit=len(places), among=numbers.keys(places))
        return numbers.known(found.keys)

    def _numbering(self, field: Field) -> Numbering:
        return self._columns.addresses if field in _OF_ADDRESSES else self._columns.documents

    def rows(self, term: Term) -> RowSet:
        columns, found = self._columns, [(one.field, *self.places(one)) for one in _asked(term)]
        owners = [columns.of_address if field in _OF_ADDRESSES else columns.of_document for field, _, _ in found]
        rows = [owner.rows(places)[0] for owner, (_, places, _) in zip(owners, found, strict=True)]
        return RowSet(_joined(rows, len(columns)), exact=all(whole for _, _, whole in found))

    def judged(self, term: Term, rows: Rows, *, newest_first: bool = False) -> tuple[Keep, Keep]:
        """Return which of these rows surely contain the term in its field, and which surely do not.

        If an index cannot decide, the first of them are checked, as many as the limit allows; the last ones with
        `newest_first`, which requires the order of time.
        """
        places, whole = self.places(term)
        marks = np.zeros(self._numbering(term.field).none + 1, np.bool_)
        marks[places] = True
        holds: Keep = marks[self._owners(term.field, rows)]
        if whole:
            return holds, ~holds
        looked = looked_at(len(rows), self._budget, newest_first=newest_first)
        fails = np.zeros(len(rows), np.bool_)
        holds[looked] = self._holds_in(term, rows[looked])
        fails[looked] = ~holds[looked]
        return holds, fails

    def evaluate(self, node: Node) -> RowSet:
        size = len(self._columns)
        match node:
            case Term():
                return self.rows(node)
            case Not(part):
                found = self.evaluate(part)
                # The complement of a partial read would contain rows that the query excludes.
                return inverse(found) if found.exact else self._newest_holding(node)
            case And(parts):
                return self._intersection(parts)
            case Or(parts):
                sets = [self.evaluate(part) for part in parts]
                joined = reduce(lambda a, b: union(a, b, size), sets)
                if all(one.exact for one in sets):
                    return joined
                return RowSet(self._listed(joined)[-CHECKED:] if joined.complement else joined.rows, exact=False)

    def _intersection(self, parts: Sequence[Node]) -> RowSet:
        sets = [(part, self.evaluate(part)) for part in parts]
        # Exact sets first: what they leave is small enough to look at row by row.
        exact = [found for _, found in sets if found.exact]
        vague = [(part, found) for part, found in sets if not found.exact]
        start = reduce(lambda a, b: intersection(a, b, len(self._columns)), exact) if exact else None
        if not vague:
            # A tree has parts, so one of the two lists is not empty.
            assert start is not None
            return start
        if start is not None and not start.complement:
            # The newest ones: rows are in the order of time.
            left, whole = start.rows[-CHECKED:], len(start.rows) <= CHECKED
        else:
            # A term that was not read because the budget was used up selects nothing.
            read = [found.rows for _, found in vague if len(found.rows)]
            left, whole = min(read, key=len) if read else self._newest(), False
            if start is not None:
                left = intersection(RowSet(left), start, len(self._columns)).rows
            left = left[-CHECKED:]
        for part, _ in vague:
            checked = self._affordable(part, left)
            whole = whole and len(checked) == len(left)
            left = checked[self._holds(part, checked)]
        return RowSet(left, exact=whole)

    def _newest_holding(self, node: Node) -> RowSet:
        rows = self._affordable(node, self._newest())
        return RowSet(rows[self._holds(node, rows)], exact=len(self._columns) <= len(rows))

    def _affordable(self, node: Node, rows: Rows) -> Rows:
        asked = {one for term in terms_in(node, excluded=True) for one in _asked(term)}
        needed = sum(len(self._unseen(one, self._owners(one.field, rows))) for one in asked)
        left = max(0, self._budget.checks_left)
        return rows if needed <= left else rows[len(rows) - len(rows) * left // needed :]

    def _newest(self) -> Rows:
        size = len(self._columns)
        return np.arange(max(0, size - CHECKED), size, dtype=np.int32)

    def _holds(self, node: Node, rows: Rows) -> Keep:
        self._budget.check()
        match node:
            case Term():
                return reduce(np.logical_or, [self._holds_in(one, rows) for one in _asked(node)])
            case Not(part):
                return ~self._holds(part, rows)
            case And(parts):
                return reduce(np.logical_and, [self._holds(part, rows) for part in parts])
            case Or(parts):
                return reduce(np.logical_or, [self._holds(part, rows) for part in parts])

    def _holds_in(self, term: Term, rows: Rows) -> Keep:
        owners = self._owners(term.field, rows)
        unseen = self._unseen(term, owners)
        seen, hit = self._looked_at.get(term, _NOT_LOOKED_AT)
        if len(unseen):
            # Counted by texts, not by time: the same query gives the same answer on a slow machine.
            self._budget.checks_left -= len(unseen)
            found = np.isin(unseen, self._holding(term, unseen), assume_unique=True)
            seen, hit = np.concatenate([seen, unseen]), np.concatenate([hit, found])
            order = np.argsort(seen)
            seen, hit = self._looked_at[term] = seen[order], hit[order]
        if not len(seen):
            return np.zeros(len(owners), np.bool_)
        at = _places_in(seen, owners)
        held: Keep = hit[at] & (seen[at] == owners)
        return held

    def _owners(self, field: Field, rows: Rows) -> Rows:
        return (self._columns.url if field in _OF_ADDRESSES else self._columns.doc)[rows]

    def _unseen(self, term: Term, owners: Rows) -> Rows:
        asked = np.unique(owners)
        # The others have no text to look at.
        asked = asked[asked < self._numbering(term.field).none]
        seen, _ = self._looked_at.get(term, _NOT_LOOKED_AT)
        return asked[seen[_places_in(seen, asked)] != asked] if len(seen) else asked

    def _listed(self, found: RowSet) -> Rows:
        if not found.complement:
            return found.rows.astype(np.int32)
        keep = np.ones(len(self._columns), np.bool_)
        keep[found.rows] = False
        return np.flatnonzero(keep).astype(np.int32)

    def matching(self, node: Node) -> tuple[Rows, bool]:
        found = self.evaluate(node)
        return self._listed(found), found.exact

    def left(self, tree: Node, rows: Rows) -> tuple[Rows, bool]:
        parts = tree.parts if isinstance(tree, And) else ()
        terms = [part.part for part in parts if isinstance(part, Not) and isinstance(part.part, Term)]
        judged = [self.judged(one, rows) for term in terms for one in _asked(term)]
        keep = reduce(np.logical_and, [fails for _, fails in judged], np.ones(len(rows), np.bool_))
        return rows[keep], all(bool(np.all(holds | fails)) for holds, fails in judged)


_NOT_LOOKED_AT: Final[tuple[Rows, Keep]] = np.empty(0, np.int32), np.empty(0, np.bool_)


def _places_in(ordered: Rows, wanted: Rows) -> npt.NDArray[np.intp]:
    return np.minimum(np.searchsorted(ordered, wanted), len(ordered) - 1)


def _asked(term: Term) -> list[Term]:
    return [term, Term(term.text, Field.NAMES)] if term.field is Field.TEXT and not term.is_prefix else [term]
