"""Search itself: a request in, a page of results out, the same on both databases.

One request reads the columns in memory and asks SQL only about the hits that it shows; what was withdrawn is gone at
once, because the withdrawals in force are compared with every request. It refuses dates that run backwards.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Final

import numpy as np
from sqlalchemy.orm import Session

from holdfast.clock import Clock, to_micros
from holdfast.db.engine import Database
from holdfast.errors import Invalid, Unavailable
from holdfast.index.queries import unpack_text
from holdfast.search import counting, queries, ranking
from holdfast.search.counting import Count, Filters, Keys, ShownRows, Spread
from holdfast.search.directory import IndexDirectory, IndexElsewhere
from holdfast.search.highlight import Finder, Piece
from holdfast.search.matching import Match, MatchMode, SearchReach, browsed, find
from holdfast.search.outbox import demand_outbox
from holdfast.search.queries import HitRow
from holdfast.search.query import MAX_QUERY_CHARS, Intent, ParsedQuery, understand
from holdfast.search.ranking import PageWorth, Ranking
from holdfast.search.readers import ReaderCache, View
from holdfast.search.result_cache import CANDIDATES, SECONDS, Budget, Gate, ResultCache
from holdfast.sources.queries import SourceNotFound

EXACT_DOCUMENTS: Final = 10_000
FILTERED_DOCUMENTS: Final = (25_000, 100_000)
"""Filters are applied to what was read, so more is read: first this much, the best by text, and if that leaves fewer
captures than `ENOUGH`, more. It bounds what one request can cost (half a microsecond a document)."""
ENOUGH: Final = 1_000
BROWSED_ROWS: Final = 200_000
"""Captures that are read where there are filters and no words: the newest ones, 9 ms of them."""
MAX_PAGE_SIZE: Final = 100


class Sort(StrEnum):
    """How results are ordered."""

    RELEVANCE = "relevance"
    NEWEST = "newest"


class ResultKind(StrEnum):
    """What one result stands for: a capture, or a page with all its captures."""

    SNAPSHOTS = "snapshots"
    PAGES = "pages"


class BadSearch(Invalid):
    """A search that contradicts itself or is out of bounds."""

    code = "bad_search"


class NoIndexHere(Unavailable):
    """The search index of this database is kept in another data directory, perhaps on another machine."""

    code = "no_index_here"


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchRequest:
    """What is asked for. `start` and `end` are days, both included."""

    q: str | None = None
    source: str | None = None
    sort: Sort | None = None
    """Relevance where there are words, newest where there are none."""
    view: ResultKind = ResultKind.SNAPSHOTS
    non_2xx: bool = False
    duplicates: bool = False
    start: date | None = None
    end: date | None = None
    language: str | None = None
    type: str | None = None
    status: str | None = None
    host: str | None = None
    page: int = 1
    page_size: int = 20
    ranking: Ranking = Ranking.V3
    explain: bool = False
    """Whether each hit tells the parts of its score."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """One result, checked against SQL."""

    row: HitRow
    source_code: str
    source_name: str
    title: list[Piece]
    passages: list[list[Piece]]
    captures: int | None
    """Of its page, for results that are pages."""
    parts: dict[str, float] = field(default_factory=dict)
    best_id: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchAnswer:
    """A page of results, and what was counted of all of them."""

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
    spent: int = 0
    """Entries and words of the index that were read beside the documents that are counted: bounded by the budget."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Counted:
    """What a request's rows come to, before a page is cut."""

    shown: ShownRows
    match: Match
    exact: bool
    spread: Spread
    spent: int

    @property
    def size(self) -> int:
        """How many rows it holds."""
        return len(self.match.rows)


