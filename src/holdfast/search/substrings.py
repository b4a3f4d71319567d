"""Boolean queries: sets of rows whose title, snippet or URL holds a substring, joined as the tree says.

Trigrams give candidates, the strings themselves decide. A set may be kept as its complement, so `NOT x` costs what `x`
costs and the whole archive is counted out only if the query says nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from holdfast.search.columns import Columns, Floats, Rows
from holdfast.search.engine import Reader
from holdfast.search.query import Both, Either, Field, Node, Term, Without, wanted_terms

_ALL: Final = 1 << 30
_GRAM: Final = 3
_WEIGHTS: Final = {Field.TITLE: 3.0, Field.URL: 2.0, Field.SNIPPET: 1.0}


@dataclass(frozen=True, slots=True)
class RowSet:
    """Rows in ascending order, or all rows but these."""

    rows: Rows
    complement: bool = False


_DENSE: Final = 16
"""A set of more than this share of all rows is handled as one mark a row: sorting it would take ten times as long."""


def _joined(parts: Sequence[Rows], size: int) -> Rows:
    """Return the rows of several lists, each once, in order."""
    if sum(map(len, parts)) * _DENSE < size:
        return np.unique(np.concatenate(parts))
    return np.flatnonzero(_marks(parts, size)).astype(np.int32)


def _marks(parts: Sequence[Rows], size: int) -> npt.NDArray[np.bool_]:
    marks = np.zeros(size, np.bool_)
    for part in parts:
        marks[part] = True
    return marks


def both(a: RowSet, b: RowSet, size: int) -> RowSet:
    """Return what stands in both sets, of so many rows altogether."""
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


def negated(a: RowSet) -> RowSet:
    """Return all other rows."""
    return RowSet(a.rows, not a.complement)


def either(a: RowSet, b: RowSet, size: int) -> RowSet:
    """Return what stands in one set or the other, of so many rows altogether."""
    if not a.complement and not b.complement:
        return RowSet(_joined([a.rows, b.rows], size))
    return negated(both(negated(a), negated(b), size))


class Substrings:
    """Answers substring terms on one view; a term is looked up once however often it is asked for."""

    def __init__(self, reader: Reader, columns: Columns) -> None:
        self._reader, self._columns = reader, columns
        self._places: dict[tuple[str, Field], Rows] = {}

    def places(self, text: str, field: Field) -> Rows:
        """Return the documents (the addresses, for a URL) whose text in this one field has the substring."""
        known = self._places.get((text, field))
        if known is not None:
            return known
        candidates = self._reader.substring(text, field, limit=_ALL)
        numbering = self._columns.addresses if field is Field.URL else self._columns.documents
        found = numbering.known(candidates)
        if len(text) > _GRAM:  # a term that is no longer than a trigram needs no check: the trigram is the proof
            found = self._columns.strings(field).holding(found, text.encode())
        self._places[text, field] = found
        return found

    def rows(self, term: Term) -> RowSet:
        """Return the rows of a term."""
        fields = [Field.TITLE, Field.SNIPPET, Field.URL] if term.field is Field.ANY else [term.field]
        found = [self._rows_in(term.text, field) for field in fields]
        return RowSet(_joined(found, len(self._columns)))

    def _rows_in(self, text: str, field: Field) -> Rows:
        owners = self._columns.of_address if field is Field.URL else self._columns.of_document
        return owners.rows(self.places(text, field))[0]

    def evaluate(self, node: Node) -> RowSet:
        """Return the rows that a tree asks for."""
        match node:
            case Term():
                return self.rows(node)
            case Without(part):
                return negated(self.evaluate(part))
            case Both(parts):
                found = self.evaluate(parts[0])
                for part in parts[1:]:
                    found = both(found, self.evaluate(part), len(self._columns))
                return found
            case Either(parts):
                found = self.evaluate(parts[0])
                for part in parts[1:]:
                    found = either(found, self.evaluate(part), len(self._columns))
                return found

    def matching(self, node: Node) -> Rows:
        """Return the rows of a tree as they are, complements counted out."""
        found = self.evaluate(node)
        if not found.complement:
            return found.rows.astype(np.int32)
        keep = np.ones(len(self._columns), np.bool_)
        keep[found.rows] = False
        return np.flatnonzero(keep).astype(np.int32)

    def score(self, node: Node, rows: Rows) -> Floats:
        """Return 3 for each wanted term in the title, 2 in the URL, 1 in the snippet, added up."""
        columns = self._columns
        total = np.zeros(len(rows), np.float32)
        for term in wanted_terms(node):
            for field, weight in _WEIGHTS.items():
                if term.field not in (Field.ANY, field):
                    continue
                owner = columns.url if field is Field.URL else columns.doc
                size = len(columns.addresses.keys) if field is Field.URL else len(columns.documents.keys)
                hit = np.zeros(size + 1, np.float32)
                hit[self.places(term.text, field)] = weight
                total += hit[owner[rows]]
        return total
