"""Selects the best passage of a text: most of the words near each other, in whole sentences if they fit.

Lines with hits are scored by their words of the query (rare words count more, exact forms more than stems),
their proximity, and the kind of line: prose before lists, navigation and code; lines below a heading or a term
that matches come first, the title and headings themselves only if there is nothing else. Expensive checks are
limited to the few best lines, and to the text around their hits.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from heapq import nlargest
from typing import Final, NamedTuple

from holdfast.search.sentences import cut_end, cut_start, is_whole, sentence_ends

PASSAGE_CHARS: Final = 240
"""Limit of one passage, ellipses included."""
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
_HEADING: Final = 200
_LEAST: Final = 20
# A sentence that starts with a word of the query is about it.
_OPENING: Final = 25
# A name that is explained stands no further on in its line.
_NAME: Final = 40
# Signs of code and of signatures; opening brackets stand for both.
_SYMBOLS: Final = "(=_{|"
_STOPS: Final = (". ", "? ", "! ", ", ", "。", "、", "，", "؟", "، ", "। ")

# How the parts of a score weigh, found by looking at results of two manuals and with bench/snippets.py: the share of
# the query decides, then nearness, then the kind of line.
_HELD: Final = 6.0
_NEARNESS: Final = 1.0
_LONGER: Final = 0.4
_PROSE: Final = 1.0
_BELOW: Final = 0.8
_REPEATED: Final = 3.0
_MISSED: Final = 0.15
_LATE: Final = 0.7
_EARLY: Final = 2_000
_OPENS: Final = 0.3


PART, STEM, FOLDED, TYPED = range(4)
"""Quality of a hit: part of another name, the same stem, the same except accents and case, exactly as typed."""

Found = tuple[int, int, int, int]
"""A hit: start, end, its words of the query as a set of bits, and its quality. A plain tuple: there are many."""


class Weights(dict[int, float]):
    def __init__(self, values: Sequence[float]) -> None:
        super().__init__()
        total = sum(values) or 1.0
        self.shares = [value / total for value in values]

    def __missing__(self, words: int) -> float:
        found = self[words] = sum(self.shares[at] for at in _bits(words))
        return found


@lru_cache(maxsize=4096)
def _bits(words: int) -> tuple[int, ...]:
    return tuple(at for at in range(words.bit_length()) if words >> at & 1)


# What a level adds to the share of a word, so that of two equal passages the exact one is shown.
_EXACTNESS: Final = (0.75, 0.92, 0.99, 1.0)


class SearchedText(NamedTuple):
    """A text, and the title and headings shown beside its passages."""

    text: str
    title: str = ""
    headings: str = ""
    """One per line."""


Span = tuple[int, int]
Passage = list[str | Span]


class _Candidate(NamedTuple):
    score: float
    order: int
    first: int
    last: int
    line: Span
    mask: int
    below: Span | None = None


def chosen(source: SearchedText, found: Sequence[Found], weights: Weights, most: int) -> list[Passage]:
    lines = _candidates(source.text, found, weights)
    close = _best(lines.values(), _CLOSE + most) if len(lines) > 1 else list(lines.values())
    if most == 1:
        best = _judged(source, close[0], lines, weights)
        for other in close[1:]:
            # Most lines cannot become the best one, whatever kind they are.
            if _at_best(source.text, other, lines) > best.score:
                best = max(best, _judged(source, other, lines, weights))
        second = _missing(source, best, close, weights)
        if second is not None:
            return [_both(source.text, best, _judged(source, second, lines, weights)) or _passage(source.text, best)]
        return [_passage(source.text, best)]
    shown: list[Passage] = []
    for one in sorted((_judged(source, other, lines, weights) for other in close), reverse=True):
        passage = _passage(source.text, one)
        if not any(_overlap(passage, other) or _same(source.text, passage, other) for other in shown):
            shown.append(passage)
        if len(shown) == most:
            break
    return shown


def _best(candidates: Collection[_Candidate], most: int) -> list[_Candidate]:
    # A heap pays where there are many: most texts have a few.
    return sorted(candidates, reverse=True) if len(candidates) <= most else nlargest(most, candidates)


def _at_best(text: str, found: _Candidate, lines: Mapping[int, _Candidate]) -> float:
    first, line = found.first, found.line
    score = found.score + _PROSE - _LATE * first / (first + _EARLY)
    if _line_above(lines, text, line) is not None:
        score += _BELOW
    if line[1] - line[0] < _SHORT and first - line[0] < _NAME:
        score += 2 * _BELOW
    return score + (_OPENS if first - line[0] < _OPENING else 0.0)


def snippet_bounds(text: str) -> Passage:
    return _fitted(text, (0, len(text)), 0, 0, PASSAGE_CHARS)


def _candidates(text: str, found: Sequence[Found], weights: Weights) -> dict[int, _Candidate]:
    best: dict[int, _Candidate] = {}
    at = 0
    end = -1
    while at < len(found):
        first, last, mask, level = found[at]
        start = text.rfind("\n", end + 1, first) + 1 or end + 1
        # A compound that was written with a blank may reach over the end of its line.
        end = text.find("\n", last)
        end = len(text) if end < 0 else end
        after = at + 1
        while after < len(found) and found[after][0] < end:
            after += 1
        if after == at + 1:
            score = _HELD * weights[mask] * _EXACTNESS[level] + _NEARNESS
            score += _LONGER if end - start >= _SENTENCE else 0.0
            best[start] = _Candidate(score, -first, first, last, (start, end), mask)
        else:
            _add_windows(best, found[at:after], (start, end), weights)
        at = after
    for place, one in best.items():
        # A term and what explains it are shown together.
        below = best.get(one.line[1] + 1)
        if below is None:
            continue
        room = PASSAGE_CHARS - (one.line[1] - one.line[0]) - len(_JOIN) - 1
        if room > PASSAGE_CHARS - _SHORT and below.last - below.line[0] < room and not _is_closed(text, one.line):
            both = one.mask | below.mask
            more = weights[both] - weights[one.mask]
            score = one.score + 0.9 * _HELD * more
            best[place] = _Candidate(score, one.order, one.first, one.last, one.line, both)
    return best


def _add_windows(best: dict[int, _Candidate], hits: Sequence[Found], line: Span, weights: Weights) -> None:
    """Record the best windows of a line; each hit enters and leaves once, so the time is linear."""
    shares, counts, worth = weights.shares, [0] * len(weights.shares), [0.0] * len(weights.shares)
    extra = _LONGER if line[1] - line[0] >= _SENTENCE else 0.0
    held, mask, left = 0.0, 0, 0
    for at, (_, last, words, level) in enumerate(hits):
        for index in _bits(words):
            counts[index] += 1
            share = shares[index] * _EXACTNESS[level]
            if share > worth[index]:
                held += share - worth[index]
                worth[index] = share
        mask |= words
        # Hits that a later one repeats, and those too far away, leave at the left.
        while left < at:
            gone = _bits(hits[left][2])
            if last - hits[left][0] <= _WINDOW and not all(counts[index] > 1 for index in gone):
                break
            for index in gone:
                counts[index] -= 1
                if not counts[index]:
                    mask &= ~(1 << index)
                    held -= worth[index]
                    worth[index] = 0.0
            left += 1
        first = hits[left][0]
        near = 1.0 - min(1.0, (last - first) / _WINDOW) if left < at else 1.0
        score = _HELD * held + _NEARNESS * near + extra
        place = line[0] + (first - line[0]) // PASSAGE_CHARS * PASSAGE_CHARS
        known = best.get(place)
        if known is None or score > known.score:
            best[place] = _Candidate(score, -first, first, last, line, mask)


def _judged(source: SearchedText, found: _Candidate, lines: Mapping[int, _Candidate], weights: Weights) -> _Candidate:
    text, line, hits = source.text, found.line, (found.first, found.last)
    kind = _kind(text, line, hits)
    # Early in the page on ties, and where it is near to one: what a page is about it says first.
    score = found.score + kind - _LATE * found.first / (found.first + _EARLY)
    if kind == _PROSE and found.first - line[0] < _OPENING:
        score += _OPENS
    if _is_repeated(source, line):
        score -= _REPEATED
    elif (above := _line_above(lines, text, line)) is not None and _is_repeated(source, above.line):
        score += _BELOW * weights[above.mask]
    below = None
    if line[1] - line[0] < _SHORT and not _is_closed(text, line):
        below = _line_after(text, line)
        if below is not None and _is_repeated(source, below):
            below = None
        elif below is not None and below[1] - below[0] >= _LEAST:
            explains = _kind(text, below, below)
            if explains < 0:
                below = None
            elif _names(text, line, hits):
                # A term is worth what explains it.
                score += max(0.0, explains - kind) + 2 * _BELOW
            else:
                score += max(0.0, explains / 2 - kind)
    return _Candidate(score, found.order, found.first, found.last, line, found.mask, below)


def _passage(text: str, found: _Candidate, room: int = PASSAGE_CHARS) -> Passage:
    line, below = _unmarked(text, found.line), found.below
    rest = room - (line[1] - line[0]) - len(_JOIN)
    if below is None or rest < _LEAST:
        return _fitted(text, found.line, found.first, found.last, room)
    return [line, _JOIN, *_fitted(text, below, below[0], below[0], rest)]


def _is_closed(text: str, line: Span) -> bool:
    return is_whole(text, *line) or (text[line[1] - 1] == ":" and line[1] - line[0] >= _SENTENCE)


def _names(text: str, line: Span, hits: Span) -> bool:
    after = text[hits[1] : hits[1] + 2]
    if (after[:1] in ("_", ".") and after[1:].isalnum()) or text[hits[0] - 1] == "_":
        return False
    # A line of code or of a grammar uses a name; it does not explain it.
    if any(map(text[line[0] : hits[0]].__contains__, "=|>#$")):
        return False
    bracket = text.find("(", hits[1], line[1])
    end = line[1] if bracket < 0 else bracket
    return end - hits[1] < 3 and hits[0] - line[0] < _NAME


def _kind(text: str, line: Span, hits: Span) -> float:
    start, end = max(line[0], hits[0] - 100), min(line[1], hits[1] + 100)
    around = text[start:end]
    if len(around) < _LEAST:
        return -0.3
    if sum(map(around.count, _SYMBOLS)) > 0.05 * len(around):
        return -0.5
    kind = _PROSE if is_whole(text, *line) or any(map(around.__contains__, _STOPS)) else 0.3
    return kind if len(around) >= _SENTENCE else kind / 2


def _is_repeated(source: SearchedText, line: Span) -> bool:
    text, title, headings = source
    if line[1] - line[0] > _HEADING:
        return False
    said = text[line[0] : line[1]].rstrip("¶ ")
    return said in title or f"\n{said}" in f"\n{headings}"


def _unmarked(text: str, line: Span) -> Span:
    start, end = line
    while end > start and (text[end - 1] == "¶" or text[end - 1].isspace()):
        end -= 1
    return start, end


def _line_above(lines: Mapping[int, _Candidate], text: str, line: Span) -> _Candidate | None:
    return lines.get(text.rfind("\n", 0, line[0] - 1) + 1) if line[0] else None


def _line_after(text: str, line: Span) -> Span | None:
    start = line[1] + 1
    if start >= len(text):
        return None
    end = text.find("\n", start)
    return start, len(text) if end < 0 else end


# Half of a passage, where it is made of two places.
_HALF: Final = (PASSAGE_CHARS - len(_GAP)) // 2


def _missing(
    source: SearchedText, best: _Candidate, close: Sequence[_Candidate], weights: Weights
) -> _Candidate | None:
    least, found = _MISSED, None
    if weights[best.mask] > 1 - _MISSED or best.last - best.first >= _HALF - 2:
        return None
    for other in close:
        more = weights[other.mask & ~best.mask]
        if more > least and other.last - other.first < _HALF - 2 and not _is_repeated(source, other.line):
            least, found = more, other
    return found


def _both(text: str, best: _Candidate, second: _Candidate) -> Passage | None:
    one, two = (_passage(text, found, _HALF) for found in sorted((best, second), key=lambda found: found.first))
    if _overlap(one, two):
        return None
    # One ellipsis between them is enough.
    one = one[:-1] if one[-1] == _MORE else one
    two = two[1:] if two[0] == _MORE else two
    return [*one, _GAP, *two]


def _fitted(text: str, line: Span, first: int, last: int, room: int) -> Passage:
    line = line[0], max(last, _unmarked(text, line)[1])
    if line[1] - line[0] <= room:
        return [line]
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
        return [(start, end)]
    if start is not None and last - start < room:
        return [(start, cut_end(text, last, start + room - 1)), _MORE]
    if end is not None and end - first < room:
        return [_MORE, (cut_start(text, end - room + 1, first), end)]
    start = cut_start(text, max(low, first - (room - 2 - (last - first)) // 3), first)
    return [_MORE, (start, cut_end(text, min(last, start + room - 2), start + room - 2)), _MORE]


def _overlap(one: Passage, other: Passage) -> bool:
    spans = [part for part in one if not isinstance(part, str)]
    return any(a < d and c < b for a, b in spans for part in other if not isinstance(part, str) for c, d in [part])


def _same(text: str, one: Passage, other: Passage) -> bool:
    return [text[slice(*p)] for p in one if not isinstance(p, str)] == [
        text[slice(*p)] for p in other if not isinstance(p, str)
    ]
