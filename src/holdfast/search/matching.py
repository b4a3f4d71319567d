"""From a question to the rows that answer it, with the text's share of their score and how it was found.

Stages for plain text, each only if the one before found nothing: words of the body; the same without small words such
as `where` and `dans`; each word as a substring of title, snippet or URL; the nearest words of the vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

import numpy as np
import numpy.typing as npt

from holdfast.parse.folding import fold
from holdfast.search.budget import Budget
from holdfast.search.columns import Columns, Floats, Rows
from holdfast.search.counting import PUBLIC
from holdfast.search.engine import Reader
from holdfast.search.query import NO_WORDS, Both, Intent, Node, Question, Term, Words, wanted_terms
from holdfast.search.ranking import TITLE_ALL, TITLE_ANY, TITLE_EXACT, TITLE_PHRASE
from holdfast.search.shelf import View
from holdfast.search.substrings import Substrings
from holdfast.search.typos import corrected


class Mode(StrEnum):
    """How results were found; the label of the metrics (1.6 of the facts)."""

    NEWEST = "newest"
    FTS = "relevance_fts"
    FALLBACK = "relevance_fallback"
    FUZZY = "relevance_fuzzy"
    BOOLEAN = "boolean"
    URL = "url"
    PAGES = "pages_fastpath"


_EXACT_TITLES: Final = 2_000
"""Titles that are compared letter by letter at most; they all hold every word of the query already."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """Rows in no particular order. `text` is 0..1; `titles` are the bits of `ranking`, both aligned with the rows."""

    rows: Rows
    text: Floats
    titles: npt.NDArray[np.uint8]
    mode: Mode
    documents: int
    """How many documents match, counted in full even where not all were read."""
    complete: bool = True
    """False if there were more documents than are read."""
    goes_on: bool = False
    """Whether a further reach would read more of them."""
    shown: Words = NO_WORDS
    """What to highlight."""
    substrings: tuple[str, ...] = ()
    did_you_mean: str | None = None


def browsed(rows: Rows, *, complete: bool) -> Match:
    """Return what answers a request without words: these rows, all alike."""
    return _plain_rows(rows, Mode.NEWEST, complete=complete)


def _plain_rows(rows: Rows, mode: Mode, **more: object) -> Match:
    match = Match(rows=rows, text=np.zeros(len(rows), np.float32), titles=np.zeros(len(rows), np.uint8), mode=mode,
                  documents=0)  # fmt: skip
    return replace(match, **more)  # type: ignore[arg-type]


_WITNESSES: Final = 1_000
"""Documents that are looked at to see whether a word stands in anything that may be shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """How far a query looks, and what it may see: what no reader may see decides nothing, not even how it looks on."""

    scan: int
    """Documents that are read at most for plain words, the best by text."""
    gate: npt.NDArray[np.uint8]
    """By row: what it may pass."""
    budget: Budget
    allowed: npt.NDArray[np.bool_] | None = None
    """By document: those of one source; None for all."""

    def shows(self, rows: Rows) -> npt.NDArray[np.bool_]:
        """Return which of these rows may be seen at all."""
        shown: npt.NDArray[np.bool_] = (self.gate[rows] & np.uint8(PUBLIC)) != 0
        return shown


def find(view: View, question: Question, reach: Reach) -> Match:
    """Return what answers a question; SearchTooLong if that takes too long."""
    columns = view.columns
    if question.intent is Intent.BROWSE or view.reader is None:
        count = len(columns) if question.intent is Intent.BROWSE else 0
        return _plain_rows(np.arange(count, dtype=np.int32), Mode.NEWEST)
    if question.intent is Intent.URL:
        rows = columns.rows_of_groups(np.array(question.groups, np.int64))
        rows = rows[reach.shows(rows)]
        if len(rows) or question.certain:
            return _plain_rows(rows, Mode.URL)
    if question.intent is Intent.BOOLEAN and question.tree is not None:
        match = _boolean(view.reader, columns, question.tree, Mode.BOOLEAN, reach)
        if len(match.rows) or question.certain:
            return match
    return _plain(view.reader, columns, question, reach)


