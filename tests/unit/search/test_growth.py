"""Columns that grew against columns that were built: whatever comes in, a reader is told the same."""

from __future__ import annotations

import random
import threading
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from holdfast.search import columns as columns_module
from holdfast.search import counting, ranking
from holdfast.search import segments as disk
from holdfast.search.additions import added_segment
from holdfast.search.columns import SIGNAL, Columns, Floats, build
from holdfast.search.counting import Gate, Owned
from holdfast.search.growth import grow
from holdfast.search.places import Places
from holdfast.search.segments import Segment, Table
from holdfast.urls import hash64

_HOSTS = ("a.example", "b.example:8080", "www.c.example")
_LANGUAGES = (b"", b"en", b"fr", b"ojw")
_DAY = 86_400_000_000
_NO_SIGNALS = np.empty(0, SIGNAL)


class _Archive:
    """Makes segments as the writer does: addresses once, documents when they come or change, rows by ranges."""

    def __init__(self, seed: int = 0) -> None:
        self.chance = random.Random(seed)
        self.urls: set[int] = set()
        self.rows: dict[int, tuple[Any, ...]] = {}
        self.last_id, self.last_doc, self.now = 0, 0, 40 * 365 * _DAY
        self.segments: list[Segment] = []
        self.signals: Table = _NO_SIGNALS

    def url(self, *, known: bool) -> str:
        number = self.chance.randrange(40) if known else self.chance.randrange(10**9)
        query = self.chance.choice(("", "", "?a=1"))
        return f"https://{_HOSTS[number % len(_HOSTS)]}/page/{number}{query}"

    def capture(self, number: int | None = None, *, at: int | None = None, doc: int | None = None) -> str:
        """Note a capture, a new one or another look at an old one."""
        if number is None:
            number = self.last_id = self.last_id + self.chance.randint(1, 3)
        if at is None:
            self.now += self.chance.choice((0, 0, 5, 40 * _DAY))
            at = self.now
        url = self.url(known=self.chance.random() < 0.7)
        if doc is None:
            doc = self.chance.choice((0, self.chance.randint(1, self.last_doc + 1)))
        status = self.chance.choice((0, 200, 200, 301, 404, 503))
        self.rows[number] = (number, at, hash64(url), doc, self.chance.randint(1, 4), status,
                             self.chance.randrange(8), self.chance.randrange(4))  # fmt: skip
        return url

    def segment(
        self, urls: Sequence[str], docs: Sequence[int], cleared: Sequence[tuple[int, int]], *, mark: str = ""
    ) -> Segment:
        """Return a segment that has these documents, the addresses that are new, and the rows of these ranges."""
        rows = [row for number, row in self.rows.items() if any(a <= number <= b for a, b in cleared)]
        pool, addresses, documents = bytearray(), [], []
        for url in dict.fromkeys(url for url in urls if hash64(url) not in self.urls):
            self.urls.add(hash64(url))
            text, host = url.encode(), url.split("/")[2]
            flags = disk.HAS_QUERY if "?" in url else 0
            addresses.append((hash64(url), hash64(url.partition("?")[0]), hash64(host), len(pool), len(text), flags))
            pool += text
        for doc in sorted(set(docs)):
            author = self.chance.choice((b"", b"ann", b"bob", b"kim lee"))
            title, snippet = f"title {doc}{mark}".encode(), f"snippet of {doc}".encode()
            day = self.chance.choice((disk.NO_DAY, 0, 12_000, 15_000))
            documents.append((doc, len(pool), len(title), len(snippet), self.chance.choice(_LANGUAGES),
                              self.chance.choice((0, 1, 16, 33)), hash64(author.decode()) if author else 0,
                              len(author), day, (doc, doc * 7, 1)))  # fmt: skip
            pool += title + snippet + author
        return Segment(
            name=str(len(self.segments)),
            rows=disk.sorted_rows(disk.as_table(rows, disk.ROW)),
            addresses=disk.as_table(addresses, disk.ADDRESS),
            documents=disk.as_table(documents, disk.DOCUMENT),
            cleared=np.array(cleared, np.int64).reshape(-1, 2),
            strings=bytes(pool),
        )

    def more(self, count: int = 5) -> Segment:
        """Return a segment of new captures with new documents."""
        first = self.last_id + 1
        docs = list(range(self.last_doc + 1, self.last_doc + 1 + self.chance.randrange(count)))
        self.last_doc += len(docs)
        urls = [self.capture(doc=self.chance.choice([0, *range(1, self.last_doc + 1)])) for _ in range(count)]
        return self.segment(urls, docs, [(first, self.last_id)])

    def anything(self) -> Segment:
        """Return a segment of something that may happen."""
        kind = self.chance.randrange(12)
        if kind == 0 and self.rows:
            # Judged anew: the same captures with other flags, or gone.
            first = self.chance.choice(list(self.rows))
            for number in [n for n in self.rows if first <= n <= first + 2]:
                self.rows[number] = (*self.rows[number][:6], self.chance.randrange(8), self.rows[number][7])
                if self.chance.random() < 0.3:
                    del self.rows[number]
            return self.segment([], [], [(first, first + 2)])
        if kind == 1 and self.last_doc:
            # Changed, with a title of the same length or another.
            mark = self.chance.choice(("", " x"))
            return self.segment([], [self.chance.randint(1, self.last_doc)], [], mark=mark)
        if kind == 2:
            # Older than the newest ones.
            first = self.last_id + 1
            url = self.capture(at=self.now - self.chance.randint(0, 3) * 20 * _DAY)
            return self.segment([url], [], [(first, self.last_id)])
        if kind == 3:
            # A range that speaks for ids that nobody had, below the last one.
            hole = self.chance.randint(1, self.last_id + 1)
            return self.segment([], [], [] if hole in self.rows else [(hole, hole)])
        if kind == 4:
            # A document that captures speak of, and that comes later, or never.
            self.last_doc += 1
            late = self.last_doc
            first = self.last_id + 1
            urls = [self.capture(doc=late), self.capture(doc=late + 1)]
            self.last_doc += self.chance.randrange(2)
            return self.segment(urls, self.chance.choice(([], [late])), [(first, self.last_id)])
        if kind == 5:
            known = [row[2] for row in self.rows.values()]
            table = [(h, self.chance.randrange(9)) for h in sorted(set(known)) if self.chance.random() < 0.5]
            self.signals = disk.as_table(table, SIGNAL)
            return self.segment([], [], [])
        return self.more()

    def put_in_force(self, segment: Segment) -> None:
        """Add a segment, and merge some of the newest now and then."""
        self.segments = [*self.segments, segment]
        if len(self.segments) > 1 and self.chance.random() < 0.5:
            count = self.chance.randint(2, len(self.segments))
            merged = disk.merge(self.segments[-count:], segment.name, oldest=count == len(self.segments))
            # Stored in the order of their keys.
            self.segments = [*self.segments[:-count], merged]


