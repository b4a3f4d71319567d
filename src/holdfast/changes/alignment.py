"""Which items of two sequences belong together: exact where that is affordable, by landmarks where it is not.

Pure: the work is bounded by counting it, never by a clock, so that a diff is the same on every machine.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Hashable, Iterator, Sequence
from typing import NamedTuple

from rapidfuzz.distance import Indel

MAX_CELLS = 100_000_000
"""Largest table that one exact alignment fills: 10,000 by 10,000 lines take 31 ms and 13 MB."""


class Run(NamedTuple):
    """A stretch of both sequences: the same items, or what stands in one in place of what stands in the other."""

    same: bool
    a_start: int
    a_end: int
    b_start: int
    b_end: int


def align(a: Sequence[Hashable], b: Sequence[Hashable], *, max_cells: int = MAX_CELLS) -> list[Run]:
    """Return runs that cover both sequences in order, same and different ones in turn.

    Beyond `max_cells` items that occur once in both serve as landmarks, and what has none is one whole difference.
    """
    head = common_head(a, b)
    tail = common_tail(a, b, head)
    pieces = [Run(True, 0, head, 0, head)]
    pieces += _between(a, b, Run(False, head, len(a) - tail, head, len(b) - tail), max_cells)
    pieces.append(Run(True, len(a) - tail, len(a), len(b) - tail, len(b)))
    return list(_merged(pieces))


def common_head(a: Sequence[Hashable], b: Sequence[Hashable]) -> int:
    """Return how many items both begin with."""
    count = 0
    for left, right in zip(a, b, strict=False):
        if left != right:
            break
        count += 1
    return count


def common_tail(a: Sequence[Hashable], b: Sequence[Hashable], head: int) -> int:
    """Return how many items both end with, not counting the first `head`."""
    count, most = 0, min(len(a), len(b)) - head
    while count < most and a[-1 - count] == b[-1 - count]:
        count += 1
    return count


def _between(a: Sequence[Hashable], b: Sequence[Hashable], gap: Run, max_cells: int) -> Iterator[Run]:
    """Yield the runs of a gap; landmarks part it once, their gaps are exact or whole."""
    if _cells(gap) <= max_cells:
        yield from _exact(a, b, gap)
        return
    left, right, spent = gap.a_start, gap.b_start, 0
    for mark_a, mark_b in [*_landmarks(a, b, gap), (gap.a_end, gap.b_end)]:
        inner = Run(False, left, mark_a, right, mark_b)
        # All gaps share one budget: ten thousand small tables cost as much as one large.
        if spent + _cells(inner) <= max_cells:
            spent += _cells(inner)
            yield from _exact(a, b, inner)
        else:
            yield inner
        if mark_a < gap.a_end:
            yield Run(True, mark_a, mark_a + 1, mark_b, mark_b + 1)
        left, right = mark_a + 1, mark_b + 1


def _cells(gap: Run) -> int:
    return (gap.a_end - gap.a_start) * (gap.b_end - gap.b_start)


def _exact(a: Sequence[Hashable], b: Sequence[Hashable], gap: Run) -> Iterator[Run]:
    if not _cells(gap):
        yield gap
        return
    for op in Indel.opcodes(a[gap.a_start : gap.a_end], b[gap.b_start : gap.b_end]):
        yield Run(
            op.tag == "equal", op.src_start + gap.a_start, op.src_end + gap.a_start,
            op.dest_start + gap.b_start, op.dest_end + gap.b_start,
        )  # fmt: skip


def _landmarks(a: Sequence[Hashable], b: Sequence[Hashable], gap: Run) -> list[tuple[int, int]]:
    """Return the longest rising chain of places whose items occur exactly once on both sides of a gap."""
    once_a, once_b = _once(a, gap.a_start, gap.a_end), _once(b, gap.b_start, gap.b_end)
    pairs = sorted((at, once_b[item]) for item, at in once_a.items() if item in once_b)
    tops: list[int] = []
    """The lowest place in b at which a chain of each length ends."""
    ends: list[int] = []
    before: list[int] = []
    for number, (_, place) in enumerate(pairs):
        length = bisect_left(tops, place)
        before.append(ends[length - 1] if length else -1)
        tops[length : length + 1] = [place]
        ends[length : length + 1] = [number]
    chain, at = [], ends[-1] if ends else -1
    while at >= 0:
        chain.append(pairs[at])
        at = before[at]
    return chain[::-1]


def _once(items: Sequence[Hashable], start: int, end: int) -> dict[Hashable, int]:
    """Return where each item stands that occurs once between two places."""
    places: dict[Hashable, int] = {}
    for at in range(start, end):
        places[items[at]] = at if items[at] not in places else -1
    return {item: at for item, at in places.items() if at >= 0}


def _merged(pieces: list[Run]) -> Iterator[Run]:
    """Yield runs with neighbours of one kind joined, and none that is empty on both sides."""
    held: Run | None = None
    for piece in pieces:
        if piece.a_start == piece.a_end and piece.b_start == piece.b_end:
            continue
        if held is not None and held.same == piece.same:
            held = Run(held.same, held.a_start, piece.a_end, held.b_start, piece.b_end)
            continue
        if held is not None:
            yield held
        held = piece
    if held is not None:
        yield held