class SearchService:
    """Answers searches on one archive; one of these serves a process, from any number of threads."""

    def __init__(self, database: Database, home: Path, clock: Clock) -> None:
        self._database, self._clock = database, clock
        self._readers, self._place = ReaderCache(home, clock, prepare=self._prepare), IndexDirectory(home)
        self._notes: ResultCache[_Counted] | None = None
        self._prepared: ResultCache[_Counted] | None = None
        self.exact_documents, self.filtered_documents = EXACT_DOCUMENTS, FILTERED_DOCUMENTS
        self.browsed_rows = BROWSED_ROWS
        self.candidates, self.seconds = CANDIDATES, SECONDS

    def _budget(self) -> Budget:
        return Budget(self._clock, candidates=self.candidates, seconds=self.seconds)

    def ask(self, request: SearchRequest, *, wait: bool = False) -> SearchAnswer:
        """Return a page of results; past the end an empty one with the same total.

        With `wait` it is answered from the newest index. BadSearch for bounds and dates that make no sense;
        SourceNotFound for a source that there is not: an empty page would say that it has nothing.
        SearchTooLong if its time is used up; Unavailable if the database or the index cannot be read.
        """
        started = self._clock.monotonic()
        _check(request)
        notes = self._notes_on(self._readers.view(wait=wait))
        question = understand(request.q or "")
        with self._database.read() as session:
            self._demand_index(session)
            sources = {row.id: (row.code, row.name) for row in queries.sources(session)}
            if request.source is not None and all(code != request.source for code, _ in sources.values()):
                raise SourceNotFound(request.source)
            counted = self._counted(session, notes, question, request, sources)
            hits = self._hits(session, notes, question, request, counted, sources)
        return SearchAnswer(
            hits=hits,
            total=len(counted.shown.rows),
            exact=counted.exact,
            mode=counted.match.mode,
            breadth=ranking.breadth_of(question).value,
            did_you_mean=counted.match.did_you_mean,
            facets=counted.spread.facets,
            histogram_unit=counted.spread.unit,
            histogram=counted.spread.bars,
            took_ms=(self._clock.monotonic() - started) * 1_000,
            spent=counted.spent,
        )

    def _counted(
        self,
        session: Session,
        notes: ResultCache[_Counted],
        question: ParsedQuery,
        request: SearchRequest,
        sources: dict[int, tuple[str, str]],
    ) -> _Counted:
        """Return what a request comes to, as it was kept, or counted now."""
        mark, gate = notes.gate(session)
        alike = replace(request, page=1, page_size=1, explain=False)
        if question.intent is Intent.BROWSE:
            alike = replace(alike, q=None, sort=None, ranking=Ranking.V3)
        asked = (mark, alike, self._clock.now().date())
        return notes.result(asked, lambda: self._count(notes, question, request, gate, sources))

    def _prepare(self, view: View) -> None:
        """Count all pages of a view that is about to serve: the one question whose cost grows with the archive."""
        notes: ResultCache[_Counted] = ResultCache(view)
        with self._database.read() as session:
            sources = {row.id: (row.code, row.name) for row in queries.sources(session)}
            for kind in ResultKind:
                self._counted(session, notes, understand(""), SearchRequest(view=kind), sources)
        notes.owned()
        self._prepared = notes

    def _demand_index(self, session: Session) -> None:
        try:
            demand_outbox(session, self._place)
        except IndexElsewhere as exc:
            raise NoIndexHere(str(exc)) from exc

    def _notes_on(self, view: View) -> ResultCache[_Counted]:
        notes, prepared = self._notes, self._prepared
        if notes is None or notes.view is not view:
            notes = self._notes = prepared if prepared is not None and prepared.view is view else ResultCache(view)
        return notes

    def _count(
        self,
        notes: ResultCache[_Counted],
        question: ParsedQuery,
        request: SearchRequest,
        gate: Gate,
        sources: dict[int, tuple[str, str]],
    ) -> _Counted:
        columns, filters, budget = notes.view.columns, _filters(request, sources), self._budget()
        if question.intent is Intent.BROWSE and filters.any:
            rows, complete = counting.newest(columns, filters, notes.owned(), most=self.browsed_rows)
            match = browsed(rows, complete=complete)
            keep = counting.passing(columns, match.rows, gate, filters)
        else:
            match, keep = self._found(notes, question, filters, gate, budget)
        match = replace(match, rows=match.rows[keep], text=match.text[keep], titles=match.titles[keep])
        if _sort(request, question) is Sort.NEWEST:
            keys: Keys = match.rows.astype(np.float64)
            if _mixes_statuses(request):
                keys += ranking.quality(columns, match.rows) * np.float64(len(columns))
        else:
            worth = self._worth(notes, question, request)
            keys = ranking.order_keys(match.rows, match.text, match.titles, worth)
        if request.view is ResultKind.PAGES:
            shown = counting.as_pages(columns, match.rows, keys)
        else:
            shown = ShownRows(rows=match.rows, keys=keys, best=match.rows)
        if (
            question.intent is Intent.BROWSE
            and request.view is ResultKind.PAGES
            and not filters.since
            and not filters.until
        ):
            match = replace(match, mode=MatchMode.PAGES)
        exact = match.complete and match.documents <= self.exact_documents
        spread = counting.spread(columns, shown.rows, sources)
        return _Counted(shown=shown, match=match, exact=exact, spread=spread, spent=budget.spent)

    def _found(
        self, notes: ResultCache[_Counted], question: ParsedQuery, filters: Filters, gate: Gate, budget: Budget
    ) -> tuple[Match, counting.Keep]:
        """Return what answers a question, and which of it passes; more is read where filters leave little."""
        allowed = None if filters.source is None else notes.documents_of(filters.source)
        for scan in self.filtered_documents if filters.any else (self.exact_documents,):
            match = find(notes.view, question, SearchReach(scan=scan, gate=gate, budget=budget, allowed=allowed))
            keep = counting.passing(notes.view.columns, match.rows, gate, filters)
            if not match.goes_on or np.count_nonzero(keep) >= ENOUGH:
                break
        return match, keep

    def _worth(self, notes: ResultCache[_Counted], question: ParsedQuery, request: SearchRequest) -> PageWorth:
        weights = ranking.coefficients(request.ranking, ranking.breadth_of(question))
        return notes.standing(weights, to_micros(self._clock.now()))

    def _hits(
        self,
        session: Session,
        notes: ResultCache[_Counted],
        question: ParsedQuery,
        request: SearchRequest,
        counted: _Counted,
        sources: dict[int, tuple[str, str]],
    ) -> list[Hit]:
        columns, shown = notes.view.columns, counted.shown
        skip = (request.page - 1) * request.page_size
        if skip >= len(shown.rows):
            return []
        relevance = _sort(request, question) is Sort.RELEVANCE
        if question.intent is Intent.BROWSE and not _mixes_statuses(request):
            # Rows stand in the order of time already: a page is a piece of their end.
            last = len(shown.rows) - skip
            places = np.arange(max(0, last - request.page_size), last)[::-1]
        else:
            places = counting.top(
                columns,
                shown,
                count=skip + request.page_size,
                shorter_first=relevance and request.view is ResultKind.PAGES,
            )[skip:]
        ids = columns.ids[shown.rows[places]].tolist()
        found = queries.hits(session, ids)
        documents = [row.document_id for row in found.values() if row.document_id is not None]
        texts = queries.packed_texts(session, documents) if question.text else {}
        hits = []
        finders: dict[str | None, Finder] = {}
        for place, snapshot_id in zip(places.tolist(), ids, strict=True):
            row = found.get(snapshot_id)
            if row is None:
                continue
            if row.language not in finders:
                finders[row.language] = Finder(counted.match.shown, counted.match.substrings, row.language)
            hit = _hit(row, finders[row.language], texts.get(row.document_id or 0), sources)
            if request.view is ResultKind.PAGES:
                hidden = notes.hidden_in(int(columns.group[shown.rows[place]]))
                hit = replace(hit, captures=max(1, (row.group_snapshots or 1) - hidden))
            if request.explain:
                best = int(shown.best[place])
                at = int(np.flatnonzero(counted.match.rows == best)[0])
                text, titles = float(counted.match.text[at]), int(counted.match.titles[at])
                told = ranking.parts(columns, best, text, titles, self._worth(notes, question, request))
                hit = replace(hit, best_id=int(columns.ids[best]), parts=told)
            hits.append(hit)
        return hits


