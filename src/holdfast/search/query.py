"""The query language: parses typed text into an intent and a tree. Never raises: a syntax error is plain text.

Operators (`site:` and the others of `operators`) are extracted first: they select captures, and leave the rest
as it is. Intents of the rest, tried in this order: a URL is looked up; Boolean syntax joins words, which match
as in a plain query, and substrings of one field (`title:`, `snippet:`, `url:`); everything else is words that
must all occur in the text.
"""

from __future__ import annotations

import re
from dataclasses import replace
from enum import StrEnum
from typing import Final, TypeGuard

from holdfast.errors import UrlRefused
from holdfast.parse.text import fold, is_unspaced, letters_of, tidy, without_wide_blanks, words_of
from holdfast.search.addresses import unescaped
from holdfast.search.clauses import Parted, part
from holdfast.search.operators import Condition
from holdfast.urls import Url, hash64, parse_seed
from holdfast.values import dataclass

MAX_QUERY_CHARS: Final = 256
MAX_TOKENS: Final = 128
MAX_TERMS: Final = 32
MAX_WORDS: Final = 16
MIN_WORD_CHARS: Final = 3


class Intent(StrEnum):
    BROWSE = "browse"
    URL = "url"
    BOOLEAN = "boolean"
    PLAIN = "plain"


class Field(StrEnum):
    """Where a term is searched: words in the text and in the names of a page, substrings in the other fields."""

    TITLE = "title"
    SNIPPET = "snippet"
    URL = "url"
    TEXT = "text"
    NAMES = "names"
    """The texts of links to a page, and its path. Included in `text`, as in a plain query."""


@dataclass(frozen=True, slots=True)
class Term:
    """A plain query as typed; for other fields than `text`, a folded substring."""

    text: str
    field: Field = Field.TEXT
    is_prefix: bool = False


@dataclass(frozen=True, slots=True)
class And:
    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Or:
    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Not:
    part: Node


Node = Term | And | Or | Not


_STOP_WORD_LIST: Final = (
    "about after all also and any are been but can could did does for from had has have her his how into its may more"
    " most not our out should some such than that the their them then there these they this was were what when where"
    " which who why will with would you your"
    " aux avec ces cette comment dans des donc elle elles est leur leurs les mais mes mon nos notre nous ont ou par pas"
    " pour pourquoi quand que quel quelle quelles quels qui quoi sans ses sont sur tes ton une vos votre vous"
)
_STOP_WORDS: Final = frozenset(words_of(_STOP_WORD_LIST))


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """Plain text: words that must all occur, phrases that must occur as they are. Both folded, neither stemmed."""

    words: tuple[str, ...]
    phrases: tuple[tuple[str, ...], ...] = ()

    @property
    def all_words(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys([*self.words, *(word for phrase in self.phrases for word in phrase if word != " ")]))

    @property
    def texts(self) -> list[str]:
        joints = ("" if any(map(is_unspaced, phrase)) else " " for phrase in self.phrases)
        return [*self.words, *(joint.join(phrase) for joint, phrase in zip(joints, self.phrases, strict=True))]


NO_WORDS: Final = Words(words=())


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedQuery:
    """A parsed query. `tree` is set for boolean queries, `groups` for URLs, `words` for everything else
    and as the phrase of a certain URL."""

    text: str
    intent: Intent
    tree: Node | None = None
    groups: tuple[int, ...] = ()
    """Hashes of the group's URL in its variants: both schemes, with and without `www.`."""
    words: Words = NO_WORDS
    certain: bool = True
    """False if a URL was guessed from a dot: plain text is tried if nothing is found."""
    conditions: tuple[Condition, ...] = ()
    operators: str = ""
    like: int | None = None
    operator_terms: tuple[str, ...] = ()
    """Words that only its operators contain: they rank, and are not corrected."""
    has_words: bool = False
    problem: str | None = None


