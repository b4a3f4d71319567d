"""Which passage of a text answers: the one with most of the words near each other, whole sentences where they fit.

Lines with hits are compared by what they hold of the query (rare words count more, exact forms more than stems), how
near it stands together, and what kind of line it is: prose before lists, navigation and code; first what stands below
a heading or a term that was asked for; the title and headings themselves only if there is nothing else. What costs
more than a look is worked out for the few best lines alone, and only around their hits.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from heapq import nlargest
from typing import Final, NamedTuple

from holdfast.search.sentences import cut_end, cut_start, is_whole, sentence_ends

PASSAGE_CHARS: Final = 240
"""Of one passage, ellipses included."""
MAX_PASSAGES: Final = 5
_MORE: Final = "…"
_GAP: Final = " … "
_JOIN: Final = " · "
# Hits that are further apart than this do not fit into one passage with something around them.
_WINDOW: Final = 200
# Lines that are looked at closely.
_CLOSE: Final = 12
# A line below this is a term, a heading, a cell or an item: what follows it explains it.
_SHORT: Final = 150
_SENTENCE: Final = 60
_LEAST: Final = 20
# A sentence that begins with what was asked for is about it.
_OPENING: Final = 25
_SYMBOLS: Final = "(){}[]<>=|_;\\/*&$#@`~^+"
_STOPS: Final = (". ", "? ", "! ", ", ", "。", "、", "，", "؟", "، ", "। ")

# How the parts of a score weigh, found by looking at results of two manuals and with bench/snippets.py: what is held of
# the query decides, then nearness, then the kind of line.
_HELD: Final = 6.0
_NEARNESS: Final = 1.0
_PROSE: Final = 1.0
_BELOW: Final = 0.8
_REPEATED: Final = 3.0
_MISSED: Final = 0.15
_LATE: Final = 0.7
_EARLY: Final = 2_000
_OPENS: Final = 0.3


class Level(IntEnum):
    """How nearly a hit is what was typed."""

    PART = 0
    STEM = 1
    FOLDED = 2
    TYPED = 3


class Found(NamedTuple):
    """A hit: where it stands, which words of the query it answers, and how exactly."""

    start: int
    end: int
    indexes: tuple[int, ...]
    level: Level


class Weights:
    """How much each word of a query tells, as shares of the whole."""

    def __init__(self, values: Sequence[float]) -> None:
        total = sum(values) or 1.0
        self.shares = [value / total for value in values]
        self._held: dict[int, float] = {}

    def held(self, mask: int) -> float:
        """Return the share of the query that a set of words makes up."""
        found = self._held.get(mask)
        if found is None:
            found = self._held[mask] = sum(s for at, s in enumerate(self.shares) if mask >> at & 1)
        return found


# What a level adds to the share of a word, so that of two equal passages the exact one is shown.
_EXACTNESS: Final = (0.75, 0.92, 0.99, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A text, and what is shown beside its passages."""

    text: str
    title: str = ""
    headings: str = ""


Span = tuple[int, int]
Passage = list[str | Span]
"""Spans of the text, and what is put between them."""


class _Candidate(NamedTuple):
    """A window of hits in a line."""

    score: float
    order: int
    """Less for what stands further on: of two equal ones the first is shown."""
    first: int
    last: int
    line: Span
    mask: int


def chosen(source: Source, found: Sequence[Found], weights: Weights, most: int) -> list[Passage]:
    """Return the best passages, the best one first, none twice; hits are given in order."""
    judged = []
    lines = _candidates(source.text, found, weights)
    for candidate in nlargest(_CLOSE + most, lines.values()):
        score, passage = _judged(source, candidate, lines, weights)
        judged.append((candidate.score + score, candidate.order, candidate, passage))
    judged.sort(key=lambda one: one[:2], reverse=True)
    shown: list[tuple[_Candidate, Passage]] = []
    for _, _, candidate, passage in judged:
        if len(shown) == most:
            break
        if not any(_overlap(passage, other) or _same(source.text, passage, other) for _, other in shown):
            shown.append((candidate, passage))
    if most == 1 and len(judged) > 1:
        best = shown[0][0]
        rest = [one[2] for one in judged[1:]]
        return [_with_missing(source.text, best, rest, weights) or shown[0][1]]
    return [passage for _, passage in shown]


def snippet_bounds(text: str) -> Passage:
    """Return the start of a text as a passage."""
    return _marked(_fitted(text, (0, len(text)), 0, 0, PASSAGE_CHARS))


