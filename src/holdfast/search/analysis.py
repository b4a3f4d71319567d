"""Word analysis for the index: languages and their stems, exact forms, compound words, pairs of unspaced letters.

Documents and queries use the same functions, so that they match. `prepared` folds all letters, and the
analysers split and stem the result. Case and accents are folded before stemming: `securite` and `sécurité` get
the same stem and find each other; the exact form distinguishes them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from typing import Any, Final
from urllib.parse import unquote

import numpy as np
import numpy.typing as npt
import tantivy

from holdfast.parse.text import UNSPACED, WORD_MARKS, fold, is_unspaced, letters_of, nfc, without_wide_blanks, words_of

STEMMERS: Final = {
    "ar": "arabic",
    "da": "danish",
    "de": "german",
    "el": "greek",
    "en": "english",
    "es": "spanish",
    "fi": "finnish",
    "fr": "french",
    "hu": "hungarian",
    "it": "italian",
    "nl": "dutch",
    "no": "norwegian",
    "pt": "portuguese",
    "ro": "romanian",
    "ru": "russian",
    "sv": "swedish",
    "ta": "tamil",
    "tr": "turkish",
}
UNSTEMMED: Final = "xx"
"""Represents every other language: its words are folded, but not stemmed."""
LANGUAGES: Final = (*STEMMERS, UNSTEMMED)
_WRITTEN_AS: Final = {"nb": "no", "nn": "no"}
# Longer ones are no words; a SHA-512 in hexadecimal has 128 letters.
MAX_WORD_BYTES: Final = 130
# Of one document, each once.
_MAX_COMPOUNDS: Final = 10_000
_MAX_PATH_CHARS: Final = 500
# Letters and marks of any script: the simple tokeniser ends a word at the marks of Indian scripts.
_ANY_SCRIPT: Final = r"[\p{L}\p{M}\p{N}]+"


def _analyser(tokeniser: Any, *filters: Any) -> Any:
    builder = tantivy.TextAnalyzerBuilder(tokeniser)
    for step in (tantivy.Filter.remove_long(MAX_WORD_BYTES), tantivy.Filter.lowercase(), *filters):
        builder = builder.filter(step)
    return builder.build()


def _stemming(language: str) -> Any:
    if language == UNSTEMMED:
        return _analyser(tantivy.Tokenizer.regex(_ANY_SCRIPT))
    # Stem twice: after accents are removed, one pass leaves `vaccinees` at `vaccine`. With a second pass half as many
    # words miss the other forms of their family. English has no accents to lose.
    stemmer = tantivy.Filter.stemmer(STEMMERS[language])
    passes = [stemmer] if language == "en" else [stemmer, tantivy.Filter.stemmer(STEMMERS[language])]
    tokeniser = tantivy.Tokenizer.regex(_ANY_SCRIPT) if language == "ta" else tantivy.Tokenizer.simple()
    return _analyser(tokeniser, *passes)


ANALYSERS: Final = {
    **{language: _stemming(language) for language in LANGUAGES},
    "exact": _analyser(tantivy.Tokenizer.simple()),
    "listed": _analyser(tantivy.Tokenizer.whitespace()),
    "grams": tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.ngram(3, 3)).build(),
}
"""Analysers by the names used in the index's fields. `listed` takes words that are already split."""


def language_field(language: str | None) -> str:
    primary = (language or "").partition("-")[0].lower()
    primary = _WRITTEN_AS.get(primary, primary)
    return primary if primary in STEMMERS else UNSTEMMED


def languages_of(tags: Iterable[str]) -> list[str]:
    return sorted(set(map(language_field, tags)))


@lru_cache(maxsize=20_000)
def stem(word: str, language: str) -> str | None:
    found: list[str] = ANALYSERS[language].analyze(word if word.isascii() else fold_letters(word))
    return found[0] if found else None


