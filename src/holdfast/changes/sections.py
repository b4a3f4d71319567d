"""A document as people read it: lines below headings, in document order. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

LEAD = "Content"
"""What stands before the first heading, or all of a page without headings."""

MAX_LINES = 200_000
"""Lines of one document that are compared; 4 MB of prose have 40,000."""


class Reading(NamedTuple):
    """A document ready to be compared."""

    lines: tuple[str, ...]
    headings: tuple[str, ...] = ()
    """In document order; some may not stand in the text, as those of a page's header."""
    cut: bool = False
    """There were more lines than are compared."""


def read_text(text: str | None, headings: str | None) -> Reading:
    """Return the lines of a stored text, blanks folded and empty lines gone, with its headings."""
    lines = [folded for line in (text or "").split("\n") if (folded := _folded(line))]
    titles = tuple(folded for line in (headings or "").split("\n") if (folded := _folded(line)))
    return Reading(tuple(lines[:MAX_LINES]), titles, len(lines) > MAX_LINES)


def _folded(line: str) -> str:
    return " ".join(line.split())


class SectionKey(NamedTuple):
    """A section's heading, and which one it is of those that have the same."""

    title: str
    number: int


def sections(reading: Reading) -> dict[SectionKey, tuple[str, ...]]:
    """Return the lines of each section; a lead without lines is left out unless it is all there is."""
    starts = _heading_lines(reading)
    found: dict[SectionKey, tuple[str, ...]] = {}
    seen: Counter[str] = Counter()
    begin, title = 0, LEAD
    for at in [*starts, len(reading.lines)]:
        lines = reading.lines[begin:at]
        if lines or begin > 0 or not starts:
            seen[title] += 1
            found[SectionKey(title, seen[title])] = lines
        if at < len(reading.lines):
            begin, title = at + 1, reading.lines[at]
    return found


def _heading_lines(reading: Reading) -> list[int]:
    """Return the lines that are headings: the last ones of their text, for a table of contents stands before them."""
    left = Counter(reading.headings)
    starts = []
    for at in range(len(reading.lines) - 1, -1, -1):
        if left.get(reading.lines[at], 0) > 0:
            left[reading.lines[at]] -= 1
            starts.append(at)
    return starts[::-1]


class SectionCounts(NamedTuple):
    """How many sections came, went, or have other lines now."""

    added: int
    removed: int
    changed: int


def compare_sections(
    a: Mapping[SectionKey, Sequence[str]], b: Mapping[SectionKey, Sequence[str]]
) -> tuple[SectionCounts, tuple[str, ...]]:
    """Return the counts, and the titles of what differs, in the order of the later document, then of the earlier."""
    added = [key for key in b if key not in a]
    removed = [key for key in a if key not in b]
    changed = [key for key in b if key in a and a[key] != b[key]]
    touched = dict.fromkeys(key.title for key in b if key not in a or a[key] != b[key])
    touched.update(dict.fromkeys(key.title for key in removed))
    return SectionCounts(len(added), len(removed), len(changed)), tuple(touched)
