"""Search itself: a request in, a page of results out, the same on both databases.

One request reads the columns in memory and asks SQL only about the hits that it shows; what was withdrawn is gone at
once, because the withdrawals in force are compared with every request. It refuses dates that run backwards.

The JSON of an answer is made here, too: one shape for `GET /api/search`, `search --json` and search-debug. Text stays
text: `highlights` are pieces of plain text with `hit` true where a word was found, never markup.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
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
from holdfast.search.confined import ConfinedRows, meant, operators_alone, question_of
from holdfast.search.counting import NONE_FOLDED, Count, Filters, Gate, Keys, ShownRows, Spread
from holdfast.search.directory import IndexDirectory, IndexElsewhere
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
from holdfast.search.passages import MAX_PASSAGES
from holdfast.search.queries import HitRow, ResultRows, ShownText
from holdfast.search.query import MAX_QUERY_CHARS, Intent, ParsedQuery, parse_query
from holdfast.search.readers import ReaderCache, ResultCache, View
from holdfast.search.substrings import CANDIDATES, CHECKS, SECONDS, Budget
from holdfast.search.terms_over_time import ROWS as VOLUME_ROWS
from holdfast.search.terms_over_time import TERM_CANDIDATES, TermsAnswer, TermsRequest, count_terms
from holdfast.sources.queries import SourceNotFound
from holdfast.withdrawals.viewers import EVERYTHING, PUBLIC, seen_by
from holdfast.withdrawals.visibility import Mark

EXACT_DOCUMENTS: Final = 10_000
FILTERED_DOCUMENTS: Final = (25_000, 100_000)
"""Filters are applied to what was read, so more is read: first this much, the best by text, and if that leaves fewer
captures than `ENOUGH`, more. It bounds what one request can cost (half a microsecond a document)."""
ENOUGH: Final = 1_000
BROWSED_ROWS: Final = 200_000
"""Captures that are read where there are filters and no words: the newest ones, 9 ms of them."""
MAX_PAGE_SIZE: Final = 100
MAX_SNAPSHOT_ID: Final = 2**63 - 1
MAX_HOST_CHARS: Final = 260
UNKNOWN_LANGUAGE: Final = "und"
_LANGUAGE: Final = re.compile("[a-z]{2,3}")


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
    passages: int = 1
    """Of each hit, at most; the best one comes first."""
    explain: bool = False
    """Whether each hit tells the parts of its score."""
    like: int | None = None
    """A capture that results are to be like, instead of words."""
    similar: SimilarResults | None = None
    """Unless it is said: collapsed by relevance; shown by date, for an address, and where equal captures are wanted."""
    similar_to: int | None = None
    """Only near-duplicates of this capture."""


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
    similar: int | None = None
    """Its near-duplicates among the results; None where they are not collapsed."""


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
    collapsed: int = 0
    """Results left out because they are near-duplicates of a better one; the total does not count them."""
    spent: int = 0
    """Entries and words of the index that were read beside the documents that are counted: bounded by the budget."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Counted:
    """What a request's rows come to, before a page is cut."""

    mark: Mark
    """What could be seen when it was counted."""
    shown: ShownRows
    match: Match
    spread: Spread
    spent: int
    collapsed: Collapsed | None = None

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
        self.browsed_rows, self.volume_rows = BROWSED_ROWS, VOLUME_ROWS
        self.named_addresses = NAMED_ADDRESSES
        self.candidates, self.checks, self.seconds = CANDIDATES, CHECKS, SECONDS

    def _budget(self, more: int = 0) -> Budget:
        return Budget(self._clock, candidates=self.candidates + more, checks=self.checks, seconds=self.seconds)

    def generation(self) -> int:
        """Return the number of the index that searches are answered from now; a newer one has a larger number."""
        return self._readers.view().manifest.sequence

    def ask(self, request: SearchRequest, *, wait: bool = False) -> SearchAnswer:
        """Return a page of results; past the end an empty one with the same total.

        With `wait` it is answered from the newest index. BadSearch for bounds and dates that make no sense;
        SourceNotFound for a source that there is not: an empty page would say that it has nothing.
        SearchTooLong if its time is used up; Unavailable if the database or the index cannot be read.
        """
        started = self._clock.monotonic()
        _check(request)
        question = question_of(request.q, like=request.like)
        with self._opened(request.source, wait=wait) as (rows, cache, sources):
            if question.like is not None:
                gate = self._gate(rows, cache)[1]
                with self._database.read() as session:
                    words = similar.telling_words(session, cache.view, question.like, gate)
                question = replace(question, text=" ".join(words.words), intent=Intent.PLAIN, words=words)
            counted = self._counted(rows, cache, question, request, sources)
            hits = self._hits(rows, cache, question, request, counted, sources)
        left_out = counted.collapsed.left_out if counted.collapsed else 0
        return SearchAnswer(
            hits=hits,
            total=len(counted.shown.rows) - left_out,
            exact=counted.match.complete,
            mode=counted.match.mode,
            breadth=ranking.breadth_of(question),
            did_you_mean=meant(counted.match.did_you_mean, question),
            facets={**counted.spread.facets, "source": _named(counted.spread.facets["source"], sources)},
            histogram_unit=counted.spread.unit,
            histogram=counted.spread.bars,
            took_ms=(self._clock.monotonic() - started) * 1_000,
            collapsed=left_out,
            spent=counted.spent,
        )

    @contextmanager
    def _opened(
        self, source: str | None, *, wait: bool
    ) -> Iterator[tuple[ResultRows, ResultCache[_Counted], dict[int, tuple[str, str]]]]:
        """Give what asks the database, what the newest view has, and the sources; SourceNotFound, NoIndexHere."""
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
        """Return what each row may pass for the viewer, with a mark that changes when that does."""
        # Asked for every search: what was withdrawn a moment ago must not be in the next answer.
        mark = rows.mark()
        known = cache.known_gate(mark)
        if known is not None:
            return mark, known
        with self._database.read() as session:
            return cache.gate(session)

    def terms(self, request: TermsRequest, *, wait: bool = False) -> TermsAnswer:
        """Return how often terms were captured over time; BadSearch for what cannot be asked so, and as `ask` else."""
        asked_for = SearchRequest(q=request.operators, source=request.source, start=request.start, end=request.end)
        _check(asked_for)
        question = operators_alone(request.operators)
        with self._opened(request.source, wait=wait) as (rows, cache, sources):
            mark, gate = self._gate(rows, cache)
            # Of its own: each of the terms may read as many documents.
            budget = self._budget(TERM_CANDIDATES)
            asked = ConfinedRows(cache, question, gate, budget, _filters(asked_for, sources))
            return count_terms(asked, request, mark, most=self.volume_rows)

    def _counted(
        self,
        rows: ResultRows,
        cache: ResultCache[_Counted],
        question: ParsedQuery,
        request: SearchRequest,
        sources: dict[int, tuple[str, str]],
    ) -> _Counted:
        """Return what a request comes to, as it was kept, or counted now."""
        mark, gate = self._gate(rows, cache)
        # The pages of one result share what was counted; only the cut differs.
        alike = replace(request, page=1, page_size=1, passages=1, explain=False)
        if question.intent is Intent.BROWSE and not question.conditions:
            # Without words there is nothing to rank: all spellings of an empty query are one.
            shown_similar = request.similar if request.similar is SimilarResults.COLLAPSE else None
            alike = replace(alike, q=None, sort=None, similar=shown_similar)
        return cache.result((mark, alike), lambda: self._count(cache, question, request, (mark, gate), sources))

    def _prepare(self, view: View) -> None:
        """Count all pages of a view that is about to serve: the one question whose cost grows with the archive."""
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
        cache, prepared = self._cache, self._prepared
        if cache is None or cache.view is not view:
            cache = self._cache = (
                prepared if prepared is not None and prepared.view is view else ResultCache(view, cache)
            )
        return cache

    def _count(
        self,
        cache: ResultCache[_Counted],
        question: ParsedQuery,
        request: SearchRequest,
        marked: tuple[Mark, Gate],
        sources: dict[int, tuple[str, str]],
    ) -> _Counted:
        (mark, gate), columns, budget = marked, cache.view.columns, self._budget()
        asked = ConfinedRows(cache, question, gate, budget, _filters(request, sources))
        filters = asked.filters
        wanted = None if request.similar_to is None else near_duplicates_of(columns, request.similar_to, gate)
        if question.intent is Intent.BROWSE and wanted is not None:
            rows, complete = wanted.rows(columns, most=self.browsed_rows)
            match = browsed(rows, complete=complete)
            keep = asked.passing(match.rows)
        elif question.intent is Intent.BROWSE and filters.any:
            match = asked.browsed(most=self.browsed_rows)
            keep = asked.passing(match.rows)
        else:
            # Documents that the source never captured are left out before their rows are counted.
            allowed = None if filters.source is None else cache.documents_of(filters.source)
            reach = SearchReach(scan=0, gate=gate, budget=budget, named=self.named_addresses, allowed=allowed)
            match, keep = self._found(asked, reach)
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
            keys = cache.page_worth()[match.rows] + match.text
        if request.view is ResultKind.PAGES:
            shown = counting.as_pages(columns, match.rows, keys)
        else:
            shown = ShownRows(rows=match.rows, keys=keys, best=match.rows)
        if (
            question.intent is Intent.BROWSE
            and request.view is ResultKind.PAGES
            and not question.conditions
            and not filters.since
            and not filters.until
        ):
            match = replace(match, mode=MatchMode.PAGES)
        collapsed = None
        if _collapses(request, question, match.mode):
            collapsed = collapse(columns, shown.rows, _ranked(columns, shown, request, question, 0, COMPARED))
        found = match.rows if request.view is ResultKind.PAGES else None
        results = counting.results_of(columns, shown, found, collapsed.folded if collapsed else NONE_FOLDED)
        spread = counting.spread(columns, results, sources)
        return _Counted(mark=mark, shown=shown, match=match, spread=spread, spent=budget.spent, collapsed=collapsed)

    def _found(self, asked: ConfinedRows[_Counted], reach: SearchReach) -> tuple[Match, counting.Keep]:
        """Return what answers a question, and which of it passes; more is read where filters leave little."""
        view, question = asked.cache.view, asked.question
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
        question: ParsedQuery,
        request: SearchRequest,
        counted: _Counted,
        sources: dict[int, tuple[str, str]],
    ) -> list[Hit]:
        columns, shown = cache.view.columns, counted.shown
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
        hits = []
        finders: dict[str | None, Finder] = {}
        asked = counted.match.did_you_mean or question.text
        rarity = rarity_of(cache.view, counted.match.shown)
        known = cache.known_gate(counted.mark)
        gate = self._gate(rows, cache)[1] if known is None else known
        for place, snapshot_id, count in zip(places.tolist(), ids, similar_counts, strict=True):
            row = found.get(snapshot_id)
            if row is None:
                continue
            finder = finders.get(row.language)
            if finder is None:
                shown_words, parts = counted.match.shown, counted.match.substrings
                finder = Finder(shown_words, parts, row.language, asked=asked, rarity=rarity)
                finders[row.language] = finder
            source = sources.get(row.source_id, ("", ""))
            captures, best_id, score = None, None, {}
            if request.view is ResultKind.PAGES:
                captures = counting.captures_of(columns, gate, int(shown.rows[place]))
            if request.explain:
                best = int(shown.best[place])
                at = int(np.flatnonzero(counted.match.rows == best)[0])
                score = ranking.parts(columns, best, float(counted.match.text[at]))
                best_id = int(columns.ids[best])
            title, passages = _highlighted(row, finder, texts.get(row.document_id or 0), most=request.passages)
            hits.append(
                Hit(
                    row=row,
                    source_code=source[0],
                    source_name=source[1],
                    title=title,
                    passages=passages,
                    captures=captures,
                    parts=score,
                    best_id=best_id,
                    similar=count,
                )
            )
        return hits


