"""All pages in memory, column by column: what filters, totals, facets, histograms and grouping are counted from.

Rows stand in the order of time, then id, so a row's number is its age rank; documents, addresses and groups know their
rows. Built whole from segments (47 bytes a capture, 60 an address, 59 a document; a second a million captures), then
never changed.
"""

from __future__ import annotations

import mmap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from holdfast.search.fingerprints import PRINT_WIDTH
from holdfast.search.query import Field
from holdfast.search.segments import NO_DAY, PAGE_TYPE_SHIFT, Segment, Table, living_rows, newest_by, sorted_rows
from holdfast.urls import hash64, typed_host

Rows = npt.NDArray[np.int32]
Ids = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float32]

SIGNAL: Final = np.dtype([("group", "<i8"), ("inlinks", "<i4"), ("outlinks", "<i4"), ("pagerank", "<f4")])


class Incidence:
    """Which rows belong to each owner (a document, an address, a group): offsets into one list of row numbers."""

    __slots__ = ("_rows", "_starts")

    def __init__(self, owner_of_row: npt.NDArray[np.int32], owners: int) -> None:
        # Stable, so that the rows of an owner stay in the order of time.
        self._rows: Rows = np.argsort(owner_of_row, kind="stable").astype(np.int32)
        self._starts: Ids = np.zeros(owners + 1, np.int64)
        np.cumsum(np.bincount(owner_of_row, minlength=owners), out=self._starts[1:])

    def rows(self, owners: npt.NDArray[np.int32]) -> tuple[Rows, npt.NDArray[np.int64]]:
        """Return the rows of these owners, owner after owner, and how many each has."""
        starts = self._starts[owners]
        counts = self._starts[owners + 1] - starts
        total = int(counts.sum())
        if not total:
            return np.empty(0, np.int32), counts
        before = np.cumsum(counts) - counts
        places = np.repeat((starts - before).astype(np.int32), counts)
        # No loop over owners: a common word has a hundred thousand documents.
        places += np.arange(total, dtype=np.int32)
        return self._rows[places], counts

    def of(self, owner: int, first: int, end: int) -> Rows:
        """Return the rows of one owner from `first` to below `end`, in the order of time; nothing is copied."""
        rows = self._rows[self._starts[owner] : self._starts[owner + 1]]
        low, high = np.searchsorted(rows, (first, end)).tolist()
        return rows[low:high]


class Numbering:
    """From the keys of SQL to places in a column: a table where the keys are dense, a search where they are not."""

    __slots__ = ("_table", "keys")

    def __init__(self, keys: Ids) -> None:
        self.keys = keys
        self._table: npt.NDArray[np.int32] | None = None
        # Ids of documents are dense, hashes of addresses are not: a table of 2^63 places would be asked for.
        if len(keys) and keys[0] >= 0 and keys[-1] < 8 * len(keys) + 1_000_000:
            self._table = np.full(int(keys[-1]) + 2, len(keys), np.int32)
            self._table[keys] = np.arange(len(keys), dtype=np.int32)

    def places(self, keys: Ids) -> npt.NDArray[np.int32]:
        """Return the place of each key; the number of keys for one that is not there."""
        count = len(self.keys)
        if self._table is not None:
            last = len(self._table) - 1
            return self._table[np.where((keys < 0) | (keys > last), last, keys)]
        if not count:
            return np.zeros(len(keys), np.int32)
        at = np.searchsorted(self.keys, keys)
        at[at == count] = count - 1
        return np.where(self.keys[at] == keys, at, count).astype(np.int32)

    def known(self, keys: Ids) -> npt.NDArray[np.int32]:
        """Return the places of those keys that are there."""
        places = self.places(keys)
        return places[places < len(self.keys)]