def stems(text: str, language: str) -> list[str]:
    found: list[str] = ANALYSERS[language].analyze(prepared(text))
    return found


_SEEN_MARKS: Final = re.compile("[\u0e47-\u0e4e\u0ec8-\u0ece]")
_RUN: Final = re.compile(f"[{UNSPACED}]+")
_WORD_LETTER: Final = re.compile(rf"[\w{WORD_MARKS}]")
# Up to as many a pass for each is faster than a look at every letter.
_FEW_LETTERS: Final = 24
_FIRST_OTHER_SCRIPT: Final = "\u0370"


def prepared(text: str) -> str:
    """Return a text in the form for analysers: letters folded, those of unspaced scripts as pairs."""
    return text if text.isascii() else _RUN.sub(_as_pairs, nfc(fold_letters(nfc(without_wide_blanks(text)))))


def fold_letters(text: str, first: str = "\x80") -> str:
    """Return the text with all letters folded, or those from `first` on: Latin ones then keep their accents."""
    changes = {char: bare for char in set(text) if char >= first and (bare := _folded(char)) != char}
    if len(changes) > _FEW_LETTERS:
        return text.translate({ord(char): bare for char, bare in changes.items()})
    for char, bare in changes.items():
        text = text.replace(char, bare)
    return text


@lru_cache(maxsize=20_000)
def _folded(char: str) -> str:
    if char.isspace() or (is_unspaced(char) and not _WORD_LETTER.match(char)):
        return " "
    # A capital sigma does not tell whether it ends its word.
    return fold(char).replace("\u03c2", "\u03c3")


def _as_pairs(run: re.Match[str]) -> str:
    return f" {' '.join(pairs_of(run[0]))} "


def pairs_of(run: str) -> list[str]:
    """Return the terms of a run of unspaced letters, in documents and queries: every two neighbours, or one letter."""
    letters = _SEEN_MARKS.sub("", run)
    return [letters[at : at + 2] for at in range(len(letters) - 1)] or ([letters] if letters else [])


def query_pairs(letters: Iterable[str]) -> list[str]:
    found: list[str] = []
    run = ""
    for letter in (*letters, " "):
        if is_unspaced(letter):
            run += letter
            continue
        found += [*pairs_of(run), letter] if letter != " " else pairs_of(run)
        run = ""
    return found


def terms_of(word: str) -> list[str]:
    return query_pairs(letters_of(word))


def is_letter(term: str) -> bool:
    """Return True if a term is a single letter of an unspaced script: it is indexed as the pairs it starts."""
    return len(term) == 1 and is_unspaced(term)


def spellings(words: Sequence[str]) -> list[tuple[str, ...]]:
    """Return the terms of adjacent words: written without spaces, and with them if that gives another text.

    Korean separates words of an unspaced script by spaces, Japanese does not.
    """
    joined = tuple(query_pairs(letter for word in words for letter in letters_of(word)))
    return list(dict.fromkeys([joined, tuple(term for word in words for term in terms_of(word))]))


def author_terms(name: str) -> list[str]:
    return [term for word in words_of(name) for term in terms_of(word)]


def single_letters(text: str) -> str:
    """Return the distinct unspaced letters of a text, so that each can be found as a term of its own."""
    return "" if text.isascii() else " ".join(filter(is_unspaced, set(text)))


_CAMEL: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_JOINTS: Final = "-_./:&@"
_AT_JOINTS: Final = re.compile(f"[{_JOINTS}]+")
_AROUND: Final = "\"'`()[]{}<>,;!?*=+|%$#~^\\«»“”„‘’…¶§" + _JOINTS
_INNER: Final = re.compile(rf"\w+(?:[{_JOINTS}]+\w+)*")