def _counted(columns: Columns, doc_places: Places) -> dict[str, Any]:
    """Return what is counted of columns."""
    rows = np.arange(len(columns), dtype=np.int32)
    worth = ranking.static_score(columns)
    shown = counting.as_pages(columns, rows, worth)
    results = counting.results_of(columns, shown, rows, counting.NONE_FOLDED)
    return {
        "spread": counting.spread(columns, results, {1: ("one", "One")}),
        "gates": counting.gates(columns, rows[::5], rows[::7]).tolist(),
        "beside": counting.beside(columns, rows[::3]).tolist(),
        "by source": counting.documents_of(columns, 2)[doc_places].tolist(),
        "worth": worth.tolist(),
        "pages": sorted(zip(shown.rows.tolist(), shown.best.tolist(), strict=True)),
    }  # fmt: skip


def _told(columns: Columns, archive: _Archive) -> dict[str, Any]:
    """Return all that columns say, whatever numbers they give to hosts, groups, languages, authors and profiles."""
    rows = np.arange(len(columns), dtype=np.int32)
    docs, urls = np.arange(0, archive.last_doc + 5), np.array([*sorted(archive.urls), 5], np.int64)
    doc_places, url_places = columns.documents.known(docs), columns.addresses.known(urls)
    groups: dict[int, list[int]] = {}
    for row, group in enumerate(columns.group.tolist()):
        groups.setdefault(group, []).append(row)
    assert columns.group_count == len(groups)
    assert set(groups) <= set(range(columns.group_count))

    def document(place: int) -> tuple[Any, ...]:
        profile = columns.doc_profiles[columns.doc_profile[place]]
        author = columns.authors.at(place) if profile["author"] else None
        texts = () if place == columns.documents.none else (
            columns.titles.at(place), columns.snippets.at(place), columns.authors.at(place))  # fmt: skip
        return (int(columns.doc_flags[place]), int(columns.doc_published[place]), int(profile["page_type"]), author,
                int(profile["published"]), columns.doc_print[place].tolist(), texts,
                columns.languages[columns.doc_language[place]])  # fmt: skip

    def address(place: int) -> tuple[Any, ...]:
        arrays = (columns.url_length, columns.url_flags, columns.url_inlinks)
        return (*(int(array[place]) for array in arrays), columns.urls.at(place))

    def profile(row: int) -> tuple[Any, ...]:
        found = columns.profiles[columns.profile[row]]
        return int(found["source"]), columns.languages[found["language"]], int(found["type"]), int(found["status"])

    owned = counting.owned_rows(columns)
    hosts = [columns.host_place(host) for host in (*_HOSTS, "nowhere.example")]
    hashes = np.array([hash64(columns.urls.at(int(place)).partition("?")[0]) for place in url_places], np.int64)
    return {
        "rows": [array.tolist() for array in (columns.ids, columns.at, columns.flags, columns.month)],
        "profiles": [profile(row) for row in rows.tolist()],
        "hosts": [columns.host_name(int(place)) for place in columns.host],
        "host places": [place >= 0 and columns.host_name(place) for place in hosts],
        "host rows": [owned[1].of(place, 0, len(rows)).tolist() for place in hosts if place >= 0],
        "groups": sorted(groups.values()),
        "documents": {int(k): document(int(p)) for k, p in zip(docs, columns.documents.places(docs), strict=True)},
        "addresses": [address(int(place)) for place in url_places],
        "of documents": [part.tolist() for part in columns.of_document.rows(doc_places)],
        "each document": [columns.of_document.of(int(place), 1, len(rows)).tolist() for place in doc_places],
        "of none": columns.of_document.rows(np.array([columns.documents.none], np.int32))[0].tolist(),
        "of addresses": [part.tolist() for part in columns.of_address.rows(url_places[::-1])],
        "of groups": [columns.rows_of_groups(hashes[n : n + 2]).tolist() for n in range(len(hashes))],
        "no group": columns.rows_of_groups(np.array([0, 5], np.int64)).tolist(),
        "row documents": [document(int(place)) for place in columns.doc],
        "row addresses": [address(int(place)) for place in columns.url],
        "of ids": columns.rows_of_ids(np.arange(0, archive.last_id, 2)).tolist(),
        "of sources": [columns.rows_of_sources([source, 99]).tolist() for source in range(1, 5)],
        "counts": (len(columns), len(columns.documents), len(columns.addresses), len(columns.hosts)),
        "combinations": (len(columns.profiles), len(columns.doc_profiles), len(columns.author_hashes)),
        "languages": sorted(columns.languages),
        "waiting": (columns.waiting.tolist(), columns.last_id),
        "counted": _counted(columns, doc_places),
    }  # fmt: skip