def _hit(row: HitRow, finder: Finder, packed: bytes | None, sources: dict[int, tuple[str, str]]) -> Hit:
    code, name = sources.get(row.source_id, ("", ""))
    text = unpack_text(packed) if packed is not None else row.snippet or ""
    return Hit(
        row=row,
        source_code=code,
        source_name=name,
        title=finder.pieces(row.title or ""),
        passages=finder.passages(text),
        captures=None,
    )


def _sort(request: SearchRequest, question: ParsedQuery) -> Sort:
    if question.intent is Intent.BROWSE:
        return Sort.NEWEST
    return request.sort or Sort.RELEVANCE


def _mixes_statuses(request: SearchRequest) -> bool:
    """Return whether redirects and errors are among the results: they come after the rest, in every order."""
    return request.non_2xx and request.status is None


def _filters(request: SearchRequest, sources: dict[int, tuple[str, str]]) -> Filters:
    wanted = None
    if request.source is not None:
        wanted = next(place for place, (code, _) in sources.items() if code == request.source)
    return Filters(
        source=wanted,
        non_2xx=request.non_2xx,
        duplicates=request.duplicates,
        language=request.language,
        type=request.type,
        status=request.status,
        host=request.host,
        since=counting.moment_of(request.start) if request.start else None,
        until=_day_after(request.end) if request.end else None,
    )


def _day_after(day: date) -> datetime | None:
    """Return the start of the next day; None after the last day that there is."""
    return None if day >= date.max else counting.moment_of(day + timedelta(days=1))


def _check(request: SearchRequest) -> None:
    if request.q is not None and len(request.q) > MAX_QUERY_CHARS:
        raise BadSearch(f"a query has at most {MAX_QUERY_CHARS} characters, this one has {len(request.q)}")
    if request.start and request.end and request.start > request.end:
        raise BadSearch(f"`from` ({request.start}) lies after `to` ({request.end}); swap them")
    if request.page < 1 or not 1 <= request.page_size <= MAX_PAGE_SIZE:
        raise BadSearch(f"`page` starts at 1 and `pageSize` goes from 1 to {MAX_PAGE_SIZE}")
