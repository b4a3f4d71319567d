"""Compare two documents: sections, lines, words, and how much of the difference is noise. Pure and deterministic.

1. Both texts become lines (`read_text`); sections and lines are counted.
2. Lines are aligned; differences are shown in hunks with three lines of context, at most 400 lines in all.
3. Inside a hunk, rewritten lines are paired and compared word by word.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

from holdfast.changes.alignment import AlignedRun, DiffPart, PartKind, WordBudget, align, diff_words, pair_lines
from holdfast.records import Public, record
from holdfast.values import dataclass

LEAD = "Content"
"""Title of the text before the first heading, or of a whole page without headings."""

MAX_LINES = 200_000
"""Limit on the compared lines of one document; 4 MB of prose have 40,000."""


class ComparableText(NamedTuple):
    lines: tuple[str, ...]
    headings: tuple[str, ...] = ()
    """In document order; some may be missing from the text, for example those of a page's header."""
    cut: bool = False
    """True if the document has more lines than are compared."""


def read_text(text: str | None, headings: str | None) -> ComparableText:
    """Return the lines of a stored text (whitespace collapsed, empty lines dropped) and its headings."""
    lines = [folded for line in (text or "").split("\n") if (folded := _folded(line))]
    titles = tuple(folded for line in (headings or "").split("\n") if (folded := _folded(line)))
    return ComparableText(tuple(lines[:MAX_LINES]), titles, len(lines) > MAX_LINES)


def _folded(line: str) -> str:
    return " ".join(line.split())


# A section's heading, and its number among sections with the same heading.
SectionKey = tuple[str, int]


def sections(reading: ComparableText) -> dict[SectionKey, tuple[str, ...]]:
    """Return the lines of each section; an empty lead is omitted unless it is the only section."""
    starts = _heading_lines(reading)
    found: dict[SectionKey, tuple[str, ...]] = {}
    seen: Counter[str] = Counter()
    begin, title = 0, LEAD
    for at in [*starts, len(reading.lines)]:
        lines = reading.lines[begin:at]
        if lines or begin > 0 or not starts:
            seen[title] += 1
            found[title, seen[title]] = lines
        if at < len(reading.lines):
            begin, title = at + 1, reading.lines[at]
    return found


def _heading_lines(reading: ComparableText) -> list[int]:
    left = Counter(reading.headings)
    starts = []
    # Search from the end: a table of contents repeats every heading before the text.
    for at in range(len(reading.lines) - 1, -1, -1):
        if left.get(reading.lines[at], 0) > 0:
            left[reading.lines[at]] -= 1
            starts.append(at)
    return starts[::-1]


def compare_sections(
    a: Mapping[SectionKey, Sequence[str]], b: Mapping[SectionKey, Sequence[str]]
) -> tuple[tuple[int, int, int], tuple[str, ...]]:
    """Return how many sections were added, removed and changed, and the titles of all of them.

    The titles are in the order of the later document, then the earlier.
    """
    added = [key for key in b if key not in a]
    removed = [key for key in a if key not in b]
    changed = [key for key in b if key in a and a[key] != b[key]]
    differing = [key for key in b if a.get(key) != b[key]] + removed
    return (len(added), len(removed), len(changed)), tuple(dict.fromkeys(title for title, _ in differing))


DIFF_VERSION = 1
"""Version of the comparison; raise it when the same lines give a different result."""
NORMALISATION_VERSION = 1
"""Version of the extracted lines; raise it when a document gives different lines."""
VERSION = DIFF_VERSION * 1000 + NORMALISATION_VERSION
"""Both versions combined, as the cache of diffs stores them."""
WHOLE_VERSION = VERSION + 500
"""The same for comparisons of the whole page, including what surrounds the main content."""

CONTEXT_LINES = 3
MAX_SHOWN_LINES = 400
MAX_SHOWN_CHARS = 4_000
"""Limit of one shown line; longer ones are shortened where nothing differs, then cut."""
_NOISY_RATIO, _NOISY_SHARE = 0.6, 0.7
_KEPT_CHARS = 160
ELLIPSIS = " […] "


class LineKind(StrEnum):
    CONTEXT = "context"
    REMOVED = "removed"
    ADDED = "added"


@record
class DiffRow:
    """A line of a diff."""

    type: Public[str]
    """context, removed or added."""
    parts: Public[list[DiffPart]]

    @property
    def text(self) -> str:
        return "".join(part.text for part in self.parts)


@record
class DiffHunk:
    """Lines around a difference; line numbers count from 1."""

    from_line: Public[int]
    from_count: Public[int]
    to_line: Public[int]
    to_count: Public[int]
    lines: Public[list[DiffRow]]


@dataclass(frozen=True, slots=True, kw_only=True)
class TextComparison:
    sections: tuple[int, int, int]
    """Added, removed and changed ones."""
    touched: tuple[str, ...]
    """Titles of the sections that differ."""
    added_lines: int
    removed_lines: int
    ratio: float
    """0 for the same text, 1 if no line is the same."""
    high_noise: bool
    truncated: bool
    hunks: list[DiffHunk]