class _RowByRow:
    """What is worked out on columns row by row, anew or added to what was worked out before."""

    def __init__(self, columns: Columns, before: _RowByRow | None = None) -> None:
        self.columns = columns
        self.gate: Gate = counting.own_gates(columns, None if before is None else before.gate)
        self.owned: Owned = counting.owned_rows(columns, None if before is None else before.owned)
        self.worth: Floats = ranking.static_score(columns, None if before is None else before.worth)

    def told(self) -> list[Any]:
        """Return all of it as lists."""
        end = len(self.columns)
        hosts = [self.owned[1].of(place, 1, end).tolist() for place in range(len(self.columns.hosts))]
        profiles = [self.owned[0].of(place, 0, end).tolist() for place in range(len(self.columns.profiles))]
        return [self.gate.tolist(), hosts, profiles, self.worth.tolist()]


@pytest.mark.parametrize("seed", range(18))
def test_columns_that_grew_say_what_built_ones_say_and_older_ones_stay(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    if seed % 3 == 0:
        # So little room that it is used up.
        monkeypatch.setattr(columns_module, "_LEAST", 8)
    if seed % 2 == 0:
        # So few rows that others may come between that some are older.
        monkeypatch.setattr(columns_module, "_LEAST_MOVED", 3)
    archive = _Archive(seed)
    archive.segments = [archive.more()]
    columns = build(archive.segments, archive.signals)
    row_by_row = _RowByRow(columns)
    grown = 0
    older: list[tuple[Columns, _Archive, dict[str, Any]]] = []
    for _ in range(20):
        before, signals = archive.segments, archive.signals
        archive.put_in_force(archive.anything())
        whole = build(archive.segments, archive.signals)
        added = added_segment(columns, before, archive.segments) if signals is archive.signals else None
        found = None if added is None else grow(columns, added)
        grown += found is not None
        columns = whole if found is None else found
        row_by_row = _RowByRow(columns, row_by_row if columns.grew_out_of(row_by_row.columns) else None)
        assert row_by_row.told() == _RowByRow(columns).told()
        told = _told(columns, archive)
        assert told == _told(whole, archive)
        then = _Archive()
        then.last_doc, then.last_id, then.urls = archive.last_doc, archive.last_id, set(archive.urls)
        older.append((columns, then, told))

    assert grown >= 4
    for columns, then, told in older:
        assert _told(columns, then) == told


def _begun(count: int = 6) -> tuple[_Archive, Columns]:
    archive = _Archive(3)
    archive.last_doc = 4
    archive.segments = [archive.segment([archive.capture(doc=1) for _ in range(count)], [1, 2, 3, 4], [(1, 999)])]
    archive.last_id = 999
    return archive, build(archive.segments, _NO_SIGNALS)


def _next(archive: _Archive, columns: Columns, segment: Segment) -> Columns | None:
    added = added_segment(columns, archive.segments, [*archive.segments, segment])
    return None if added is None else grow(columns, added)


def test_new_captures_are_added_and_nothing_is_copied() -> None:
    archive, columns = _begun()

    found = _next(archive, columns, archive.more())

    assert found is not None
    assert len(found) == len(columns) + 5
    assert np.shares_memory(found.ids, columns.ids)
    assert np.shares_memory(found.doc_print, columns.doc_print)


def test_what_is_not_only_added_is_built(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns_module, "_LEAST_MOVED", 3)
    archive, columns = _begun()
    cleared = archive.segment([], [], [(1, 1)])
    old = archive.segment([archive.capture(at=5)], [], [(archive.last_id, archive.last_id)])
    changed = archive.segment([], [2], [])
    no_address = replace(archive.more(), addresses=np.empty(0, disk.ADDRESS))

    assert [_next(archive, columns, one) for one in (cleared, old, changed, no_address)] == [None] * 4


def test_captures_that_are_a_little_older_than_the_newest_come_between_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns_module, "_LEAST_MOVED", 3)
    archive, columns = _begun()
    told, moments = _told(columns, archive), columns.at.tolist()
    # As old as the third from the end and numbered behind it, and a second one that is the newest.
    first = archive.last_id + 1
    urls = [archive.capture(at=moments[-3], doc=2), archive.capture(doc=3)]
    segment = archive.segment(urls, [], [(first, archive.last_id)])

    found = _next(archive, columns, segment)

    assert found is not None
    assert found.at.tolist() == sorted([*moments, moments[-3], archive.now])
    assert not np.shares_memory(found.ids, columns.ids)
    assert np.shares_memory(found.url_flags, columns.url_flags)
    assert _told(found, archive) == _told(build([*archive.segments, segment], _NO_SIGNALS), archive)
    assert {name: told[name] for name in ("rows", "groups")} == {
        name: _told(columns, archive)[name] for name in ("rows", "groups")
    }
    assert not found.grew_out_of(columns)
    assert grow(columns, archive.more()) is None, "another has grown out of it"


