"""Passages of a text with the words that were asked for marked, as plain pieces: never markup, so never injection.

A passage is a list of pieces; a piece is a text and whether it is a hit. Joined, the pieces are the passage. No
offsets are given, because a browser counts characters differently.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from holdfast.parse.text import fold_in_place, is_unspaced
from holdfast.search.analysis import language_field, stem
from holdfast.search.query import Words

_PASSAGE: Final = 200
_PASSAGES: Final = 2
# Characters of a text that are looked through: what is shown comes from its start.
_SEARCHED: Final = 100_000
_MOST_HITS: Final = 100


class Piece(NamedTuple):
    """Part of a passage."""

    text: str
    hit: bool


_REST_OF_WORD: Final = re.compile(r"[^\W_]*")


class Finder:
    """Finds the places of one query's words and substrings in texts of one language.

    Plain `find` from hit to hit: a pattern that tries every letter costs four times as much.
    """

    def __init__(self, words: Words, substrings: Sequence[str], language: str | None) -> None:
        self._language = language_field(language)
        self._stems = {kept for word in words.all_words if (kept := stem(word, self._language))}
        spaced = [word for word in words.all_words if not is_unspaced(word)]
        starts = {_shared(word, stem(word, self._language) or word) for word in spaced}
        # Of two prefixes the shorter finds what the longer would.
        self._starts = [start for start in sorted(starts) if not any(start.startswith(p) for p in starts - {start})]
        self._substrings = [*substrings, *("".join(p) for p in words.phrases if is_unspaced("".join(p)))]

    def places(self, text: str) -> list[tuple[int, int]]:
        """Return where hits start and end, in order."""
        return self._places(fold_in_place(text[:_SEARCHED]))

    def _places(self, folded: str) -> list[tuple[int, int]]:
        found = [place for start in self._starts for place in self._words(folded, start)]
        for part in self._substrings:
            found += _occurrences(folded, part)
        return sorted(found)

    def _words(self, folded: str, start: str) -> Iterator[tuple[int, int]]:
        at = folded.find(start)
        left = _MOST_HITS
        while at >= 0 and left:
            match = _REST_OF_WORD.match(folded, at)
            end = match.end() if match else at + len(start)
            whole = at == 0 or not folded[at - 1].isalnum()
            # The prefix finds candidates; only the stem decides, as in the index.
            if whole and stem(folded[at:end], self._language) in self._stems:
                yield at, end
                left -= 1
            # At least one step on: an empty match would never end.
            at = folded.find(start, max(end, at + 1))

    def pieces(self, text: str) -> list[Piece]:
        """Return a whole text in pieces."""
        return _cut(text, 0, len(text), self.places(text))

    def passages(self, text: str) -> list[list[Piece]]:
        """Return the passages with the most different hits, in the order of the text; none if there is no hit."""
        folded = fold_in_place(text[:_SEARCHED])
        places = self._places(folded)
        chosen: list[tuple[int, int, int]] = []
        for _, start, first, last in sorted(windows(folded, places)):
            # Two passages that overlap would show the same words twice.
            if all(last < a or first > b for _, a, b in chosen):
                chosen.append((start, first, last))
            if len(chosen) == _PASSAGES:
                break
        cut = []
        for _, first, last in sorted(chosen, key=lambda window: window[1]):
            start, end = _bounds(text, places[first][0], places[last][1])
            cut.append(_cut(text, start, end, places))
        return cut


def _occurrences(folded: str, part: str) -> Iterator[tuple[int, int]]:
    at = folded.find(part)
    left = _MOST_HITS
    while at >= 0 and left:
        yield at, at + len(part)
        left -= 1
        at = folded.find(part, at + len(part))


def _shared(word: str, kept: str) -> str:
    """Return the letters that a word and its stem start with, at least three of them where there are three."""
    length = 0
    while length < min(len(word), len(kept)) and word[length] == kept[length]:
        length += 1
    return word[: max(length, min(3, len(word)))]


def windows(folded: str, places: list[tuple[int, int]]) -> Iterator[tuple[int, int, int, int]]:
    """Yield the window of hits that starts at each: (how poor it is, where, first hit, last hit).

    Each hit enters and leaves once. Counted anew for each window, a query of every letter of the alphabet, which finds
    thousands of hits in any text, took a third of a second for one result.
    """
    inside: Counter[str] = Counter()
    end = 0
    for at, (start, stop) in enumerate(places):
        while end < len(places) and (end <= at or places[end][1] - start <= _PASSAGE):
            inside[folded[slice(*places[end])]] += 1
            end += 1
        yield -len(inside), start, at, end - 1
        hit = folded[start:stop]
        inside[hit] -= 1
        if not inside[hit]:
            del inside[hit]


def _bounds(text: str, first: int, last: int) -> tuple[int, int]:
    """Return the bounds of a passage around its hits, cut between words and inside its paragraph where possible."""
    room = max(_PASSAGE - (last - first), 40)
    start, end = max(0, first - room // 2), min(len(text), last + room // 2)
    line = text.rfind("\n", start, first)
    if line >= 0:
        start = line + 1
    elif start > 0:
        blank = text.find(" ", start, first)
        start = blank + 1 if blank >= 0 else start
    line = text.find("\n", last, end)
    if line >= 0:
        end = line
    elif end < len(text):
        blank = text.rfind(" ", last, end)
        end = blank if blank >= 0 else end
    return start, end


def _cut(text: str, start: int, end: int, places: list[tuple[int, int]]) -> list[Piece]:
    found: list[Piece] = []
    at = start
    for first, last in places:
        if first < at or last > end:
            if first >= end:
                break
            continue
        if first > at:
            found.append(Piece(text[at:first], False))
        found.append(Piece(text[first:last], True))
        at = last
    if at < end:
        found.append(Piece(text[at:end], False))
    return found