QUOTES: Final = str.maketrans(dict.fromkeys("\u201c\u201d\u201e\u00ab\u00bb", '"'))
_SCHEME = re.compile(r"https?://", re.IGNORECASE)
# What a text that names an address may leave out.
_PREFIX = re.compile(r"(?:url:)?(?:https?://)?(?:www\.)?", re.IGNORECASE)
_FIELDED = re.compile(r"(title|snippet|url|text):", re.IGNORECASE)
# `command not found` is a message, and so is `IS NOT NULL`: lower case never joins, nor does NOT between two words in
# capitals.
_NOT: Final = r"(?:(?<![A-Z]\s)|(?<=\bAND\s)|(?<=\bOR\s))NOT|NOT(?!\s[A-Z]{2})"
_JOINT = re.compile(rf"(?<![^\s(])(?:AND|OR|{_NOT})(?![^\s)(])")
# Parentheses alone join nothing: `strlen(3)` and `Tides (spring)` are words.
# A minus excludes a word, and before a single letter or digit it is an option of a command, as in `ls -l`.
_MINUS: Final = r"-(?![A-Za-z0-9](?![^\s)]))(?=[^\s-])"
_OTHER_SYNTAX = re.compile(rf"(?<![^\s(]){_MINUS}|(?<![^\s(])(?i:title|snippet|url|text):|\w\w\*(?![^\s)])")


def parse_query(text: str) -> ParsedQuery:
    """Return the parsed query; any string is valid."""
    # Cut before and after: tidying may make a text shorter, and must not be given a megabyte.
    clean = tidy(text[: 4 * MAX_QUERY_CHARS])[:MAX_QUERY_CHARS].strip()
    parted = part(clean.translate(QUOTES))
    found = replace(_understood(parted.rest, is_alone=not parted.taken), has_words=bool(parted.rest))
    if not parted.taken:
        return found if parted.problem is None else replace(found, problem=parted.problem)
    return replace(_with_words(found, parted), conditions=parted.conditions, operators=parted.taken, like=parted.like)


def _with_words(found: ParsedQuery, parted: Parted) -> ParsedQuery:
    """Return a query with the words of its operators added: `intitle:flu` alone is ranked by `flu`.

    At most as many as a query may have: conditions beyond the limit do not rank, but still must match.
    """
    if not parted.words or found.intent not in (Intent.BROWSE, Intent.PLAIN):
        return found
    runs = [tuple(letters_of(word)) if is_unspaced(word) else (word,) for word in parted.words]
    words = tuple(dict.fromkeys([*found.words.words, *(run[0] for run in runs if len(run) == 1)]))[:MAX_WORDS]
    phrases = tuple(dict.fromkeys([*found.words.phrases, *(run for run in runs if len(run) > 1)]))[:MAX_WORDS]
    return replace(
        found,
        text=found.text or " ".join(parted.words),
        intent=Intent.PLAIN,
        words=Words(words=words, phrases=phrases),
        operator_terms=tuple(word for word in words if word not in found.words.words),
    )


def _understood(clean: str, *, is_alone: bool) -> ParsedQuery:
    if not clean:
        return ParsedQuery(text="", intent=Intent.BROWSE)
    if (address := _address(clean)) is not None:
        named = "://" in clean or clean.lower().startswith(("www.", "url:"))
        words = plain('"{}"'.format(_PREFIX.sub("", clean, 1).replace('"', " ")) if named else clean)
        return ParsedQuery(text=clean, intent=Intent.URL, groups=group_hashes(address), words=words, certain=named)
    is_boolean = _OTHER_SYNTAX.search(clean) or _JOINT.search(clean)
    tree = _tree(clean) if is_boolean else None
    # A query of one excluded word is that word: `-DSQLITE_OMIT_TEMPDB` names an option.
    is_option = is_alone and isinstance(tree, Not) and _is_plain(tree.part) and " " not in clean
    if tree is not None and not is_option:
        return ParsedQuery(text=clean, intent=Intent.BOOLEAN, tree=tree, words=plain(wanted_text(tree)))
    return ParsedQuery(text=clean, intent=Intent.PLAIN, words=plain(clean))


