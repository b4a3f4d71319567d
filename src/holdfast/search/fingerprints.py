"""Fingerprints of texts, 24 bytes: they distinguish near-duplicates from pages that only look similar.

The first 128 bits are a sketch of the words and the pairs of neighbouring words: two texts that share most of
them differ in few bits (decision 0032). The last 64 represent the subject: the words of the title that the text
itself uses. Two pages made from one template share their text and differ in their subject.

Computed from the stored text whenever the index adds a document: another kind of fingerprint needs a rebuild of
the index but no body. Texts of fewer than 20 words have no fingerprint.
"""

from __future__ import annotations

import re
from typing import Final

import numpy as np
import numpy.typing as npt
from xxhash import xxh3_64_intdigest

Prints = npt.NDArray[np.uint64]
"""Fingerprints, one per row: two columns of bits, one of the subject; a row of zeros for no fingerprint."""
Hashes = npt.NDArray[np.uint64]
Places = npt.NDArray[np.int64]
_Points = npt.NDArray[np.uint8 | np.uint32]

PRINT_WIDTH: Final = 3
MAX_DISTANCE: Final = 25
"""Limit on differing bits, of 128, in near-duplicates. Copies with 10 % of their words replaced differ in 17 +- 4,
pages of one template in 30 and more, others in 64 +- 6. Run `python -m bench.near_duplicates` before changing
it.
"""
# Of the first 64: half of 25, and two and a half standard deviations. It leaves 3 of 10,000 other pairs.
_MAX_FIRST: Final = 18
MIN_WORDS: Final = 20
"""Minimum for a fingerprint: a few words are not enough to recognise a copy."""
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
_JOINTS: Final = ".,:-/"
_DIGITS: Final = (ord("0"), ord("9"))


def _odd(name: str, count: int) -> Hashes:
    """Return odd constants, the same on every machine and in every release: stored fingerprints depend on them."""
    return np.array([xxh3_64_intdigest(f"{name} {n}".encode()) | 1 for n in range(count)], np.uint64)


_DRAWS: Final = _odd("draw", _BITS)
_EDGE_SHIFT, _TOP_BIT, _LAST = np.uint64(57), np.uint64(63), np.uint64((1 << 64) - 1)
_FIRST, _SECOND, _ORDER, _BASE = _odd("mix", 4)
# Of a text with its title: a letter may be two in small letters, and a sign stands at either end.
_MAX_POINTS: Final = _MAX_CHARS + 4 * _MAX_TITLE_CHARS


def _powers(base: int) -> Hashes:
    return np.multiply.accumulate(np.full(_MAX_POINTS, base, np.uint64))


_POWERS: Final = _powers(int(_BASE))
# Times these, a run of places counts from its own start, wherever it stands.
_BACK: Final = _powers(pow(int(_BASE), -1, 1 << 64))


def _kinds() -> npt.NDArray[np.uint8]:
    kinds = np.full(1 << 16, _INSIDE, np.uint8)
    kinds[:128] = [_INSIDE if chr(point).isalnum() else _APART for point in range(128)]
    kinds[[ord(sign) for sign in _JOINTS]] = _JOINT
    # Signs of Latin-1, punctuation, spaces, arrows, mathematics and boxes, punctuation of East Asia.
    for first, last in ((0x80, 0xBF), (0x2000, 0x206F), (0x2190, 0x2BFF), (0x3000, 0x303F), (0xFF00, 0xFF0F)):
        kinds[first : last + 1] = _APART
    # Scripts that put no blanks between words: Thai and Lao, Burmese, Khmer, Chinese and Japanese.
    for first, last in ((0xE00, 0xEFF), (0x1000, 0x109F), (0x1780, 0x17FF), (0x3040, 0x9FFF), (0xF900, 0xFAFF)):
        kinds[first : last + 1] = _ALONE
    return kinds


_KINDS: Final = _kinds()
# Of an ASCII text: small letters and digits as they are, joints with the highest bit set, and 0 for all else.
_IS_JOINT: Final = 0x80
_ASCII: Final = bytes(
    point | _IS_JOINT if kind == _JOINT else ord(chr(point).lower()) if kind == _INSIDE else 0
    for point, kind in enumerate(_KINDS[:128].tolist())
).ljust(256, b"\0")


def _mixed(values: Hashes) -> Hashes:
    values = values ^ (values >> np.uint64(30))
    values *= _FIRST
    values ^= values >> np.uint64(27)
    values *= _SECOND
    values ^= values >> np.uint64(31)
    return values


