"""Filters the rows found, groups them into pages, sorts them, and computes facets and histogram.

Everything is a few passes over arrays, without database access.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from functools import cache
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from holdfast.clock import to_micros
from holdfast.search.columns import Columns
from holdfast.search.operators import PAGE_TYPES
from holdfast.search.places import Incidence, Rows
from holdfast.search.segments import DUPLICATE, NOINDEX, NOISE, TYPE_NAMES
from holdfast.values import dataclass

FACET_VALUES: Final = 20
FACET_YEARS: Final = 100
_EPOCH: Final = date(1970, 1, 1)
_DAY_MICROS: Final = 86_400_000_000
# Up to this many days the histogram is by day, up to ten years by month, beyond by year.
_DAILY: Final = 62
_MONTHLY: Final = 120

STATUS_NAMES: Final = ("unknown", "1xx", "2xx", "3xx", "4xx", "5xx")

Keep = npt.NDArray[np.bool_]
Gate = npt.NDArray[np.uint8]
Values = npt.NDArray[np.integer[Any]]
Counts = npt.NDArray[np.int64]
Folded = tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]
NONE_FOLDED: Final = (np.empty(0, np.int64), np.empty(0, np.int64))
Keys = npt.NDArray[np.floating[Any]]
"""Sort keys of rows, greatest first; row numbers for the newest need 64 bits, scores 32."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """Filters of captures. `source` is an id; `until` is exclusive."""

    source: int | None = None
    since: datetime | None = None
    until: datetime | None = None
    non_2xx: bool = False
    duplicates: bool = False
    noise: bool = False
    language: str | None = None
    """Empty for pages of unknown language."""
    type: str | None = None
    status: str | None = None
    host: str | None = None
    hosts: tuple[int, ...] | None = None
    conditioned: bool = False
    """True if operators of a query restrict the captures further."""

    @property
    def any(self) -> bool:
        if self.conditioned:
            return True
        named = (self.since, self.until, self.host, self.hosts)
        return self.profiled or any(value is not None for value in named)

    @property
    def shows_more(self) -> bool:
        """True if captures are included that are left out otherwise; these counts are not prepared."""
        return self.non_2xx or self.duplicates or self.noise

    @property
    def profiled(self) -> bool:
        return any(value is not None for value in (self.source, self.language, self.type, self.status))


PUBLIC: Final = 1
_OK: Final = 2
_FIRST: Final = 4
GOOD: Final = PUBLIC | _OK
"""Public, and neither a redirect nor an error."""
SHOWS: Final = 8
"""Not noise."""


def own_gates(columns: Columns, before: Gate | None = None) -> Gate:
    """Return each row's own flags: public, of good status, first of its day, showing its page.

    `before` belongs to columns that these extend: only the additions are computed.
    """
    first = 0 if before is None else len(before)
    flags = columns.flags[first:]
    ok = np.isin(columns.profiles["status"], (0, 2))[columns.profile[first:]]
    found = np.where((flags & NOINDEX) == 0, PUBLIC, 0).astype(np.uint8)
    found |= np.where(ok, _OK, 0).astype(np.uint8)
    found |= np.where((flags & DUPLICATE) == 0, _FIRST, 0).astype(np.uint8)
    found |= np.where((flags & NOISE) == 0, SHOWS, 0).astype(np.uint8)
    return found if before is None else np.concatenate((before, found))


def gates(columns: Columns, hidden: Rows, firsts: Rows, own: Gate | None = None) -> Gate:
    """Return the flags of each row; `own` holds its flags before takedowns, if known.

    `firsts` are duplicates whose canonical capture is under a takedown: each is the next one of its day.
    """
    found = own_gates(columns) if own is None else own.copy()
    found[firsts] |= np.uint8(_FIRST)
    found[hidden] &= ~np.uint8(PUBLIC)
    return found


def captures_of(columns: Columns, gate: Gate, rows: Rows) -> list[int]:
    addresses, spellings = columns.of_group.rows(columns.url_group[columns.url[rows]])
    found, counts = columns.of_address.rows(addresses)
    page = np.repeat(np.repeat(np.arange(len(rows)), spellings), counts)
    counted = (columns.group[found] == columns.group[rows][page]) & ((gate[found] & PUBLIC) != 0)
    captures: list[int] = np.bincount(page[counted], minlength=len(rows)).tolist()
    return captures


def beside(columns: Columns, rows: Rows) -> Rows:
    owned = np.zeros(len(columns), np.bool_)
    owned[rows] = True
    documents = np.zeros(columns.documents.none + 1, np.bool_)
    documents[columns.doc[rows]] = True
    # The last place is for rows whose text is not taken in yet: it is no text that they share.
    documents[-1] = False
    return np.flatnonzero(documents[columns.doc] & ~owned).astype(np.int32)


def passing(columns: Columns, rows: Rows, gate: Gate, filters: Filters) -> Keep:
    # One comparison of bits for four conditions: it is made for every row of every search.
    need = PUBLIC | (0 if filters.non_2xx or filters.status is not None else _OK)
    need |= (0 if filters.duplicates else _FIRST) | (0 if filters.noise else SHOWS)
    keep: Keep = (gate[rows] & np.uint8(need)) == need
    # Rows stand in the order of time: a range of dates is a range of row numbers.
    if filters.since is not None:
        keep &= rows >= np.searchsorted(columns.at, to_micros(filters.since))
    if filters.until is not None:
        keep &= rows < np.searchsorted(columns.at, to_micros(filters.until))
    if filters.profiled:
        keep &= _wanted(columns, filters)[columns.profile[rows]]
    if filters.host is not None:
        keep &= columns.host[rows] == columns.host_place(filters.host)
    return keep


def documents_of(columns: Columns, source: int) -> Keep:
    """Return which documents a source has captured, by place; the last place (no document) is always False."""
    found = np.zeros(columns.documents.none + 1, np.bool_)
    found[columns.doc[(columns.profiles["source"] == source)[columns.profile]]] = True
    found[-1] = False
    return found


def _wanted(columns: Columns, filters: Filters) -> Keep:
    profiles = columns.profiles
    keep = np.ones(len(profiles), np.bool_)
    if filters.source is not None:
        keep &= profiles["source"] == filters.source
    if filters.language is not None:
        keep &= profiles["language"] == _place(columns.languages, filters.language)
    if filters.type is not None:
        keep &= profiles["type"] == next((kind for kind, name in TYPE_NAMES.items() if name == filters.type), -1)
    if filters.status is not None:
        keep &= profiles["status"] == _place(STATUS_NAMES, filters.status)
    return keep


def _place(names: tuple[str, ...], name: str) -> int:
    return names.index(name) if name in names else -1


def newest(columns: Columns, filters: Filters, owned: Owned, *, most: int) -> tuple[Rows, bool]:
    """Return about `most` of the newest rows that pass the filters, ascending, and True if these are all.

    The cost depends on `most`, not on the number of captures: rows are indexed by source, language, type, status
    and host. The caller must still check that they are public.
    """
    by_profile, by_host = owned
    first = 0 if filters.since is None else int(np.searchsorted(columns.at, to_micros(filters.since)))
    end = len(columns) if filters.until is None else int(np.searchsorted(columns.at, to_micros(filters.until)))
    if filters.host is not None:
        place = columns.host_place(filters.host)
        found = by_host.of(place, first, end) if place >= 0 else np.empty(0, np.int32)
        return found[-most:], len(found) <= most
    if filters.hosts is not None:
        parts = [by_host.of(place, first, end) for place in filters.hosts]
    elif not filters.profiled:
        return np.arange(max(first, end - most), max(first, end), dtype=np.int32), end - first <= most
    else:
        parts = [by_profile.of(int(place), first, end) for place in np.flatnonzero(_wanted(columns, filters))]
    total = sum(map(len, parts))
    if total > most:
        begin = _row_before(parts, most, first, end)
        parts = [part[int(np.searchsorted(part, begin)) :] for part in parts]
    rows = np.sort(np.concatenate(parts)) if parts else np.empty(0, np.int32)
    return rows, total <= most


def _row_before(parts: list[Rows], most: int, low: int, high: int) -> int:
    while high - low > 1:
        middle = (low + high) // 2
        count = sum(len(part) - int(np.searchsorted(part, middle)) for part in parts)
        if most <= count <= most + most // 8:
            return middle
        low, high = (middle, high) if count > most else (low, middle)
    return low


Owned = tuple[Incidence, Incidence]
"""Rows by profile, and by host."""


def owned_rows(columns: Columns, before: Owned | None = None) -> Owned:
    if before is not None:
        by_profile, by_host = before
        first = len(by_host)
        return (
            by_profile.grown(columns.profile[first:], first, len(columns.profiles)),
            by_host.grown(columns.host[first:], first, len(columns.hosts)),
        )
    return Incidence(columns.profile, len(columns.profiles)), Incidence(columns.host, len(columns.hosts))


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownRows:
    rows: Rows
    keys: Keys
    best: Rows


def as_pages(columns: Columns, rows: Rows, keys: Keys) -> ShownRows:
    groups = columns.group[rows]
    latest = np.full(columns.group_count, -1, np.int32)
    # The highest row number is the latest capture.
    np.maximum.at(latest, groups, rows)
    top = np.full(columns.group_count, -np.inf, keys.dtype)
    np.maximum.at(top, groups, keys)
    is_best = keys == top[groups]
    best = np.full(columns.group_count, -1, np.int32)
    np.maximum.at(best, groups[is_best], rows[is_best])
    stands = latest[groups] == rows
    chosen = groups[stands]
    return ShownRows(rows=rows[stands], keys=top[chosen], best=best[chosen])


# Keys nearer than this are equal: the order of additions inside the index must not turn two results around.
_EQUAL: Final = 1e-5


def top(columns: Columns, shown: ShownRows, *, count: int, shorter_first: bool) -> npt.NDArray[np.int64]:
    """Return the places of the first `count`: greatest key, shorter URL for pages, newest, highest id."""
    keys, rows = shown.keys, shown.rows
    places = np.arange(len(keys))
    if count < len(keys):
        least = np.partition(keys, len(keys) - count)[len(keys) - count]
        # A little below the last that is shown: keys that count as equal must not be cut apart.
        places = np.flatnonzero(keys >= least - 2 * _EQUAL)
    near = np.round(keys[places].astype(np.float64), 5)
    length = columns.url_length[columns.url[rows[places]]] if shorter_first else np.zeros(len(places), np.int32)
    return places[np.lexsort((-rows[places], length, -near))][:count]


@dataclass(frozen=True, slots=True)
class Count:
    value: str
    count: int
    label: str | None = None


def _largest(counts: Counts, names: Any, most: int = FACET_VALUES) -> list[Count]:
    places = np.flatnonzero(counts)
    # Only those that may be among them are named.
    if len(places) > most:
        least = np.partition(counts[places], len(places) - most)[len(places) - most]
        places = places[counts[places] >= least]
    places = places[: 50 * most]
    pairs = zip(places.tolist(), counts[places].tolist(), strict=True)
    named = [Count(names(place), count) for place, count in pairs]
    return sorted(named, key=lambda found: (-found.count, found.value))[:most]


Histogram = tuple[str, list[tuple[str, int]]]
"""Its unit, and the start and count of each bar."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """The results that can be paged through, and the captures that each of them represents.

    A result counts once for every value that one of its captures has: selecting the value must not hide it.
    """

    rows: Rows
    members: Rows
    """Other captures of pages, and omitted near-duplicates; no other captures if each capture is a result."""
    shown: Rows


def results_of(columns: Columns, shown: ShownRows, found: Rows | None, folded: Folded) -> Results:
    gone, kept = folded
    rows = np.delete(shown.rows, gone)
    if found is None:
        return Results(rows=rows, members=shown.rows[gone], shown=shown.rows[kept])
    of_group = np.empty(columns.group_count, np.int32)
    of_group[columns.group[shown.rows]] = shown.rows
    of_group[columns.group[shown.rows[gone]]] = shown.rows[kept]
    of_found = of_group[columns.group[found]]
    # Many pages have one capture: of those there is nothing more to count.
    others = of_found != found
    return Results(rows=rows, members=found[others], shown=of_found[others])


def spread(
    columns: Columns, results: Results, sources: dict[int, tuple[str, str]]
) -> tuple[dict[str, list[Count]], Histogram]:
    """Return the facets and the histogram."""
    names = ("source", "language", "type", "status")
    tables = [columns.profiles[name] for name in names]
    by_source, languages, types, statuses = _counts(results, lambda rows: columns.profile[rows], *tables)
    [hosts] = _counts(results, lambda rows: columns.host[rows], np.arange(len(columns.hosts)))
    named = [
        Count(code, int(by_source[place]), name)
        for place in np.flatnonzero(by_source).tolist()
        for code, name in [sources.get(place, (str(place), ""))]
    ]
    months, years = _over_time(columns.month, results)
    found = {
        "source": sorted(named, key=lambda one: (-one.count, one.value)),
        "language": _largest(languages, lambda p: columns.languages[p] or "und"),
        "year": [Count(str(1970 + year), int(years[year])) for year in np.flatnonzero(years).tolist()],
        "type": _largest(types, lambda p: TYPE_NAMES[p]),
        "status": _largest(statuses, lambda p: STATUS_NAMES[p]),
        "host": _largest(hosts, columns.host_name),
        **_of_documents(columns, results),
    }
    return found, _histogram(columns, results, months, years)


def _counts(results: Results, code: Callable[[Rows], Values], *tables: Values) -> list[Counts]:
    own = np.bincount(code(results.rows), minlength=len(tables[0]))
    # Captures of a page mostly have the code of the one that is shown: few are left to look at.
    differs = code(results.members) != code(results.shown)
    others, shown = code(results.members[differs]), results.shown[differs]
    counts = [np.bincount(table, own).astype(np.int64) for table in tables]
    if not len(others):
        return counts
    for table, total in zip(tables, counts, strict=True):
        differs = table[others] != table[code(shown)]
        values = _distinct(np.sort(_keys(shown[differs], table[others[differs]]))) & _VALUE
        total += np.bincount(values, minlength=len(total))
    return counts


def _over_time(month_of: Values, results: Results) -> tuple[Counts, Counts]:
    own, months = month_of[results.rows], month_of[results.members]
    differs = months != month_of[results.shown]
    keys = _distinct(np.sort(_keys(results.shown[differs], months[differs])))
    # Sorted already: one sort of all captures serves both.
    years = _distinct(_keys(keys >> 32, (keys & _VALUE) // 12))
    years = years[(years & _VALUE) != month_of[years >> 32] // 12]
    return np.bincount(np.concatenate((own, keys & _VALUE))), np.bincount(np.concatenate((own // 12, years & _VALUE)))


_VALUE: Final = (1 << 32) - 1


def _keys(rows: Values, values: Values) -> Values:
    return rows.astype(np.int64) << 32 | values


def _distinct(keys: Values) -> Values:
    # By hand: `diff` takes twice as long.
    is_first = np.ones(len(keys), np.bool_)
    np.not_equal(keys[1:], keys[:-1], out=is_first[1:])
    return keys[is_first]


def _of_documents(columns: Columns, results: Results) -> dict[str, list[Count]]:
    table = columns.doc_profiles
    # Where no document says anything there is one combination: it is asked of every row of every search.
    if len(table) < 2:
        return {"pageType": [], "author": [], "published": []}
    tables = [table[name] for name in ("page_type", "author", "published")]
    types, authors, years = _counts(results, lambda rows: columns.doc_profile[columns.doc[rows]], *tables)
    types[:1], years[:1], authors[:1] = 0, 0, 0
    # An author is named as on the newest of these captures: another spelling of the name may be on a hidden page.
    rows, newest_of = np.concatenate((results.rows, results.members)), np.zeros(len(authors), np.int32)
    np.maximum.at(newest_of, table["author"][columns.doc_profile[columns.doc[rows]]], rows)
    published = [Count(str(year), int(years[year])) for year in np.flatnonzero(years).tolist()]
    return {
        "pageType": _largest(types, lambda place: PAGE_TYPES[place]),
        "author": _largest(authors, lambda place: columns.authors.at(int(columns.doc[newest_of[place]]))),
        "published": published[-FACET_YEARS:],
    }


def _histogram(columns: Columns, results: Results, months: Counts, years: Counts) -> Histogram:
    filled = np.flatnonzero(months).tolist()
    if 0 < len(filled) <= 3:
        rows = np.concatenate((results.rows, results.members))
        first, last = (int(columns.at[row]) // _DAY_MICROS for row in (rows.min(), rows.max()))
        if last - first <= _DAILY:
            days = np.arange(last - first + 1)
            [counts] = _counts(results, lambda rows: columns.at[rows] // _DAY_MICROS - first, days)
            starts = [(day, _EPOCH + timedelta(days=first + day)) for day in np.flatnonzero(counts).tolist()]
            return "day", [(start.isoformat(), int(counts[day])) for day, start in starts]
    if filled and filled[-1] - filled[0] <= _MONTHLY:
        return "month", list(zip(map(_first_of_month, filled), months[filled].tolist(), strict=True))
    return "year", [(f"{1970 + year:04d}-01-01", int(years[year])) for year in np.flatnonzero(years).tolist()]


@cache
def _first_of_month(month: int) -> str:
    return f"{1970 + month // 12:04d}-{month % 12 + 1:02d}-01"


def moment_of(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=UTC)
