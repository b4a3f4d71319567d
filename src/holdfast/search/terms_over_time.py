"""Counts captures with a term in each year or month, absolute and as a share of all captures of that time.

Captures count like results: without takedowns, redirects and errors, and duplicates of one day once. A term
with more documents than the limit gives counts that are too low, and its `exact` is False.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from datetime import date
from enum import StrEnum
from io import StringIO
from typing import Final

import numpy as np

from holdfast.errors import Invalid
from holdfast.outside_text import guarded
from holdfast.parse.text import tidy, words_of
from holdfast.search.engine import IndexReader
from holdfast.search.filters import FilteredRows
from holdfast.search.places import Rows
from holdfast.search.query import MAX_QUERY_CHARS, QUOTES, plain
from holdfast.search.query_terms import query_terms
from holdfast.search.readers import Counts, Kept
from holdfast.search.records import TermCount, TermOverTime, TermsOverTime, TermVolume
from holdfast.values import dataclass
from holdfast.withdrawals.visibility import Mark

MAX_TERMS: Final = 8
MAX_TERM_WORDS: Final = 8
DOCUMENTS: Final = 50_000
"""Limit on the documents read for one term: 25 ms."""
ROWS: Final = 500_000
"""Limit on the captures examined for the volume if operators restrict it: a third of a second."""
TERM_CANDIDATES: Final = MAX_TERMS * DOCUMENTS
"""Limit on the documents read for all terms of a request."""


class TimeUnit(StrEnum):
    YEAR = "year"
    MONTH = "month"


class BadTerms(Invalid):
    """Terms that cannot be counted: none, too many, or without a word in them."""

    code = "bad_terms"


@dataclass(frozen=True, slots=True, kw_only=True)
class TermsRequest:
    terms: tuple[str, ...]
    unit: TimeUnit = TimeUnit.YEAR
    source: str | None = None
    operators: str | None = None
    start: date | None = None
    end: date | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TermCounts:
    term: str
    captures: list[int]
    documents: list[int]
    exact: bool
    """False if documents were not read, so that counts are too low, or captures were not examined, so that the volume
    is.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class TermsAnswer:
    """Terms over time; all lists are aligned with `starts`."""

    unit: TimeUnit
    starts: list[str]
    volume: list[int]
    """All captures of each unit that pass the filters."""
    terms: list[TermCounts]


def split_terms(text: str) -> tuple[str, ...]:
    """Return comma-separated terms, each once, as typed; a term of several words is a phrase.

    Quotes around a term are removed unless they have an effect: around accents they require these accents.
    """
    found = (_unquoted(tidy(part)) for part in text.translate(QUOTES).split(","))
    return tuple(dict.fromkeys(term for term in found if term.strip('" ')))


def _unquoted(term: str) -> str:
    inner = term[1:-1]
    is_quoted = term[:1] == term[-1:] == '"' and '"' not in inner
    return inner.strip() if is_quoted and not _required(term) else term


def _required(term: str) -> tuple[str, ...]:
    return () if term.isascii() else query_terms(plain(term), term).required


def count_terms(asked: FilteredRows[Kept], request: TermsRequest, mark: Mark, *, most: int = ROWS) -> TermsAnswer:
    """Return the counts of each term; raise BadTerms for invalid ones. `mark` identifies the current takedowns.

    `most` limits the captures examined for the volume if operators restrict it; the newest ones are used.
    """
    terms = [(tidy(term.translate(QUOTES)), words_of(term)) for term in request.terms]
    if not 1 <= len(terms) <= MAX_TERMS or not all(1 <= len(words) <= MAX_TERM_WORDS for _, words in terms):
        raise BadTerms(
            f"name 1 to {MAX_TERMS} terms, parted by commas, each of 1 to {MAX_TERM_WORDS} words: flu,whooping cough"
        )
    if sum(map(len, request.terms)) > MAX_QUERY_CHARS:
        raise BadTerms(f"terms have at most {MAX_QUERY_CHARS} characters together; ask for some of them at a time")
    key = (mark, asked.filters, asked.question.conditions)
    volume, is_whole = asked.cache.volume(key, lambda: _volume(asked, most))
    filled = np.flatnonzero(volume)
    first, end = (int(filled[0]), int(filled[-1]) + 1) if len(filled) else (0, 0)
    reader = asked.cache.view.reader
    units = _Units(request.unit, first, end)
    counted = [] if reader is None else [_counted(asked, reader, term, units, is_whole=is_whole) for term in terms]
    return TermsAnswer(unit=request.unit, starts=units.starts, volume=units.summed(volume), terms=counted)