def _candidates(text: str, found: Sequence[Found], weights: Weights) -> dict[int, _Candidate]:
    """Return the best window of every line with hits by where it begins; of a long line one for each stretch of it."""
    best: dict[int, _Candidate] = {}
    at = 0
    end = -1
    while at < len(found):
        start = text.rfind("\n", end + 1 if end >= 0 else 0, found[at].start) + 1 or end + 1
        # A hit that was typed with a blank may reach over the end of its line.
        end = text.find("\n", found[at].end)
        end = len(text) if end < 0 else end
        after = at + 1
        while after < len(found) and found[after].start < end:
            after += 1
        _add_windows(best, found[at:after], (start, end), weights)
        at = after
    for place, one in best.items():
        # A term and what explains it are shown together.
        room = PASSAGE_CHARS - (one.line[1] - one.line[0]) - len(_JOIN) - 1
        below = best.get(one.line[1] + 1) if room > PASSAGE_CHARS - _SHORT else None
        if below is not None and below.last - below.line[0] < room:
            both = one.mask | below.mask
            more = weights.held(both) - weights.held(one.mask)
            best[place] = one._replace(score=one.score + 0.9 * _HELD * more, mask=both)
    return best


def _add_windows(best: dict[int, _Candidate], hits: Sequence[Found], line: Span, weights: Weights) -> None:
    """Note the best windows of a line; each hit enters and leaves once, however many there are."""
    shares, counts, worth = weights.shares, [0] * len(weights.shares), [0.0] * len(weights.shares)
    extra = 0.4 if line[1] - line[0] >= _SENTENCE else 0.0
    held, mask, left = 0.0, 0, 0
    for hit in hits:
        for index in hit.indexes:
            counts[index] += 1
            mask |= 1 << index
            share = shares[index] * _EXACTNESS[hit.level]
            if share > worth[index]:
                held += share - worth[index]
                worth[index] = share
        # What is said again further on, and what is too far away, leaves at the left.
        while hits[left] is not hit and (
            hit.end - hits[left].start > _WINDOW or all(counts[index] > 1 for index in hits[left].indexes)
        ):
            for index in hits[left].indexes:
                counts[index] -= 1
                if not counts[index]:
                    mask &= ~(1 << index)
                    held -= worth[index]
                    worth[index] = 0.0
            left += 1
        first = hits[left].start
        near = 1.0 if left == 0 and hits[0] is hit else 1.0 - min(1.0, (hit.end - first) / _WINDOW)
        score = _HELD * held + _NEARNESS * near + extra
        place = line[0] + (first - line[0]) // PASSAGE_CHARS * PASSAGE_CHARS
        known = best.get(place)
        if known is None or score > known.score:
            best[place] = _Candidate(score, -first, first, hit.end, line, mask)


def _judged(
    source: Source, candidate: _Candidate, lines: Mapping[int, _Candidate], weights: Weights
) -> tuple[float, Passage]:
    """Return what the kind of its line adds to a candidate's score, and the passage that it makes."""
    text, line = source.text, candidate.line
    kind = _kind(text, line, (candidate.first, candidate.last))
    # Early in the page on ties, and where it is near to one: what a page is about it says first.
    score = kind - _LATE * candidate.first / (candidate.first + _EARLY)
    if kind == _PROSE and candidate.first - line[0] < _OPENING:
        score += _OPENS
    follows = _line_after(text, line)
    if _is_repeated(source, line):
        score -= _REPEATED
    elif (above := lines.get(text.rfind("\n", 0, max(0, line[0] - 1)) + 1)) is not None and above.line[1] < line[0]:
        if _is_repeated(source, above.line):
            score += _BELOW * weights.held(above.mask) + 3 * weights.held(above.mask & ~candidate.mask)
    if line[1] - line[0] < _SHORT and follows is not None and not _is_closed(text, line):
        if not _is_repeated(source, follows):
            line = _unmarked(text, line)
            rest = _fitted(text, follows, follows[0], follows[0], PASSAGE_CHARS - (line[1] - line[0]) - len(_JOIN))
            if follows[1] - follows[0] >= _LEAST:
                score = max(score, score - kind + _kind(text, follows, follows)) + _BELOW
                if _names(text, line, candidate):
                    score += _BELOW
            return score, [line, _JOIN, *_marked(rest)]
    return score, _marked(_fitted(text, line, candidate.first, candidate.last, PASSAGE_CHARS))


def _is_closed(text: str, line: Span) -> bool:
    """Return whether a line is whole as it is: a sentence, or one that leads to a list or an example."""
    return is_whole(text, *line) or (text[line[1] - 1] == ":" and line[1] - line[0] >= _SENTENCE)