def _words(text: str) -> tuple[Hashes, Places]:
    # All words at once: a loop over them takes ten times as long.
    points, starts, ends = _ascii_runs(text) if text.isascii() else _runs(text)
    terms = points.astype(np.uint64)
    terms *= _POWERS[: len(terms)]
    np.add.accumulate(terms, out=terms)
    return (terms[ends] - terms[starts]) * _BACK[starts], starts


def _ascii_runs(text: str) -> tuple[_Points, Places, Places]:
    points = np.frombuffer(bytearray(b"\0%b\0" % text.encode("ascii").translate(_ASCII)), np.uint8)
    _join_digits(points, np.flatnonzero(points >= _IS_JOINT), 0)
    inside = points != 0
    edges = np.flatnonzero(inside[1:] != inside[:-1])
    return points, edges[::2], edges[1::2]


def _runs(text: str) -> tuple[_Points, Places, Places]:
    lowered = text.lower()[: _MAX_POINTS - 2]
    points = np.frombuffer(bytearray(f"\0{lowered}\0".encode("utf-32-le", "replace")), np.uint32)
    # Beyond the basic plane stand rarer Chinese characters, and signs that tell as much.
    kinds = np.where(points < len(_KINDS), _KINDS[np.minimum(points, len(_KINDS) - 1)], np.uint8(_ALONE))
    joints = np.flatnonzero(kinds == _JOINT)
    kinds[joints] = _INSIDE
    _join_digits(points, joints, _IS_JOINT)
    kinds[points == 0] = _APART
    inside, alone = kinds != _APART, kinds == _ALONE
    points[~inside] = 0
    # Between each character and the next: whether both belong to one word.
    goes_on = inside[:-1] & inside[1:] & ~alone[:-1] & ~alone[1:]
    return points, np.flatnonzero(inside[1:] & ~goes_on), np.flatnonzero(inside[1:-1] & ~goes_on[1:]) + 1


def _join_digits(points: _Points, joints: Places, mark: int) -> None:
    """Join digits around a joint into one word, and clear all other joints.

    8:15, 1,000, 15.2 and 2025-03-01 are one word each: in pieces, every table has the numbers of every other.
    """
    inner = _are_digits(points[joints - 1]) & _are_digits(points[joints + 1])
    points[joints] = np.where(inner, points[joints] | mark, 0)


def _are_digits(points: _Points) -> npt.NDArray[np.bool_]:
    found: npt.NDArray[np.bool_] = (points >= _DIGITS[0]) & (points <= _DIGITS[1])
    return found


def fingerprint(text: str, title: str | None = None) -> tuple[int, int, int]:
    # Words of the title in one pass with those of the text: for a few words a pass costs half of that for a page.
    asked = " ".join(_TITLE_WORD.findall((title or "")[:_MAX_TITLE_CHARS])).lower()
    found, starts = _words(f"{asked}\n{text[:_MAX_CHARS]}")
    count = int(np.searchsorted(starts, len(asked)))
    named, words = found[:count], found[count:]
    if len(words) < MIN_WORDS:
        return NO_PRINT
    # Words alone take two timetables of one line for copies: they have the same numbers. Pairs alone call a text
    # with a tenth of its words replaced a fifth different.
    ring = _mixed(np.concatenate((words, (words[:-1] * _ORDER) ^ words[1:])))
    # A MinHash in one pass: all values are on a ring, and the first from each of 128 edges on stands for all.
    firsts = np.full(_BITS, _LAST, np.uint64)
    np.minimum.at(firsts, (ring >> _EDGE_SHIFT).astype(np.intp), ring)
    # Where nothing stands between two edges, the first behind the next one; behind the last edge, the first of all.
    drawn = np.minimum.accumulate(firsts[::-1])[::-1]
    drawn[drawn == _LAST] = drawn[0]
    # One bit is kept of each.
    low, high = np.packbits(drawn * _DRAWS >> _TOP_BIT, bitorder="little").view("<u8").tolist()
    return low, high, _subject(named, words)


def _subject(named: Hashes, words: Hashes) -> int:
    times = np.count_nonzero(named[:, np.newaxis] == words, axis=1)
    frequent = named[times >= max(_SUBJECT_TIMES, _SUBJECT_SHARE * len(words))]
    found = 0
    for word in _mixed(frequent).tolist():
        found |= 1 << (word & 63) | 1 << (word >> 6 & 63)
    return found


def has_print(prints: Prints) -> npt.NDArray[np.bool_]:
    known: npt.NDArray[np.bool_] = (prints[:, 0] | prints[:, 1]) != 0
    return known


def near(some: Prints, others: Prints) -> tuple[Places, Places]:
    """Return the pairs of near-duplicates: places in `some`, ascending, and for each one in `others`.

    Their bits are close, and their subjects do not differ, that is, do not each have a word that the other lacks.
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
