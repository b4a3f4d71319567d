"""When nothing is found: the words of the archive that were probably meant. It refuses words that it cannot better.

What one edit makes of a word is looked up word by word in the index's own dictionary; two edits are looked for among
the words that start alike. Neither grows with the vocabulary: 600 look-ups a word (1.5 us each), then some hundred
short ranges of the dictionary.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from string import ascii_lowercase, digits
from typing import Final, Protocol

from rapidfuzz.distance import OSA
from rapidfuzz.process import extract

from holdfast.search.budget import Budget

_LONGEST: Final = 32
"""Letters of a word that is bettered; a longer one is no mistyped word."""
_ALIKE: Final = 4
"""First letters of which at most one may be wrong where two edits are looked for."""
_RANGE: Final = 500
"""Words of one range, the most frequent ones."""
_READ: Final = 20_000
"""Words that are read for one word at most."""
_TRIED: Final = 20
"""Near words that are tried until one may be shown."""

Shown = Callable[[str], bool]
"""Says whether a word stands in anything that may be shown: what was withdrawn is not told by way of a suggestion."""


class Vocabulary(Protocol):
    """The words of the archive, folded and unstemmed."""

    def frequency(self, word: str) -> int:
        """Return in how many documents a word stands."""
        ...

    def vocabulary(self, prefix: str, *, limit: int) -> list[tuple[str, int]]:
        """Return the most frequent words that start so, each with the number of its documents."""
        ...


def corrected(known: Vocabulary, words: Sequence[str], budget: Budget, shown: Shown) -> tuple[str, ...] | None:
    """Return the words with those replaced that the archive does not have; None if that changes nothing or fails."""
    near: list[str] = []
    for word in words:
        found = nearest(known, word, budget, shown)
        if found is None:
            return None
        near.append(found)
    return None if near == list(words) else tuple(near)


def nearest(known: Vocabulary, word: str, budget: Budget, shown: Shown) -> str | None:
    """Return the word that was probably meant: the fewest edits, then the most documents; itself if it is there.

    One edit in a word of up to five letters, two in a longer one.
    """
    budget.check()
    if known.frequency(word) and shown(word):
        return word
    if len(word) > _LONGEST:
        return None
    stages = (_one_edit, _two_edits) if len(word) > 5 else (_one_edit,)
    for stage in stages:
        near = sorted(stage(known, word, budget))
        for _, _, term in near[:_TRIED]:
            if shown(term):
                return term
    return None


_Near = tuple[int, int, str]
"""How many edits away, minus the number of documents, and the word: the least is the best."""


def _one_edit(known: Vocabulary, word: str, budget: Budget) -> list[_Near]:
    variants = set(_edits(word))
    budget.spend(len(variants))
    return [(1, -count, variant) for variant in variants if (count := known.frequency(variant))]


def _two_edits(known: Vocabulary, word: str, budget: Budget) -> list[_Near]:
    frequency: dict[str, int] = {}
    for prefix in dict.fromkeys([word[:_ALIKE], *_edits(word[:_ALIKE])]):
        frequency.update(known.vocabulary(prefix, limit=_RANGE))
        if len(frequency) >= _READ:
            break
    budget.spend(len(frequency))
    found = extract(word, frequency.keys(), scorer=OSA.distance, score_cutoff=2, limit=None)
    return [(edits, -frequency[term], term) for term, edits, _ in found if edits]


def _edits(word: str) -> Iterator[str]:
    """Yield what one edit makes of a word: a letter too few, two swapped, one wrong, one too many."""
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
