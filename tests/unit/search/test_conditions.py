"""Conditions judged on columns: hosts by name, page types, and rows of which an index cannot say all."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from holdfast.clock import SystemClock
from holdfast.search import segments as disk
from holdfast.search.addresses import host_of
from holdfast.search.columns import SIGNAL, Columns, build
from holdfast.search.conditions import Conditions, HostNames
from holdfast.search.counting import gates
from holdfast.search.engine import IndexEntry, IndexReader, Writer
from holdfast.search.operators import PAGE_TYPES, Condition, InTitle, OfType, OnSite, Without
from holdfast.search.substrings import Budget
from holdfast.urls import hash64

_URLS = (
    "https://example.org/en/a",
    "https://www.example.org/en?x=1",
    "https://example.org:8443/english",
    "https://notexample.org/en/",
    "https://[2001:db8::1]:8080/en/",
    "http://example.org:80/?u=/en/",
)


@pytest.fixture
def columns() -> Columns:
    """A page of each address, each of another page type."""
    count = len(_URLS)
    rows, urls, docs = np.zeros(count, disk.ROW), np.zeros(count, disk.ADDRESS), np.zeros(count, disk.DOCUMENT)
    rows["id"] = rows["at"] = rows["doc"] = docs["doc"] = np.arange(1, count + 1)
    rows["url"] = urls["url"] = urls["group"] = [hash64(url) for url in _URLS]
    rows["status"] = 200
    urls["host"] = [hash64(host_of(url)) for url in _URLS]
    urls["length"] = [len(url) for url in _URLS]
    urls["offset"] = np.cumsum(urls["length"]) - urls["length"]
    docs["flags"] = np.arange(count) << disk.PAGE_TYPE_SHIFT
    cleared = np.empty((0, 2), np.int64)
    segment = disk.Segment(
        name="1", rows=rows, addresses=urls, documents=docs, cleared=cleared, strings="".join(_URLS).encode()
    )
    return build([segment], np.empty(0, SIGNAL))


@pytest.fixture
def reader(tmp_path: Path) -> IndexReader:
    """An index in which four of the pages have a word in their title."""
    writer = Writer(tmp_path)
    for key in range(1, 5):
        writer.add(IndexEntry(key=key, language="en", title="Flu", snippet="", text=""))
    writer.commit()
    writer.close()
    return IndexReader(tmp_path)


def _kept(columns: Columns, reader: IndexReader, condition: Condition, *, read: int = 100) -> tuple[list[int], bool]:
    budget = Budget(SystemClock(), candidates=read)
    judged = Conditions(reader, columns, gates(columns, np.empty(0, np.int32), np.empty(0, np.int32)), budget)
    judged.know_hosts(lambda: HostNames(columns), [condition])
    rows = np.arange(len(columns), dtype=np.int32)
    return rows[judged.keep([condition], rows)].tolist(), judged.complete


@pytest.mark.parametrize(
    ("site", "rows"),
    [
        (OnSite(host="example.org"), [0, 1, 2, 5]),
        (OnSite(host="example.org:8443"), [2]),
        (OnSite(host="org"), [0, 1, 2, 3, 5]),
        (OnSite(host="[2001:db8::1]:8080"), [4]),
        (OnSite(host="[2001:db8::1]"), [4]),
        (OnSite(host="ample.org"), []),
        (OnSite(host="example.org", path="/en"), [0, 1]),
        (OnSite(host="example.org", path="/en/"), [0]),
    ],
)
def test_a_site_is_a_host_and_all_below_it(
    columns: Columns, reader: IndexReader, site: OnSite, rows: list[int]
) -> None:
    assert _kept(columns, reader, site) == (rows, True)
    assert _kept(columns, reader, Without(site))[0] == [row for row in range(len(_URLS)) if row not in rows]


def test_page_types_are_told_by_the_documents(columns: Columns, reader: IndexReader) -> None:
    for place, name in enumerate(PAGE_TYPES[1:], 1):
        assert _kept(columns, reader, OfType(name)) == ([place] if place < len(_URLS) else [], True)


def test_what_an_index_cannot_say_is_shown_neither_way(columns: Columns, reader: IndexReader) -> None:
    assert _kept(columns, reader, InTitle(("flu",))) == ([0, 1, 2, 3], True)
    assert _kept(columns, reader, Without(InTitle(("flu",)))) == ([4, 5], True)

    found, complete = _kept(columns, reader, InTitle(("flu",)), read=2)
    assert (len(found), complete) == (2, False)
    assert set(found) <= {0, 1, 2, 3}
    assert _kept(columns, reader, Without(InTitle(("flu",))), read=2) == ([], False)
