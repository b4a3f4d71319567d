"""Alignment of two sequences: exact where affordable, by landmarks otherwise.

Pure: the work is limited by counting it, never by a clock, so that a diff is the same on every machine.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Hashable, Iterator, Sequence
from enum import StrEnum
from typing import NamedTuple

from rapidfuzz import fuzz
from rapidfuzz.distance import Indel

from holdfast.records import Public, record

MAX_CELLS = 100_000_000
"""Largest table of one exact alignment: 10,000 by 10,000 lines take 31 ms and 13 MB."""


class AlignedRun(NamedTuple):
    same: bool
    a_start: int
    a_end: int
    b_start: int
    b_end: int


def align(a: Sequence[Hashable], b: Sequence[Hashable], *, max_cells: int = MAX_CELLS) -> list[AlignedRun]:
    """Return alternating equal and different runs that cover both sequences in order.

    Beyond `max_cells`, items that occur once in both sequences serve as landmarks; a gap without landmarks is one
    different run.
    """
    # Two versions mostly share both ends: fill the table for the middle only.
    head = common_head(a, b)
    tail = common_tail(a, b, head)
    pieces = [AlignedRun(True, 0, head, 0, head)]
    pieces += _between(a, b, AlignedRun(False, head, len(a) - tail, head, len(b) - tail), max_cells)
    pieces.append(AlignedRun(True, len(a) - tail, len(a), len(b) - tail, len(b)))
    return list(_merged(pieces))


def common_head(a: Sequence[Hashable], b: Sequence[Hashable]) -> int:
    count = 0
    for left, right in zip(a, b, strict=False):
        if left != right:
            break
        count += 1
    return count


def common_tail(a: Sequence[Hashable], b: Sequence[Hashable], head: int) -> int:
    """Return the length of the common suffix, not counting the first `head` items."""
    count, most = 0, min(len(a), len(b)) - head
    while count < most and a[-1 - count] == b[-1 - count]:
        count += 1
    return count


def _between(a: Sequence[Hashable], b: Sequence[Hashable], gap: AlignedRun, max_cells: int) -> Iterator[AlignedRun]:
    if _cells(gap) <= max_cells:
        yield from _exact(a, b, gap)
        return
    left, right, spent = gap.a_start, gap.b_start, 0
    for mark_a, mark_b in [*_landmarks(a, b, gap), (gap.a_end, gap.b_end)]:
        inner = AlignedRun(False, left, mark_a, right, mark_b)
        # All gaps share one budget: ten thousand small tables cost as much as one large.
        if spent + _cells(inner) <= max_cells:
            spent += _cells(inner)
            yield from _exact(a, b, inner)
        else:
            yield inner
        if mark_a < gap.a_end:
            yield AlignedRun(True, mark_a, mark_a + 1, mark_b, mark_b + 1)
        left, right = mark_a + 1, mark_b + 1


def _cells(gap: AlignedRun) -> int:
    return (gap.a_end - gap.a_start) * (gap.b_end - gap.b_start)


def _exact(a: Sequence[Hashable], b: Sequence[Hashable], gap: AlignedRun) -> Iterator[AlignedRun]:
    if not _cells(gap):
        yield gap
        return
    for op in Indel.opcodes(a[gap.a_start : gap.a_end], b[gap.b_start : gap.b_end]):
        yield AlignedRun(
            op.tag == "equal",
            op.src_start + gap.a_start,
            op.src_end + gap.a_start,
            op.dest_start + gap.b_start,
            op.dest_end + gap.b_start,
        )


def _landmarks(a: Sequence[Hashable], b: Sequence[Hashable], gap: AlignedRun) -> list[tuple[int, int]]:
    """Return the longest increasing chain of positions whose items occur exactly once on both sides of a gap."""
    once_a, once_b = _once(a, gap.a_start, gap.a_end), _once(b, gap.b_start, gap.b_end)
    pairs = sorted((at, once_b[item]) for item, at in once_a.items() if item in once_b)
    tops: list[int] = []
    """The lowest place in b at which a chain of each length ends."""
    ends: list[int] = []
    before: list[int] = []
    for number, (_, place) in enumerate(pairs):
        length = bisect_left(tops, place)
        before.append(ends[length - 1] if length else -1)
        # Patience sorting: finds the longest increasing chain in O(n log n).
        tops[length : length + 1] = [place]
        ends[length : length + 1] = [number]
    chain, at = [], ends[-1] if ends else -1
    while at >= 0:
        chain.append(pairs[at])
        at = before[at]
    return chain[::-1]


def _once(items: Sequence[Hashable], start: int, end: int) -> dict[Hashable, int]:
    places: dict[Hashable, int] = {}
    for at in range(start, end):
        places[items[at]] = at if items[at] not in places else -1
    return {item: at for item, at in places.items() if at >= 0}


def _merged(pieces: list[AlignedRun]) -> Iterator[AlignedRun]:
    held: AlignedRun | None = None
    for piece in pieces:
        if piece.a_start == piece.a_end and piece.b_start == piece.b_end:
            continue
        if held is not None and held.same == piece.same:
            held = AlignedRun(held.same, held.a_start, piece.a_end, held.b_start, piece.b_end)
            continue
        if held is not None:
            yield held
        held = piece
    if held is not None:
        yield held


# 2,000 by 2,000 words, 1.5 ms; of longer lines only the shared ends count as equal.
_MAX_CELLS = 4_000_000
# Two lines longer than this together are not split into words: only their shared ends count as equal.
_MAX_CHARS = 200_000
MAX_COMPARED_CHARS = 500_000
"""Characters that one comparison splits into words; beyond that, only common prefixes and suffixes are matched."""
# Limit of line pairs compared in a rewritten block: 40 by 40.
_MAX_PAIRINGS = 1_600
_COMPARED_CHARS = 400
# Similarity in percent above which a new line is an old one rewritten: at 45, a sentence with half its words replaced
# counts, and two sentences that share only function words do not.
_ALIKE = 45.0

# Scripts without spaces between words are compared by character; others by word, space and punctuation mark.
_UNSPACED = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_TOKEN = re.compile(rf"[^\W{_UNSPACED}]+|\s+|.", re.DOTALL)


class PartKind(StrEnum):
    SAME = "same"
    REMOVED = "removed"
    ADDED = "added"


@record
class DiffPart:
    """A piece of a line."""

    type: Public[str]
    """same, removed or added."""
    text: Public[str]


class WordBudget:
    """Limit on the characters one comparison splits into words: counted, so that a diff is the same on every
    machine.
    """

    __slots__ = ("_left",)

    def __init__(self, chars: int = MAX_COMPARED_CHARS) -> None:
        self._left = chars

    def take(self, chars: int) -> bool:
        """Charge the length of two lines to the budget; return False if it does not fit."""
        if chars > min(self._left, _MAX_CHARS):
            return False
        self._left -= chars
        return True


def diff_words(old: str, new: str, budget: WordBudget | None = None) -> tuple[DiffPart, ...]:
    """Return the parts of both lines in reading order; a single space between two changes belongs to the change.

    If the budget is used up, only the common prefix and suffix count as the same.
    """
    if not (budget or WordBudget()).take(len(old) + len(new)):
        return _ends(old, new)
    a, b = _TOKEN.findall(old), _TOKEN.findall(new)
    parts: list[DiffPart] = []
    runs = align(a, b, max_cells=_MAX_CELLS)
    removed, added = "", ""
    for number, run in enumerate(runs):
        text = "".join(a[run.a_start : run.a_end])
        # A single space between two changed words would split one change into two.
        if run.same and not (text.isspace() and 0 < number < len(runs) - 1):
            parts += _pending(removed, added)
            parts.append(DiffPart(type=PartKind.SAME, text=text))
            removed, added = "", ""
        else:
            removed += text
            added += "".join(b[run.b_start : run.b_end])
    return (*parts, *_pending(removed, added))


def _ends(old: str, new: str) -> tuple[DiffPart, ...]:
    head = common_head(old, new)
    tail = common_tail(old, new, head)
    middle = _pending(old[head : len(old) - tail], new[head : len(new) - tail])
    parts = [
        DiffPart(type=PartKind.SAME, text=old[:head]),
        *middle,
        DiffPart(type=PartKind.SAME, text=old[len(old) - tail :]),
    ]
    return tuple(part for part in parts if part.text)


def _pending(removed: str, added: str) -> list[DiffPart]:
    parts = [DiffPart(type=PartKind.REMOVED, text=removed), DiffPart(type=PartKind.ADDED, text=added)]
    return [part for part in parts if part.text]


def pair_lines(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int]]:
    """Return pairs of lines of a rewritten block that are versions of each other, in order, each line at most once."""
    # The pairing with the greatest similarity wins; a block too large for that is paired line by line from its start:
    # comparing every line with every other takes minutes for 10,000 changed lines.
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
    return max(0.0, fuzz.ratio(old[:_COMPARED_CHARS], new[:_COMPARED_CHARS]) - _ALIKE)