class Strings:
    """Folded texts by place: which map they lie in, where, and how long they are."""

    __slots__ = ("_blobs", "_lengths", "_number", "_starts")

    def __init__(self, blobs: Sequence[mmap.mmap | bytes], number: Ids, starts: Ids, lengths: Ids) -> None:
        self._blobs, self._number, self._starts, self._lengths = blobs, number, starts, lengths

    def holding(self, places: npt.NDArray[np.int32], needle: bytes) -> npt.NDArray[np.int32]:
        """Return those places whose text has this substring."""
        blobs = self._blobs
        starts = self._starts[places]
        ends = starts + self._lengths[places]
        found = [
            needle in blobs[number][start:end]
            for number, start, end in zip(self._number[places].tolist(), starts.tolist(), ends.tolist(), strict=True)
        ]
        return places[np.array(found, np.bool_)] if found else places

    def equal(self, places: npt.NDArray[np.int32], text: bytes) -> npt.NDArray[np.int32]:
        """Return those places whose text is this one."""
        return self.holding(places[self._lengths[places] == len(text)], text)

    def at(self, place: int) -> str:
        """Return one text."""
        start = int(self._starts[place])
        return self._blobs[int(self._number[place])][start : start + int(self._lengths[place])].decode()


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """The pages of the archive. Arrays named by row, `doc_…` by document place, `url_…` by address place."""

    ids: Ids
    at: Ids
    doc: npt.NDArray[np.int32]
    url: npt.NDArray[np.int32]
    group: npt.NDArray[np.int32]
    """Place of (source, group): what `view=pages` shows as one."""
    profile: npt.NDArray[np.int32]
    """Place in `profiles`: few combinations exist, so four filters and four facets cost one pass."""
    flags: npt.NDArray[np.uint8]
    month: npt.NDArray[np.int16]
    """Months since January 1970."""
    host: npt.NDArray[np.int32]
    documents: Numbering
    doc_flags: npt.NDArray[np.uint8]
    doc_published: npt.NDArray[np.int32]
    """The day since 1970, or `NO_DAY`."""
    doc_profile: npt.NDArray[np.int32]
    """Place in `doc_profiles`, for three facets in one pass."""
    doc_profiles: Table
    author_example: npt.NDArray[np.int64]
    """A document by each author, to read the name from; the last place is for none."""
    doc_print: npt.NDArray[np.uint64]
    """Fingerprints, a row a document; zeros where there is none."""
    languages: tuple[str, ...]
    profiles: Table
    addresses: Numbering
    url_length: npt.NDArray[np.int32]
    url_depth: npt.NDArray[np.uint8]
    url_flags: npt.NDArray[np.uint8]
    url_inlinks: Floats
    url_outlinks: Floats
    url_pagerank: Floats
    host_hashes: Ids
    host_example: npt.NDArray[np.int64]
    """An address of each host, to read its name from."""
    groups_sorted: Ids
    groups_order: npt.NDArray[np.int64]
    """Addresses by their group's hash, for looking one up."""
    of_document: Incidence
    of_address: Incidence
    titles: Strings
    snippets: Strings
    authors: Strings
    urls: Strings
    group_count: int

    def __len__(self) -> int:
        return len(self.ids)

    def strings(self, field: Field) -> Strings:
        """Return the texts that a field's terms are looked for in."""
        return {Field.TITLE: self.titles, Field.SNIPPET: self.snippets, Field.URL: self.urls}[field]

    def rows_of_ids(self, ids: Ids) -> Rows:
        """Return the rows of these snapshots, those that are here."""
        if not len(ids):
            return np.empty(0, np.int32)
        return np.flatnonzero(np.isin(self.ids, ids)).astype(np.int32)

    def rows_of_sources(self, sources: Sequence[int]) -> Rows:
        """Return the rows of these sources, in the order of time."""
        return np.flatnonzero(np.isin(self.profiles["source"], sources)[self.profile]).astype(np.int32)

    def rows_of_groups(self, hashes: Ids) -> Rows:
        """Return the rows whose group's address has one of these hashes, in the order of time."""
        left = np.searchsorted(self.groups_sorted, hashes, side="left")
        right = np.searchsorted(self.groups_sorted, hashes, side="right")
        places = [self.groups_order[a:b] for a, b in zip(left.tolist(), right.tolist(), strict=True)]
        found = np.concatenate(places) if places else np.empty(0, np.int64)
        return np.sort(self.of_address.rows(found.astype(np.int32))[0])

    def author_name(self, place: int) -> str:
        """Return the name of an author as one of the documents has it."""
        return self.authors.at(int(self.author_example[place]))

    def host_place(self, host: str) -> int:
        """Return the place of a host; -1 if no address is on it."""
        wanted = hash64(typed_host(host))
        at = int(np.searchsorted(self.host_hashes, wanted))
        return at if at < len(self.host_hashes) and self.host_hashes[at] == wanted else -1

    def host_name(self, place: int) -> str:
        """Return the name of a host."""
        return host_of(self.urls.at(int(self.host_example[place])))