def compound(word: str) -> tuple[str, ...]:
    """Return the parts of a compound (`pg_ls_dir`, `well-known`, `os.path`, `MemoryError`); empty for a plain word."""
    if word.isalnum():
        # Most words end here: small ones, and those with a capital in front.
        if word[1:].islower() or word.isupper() or not word.isascii():
            return ()
        parts = _CAMEL.findall(word)
    else:
        parts = [part for part in _AT_JOINTS.split(word) if part]
    return tuple(parts) if len(parts) > 1 else ()


# Signs that stand around words and in none, as blanks.
_SIGNS_AS_BLANKS: Final = {ord(sign): " " for sign in _AROUND if sign not in _JOINTS}


_ASCII_SIGNS: Final = bytes(_SIGNS_AS_BLANKS.get(code, chr(code)).encode()[0] for code in range(128)).ljust(256)


def _without_signs(text: str) -> str:
    # A table translates bytes; a dict translates letters and takes ten times as long.
    if text.isascii():
        return text.encode("ascii").translate(_ASCII_SIGNS).decode("ascii")
    return text.translate(_SIGNS_AS_BLANKS)


# Of a shorter text a loop over the words costs less.
_SHORT: Final = 500
_APART, _SMALL, _CAPITAL, _DIGIT, _JOINT = range(5)


def _class_of(char: str) -> int:
    if char.isdigit():
        return _DIGIT
    if char.isalpha():
        return _CAPITAL if char.isupper() else _SMALL
    return _JOINT if char in _JOINTS else _APART


# Beyond this code point, capitals are not distinguished.
_LAST_CODE: Final = 0x2C00


@cache
def _classes() -> npt.NDArray[np.uint8]:
    found = np.fromiter((_class_of(chr(code)) for code in range(_LAST_CODE + 1)), np.uint8, _LAST_CODE + 1)
    found[_LAST_CODE] = _SMALL
    return found


# Two neighbours, the class of the first times eight and that of the second: words are joined there, or parted.
_JOINED: Final = {
    *((_SMALL, _CAPITAL), (_SMALL, _DIGIT), (_DIGIT, _SMALL), (_DIGIT, _CAPITAL), (_CAPITAL, _DIGIT)),
    *((_JOINT, _SMALL), (_JOINT, _CAPITAL), (_JOINT, _DIGIT)),
}
_SEAMS: Final = bytes(divmod(both, 8) in _JOINED for both in range(256))


def _pieces_with_seams(text: str) -> list[str]:
    """Return the pieces of a text between spaces and signs that may be compounds, in order.

    Processes all letters together: a loop over the words of a page costs a tenth of indexing it.
    """
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)
    classes = _classes()[np.minimum(codes, _LAST_CODE)]
    if len(classes) < 2:
        return []
    neighbours = (classes[:-1] << np.uint8(3)) | classes[1:]
    # Bytes look up faster than arrays do.
    seams = np.frombuffer(bytearray(neighbours.tobytes().translate(_SEAMS)), np.bool_)
    # As in `HTTPServer`: the last of several capitals belongs to the word behind it.
    capital = classes == _CAPITAL
    seams[1:] |= capital[:-2] & capital[1:-1] & (classes[2:] == _SMALL)
    at = np.flatnonzero(seams)
    if not len(at):
        return []
    ends = np.append(np.flatnonzero(classes == _APART), len(classes))
    place = np.unique(np.searchsorted(ends, at))
    starts = np.where(place > 0, ends[place - 1] + 1, 0)
    return [text[start:end] for start, end in zip(starts.tolist(), ends[place].tolist(), strict=True)]


