"""How text is made comparable: case, accents and compatibility forms gone. It refuses nothing; any string is text."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from holdfast.parse.text import nfc

_UNUSABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]+")
_BLANKS = re.compile(r"\s+")
_WORD = re.compile(r"[^\W_]+")


def tidy(text: str) -> str:
    """Return the text in composed form, with controls, lone surrogates and runs of blanks made one blank."""
    composed = text if text.isascii() else nfc(_UNUSABLE.sub(" ", text))
    return _BLANKS.sub(" ", _UNUSABLE.sub(" ", composed)).strip()


_UNSPACED: Final = re.compile("[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]")
"""Chinese, Japanese and Korean letters: scripts whose words the analysers cannot tell apart."""


def analysable(text: str) -> str:
    """Return the text as the index's analysers want it: composed, and with each letter of an unspaced script a word."""
    if text.isascii():
        return text
    whole = text if unicodedata.is_normalized("NFC", text) else nfc(text)
    return _UNSPACED.sub(r" \g<0> ", whole) if max(whole) >= "\u2e80" else whole


def is_unspaced(word: str) -> bool:
    """Return whether a word is of a script that does not part its words."""
    return _UNSPACED.search(word) is not None


def letters_of(word: str) -> list[str]:
    """Return a word of an unspaced script as the index keeps it: letter by letter, other runs whole."""
    return analysable(word).split()


_LETTERS: Final = {"ß": "ss", "æ": "ae", "œ": "oe", "ø": "o", "đ": "d", "ł": "l", "ð": "d", "þ": "th", "ı": "i"}
"""Letters that no decomposition takes apart, spelled as the index's own analyser spells them."""


def _bare(char: str) -> str:
    kept = "".join(c for c in unicodedata.normalize("NFKD", char) if not unicodedata.combining(c))
    return "".join([_LETTERS.get(c, c) for c in kept])


_FOLDED: Final = {code: bare for code in range(0x80, 0x2000) if (bare := _bare(chr(code))) != chr(code)}
"""Everything below the symbols in one step: the scripts of Europe are folded without looking at single letters."""


_SYMBOLS: Final = re.compile("[\u2000-\U0010ffff]+")


def fold(text: str) -> str:
    """Return the text without case and accents: what substring terms are looked up in, and looked up as."""
    low = tidy(text).lower()
    if low.isascii():
        return low
    return _SYMBOLS.sub(lambda found: "".join(map(_bare, found[0])), low.translate(_FOLDED))


def words_of(text: str) -> list[str]:
    """Return the words of a text, folded, in order."""
    return _WORD.findall(fold(text))


def _same_length_table() -> dict[str, str]:
    table: dict[str, str] = {}
    for code in range(0x80, 0x2000):
        bare = _bare(chr(code))
        if len(bare) == 1 and bare != chr(code):
            table[chr(code)] = bare
    return table


_SAME_LENGTH: Final = _same_length_table()


def fold_in_place(text: str) -> str:
    """Return the text folded letter by letter: every character keeps its place, so that places found are places shown.

    What folds to two letters (`œ`) stays as it is.
    """
    if text.isascii():
        return text.lower()
    # The one capital whose small form is longer; and one pass for each accented letter that occurs, which takes an
    # eighth of what a table for all letters takes.
    low = text.replace("\u0130", "i").lower()
    for char in set(low):
        if char > "\x7f" and (bare := _SAME_LENGTH.get(char)) is not None:
            low = low.replace(char, bare)
    return low
