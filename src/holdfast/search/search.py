"""Search itself: a request in, a page of results out, the same on both databases.

One request reads the columns in memory and asks SQL only about the hits that it shows; what was withdrawn is gone at
once, because the withdrawals in force are compared with every request. It refuses dates that run backwards.

The JSON of an answer is made here, too: one shape for `GET /api/search`, `search --json` and search-debug. Text stays
text: `highlights` are pieces of plain text with `hit` true where a word was found, never markup.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

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
from holdfast.search.query import MAX_QUERY_CHARS, Intent, ParsedQuery, parse_query
from holdfast.search.ranking import PageWorth, Ranking
from holdfast.search.readers import Gate, ReaderCache, ResultCache, View
from holdfast.search.substrings import CANDIDATES, SECONDS, Budget
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
    noise: bool = False
    """Also captures that do not show their page."""
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
        self._readers, self._directory = ReaderCache(home, clock, prepare=self._prepare), IndexDirectory(home)
        self._cache: ResultCache[_Counted] | None = None
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
        cache = self._cache_of(self._readers.view(wait=wait))
        question = parse_query(request.q or "")
        with self._database.read() as session:
            # Before anything is counted: the index in this directory may be one that another has overtaken.
            self._demand_index(session)
            sources = {row.id: (row.code, row.name) for row in queries.sources(session)}
            if request.source is not None and all(code != request.source for code, _ in sources.values()):
                raise SourceNotFound(request.source)
            counted = self._counted(session, cache, question, request, sources)
            hits = self._hits(session, cache, question, request, counted, sources)
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
        cache: ResultCache[_Counted],
        question: ParsedQuery,
        request: SearchRequest,
        sources: dict[int, tuple[str, str]],
    ) -> _Counted:
        """Return what a request comes to, as it was kept, or counted now."""
        mark, gate = cache.gate(session)
        # The pages of one result share what was counted; only the cut differs.
        alike = replace(request, page=1, page_size=1, explain=False)
        if question.intent is Intent.BROWSE:
            # Without words there is nothing to rank: all spellings of an empty query are one.
            alike = replace(alike, q=None, sort=None, ranking=Ranking.V3)
        # The date is in the key because recency moves results at midnight.
        asked = (mark, alike, self._clock.now().date())
        return cache.result(asked, lambda: self._count(cache, question, request, gate, sources))

    def _prepare(self, view: View) -> None:
        """Count all pages of a view that is about to serve: the one question whose cost grows with the archive."""
        cache: ResultCache[_Counted] = ResultCache(view)
        with self._database.read() as session:
            sources = {row.id: (row.code, row.name) for row in queries.sources(session)}
            for kind in ResultKind:
                self._counted(session, cache, parse_query(""), SearchRequest(view=kind), sources)
        # A sort of all rows, which the first filtered search would have to wait for otherwise.
        cache.owned()
        self._prepared = cache

    def _demand_index(self, session: Session) -> None:
        try:
            demand_outbox(session, self._directory)
        except IndexElsewhere as exc:
            raise NoIndexHere(str(exc)) from exc

    def _cache_of(self, view: View) -> ResultCache[_Counted]:
        cache, prepared = self._cache, self._prepared
        if cache is None or cache.view is not view:
            cache = self._cache = prepared if prepared is not None and prepared.view is view else ResultCache(view)
        return cache

    def _count(
        self,
        cache: ResultCache[_Counted],
        question: ParsedQuery,
        request: SearchRequest,
        gate: Gate,
        sources: dict[int, tuple[str, str]],
    ) -> _Counted:
        columns, filters, budget = cache.view.columns, _filters(request, sources), self._budget()
        if question.intent is Intent.BROWSE and filters.any:
            rows, complete = counting.newest(columns, filters, cache.owned(), most=self.browsed_rows)
            match = browsed(rows, complete=complete)
            keep = counting.passing(columns, match.rows, gate, filters)
        else:
            match, keep = self._found(cache, question, filters, gate, budget)
        match = replace(match, rows=match.rows[keep], text=match.text[keep], titles=match.titles[keep])
        if _sort(request, question) is Sort.NEWEST:
            # Rows are in the order of time, so a row number is an age; 64 bits, for 32 hold only 16 million exactly.
            keys: Keys = match.rows.astype(np.float64)
            if _mixes_statuses(request):
                keys += ranking.quality(columns, match.rows) * np.float64(len(columns))
        else:
            worth = self._worth(cache, question, request)
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
        self, cache: ResultCache[_Counted], question: ParsedQuery, filters: Filters, gate: Gate, budget: Budget
    ) -> tuple[Match, counting.Keep]:
        """Return what answers a question, and which of it passes; more is read where filters leave little."""
        # Documents that the source never captured are left out before their rows are counted.
        allowed = None if filters.source is None else cache.documents_of(filters.source)
        for scan in self.filtered_documents if filters.any else (self.exact_documents,):
            match = find(cache.view, question, SearchReach(scan=scan, gate=gate, budget=budget, allowed=allowed))
            keep = counting.passing(cache.view.columns, match.rows, gate, filters)
            # Filters come after the words: where they leave little, more documents are read, once.
            if not match.goes_on or np.count_nonzero(keep) >= ENOUGH:
                break
        return match, keep

    def _worth(self, cache: ResultCache[_Counted], question: ParsedQuery, request: SearchRequest) -> PageWorth:
        weights = ranking.coefficients(request.ranking, ranking.breadth_of(question))
        return cache.page_worth(weights, to_micros(self._clock.now()))

    def _hits(
        self,
        session: Session,
        cache: ResultCache[_Counted],
        question: ParsedQuery,
        request: SearchRequest,
        counted: _Counted,
        sources: dict[int, tuple[str, str]],
    ) -> list[Hit]:
        columns, shown = cache.view.columns, counted.shown
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
        # SQL has the last word: a hit that was withdrawn since the gate was set is left out here.
        found = queries.hits(session, ids)
        documents = [row.document_id for row in found.values() if row.document_id is not None]
        # Without words nothing is marked, and the snippet is enough.
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
                hidden = cache.hidden_in(int(columns.group[shown.rows[place]]))
                # The count of a group includes what is withdrawn; how much there is of it must not show.
                hit = replace(hit, captures=max(1, (row.group_snapshots or 1) - hidden))
            if request.explain:
                best = int(shown.best[place])
                at = int(np.flatnonzero(counted.match.rows == best)[0])
                text, titles = float(counted.match.text[at]), int(counted.match.titles[at])
                parts = ranking.parts(columns, best, text, titles, self._worth(cache, question, request))
                hit = replace(hit, best_id=int(columns.ids[best]), parts=parts)
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
        # The caller has refused a source that there is not.
        wanted = next(place for place, (code, _) in sources.items() if code == request.source)
    return Filters(
        source=wanted,
        non_2xx=request.non_2xx,
        duplicates=request.duplicates,
        noise=request.noise,
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


Browse = Callable[[HitRow], str | None]
"""Gives the address at which a capture is replayed; the edges know it."""


def answer_object(answer: SearchAnswer, request: SearchRequest, browse: Browse) -> dict[str, Any]:
    """Return a page of results as JSON, with facets, histogram and what was probably meant."""
    return {
        "results": [hit_object(hit, request, browse) for hit in answer.hits],
        "total": answer.total,
        "totalIsExact": answer.exact,
        "page": request.page,
        "pageSize": request.page_size,
        "mode": answer.mode.value,
        "didYouMean": answer.did_you_mean,
        "facets": {
            name: [
                {"value": count.value, "label": count.label or count.value, "count": count.count} for count in counts
            ]
            for name, counts in answer.facets.items()
        },
        "histogram": {
            "unit": answer.histogram_unit,
            "buckets": [{"start": start, "count": count} for start, count in answer.histogram],
        },
        "tookMs": round(answer.took_ms, 1),
    }


def hit_object(hit: Hit, request: SearchRequest, browse: Browse) -> dict[str, Any]:
    """Return one result; of a page the address is its group's, without the query."""
    row = hit.row
    as_page = request.view is ResultKind.PAGES
    found = {
        "id": row.id,
        "title": row.title,
        "sourceCode": hit.source_code,
        "sourceName": hit.source_name,
        "language": row.language,
        "captureDate": row.captured_at.date().isoformat(),
        "captureTimestamp": row.captured_at.isoformat().replace("+00:00", "Z"),
        "jobId": row.execution_id,
        "originalUrl": (row.group_url or row.url) if as_page else row.url,
        "snippet": row.snippet,
        "highlights": {"title": _pieces(hit.title), "text": [_pieces(passage) for passage in hit.passages]},
        "mimeType": row.media_type,
        "statusCode": row.status,
        "rawSnapshotUrl": f"/api/snapshots/raw/{row.id}",
        "browseUrl": browse(row),
        "captureBackend": row.backend,
        "captureFidelity": row.fidelity,
        "pageSnapshotsCount": hit.captures,
        "noise": row.noise,
    }
    return found


