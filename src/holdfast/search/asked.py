"""What the words of a query ask of the index, and what each way of meeting them is worth.

A word may be met exactly, folded and stemmed, as part of a compound; in the title, in a heading or a term that the page
defines, in the text, in the texts of links to the page, in its path. Each is a clause with a weight of its own; the
score of a page is the weighted sum. The weights are fitted (`bench/relevance.py`), not chosen.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, NamedTuple

from holdfast.parse.text import fold, is_unspaced, words_of
from holdfast.search.analysis import compound, compounds_in, exact_words, query_pairs, stem
from holdfast.search.query import Node, Words, quoted_in

# Of one query, each costs a handful of clauses.
_MAX_COMPOUNDS: Final = 4
_MAX_EXACT: Final = 12


@dataclass(frozen=True, slots=True)
class Compound:
    """A compound word of a query: as it was typed, in small letters, and its parts, folded."""

    whole: str
    parts: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedWords:
    """The words of a query in all their forms."""

    words: tuple[str, ...]
    """Folded, neither stemmed nor parted; all must be met."""
    phrases: tuple[tuple[str, ...], ...] = ()
    exact: tuple[str, ...] = ()
    """As typed, in small letters: those of one and two letters, too."""
    accented: tuple[str, ...] = ()
    """Those of them that were typed with accents."""
    required: tuple[str, ...] = ()
    """Those of them that were typed with accents and in quotes: without these accents they are other words."""
    compounds: tuple[Compound, ...] = ()
    run: tuple[str, ...] = ()
    """All that was typed, folded, in order, short words and stop words, too: as a heading or a sentence has it."""

    has_quotes: bool = False
    tree: Node | None = None
    """Says what must be met in their place; the words only rank then."""

    @property
    def evidence(self) -> float:
        """How much the text says beside what is known of a page: 1 for two words or fewer, 4 for five or more.

        Two words may mean many pages, and the one with most links is likely meant; a whole sentence means its page.
        """
        # Unspaced words have two or three letters; an identifier is one word, however many parts it has.
        parts = ((one.whole, *one.parts) for one in self.compounds)
        count = float(len(set(self.words).difference(*parts)) + len(self.compounds))
        count += sum(len(phrase) / 3 if is_unspaced(phrase[0]) else 1 for phrase in self.phrases)
        return min(4.0, max(1.0, count - 1))

    @property
    def terms(self) -> tuple[str, ...]:
        """Words and the words or pairs of letters of phrases, each once, in order."""
        return tuple(dict.fromkeys([*self.words, *(term for phrase in self.phrases for term in query_pairs(phrase))]))


def asked_words(words: Words, typed: str) -> AskedWords:
    """Return what words ask for that were typed so."""
    kept = set(words.all_words)
    exact = [word for word in exact_words(typed) if len(word) < 3 or fold(word) in kept]
    compounds = [
        Compound(whole.lower(), tuple(fold(part) for part in compound(whole) or words_of(whole)))
        for whole in compounds_in(typed)[:_MAX_COMPOUNDS]
    ]
    exact = list(dict.fromkeys(exact))[:_MAX_EXACT]
    accented = tuple(word for word in exact if not word.isascii() and fold(word) != word)
    pieces = quoted_in(typed)
    quoted = {word for piece in pieces for word in exact_words(piece)} if accented else ()
    run = tuple(words_of(typed))
    return AskedWords(
        run=run if kept <= set(run) and not any(map(is_unspaced, run)) else words.words,
        words=words.words,
        phrases=words.phrases,
        exact=tuple(exact),
        accented=accented,
        required=tuple(word for word in accented if word in quoted),
        compounds=tuple(compounds),
        has_quotes=bool(pieces),
    )


BORDER: Final = "\u00b6"
"""Stands before and behind every title, heading, term and link text: a phrase that begins or ends with it is one that
begins or ends there, and none reaches from one into the next."""


class Kind(StrEnum):
    """How the terms of a clause are to be met: single ones and sentences are scored by how telling they are."""

    TERM = "term"
    ALL = "all"
    PHRASE = "phrase"
    TYPED = "typed"
    """As it was typed, neither folded nor stemmed."""
    CLOSE = "close"
    """Within a few words of each other."""
    RARE = "rare"
    """A term whose score is how telling it is, however often a text has it and however long that is."""
    SENTENCE = "sentence"
    """Side by side."""


class Clause(NamedTuple):
    """One way of meeting the words of a query."""

    name: str
    """Of its weight."""
    kind: Kind
    field: str
    terms: tuple[str, ...]


# Words of a query for which nearness is looked for.
_CLOSE_WORDS: Final = 4
# Words side by side that no page has by chance.
_SENTENCE_WORDS: Final = 4


def kept_stems(words: Sequence[str], language: str) -> tuple[str, ...] | None:
    """Return what a language keeps of each word; None if it keeps nothing of one."""
    kept = tuple(term for word in words if (term := stem(word, language)))
    return kept if len(kept) == len(words) else None


def document_clauses(asked: AskedWords, language: str) -> Iterator[Clause]:
    """Yield what makes a document of a language that has all words a better answer."""
    kept, run = kept_stems(asked.words, language) or (), kept_stems(asked.run, language) or ()
    body, several = f"body_{language}", len(run) > 1
    if several:
        yield Clause("near", Kind.PHRASE, body, run)
        if len(run) >= _SENTENCE_WORDS:
            yield Clause("sentence", Kind.SENTENCE, body, run)
    if 1 < len(kept) <= _CLOSE_WORDS:
        yield Clause("close", Kind.CLOSE, body, kept)
    if kept:
        # A version is told by its numbers, however short; `of` and `du` tell nothing.
        numbers = [term for term in run if term.isdigit()]
        for field in ("title", "heads"):
            for term in (*kept, *numbers):
                yield Clause(field, Kind.TERM, field, (term,))
            yield Clause(f"{field}_all", Kind.ALL, field, kept)
            yield Clause(f"{field}_equal", Kind.PHRASE, field, (BORDER, *run, BORDER))
        if several:
            yield Clause("heads_phrase", Kind.PHRASE, "heads", run)
        yield Clause("heads_start", Kind.PHRASE, "heads", (BORDER, *run))
    for phrase in asked.phrases:
        yield from _phrase_clauses(phrase, language)
    for word in asked.exact:
        yield Clause("alone" if len(asked.run) == 1 else "exact", Kind.TYPED, "exact", (word,))
        yield Clause("exact_heads", Kind.TERM, "exact_heads", (word,))
    # English has no accents: who types them looks for another language, or for a name.
    if asked.accented and kept and language != "en":
        yield Clause("foreign", Kind.ALL, body, kept)
    for one in asked.compounds:
        yield Clause("whole", Kind.RARE, "whole", (one.whole,))
        yield Clause("whole_heads", Kind.TERM, "exact_heads", (one.whole,))
        if parts := kept_stems(one.parts, language):
            yield Clause("parts", Kind.PHRASE, body, parts)


def _phrase_clauses(phrase: Sequence[str], language: str) -> Iterator[Clause]:
    """Yield what makes a document with a phrase a better answer: words in quotes, or one of an unspaced script."""
    run = kept_stems(query_pairs(phrase), language)
    if not run:
        return
    for field in ("title", "heads"):
        yield Clause(f"{field}_run", Kind.PHRASE, field, run)
    yield Clause("heads_equal", Kind.PHRASE, "heads", (BORDER, *run, BORDER))


def address_clauses(asked: AskedWords, language: str) -> Iterator[Clause]:
    """Yield what makes an address a better answer; one of those for all words must be met."""
    pairs = [term for phrase in asked.phrases for term in query_pairs(phrase)]
    kept = kept_stems(tuple(dict.fromkeys([*asked.words, *pairs])), language)
    if not kept:
        return
    for field in ("anchors", "path"):
        yield Clause(f"{field}_all", Kind.ALL, field, kept)
        for term in kept:
            yield Clause(field, Kind.TERM, field, (term,))
    run = kept_stems(asked.run, language) or kept
    yield Clause("anchors_equal", Kind.PHRASE, "anchors", (BORDER, *run, BORDER))
    for word in (*asked.exact, *(one.whole for one in asked.compounds)):
        yield Clause("exact_anchors", Kind.TERM, "exact_anchors", (word,))


@dataclass(frozen=True, slots=True, kw_only=True)
class TextWeights:
    """What each way of meeting the words of a query is worth. 0 leaves a clause out."""

    body: float = 1.0
    near: float = 0.0
    """All words side by side in the text."""
    sentence: float = 0.0
    """A text of four words or more, as it was typed."""
    close: float = 0.0
    """All words within a few words of each other."""
    title: float = 0.0
    title_all: float = 0.0
    title_equal: float = 0.0
    title_run: float = 0.0
    """A phrase, or a word of a script without spaces, in the title."""
    heads: float = 0.0
    heads_all: float = 0.0
    heads_phrase: float = 0.0
    heads_start: float = 0.0
    heads_equal: float = 0.0
    heads_run: float = 0.0
    exact: float = 0.0
    alone: float = 0.0
    """The exact form of a query's only word."""
    exact_heads: float = 0.0
    foreign: float = 0.0
    """A page in another language than English, for words that were typed with accents."""
    whole: float = 0.0
    """A compound word as it was typed."""
    whole_heads: float = 0.0
    parts: float = 0.0
    """The parts of a compound word side by side."""
    anchors: float = 0.0
    anchors_all: float = 0.0
    anchors_equal: float = 0.0
    exact_anchors: float = 0.0
    path: float = 0.0
    path_all: float = 0.0