def test_a_document_that_captures_wait_for_is_no_addition() -> None:
    archive, columns = _begun()
    first = _next(archive, columns, archive.segment([archive.capture(doc=7)], [], [(1000, archive.last_id)]))
    assert first is not None
    assert 7 in first.waiting

    assert grow(first, archive.segment([], [7], [])) is None
    assert grow(first, archive.segment([], [8], [])) is not None


@pytest.mark.parametrize("merges", [1, 2])
def test_a_text_that_changed_while_segments_were_merged_is_seen(merges: int) -> None:
    archive, columns = _begun()
    base = archive.segments[0]
    more = archive.segment([archive.capture(doc=5)], [5, 6], [(1000, archive.last_id)])
    archive.last_doc = 6
    before = [base, more]
    columns = build(before, _NO_SIGNALS)
    # Nothing but one letter of one text differs, in a segment of the same rows.
    at = more.strings.find(b"title 6")
    assert at >= 0
    other = replace(more, strings=more.strings[:at] + b"tixle 6" + more.strings[at + 7 :])
    last = archive.more()
    kept = disk.merge([more, last], "m", oldest=False)
    for _ in range(merges - 1):
        kept = disk.merge([kept, archive.more()], "n", oldest=False)

    assert added_segment(columns, before, [base, kept]) is not None
    assert added_segment(columns, before, [base, disk.merge([other, last], "m", oldest=False)]) is None


