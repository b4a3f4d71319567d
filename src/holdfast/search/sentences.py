"""Finds the start and end of sentences around a place in a line, and where a line may be cut: never inside a word.

Latin, Cyrillic and Greek sentences end at a mark, white space and no lower-case letter; Chinese and Japanese
ones at their mark alone. Abbreviations, initials and short numbers do not end one. Thai has no marks: its line
is one sentence, cut at the spaces between its phrases. Only the text around a place is read, however long a
line is.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

# Marks that end a sentence before white space, and marks that need none; with what closes after them.
_SPACED: Final = ".!?\u2026\u061f\u06d4\u0589\u0964\u0965\u1362\u1367\u104b\u17d4\u17d5"
_UNSPACED: Final = "\u3002\uff01\uff1f\uff61\uff0e"
_AFTER_SPACED: Final = "\"'\u201d\u2019\u00bb)\\]"
_AFTER_UNSPACED: Final = "\u300d\u300f\uff09\u3011\u300b\u201d\u2019\"')"
# Beginning with one set of letters, which is looked for at a fifth of what two ways to begin cost.
_END: Final = re.compile(
    f"[{_SPACED}{_UNSPACED}](?:"
    f"(?<=[{_SPACED}])[{_SPACED}]{{0,7}}[{_AFTER_SPACED}]{{0,4}}(?=\\s|$)"
    f"|(?<=[{_UNSPACED}])[{_UNSPACED}]{{0,7}}[{_AFTER_UNSPACED}]{{0,4}})"
)
_MARKS: Final = frozenset(_SPACED + _UNSPACED)
_CLOSING: Final = frozenset("\"'\u201d\u2019\u00bb)]\u300d\u300f\uff09\u3011\u300b")
# The word before a mark, as far as an abbreviation or a number can reach.
_BEFORE: Final = re.compile(r"[^\s(\[\"'«“‘,;/-]*$")
_REACH: Final = 12
_INITIALS: Final = re.compile(r"[^\W\d_](?:\.[^\W\d_])*")
_SHORT_NUMBER: Final = re.compile(r"\d{1,2}")
# Without the mark at their end. Those that often end a sentence themselves (etc., usw.) are not among them.
_ABBREVIATION_LIST: Final = (
    "mr mrs ms dr prof st sr jr vs cf fig figs eq sec ch chap vol no nos nr pp pg ed eds al ca approx inc ltd corp dept"
    " gen gov hon rev sgt capt lt col viz resp incl excl jan feb mar apr jun jul aug sep sept oct nov dec"
    " ph.d bzw vgl evtl ggf inkl abs art str hrsg bspw sog zzgl"
    " mm mme mlle mgr env p.ex éd sra srta pág núm dña sig dott ecc bijv dhr mevr enz"
    " ул рис табл стр проф акад"
)
_ABBREVIATIONS: Final = frozenset(_ABBREVIATION_LIST.split())


def sentence_ends(text: str, low: int, high: int, line_end: int) -> list[int]:
    # Two letters more: a mark at the end of the range would seem to have nothing after it.
    found = _END.finditer(text, low, min(line_end, high + 2))
    ends = [one.end() for one in found if one.end() <= high and _ends(text, one, line_end)]
    if high >= line_end and (not ends or ends[-1] != line_end):
        ends.append(line_end)
    return ends


def is_whole(text: str, start: int, end: int) -> bool:
    last = text[end - 1] if end > start else ""
    return last in _MARKS or (last in _CLOSING and end - 2 > start and text[end - 2] in _MARKS)


def _ends(text: str, found: re.Match[str], line_end: int) -> bool:
    after = found.end()
    while after < line_end and after < found.end() + 4 and text[after].isspace():
        after += 1
    if after >= line_end:
        return True
    if text[found.start()] >= "\u0590" and text[found.start()] != "\u2026":
        return True
    if text[after].islower():
        return False
    if found[0] != ".":
        return True
    before = _BEFORE.search(text[max(0, found.start() - _REACH) : found.start()])
    word = before[0] if before else ""
    return not (_SHORT_NUMBER.fullmatch(word) or _INITIALS.fullmatch(word) or word.lower() in _ABBREVIATIONS)


def cut_start(text: str, start: int, first: int) -> int:
    """Return the first start of a word from `start` on, not beyond `first`."""
    if start <= 0 or text[start - 1].isspace():
        return start
    blank = text.find(" ", start, first)
    return blank + 1 if blank >= 0 else whole_letter(text, start, first)


def cut_end(text: str, last: int, end: int) -> int:
    """Return the last end of a word up to `end`, not before `last`."""
    if end >= len(text) or text[end].isspace():
        return end
    blank = text.rfind(" ", last, end)
    if blank >= 0:
        return blank
    while end > last and _continues(text[end]):
        end -= 1
    return end


def whole_letter(text: str, start: int, first: int) -> int:
    while start < first and _continues(text[start]):
        start += 1
    return start


def _continues(char: str) -> bool:
    return char > "\x7f" and (char == "\u200d" or unicodedata.category(char).startswith("M"))
