"""Generates the code of a source from its name, or from the host of its first address."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from itertools import count
from typing import Final
from urllib.parse import urlsplit

CODE_CHARS: Final = 40
# Leaves room for a numeric suffix.
_STEM_CHARS: Final = CODE_CHARS - 8
# Letters that Unicode does not decompose into a plain letter and a mark.
_PLAIN: Final = str.maketrans(
    dict(zip("ßæœøłđðþıħ", ("ss", "ae", "oe", "o", "l", "d", "d", "th", "i", "h"), strict=True))
    | dict(
        zip(
            "абвгдеёжзийклмнопрстуфхцчшщъыьэюяіїєґ",
            (
                *("a", "b", "v", "g", "d", "e", "e", "zh", "z", "i", "y", "k", "l", "m", "n", "o", "p", "r", "s"),
                *("t", "u", "f", "kh", "ts", "ch", "sh", "shch", "", "y", "", "e", "yu", "ya", "i", "yi", "ye", "g"),
            ),
            strict=True,
        )
    )
    | dict(
        zip(
            "αβγδεζηθικλμνξοπρσςτυφχψω",
            (
                *("a", "v", "g", "d", "e", "z", "i", "th", "i", "k", "l", "m", "n", "x", "o", "p", "r"),
                *("s", "s", "t", "y", "f", "ch", "ps", "o"),
            ),
            strict=True,
        )
    )
)


def code_from(text: str) -> str:
    """Convert a text to a code: ASCII letters, whole words with hyphens between; empty without usable letters."""
    # Replace Cyrillic first: Unicode would decompose й into another letter and a mark.
    lowered = unicodedata.normalize("NFKD", text.lower().translate(_PLAIN)).translate(_PLAIN)
    # Apostrophes and combining marks belong to a word; anything else separates words.
    kept = "".join(c for c in lowered if not unicodedata.combining(c) and c not in "'’")
    words = "".join(c if c.isascii() and c.isalnum() else " " for c in kept).split()
    code = ""
    for word in words:
        longer = f"{code}-{word}" if code else word[:_STEM_CHARS]
        if len(longer) > _STEM_CHARS:
            break
        code = longer
    return code


def free_code(is_taken: Callable[[str], bool], *, name: str | None, seed: str | None) -> str:
    """Return an unused code from the name, else from the host of a seed; a number is added if it is in use."""
    stem = code_from(name or "") or _host_code(seed or "") or "source"
    codes = (stem if number == 1 else f"{stem}-{number}" for number in count(1))
    return next(code for code in codes if not is_taken(code))


def is_code_of(code: str, host: str) -> bool:
    """Return whether `free_code` may have generated this code from a host."""
    stem, _, number = code.rpartition("-")
    return _host_code(host) in (code, stem if number.isdecimal() else code)


def _host_code(seed: str) -> str:
    try:
        host = urlsplit(seed if "//" in seed else f"//{seed}").hostname or ""
    except ValueError:  # no URL, which the check of the seeds reports
        host = ""
    return code_from(host.removeprefix("www."))