def _named(facet: list[Count], sources: dict[int, tuple[str, str]]) -> list[Count]:
    """Return the facet of sources with the names that they have now: what was counted is kept, and they are renamed."""
    names = dict(sources.values())
    return [one if names.get(one.value, one.label) == one.label else _renamed(one, names) for one in facet]


def _renamed(one: Count, names: dict[str, str]) -> Count:
    return replace(one, label=names[one.value])


def _ranked(
    columns: Columns, shown: ShownRows, request: SearchRequest, question: ParsedQuery, first: int, end: int
) -> Places:
    """Return the places of results in their order, from one rank to below another."""
    if question.intent is Intent.BROWSE and not _mixes_statuses(request):
        # Rows stand in the order of time already: a page is a piece of their end.
        return np.arange(max(0, len(shown.rows) - end), len(shown.rows) - first)[::-1]
    as_pages = request.view is ResultKind.PAGES
    shorter_first = as_pages and _sort(request, question) is Sort.RELEVANCE
    return counting.top(columns, shown, count=end, shorter_first=shorter_first)[first:]


def _collapses(request: SearchRequest, question: ParsedQuery, mode: MatchMode) -> bool:
    """Whether near-duplicates are left out: as asked, or else where results are ranked by relevance."""
    if request.similar_to is not None or request.similar is not None:
        return request.similar is SimilarResults.COLLAPSE
    ranked = _sort(request, question) is Sort.RELEVANCE and mode is not MatchMode.URL
    # Equal captures that were asked for are not to be left out again.
    return ranked and not request.duplicates


def _highlighted(
    row: HitRow, finder: Finder, shown: ShownText | None, *, most: int
) -> tuple[list[Piece], list[list[Piece]]]:
    """Return the title and the passages of a result; its stored snippet where no word stands in its text."""
    title, headings = row.title or "", (shown and shown.headings) or ""
    texts = () if shown is None else searched_texts(shown.packed)
    found = (finder.passages(text, title=title, headings=headings, most=most) for text in texts)
    passages = next(filter(None, found), [])
    if not passages and row.snippet:
        passages = [finder.start_of(row.snippet)]
    return finder.pieces(title), passages


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
        # As the facet names it.
        language="" if request.language == UNKNOWN_LANGUAGE else request.language,
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
    if request.language is not None and not _LANGUAGE.fullmatch(request.language):
        raise BadSearch(
            f"`language` has two or three small letters, as in en, or is {UNKNOWN_LANGUAGE} where it is not known"
        )
    if request.type is not None and request.type not in KINDS:
        raise BadSearch(f"`type` is one of {', '.join(KINDS)}; what a page is for is asked by type: in the query")
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