def host_of(url: str) -> str:
    """Return the host of an address, with its port if it has one."""
    rest = url.partition("://")[2]
    for end in "/?#":
        rest = rest.partition(end)[0]
    return rest.rpartition("@")[2]


def months_of(micros: Ids) -> npt.NDArray[np.int16]:
    """Return the months since January 1970 in which moments lie."""
    months = micros.astype("datetime64[us]").astype("datetime64[M]").astype(np.int16)
    # No capture is older; a broken date must not break the counting.
    return np.maximum(months, 0).astype(np.int16)


def build(segments: Sequence[Segment], signals: Table) -> Columns:
    """Return the columns that these segments make, the newer ones winning."""
    # Already in order in most builds: a segment only adds what is newer behind the rest.
    rows = sorted_rows(living_rows(segments))
    docs, doc_number = _newest(segments, "documents", "doc")
    urls, url_number = _newest(segments, "addresses", "url")
    documents, addresses = Numbering(docs["doc"].astype(np.int64)), Numbering(urls["url"].astype(np.int64))
    doc = documents.places(rows["doc"].astype(np.int64))
    url = addresses.places(rows["url"].astype(np.int64))
    # A row always comes with its address; a document may be missing until its entry is taken in.
    language_names, language = np.unique(np.append(docs["language"], b""), return_inverse=True)
    hosts, example, host = np.unique(urls["host"], return_index=True, return_inverse=True)
    _, url_group = np.unique(np.append(urls["group"], 0), return_inverse=True)
    _, source = _compact(rows["source"].astype(np.int64))
    groups, group = _compact(url_group[url] * (int(source.max(initial=0)) + 1) + source)
    profiles, profile = _profiles(rows, source, language[doc])
    order = np.argsort(urls["group"], kind="stable")
    inlinks, outlinks, pagerank = _signals_of(urls["group"], signals)
    blobs = [segment.strings for segment in segments]
    starts, title = docs["offset"].astype(np.int64), docs["title"].astype(np.int64)
    snippet = docs["snippet"].astype(np.int64)
    doc_profiles, doc_profile, author_example = _doc_profiles(docs)
    return Columns(
        ids=np.ascontiguousarray(rows["id"]),
        at=np.ascontiguousarray(rows["at"]),
        doc=doc,
        url=url,
        group=group.astype(np.int32),
        profile=profile,
        profiles=profiles,
        flags=np.ascontiguousarray(rows["flags"]),
        month=months_of(rows["at"]),
        documents=documents,
        host=np.append(host, 0).astype(np.int32)[url],
        doc_flags=np.append(docs["flags"], 0).astype(np.uint8),
        doc_published=np.append(docs["published"], NO_DAY).astype(np.int32),
        doc_profile=doc_profile,
        doc_profiles=doc_profiles,
        author_example=author_example,
        doc_print=np.concatenate((docs["print"], np.zeros((1, PRINT_WIDTH), np.uint64))),
        languages=tuple(name.decode() for name in language_names.tolist()),
        addresses=addresses,
        url_length=np.append(urls["length"], 0),
        url_depth=np.append(urls["depth"], 0),
        url_flags=np.append(urls["flags"], 0),
        url_inlinks=inlinks,
        url_outlinks=outlinks,
        url_pagerank=pagerank,
        host_hashes=hosts.astype(np.int64),
        host_example=example,
        groups_order=order,
        groups_sorted=urls["group"][order],
        of_document=Incidence(doc, len(docs) + 1),
        of_address=Incidence(url, len(urls) + 1),
        titles=Strings(blobs, doc_number, starts, title),
        snippets=Strings(blobs, doc_number, starts + title, snippet),
        authors=Strings(blobs, doc_number, starts + title + snippet, docs["author_length"].astype(np.int64)),
        urls=Strings(blobs, url_number, urls["offset"].astype(np.int64), urls["length"].astype(np.int64)),
        group_count=len(groups),
    )


