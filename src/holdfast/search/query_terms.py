"""Turns the words of a query into weighted index clauses.

A word may match exactly, folded and stemmed, as part of a compound; in the title, in a heading or a term that
the page defines, in the text, in the texts of links to the page, in its path. Each is a clause with its own
weight; the score of a page is the weighted sum. The weights are fitted (`bench/relevance.py`), not chosen.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import Final, NamedTuple

from holdfast.parse.text import fold, is_unspaced, words_of
from holdfast.search.analysis import compound, compounds_in, exact_words, query_pairs, stem
from holdfast.search.query import Node, Words, quoted_in
from holdfast.values import dataclass

# Of one query, each costs a handful of clauses.
_MAX_COMPOUNDS: Final = 4
_MAX_EXACT: Final = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryTerms:
    words: tuple[str, ...]
    """Folded, neither stemmed nor split; all must match."""
    phrases: tuple[tuple[str, ...], ...] = ()
    exact: tuple[str, ...] = ()
    """As typed, in lower case, including words of one and two letters."""
    accented: tuple[str, ...] = ()
    required: tuple[str, ...] = ()
    """Words typed with accents and in quotes: without these accents they are other words."""
    compounds: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Each as a whole, and its parts."""
    run: tuple[str, ...] = ()
    """All typed words, folded, in order, with short words and stop words, as in a heading or a sentence."""

    has_quotes: bool = False
    signed: tuple[str, ...] = ()
    """Names that only their signs distinguish from a word, as C++; ignored if no page has them."""
    tree: Node | None = None
    """The condition that must match instead; the words then only rank."""

    @property
    def evidence(self) -> float:
        """Weight of the text against the page's other signals: 1 for two words or fewer, 4 for five or more.

        Two words may match many pages, and the one with most links is the likely target; a whole sentence identifies
        its page.
        """
        # Unspaced words have two or three letters; an identifier is one word, however many parts it has.
        named = ((whole, *parts) for whole, parts in self.compounds)
        count = float(len(set(self.words).difference(*named)) + len(self.compounds))
        count += sum(len(phrase) / 3 if is_unspaced(phrase[0]) else 1 for phrase in self.phrases)
        return min(4.0, max(1.0, count - 1))

    @property
    def terms(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys([*self.words, *(term for phrase in self.phrases for term in query_pairs(phrase))]))


def query_terms(words: Words, typed: str) -> QueryTerms:
    kept = set(words.all_words)
    exact = [word for word in exact_words(typed) if len(word) < 3 or fold(word) in kept]
    compounds = [
        (whole.lower(), tuple(fold(part) for part in compound(whole) or words_of(whole)))
        for whole in compounds_in(typed)[:_MAX_COMPOUNDS]
    ]
    exact = list(dict.fromkeys(exact))[:_MAX_EXACT]
    accented = tuple(word for word in exact if not word.isascii() and fold(word) != word)
    pieces = quoted_in(typed)
    quoted = {word for piece in pieces for word in exact_words(piece)} if accented else ()
    run = tuple(words_of(typed))
    return QueryTerms(
        run=run if kept <= set(run) and not any(map(is_unspaced, run)) else words.words,
        words=words.words,
        phrases=words.phrases,
        exact=tuple(exact),
        accented=accented,
        required=tuple(word for word in accented if word in quoted),
        compounds=tuple(compounds),
        signed=tuple(whole for whole, parts in compounds if len(parts) == 1),
        has_quotes=bool(pieces),
    )


BORDER: Final = "\u00b6"
"""Delimits every title, heading, term and link text: a phrase that starts or ends with it starts or ends there,
and no phrase crosses from one into the next.
"""


class Kind(StrEnum):
    """How the terms of a clause must match: single terms and sentences are scored by their rarity."""

    TERM = "term"
    ALL = "all"
    PHRASE = "phrase"
    TYPED = "typed"
    RARE = "rare"
    """A term scored by its rarity only, ignoring its frequency in a text and the length of the text."""
    SENTENCE = "sentence"


class Clause(NamedTuple):
    name: str
    kind: Kind
    field: str
    terms: tuple[str, ...]


# Words side by side that no page has by chance.
_SENTENCE_WORDS: Final = 4


