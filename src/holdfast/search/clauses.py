"""Splits a query into operators and words: `site:example.org flu` is a condition and the text `flu`.

The words stay as typed, for `query` to parse. It never raises; a query without a clean split (an open
parenthesis) is split loosely: operators outside of groups count, and the rest is text.
"""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise
from typing import Final, NamedTuple

from holdfast.search.operators import (
    OPERATORS,
    AllOf,
    AnyOf,
    Condition,
    InTitle,
    InvalidValue,
    LikeCapture,
    NearWords,
    Without,
)
from holdfast.values import dataclass

MAX_OPERATORS: Final = 32
_MAX_TOKENS: Final = 128

_NAMES: Final = "|".join(OPERATORS)
# Bounded and possessive: a quote that is never closed is looked for once from each quote, and a query has few letters.
_QUOTED: Final = r'"(?:[^"\\]|\\.){0,256}+"'
# An operator, a minus and a quoted run with `~` count only where a word may begin.
_TOKEN: Final = re.compile(
    rf"""
      (?P<blank>\s++)
    | (?P<close>{_QUOTED}~(?P<slop>\d{{1,3}}+)(?![^\s()]))
    | (?P<quoted>{_QUOTED})
    | (?P<paren>[()])
    | (?<![^\s(])(?P<minus>-)(?=[^\s-])
    | (?<![^\s(-])(?P<operator>(?P<name>(?i:{_NAMES})):(?!:)
        (?P<value>{_QUOTED}|\d{{0,3}}+\([^()]{{0,256}}+\)|[^\s()"]++(?:\([^\s()"]*+\)[^\s()"]*+)*+))(?![^\s()])
    | (?<![^\s(])(?P<joint>AND|OR|NOT)(?![^\s()])
    | (?P<word>[^\s()"]++|")
    """,
    re.VERBOSE,
)
_JOINTS: Final = ("AND", "OR", "NOT")
_ESCAPED: Final = re.compile(r"\\(.)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Parted:
    rest: str
    conditions: tuple[Condition, ...] = ()
    """All of these must hold."""
    taken: str = ""
    like: int | None = None
    problem: str | None = None

    @property
    def words(self) -> tuple[str, ...]:
        """Words of required conditions that contain words; they rank like words of the text."""
        asked = [one.words for one in self.conditions if isinstance(one, InTitle | NearWords)]
        return tuple(dict.fromkeys(word for words in asked for word in words))


class _Token(NamedTuple):
    kind: str
    text: str
    start: int
    end: int
    condition: Condition | None = None


class _Refused(Exception):
    """The operators are an invalid combination. Never leaves this module."""


class _Unparted(Exception):
    """Unbalanced parentheses or operators. Never leaves this module."""


class _Piece(NamedTuple):
    start: int
    end: int
    condition: Condition | None


def part(text: str) -> Parted:
    # Most searches have no operator, and one look says so.
    if ":" not in text and "~" not in text:
        return Parted(rest=text)
    try:
        tokens = _tokens(text)
        if not any(token.condition for token in tokens):
            return Parted(rest=text)
        try:
            pieces = _Structure(tokens).pieces()
        except _Unparted:
            conditions, rest, taken = _loosely(text, tokens)
        else:
            conditions, rest = [one.condition for one in pieces if one.condition is not None], _left(text, pieces)
            taken = " ".join(text[one.start : one.end] for one in pieces if one.condition is not None)
        return replace(_gathered(conditions), rest=rest, taken=taken)
    except _Refused as exc:
        return Parted(rest=text, problem=str(exc))


def _tokens(text: str) -> list[_Token]:
    found: list[_Token] = []
    for match in _TOKEN.finditer(text):
        kind = str(match.lastgroup)
        if kind == "blank":
            continue
        condition = None
        if match["name"] is not None:
            kind, condition = "operator", _condition(match["operator"], match["name"], match["value"])
        elif match["slop"] is not None:
            quoted = match["close"].rpartition("~")[0]
            kind, condition = "operator", _condition(match["close"], "near", f"{match['slop']}({_unquoted(quoted)})")
        found.append(_Token(kind, match[0], match.start(), match.end(), condition))
    found = _with_small_joints(found)
    for before, token in pairwise(found):
        # Too near to an operator to be taken for words, which would find pages of any host.
        if before.text.lower() == "site:" and token.kind == "word" and "." in token.text:
            raise _Refused(
                f"`{before.text} {token.text}`: site: takes its host without a blank: site:{token.text};"
                f' to look for it as text, write "{before.text} {token.text}"'
            )
    if sum(token.condition is not None for token in found) > MAX_OPERATORS:
        raise _Refused(f"a query has at most {MAX_OPERATORS} operators")
    return found


def _with_small_joints(tokens: list[_Token]) -> list[_Token]:
    found: list[_Token] = []
    for at, token in enumerate(tokens):
        left = next((one for one in reversed(found) if one.text != ")"), None)
        follows = left is not None and (left.condition is not None or left.kind == "joint")
        if token.kind == "word" and token.text.upper() in _JOINTS and follows:
            behind = (one for one in tokens[at + 1 :] if one.text != "(" and one.text.upper() not in (*_JOINTS, "-"))
            right = next(behind, None)
            if right is not None and right.condition is not None:
                found.append(token._replace(kind="joint", text=token.text.upper()))
                continue
        found.append(token)
    return found


def _condition(typed: str, name: str, value: str) -> Condition:
    if value.startswith('"'):
        value = _unquoted(value)
    try:
        return OPERATORS[name.lower()].read(value)
    except InvalidValue as exc:
        quoted = typed.replace('"', "")
        raise _Refused(f'`{typed}`: {name.lower()}: {exc}; to look for it as text, write "{quoted}"') from exc


def _unquoted(text: str) -> str:
    return _ESCAPED.sub(r"\1", text[1:-1])


class _Structure:
    """A parser: OR binds least, then AND (also implied), then NOT and the minus sign, as among words."""

    def __init__(self, tokens: list[_Token]) -> None:
        # Each level of parentheses is three calls deep.
        if len(tokens) > _MAX_TOKENS:
            raise _Unparted
        self._tokens, self._at = tokens, 0

    def pieces(self) -> list[_Piece]:
        found = self._any()
        if self._at < len(self._tokens):
            raise _Unparted
        return found

    def _peek(self, kind: str, text: str) -> bool:
        token = self._tokens[self._at] if self._at < len(self._tokens) else None
        return token is not None and token.kind == kind and token.text == text

    def _take(self, kind: str, text: str) -> bool:
        taken = self._peek(kind, text)
        self._at += taken
        return taken

    def _any(self) -> list[_Piece]:
        sides = [self._all()]
        while self._take("joint", "OR"):
            sides.append(self._all())
        return sides[0] if len(sides) == 1 else [_joined(sides)]

    def _all(self) -> list[_Piece]:
        found = [self._one()]
        while self._at < len(self._tokens) and not (self._peek("joint", "OR") or self._peek("paren", ")")):
            self._take("joint", "AND")
            found.append(self._one())
        return found

    def _one(self) -> _Piece:
        start, negations = self._at, 0
        while self._take("joint", "NOT") or self._take("minus", "-"):
            negations += 1
        if self._at >= len(self._tokens):
            raise _Unparted
        token = self._tokens[self._at]
        self._at += 1
        if token.kind == "paren":
            piece = self._group(token)
        elif token.kind == "joint":
            raise _Unparted
        else:
            piece = _Piece(token.start, token.end, token.condition)
        condition = piece.condition
        if negations % 2 and condition is not None:
            condition = Without(_inner(condition))
        return _Piece(self._tokens[start].start, piece.end, condition)

    def _group(self, opening: _Token) -> _Piece:
        if opening.text != "(":
            raise _Unparted
        inside = self._any()
        if not self._take("paren", ")"):
            raise _Unparted
        joined = inside[0] if len(inside) == 1 else _joined([inside])
        return _Piece(opening.start, self._tokens[self._at - 1].end, joined.condition)


def _joined(sides: list[list[_Piece]]) -> _Piece:
    pieces = [piece for side in sides for piece in side]
    start, end = pieces[0].start, pieces[-1].end
    conditions = [piece.condition for piece in pieces if piece.condition is not None]
    if not conditions:
        return _Piece(start, end, None)
    if len(conditions) < len(pieces):
        raise _Refused(
            "operators and words cannot be joined by OR or share parentheses: put the operators beside them, as in"
            " (flu OR cold) site:example.org"
        )
    made = [_both([_inner(one.condition) for one in side if one.condition is not None]) for side in sides]
    return _Piece(start, end, made[0] if len(made) == 1 else AnyOf(tuple(made)))


def _both(conditions: list[Condition]) -> Condition:
    return conditions[0] if len(conditions) == 1 else AllOf(tuple(conditions))


def _inner(condition: Condition) -> Condition:
    if isinstance(condition, LikeCapture):
        raise _Refused("like: stands by itself, beside other operators, not in parentheses and not with OR or NOT")
    return condition


def _left(text: str, pieces: list[_Piece]) -> str:
    kept = ""
    last: _Piece | None = None
    for piece in pieces:
        if piece.condition is None:
            # What stands between two words stays between them: a blank, AND, or nothing.
            between = " " if last is None or last.condition is not None else text[last.end : piece.start]
            kept += (between if kept else "") + text[piece.start : piece.end]
        last = piece
    return kept


def _loosely(text: str, tokens: list[_Token]) -> tuple[list[Condition], str, str]:
    """Return all operators as required conditions, the text without them, and the operators as typed.

    Raise _Refused if that would change the meaning of the query.
    """
    _demand_clear(tokens)
    conditions: list[Condition] = []
    taken: list[str] = []
    left, at = "", 0
    for place, token in enumerate(tokens):
        if token.condition is None:
            continue
        first = place
        while first and _negates(tokens[first - 1]):
            first -= 1
        start = tokens[first].start
        conditions.append(Without(_inner(token.condition)) if (place - first) % 2 else token.condition)
        left += text[at:start]
        taken.append(text[start : token.end])
        at = token.end
    words = (left + text[at:]).split()
    # Joints that are left at either end once operators are taken out.
    while words and words[0] in ("AND", "OR"):
        words.pop(0)
    while words and words[-1] in ("AND", "OR", "NOT"):
        words.pop()
    return conditions, " ".join(words), " ".join(taken)


def _negates(token: _Token) -> bool:
    return token.kind == "minus" or (token.kind == "joint" and token.text == "NOT")


def _demand_clear(tokens: list[_Token]) -> None:
    """Raise _Refused if OR joins an operator with anything, or a negated parenthesis may contain one."""
    last = max(place for place, token in enumerate(tokens) if token.condition is not None)
    for place, token in enumerate(tokens):
        if token.kind == "joint" and token.text == "OR":
            around = (reversed(tokens[:place]), tokens[place + 1 :])
            sides = [next((one for one in side if one.kind != "paren" and not _negates(one)), None) for side in around]
            unclear = None not in sides and any(one is not None and one.condition is not None for one in sides)
        else:
            unclear = place < last and _negates(token) and tokens[place + 1].kind == "paren"
        if unclear:
            raise _Refused("unbalanced parentheses; close them or quote the text")


def _gathered(conditions: list[Condition]) -> Parted:
    alike = list(dict.fromkeys(one.snapshot_id for one in conditions if isinstance(one, LikeCapture)))
    if len(alike) > 1:
        raise _Refused("like: takes one capture at a time")
    others = tuple(one for one in conditions if not isinstance(one, LikeCapture))
    return Parted(rest="", conditions=others, like=alike[0] if alike else None)
