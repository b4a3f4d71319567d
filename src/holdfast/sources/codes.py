"""The code of a source whose author gave none: made from its name, or from the host of its first seed."""

from __future__ import annotations

import unicodedata
from typing import Final
from urllib.parse import urlsplit

from sqlalchemy import select
from sqlalchemy.orm import Session

from holdfast.db.models import Source

# Room for a number behind it.
_STEM_CHARS: Final = 32
# Letters that Unicode does not take apart into a plain one and a mark.
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
    """Return a text as a code: plain letters, whole words with hyphens between; empty if it has no such letter."""
    # Cyrillic first: Unicode would take й apart into another letter and a mark.
    lowered = unicodedata.normalize("NFKD", text.lower().translate(_PLAIN)).translate(_PLAIN)
    # An apostrophe and a mark above a letter stand within a word, anything else between two.
    kept = "".join(c for c in lowered if not unicodedata.combining(c) and c not in "'’")
    words = "".join(c if c.isascii() and c.isalnum() else " " for c in kept).split()
    code = ""
    for word in words:
        longer = f"{code}-{word}" if code else word[:_STEM_CHARS]
        if len(longer) > _STEM_CHARS:
            break
        code = longer
    return code


def free_code(session: Session, *, name: str | None, seed: str | None) -> str:
    """Return a code that no source has: from the name, else from the host of a seed; a taken one gets a number."""
    host = urlsplit(seed if "//" in seed else f"//{seed}").hostname if seed else None
    stem = code_from(name or "") or code_from((host or "").removeprefix("www.")) or "source"
    taken = set(session.scalars(select(Source.code).where(Source.code.startswith(stem, autoescape=True))))
    number, code = 1, stem
    while code in taken:
        number += 1
        code = f"{stem}-{number}"
    return code