def _address(text: str) -> Url | None:
    if " " in text or text[0] in "\"'(-":
        return None
    if _FIELDED.match(text):
        text = text.partition(":")[2] if text[:4].lower() == "url:" else ""
        if not (_SCHEME.match(text) or text.lower().startswith("www.")):
            return None
    if not ("://" in text or text.lower().startswith("www.") or "." in text.partition("/")[0]):
        return None
    try:
        return parse_seed(text)
    except UrlRefused:
        return None


def group_hashes(address: Url) -> tuple[int, ...]:
    rest = address.group.partition("://")[2]
    bare = rest.removeprefix("www.")
    spelled = [address.group, *(f"{scheme}://{www}{bare}" for scheme in ("https", "http") for www in ("", "www."))]
    return tuple(hash64(group) for group in dict.fromkeys(spelled))


def quoted_in(text: str) -> list[str]:
    pieces = text.split('"')
    return pieces[1::2] if len(pieces) % 2 else pieces[1:-1:2]


def plain(text: str) -> Words:
    """Return the words and quoted phrases of plain text, sixteen at most.

    Stop words count if there are no others, words under three letters if there are not even stop words.
    """
    loose, phrases = text, list[tuple[str, ...]]()
    if quoted := quoted_in(text):
        pieces = text.split('"')
        loose = " ".join(pieces[0::2] if len(pieces) % 2 else [*pieces[0:-1:2], pieces[-1]])
        phrases = [tuple(_letters(words_of(without_wide_blanks(piece)))[: 4 * MAX_WORDS]) for piece in quoted]
    spaced = list(dict.fromkeys(word for word in words_of(loose) if not is_unspaced(word)))
    long_words = [word for word in spaced if len(word) >= MIN_WORD_CHARS]
    words = [word for word in long_words if word not in _STOP_WORDS]
    phrases += [tuple(letters_of(word)) for word in words_of(loose) if is_unspaced(word)]
    long_phrases = [phrase for phrase in phrases if len(phrase) > 1]
    alone = [phrase[0] for phrase in phrases if len(phrase) == 1]
    words += [word for word in alone if len(word) >= MIN_WORD_CHARS or is_unspaced(word)]
    if not words and not long_phrases:
        words = long_words or [*spaced, *alone]
    return Words(words=tuple(dict.fromkeys(words))[:MAX_WORDS], phrases=tuple(dict.fromkeys(long_phrases))[:MAX_WORDS])


def _letters(words: list[str]) -> list[str]:
    found: list[str] = []
    for word in words:
        letters = letters_of(word)
        found += [" ", *letters] if found and is_unspaced(found[-1]) and is_unspaced(letters[0]) else letters
    return found


_TOKEN = re.compile(
    rf"""\s*(?:
      (?P<paren>[()])
    | (?P<minus>{_MINUS})
    | (?P<field>title|snippet|url|text):(?=[^\s()])
    | "(?P<quoted>(?:[^"\\]|\\.)*)"
    | (?P<word>[^\s()"]+)
    )""",
    re.VERBOSE | re.IGNORECASE,
)
_ESCAPED = re.compile(r"\\(.)")


class _SyntaxError(Exception):
    """The text is not a boolean query. Never leaves this module."""


_Token = tuple[str, str]
"""Its kind and its text."""


def _tokens(text: str) -> list[_Token]:
    found: list[_Token] = []
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            if text[at:].strip():
                raise _SyntaxError
            break
        kind, value = str(match.lastgroup), match[str(match.lastgroup)]
        if kind == "word" and _JOINT.match(text, match.start("word")) and not (found and found[-1][0] == "field"):
            kind = "operator"
        if kind == "minus" and at == match.start("minus") and found and found[-1][0] in ("word", "quoted", "field"):
            # Glued to what comes before it: part of a word, not an operator.
            kind, value = "word", "-"
        found.append((kind, _ESCAPED.sub(r"\1", value) if kind == "quoted" else value))
        at = match.end()
        if len(found) > MAX_TOKENS:
            raise _SyntaxError
    return found


