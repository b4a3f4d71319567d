"""What is worked out from a document's text: snippet, language, fingerprint, whether it calls itself archived.

Pure, except that the language model is loaded when it is first needed.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
from xxhash import xxh3_64_intdigest

SNIPPET_CHARS = 280
_GOOD_CHARS = 40
_LANGUAGE_CHARS = 500
_LANGUAGE_LETTERS = 24
"""Below this the model guesses by single letters: 'Home | Contact' comes out as Latin."""
_MAX_CHARS = 200_000
_BLANK = 32
_WEIGHTS = np.array([xxh3_64_intdigest(bytes([n])) | 1 for n in range(128)], np.uint64)
_MIX = np.uint64(0x9E3779B97F4A7C15)

_BOILERPLATE = (
    "cookie", "javascript", "skip to", "aller au contenu", "passer au contenu", "all rights reserved",
    "tous droits réservés", "your browser", "votre navigateur", "privacy policy", "politique de confidentialité",
    "sign in", "log in", "subscribe to our", "©",
)  # fmt: skip
_ARCHIVED_TITLE = re.compile(r"[\[(]?\s{0,8}archiv(?:ed|ée?s?)\s{0,8}(?:[\])]|[-–—:|]|$)", re.I)
_ARCHIVED_PHRASES = (
    "this page has been archived", "this content has been archived", "this document has been archived",
    "this web page has been archived", "has been archived on the web", "we have archived this page",
    "information identified as archived", "this site has been archived", "archived content",
    "cette page a été archivée", "ce contenu a été archivé", "ce document a été archivé",
    "nous avons archivé cette page", "a été archivée dans le web",
    "indiqué qu'elle est archivée", "désignée comme étant archivée", "contenu archivé",
)  # fmt: skip
_BANNER_CHARS = 1500


def make_snippet(text: str, description: str | None) -> str | None:
    """Return up to 280 characters that show what a text is about, cut between words; None of an empty one.

    It begins with the first line that is a sentence rather than furniture; without one, with the description.
    """
    lines = text[:20_000].split("\n")
    first = next((n for n, line in enumerate(lines) if len(line) >= _GOOD_CHARS and _is_said(line)), None)
    if first is None and description:
        chosen = description
    else:
        chosen = _joined(filter(_is_said, lines[first or 0 :])) or _joined(iter(lines))
    if len(chosen) <= SNIPPET_CHARS:
        return chosen or None
    cut = chosen[: SNIPPET_CHARS - 1]
    space = cut.rfind(" ")
    return (cut[:space] if space > SNIPPET_CHARS // 2 else cut).rstrip(" ,;:") + "…"


def _is_said(line: str) -> bool:
    """Whether a line is no furniture."""
    lowered = line[:1000].lower()
    return not any(word in lowered for word in _BOILERPLATE)


def _joined(lines: Iterator[str]) -> str:
    """Return as many lines in a row as a snippet can need."""
    parts, size = list[str](), 0
    for line in lines:
        parts.append(line)
        size += len(line) + 1
        if size > SNIPPET_CHARS:
            break
    return " ".join(parts).strip()


def detect_language(text: str) -> str | None:
    """Return the language that a text is most likely in, from its first 500 characters; None if there is too little."""
    sample = text[:_LANGUAGE_CHARS]
    if sum(map(str.isalpha, sample)) < _LANGUAGE_LETTERS:
        return None
    return str(_model().classify(sample)[0])


@cache
def _model() -> Any:
    # Loaded when first needed: it takes 0.7 s, which a command that indexes nothing need not pay.
    return importlib.import_module("py3langid")


def says_archived(title: str | None, text: str) -> bool:
    """Whether a page says of itself that it is no longer kept up; a plain mention of archives is not enough."""
    if title and _ARCHIVED_TITLE.match(title.strip()):
        return True
    banner = text[:_BANNER_CHARS].lower().replace("\u2019", "'")
    return "archiv" in banner and any(phrase in banner for phrase in _ARCHIVED_PHRASES)


def _word_hashes(text: str) -> npt.NDArray[np.uint64]:
    """Return a hash of each word: its bytes, weighted by their places, summed up. All words at once, 60 us for 8 KB
    where a look into a table of known words took 390."""
    data = np.frombuffer(text.strip().lower().encode("utf-8", "replace"), np.uint8)
    gaps = data <= _BLANK
    begins = ~gaps
    begins[1:] &= gaps[:-1]
    starts = np.flatnonzero(begins)
    if not len(starts):
        return np.empty(0, np.uint64)
    place = np.arange(len(data)) - starts[np.cumsum(begins) - 1]
    terms = (data.astype(np.uint64) + np.uint64(1)) * _WEIGHTS[place & (len(_WEIGHTS) - 1)]
    terms[gaps] = 0
    return np.add.reduceat(terms, starts)


def simhash(text: str) -> int | None:
    """Return 64 bits, as the signed integer that databases keep, that differ little between texts that differ little.

    Over the pairs of neighbouring words; None of a text with fewer than two.
    """
    hashes = _word_hashes(text[:_MAX_CHARS])
    if len(hashes) < 2:
        return None
    # A pair is its first word's hash, moved, with the second's on top; then mixed, so that every bit counts.
    pairs = (hashes[:-1] * _MIX) ^ hashes[1:]
    pairs = (pairs ^ (pairs >> np.uint64(29))) * _MIX
    bits = np.unpackbits(pairs.astype("<u8").view(np.uint8).reshape(-1, 8), axis=1, bitorder="little")
    strong = np.add.reduce(bits, axis=0, dtype=np.uint32) * 2 > len(pairs)
    return int(np.packbits(strong, bitorder="little").view("<i8")[0])
