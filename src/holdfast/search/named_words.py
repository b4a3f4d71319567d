"""The words that operators name, and authors, as terms of the index: made by the same rules for documents and queries.

A run of letters of an unspaced script (`水道`) is one word, kept as pairs of neighbours. Two words that are named after
each other stay two: `水道 学校` is not `道学`.
"""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.parse.text import is_unspaced, letters_of, words_of
from holdfast.search.analysis import query_pairs


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
    return list(dict.fromkeys([joined, tuple(term for word in words for term in terms_of(word))]))


def author_terms(name: str) -> list[str]:
    """Return what the index keeps of the names of authors."""
    return [term for word in words_of(name) for term in terms_of(word)]
