"""The keywords of a page, and those of a question about pages: folded and cut into words as search does it.

Small words (the, und, …) come last: they are kept only where there is room, and a question that has others leaves
them out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from holdfast.errors import Invalid
from holdfast.parse.folding import analysable, words_of
from holdfast.parse.language import SMALL_WORDS

MAX_WORDS = 256
"""Distinct keywords of one page."""
MAX_CHARS = 64
"""Longer runs of letters are no words."""
MAX_ASKED = 16
"""Words of one question."""
_MAX_COUNT = 32_767
_SMALL = frozenset(word for small in SMALL_WORDS for word in words_of(small))


def words(text: str) -> list[str]:
    """Return the words of a text in order, folded; each letter of a script that parts no words is one."""
    return [word for word in words_of(analysable(text)) if len(word) <= MAX_CHARS]


def keywords_of(texts: Iterable[str | None]) -> tuple[tuple[str, int], ...]:
    """Return the keywords of a page with how often they occur in its texts: the most frequent 256, by word.

    Of equally frequent ones those that come first: title and description go before the text.
    """
    counts: Counter[str] = Counter()
    for text in texts:
        if text:
            counts.update(words(text))
    if len(counts) > MAX_WORDS:
        # Sorting is stable, and a Counter keeps the order in which words were met.
        ranked = sorted(counts.items(), key=lambda item: (item[0] in _SMALL, -item[1]))
        counts = Counter(dict(ranked[:MAX_WORDS]))
    return tuple((word, min(count, _MAX_COUNT)) for word, count in sorted(counts.items()))


def asked_for(question: str) -> list[str]:
    """Return the words that a page must have all of, once each; small ones only where there are no others.

    Invalid for more of them than anybody needs.
    """
    asked = list(dict.fromkeys(words(question)))
    telling = [word for word in asked if word not in _SMALL] or asked
    if len(telling) > MAX_ASKED:
        raise Invalid(f"{len(telling)} words are too many to look for at once; ask for at most {MAX_ASKED}")
    return telling