class _Parser:
    """A parser: OR binds least, then AND (also implied between two terms), then NOT and the minus sign."""

    def __init__(self, tokens: list[_Token]) -> None:
        self._tokens, self._at, self._terms = tokens, 0, 0

    def tree(self) -> Node:
        node = self._or()
        if self._at < len(self._tokens):
            raise _SyntaxError
        return node

    def _next(self) -> _Token | None:
        return self._tokens[self._at] if self._at < len(self._tokens) else None

    def _take(self, kind: str, text: str) -> bool:
        if self._next() != (kind, text):
            return False
        self._at += 1
        return True

    def _or(self) -> Node:
        parts = [self._and()]
        while self._take("operator", "OR"):
            parts.append(self._and())
        return parts[0] if len(parts) == 1 else Or(tuple(parts))

    def _and(self) -> Node:
        parts = [self._not()]
        while True:
            if not self._take("operator", "AND") and self._next() in (None, ("operator", "OR"), ("paren", ")")):
                break
            parts.append(self._not())
        return _together(parts)

    def _not(self) -> Node:
        negations = 0
        # Two negations cancel out, as in `NOT -x`.
        while self._take("operator", "NOT") or self._take("minus", "-"):
            negations += 1
        node = self._primary()
        return Not(node) if negations % 2 else node

    def _primary(self) -> Node:
        if self._take("paren", "("):
            node = self._or()
            if not self._take("paren", ")"):
                raise _SyntaxError
            return node
        kind, text = self._next() or ("", "")
        field = Field.TEXT
        if kind == "field":
            field = Field(text.lower())
            self._at += 1
            kind, text = self._next() or ("", "")
        if kind not in ("word", "quoted"):
            raise _SyntaxError
        self._at += 1
        self._terms += 1
        folded = fold(unescaped(text) if field is Field.URL else text)
        is_prefix = kind == "word" and len(folded) > 2 and folded.endswith("*")
        folded = folded.rstrip("*") if is_prefix else folded
        if not folded or self._terms > MAX_TERMS:
            raise _SyntaxError
        if is_prefix or field is not Field.TEXT:
            return Term(folded, field, is_prefix)
        return Term(f'"{text.replace(chr(34), " ")}"' if kind == "quoted" else text)


def _together(parts: list[Node]) -> Node:
    words = [part.text for part in parts if _is_plain(part)]
    if len(words) > 1:
        parts = [Term(" ".join(words)), *(part for part in parts if not _is_plain(part))]
    return parts[0] if len(parts) == 1 else And(tuple(parts))


def _is_plain(node: Node) -> TypeGuard[Term]:
    return isinstance(node, Term) and node.field is Field.TEXT and not node.is_prefix


def _tree(text: str) -> Node | None:
    try:
        return _Parser(_tokens(text)).tree()
    # What cannot be read as a boolean query is plain text: a search box has no error for a stray parenthesis.
    except _SyntaxError:
        return None


def wanted_text(tree: Node) -> str:
    return " ".join(term.text for term in terms_in(tree) if _is_plain(term))


def terms_in(node: Node, *, excluded: bool = False) -> list[Term]:
    """Return the terms of a tree, with those under NOT only if `excluded`."""
    match node:
        case Term():
            return [node]
        case Not(part):
            return terms_in(part, excluded=True) if excluded else []
        case And(parts) | Or(parts):
            return [term for part in parts for term in terms_in(part, excluded=excluded)]


def needs_words(tree: Node) -> bool:
    """Return True if every match of a tree contains some of its words; False if it has other terms, too."""
    return _is_worded(tree) and all(term.field is Field.TEXT for term in terms_in(tree, excluded=True))


def _is_worded(node: Node) -> bool:
    match node:
        case And(parts):
            return any(map(_is_worded, parts))
        case Or(parts):
            return all(map(_is_worded, parts))
        case _:
            return isinstance(node, Term)
