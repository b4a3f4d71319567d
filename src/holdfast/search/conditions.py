"""Selects the captures that match the operators of a query, from columns and index, for one request.

Each condition is evaluated only on the candidate rows, with two results: surely true, and surely false. If an
index can only be read in part, a row may be neither; it is not shown then, and the total is not exact.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import date, datetime
from functools import reduce
from typing import Final

import numpy as np
import numpy.typing as npt

from holdfast.clock import to_micros
from holdfast.search.analysis import languages_of
from holdfast.search.columns import Columns
from holdfast.search.counting import GOOD, SHOWS, Filters, Keep
from holdfast.search.engine import IndexReader, MatchedKeys
from holdfast.search.operators import (
    PAGE_TYPES,
    AllOf,
    AnyOf,
    ByAuthor,
    CapturedIn,
    ChangedSince,
    Condition,
    InLanguage,
    InTitle,
    InUrl,
    NearWords,
    OfType,
    OnSite,
    PublishedIn,
    Without,
)
from holdfast.search.places import Rows
from holdfast.search.query import Field, Term
from holdfast.search.segments import PAGE_TYPE_SHIFT, TYPE_NAMES
from holdfast.search.substrings import Budget, Substrings, looked_at

DOCUMENTS: Final = 100_000
"""Limit on the documents that one condition on words reads: about 50 ms."""
# Hosts of one site whose rows are gathered to begin with; a site of more is looked for among the newest captures.
_HOSTS: Final = 2_000

_EPOCH: Final = date(1970, 1, 1)


class HostNames:
    def __init__(self, columns: Columns) -> None:
        named = (_name_and_port(columns.host_name(place)) for place in range(len(columns.hosts)))
        entries = sorted((_backwards(name), port, place) for place, (name, port) in enumerate(named))
        self._keys = [key for key, _, _ in entries]
        self._ports = [port for _, port, _ in entries]
        self._places = np.array([place for _, _, place in entries], np.int32)

    def below(self, host: str) -> Rows:
        """Return the places of a host and all its subdomains, on one port if it names one."""
        name, port = _name_and_port(host)
        key = _backwards(name)
        # `/` follows `.` in ASCII, and no name contains it.
        spans = (
            (bisect_left(self._keys, key), bisect_right(self._keys, key)),
            (bisect_left(self._keys, f"{key}."), bisect_left(self._keys, f"{key}/")),
        )
        places = [at for first, end in spans for at in range(first, end) if not port or self._ports[at] == port]
        return self._places[places]


def _name_and_port(host: str) -> tuple[str, str]:
    name, colon, port = host.rpartition(":")
    return (name, port) if colon and port.isdecimal() else (host, "")


def _backwards(name: str) -> str:
    return ".".join(reversed(name.split(".")))


Verdict = tuple[Keep, Keep]
"""Rows that certainly match, and rows that certainly do not; all others are undecided."""


def _certain(holds: Keep) -> Verdict:
    return holds, ~holds


def narrowed(filters: Filters, conditions: Iterable[Condition]) -> Filters:
    """Return filters that match all results of the conditions and few others, to limit the rows read."""
    for one in conditions:
        match one:
            case CapturedIn(since=since, until=until) | ChangedSince(span=CapturedIn(since=since, until=until)):
                starts = [moment for moment in (filters.since, since) if moment is not None]
                ends = [moment for moment in (filters.until, until) if moment is not None]
                filters = replace(filters, since=max(starts, default=None), until=min(ends, default=None))
            case OfType(name) if filters.type is None and name not in PAGE_TYPES:
                filters = replace(filters, type=name)
            case InLanguage(code) if filters.language is None:
                filters = replace(filters, language=code)
            case _:
                pass
    return filters


class Conditions:
    """Evaluates the conditions of one query on rows; used by one thread.

    `newest_first` means that results are sorted by time with the last rows shown first: if there are too many rows,
    these are examined.
    """

    def __init__(
        self,
        reader: IndexReader,
        columns: Columns,
        gate: npt.NDArray[np.uint8],
        budget: Budget,
        *,
        noise: bool = False,
        newest_first: bool = False,
    ) -> None:
        self._reader, self._columns, self._gate, self._budget = reader, columns, gate, budget
        self._good, self._newest_first = GOOD if noise else GOOD | SHOWS, newest_first
        self._substrings = Substrings(reader, columns, budget)
        self._sites: dict[OnSite, Rows] = {}
        self._documents: dict[Condition, tuple[Rows, bool]] = {}
        self.complete = True
        """False if some of the rows that were judged last could not be: they were left out."""

    def know_hosts(self, hosts: Callable[[], HostNames], conditions: Iterable[Condition]) -> None:
        """Look up the hosts that conditions name; `hosts` is called only if they name any."""
        for one in _simple(conditions):
            if isinstance(one, OnSite):
                self._sites[one] = hosts().below(one.host)

    def keep(self, conditions: Sequence[Condition], rows: Rows) -> Keep:
        """Return which of these rows match; `complete` then says whether all rows could be evaluated."""
        holds, fails = self._judge(AllOf(tuple(conditions)), rows)
        self.complete = bool(np.all(holds | fails))
        return holds

    def beginning(self, conditions: Sequence[Condition]) -> Rows | None:
        """Return a superset of the matching rows, in order of time; None if no condition is selective."""
        found: list[Rows] = []
        for one in conditions:
            if isinstance(one, InUrl):
                places, whole = self._substrings.places(Term(one.text, Field.URL))
                if whole:
                    found.append(self._columns.of_address.rows(places)[0])
            elif isinstance(one, ByAuthor | InTitle | NearWords):
                places, whole = self._documents_of(one)
                if whole:
                    found.append(self._columns.of_document.rows(places)[0])
        return np.sort(min(found, key=len)) if found else None

    def hosts(self, conditions: Sequence[Condition]) -> tuple[int, ...] | None:
        named = [self._sites[one] for one in conditions if isinstance(one, OnSite)]
        few = min(named, key=len) if named else None
        return None if few is None or len(few) > _HOSTS else tuple(few.tolist())

    def _judge(self, condition: Condition, rows: Rows) -> Verdict:
        match condition:
            case AllOf(parts):
                return reduce(_both, (self._judge(part, rows) for part in parts), _certain(np.ones(len(rows), bool)))
            case AnyOf(parts):
                return _swapped(self._judge(AllOf(tuple(Without(part) for part in parts)), rows))
            case Without(part):
                return _swapped(self._judge(part, rows))
            case OnSite():
                return self._on_site(condition, rows)
            case CapturedIn(since=since, until=until):
                at = self._columns.at
                # Rows stand in the order of time: a span is a range of row numbers.
                first = 0 if since is None else int(np.searchsorted(at, to_micros(since)))
                end = len(at) if until is None else int(np.searchsorted(at, to_micros(until)))
                return _certain((rows >= first) & (rows < end))
            case PublishedIn(since=since, until=until):
                day = self._columns.doc_published[self._columns.doc[rows]]
                first, end = _day(since), _day(until) if until is not None else 1 << 30
                return _certain((day >= first) & (day < end))
            case OfType(name) if name in PAGE_TYPES:
                types = self._columns.doc_flags[self._columns.doc[rows]] >> np.uint8(PAGE_TYPE_SHIFT)
                return _certain(types == PAGE_TYPES.index(name))
            case OfType(name):
                kind = next(kind for kind, known in TYPE_NAMES.items() if known == name)
                return _certain((self._columns.profiles["type"] == kind)[self._columns.profile[rows]])
            case InLanguage(code):
                names = self._columns.languages
                place = names.index(code) if code in names else -1
                return _certain((self._columns.profiles["language"] == place)[self._columns.profile[rows]])
            case InUrl(text):
                return self._substrings.judged(Term(text, Field.URL), rows, newest_first=self._newest_first)
            case ChangedSince(yes=yes, span=span):
                found = _certain(self._changed(rows, yes=yes))
                return found if span is None else _both(found, self._judge(span, rows))
            case ByAuthor() | InTitle() | NearWords():
                places, whole = self._documents_of(condition)
                marks = np.zeros(self._columns.documents.none + 1, np.bool_)
                marks[places] = True
                holds = marks[self._columns.doc[rows]]
                return _certain(holds) if whole else (holds, np.zeros(len(rows), np.bool_))
        raise TypeError(f"{condition} is no condition on rows")

    def _documents_of(self, condition: ByAuthor | InTitle | NearWords) -> tuple[Rows, bool]:
        known = self._documents.get(condition)
        if known is None:
            limit = self._budget.grant(DOCUMENTS)
            found = self._asked(condition, limit)
            self._budget.spend(len(found.keys))
            known = self._columns.documents.known(found.keys), limit > 0 and found.count <= len(found.keys)
            self._documents[condition] = known
        return known

    def _asked(self, condition: ByAuthor | InTitle | NearWords, limit: int) -> MatchedKeys:
        match condition:
            case ByAuthor(words):
                return self._reader.authors(words, limit=limit)
            case InTitle(words):
                return self._reader.in_titles(words, limit=limit)
            case NearWords(words=words, distance=distance):
                return self._reader.near(words, languages_of(self._columns.languages), distance=distance, limit=limit)

    def _on_site(self, site: OnSite, rows: Rows) -> Verdict:
        columns = self._columns
        marks = np.zeros(len(columns.hosts) + 1, np.bool_)
        marks[self._sites[site]] = True
        on_host: Keep = marks[columns.host[rows]]
        if not site.path:
            return _certain(on_host)
        # Addresses of the host are looked at one by one, as many as there are looks left for.
        there = np.flatnonzero(on_host)
        there = there[looked_at(len(there), self._budget, newest_first=self._newest_first)]
        addresses, of_row = np.unique(columns.url[rows[there]], return_inverse=True)
        self._budget.check()
        self._budget.checks_left -= len(addresses)
        inside = np.array([_is_inside(columns.urls.at(place), site.path) for place in addresses.tolist()], np.bool_)
        holds, fails = np.zeros(len(rows), np.bool_), ~on_host
        if len(there):
            holds[there], fails[there] = inside[of_row], ~inside[of_row]
        return holds, fails

    def _changed(self, rows: Rows, *, yes: bool) -> Keep:
        """Return which rows have another document than the good capture before them, or the same one.

        A first capture is neither. Hidden captures have no influence: a capture under a takedown is skipped, and so is
        noise, unless it is shown.
        """
        columns = self._columns
        asked = np.zeros(columns.addresses.none + 1, np.bool_)
        asked[columns.url[rows]] = True
        # Address after address, each in the order of time.
        history = columns.of_address.rows(np.flatnonzero(asked).astype(np.int32))[0]
        good = (self._gate[history] & np.uint8(self._good)) == self._good
        history = history[good & (columns.doc[history] != columns.documents.none)]
        url, source = columns.url[history], columns.profiles["source"][columns.profile[history]]
        if len(source) and source.min() != source.max():
            order = np.lexsort((history, source, url))
            history, source, url = history[order], source[order], url[order]
        follows = (url[1:] == url[:-1]) & (source[1:] == source[:-1])
        differs = columns.doc[history[1:]] != columns.doc[history[:-1]]
        found = np.zeros(len(columns), np.bool_)
        found[history[1:][follows & (differs == yes)]] = True
        return found[rows]


def _simple(conditions: Iterable[Condition]) -> Iterable[Condition]:
    for one in conditions:
        match one:
            case AllOf(parts) | AnyOf(parts):
                yield from _simple(parts)
            case Without(part):
                yield from _simple([part])
            case _:
                yield one


def _day(moment: datetime) -> int:
    return (moment.date() - _EPOCH).days


def _both(a: Verdict, b: Verdict) -> Verdict:
    return a[0] & b[0], a[1] | b[1]


def _swapped(found: Verdict) -> Verdict:
    return found[1], found[0]


def _is_inside(url: str, path: str) -> bool:
    """Return True if a URL, folded, is a directory or below it, by whole path segments."""
    # By places and not by parts: up to 50,000 addresses are looked at for one search.
    at = url.find("/", url.find("://") + 3)
    if at < 0 or not url.startswith(path, at) or "?" in url[:at]:
        return False
    end = at + len(path)
    return path.endswith("/") or end == len(url) or url[end] in "/?#"