class _Units:
    def __init__(self, unit: TimeUnit, first: int, end: int) -> None:
        months = np.arange(first, end)
        self._first, self._end = first, end
        self._of = months // 12 if unit is TimeUnit.YEAR else months
        self._base = int(self._of[0]) if len(months) else 0
        units = range(self._base, int(self._of[-1]) + 1) if len(months) else range(0)
        self._count = len(units)
        by_year = unit is TimeUnit.YEAR
        self.starts = [f"{1970 + n:04d}" if by_year else f"{1970 + n // 12:04d}-{n % 12 + 1:02d}" for n in units]

    def summed(self, by_month: Counts) -> list[int]:
        if not self._count:
            return []
        within = np.zeros(self._end - self._first, np.int64)
        known = by_month[self._first : self._end]
        within[: len(known)] = known
        sums = np.bincount(self._of - self._base, weights=within, minlength=self._count)
        return [int(count) for count in sums.tolist()]


def _counted(
    asked: FilteredRows[Kept], reader: IndexReader, term: tuple[str, list[str]], units: _Units, *, is_whole: bool
) -> TermCounts:
    (typed, words), columns, budget = term, asked.cache.view.columns, asked.budget
    limit = budget.grant(DOCUMENTS)
    found = reader.with_phrase(words, limit=limit, accented=_required(typed))
    budget.spend(len(found.keys))
    # In the order of time, so that the first row of a document is its first capture.
    rows = np.sort(columns.of_document.rows(columns.documents.known(found.keys))[0])
    rows = rows[asked.passing(rows)]
    is_complete = asked.complete and limit > 0 and found.count <= len(found.keys)
    firsts = rows[np.unique(columns.doc[rows], return_index=True)[1]] if len(rows) else rows
    return TermCounts(
        term=typed,
        captures=units.summed(_by_month(asked, rows)),
        documents=units.summed(_by_month(asked, firsts)),
        exact=is_complete and is_whole,
    )


def _volume(asked: FilteredRows[Kept], most: int) -> tuple[Counts, bool]:
    # Filters alone are a few passes over columns; operators may cost a hundred times as much for each row.
    if not asked.question.conditions:
        most = max(1, len(asked.cache.view.columns))
    found = asked.browsed(most=most)
    rows = found.rows[asked.passing(found.rows)]
    return _by_month(asked, rows), found.complete and asked.complete


def _by_month(asked: FilteredRows[Kept], rows: Rows) -> Counts:
    return np.bincount(asked.cache.view.columns.month[rows], minlength=1).astype(np.int64)


def _share(count: int, volume: int) -> float:
    return round(count / volume, 8) if volume else 0.0


def terms_record(answer: TermsAnswer) -> TermsOverTime:
    volume = zip(answer.starts, answer.volume, strict=True)
    return TermsOverTime(
        unit=answer.unit.value,
        volume=[TermVolume(start=start, captures=captures) for start, captures in volume],
        terms=[_term_record(answer, one) for one in answer.terms],
    )


def _term_record(answer: TermsAnswer, one: TermCounts) -> TermOverTime:
    counts = [
        TermCount(start=start, captures=captures, new_documents=documents, share=_share(captures, volume))
        for start, volume, captures, documents in _lines(answer, one)
    ]
    return TermOverTime(
        term=one.term,
        captures=sum(one.captures),
        new_documents=sum(one.documents),
        is_exact=one.exact,
        counts=counts,
    )


CSV_COLUMNS: Final = ("term", "start", "captures", "new_documents", "volume", "share", "is_exact")


def terms_csv(answer: TermsAnswer) -> str:
    """Return the counts as CSV, one line per term and unit; no spreadsheet executes a term as a formula."""
    text = StringIO()
    table = csv.writer(text)
    table.writerow(CSV_COLUMNS)
    for one in answer.terms:
        for start, volume, captures, documents in _lines(answer, one):
            share = f"{_share(captures, volume):.8f}"
            table.writerow([guarded(one.term), start, captures, documents, volume, share, str(one.exact).lower()])
    return text.getvalue()


def _lines(answer: TermsAnswer, one: TermCounts) -> Sequence[tuple[str, int, int, int]]:
    return list(zip(answer.starts, answer.volume, one.captures, one.documents, strict=True))
