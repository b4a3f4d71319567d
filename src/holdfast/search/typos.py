"""When nothing is found: the words of the archive that were probably meant. It refuses words that it cannot better.

Candidates share the first letter (or the second, for swapped ones), and only if none is near is the whole vocabulary
looked at. No table is kept: the index's own dictionary is the vocabulary, always as fresh as the index.
"""

from __future__ import annotations

from collections.abc import Sequence

from rapidfuzz.distance import OSA
from rapidfuzz.process import extract

from holdfast.search.engine import Reader

_NEAR = 20


def _distance(word: str) -> int:
    """Return how many edits a word may be away: one in a short word, two in a longer one."""
    return 1 if len(word) <= 5 else 2


def nearest(reader: Reader, word: str) -> str | None:
    """Return the word that was probably meant: the fewest edits, then the most documents; itself if it is there."""
    allowed = _distance(word)
    for prefixes in (dict.fromkeys((word[:1], word[1:2])), ("",)):
        frequency = {term: count for prefix in prefixes for term, count in reader.vocabulary(prefix)}
        if word in frequency:
            return word
        found = extract(word, frequency.keys(), scorer=OSA.distance, score_cutoff=allowed, limit=_NEAR)
        if found:
            return min(found, key=lambda near: (near[1], -frequency[near[0]], near[0]))[0]
    return None


def corrected(reader: Reader, words: Sequence[str]) -> tuple[str, ...] | None:
    """Return the words with those replaced that the archive does not have; None if that changes nothing or fails."""
    near = [nearest(reader, word) for word in words]
    if None in near or list(words) == near:
        return None
    return tuple(word for word in near if word is not None)
