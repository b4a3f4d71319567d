"""Search: turns a request into a page of results, the same on both databases.

One request reads the columns in memory and queries SQL only for the hits that it shows; a takedown has effect
immediately, because every request checks the current takedowns. It rejects reversed dates.

The JSON of a response is made here, too: one shape for `GET /api/search`, `search --json` and search-debug.
Text stays text: `highlights` are pieces of plain text with `hit` true for matching words, never markup.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import field, replace
from datetime import date, datetime, timedelta
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np

from holdfast.clock import Clock
from holdfast.db.engine import Database
from holdfast.errors import Invalid, Unavailable
from holdfast.index.queries import searched_texts
from holdfast.search import counting, ranking, similar
from holdfast.search.columns import Columns
from holdfast.search.counting import NONE_FOLDED, Count, Filters, Gate, Histogram, Keys, ShownRows
from holdfast.search.directory import IndexDirectory, IndexElsewhere
from holdfast.search.engine import IndexReader
from holdfast.search.filters import FilteredRows, operators_alone, question_of, with_operators
from holdfast.search.fingerprints import Places
from holdfast.search.highlight import Finder, Piece
from holdfast.search.matching import NAMED_ADDRESSES, Match, MatchMode, SearchReach, browsed, find, rarity_of
from holdfast.search.near_duplicates import (
    COMPARED,
    Collapsed,
    SimilarResults,
    collapse,
    near_duplicates_of,
    page_of,
)
from holdfast.search.operators import KINDS
from holdfast.search.outbox import demand_outbox, is_own
from holdfast.search.passages import MAX_PASSAGES, SearchedText
from holdfast.search.queries import HitRow, ResultRows
from holdfast.search.query import MAX_QUERY_CHARS, Intent, ParsedQuery, parse_query
from holdfast.search.readers import ReaderCache, ResultCache, View
from holdfast.search.substrings import CANDIDATES, CHECKS, SECONDS, Budget
from holdfast.search.terms_over_time import ROWS as VOLUME_ROWS
from holdfast.search.terms_over_time import TERM_CANDIDATES, TermsAnswer, TermsRequest, count_terms
from holdfast.sources.queries import SourceNotFound
from holdfast.values import dataclass
from holdfast.withdrawals.viewers import EVERYTHING, PUBLIC, seen_by
from holdfast.withdrawals.visibility import Mark

EXACT_DOCUMENTS: Final = 10_000
FILTERED_DOCUMENTS: Final = (25_000, 100_000)
"""Filters apply to documents that were read, so more are read: first the smaller number, the best by text, and if
that leaves fewer captures than `ENOUGH`, the larger. This limits the cost of a request (half a microsecond a
document).
"""
ENOUGH: Final = 1_000
BROWSED_ROWS: Final = 200_000
"""Limit on captures read with filters and without words: the newest ones, which takes 9 ms."""
MAX_PAGE_SIZE: Final = 100
MAX_SNAPSHOT_ID: Final = 2**63 - 1
MAX_HOST_CHARS: Final = 260
UNKNOWN_LANGUAGE: Final = "und"
_LANGUAGE: Final = re.compile("[a-z]{2,3}")


class Sort(StrEnum):
    RELEVANCE = "relevance"
    NEWEST = "newest"


class ResultKind(StrEnum):
    SNAPSHOTS = "snapshots"
    PAGES = "pages"


class BadSearch(Invalid):
    """A search with contradictory or out-of-range parameters."""

    code = "bad_search"


class NoIndexHere(Unavailable):
    """The search index of this database belongs to another data directory, perhaps on another machine."""

    code = "no_index_here"


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchRequest:
    """A search. `start` and `end` are days, both inclusive."""

    q: str | None = None
    source: str | None = None
    sort: Sort | None = None
    """By default relevance with words, newest without."""
    view: ResultKind = ResultKind.SNAPSHOTS
    non_2xx: bool = False
    duplicates: bool = False
    noise: bool = False
    start: date | None = None
    end: date | None = None
    language: str | None = None
    type: str | None = None
    status: str | None = None
    host: str | None = None
    page: int = 1
    page_size: int = 20
    passages: int = 1
    """Limit per hit; the best one comes first."""
    explain: bool = False
    like: int | None = None
    """A capture that results should resemble, instead of words."""
    similar: SimilarResults | None = None
    """By default pages by relevance are collapsed; captures, results by date and of a URL are all shown."""
    similar_to: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    row: HitRow
    source_code: str
    source_name: str
    title: list[Piece]
    passages: list[list[Piece]]
    captures: int | None
    parts: dict[str, float] = field(default_factory=dict)
    best_id: int | None = None
    similar: int | None = None
    """Number of its near-duplicates among the results; None if not collapsed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchAnswer:
    hits: list[Hit]
    total: int
    exact: bool
    mode: MatchMode
    breadth: str
    did_you_mean: str | None
    facets: dict[str, list[Count]]
    histogram_unit: str
    histogram: list[tuple[str, int]]
    took_ms: float
    collapsed: int = 0
    """Number of results hidden as near-duplicates of a better one; the total excludes them."""
    spent: int = 0
    """Index entries and words read in addition to the counted documents; limited by the budget."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Counted:
    question: ParsedQuery
    mark: Mark
    shown: ShownRows
    match: Match
    facets: dict[str, list[Count]]
    histogram: Histogram
    spent: int
    collapsed: Collapsed | None = None

    @property
    def size(self) -> int:
        return len(self.match.rows)


_Seen = tuple[Mark, Gate, IndexReader | None]
"""What a viewer may see: the state of takedowns, the flags of each row, and the reader without hidden link texts."""


class SearchService:
    """Answers searches on one archive; one instance serves a process. Thread-safe."""

    def __init__(self, database: Database, home: Path, clock: Clock) -> None:
        self._database, self._clock = database, clock
        self._readers, self._directory = ReaderCache(home, clock, prepare=self._prepare), IndexDirectory(home)
        self._cache: ResultCache[_Counted] | None = None
        self._prepared: ResultCache[_Counted] | None = None
        self._lock = threading.Lock()
        self.exact_documents, self.filtered_documents = EXACT_DOCUMENTS, FILTERED_DOCUMENTS
        self.browsed_rows, self.volume_rows = BROWSED_ROWS, VOLUME_ROWS
        self.named_addresses = NAMED_ADDRESSES
        self.candidates, self.checks, self.seconds = CANDIDATES, CHECKS, SECONDS

    def _budget(self, more: int = 0) -> Budget:
        return Budget(self._clock, candidates=self.candidates + more, checks=self.checks, seconds=self.seconds)

    def generation(self) -> int:
        return self._readers.view().manifest.sequence

    def ask(self, request: SearchRequest, *, wait: bool = False) -> SearchAnswer:
        """Return a page of results; past the end an empty one with the same total.

        With `wait` it uses the newest index. Raise BadSearch for invalid limits and dates; SourceNotFound for an
        unknown source, because an empty page would imply that it has no captures. Raise SearchTooLong if the time is
        used up; Unavailable if the database or the index is unreadable.
        """
        started = self._clock.monotonic()
        _check(request)
        question = question_of(request.q, like=request.like)
        with self._opened(request.source, wait=wait) as (rows, cache, sources):
            if question.like is not None:
                reach = SearchReach(scan=0, gate=self._gate(rows, cache)[1], budget=self._budget())
                with self._database.read() as session:
                    words = similar.significant_terms(session, cache.view, question.like, reach)
                question = replace(question, text=" ".join(words.words), intent=Intent.PLAIN, words=words)
            counted = self._counted(rows, cache, question, request, sources)
            hits = self._hits(rows, cache, request, counted, sources, until=started + self.seconds)
        left_out = counted.collapsed.left_out if counted.collapsed else 0
        return SearchAnswer(
            hits=hits,
            total=len(counted.shown.rows) - left_out,
            exact=counted.match.complete,
            mode=counted.match.mode,
            breadth=ranking.breadth_of(question),
            did_you_mean=with_operators(counted.match.did_you_mean, question),
            facets={**counted.facets, "source": _named(counted.facets["source"], sources)},
            histogram_unit=counted.histogram[0],
            histogram=counted.histogram[1],
            took_ms=(self._clock.monotonic() - started) * 1_000,
            collapsed=left_out,
            spent=counted.spent,
        )

    @contextmanager
    def _opened(
        self, source: str | None, *, wait: bool
    ) -> Iterator[tuple[ResultRows, ResultCache[_Counted], dict[int, tuple[str, str]]]]:
        """Yield the query rows, the cache of the newest view, and the sources; raise SourceNotFound or NoIndexHere."""
        cache = self._cache_of(self._readers.view(wait=wait))
        with self._rows() as rows:
            # Before anything is counted: the index in this directory may be one that another has overtaken.
            self._demand_index(rows)
            sources = rows.sources()
            if source is not None and all(code != source for code, _ in sources.values()):
                raise SourceNotFound(source)
            yield rows, cache, sources

    @contextmanager
    def _rows(self) -> Iterator[ResultRows]:
        with self._database.raw_reads.read() as (tx, dialect):
            yield ResultRows(tx, dialect)

    def _gate(self, rows: ResultRows, cache: ResultCache[_Counted]) -> tuple[Mark, Gate]:
        # Checked for every search: a capture withdrawn a moment ago must not be in the next answer.
        mark = rows.mark()
        known = cache.known_gate(mark)
        if known is not None:
            return mark, known
        with self._database.read() as session:
            return cache.gate(session)

    def terms(self, request: TermsRequest, *, wait: bool = False) -> TermsAnswer:
        """Return how often terms were captured over time; raise BadTerms for invalid terms, and the errors of
        `ask`.
        """
        asked_for = SearchRequest(q=request.operators, source=request.source, start=request.start, end=request.end)
        _check(asked_for)
        question = operators_alone(request.operators)
        with self._opened(request.source, wait=wait) as (rows, cache, sources):
            mark, gate = self._gate(rows, cache)
            # Of its own: each of the terms may read as many documents.
            budget = self._budget(TERM_CANDIDATES)
            asked = FilteredRows(cache, question, gate, budget, _filters(asked_for, sources))
            return count_terms(asked, request, mark, most=self.volume_rows)

    def _counted(
        self,
        rows: ResultRows,
        cache: ResultCache[_Counted],
        question: ParsedQuery,
        request: SearchRequest,
        sources: dict[int, tuple[str, str]],
    ) -> _Counted:
        mark, gate = self._gate(rows, cache)
        # The pages of one result share the counts; only the slice differs.
        alike = replace(request, page=1, page_size=1, passages=1, explain=False)
        if question.intent is Intent.BROWSE and not question.conditions:
            # Without words there is nothing to rank: all spellings of an empty query are one.
            shown_similar = request.similar if request.similar is SimilarResults.COLLAPSE else None
            alike = replace(alike, q=None, sort=None, similar=shown_similar)
        known = cache.known_reader(mark)
        if known is None or known[1]:
            with self._database.read() as session:
                known = cache.named_reader(session, mark)
        reader, takedowns = known
        work = partial(self._count, cache, question, request, (mark, gate, reader), sources)
        return cache.result((mark, takedowns, alike), work)

    def _prepare(self, view: View) -> None:
        """Precompute the counts of all pages of a new view: the one query whose cost grows with the archive."""
        cache: ResultCache[_Counted] = ResultCache(view, self._cache)
        with self._rows() as rows:
            # Where no source is for members, both are one, and it is counted once.
            for viewer in (PUBLIC, EVERYTHING):
                with seen_by(viewer):
                    sources = rows.sources()
                    for kind in ResultKind:
                        self._counted(rows, cache, parse_query(""), SearchRequest(view=kind), sources)
        # A sort of all rows, which the first filtered search would have to wait for otherwise.
        cache.owned()
        # Where `site:` is asked for at all.
        if self._cache is not None and self._cache.knows_hosts:
            cache.hosts()
        self._prepared = cache

    def _demand_index(self, rows: ResultRows) -> None:
        if is_own(rows.outbox_owner(), self._directory):
            return
        try:
            with self._database.read() as session:
                demand_outbox(session, self._directory)
        except IndexElsewhere as exc:
            raise NoIndexHere(str(exc)) from exc

    def _cache_of(self, view: View) -> ResultCache[_Counted]:
        with self._lock:
            cache, prepared = self._cache, self._prepared
            if cache is not None and cache.view is view:
                return cache
            found = prepared if prepared is not None and prepared.view is view else ResultCache(view, cache)
            # A request that took its view before the index moved on must not put back an older cache.
            if self._readers.is_newest(view):
                self._cache = found
            return found

    def _count(
        self,
        cache: ResultCache[_Counted],
        question: ParsedQuery,
        request: SearchRequest,
        seen: _Seen,
        sources: dict[int, tuple[str, str]],
    ) -> _Counted:
        (mark, gate, reader), columns, budget = seen, cache.view.columns, self._budget()
        asked = FilteredRows(cache, question, gate, budget, _filters(request, sources))
        filters = asked.filters
        wanted = None if request.similar_to is None else near_duplicates_of(columns, request.similar_to, gate)
        if question.intent is Intent.BROWSE and wanted is not None:
            rows, complete = wanted.rows(columns, most=self.browsed_rows)
            match = browsed(rows, complete=complete)
            keep = asked.passing(match.rows)
        elif question.intent is Intent.BROWSE and (filters.any or filters.shows_more):
            match = asked.browsed(most=self.browsed_rows)
            keep = asked.passing(match.rows)
        else:
            # Documents that the source never captured are left out before their rows are counted.
            allowed = None if filters.source is None else cache.documents_of(filters.source)
            reach = SearchReach(scan=0, gate=gate, budget=budget, named=self.named_addresses, allowed=allowed)
            match, keep = self._found(asked, reach, reader)
        if wanted is not None:
            keep &= wanted.among(columns, match.rows, as_pages=request.view is ResultKind.PAGES)
        complete = match.complete and asked.complete
        match = replace(match, rows=match.rows[keep], text=match.text[keep], complete=complete)
        if _sort(request, question) is Sort.NEWEST:
            # Rows are in the order of time, so a row number is an age; 64 bits, for 32 hold only 16 million exactly.
            keys: Keys = match.rows.astype(np.float64)
            if _mixes_statuses(request):
                keys += ranking.quality(columns, match.rows) * np.float64(len(columns))
        else:
            keys = cache.static_score()[match.rows] + match.text
        if request.view is ResultKind.PAGES:
            shown = counting.as_pages(columns, match.rows, keys)
        else:
            shown = ShownRows(rows=match.rows, keys=keys, best=match.rows)
        is_everything = question.intent is Intent.BROWSE and not (question.conditions or filters.since or filters.until)
        if is_everything and request.view is ResultKind.PAGES:
            match = replace(match, mode=MatchMode.PAGES)
        collapsed = None
        if _collapses(request, question, match.mode):
            collapsed = collapse(columns, shown.rows, _ranked(columns, shown, request, question, 0, COMPARED))
        found = match.rows if request.view is ResultKind.PAGES else None
        results = counting.results_of(columns, shown, found, collapsed.folded if collapsed else NONE_FOLDED)
        facets, histogram = counting.spread(columns, results, sources)
        return _Counted(
            question=question,
            mark=mark,
            shown=shown,
            match=match,
            facets=facets,
            histogram=histogram,
            spent=budget.spent,
            collapsed=collapsed,
        )

    def _found(
        self, asked: FilteredRows[_Counted], reach: SearchReach, reader: IndexReader | None
    ) -> tuple[Match, counting.Keep]:
        """Return the matches of a query, and which pass; reads more if the filters leave few."""
        view, question = replace(asked.cache.view, reader=reader), asked.question
        for scan in self.filtered_documents if asked.filters.any else (self.exact_documents,):
            if question.like is not None:
                match = similar.alike(view, question.words, question.like, replace(reach, scan=scan))
            else:
                match = find(view, question, replace(reach, scan=scan))
            keep = asked.passing(match.rows)
            # Filters come after the words: where they leave little, more documents are read, once.
            if not match.goes_on or np.count_nonzero(keep) >= ENOUGH:
                break
        return match, keep

    def _hits(
        self,
        rows: ResultRows,
        cache: ResultCache[_Counted],
        request: SearchRequest,
        counted: _Counted,
        sources: dict[int, tuple[str, str]],
        *,
        until: float,
    ) -> list[Hit]:
        columns, shown, question = cache.view.columns, counted.shown, counted.question
        places, similar_counts = page_of(
            partial(_ranked, columns, shown, request, question),
            counted.collapsed,
            first=(request.page - 1) * request.page_size,
            count=request.page_size,
        )
        if not len(places):
            return []
        ids = columns.ids[shown.rows[places]].tolist()
        # SQL has the last word: a hit that was withdrawn since the gate was set is left out here.
        found = rows.hits(ids)
        documents = [row.document_id for row in found.values() if row.document_id is not None]
        # Without words nothing is marked, and the snippet is enough.
        texts = rows.texts(list(dict.fromkeys(documents))) if question.text else {}
        hits, match = [], counted.match
        asked = match.did_you_mean or question.text
        rarity = rarity_of(cache.view, match.shown)
        languages = {row.language for row in found.values()}
        finders = {one: Finder(match.shown, match.substrings, one, asked=asked, rarity=rarity) for one in languages}
        known = cache.known_gate(counted.mark)
        gate = self._gate(rows, cache)[1] if known is None else known
        as_pages = request.view is ResultKind.PAGES
        captures = counting.captures_of(columns, gate, shown.rows[places]) if as_pages else [None] * len(places)
        for place, snapshot_id, count, of_page in zip(places.tolist(), ids, similar_counts, captures, strict=True):
            row = found.get(snapshot_id)
            if row is None:
                continue
            source = sources.get(row.source_id, ("", ""))
            score, best_id = _explained(columns, counted, place) if request.explain else ({}, None)
            shown_text = None if self._clock.monotonic() >= until else texts.get(row.document_id or 0)
            finder = finders[row.language]
            hits.append(
                Hit(
                    row=row,
                    source_code=source[0],
                    source_name=source[1],
                    title=finder.pieces(row.title or ""),
                    passages=_passages(row, finder, shown_text, most=request.passages),
                    captures=of_page,
                    parts=score,
                    best_id=best_id,
                    similar=count,
                )
            )
        return hits


def _explained(columns: Columns, counted: _Counted, place: int) -> tuple[dict[str, float], int]:
    best = int(counted.shown.best[place])
    at = int(np.flatnonzero(counted.match.rows == best)[0])
    return ranking.parts(columns, best, float(counted.match.text[at])), int(columns.ids[best])


def _named(facet: list[Count], sources: dict[int, tuple[str, str]]) -> list[Count]:
    names = dict(sources.values())
    return [replace(one, label=names.get(one.value, one.label)) for one in facet]


def _ranked(
    columns: Columns, shown: ShownRows, request: SearchRequest, question: ParsedQuery, first: int, end: int
) -> Places:
    if question.intent is Intent.BROWSE and not _mixes_statuses(request):
        # Rows stand in the order of time already: a page is a piece of their end.
        return np.arange(max(0, len(shown.rows) - end), max(0, len(shown.rows) - first))[::-1]
    as_pages = request.view is ResultKind.PAGES
    shorter_first = as_pages and _sort(request, question) is Sort.RELEVANCE
    return counting.top(columns, shown, count=end, shorter_first=shorter_first)[first:]


def _collapses(request: SearchRequest, question: ParsedQuery, mode: MatchMode) -> bool:
    """Return True if near-duplicates are collapsed: as requested, by default for pages ranked by relevance."""
    if request.similar_to is not None or request.similar is not None:
        return request.similar is SimilarResults.COLLAPSE
    ranked = _sort(request, question) is Sort.RELEVANCE and mode is not MatchMode.URL
    # In the list of captures each capture counts, so that totals, facets and rows agree.
    return ranked and request.view is ResultKind.PAGES and not request.duplicates


def _passages(row: HitRow, finder: Finder, shown: tuple[bytes, str | None] | None, *, most: int) -> list[list[Piece]]:
    if shown is not None:
        packed, headings = shown
        for raw in searched_texts(packed):
            source = SearchedText(raw.decode(), row.title or "", headings or "")
            if found := finder.passages(source, raw, most=most):
                return found
    return [finder.start_of(row.snippet)] if row.snippet else []


def _sort(request: SearchRequest, question: ParsedQuery) -> Sort:
    if question.intent is Intent.BROWSE:
        return Sort.NEWEST
    return request.sort or Sort.RELEVANCE


def _mixes_statuses(request: SearchRequest) -> bool:
    """Return True if the results include redirects and errors, which sort last in every order."""
    return request.non_2xx and request.status is None


def _filters(request: SearchRequest, sources: dict[int, tuple[str, str]]) -> Filters:
    wanted = None
    if request.source is not None:
        # The caller has refused a source that there is not.
        wanted = next(place for place, (code, _) in sources.items() if code == request.source)
    return Filters(
        source=wanted,
        non_2xx=request.non_2xx,
        duplicates=request.duplicates,
        noise=request.noise,
        # As the facet names it.
        language="" if request.language == UNKNOWN_LANGUAGE else request.language,
        type=request.type,
        status=request.status,
        host=request.host,
        since=counting.moment_of(request.start) if request.start else None,
        until=_day_after(request.end) if request.end else None,
    )


def _day_after(day: date) -> datetime | None:
    return None if day >= date.max else counting.moment_of(day + timedelta(days=1))


def _check(request: SearchRequest) -> None:
    if request.q is not None and len(request.q) > MAX_QUERY_CHARS:
        raise BadSearch(f"a query has at most {MAX_QUERY_CHARS} characters, this one has {len(request.q)}")
    if request.language is not None and not _LANGUAGE.fullmatch(request.language):
        raise BadSearch(
            f"`language` has two or three small letters, as in en, or is {UNKNOWN_LANGUAGE} where it is not known"
        )
    if request.type is not None and request.type not in KINDS:
        raise BadSearch(f"`type` is one of {', '.join(KINDS)}; to filter by purpose, such as article, use type: in `q`")
    if request.status is not None and request.status not in counting.STATUS_NAMES:
        raise BadSearch(f"`status` is one of {', '.join(counting.STATUS_NAMES)}")
    if request.host is not None and not 1 <= len(request.host) <= MAX_HOST_CHARS:
        raise BadSearch(f"`host` has 1 to {MAX_HOST_CHARS} characters")
    if request.start and request.end and request.start > request.end:
        raise BadSearch(f"`from` ({request.start}) lies after `to` ({request.end}); swap them")
    if request.page < 1 or not 1 <= request.page_size <= MAX_PAGE_SIZE:
        raise BadSearch(f"`page` starts at 1 and `pageSize` goes from 1 to {MAX_PAGE_SIZE}")
    if not 1 <= request.passages <= MAX_PASSAGES:
        raise BadSearch(f"`passages` goes from 1 to {MAX_PASSAGES}")
    if request.like is not None and not 1 <= request.like <= MAX_SNAPSHOT_ID:
        raise BadSearch(f"`like` is the id of a capture, from 1 to {MAX_SNAPSHOT_ID}")
    if request.similar_to is not None:
        if not 1 <= request.similar_to <= MAX_SNAPSHOT_ID:
            raise BadSearch(f"`similarTo` is the id of a capture, from 1 to {MAX_SNAPSHOT_ID}")
        if request.similar is SimilarResults.COLLAPSE:
            raise BadSearch("`similarTo` lists near-duplicates and `similar=collapse` leaves them out; leave out one")
