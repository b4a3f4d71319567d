"""The keywords of a page, and those of a question about pages: cut into words, each folded as search folds text.

Small words (the, und, …) come last: they are kept only where there is room, and a question that has others leaves
them out.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache
from unicodedata import combining, is_normalized

from holdfast.errors import Invalid
from holdfast.parse.folding import analysable, words_of
from holdfast.parse.language import SMALL_WORDS
from holdfast.parse.text import nfc

MAX_WORDS = 256
"""Distinct keywords of one page."""
MAX_CHARS = 64
"""Longer runs of letters are no words."""
MAX_ASKED = 16
"""Words of one question."""
_MAX_COUNT = 32_767
# What folding drops stands inside words: a mark over a letter does not end one.
_MARKS = "".join(chr(code) for code in range(0x300, 0x10000) if combining(chr(code)))
_RUN = re.compile(rf"[\w{_MARKS}]+")
_WESTERN = "cp1252"
"""An encoding with the letters, quotes and dashes of western Europe, a byte each."""


def _western_table() -> bytes:
    """Return what each byte becomes: itself if it is a letter or a digit, else a space."""
    shown = [bytes([code]).decode(_WESTERN, "replace") for code in range(256)]
    return bytes(code if char.isalnum() and char != "\ufffd" else 32 for code, char in enumerate(shown))


_LETTERS = _western_table()
_MAX_WRITTEN_CHARS = 4 * MAX_CHARS
_READ_CHARS = 200_000
"""How much of a text is read for keywords: a page has 256 of them long before."""


@lru_cache(maxsize=1 << 16)
def _folded(written: str) -> tuple[str, ...]:
    """Return what one written word folds to: a word, none, or several letters of a script that parts no words.

    Remembered, because folding a whole text letter by letter takes ten times as long as cutting it into words.
    """
    return tuple(word for word in words_of(analysable(written)) if len(word) <= MAX_CHARS)


_SMALL = frozenset(word for line in SMALL_WORDS for written in line.split() for word in _folded(written))


def _written(text: str) -> Counter[str]:
    """Return the words of a text as written, in lower case, with how often each occurs."""
    low = text.lower()
    try:
        # A table of bytes and a split take a tenth of the time that a regular expression takes.
        found = Counter(low.encode(_WESTERN).translate(_LETTERS).split())
    except UnicodeEncodeError:
        return Counter(_RUN.findall(low))
    return Counter({word.decode(_WESTERN): count for word, count in found.items()})


def _counted(text: str) -> Counter[str]:
    """Return the words of a text, folded, with how often each occurs, in the order in which they are met."""
    counts: Counter[str] = Counter()
    read = text[:_READ_CHARS]
    for written, count in _written(read if is_normalized("NFC", read) else nfc(read)).items():
        if len(written) <= _MAX_WRITTEN_CHARS:
            for word in _folded(written):
                counts[word] += count
    return counts


def keywords_of(texts: Iterable[str | None]) -> tuple[tuple[str, int], ...]:
    """Return the keywords of a page with how often they occur in its texts: the most frequent 256, by word.

    Of equally frequent ones those that come first: title and description go before the text.
    """
    counts: Counter[str] = Counter()
    for text in texts:
        if text:
            counts.update(_counted(text))
    kept = list(counts.items())
    if len(kept) > MAX_WORDS:
        # Sorting is stable, and a Counter keeps the order in which words were met.
        kept = sorted(kept, key=lambda item: (item[0] in _SMALL, -item[1]))[:MAX_WORDS]
    return tuple((word, min(count, _MAX_COUNT)) for word, count in sorted(kept))


def asked_for(question: str) -> list[str]:
    """Return the words that a page must have all of, once each; small ones only where there are no others.

    Invalid for more of them than anybody needs.
    """
    asked = list(_counted(question))
    telling = [word for word in asked if word not in _SMALL] or asked
    if len(telling) > MAX_ASKED:
        raise Invalid(f"{len(telling)} words are too many to look for at once; ask for at most {MAX_ASKED}")
    return telling