def compare(a: ComparableText, b: ComparableText) -> TextComparison:
    """Return the differences; two documents with the same lines give no hunks and a ratio of 0."""
    counts, touched = compare_sections(sections(a), sections(b))
    runs = align(a.lines, b.lines)
    removed = sum(run.a_end - run.a_start for run in runs if not run.same)
    added = sum(run.b_end - run.b_start for run in runs if not run.same)
    total = len(a.lines) + len(b.lines)
    ratio = (added + removed) / total if total else 0.0
    hunks, is_cut = _shown(a.lines, b.lines, runs)
    return TextComparison(
        sections=counts,
        # A completely rewritten page has thousands of sections, which are stored with the diff.
        touched=touched[:100],
        added_lines=added,
        removed_lines=removed,
        ratio=round(ratio, 6),
        high_noise=ratio >= _NOISY_RATIO or (added + removed) / max(1, len(b.lines)) > _NOISY_SHARE,
        truncated=is_cut or a.cut or b.cut,
        hunks=hunks,
    )


def _shown(a: Sequence[str], b: Sequence[str], runs: list[AlignedRun]) -> tuple[list[DiffHunk], bool]:
    hunks: list[DiffHunk] = []
    left, is_cut, budget = MAX_SHOWN_LINES, False, WordBudget()
    for group in _groups(runs):
        if left <= 0:
            return hunks, True
        lines: list[DiffRow] = []
        a_count = b_count = 0
        for line in _lines(a, b, group, left, budget):
            if len(lines) == left:
                is_cut = True
                break
            a_count += line.type != LineKind.ADDED
            b_count += line.type != LineKind.REMOVED
            lines.append(line)
        left -= len(lines)
        fitting = [_fitted(line) for line in lines]
        is_cut = is_cut or any(cut for _, cut in fitting)
        hunks.append(
            DiffHunk(
                from_line=group[0].a_start + 1,
                from_count=a_count,
                to_line=group[0].b_start + 1,
                to_count=b_count,
                lines=[line for line, _ in fitting],
            )
        )
    return hunks, is_cut


def _groups(runs: list[AlignedRun]) -> Iterator[list[AlignedRun]]:
    group: list[AlignedRun] = []
    for run in runs:
        if not run.same:
            group.append(run)
            continue
        # Closer differences share their context lines: they form one hunk.
        long = run.a_end - run.a_start > 2 * CONTEXT_LINES
        if group and not long:
            group.append(run)
            continue
        if group:
            yield [*group, run._replace(a_end=run.a_start + CONTEXT_LINES, b_end=run.b_start + CONTEXT_LINES)]
        kept = min(CONTEXT_LINES, run.a_end - run.a_start)
        group = [run._replace(a_start=run.a_end - kept, b_start=run.b_end - kept)]
    while group and group[-1].same:
        last = group.pop()
        if group:
            kept = min(CONTEXT_LINES, last.a_end - last.a_start)
            yield [*group, last._replace(a_end=last.a_start + kept, b_end=last.b_start + kept)]
            return
    if group:
        yield group


def _lines(
    a: Sequence[str], b: Sequence[str], group: list[AlignedRun], most: int, budget: WordBudget
) -> Iterator[DiffRow]:
    for run in group:
        if run.same:
            for at in range(run.a_start, run.a_end):
                yield _whole_row(LineKind.CONTEXT, PartKind.SAME, a[at])
        else:
            # Compare no more than can be shown.
            old = a[run.a_start : min(run.a_end, run.a_start + most + 1)]
            new = b[run.b_start : min(run.b_end, run.b_start + most + 1)]
            yield from _rewritten(old, new, budget)


def _rewritten(old: Sequence[str], new: Sequence[str], budget: WordBudget) -> Iterator[DiffRow]:
    i = j = 0
    for left, right in [*pair_lines(old, new), (len(old), len(new))]:
        yield from (_whole_row(LineKind.REMOVED, PartKind.REMOVED, line) for line in old[i:left])
        yield from (_whole_row(LineKind.ADDED, PartKind.ADDED, line) for line in new[j:right])
        if left < len(old):
            parts = diff_words(old[left], new[right], budget)
            yield DiffRow(type=LineKind.REMOVED, parts=[part for part in parts if part.type != PartKind.ADDED])
            yield DiffRow(type=LineKind.ADDED, parts=[part for part in parts if part.type != PartKind.REMOVED])
        i, j = left + 1, right + 1


def _whole_row(kind: LineKind, part: PartKind, text: str) -> DiffRow:
    return DiffRow(type=kind, parts=[DiffPart(type=part, text=text)])


def _fitted(line: DiffRow) -> tuple[DiffRow, bool]:
    if sum(len(part.text) for part in line.parts) <= MAX_SHOWN_CHARS:
        return line, False
    left, parts = MAX_SHOWN_CHARS, []
    for part in line.parts:
        text = part.text
        # Shorten unchanged text first: readers look for the changes.
        if part.type == PartKind.SAME and len(text) > 2 * _KEPT_CHARS + len(ELLIPSIS):
            text = text[:_KEPT_CHARS] + ELLIPSIS + text[-_KEPT_CHARS:]
        if len(text) > left:
            parts.append(DiffPart(type=part.type, text=text[:left] + ELLIPSIS))
            break
        parts.append(DiffPart(type=part.type, text=text))
        left -= len(text)
    return DiffRow(type=line.type, parts=parts), True