def _newest(segments: Sequence[Segment], table: str, key: str) -> tuple[Table, Ids]:
    tables: list[Table] = [getattr(segment, table) for segment in segments]
    whole = np.concatenate(tables)
    origin = np.repeat(np.arange(len(tables)), [len(part) for part in tables])
    places = newest_by(whole[key].astype(np.int64))
    return whole[places], origin[places]


PROFILE: Final = np.dtype([("source", "<i8"), ("language", "<i8"), ("type", "<i8"), ("status", "<i8")])
"""What many captures have in common; `status` is its class, 0 for none."""


def _profiles(
    rows: Table, source: npt.NDArray[np.int64], language: npt.NDArray[np.intp]
) -> tuple[Table, npt.NDArray[np.int32]]:
    """Return the combinations that occur, and which one each row has."""
    status = np.minimum(rows["status"] // 100, 5).astype(np.int64)
    languages = int(language.max(initial=0)) + 1
    codes, place = _compact(((source * languages + language) * 4 + rows["type"]) * 6 + status)
    example = np.zeros(len(codes), np.int64)
    example[place] = np.arange(len(place))
    found = np.empty(len(codes), PROFILE)
    found["source"], found["language"] = rows["source"][example], language[example]
    found["type"], found["status"] = rows["type"][example], status[example]
    return found, place.astype(np.int32)


DOC_PROFILE: Final = np.dtype([("page_type", "<i8"), ("author", "<i8"), ("published", "<i8")])
"""What many documents have in common: place of the page type, place of the author, year of publication or 0."""
_FIRST_YEAR: Final = 1_800
_YEARS: Final = 400
_PAGE_TYPES: Final = 16


def _doc_profiles(docs: Table) -> tuple[Table, npt.NDArray[np.int32], npt.NDArray[np.int64]]:
    """Return the combinations that occur, which one each document has (the last place is for none), and the authors."""
    named = np.flatnonzero(docs["author"])
    hashes, example, place_of = np.unique(docs["author"][named], return_index=True, return_inverse=True)
    # An author without a name comes last, as a document that is not there yet does.
    author = np.full(len(docs) + 1, len(hashes), np.int64)
    author[named] = place_of
    day = np.append(docs["published"], NO_DAY).astype(np.int64)
    year = day.astype("datetime64[D]").astype("datetime64[Y]").astype(np.int64) + 1_970 - _FIRST_YEAR
    year = np.where((day == NO_DAY) | (year <= 0) | (year >= _YEARS), 0, year)
    page_type = np.append(docs["flags"] >> np.uint8(PAGE_TYPE_SHIFT), 0).astype(np.int64)
    codes, place = _compact((author * _PAGE_TYPES + page_type) * _YEARS + year)
    found = np.empty(len(codes), DOC_PROFILE)
    found["author"] = codes // (_PAGE_TYPES * _YEARS)
    found["page_type"] = codes // _YEARS % _PAGE_TYPES
    found["published"] = np.where(codes % _YEARS, codes % _YEARS + _FIRST_YEAR, 0)
    return found, place.astype(np.int32), named[example]


# Codes up to here are numbered by a table of that size, in one pass; beyond, by sorting them.
_COMPACT: Final = 64_000_000


def _compact(codes: Ids) -> tuple[Ids, npt.NDArray[np.int64]]:
    """Return the distinct codes in order, and the place of each one among them."""
    if not len(codes) or int(codes.max()) > min(_COMPACT, 64 * len(codes) + 1_000_000) or int(codes.min()) < 0:
        distinct, places = np.unique(codes, return_inverse=True)
        return distinct, places.astype(np.int64)
    used = np.zeros(int(codes.max()) + 1, np.bool_)
    used[codes] = True
    numbers = np.cumsum(used, dtype=np.int32) - 1
    return np.flatnonzero(used), numbers[codes].astype(np.int64)


def _signals_of(groups: Ids, signals: Table) -> tuple[Floats, Floats, Floats]:
    """Return in-links, out-links and PageRank of each address's group; zeros where nothing is known."""
    places = Numbering(signals["group"].astype(np.int64)).places(groups.astype(np.int64))
    known = np.append(signals, np.zeros(1, SIGNAL))[places]
    columns = [np.append(known[name], 0).astype(np.float32) for name in ("inlinks", "outlinks", "pagerank")]
    return columns[0], columns[1], columns[2]
