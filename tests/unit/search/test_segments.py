"""The columns on disk against a plain model: clears, upserts and merges in any order say the same."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.search import segments as disk
from holdfast.search.engine import IndexBroken
from holdfast.search.segments import Segment


def _segment(name: str, first: int, last: int, ids: list[int], mark: int) -> Segment:
    rows = disk.as_table([(i, mark, i, 0, 1, 200, 0, 1) for i in ids], disk.ROW)
    addresses = disk.as_table([(i, 0, 0, 4 * n, 4, 0) for n, i in enumerate(ids)], disk.ADDRESS)
    return Segment(
        name=name, rows=rows, addresses=addresses,
        documents=np.empty(0, disk.DOCUMENT), cleared=np.array([[first, last]]),
        strings=b"".join(f"{i:02d}{mark:02d}".encode() for i in ids),
    )  # fmt: skip


_BATCHES = st.lists(
    st.tuples(st.integers(0, 20), st.integers(0, 20), st.sets(st.integers(0, 20))), min_size=1, max_size=8
)


@given(_BATCHES, st.data())
def test_segments_say_what_a_plain_dictionary_says(
    batches: list[tuple[int, int, set[int]]], data: st.DataObject
) -> None:
    model: dict[int, int] = {}
    texts: dict[int, bytes] = {}
    found: list[Segment] = []
    for mark, (a, b, ids) in enumerate(batches):
        first, last = min(a, b), max(a, b)
        inside = sorted(i for i in ids if first <= i <= last)
        model = {i: m for i, m in model.items() if not first <= i <= last} | dict.fromkeys(inside, mark)
        texts |= {i: f"{i:02d}{mark:02d}".encode() for i in inside}
        found.append(_segment(str(mark), first, last, inside, mark))
        if len(found) > 1 and data.draw(st.booleans()):
            count = data.draw(st.integers(2, len(found)))
            found[-count:] = [disk.merge(found[-count:], str(mark), oldest=count == len(found))]

    rows = disk.living_rows(found)
    assert {int(row["id"]): int(row["at"]) for row in rows} == model
    assert len(rows) == len(model)
    whole = disk.merge(found, "all", oldest=True)
    for address in whole.addresses:
        start = int(address["offset"])
        assert whole.strings[start : start + int(address["length"])] == texts[int(address["url"])]


def test_a_segment_comes_back_as_it_was_stored(tmp_path: Path) -> None:
    stored = _segment("1", 0, 9, [3, 5], 7)
    disk.store(tmp_path, stored)

    found = disk.load(tmp_path, "1")

    assert np.array_equal(found.rows, stored.rows)
    assert found.strings[:] == stored.strings
    # Mapped, not read: the columns of a process have the same values in memory.
    tables = (found.rows, found.addresses, found.cleared)
    assert [isinstance(table.base, np.memmap) for table in tables] == [True] * 3


@pytest.mark.parametrize("kept", [0, 40, -1])
def test_a_torn_segment_is_told(tmp_path: Path, kept: int) -> None:
    disk.store(tmp_path, _segment("1", 0, 9, [3, 5], 7))
    path = tmp_path / "1.npz"
    path.write_bytes(path.read_bytes()[:kept])

    with pytest.raises(IndexBroken):
        disk.load(tmp_path, "1")


def test_a_manifest_of_another_version_is_refused(tmp_path: Path) -> None:
    disk.write_manifest(tmp_path, disk.SegmentManifest(sequence=1))
    (tmp_path / "manifest.json").write_text(json.dumps({"version": disk.VERSION - 1, "sequence": 1, "segments": []}))

    with pytest.raises(IndexBroken, match="rebuild"):
        disk.read_manifest(tmp_path)


@pytest.mark.parametrize(
    ("weights", "count"),
    [([], 0), ([100], 0), ([1000, 100], 0), ([300, 100], 2), ([10_000, 300, 100], 2), ([1000, 300, 100], 3)],
)
def test_a_segment_is_merged_once_it_is_not_clearly_smaller_than_the_one_before(weights: list[int], count: int) -> None:
    assert disk.merge_plan(weights) == count


def test_there_are_never_many_segments() -> None:
    assert disk.merge_plan([4**n for n in range(20, 0, -1)]) >= 8


def test_segments_that_speak_for_no_range_are_merged_like_others() -> None:
    silent = [
        Segment(name=str(n), rows=np.empty(0, disk.ROW), addresses=np.empty(0, disk.ADDRESS), strings=b"",
                documents=np.empty(0, disk.DOCUMENT), cleared=np.empty((0, 2), np.int64))
        for n in range(2)
    ]  # fmt: skip
    merged = disk.merge(silent, "m", oldest=False)

    assert len(merged.cleared) == 0
    assert {int(row["id"]) for row in disk.living_rows([_segment("0", 0, 9, [3, 5], 7), merged])} == {3, 5}