def kept_stems(words: Sequence[str], language: str) -> tuple[str, ...] | None:
    kept = tuple(term for word in words if (term := stem(word, language)))
    return kept if len(kept) == len(words) else None


def document_clauses(query: QueryTerms, language: str) -> Iterator[Clause]:
    kept, run = kept_stems(query.words, language) or (), kept_stems(query.run, language) or ()
    body, several = f"body_{language}", len(run) > 1
    if several:
        yield Clause("near", Kind.PHRASE, body, run)
        if len(run) >= _SENTENCE_WORDS:
            yield Clause("sentence", Kind.SENTENCE, body, run)
    if kept:
        # Numbers identify a version, however short; `of` and `du` identify nothing.
        numbers = [term for term in run if term.isdigit()]
        for field in ("title", "heads"):
            for term in (*kept, *numbers):
                yield Clause(field, Kind.TERM, field, (term,))
            yield Clause(f"{field}_equal", Kind.PHRASE, field, (BORDER, *run, BORDER))
        yield Clause("heads_all", Kind.ALL, "heads", kept)
        yield Clause("heads_start", Kind.PHRASE, "heads", (BORDER, *run))
    for phrase in query.phrases:
        yield from _phrase_clauses(phrase, language)
    for word in query.exact:
        yield Clause("alone" if len(query.run) == 1 else "exact", Kind.TYPED, "exact", (word,))
        yield Clause("exact_heads", Kind.TERM, "exact_heads", (word,))
    # English has no accents: who types them looks for another language, or for a name.
    if query.accented and kept and language != "en":
        yield Clause("foreign", Kind.ALL, body, kept)
    for whole, parts in query.compounds:
        yield Clause("whole", Kind.RARE, "whole", (whole,))
        yield Clause("whole_heads", Kind.TERM, "exact_heads", (whole,))
        if stemmed := kept_stems(parts, language):
            yield Clause("parts", Kind.PHRASE, body, stemmed)


def _phrase_clauses(phrase: Sequence[str], language: str) -> Iterator[Clause]:
    run = kept_stems(query_pairs(phrase), language)
    if not run:
        return
    for field in ("title", "heads"):
        yield Clause(f"{field}_run", Kind.PHRASE, field, run)
    yield Clause("heads_equal", Kind.PHRASE, "heads", (BORDER, *run, BORDER))


def address_clauses(query: QueryTerms, language: str) -> Iterator[Clause]:
    pairs = [term for phrase in query.phrases for term in query_pairs(phrase)]
    kept = kept_stems(tuple(dict.fromkeys([*query.words, *pairs])), language)
    if not kept:
        return
    for field in ("anchors", "path"):
        yield Clause(f"{field}_all", Kind.ALL, field, kept)
        for term in kept:
            yield Clause(field, Kind.TERM, field, (term,))
    run = kept_stems(query.run, language) or kept
    yield Clause("anchors_equal", Kind.PHRASE, "anchors", (BORDER, *run, BORDER))
    for word in (*query.exact, *(whole for whole, _ in query.compounds)):
        yield Clause("exact_anchors", Kind.TERM, "exact_anchors", (word,))


@dataclass(frozen=True, slots=True, kw_only=True)
class TextWeights:
    """Weights of the clauses, fitted on the known items of the tuning half of the manuals (`bench/relevance`).
    A weight of 0 disables a clause.
    """

    body: float = 2.7
    near: float = 7.0
    sentence: float = 8.0
    title: float = 2.4
    title_equal: float = 80.0
    title_run: float = 12.0
    heads: float = 0.56
    heads_all: float = 11.0
    heads_start: float = 8.0
    heads_equal: float = 24.0
    heads_run: float = 48.0
    exact: float = 0.75
    # By the recall of rare words: the exact form is found among many words of its stem, and a name among its parts.
    alone: float = 6.0
    exact_heads: float = 1.0
    # Not fitted: the manuals ask for no words with accents in another language, nor for addresses.
    foreign: float = 30.0
    """Bonus of pages in a language other than English, for words typed with accents."""
    whole: float = 6.0
    whole_heads: float = 32.0
    parts: float = 24.0
    anchors: float = 3.0
    anchors_all: float = 8.0
    anchors_equal: float = 128.0
    exact_anchors: float = 2.25
    path: float = 3.5
    path_all: float = 0.0
