"""Finds the words of a query in a text and returns plain pieces: never markup, so injection is impossible.

A passage is a list of pieces; a piece is a text and whether it is a hit. Joined, the pieces are the passage.
There are no offsets, because a browser counts characters differently. `passages` chooses the passages to show.

A word is found as in the index: as typed, folded, or by its stem; a compound (`pg_ls_tmpdir`, `MemoryError`) as
one word, as a phrase of its parts (`memory error`), and vice versa; a run of a script without spaces as a
whole, otherwise by its bigrams.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from operator import or_
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from holdfast.parse.text import LENIENT, WORD_MARKS, ascii_in_place, beyond_ascii, fold, fold_in_place, is_unspaced, nfc
from holdfast.search.analysis import UNSTEMMED, language_field, stem
from holdfast.search.passages import FOLDED, PART, STEM, TYPED, Found, SearchedText, Weights, chosen, snippet_bounds
from holdfast.search.query import Words

# Characters of a text that are searched at once.
_SEARCHED: Final = 1_000_000
# Hits of one word that are kept, and places that are looked at for them: a text of one syllable has 30,000 of these.
_MOST_HITS: Final = 30
_MOST_TRIES: Final = 800
# Places of rare words around which a frequent one is looked for, beyond its first hits.
_MOST_NEAR: Final = 50
_NEAR: Final = 240
# What the index keeps of a word at most; a longer one was never indexed.
_LONGEST: Final = 64
_MOST_BIGRAMS: Final = 32
_MOST_COMPOUNDS: Final = 8
_MOST_PARTS: Final = 8


class Piece(NamedTuple):
    text: str
    hit: bool


_rest_of_word: Final = re.compile(r"[^\W_]*").match
# With the marks of Indian scripts, which are no letters; twice as slow.
_rest_with_marks: Final = re.compile(rf"(?:[^\W_]+|[{WORD_MARKS}]+)*").match
_is_mark: Final = re.compile(f"[{WORD_MARKS}]").match
_TYPED: Final = re.compile(r"[^\s\"“”«»()]+")
_PART: Final = re.compile(rf"[^\W_](?:[^\W_]|[{WORD_MARKS}])*")
# `MemoryError`, `getHTTPResponse`, `utf8`: where the case changes a new part begins.
_CAMEL: Final = re.compile(
    r"[A-Z]+(?![a-z])[0-9]*|[A-Z]?[a-z]+[0-9]*"
    rf"|(?:[^\W_A-Za-z]|[{WORD_MARKS}])+|[0-9]+"
)
_JOINTS: Final = "_-./:"
_NAME_JOINTS: Final = frozenset("_./:")

# Letters that fold to several (`ß`, `ﬁ`), marks that fold to none (accents of their own, points of Hebrew, vowel signs
# of Arabic and its stretching), and letters that `fold_in_place` does not fold.
_UNEVEN: Final = re.compile(
    "[\u00c6\u00de\u00df\u00e6\u00fe\u0132\u0133\u0149\u0152\u0153\u01c4-\u01cc\u01e2\u01e3\u01f1-\u01f3\u01fc\u01fd"
    "\u0300-\u036f\u0591-\u05c7\u0640\u064b-\u065f\u0670\u1e9e\u2c60-\u2c7f\ua722-\ua7ff"
    "\ufb00-\ufb4f\ufb50-\ufdfc\ufe70-\ufefc\uff10-\uff19\uff21-\uff3a\uff41-\uff5a]"
)
# Up to as many a pass for each is faster than a look at every letter.
_FEW_LETTERS: Final = 24
_LEAST_START: Final = 3
# What the last letter of a short word of English may become.
_TURNS_TO: Final = {"e": "i", "i": "y", "y": "i"}
# Letters before a stem of Arabic in its word: an article, a conjunction and a preposition.
_MOST_BEFORE: Final = 6


class _Compound(NamedTuple):
    anchor: str
    before: tuple[str, ...]
    after: tuple[str, ...]
    typed: str
    words: int


class Finder:
    """Finds the places of one query's words and substrings in texts of one language.

    Uses plain `find` from hit to hit: a pattern that tries every letter costs four times as much. `asked` is the
    query as typed, which distinguishes compounds and exact forms; `rarity` is the weight of a word, 0 to 1.
    """

    def __init__(
        self,
        words: Words,
        substrings: Sequence[str],
        language: str | None,
        *,
        asked: str = "",
        rarity: Mapping[str, float] | None = None,
    ) -> None:
        self._language = language_field(language)
        self._rarity = rarity or {}
        self._weights: list[float] = []
        self._by_stem: dict[str, int] = {}
        self._exact: set[str] = set()
        self._typed = set(_PART.findall(asked))
        self._known: dict[str, tuple[int, int] | None] = {}
        self._compounds: list[_Compound] = []
        # Korean comes folded into its letters; the text has it in syllables.
        spaced = [word for word in map(nfc, words.all_words) if not is_unspaced(word)]
        for word in spaced:
            self._add_word(word)
        for typed in _TYPED.findall(asked)[: 4 * _MOST_COMPOUNDS] if spaced else ():
            self._add_compound(typed)
        self._add_joined(spaced)
        starts = {start for word in self._exact for start in _starts_of(word, self._language)}
        starts |= {compound.anchor for compound in self._compounds}
        # Of two prefixes the shorter finds what the longer would.
        self._starts = [start for start in sorted(starts) if not any(start.startswith(p) for p in starts - {start})]
        self._substrings = [(part, self._new_word(part)) for part in dict.fromkeys(substrings) if part]
        self._add_runs(words)
        needles = (*self._starts, *(needle for needle, _ in (*self._substrings, *self._runs)))
        self._is_ascii = all(map(str.isascii, needles))
        self._shown_weights = Weights(tuple(self._weights))

    def _new_word(self, word: str) -> int:
        # Without a frequency the length is a hint: long words are rarer.
        self._weights.append(self._rarity.get(word, min(1.0, 0.5 + len(word) / 20)))
        return 1 << (len(self._weights) - 1)

    def _add_word(self, word: str) -> None:
        parts = _PART.findall(word)
        if len(parts) > 1:
            self._add_compound(word)
            return
        kept = stem(word, self._language)
        if not kept:
            return
        self._exact.add(word)
        if kept not in self._by_stem:
            self._by_stem[kept] = self._new_word(word)

    def _words_of(self, parts: Iterable[str]) -> int:
        return reduce(or_, (self._by_stem.get(stem(part, self._language) or "", 0) for part in parts), 0)

    def _add_joined(self, words: Sequence[str]) -> None:
        for first in range(len(words[:_MOST_PARTS])):
            for after in range(first + 2, min(first + 4, len(words), _MOST_PARTS) + 1):
                run = words[first:after]
                kept = stem("".join(run), self._language)
                if kept and kept not in self._by_stem:
                    self._by_stem[kept] = self._words_of(run)

    def _add_compound(self, typed: str) -> None:
        runs = _PART.findall(typed)
        parts = [folded for run in runs for piece in _CAMEL.findall(run) if (folded := fold(piece))]
        whole = fold(typed).strip(_JOINTS)
        known = self._words_of([*map(fold, runs), *parts])
        own = self._words_of(("".join(parts),))
        if not 1 < len(parts) <= _MOST_PARTS or not (known or own) or len(self._compounds) >= _MOST_COMPOUNDS:
            return
        if not own:
            own = self._new_word(whole)
            self._weights[-1] = 2.0
        at = parts.index(max(parts, key=len))
        before, after = tuple(reversed(parts[:at])), tuple(parts[at + 1 :])
        self._compounds.append(_Compound(parts[at], before, after, whole, own | known))

    def _add_runs(self, words: Words) -> None:
        runs = [nfc("".join(p)) for p in words.phrases] + [nfc(word) for word in words.words]
        found = dict.fromkeys(run for run in runs if is_unspaced(run))
        self._runs = [(run, self._new_word(run)) for run in list(found)[:_MOST_COMPOUNDS]]

    def places(self, text: str) -> list[tuple[int, int]]:
        return _joined(text, self._found(text[:_SEARCHED]))

    def _first_found(self, text: str, raw: bytes) -> list[Found]:
        if len(text) <= _SEARCHED:
            return self._found(text, raw)
        for start in range(0, len(text), _SEARCHED - _NEAR):
            if found := self._found(text[start : start + _SEARCHED]):
                return [(low + start, high + start, words, level) for low, high, words, level in found]
        return []

    def _found(self, text: str, raw: bytes = b"") -> list[Found]:
        text, folded, origins = _folded(text, raw or text.encode(*LENIENT), to_ascii=self._is_ascii)
        found: list[Found] = []
        cut = [(start, last) for start in self._starts if (last := self._add_hits(found, text, folded, start)) >= 0]
        for part, word in self._substrings:
            found += _occurrences(folded, part, word)
        for run, word in self._runs:
            found += _runs(folded, run, word)
        if cut and len(cut) < len(self._starts):
            self._add_near(found, text, folded, cut)
        found.sort()
        return found if origins is None else [_original(one, origins) for one in found]

    def _add_near(self, found: list[Found], text: str, folded: str, cut: list[tuple[str, int]]) -> None:
        first = min(last for _, last in cut)
        rare = [one[0] for one in found if one[0] > first][:_MOST_NEAR]
        for start, last in cut:
            done = last
            for at in rare:
                if at + _NEAR > done:
                    low = max(done, at - _NEAR)
                    done = at + _NEAR
                    self._add_hits(found, text, folded, start, low, done)

    def _add_hits(
        self, found: list[Found], text: str, folded: str, start: str, low: int = 0, high: int | None = None
    ) -> int:
        at = folded.find(start, low, high)
        left, tries, known, compounds = _MOST_HITS, _MOST_TRIES, self._known, self._compounds
        rest = _rest_of_word if folded.isascii() else _rest_with_marks
        while at >= 0:
            if not left or not tries:
                return at
            tries -= 1
            hit = self._compound_at(folded, at) if compounds else None
            end = at + 1
            if hit is not None:
                pass
            elif at and ((before := folded[at - 1]).isalnum() or (before > "\x7f" and _is_mark(before))):
                # Inside a word: only where a part of a compound begins, as `Error` does in `MemoryError`.
                if text[at].isupper() and text[at - 1].islower():
                    hit = self._part(text, folded, at)
                elif self._language == "ar":
                    hit = self._behind_prefix(folded, at)
            else:
                end = rest(folded, at).end()  # type: ignore[union-attr]  # it matches an empty rest, too
                word = folded[at:end]
                form = known[word] if word in known else self._form(word)
                if form is not None:
                    hit = at, end, form[0], self._level(text, folded, at, end, form[1])
                elif not text[at + 1 : end].islower():
                    hit = self._part(text, folded, at)
            if hit is not None:
                found.append(hit)
                left -= 1
                end = hit[1]
            # At least one step on: an empty match would never end.
            at = folded.find(start, end if end > at else at + 1, high)
        return -1

    def _level(self, text: str, folded: str, at: int, end: int, level: int) -> int:
        if (folded[end : end + 1] in _NAME_JOINTS and self._goes_on(folded, end + 1)) or folded[at - 1] == "_":
            return PART
        return TYPED if level == FOLDED and text[at:end] in self._typed else level

    def _compound_at(self, folded: str, at: int) -> Found | None:
        for compound in self._compounds:
            if not folded.startswith(compound.anchor, at):
                continue
            start, end = at, at + len(compound.anchor)
            for part in compound.after:
                end = _over_joint(folded, end, 1)
                end = end + len(part) if folded.startswith(part, end) else -1
                if end < 0:
                    break
            for part in compound.before:
                start = _over_joint(folded, start, -1) - len(part)
                if start < 0 or not folded.startswith(part, start):
                    end = -1
                    break
            if end < 0 or (start and folded[start - 1].isalnum()) or folded[end : end + 1].isalnum():
                continue
            return start, end, compound.words, TYPED if folded[start:end] == compound.typed else STEM
        return None

    def _goes_on(self, folded: str, at: int) -> bool:
        return folded[at : at + 1].isalnum() and not any(folded.startswith(start, at) for start in self._starts)

    def _form(self, word: str) -> tuple[int, int] | None:
        # The prefix finds candidates; only the stem decides, as in the index.
        kept = stem(word, self._language) if len(word) <= _LONGEST else None
        words = self._by_stem.get(kept or "")
        form = self._known[word] = None if words is None else (words, FOLDED if word in self._exact else STEM)
        return form

    def _behind_prefix(self, folded: str, at: int) -> Found | None:
        start = at
        while start and at - start <= _MOST_BEFORE and folded[start - 1].isalnum():
            start -= 1
        # Bounded: in a text without blanks, each hit would read to the end of the text.
        end = _rest_of_word(folded, at, at + _LONGEST).end()  # type: ignore[union-attr]  # it matches an empty rest
        word = folded[start:end]
        form = self._known[word] if word in self._known else self._form(word)
        return None if form is None or at - start > _MOST_BEFORE else (start, end, *form)

    def _part(self, text: str, folded: str, at: int) -> Found | None:
        match = _CAMEL.match(text, at, at + _LONGEST)
        known = self._form(folded[at : match.end()]) if match else None
        return (at, match.end(), known[0], PART) if match and known else None

    def pieces(self, text: str) -> list[Piece]:
        return _cut(text, 0, len(text), self.places(text))

    def passages(self, source: SearchedText, raw: bytes = b"", *, most: int = 1) -> list[list[Piece]]:
        """Return at most `most` passages, best first; empty without a hit. `raw` is the text in UTF-8, if at hand.

        Neither title nor headings are shown if there is other text.
        """
        found = self._first_found(source.text, raw)
        if not found:
            return []
        places = _joined(source.text, found)
        passages = chosen(source, found, self._shown_weights, most)
        return [_shown(source.text, passage, places) for passage in passages]

    def start_of(self, text: str) -> list[Piece]:
        return _shown(text, snippet_bounds(text), self.places(text))


def _over_joint(folded: str, at: int, step: int) -> int:
    for _ in range(2):
        beside = at if step > 0 else at - 1
        if not 0 <= beside < len(folded) or folded[beside].isalnum():
            break
        at += step
    return at


def _occurrences(folded: str, part: str, words: int) -> Iterable[Found]:
    at = folded.find(part)
    left = _MOST_HITS
    while at >= 0 and left:
        yield at, at + len(part), words, FOLDED
        left -= 1
        at = folded.find(part, at + len(part))


def _runs(folded: str, run: str, word: int) -> list[Found]:
    whole = list(_occurrences(folded, run, word))
    if whole or len(run) < 3:
        return whole
    pairs = dict.fromkeys(run[at : at + 2] for at in range(len(run) - 1))
    found = sorted(one for pair in list(pairs)[:_MOST_BIGRAMS] for one in _occurrences(folded, pair, word))
    parts: list[Found] = []
    for one in found:
        if parts and one[0] <= parts[-1][1]:
            parts[-1] = parts[-1][0], max(one[1], parts[-1][1]), word, PART
        else:
            parts.append((one[0], one[1], word, PART))
    return parts


Origins = npt.NDArray[np.int32]


def _folded(text: str, raw: bytes, *, to_ascii: bool) -> tuple[str, str, Origins | None]:
    if text.isascii():
        return text, text.lower(), None
    origins, others = None, beyond_ascii(raw)
    if uneven := set(_UNEVEN.findall("".join(others))):
        text, origins = _evened(text, uneven)
        raw = text.encode(*LENIENT)
        others = beyond_ascii(raw)
    return text, ascii_in_place(raw, others) if to_ascii else fold_in_place(text), origins


def _evened(text: str, uneven: Iterable[str]) -> tuple[str, Origins]:
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
    lengths = np.ones(0x10000, np.uint8)
    table = {}
    for char in uneven:
        bare = fold(char)
        table[ord(char)] = bare.title() if char.isupper() else bare
        lengths[ord(char)] = len(bare)
    if len(table) > _FEW_LETTERS:
        text = text.translate(table)
    else:
        for code, bare in table.items():
            text = text.replace(chr(code), bare)
    places = np.repeat(np.arange(len(codes), dtype=np.int32), lengths[np.minimum(codes, 0xFFFF)])
    # A sign may stand for a whole sentence: no more is looked through for that.
    return text[:_SEARCHED], np.append(places, np.int32(len(codes)))


def _original(found: Found, origins: Origins) -> Found:
    start, end, words, level = found
    return int(origins[start]), max(int(origins[end]), int(origins[end - 1]) + 1), words, level


def _starts_of(word: str, language: str) -> set[str]:
    """Return prefixes of all words with the same stem: stemming may change the last letter of the stem.

    `making` has the stem of `make`, `chevaux` that of `cheval`, `kitabı` that of `kitap`.
    """
    kept = stem(word, language) or word
    if language == UNSTEMMED:
        return {word, kept}
    length = 0
    while length < min(len(word), len(kept)) and word[length] == kept[length]:
        length += 1
    if length > _LEAST_START:
        return {word[: length - 1]}
    # Two letters begin too many words: `use` and `using`, `fly` and `flies`, `die` and `dying` are distinguished here.
    starts = {word[:_LEAST_START], kept[:_LEAST_START]}
    if language == "en":
        starts |= {f"{start[:-1]}{other}" for start in starts for other in _TURNS_TO.get(start[-1:], "")}
        starts |= {f"{start[:-2]}yi" for start in starts if start.endswith("ie")}
    return starts


def _joined(text: str, found: Sequence[Found]) -> list[tuple[int, int]]:
    places: list[tuple[int, int]] = []
    start = end = -1
    for first, last, _, _ in found:
        if end >= 0 and (first <= end or (first == end + 1 and text[end] in _JOINTS)):
            end = max(end, last)
            continue
        if end >= 0:
            places.append((start, end))
        start, end = first, last
    if end >= 0:
        places.append((start, end))
    return places


def _shown(text: str, parts: Iterable[str | tuple[int, int]], places: Sequence[tuple[int, int]]) -> list[Piece]:
    pieces: list[Piece] = []
    before = ""
    for part in parts:
        # An ellipsis is no piece of its own: it belongs to the words beside it.
        if isinstance(part, str):
            before += part
            continue
        before = _add_pieces(pieces, before, text, part, places)
    if before:
        pieces.append(Piece(before, False))
    return pieces


def _cut(text: str, start: int, end: int, places: Sequence[tuple[int, int]]) -> list[Piece]:
    found: list[Piece] = []
    rest = _add_pieces(found, "", text, (start, end), places)
    return [*found, Piece(rest, False)] if rest else found


def _add_pieces(
    pieces: list[Piece], before: str, text: str, span: tuple[int, int], places: Sequence[tuple[int, int]]
) -> str:
    at, end = span
    # The first place that begins in it; those before would only be passed over.
    for number in range(bisect_left(places, (at, 0)), len(places)):
        first, last = places[number]
        if first >= end:
            break
        if first < at or last > end:
            continue
        if before or first > at:
            pieces.append(Piece(before + text[at:first], False))
            before = ""
        pieces.append(Piece(text[first:last], True))
        at = last
    return before + text[at:end]
