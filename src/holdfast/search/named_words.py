"""The words that operators name, and authors, as terms of the index: made by the same rules for documents and queries.

A run of letters of an unspaced script (`水道`) is one word, kept as pairs of neighbours. Two words that are named after
each other stay two: `水道 学校` is not `道学`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from holdfast.parse.text import is_unspaced, letters_of, words_of
from holdfast.search.analysis import pairs_of, query_pairs


def terms_of(word: str) -> list[str]:
    """Return the terms of one word that a query names; a single unspaced letter is itself, for what starts with it."""
    return query_pairs(letters_of(word))


def is_letter(term: str) -> bool:
    """Return whether a term is a single letter of an unspaced script: the index keeps it by the pairs it starts."""
    return len(term) == 1 and is_unspaced(term)


def spellings(words: Sequence[str]) -> list[tuple[str, ...]]:
    """Return the terms of words side by side: written without blanks, and with them where that is another text.

    Korean parts words of an unspaced script by blanks, Japanese does not.
    """
    joined = tuple(query_pairs(letter for word in words for letter in letters_of(word)))
    *before, last = words
    parted = (*(term for word in before for term in _kept(word)), *terms_of(last))
    return list(dict.fromkeys([joined, parted]))


def author_terms(name: str) -> list[str]:
    """Return what the index keeps of the names of authors."""
    return [term for word in words_of(name) for term in _kept(word)]


def _kept(word: str) -> Iterator[str]:
    """Yield the terms that a document has for a word: the last letter of an unspaced run stands alone, too."""
    for unspaced, letters in groupby(letters_of(word), is_unspaced):
        if unspaced:
            yield from pairs_of("".join(letters))
        else:
            yield from letters