def _names(text: str, line: Span, candidate: _Candidate) -> bool:
    """Return whether a line is the name that was asked for, not a longer one, and hardly more: a term to explain."""
    after = text[candidate.last : candidate.last + 2]
    if (after[:1] in ("_", ".") and after[1:].isalnum()) or text[candidate.first - 1] == "_":
        return False
    bracket = text.find("(", candidate.last, line[1])
    end = line[1] if bracket < 0 else bracket
    return end - candidate.last < 3 and candidate.first - line[0] < 40


def _kind(text: str, line: Span, hits: Span) -> float:
    """Return how much like prose a line is around its hits, below 0 for code."""
    start, end = max(line[0], hits[0] - 100), min(line[1], hits[1] + 100)
    around = text[start:end]
    if len(around) < _LEAST:
        return -0.3
    if sum(map(around.count, _SYMBOLS)) > 0.1 * len(around):
        return -0.5
    kind = _PROSE if is_whole(text, *line) or any(map(around.__contains__, _STOPS)) else 0.3
    return kind if len(around) >= _SENTENCE else kind / 2


def _is_repeated(source: Source, line: Span) -> bool:
    """Return whether a line is the title or a heading, which is shown or said elsewhere."""
    said = source.text[line[0] : min(line[1], line[0] + 301)].rstrip("¶ ")
    return said in source.title or f"\n{said}" in f"\n{source.headings}"


def _unmarked(text: str, line: Span) -> Span:
    """Return a line without the sign that many manuals put behind what can be linked to."""
    return line[0], line[1] - (text[line[1] - 1 : line[1]] == "¶")


def _line_after(text: str, line: Span) -> Span | None:
    start = line[1] + 1
    if start >= len(text):
        return None
    end = text.find("\n", start)
    return start, len(text) if end < 0 else end


def _with_missing(text: str, best: _Candidate, others: Iterable[_Candidate], weights: Weights) -> Passage | None:
    """Return two short passages as one where the second holds words that the best one has not; None if none does."""
    room = (PASSAGE_CHARS - len(_GAP)) // 2
    least, found = _MISSED, None
    for other in others:
        more = weights.held(other.mask & ~best.mask)
        if more > least and max(other.last - other.first, best.last - best.first) < room - 2:
            least, found = more, other
    if found is None:
        return None
    one, two = (_fitted(text, c.line, c.first, c.last, room) for c in sorted((best, found), key=lambda c: c.first))
    if one.end > two.start:
        return None
    passage: Passage = [(one.start, one.end), _GAP, (two.start, two.end)]
    return [*([_MORE] if one.cut_before else []), *passage, *([_MORE] if two.cut_after else [])]


class _Fit(NamedTuple):
    """Bounds of a passage, and whether it was cut at its start and end."""

    start: int
    end: int
    cut_before: bool
    cut_after: bool


def _marked(fit: _Fit) -> Passage:
    passage: Passage = [(fit.start, fit.end)]
    if fit.cut_before:
        passage.insert(0, _MORE)
    if fit.cut_after:
        passage.append(_MORE)
    return passage


def _fitted(text: str, line: Span, first: int, last: int, room: int) -> _Fit:
    """Return the sentences of a line that hold two places, as many as there is room for; cut where one is longer."""
    line = _unmarked(text, line) if line[1] > last else line
    if line[1] - line[0] <= room:
        return _Fit(*line, False, False)
    low, high = max(line[0], first - room), min(line[1], last + room)
    start: int | None = line[0] if low == line[0] else None
    end: int | None = None
    for at in sentence_ends(text, low, high, line[1]):
        if at <= first:
            start = at
        elif at >= last:
            if start is not None and at - start > room:
                break
            end = at
            if start is None:
                break
    if start is not None:
        while start < first and text[start].isspace():
            start += 1
    if start is not None and end is not None and end - start <= room:
        return _Fit(start, end, False, False)
    if start is not None and last - start < room:
        return _Fit(start, cut_end(text, last, start + room - 1), False, True)
    if end is not None and end - first < room:
        return _Fit(cut_start(text, end - room + 1, first), end, True, False)
    start = cut_start(text, max(low, first - (room - 2 - (last - first)) // 3), first)
    return _Fit(start, cut_end(text, min(last, start + room - 2), start + room - 2), True, True)


def _overlap(one: Passage, other: Passage) -> bool:
    spans = [part for part in one if not isinstance(part, str)]
    return any(a < d and c < b for a, b in spans for part in other if not isinstance(part, str) for c, d in [part])


def _same(text: str, one: Passage, other: Passage) -> bool:
    """Return whether two passages say the same: a page repeats its notes."""
    return [text[slice(*p)] for p in one if not isinstance(p, str)] == [
        text[slice(*p)] for p in other if not isinstance(p, str)
    ]