# Names that only their signs distinguish, by a sign that they have. A pattern starts with the sign if it can, so that a
# plain search finds it.
_SIGNED: Final = tuple(
    (sign, re.compile(pattern))
    for sign, pattern in (
        ("++", r"(?<![\w+#])[A-Za-z]{1,3}\+\+(?![\w+#])"),
        ("#", r"(?<![\w+#])[A-Za-z]{1,3}#(?![\w+#])"),
        ("$", r"\$(?<![\w$@#&/]\$)[A-Za-z_]\w+"),
        ("@", r"@(?<![\w$@#&/]@)[A-Za-z_]\w+"),
        ("#", r"#(?<![\w$@#&/]#)[A-Za-z_]\w+"),
        ("%", r"%(?<![\w%]%)[A-Za-z_]\w+%(?![\w%])"),
        ("->", r"\b[A-Za-z_]\w*->[A-Za-z_]\w*"),
        ("^{", r"\^\{\w+\}"),
        ("_", r"\b_+[^\W_]\w*|\b[^\W_]\w*_\b"),
    )
)


def compounds_in(text: str) -> list[str]:
    """Return the compound words of a text as written, each once, in order."""
    names = [name for sign, pattern in _SIGNED if sign in text for name in pattern.findall(text)]
    found = dict.fromkeys([name for name in dict.fromkeys(names) if len(name) <= MAX_WORD_BYTES][:_MAX_COMPOUNDS])
    if len(text) > _SHORT:
        others = _pieces_with_seams(text)
    else:
        pieces = _without_signs(text).split()
        # Nine of ten words end here, after two looks in C; telling first which are the same would cost as much again.
        others = [piece for piece in pieces if not (piece.isalpha() and (piece.islower() or piece.istitle()))]
    for piece in dict.fromkeys(others):
        core = piece.strip(_AROUND)
        if core.isalnum():
            if not core[1:].islower() and len(core) <= MAX_WORD_BYTES and compound(core):
                found[core] = None
        elif core:
            for word in _INNER.findall(core):
                if len(word) <= MAX_WORD_BYTES and compound(word):
                    found[word] = None
        if len(found) >= _MAX_COMPOUNDS:
            break
    return list(found)


def whole_forms(words: Iterable[str]) -> str:
    return " ".join(word.lower() for word in words)


def spelled_out(words: Iterable[str]) -> list[str]:
    return [" ".join(compound(word)) for word in words if word.isalnum()]


def exact_words(text: str) -> list[str]:
    """Return the words of a text in their exact form: lower case, with the accents of Latin letters."""
    found: list[str] = ANALYSERS["exact"].analyze(
        text if text.isascii() else fold_letters(nfc(text), _FIRST_OTHER_SCRIPT)
    )
    return found


_LATIN_ACCENT: Final = re.compile("[\u00c0-\u024f\u1e00-\u1eff]")


def unfolded_words(text: str, first_chars: int) -> str:
    """Return the exact words of a text that has accented Latin letters, each once; empty for other texts.

    Words with accents come from the whole text, others only from its first characters, where both are
    distinguished.
    """
    if text.isascii() or _LATIN_ACCENT.search(text) is None:
        return ""
    pieces = dict.fromkeys(piece for piece in text[first_chars:].split() if not piece.isascii())
    later = exact_words(" ".join(piece for piece in pieces if _LATIN_ACCENT.search(piece)))
    return " ".join(dict.fromkeys([*exact_words(text[:first_chars]), *(word for word in later if not word.isascii())]))


def within(texts: Sequence[str], limit: int) -> list[str]:
    """Return as many of the first texts as fit into `limit` characters together."""
    kept: list[str] = []
    for text in texts:
        limit -= len(text)
        if limit < 0:
            break
        kept.append(text)
    return kept


_ESCAPED: Final = re.compile("%[0-9A-Fa-f]{2}")


def words_of_path(url: str) -> str:
    """Return the path of a URL as text, without a file extension."""
    path = url.partition("://")[2].partition("/")[2].partition("?")[0].partition("#")[0]
    if _ESCAPED.search(path):
        path = unquote(path, errors="replace")
    path = path[:_MAX_PATH_CHARS]
    stump, dot, ending = path.rpartition(".")
    named = stump if dot and len(ending) <= 5 and ending.isalnum() else path
    return " ".join([named, *spelled_out(compounds_in(named))])