def test_rows_that_a_merge_left_out_are_missed() -> None:
    archive, columns = _begun()
    base, more = archive.segments[0], archive.more()
    before = [base, more]
    columns = build(before, _NO_SIGNALS)

    assert added_segment(columns, before, [base, replace(more, rows=more.rows[1:])]) is None
    assert added_segment(columns, before, [base]) is None


def test_of_two_states_that_grow_out_of_one_the_second_is_built_and_both_are_right() -> None:
    archive, columns = _begun()
    told = _told(columns, archive)
    one, other = archive.more(), archive.more()

    first, second = _next(archive, columns, one), _next(archive, columns, other)

    assert first is not None
    assert second is None
    whole = build([*archive.segments, one], _NO_SIGNALS)
    assert _told(first, archive) == _told(whole, archive)
    assert len(columns) == len(told["rows"][0])
    third = _next(archive, first, other)
    assert third is not None
    assert _told(third, archive) == _told(build([*archive.segments, one, other], _NO_SIGNALS), archive)
    assert _told(first, archive) == _told(whole, archive)


def test_of_many_threads_one_adds() -> None:
    archive, columns = _begun()
    segments = [archive.more() for _ in range(8)]
    found: list[Columns | None] = []
    start = threading.Barrier(len(segments))

    def run(segment: Segment) -> None:
        start.wait()
        found.append(_next(archive, columns, segment))

    threads = [threading.Thread(target=run, args=(segment,)) for segment in segments]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    (grown,) = [one for one in found if one is not None]
    (added,) = [one for one in segments if one.rows["id"][0] in grown.ids]
    assert _told(grown, archive) == _told(build([*archive.segments, added], _NO_SIGNALS), archive)


def test_there_is_room_for_an_eighth_and_then_columns_are_built(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns_module, "_LEAST", 2)
    archive, columns = _begun(80)
    found: Columns | None = columns
    while found is not None:
        columns = found
        segment = archive.segment([archive.capture(doc=1)], [], [(archive.last_id, archive.last_id)])
        found = _next(archive, columns, segment)
        archive.segments = [*archive.segments, segment]

    # Of addresses there is less.
    assert 80 < len(columns) <= 90
