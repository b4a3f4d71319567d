"""A fingerprint of a text, 24 bytes: by it, pages that differ little are told from pages that only look alike.

The first 128 bits are a sketch of the words and the pairs of neighbouring words: of two texts that share most of them
they differ in few places (decision 0032). The last 64 stand for the subject: the words of the title that the text
itself uses. Two pages made from one template share their text and differ in their subject.

Made from the text as it is stored, whenever the index takes a document in: a fingerprint of another kind needs a
rebuild of the index and no body. It refuses texts of fewer than 20 words: they have no fingerprint.
"""

from __future__ import annotations

import re
from typing import Final

import numpy as np
import numpy.typing as npt
from xxhash import xxh3_64_intdigest

Prints = npt.NDArray[np.uint64]
"""Fingerprints, one a row: two columns of bits, one of the subject; a row of zeros for no fingerprint."""
Hashes = npt.NDArray[np.uint64]
Places = npt.NDArray[np.int64]

PRINT_WIDTH: Final = 3
MAX_DISTANCE: Final = 25
"""Bits of 128 in which near-duplicates differ at most. Copies with 10 % of their words replaced differ in 17 +- 4,
pages of one template in 30 and more, others in 64 +- 6: `python -m bench.near_duplicates` before this is touched."""
# Of the first 64: half of 25, and two and a half standard deviations. It leaves 3 of 10,000 other pairs.
_MAX_FIRST: Final = 18
MIN_WORDS: Final = 20
"""A text with fewer has no fingerprint: in a few words there is nothing to tell a copy by."""
NO_PRINT: Final = (0, 0, 0)

_MAX_CHARS: Final = 200_000
# A word of the title belongs to the subject if it is so frequent in the text. The name of a site is seldom repeated; a
# small word of four letters (with, that, dans, pour) is 1 % of any text.
_SUBJECT_TIMES: Final = 3
_SUBJECT_SHARE: Final = 0.015
_TITLE_WORD: Final = re.compile(r"[^\W\d_]{4,}")
_MAX_TITLE_CHARS: Final = 300
_BITS: Final = 128

_APART, _INSIDE, _ALONE, _JOINT = 0, 1, 2, 3
_DIGITS: Final = (ord("0"), ord("9"))


def _odd(name: str, count: int) -> Hashes:
    """Return numbers that are the same on every machine and in every release: they are in stored fingerprints."""
    return np.array([xxh3_64_intdigest(f"{name} {n}".encode()) | 1 for n in range(count)], np.uint64)


_PLACES: Final = _odd("place", 128)
_DRAWS: Final = _odd("draw", _BITS)
_EDGES: Final = np.arange(_BITS, dtype=np.uint64) << np.uint64(57)
_FIRST, _SECOND, _ORDER = _odd("mix", 3)


def _kinds() -> npt.NDArray[np.uint8]:
    """Return what each character of the basic plane is: between words, part of one, a word by itself, or a joint."""
    kinds = np.full(1 << 16, _INSIDE, np.uint8)
    kinds[:128] = [_INSIDE if chr(point).isalnum() else _APART for point in range(128)]
    kinds[[ord(sign) for sign in ".,:-/"]] = _JOINT
    # Signs of Latin-1, punctuation, spaces, arrows, mathematics and boxes, punctuation of East Asia.
    for first, last in ((0x80, 0xBF), (0x2000, 0x206F), (0x2190, 0x2BFF), (0x3000, 0x303F), (0xFF00, 0xFF0F)):
        kinds[first : last + 1] = _APART
    # Scripts that put no blanks between words: Thai and Lao, Burmese, Khmer, Chinese and Japanese.
    for first, last in ((0xE00, 0xEFF), (0x1000, 0x109F), (0x1780, 0x17FF), (0x3040, 0x9FFF), (0xF900, 0xFAFF)):
        kinds[first : last + 1] = _ALONE
    return kinds


_KINDS: Final = _kinds()
_ASCII_KINDS: Final = _KINDS[:256].tobytes()


def _mixed(values: Hashes) -> Hashes:
    values = (values ^ (values >> np.uint64(30))) * _FIRST
    values = (values ^ (values >> np.uint64(27))) * _SECOND
    return values ^ (values >> np.uint64(31))


