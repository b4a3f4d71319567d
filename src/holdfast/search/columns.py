"""All pages in memory, column by column, for filters, totals, facets, histograms and grouping.

Rows are ordered by time, then id, so a row's number is its age rank; documents, URLs and groups know their
rows. Built whole from segments (47 bytes a capture, 86 a URL, 113 a document, 8 a page; a second per million
captures), with spare room for an eighth more, which `growth` fills; data visible to one state of the index
never changes.
"""

from __future__ import annotations

import mmap
import threading
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from holdfast.parse.text import fold
from holdfast.search.addresses import host_of
from holdfast.search.places import Ids, Incidence, Numbering, Places, Rows, Strings
from holdfast.search.query import Field
from holdfast.search.segments import NO_DAY, PAGE_TYPE_SHIFT, Segment, Table, living_rows, sorted_rows, united
from holdfast.urls import hash64, typed_host
from holdfast.values import dataclass

Floats = npt.NDArray[np.float32]

SIGNAL: Final = np.dtype([("group", "<i8"), ("inlinks", "<i4")])

# Room for an eighth more rows: the cost of a build, divided among these additions, is about what adding one costs
# (10 us). A small archive has room for some thousands, which take little memory.
_SHARE: Final = 8
_LEAST: Final = 8_192
# Captures of concurrent crawls arrive file by file: one may be older than the newest rows, but seldom older than this
# many of them.
_MOVED: Final = 64
_LEAST_MOVED: Final = 64


# Of the hash tables by which a few rows are found among all: one place in 32 is taken, so as many rows are compared.
_LEAST_BITS: Final = 12
_SPARE_BITS: Final = 5
_HASHED_AT_ONCE: Final = 1 << 18
_SPREAD: Final = np.uint64(0x9E3779B97F4A7C15)


def _hashed(ids: Ids, shift: np.uint64) -> Ids:
    return ((ids.view(np.uint64) * _SPREAD) >> shift).view(np.int64)


class GroupSignals:
    __slots__ = ("_groups", "_known")

    def __init__(self, table: Table) -> None:
        self._groups = Numbering(table["group"].astype(np.int64))
        self._known = np.append(table, np.zeros(1, SIGNAL))

    def of(self, groups: Ids) -> Table:
        """Return the signals of groups by their hashes; zeros for unknown groups."""
        return self._known[self._groups.places(groups)]


