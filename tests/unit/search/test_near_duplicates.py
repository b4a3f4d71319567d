"""What is left out of a ranked list, against a plain walk over all pairs; and how it is cut into pages."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from holdfast.search.columns import Columns
from holdfast.search.fingerprints import MAX_DISTANCE, PRINT_WIDTH, Places, Prints, near
from holdfast.search.near_duplicates import COMPARED, Collapsed, collapse, page_of


def _prints(rng: np.random.Generator, families: int, count: int) -> Prints:
    """Return fingerprints of some families whose members differ in few bits; every ninth text has none."""
    heads = rng.integers(0, 2**63, (families, PRINT_WIDTH), np.uint64)
    prints = heads[rng.integers(0, families, count)]
    for at in range(2):
        for _ in range(8):
            prints[:, at] ^= np.uint64(1) << rng.integers(0, 64, count).astype(np.uint64)
    prints[:, 2] = rng.integers(0, 4, count)
    # Some are captured more than once.
    prints[count // 2 :: 3] = prints[: len(prints[count // 2 :: 3])]
    prints[::9] = 0
    return prints


def _close(one: list[int], other: list[int]) -> bool:
    first, second = ((one[at] ^ other[at]).bit_count() for at in range(2))
    differ = one[2] & ~other[2] and other[2] & ~one[2]
    return any(one) and any(other) and first <= 18 and first + second <= MAX_DISTANCE and not differ


def _walked(prints: Prints) -> tuple[list[int], list[int]]:
    """Return who stays and how many near-duplicates each of these has, one pair at a time."""
    rows = prints.tolist()
    stay: list[int] = []
    for place, row in enumerate(rows):
        if not any(_close(row, rows[kept]) for kept in stay):
            stay.append(place)
    return stay, [sum(_close(rows[kept], row) for at, row in enumerate(rows) if at != kept) for kept in stay]


def _collapsed(prints: Prints, ranked: Places) -> Collapsed:
    """Collapse captures, of which those with one fingerprint show one document."""
    texts, document = np.unique(prints, axis=0, return_inverse=True)
    columns = SimpleNamespace(doc_print=texts, doc=document.reshape(-1).astype(np.int32))
    return collapse(cast(Columns, columns), np.arange(len(prints), dtype=np.int32), ranked)


@pytest.mark.parametrize("families", [1, 5, 60, 400])
def test_what_stays_is_what_a_walk_over_all_pairs_leaves(families: int) -> None:
    rng = np.random.default_rng(families)
    prints, ranked = _prints(rng, families, 300), rng.permutation(300)

    found = _collapsed(prints, ranked)

    stay, counts = _walked(prints[ranked])
    assert found.kept.tolist() == ranked[stay].tolist()
    assert found.counts(0, 300) == counts
    assert found.left_out == 300 - len(stay) > (0 if families < 400 else -1)


@pytest.mark.parametrize("size", [1, 7, 20, 100])
def test_pages_hold_every_result_once_also_behind_those_that_are_compared(size: int) -> None:
    count = COMPARED + 150
    rng = np.random.default_rng(3)
    ranked = rng.permutation(count)
    collapsed = _collapsed(_prints(rng, 40, count), ranked)

    pages = [
        page_of(lambda first, end: ranked[first:end], collapsed, first=first, count=size)
        for first in range(0, count + size, size)
    ]

    places = [place for page, _ in pages for place in page.tolist()]
    assert places == [*collapsed.kept.tolist(), *ranked[COMPARED:].tolist()]
    assert len(set(places)) == len(places) == count - collapsed.left_out < count
    assert all(len(page) == len(similar) <= size for page, similar in pages)
    counted: list[Any] = [number for _, similar in pages for number in similar]
    assert counted[: len(collapsed.kept)] == collapsed.counts(0, count)
    assert set(counted[len(collapsed.kept) :]) == {0}


def test_nothing_is_compared_where_there_is_nothing() -> None:
    none = np.zeros((0, PRINT_WIDTH), np.uint64)

    assert _collapsed(none, np.empty(0, np.int64)).left_out == 0
    assert [len(found) for found in near(none, none)] == [0, 0]
    assert [len(found) for found in near(np.ones((2, PRINT_WIDTH), np.uint64), none)] == [0, 0]