def _words(text: str) -> Hashes:
    """Return a hash of each word in order: its characters, weighted by their places, summed up."""
    # All words at once: a loop over them takes six times as long.
    lowered = text.lower()
    if lowered.isascii():
        letters = lowered.encode("ascii")
        points: npt.NDArray[np.uint8 | np.uint32] = np.frombuffer(letters, np.uint8)
        kinds = np.frombuffer(bytearray(letters.translate(_ASCII_KINDS)), np.uint8)
    else:
        points = np.frombuffer(lowered.encode("utf-32-le", "replace"), np.uint32)
        # Beyond the basic plane stand rarer Chinese characters, and signs that tell as much.
        kinds = np.where(points < len(_KINDS), _KINDS[np.minimum(points, len(_KINDS) - 1)], np.uint8(_ALONE))
    # 8:15, 1,000, 15.2 and 2025-03-01 are one word each: in pieces, every table has the numbers of every other.
    joints = np.flatnonzero(kinds[1:-1] == _JOINT) + 1
    kinds[joints[_are_digits(points[joints - 1]) & _are_digits(points[joints + 1])]] = _INSIDE
    inside = kinds == _INSIDE
    begins = inside.copy()
    if points.dtype == np.uint8:
        begins[1:] &= ~inside[:-1]
    else:
        alone = kinds == _ALONE
        inside |= alone
        begins = inside.copy()
        begins[1:] &= ~inside[:-1] | alone[1:] | alone[:-1]
    starts = np.flatnonzero(begins)
    if not len(starts):
        return np.empty(0, np.uint64)
    points, inside, starts = points[starts[0] :], inside[starts[0] :], starts - starts[0]
    lengths = np.diff(starts, append=len(points))
    place = np.arange(len(points), dtype=np.int32) - np.repeat(starts.astype(np.int32), lengths)
    terms = np.take(_PLACES, place, mode="wrap")
    terms *= points.astype(np.uint64) + np.uint64(1)
    terms *= inside
    return _mixed(np.add.reduceat(terms, starts))


def _are_digits(points: npt.NDArray[np.uint8 | np.uint32]) -> npt.NDArray[np.bool_]:
    found: npt.NDArray[np.bool_] = (points >= _DIGITS[0]) & (points <= _DIGITS[1])
    return found


def fingerprint(text: str, title: str | None = None) -> tuple[int, int, int]:
    """Return the fingerprint of a text under its title; zeros if it has too few words."""
    words = _words(text[:_MAX_CHARS])
    if len(words) < MIN_WORDS:
        return NO_PRINT
    distinct, times = np.unique(words, return_counts=True)
    # Words alone take two timetables of one line for copies: they have the same numbers. Pairs alone call a text
    # with a tenth of its words replaced a fifth different.
    pairs = _mixed((words[:-1] * _ORDER) ^ words[1:])
    # Equal ones may stay: only the first behind an edge is asked for. `unique` takes eight times as long.
    ring = np.concatenate((distinct, pairs))
    ring.sort()
    # A MinHash in one pass: the first value from each of 128 edges on stands for all; one bit is kept of each.
    drawn = ring[np.searchsorted(ring, _EDGES) % len(ring)]
    bits = (_mixed(drawn * _DRAWS) & np.uint64(1)).astype(np.uint8)
    low, high = np.packbits(bits, bitorder="little").view("<u8").tolist()
    return low, high, _subject(title or "", distinct[times >= max(_SUBJECT_TIMES, _SUBJECT_SHARE * len(words))])


def _subject(title: str, frequent: Hashes) -> int:
    """Return two bits for each word of a title that is frequent in the text, numbers and short words left out."""
    if not len(frequent):
        return 0
    asked = _words(" ".join(_TITLE_WORD.findall(title[:_MAX_TITLE_CHARS])))
    at = np.minimum(np.searchsorted(frequent, asked), len(frequent) - 1)
    found = 0
    for word in asked[frequent[at] == asked].tolist():
        found |= 1 << (word & 63) | 1 << (word >> 6 & 63)
    return found


def has_print(prints: Prints) -> npt.NDArray[np.bool_]:
    """Return which of these are fingerprints, and not the zeros of a text that is too short."""
    known: npt.NDArray[np.bool_] = (prints[:, 0] | prints[:, 1]) != 0
    return known


def near(some: Prints, others: Prints) -> tuple[Places, Places]:
    """Return the pairs that are near-duplicates: places in `some`, ascending, and for each one in `others`.

    Close by their bits, and not of two subjects: each with a word of its own that the other lacks.
    """
    # One pass over half of the bits; the rest is looked at for the few pairs that are left.
    close = np.bitwise_count(some[:, :1] ^ others[:, 0]) <= _MAX_FIRST
    # By hand: `nonzero` of a table takes as long as all that is before it.
    rows, columns = np.divmod(np.flatnonzero(close), max(1, len(others)))
    mine, theirs = some[rows], others[columns]
    distance = np.bitwise_count(mine[:, :2] ^ theirs[:, :2]).sum(axis=1)
    lacks, adds = mine[:, 2] & ~theirs[:, 2], theirs[:, 2] & ~mine[:, 2]
    same = (distance <= MAX_DISTANCE) & ((lacks == 0) | (adds == 0)) & has_print(mine) & has_print(theirs)
    return rows[same], columns[same]
