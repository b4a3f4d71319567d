"""What differs inside a line that was rewritten: parts that stayed, went and came, word by word.

Joined again, what stayed and went is the old line, and what stayed and came is the new one. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

from rapidfuzz import fuzz

from holdfast.changes.alignment import align, common_head, common_tail

_MAX_CELLS = 4_000_000
"""2,000 by 2,000 words, 1.5 ms; a longer line keeps what both ends share."""
_MAX_CHARS = 200_000
"""Lines longer than this together are not cut into words: only what their two ends share is the same."""
MAX_COMPARED_CHARS = 500_000
"""Characters of one comparison that are cut into words altogether; the rest keeps what its ends share."""
_MAX_PAIRINGS = 1_600
"""Lines of a rewritten block that are held against each other: 40 by 40."""
_COMPARED_CHARS = 400
_ALIKE = 45.0
"""Likeness in percent above which a new line is an old one rewritten; at 45 a sentence with half its words replaced is,
and two sentences that share only their function words are not."""

# Scripts without blanks between words are compared by character; all others by word, blank and mark.
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_TOKEN = re.compile(rf"[^\W{_UNSPACED}]+|\s+|.", re.DOTALL)


class PartKind(StrEnum):
    """What became of a piece of a line."""

    SAME = "same"
    REMOVED = "removed"
    ADDED = "added"


class Part(NamedTuple):
    """A piece of a line."""

    kind: PartKind
    text: str


class WordBudget:
    """How much one comparison may still cut into words: counted, so that a diff is the same on every machine."""

    __slots__ = ("_left",)

    def __init__(self, chars: int = MAX_COMPARED_CHARS) -> None:
        self._left = chars

    def take(self, chars: int) -> bool:
        """Count two lines; return whether there was room for them."""
        if chars > min(self._left, _MAX_CHARS):
            return False
        self._left -= chars
        return True


def diff_words(old: str, new: str, budget: WordBudget | None = None) -> tuple[Part, ...]:
    """Return the parts of both lines in reading order; a lone blank between two changes belongs to them.

    Without room in the budget, only what the two ends share is the same.
    """
    if not (budget or WordBudget()).take(len(old) + len(new)):
        return _ends(old, new)
    a, b = _TOKEN.findall(old), _TOKEN.findall(new)
    parts: list[Part] = []
    runs = align(a, b, max_cells=_MAX_CELLS)
    removed, added = "", ""
    for number, run in enumerate(runs):
        text = "".join(a[run.a_start : run.a_end])
        if run.same and not (text.isspace() and 0 < number < len(runs) - 1):
            parts += _pending(removed, added)
            parts.append(Part(PartKind.SAME, text))
            removed, added = "", ""
        else:
            removed += text
            added += "".join(b[run.b_start : run.b_end])
    return (*parts, *_pending(removed, added))


def _ends(old: str, new: str) -> tuple[Part, ...]:
    head = common_head(old, new)
    tail = common_tail(old, new, head)
    middle = _pending(old[head : len(old) - tail], new[head : len(new) - tail])
    parts = [Part(PartKind.SAME, old[:head]), *middle, Part(PartKind.SAME, old[len(old) - tail :])]
    return tuple(part for part in parts if part.text)


def _pending(removed: str, added: str) -> list[Part]:
    parts = [Part(PartKind.REMOVED, removed), Part(PartKind.ADDED, added)]
    return [part for part in parts if part.text]


def pair_lines(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int]]:
    """Return which lines of a rewritten block are versions of each other, in order and at most once each.

    The pairing with the greatest likeness wins; a block too large for that is paired line by line from its start.
    """
    if len(old) * len(new) > _MAX_PAIRINGS:
        pairs = [(at, at) for at in range(min(len(old), len(new), _MAX_PAIRINGS))]
        return [pair for pair in pairs if _likeness(old[pair[0]], new[pair[1]]) > 0]
    gain = [[_likeness(left, right) for right in new] for left in old]
    best = [[0.0] * (len(new) + 1) for _ in range(len(old) + 1)]
    for i in reversed(range(len(old))):
        for j in reversed(range(len(new))):
            best[i][j] = max(best[i + 1][j], best[i][j + 1], best[i + 1][j + 1] + gain[i][j])
    chosen, i, j = [], 0, 0
    while i < len(old) and j < len(new):
        if gain[i][j] > 0 and best[i][j] == best[i + 1][j + 1] + gain[i][j]:
            chosen.append((i, j))
            i, j = i + 1, j + 1
        elif best[i][j] == best[i + 1][j]:
            i += 1
        else:
            j += 1
    return chosen


def _likeness(old: str, new: str) -> float:
    """Return how alike two lines are above the threshold, by their first characters; 0 if they are not."""
    return max(0.0, fuzz.ratio(old[:_COMPARED_CHARS], new[:_COMPARED_CHARS]) - _ALIKE)