class ColumnRoom:
    def __init__(self, rows: int, documents: int, addresses: int) -> None:
        self.most = tuple(count + max(_LEAST, count // _SHARE) for count in (rows, documents, addresses))
        """Rows, documents and addresses that there may be; the place behind the last is for none."""
        self._columns: dict[str, npt.NDArray[Any]] = {}
        self._taken = (rows, documents, addresses)
        self._lock = threading.Lock()

    def first_rows(self, values: dict[str, npt.NDArray[Any]]) -> dict[str, Any]:
        self._columns = {name: np.zeros(self.most[0], column.dtype) for name, column in values.items()}
        return self.more_rows(0, values)

    def leave_rows(self, end: int) -> None:
        """Leave the current row columns to older states, and continue with a copy of the first rows."""
        for name, column in self._columns.items():
            self._columns[name] = np.zeros(len(column), column.dtype)
            self._columns[name][:end] = column[:end]

    def more_rows(self, first: int, values: dict[str, npt.NDArray[Any]]) -> dict[str, Any]:
        for name, added in values.items():
            self._columns[name][first : first + len(added)] = added
        return {name: self._columns[name][: first + len(added)] for name, added in values.items()}

    def take(self, before: tuple[int, int, int], after: tuple[int, int, int]) -> bool:
        """Claim the space after a state's last entries; False if another state claimed it or the room is too small."""
        with self._lock:
            if self._taken != before or any(count > most for count, most in zip(after, self.most, strict=True)):
                return False
            self._taken = after
            return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """The pages of the archive. Arrays named by row, `doc_…` by document place, `url_…` by URL place.

    Those by document and by URL have room between their entries and their last place, which represents a missing
    one.
    """

    room: ColumnRoom

    ids: Ids
    at: Ids
    doc: npt.NDArray[np.int32]
    url: npt.NDArray[np.int32]
    group: npt.NDArray[np.int32]
    """Place of (source, group), which `view=pages` shows as one result."""
    profile: npt.NDArray[np.int32]
    """Place in `profiles`: few combinations exist, so four filters and four facets cost one pass."""
    flags: npt.NDArray[np.uint8]
    month: npt.NDArray[np.int16]
    host: npt.NDArray[np.int32]
    documents: Numbering
    doc_flags: npt.NDArray[np.uint8]
    doc_published: npt.NDArray[np.int32]
    """Days since 1970, or `NO_DAY`."""
    doc_profile: npt.NDArray[np.int32]
    """Place in `doc_profiles`, for three facets in one pass."""
    doc_profiles: Table
    doc_print: npt.NDArray[np.uint64]
    """Fingerprints, one row per document; zeros for missing ones."""
    languages: tuple[str, ...]
    doc_language: npt.NDArray[np.int32]
    profiles: Table
    addresses: Numbering
    url_length: npt.NDArray[np.int32]
    url_flags: npt.NDArray[np.uint8]
    url_inlinks: Floats
    url_host: npt.NDArray[np.int32]
    url_group: npt.NDArray[np.int32]
    hosts: Numbering
    host_example: npt.NDArray[np.int64]
    groups: Numbering
    pages: Numbering
    """Groups of a source: see `page_keys`."""
    profile_codes: Numbering
    doc_profile_codes: Numbering
    author_hashes: Numbering
    waiting: Ids
    """Documents that rows refer to but that are missing here (0 for rows without one), ascending."""
    signals: GroupSignals
    last_id: int
    of_group: Incidence
    of_document: Incidence
    of_address: Incidence
    titles: Strings
    snippets: Strings
    authors: Strings
    urls: Strings
    blobs: list[mmap.mmap | bytes]
    """The memory that texts are stored in; states that share a room share it."""

    def __len__(self) -> int:
        return len(self.ids)

    def grew_out_of(self, others: Columns) -> bool:
        # States that share columns by row grow one out of another.
        return self.ids.base is others.ids.base and len(self) >= len(others)

    @property
    def group_count(self) -> int:
        return len(self.pages)

    def strings(self, field: Field) -> Strings:
        return {Field.TITLE: self.titles, Field.SNIPPET: self.snippets, Field.URL: self.urls}[field]

    def rows_of_ids(self, ids: Ids) -> Rows:
        if not len(ids):
            return np.empty(0, np.int32)
        # A table of hashes leaves few candidates: 0.8 s for 100 of 20 million rows, where `isin` alone takes 10 s.
        shift = np.uint64(64 - max(_LEAST_BITS, len(ids).bit_length() + _SPARE_BITS))
        is_near = np.zeros(1 << (64 - int(shift)), np.bool_)
        is_near[_hashed(ids, shift)] = True
        starts = range(0, len(self), _HASHED_AT_ONCE)
        near = [np.flatnonzero(is_near[_hashed(self.ids[at : at + _HASHED_AT_ONCE], shift)]) + at for at in starts]
        rows = np.concatenate([np.empty(0, np.int64), *near]).astype(np.int32)
        return rows[np.isin(self.ids[rows], ids)]

    def rows_of_sources(self, sources: Sequence[int]) -> Rows:
        return np.flatnonzero(np.isin(self.profiles["source"], sources)[self.profile]).astype(np.int32)

    def rows_of_groups(self, hashes: Ids) -> Rows:
        """Return the rows whose group's URL has one of these hashes, in the order of time."""
        places = self.of_group.rows(self.groups.known(hashes))[0]
        return np.sort(self.of_address.rows(places)[0])

    def host_place(self, host: str) -> int:
        """Return the place of a host; -1 if it has no URL."""
        return int(self.hosts.places(np.array([hash64(fold(typed_host(host)))], np.int64))[0])

    def host_name(self, place: int) -> str:
        return host_of(self.urls.at(int(self.host_example[place])))


def months_of(micros: Ids) -> npt.NDArray[np.int16]:
    months = micros.astype("datetime64[us]").astype("datetime64[M]").astype(np.int64)
    # No capture is older, nor 2,700 years younger; a broken date must not break the counting.
    return np.clip(months, 0, np.iinfo(np.int16).max).astype(np.int16)


def build(segments: Sequence[Segment], signals: Table) -> Columns:
    """Build the columns of these segments; newer segments win."""
    # Already in order in most builds: a segment appends newer rows.
    rows = sorted_rows(living_rows(segments))
    docs, doc_number = united(segments, "documents")
    urls, url_number = united(segments, "addresses")
    room = ColumnRoom(len(rows), len(docs), len(urls))
    _, no_doc, no_url = room.most
    documents, addresses = (
        Numbering(docs["doc"].astype(np.int64), no_doc),
        Numbering(urls["url"].astype(np.int64), no_url),
    )
    row_docs = rows["doc"].astype(np.int64)
    doc, url = documents.places(row_docs), addresses.places(rows["url"].astype(np.int64))
    # A row always comes with its address; a document may be missing until its entry is taken in.
    language_names, language = np.unique(np.append(docs["language"], b""), return_inverse=True)
    hosts, example, host = np.unique(urls["host"], return_index=True, return_inverse=True)
    group_hashes, group = np.unique(np.append(urls["group"], 0), return_inverse=True)
    doc_language = with_room(language[:-1].astype(np.int32), no_doc, language[-1])
    url_host = with_room(host.astype(np.int32), no_url)
    url_group = with_room(group[:-1].astype(np.int32), no_url, group[-1])
    sources, source = _compact(rows["source"].astype(np.int64))
    codes, page = _compact(url_group[url].astype(np.int64) * len(sources) + source)
    profiles, profile = _profiles(rows, source, doc_language[doc])
    blobs = [segment.strings for segment in segments]
    by_row = {
        "ids": rows["id"],
        "at": rows["at"],
        "doc": doc,
        "url": url,
        "group": page.astype(np.int32),
        "profile": profile,
        "flags": rows["flags"],
        "month": months_of(rows["at"]),
        "host": url_host[url],
    }
    return Columns(
        room=room,
        **room.first_rows(by_row),
        **_by_document(docs, no_doc),
        **_by_address(urls, no_url, GroupSignals(signals)),
        **_texts(docs, urls, blobs, with_room(doc_number, no_doc), with_room(url_number, no_url)),
        profiles=profiles,
        profile_codes=Numbering(profile_codes(profiles), -1),
        documents=documents,
        doc_language=doc_language,
        languages=tuple(name.decode() for name in language_names.tolist()),
        waiting=np.unique(row_docs[doc == no_doc]),
        addresses=addresses,
        url_host=url_host,
        url_group=url_group,
        hosts=Numbering(hosts.astype(np.int64), -1),
        host_example=example,
        groups=Numbering(group_hashes.astype(np.int64), -1),
        pages=Numbering(page_keys(codes // max(1, len(sources)), sources[codes % max(1, len(sources))]), -1),
        last_id=int(rows["id"].max(initial=-1)),
        of_document=_rows_of(doc, no_doc + 1),
        of_address=_rows_of(url, no_url + 1),
        of_group=Incidence(group[:-1].astype(np.int32), len(group_hashes)),
    )


def _rows_of(owner_of_row: Places, owners: int) -> Incidence:
    """Return the rows of each owner; the newest rows stay open to insertions."""
    fixed = max(0, len(owner_of_row) - max(_LEAST_MOVED, len(owner_of_row) // _MOVED))
    return Incidence(owner_of_row[:fixed], owners).grown(owner_of_row[fixed:], fixed, owners)


def with_room(values: npt.NDArray[Any], most: int, none: Any = 0) -> npt.NDArray[Any]:
    """Return values with spare room, and `none` at the last place."""
    found = np.zeros((most + 1, *values.shape[1:]), values.dtype)
    found[: len(values)] = values
    found[most] = none
    return found


def page_keys(groups: npt.NDArray[np.integer[Any]], sources: npt.NDArray[np.integer[Any]]) -> Ids:
    return groups.astype(np.int64) << 31 | sources


def _by_document(docs: Table, most: int) -> dict[str, Any]:
    named = np.flatnonzero(docs["author"])
    hashes, place_of = np.unique(docs["author"][named], return_inverse=True)
    # The first place is for no author.
    author = np.zeros(len(docs), np.int64)
    author[named] = place_of + 1
    # A document that is not there says nothing.
    codes, place = _compact(np.append(doc_profile_codes(docs, author), 0))
    return {
        "doc_flags": with_room(docs["flags"], most),
        "doc_published": with_room(docs["published"], most, NO_DAY),
        "doc_profile": with_room(place[:-1].astype(np.int32), most, place[-1]),
        "doc_print": with_room(docs["print"], most),
        "doc_profiles": doc_profiles(codes),
        "doc_profile_codes": Numbering(codes, -1),
        "author_hashes": Numbering(hashes.astype(np.int64), -1),
    }


def _by_address(urls: Table, most: int, signals: GroupSignals) -> dict[str, Any]:
    linked = signals.of(urls["group"].astype(np.int64))
    return {
        "signals": signals,
        "url_length": with_room(urls["length"], most),
        "url_flags": with_room(urls["flags"], most),
        "url_inlinks": with_room(linked["inlinks"].astype(np.float32), most),
    }


def _texts(docs: Table, urls: Table, blobs: list[mmap.mmap | bytes], of_doc: Ids, of_url: Ids) -> dict[str, Any]:
    found: dict[str, Any] = {"blobs": blobs}
    for name, starts, lengths in texts_of(docs, urls):
        number = of_url if name == "urls" else of_doc
        most = len(number) - 1
        found[name] = Strings(blobs, number, with_room(starts, most), with_room(lengths, most))
    return found


def texts_of(docs: Table, urls: Table) -> Iterator[tuple[str, Ids, Ids]]:
    starts = docs["offset"].astype(np.int64)
    for name, length in (("titles", "title"), ("snippets", "snippet"), ("authors", "author_length")):
        lengths = docs[length].astype(np.int64)
        yield name, starts, lengths
        starts = starts + lengths
    yield "urls", urls["offset"].astype(np.int64), urls["length"].astype(np.int64)


PROFILE: Final = np.dtype([("source", "<i8"), ("language", "<i8"), ("type", "<i8"), ("status", "<i8")])
"""Values shared by many captures; `status` is its class, 0 for unknown."""


# More languages than there are codes of three letters.
_LANGUAGES: Final = 1 << 16


def profile_codes(profiles: Table) -> Ids:
    codes: Ids = ((profiles["source"] * _LANGUAGES + profiles["language"]) * 4 + profiles["type"]) * 6 + profiles[
        "status"
    ]
    return codes


def profiles_of(rows: Table, language: Places) -> Table:
    found = np.empty(len(rows), PROFILE)
    found["source"], found["type"], found["language"] = rows["source"], rows["type"], language
    found["status"] = np.minimum(rows["status"] // 100, 5)
    return found


def _profiles(rows: Table, source: npt.NDArray[np.int64], language: Places) -> tuple[Table, Places]:
    status = np.minimum(rows["status"] // 100, 5).astype(np.int64)
    languages = int(language.max(initial=0)) + 1
    # By the places of sources and languages: their numbers are dense, and need no sorting.
    codes, place = _compact(((source * languages + language) * 4 + rows["type"]) * 6 + status)
    example = np.zeros(len(codes), np.int64)
    example[place] = np.arange(len(place))
    return profiles_of(rows[example], language[example]), place.astype(np.int32)


DOC_PROFILE: Final = np.dtype([("page_type", "<i8"), ("author", "<i8"), ("published", "<i8")])
"""Values shared by many documents: place of the page type, place of the author, year of publication or 0."""
_FIRST_YEAR: Final = 1_800
_YEARS: Final = 400
_PAGE_TYPES: Final = 16


def doc_profile_codes(docs: Table, author: npt.NDArray[np.integer[Any]]) -> Ids:
    day = docs["published"].astype(np.int64)
    year = day.astype("datetime64[D]").astype("datetime64[Y]").astype(np.int64) + 1_970 - _FIRST_YEAR
    year = np.where((day == NO_DAY) | (year <= 0) | (year >= _YEARS), 0, year)
    page_type = (docs["flags"] >> np.uint8(PAGE_TYPE_SHIFT)).astype(np.int64)
    return (author.astype(np.int64) * _PAGE_TYPES + page_type) * _YEARS + year


def doc_profiles(codes: Ids) -> Table:
    found = np.empty(len(codes), DOC_PROFILE)
    found["author"] = codes // (_PAGE_TYPES * _YEARS)
    found["page_type"] = codes // _YEARS % _PAGE_TYPES
    found["published"] = np.where(codes % _YEARS, codes % _YEARS + _FIRST_YEAR, 0)
    return found


# Codes up to here are numbered by a table of that size, in one pass; beyond, by sorting them.
_COMPACT: Final = 64_000_000


def _compact(codes: Ids) -> tuple[Ids, npt.NDArray[np.int64]]:
    if not len(codes) or int(codes.max()) > min(_COMPACT, 64 * len(codes) + 1_000_000) or int(codes.min()) < 0:
        distinct, places = np.unique(codes, return_inverse=True)
        return distinct, places.astype(np.int64)
    used = np.zeros(int(codes.max()) + 1, np.bool_)
    used[codes] = True
    numbers = np.cumsum(used, dtype=np.int32) - 1
    return np.flatnonzero(used), numbers[codes].astype(np.int64)
