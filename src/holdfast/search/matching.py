"""Finds the rows that match a query, with the score of their text and the way they were found.

Stages for plain text, each only if the one before found nothing: all words; some of the words, if all are known;
each word as a substring of title, snippet or URL; the nearest words of the vocabulary.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import replace
from enum import StrEnum
from functools import partial
from itertools import islice
from math import log1p
from string import ascii_lowercase, digits
from typing import Final, Protocol

import numpy as np
import numpy.typing as npt
from rapidfuzz.distance import OSA
from rapidfuzz.process import extract

from holdfast.parse.text import fold, is_unspaced, letters_of, words_of
from holdfast.search.analysis import languages_of
from holdfast.search.columns import Columns, Floats
from holdfast.search.counting import PUBLIC
from holdfast.search.engine import NONE_MATCHED, IndexReader, MatchedKeys
from holdfast.search.places import Incidence, Numbering, Rows
from holdfast.search.query import (
    NO_WORDS,
    And,
    Field,
    Intent,
    Node,
    Or,
    ParsedQuery,
    Term,
    Words,
    needs_words,
    plain,
    quoted_in,
    terms_in,
    wanted_text,
)
from holdfast.search.query_terms import QueryTerms, TextWeights, query_terms
from holdfast.search.readers import View
from holdfast.search.substrings import Budget, Substrings
from holdfast.values import dataclass

# Letters of a word that is corrected; a longer one is no mistyped word, a shorter one is near to too many.
_SHORTEST: Final = 4
_LONGEST: Final = 32
# First letters of which at most one may be wrong where two edits are looked for.
_ALIKE: Final = 4
# Words of one range, the most frequent ones.
_RANGE: Final = 500
# Words that are read for one word at most.
_READ: Final = 20_000
# Near words that visible documents have, the most frequent ones, of which the best are kept.
_TRIED: Final = 20
# Near words of one word that are kept, and queries made of them that are run until one finds pages.
_OFFERED: Final = 4
_MEANINGS: Final = 6

_WEIGHTS: Final = TextWeights()

Seen = Callable[[str], int]
"""Returns the number of visible documents with a word, up to a limit: corrections must not reveal hidden content."""


class Vocabulary(Protocol):
    def frequency(self, word: str) -> int: ...

    def vocabulary(self, prefix: str, *, limit: int) -> list[tuple[str, int]]: ...


def corrected(
    vocabulary: Vocabulary, words: Sequence[str], budget: Budget, seen: Seen, *, known: Container[str] = ()
) -> list[tuple[str, ...]]:
    """Return the words with unknown ones corrected, the likeliest first; those in `known` stay as they are.

    Each word is corrected independently, and no page may have all of the likeliest: the alternatives differ in one
    word at a time. Empty if nothing needs correction, or one word resembles no other.
    """
    near: list[list[str]] = []
    for word in words:
        found = [word] if word in known else nearest(vocabulary, word, budget, seen)
        if not found:
            return []
        near.append(found)
    best = tuple(found[0] for found in near)
    if best == tuple(words):
        return []
    others = sorted((rank, at) for at, found in enumerate(near) for rank in range(1, len(found)))
    turned = [(*best[:at], near[at][rank], *best[at + 1 :]) for rank, at in others]
    return [best, *turned][:_MEANINGS]


def nearest(vocabulary: Vocabulary, word: str, budget: Budget, seen: Seen) -> list[str]:
    """Return probable corrections: the fewest edits, then the most visible documents; the word itself if it exists.

    One edit in a word of four or five letters, two in a longer one; none in a shorter one or in an unspaced script,
    where almost any other word would fit.
    """
    budget.check()
    # A word that occurs only in withdrawn text counts as unknown: a correction to it would reveal that it occurs.
    if seen(word):
        return [word]
    if not _SHORTEST <= len(word) <= _LONGEST or is_unspaced(word):
        return []
    # Two edits turn a short word into almost any other.
    stages = (_one_edit, _two_edits) if len(word) > 5 else (_one_edit,)
    for stage in stages:
        near = ((edits, -seen(term), count, term) for edits, count, term in sorted(stage(vocabulary, word, budget)))
        if found := sorted(islice((one for one in near if one[1]), _TRIED)):
            return [term for *_, term in found[:_OFFERED]]
    return []


# How many edits away, minus the number of documents, and the word: the least is the best.
_Near = tuple[int, int, str]


def _one_edit(vocabulary: Vocabulary, word: str, budget: Budget) -> list[_Near]:
    variants = set(_edits(word))
    budget.spend(len(variants))
    return [(1, -count, variant) for variant in variants if (count := vocabulary.frequency(variant))]


def _two_edits(vocabulary: Vocabulary, word: str, budget: Budget) -> list[_Near]:
    frequency: dict[str, int] = {}
    for prefix in dict.fromkeys([word[:_ALIKE], *_edits(word[:_ALIKE])]):
        # Ranges of the dictionary, never all of it: eight unknown words in 60,000 took 1.3 s.
        frequency.update(vocabulary.vocabulary(prefix, limit=_RANGE))
        if len(frequency) >= _READ:
            break
    budget.spend(len(frequency))
    found = extract(word, frequency.keys(), scorer=OSA.distance, score_cutoff=2, limit=None)
    return [(edits, -frequency[term], term) for term, edits, _ in found if edits]


def _edits(word: str) -> Iterator[str]:
    """Yield all words one edit away: a letter too few, two swapped, one wrong, one too many."""
    # Its own letters, too: words of other scripts are mistyped with their own.
    letters = "".join(dict.fromkeys(f"{ascii_lowercase}{digits}{word}"))
    for at in range(len(word)):
        before, letter, after = word[:at], word[at], word[at + 1 :]
        yield before + after
        if after and after[0] != letter:
            yield before + after[0] + letter + after[1:]
        for other in letters:
            if other != letter:
                yield before + other + after
            yield before + other + letter + after
    for other in letters:
        yield word + other


class MatchMode(StrEnum):
    NEWEST = "newest"
    FTS = "relevance_fts"
    FALLBACK = "relevance_fallback"
    FUZZY = "relevance_fuzzy"
    SOME_WORDS = "relevance_some_words"
    BOOLEAN = "boolean"
    URL = "url"
    SIMILAR = "similar"
    PAGES = "pages_fastpath"


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """Rows in no particular order. `text` is aligned with the rows, from 0 to `QueryTerms.evidence`."""

    rows: Rows
    text: Floats
    mode: MatchMode
    complete: bool = True
    """False if more visible documents match than are read."""
    goes_on: bool = False
    """True if a larger reach would read more of them."""
    shown: Words = NO_WORDS
    substrings: tuple[str, ...] = ()
    did_you_mean: str | None = None


def browsed(rows: Rows, *, complete: bool) -> Match:
    return _plain_rows(rows, MatchMode.NEWEST, complete=complete)


def _plain_rows(rows: Rows, mode: MatchMode, **more: object) -> Match:
    match = Match(rows=rows, text=np.zeros(len(rows), np.float32), mode=mode)
    return replace(match, **more)  # type: ignore[arg-type]


# Visible documents of a word that are counted.
_WITNESSES: Final = 1_000
NAMED_ADDRESSES: Final = 2_000
# Documents with some of the words, the best of them.
_SOME_DOCUMENTS: Final = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchReach:
    """Limits and permissions of a query: hidden captures have no influence, not even on the choice of stages."""

    scan: int
    """Limit on the documents read for plain words, the best by text."""
    gate: npt.NDArray[np.uint8]
    budget: Budget
    named: int = NAMED_ADDRESSES
    """Limit on the URLs read if the words name them."""
    allowed: npt.NDArray[np.bool_] | None = None
    """By document: those of one source; None for all."""

    def shows(self, rows: Rows) -> npt.NDArray[np.bool_]:
        shown: npt.NDArray[np.bool_] = (self.gate[rows] & np.uint8(PUBLIC)) != 0
        return shown


def find(view: View, question: ParsedQuery, reach: SearchReach) -> Match:
    """Return the matches of a query; raise SearchTooLong if that takes too long."""
    columns = view.columns
    if question.intent is Intent.BROWSE or view.reader is None:
        count = len(columns) if question.intent is Intent.BROWSE else 0
        return _plain_rows(np.arange(count, dtype=np.int32), MatchMode.NEWEST)
    if question.intent is Intent.URL:
        rows = columns.rows_of_groups(np.array(question.groups, np.int64))
        rows = rows[reach.shows(rows)]
        # An address that no capture has may stand in a text; only a guess from a dot (`node.js`) is corrected, too.
        if len(rows) or question.certain:
            query = query_terms(question.words, question.text)
            in_text = None if len(rows) else _worded(view.reader, columns, query, reach)
            return in_text or _plain_rows(rows, MatchMode.URL)
    if question.intent is Intent.BOOLEAN and question.tree is not None:
        with reach.budget.turn():
            return _boolean(view.reader, columns, question.tree, reach)
    return _plain(view.reader, columns, question, reach)


def _plain(reader: IndexReader, columns: Columns, question: ParsedQuery, reach: SearchReach) -> Match:
    words = question.words
    if words.words or words.phrases:
        match = _worded(reader, columns, query_terms(words, question.text), reach)
        if match is not None:
            return match
    elif not fold(question.text):
        # Marks that stand on no letter: as a substring they would be everywhere.
        return _plain_rows(np.empty(0, np.int32), MatchMode.FALLBACK)
    with reach.budget.turn():
        return _guessed(reader, columns, question, reach)


def _guessed(reader: IndexReader, columns: Columns, question: ParsedQuery, reach: SearchReach) -> Match:
    words = question.words

    def seen(word: str) -> int:
        return visible_documents(reader, columns, word, reach)

    query = query_terms(words, question.text)
    # A form of a word counts only beside another word: alone, it may be a form of a word of another language.
    known = {word for word in words.words if seen(word) or _stands_beside(reader, columns, word, words, reach)}
    if known.issuperset(words.words) and (match := _some_words(reader, columns, query, reach)) is not None:
        return match
    parts = _substrings(reader, columns, question, reach)
    if len(parts.rows) or not words.words:
        return parts
    # The words of operators and of quotes hold as they are: pages with others would be left out again.
    fixed = {*question.operator_terms, *(word for piece in quoted_in(question.text) for word in words_of(piece))}
    own = tuple(word for word in words.words if word not in fixed)
    kept = tuple(word for word in words.words if word in fixed)
    for near in corrected(reader, own, reach.budget, seen, known=known):
        changed = replace(words, words=(*near, *kept))
        wanted = replace(query_terms(changed, " ".join(changed.words)), required=query.required)
        match = _worded(reader, columns, wanted, reach)
        if match is not None:
            swaps = dict(zip(own, near, strict=True))
            return replace(match, mode=MatchMode.FUZZY, did_you_mean=_as_meant(question, swaps))
    return _some_words(reader, columns, query, reach) or parts


def _some_words(reader: IndexReader, columns: Columns, query: QueryTerms, reach: SearchReach) -> Match | None:
    """Return the captures of documents with some of several words, if none has all; None if there are none.

    Phrases in quotes must match as they are.
    """
    terms = query.terms
    if len(terms) < 2 or query.has_quotes:
        return None
    reach.budget.check()
    read = partial(reader.some_words, query, languages_of(columns.languages), _WEIGHTS)
    found = best_documents(read, columns, reach, min(reach.scan, _SOME_DOCUMENTS))
    match = _documents(columns, found, query, reach)
    if match is None:
        return None
    pairs = tuple(tuple(letters_of(term)) for term in terms if is_unspaced(term))
    return replace(match, mode=MatchMode.SOME_WORDS, shown=Words(words=query.words, phrases=pairs))


def visible_documents(reader: IndexReader, columns: Columns, word: str, reach: SearchReach) -> int:
    """Return the number of visible documents with exactly this word, counting up to 1,000."""
    reach.budget.check()
    found = best_documents(partial(reader.with_word, word), columns, reach, _WITNESSES)
    rows = columns.of_document.rows(columns.documents.known(found.keys))[0]
    return len(np.unique(columns.doc[rows[reach.shows(rows)]]))


def _stands_beside(reader: IndexReader, columns: Columns, word: str, words: Words, reach: SearchReach) -> bool:
    """Return True if a visible page has any form of this word and of another one of the words."""
    others = tuple(Term(other) for other in words.words if other != word)
    tree = And((Term(word), Or(others)))
    beside = replace(query_terms(Words(words=(word,)), word), signed=(), tree=tree)
    few = replace(reach, scan=_WITNESSES, named=_WITNESSES)
    return bool(others) and _worded(reader, columns, beside, few) is not None


def _as_meant(question: ParsedQuery, swaps: dict[str, str]) -> str | None:
    typed = fold(question.text)
    # Whole words: `linic` is a part of `clinic`.
    wrong = re.compile(rf"(?<![^\W_])(?:{'|'.join(map(re.escape, swaps))})(?![^\W_])")
    read = wrong.sub(lambda found: swaps[found[0]], typed)
    return None if read == typed else read


def _substrings(reader: IndexReader, columns: Columns, question: ParsedQuery, reach: SearchReach) -> Match:
    """Return rows with every word as a substring of title, snippet or URL, those with it in the title first."""
    texts = question.words.texts or [fold(question.text)]
    substrings, fields = Substrings(reader, columns, reach.budget), (Field.TITLE, Field.SNIPPET, Field.URL)
    rows, whole = substrings.matching(And(tuple(Or(tuple(Term(text, one) for one in fields)) for text in texts)))
    rows = rows[reach.shows(rows)]
    titled = np.mean([substrings.judged(Term(text, Field.TITLE), rows)[0] for text in texts], axis=0, dtype=np.float32)
    return _plain_rows(rows, MatchMode.FALLBACK, text=titled, substrings=tuple(texts), complete=whole)


def _boolean(reader: IndexReader, columns: Columns, tree: Node, reach: SearchReach) -> Match:
    text, wanted, substrings = wanted_text(tree), terms_in(tree), Substrings(reader, columns, reach.budget)
    parts = (term.text for term in wanted if term.is_prefix or term.field is not Field.TEXT)
    is_worded = needs_words(tree)
    ranked = tree if is_worded else Or(tuple(term for term in wanted if term.field is Field.TEXT))
    match = _worded(reader, columns, replace(query_terms(plain(text), text), signed=(), tree=ranked), reach)
    match = _plain_rows(np.empty(0, np.int32), MatchMode.BOOLEAN) if match is None else match
    worth = np.zeros(len(columns), np.float32)
    worth[match.rows] = match.text
    rows, whole = substrings.left(tree, match.rows) if is_worded else substrings.matching(tree)
    rows = rows[reach.shows(rows)]
    return replace(
        match,
        rows=rows,
        text=worth[rows],
        mode=MatchMode.BOOLEAN,
        substrings=tuple(dict.fromkeys(parts)),
        complete=whole and (match.complete or not is_worded),
        goes_on=match.goes_on and is_worded,
    )


def _worded(reader: IndexReader, columns: Columns, query: QueryTerms, reach: SearchReach) -> Match | None:
    """Return the captures of documents that contain all words, and of URLs that all words name.

    None if no visible ones exist.
    """
    reach.budget.check()
    languages = languages_of(columns.languages)
    found = best_documents(partial(reader.words, query, languages, _WEIGHTS), columns, reach, reach.scan)
    read = partial(reader.addresses, query, languages, _WEIGHTS)
    named = _best_shown(read, (columns.addresses, columns.of_address), reach, reach.named)
    match = _documents(columns, found, query, reach, named)
    if match is None:
        return _worded(reader, columns, replace(query, signed=()), reach) if query.signed else None
    if query.accented:
        # As much as the best text: without its accents a word may be another one.
        as_typed = np.zeros(columns.documents.none + 1, np.float32)
        typed = best_documents(partial(reader.accented, query), columns, reach, reach.scan)
        as_typed[columns.documents.known(typed.keys)] = query.evidence
        match = replace(match, text=match.text + as_typed[columns.doc[match.rows]])
    return match


_Read = Callable[..., MatchedKeys]
# Keys that are read at most to find those that may be seen: a tenth of a second.
_MOST_KEYS: Final = 200_000


def best_documents(read: _Read, columns: Columns, reach: SearchReach, limit: int) -> MatchedKeys:
    """Return the best visible documents; `count` is larger than `limit` if there are more."""
    return _best_shown(read, (columns.documents, columns.of_document), reach, limit)


def _best_shown(read: _Read, owners: tuple[Numbering, Incidence], reach: SearchReach, limit: int) -> MatchedKeys:
    # Hidden keys must not count: a total that is cut short because of them would reveal them.
    numbers, incidence = owners
    wanted = limit + 1
    while (found := read(limit=wanted)).count > limit:
        places = numbers.places(found.keys)
        known = np.flatnonzero(places != numbers.none)
        rows, counts = incidence.rows(places[known])
        shown = known[np.unique(np.repeat(np.arange(len(known)), counts)[reach.shows(rows)])]
        is_all = found.count <= len(found.keys)
        if is_all or len(shown) > limit or wanted >= _MOST_KEYS:
            best, count = shown[:limit], len(shown) if is_all else limit + 1
            return MatchedKeys(keys=found.keys[best], scores=found.scores[best], count=count)
        wanted = min(4 * wanted, _MOST_KEYS)
        reach.budget.check()
    return found


def _documents(
    columns: Columns, found: MatchedKeys, query: QueryTerms, reach: SearchReach, named: MatchedKeys = NONE_MATCHED
) -> Match | None:
    # The index may hold a document that the columns do not have yet: the two are committed one after the other.
    places = columns.documents.places(found.keys)
    here = places != columns.documents.none
    places, scores = places[here], found.scores[here]
    worth = np.zeros(columns.documents.none + 1, np.float32)
    worth[places] = scores
    named_rows, named_text = _named(columns, named, worth, reach)
    # The best of all that may be seen, on whatever source: a page scores the same with and without a filter.
    best = max(_best_score(columns, places, scores, reach), float(named_text.max(initial=0)))
    if not best:
        return None
    if reach.allowed is not None:
        places = places[reach.allowed[places]]
        keep = reach.allowed[columns.doc[named_rows]]
        named_rows, named_text = named_rows[keep], named_text[keep]
    # In the order of rows, not of scores: every column is read for these rows, and reading it forwards takes a third.
    rows = np.sort(columns.of_document.rows(places)[0])
    keep = reach.shows(rows)
    if len(named_rows):
        is_named = np.zeros(len(columns), np.bool_)
        is_named[named_rows] = True
        keep &= ~is_named[rows]
    rows = rows[keep]
    text = np.concatenate((worth[columns.doc[rows]], named_text)) * np.float32(query.evidence / best)
    match = _plain_rows(np.concatenate((rows, named_rows)), MatchMode.FTS)
    return replace(
        match,
        text=text,
        shown=Words(words=query.words, phrases=query.phrases),
        complete=found.count <= len(found.keys) and named.count <= len(named.keys),
        goes_on=found.count > len(found.keys),
    )


def _named(columns: Columns, named: MatchedKeys, worth: Floats, reach: SearchReach) -> tuple[Rows, Floats]:
    at = columns.addresses.places(named.keys)
    here = at != columns.addresses.none
    rows, counts = columns.of_address.rows(at[here])
    text = np.repeat(named.scores[here], counts)
    keep = reach.shows(rows)
    rows, text = rows[keep], text[keep]
    return rows, text + worth[columns.doc[rows]]


# Documents whose captures are looked at, until one may be seen: mostly the first has one.
_FIRST_LOOK: Final = 16


def _best_score(columns: Columns, places: Rows, scores: Floats, reach: SearchReach) -> float:
    """Return the highest score of a document with a visible capture; 0 without one. Expects scores in order."""
    first, count = 0, _FIRST_LOOK
    while first < len(places):
        rows, counts = columns.of_document.rows(places[first : first + count])
        shown = np.flatnonzero(reach.shows(rows))
        if len(shown):
            return float(scores[first + np.searchsorted(np.cumsum(counts), shown[0], side="right")])
        first, count = first + count, count * 4
    return 0.0


# Words whose frequency is looked up: a query has eight, but its phrases may have more.
_WEIGHED: Final = 16
# The least that a word weighs: one on every page is still a word of the query.
_LEAST_RARITY: Final = 0.15


def rarity_of(view: View, words: Words) -> dict[str, float]:
    """Return the rarity of each word: 1 for a word that is nowhere else, least for a word on every page."""
    documents = len(view.columns.documents)
    if view.reader is None or not documents:
        return {}
    scale = log1p(documents)
    return {
        word: max(_LEAST_RARITY, min(1.0, log1p(documents / (1 + view.reader.frequency(word))) / scale))
        for word in words.all_words[:_WEIGHED]
    }
