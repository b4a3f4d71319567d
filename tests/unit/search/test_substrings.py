"""Sets of rows against Python's own, sparse and dense, with and without complements."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from holdfast.search.places import Incidence, Numbering
from holdfast.search.substrings import RowSet, intersection, inverse, union

_SIZE = 40
_SETS = st.tuples(st.sets(st.integers(0, _SIZE - 1)), st.booleans())


def _row_set(members: set[int], complement: bool) -> RowSet:
    return RowSet(np.array(sorted(members), np.int32), complement)


def _members(found: RowSet) -> set[int]:
    rows = found.rows.tolist()
    assert rows == sorted(set(rows))
    return set(range(_SIZE)) - set(rows) if found.complement else set(rows)


@given(_SETS, _SETS, st.sampled_from([_SIZE, 100_000]))
def test_sets_agree_with_sets(a: tuple[set[int], bool], b: tuple[set[int], bool], size: int) -> None:
    one, other = _row_set(*a), _row_set(*b)

    assert _members(intersection(one, other, size)) == _members(one) & _members(other)
    assert _members(union(one, other, size)) == _members(one) | _members(other)
    assert _members(inverse(one)) == set(range(_SIZE)) - _members(one)


@given(st.lists(st.integers(0, 9), max_size=60), st.lists(st.integers(0, 9), max_size=12))
def test_owners_know_their_rows(owner_of_row: list[int], asked: list[int]) -> None:
    rows, counts = Incidence(np.array(owner_of_row, np.int32), 10).rows(np.array(asked, np.int32))

    wanted = [[row for row, owner in enumerate(owner_of_row) if owner == one] for one in asked]
    assert rows.tolist() == [row for group in wanted for row in group]
    assert counts.tolist() == [len(group) for group in wanted]


@given(st.sets(st.integers(-(2**62), 2**62)), st.lists(st.integers(-(2**62), 2**62)))
def test_sparse_keys_are_found_or_not(keys: set[int], asked: list[int]) -> None:
    ordered = sorted(keys)
    places = Numbering(np.array(ordered, np.int64)).places(np.array([*asked, *ordered], np.int64))

    assert places.tolist() == [ordered.index(key) if key in keys else len(ordered) for key in [*asked, *ordered]]


@given(st.sets(st.integers(0, 50)), st.lists(st.integers(-5, 60)))
def test_dense_keys_are_found_or_not(keys: set[int], asked: list[int]) -> None:
    ordered = sorted(keys)
    places = Numbering(np.array(ordered, np.int64)).places(np.array(asked, np.int64))

    assert places.tolist() == [ordered.index(key) if key in keys else len(ordered) for key in asked]


def test_numbering_returns_the_keys_of_early_and_late_places() -> None:
    numbering = (
        Numbering(np.array([3, 5, 9], np.int64)).grown(np.array([8, 1], np.int64)).grown(np.array([4], np.int64))
    )

    assert numbering.keys(np.array([5, 0, 3, 2, 4], np.int32)).tolist() == [4, 3, 8, 9, 1]