def debug_object(answer: SearchAnswer, request: SearchRequest, browse: Browse, *, dialect: str) -> dict[str, Any]:
    """Return a page of results as JSON, with the parts of every score."""
    results = []
    for hit in answer.hits:
        score = sum(hit.parts.values())
        results.append(
            {
                "id": hit.row.id,
                "originalUrl": hit.row.url,
                "title": hit.row.title,
                "statusCode": hit.row.status,
                **dict.fromkeys(PARTS, 0.0),
                **{name: round(part, 5) for name, part in hit.parts.items()},
                "totalScore": round(score, 5),
                "groupScore": round(score, 5),
                "bestSnapshotId": hit.best_id,
            }
        )
    whole = answer_object(answer, request, browse)
    return {
        "dialect": dialect,
        "mode": answer.mode.value,
        "rankingVersion": request.ranking.value,
        "queryMode": answer.breadth,
        **{name: whole[name] for name in ("total", "totalIsExact", "page", "pageSize", "didYouMean", "tookMs")},
        "results": results,
    }


PARTS = (
    "rankText",
    "titleBoost",
    "archivedPenalty",
    "queryPenalty",
    "trackingPenalty",
    "depthPenalty",
    "authorityBoost",
    "hubnessBoost",
    "pagerankBoost",
    "recencyBoost",
)
"""Every part that a score may have; one that a ranking does not use is 0."""


def _pieces(pieces: Sequence[Piece]) -> list[dict[str, Any]]:
    return [{"text": piece.text, "hit": piece.hit} for piece in pieces]