def _plain(reader: Reader, columns: Columns, question: Question, reach: Reach) -> Match:
    words = question.words
    if words.words or words.phrases:
        match = _worded(reader, columns, words, reach)
        if match is not None:
            return match
        words = words.telling()
        if words != question.words:
            match = _worded(reader, columns, words, reach)
            if match is not None:
                return replace(match, mode=Mode.FALLBACK)
    parts = _boolean(reader, columns, _substrings_of(question), Mode.FALLBACK, reach)
    if len(parts.rows) or not words.words:
        return parts
    near = corrected(reader, words.words, reach.budget, lambda word: _is_shown(reader, columns, word, reach))
    if near is None:
        return parts
    meant = replace(words, words=near)
    match = _worded(reader, columns, meant, reach)
    if match is None:
        return parts
    return replace(match, mode=Mode.FUZZY, did_you_mean=_spoken(question, words, meant))


def _is_shown(reader: Reader, columns: Columns, word: str, reach: Reach) -> bool:
    """Return whether a word stands in a document of which a capture may be seen."""
    reach.budget.check()
    documents = columns.documents.known(reader.with_word(word, limit=_WITNESSES))
    return bool(reach.shows(columns.of_document.rows(documents)[0]).any())


def _spoken(question: Question, words: Words, meant: Words) -> str:
    """Return the query as it was probably meant."""
    swaps = dict(zip(words.words, meant.words, strict=True))
    typed = fold(question.text)
    for wrong, right in swaps.items():
        typed = typed.replace(wrong, right)
    return typed


def _substrings_of(question: Question) -> Node:
    terms = [Term(word) for word in question.words.words]
    terms += [Term(" ".join(phrase)) for phrase in question.words.phrases]
    if not terms:
        return Term(fold(question.text))
    return terms[0] if len(terms) == 1 else Both(tuple(terms))


def _boolean(reader: Reader, columns: Columns, tree: Node, mode: Mode, reach: Reach) -> Match:
    substrings = Substrings(reader, columns, reach.budget)
    rows, whole = substrings.matching(tree)
    rows = rows[reach.shows(rows)]
    score = substrings.score(tree, rows)
    best = float(score.max()) if len(score) else 0.0
    terms = tuple(dict.fromkeys(term.text for term in wanted_terms(tree)))
    text = score / np.float32(best) if best else score
    documents = int(np.count_nonzero(np.bincount(columns.doc[rows]))) if len(rows) else 0
    return _plain_rows(rows, mode, text=text, substrings=terms, documents=documents, complete=whole)


def _worded(reader: Reader, columns: Columns, words: Words, reach: Reach) -> Match | None:
    """Return the captures of the documents in which all words stand; None if there are none that may be seen."""
    reach.budget.check()
    found = reader.words(words.words, words.phrases, limit=reach.scan)
    places = columns.documents.places(found.keys)
    here = places < len(columns.documents.keys)
    best = found.scores[0] if len(found.scores) else np.float32(1)
    places, scores = places[here], found.scores[here]
    rows, counts = columns.of_document.rows(places)
    keep = reach.shows(rows)
    if not keep.any():
        return None
    if reach.allowed is not None:
        keep &= np.repeat(reach.allowed[places], counts)
    bits = _title_bits(reader, columns, words, limit=len(found.keys))
    return Match(
        rows=rows[keep],
        text=np.repeat(scores / best, counts)[keep],
        titles=np.repeat(bits[places], counts)[keep],
        mode=Mode.FTS,
        shown=words,
        documents=found.count,
        complete=found.count <= len(found.keys),
        goes_on=found.count > len(found.keys),
    )


def _title_bits(reader: Reader, columns: Columns, words: Words, *, limit: int) -> npt.NDArray[np.uint8]:
    """Return what each document's title has of the words."""
    bits = np.zeros(len(columns.documents.keys) + 1, np.uint8)
    asked = words.all_words
    every = columns.documents.known(reader.titles(asked, every=True, limit=limit))
    if len(asked) > 1:
        bits[columns.documents.known(reader.titles(asked, every=False, limit=limit))] |= TITLE_ANY
        bits[columns.documents.known(reader.title_phrase(asked, limit=limit))] |= TITLE_PHRASE
    bits[every] |= TITLE_ALL | TITLE_ANY
    bits[columns.titles.equal(every[:_EXACT_TITLES], " ".join(asked).encode())] |= TITLE_EXACT
    return bits
