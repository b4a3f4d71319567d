"""The rules of one robots.txt group, held against an address: one spelling for both sides, and the longest match.

It knows neither files nor agents. No pattern makes it backtrack, and it denies what it cannot afford to decide.
"""

from __future__ import annotations

import re
import sys
from typing import NamedTuple

MAX_WORK = 50_000_000
"""Octets of wildcard patterns times octets of the address: at the bound the worst patterns tried cost 30 ms, and a
file of 500 ordinary wildcards is still decided for the longest address that we ask for (8,192 octets)."""

TOO_COSTLY = "(more wildcards than this address can be held against)"

# Both sides are brought to one spelling before octets are compared (section 2.2.2): unreserved characters bare, the
# reserved ones as they stand, everything else escaped in upper case. `*` and `$` of an address are escaped, so that a
# pattern can name them as %2A and %24 (section 2.2.3).
_SAFE = r"A-Za-z0-9\-._~:/?\[\]@!&'()+,;="
_RESERVED_ESCAPE = r"(?:[0189A-F][0-9A-F]|2[0-9A-CF]|3[A-F]|40|5[B-E]|60|7[B-DF])"
# What needs another spelling. A leading character class lets the search skip all that is well, which is nearly all.
_ODD_IN_ADDRESS = re.compile(rf"[^{_SAFE}](?:(?<!%)|(?!{_RESERVED_ESCAPE}))")
_ODD_IN_PATTERNS = re.compile(
    rf"[^*\n{_SAFE}](?:(?<![%$])|(?<=%)(?!{_RESERVED_ESCAPE})|(?<=\$)(?!\n|\Z))[^*\n]*",
)
_ESCAPES = r"(?P<escapes>(?:%[0-9A-Fa-f]{2})+)"
_RUN_OF_ADDRESS = re.compile(rf"{_ESCAPES}|[^{_SAFE}%]+|%")
# An escape that a pattern breaks off, as in `/*%` and `/a%2*`, begins many escapes and is no percent sign.
_RUN_OF_PATTERN = re.compile(rf"{_ESCAPES}|(?P<broken>%[0-9A-Fa-f]?)\Z|[^{_SAFE}$%]+|%|\$(?!\Z)")
_UNRESERVED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_SPELLING = [chr(octet) if octet in _UNRESERVED else f"%{octet:02X}" for octet in range(256)]
_RULE_BYTES = 320
"""A rule's share of the tables of an index, measured with 40,000 wildcards that have nothing in common."""
_BEFORE_PATH = re.compile(r"[^:/?#]*://[^/?#]*")


def _spell(found: re.Match[str]) -> str:
    run = found[0]
    if found.lastgroup == "broken":
        return run.upper()
    if found.lastgroup == "escapes":
        octets = bytes.fromhex(run.replace("%", ""))
    else:
        try:
            octets = run.encode("utf-8", "surrogateescape")
        except UnicodeEncodeError:
            octets = run.encode("utf-8", "replace")
    return "".join(map(_SPELLING.__getitem__, octets))


def _spell_literal(found: re.Match[str]) -> str:
    """Spell the rest of a literal, up to the next star or the end of its pattern."""
    spelled = _RUN_OF_PATTERN.sub(_spell, found[0])
    closes = found.string[found.end() : found.end() + 1] != "*"
    return spelled if closes or spelled[-1:] != "$" else spelled[:-1] + "%24"


def path_of(target: str) -> str:
    """Return path and query of an address (or of a whole URL) in the spelling that `RuleIndex.best` compares."""
    if not target.startswith("/"):
        before = _BEFORE_PATH.match(target)
        target = target[before.end() :] if before else target
        if not target.startswith("/"):
            target = "/" + target
    if "#" in target:
        target = target[: target.index("#")]
    return _RUN_OF_ADDRESS.sub(_spell, target) if _ODD_IN_ADDRESS.search(target) else target


def _fold_query(text: str) -> str:
    """Return text with `/ : ? @` unescaped after the first question mark, where they delimit nothing (RFC 3986, 3.4).

    Table 1 of section 2.2.2 wants `?baz=https://foo.bar` and `?baz=https%3A%2F%2Ffoo.bar` to be one address.
    """
    path, mark, query = text.partition("?")
    return path + mark + query.replace("%2F", "/").replace("%3A", ":").replace("%3F", "?").replace("%40", "@")


def _spell_patterns(values: list[str]) -> list[str]:
    """Return the patterns in the spelling that is compared; all at once, because one pass costs a tenth of 180."""
    if not values:
        return []
    patterns = _ODD_IN_PATTERNS.sub(_spell_literal, "\n".join(values))
    if "%" not in patterns:
        return patterns.split("\n")
    return [_fold_query(each) if "%" in each and "?" in each else each for each in patterns.split("\n")]


class Rule(NamedTuple):
    """One allow or disallow line of the group, its value as written."""

    line: int
    allow: bool
    value: str

    def shown(self) -> str:
        """Return the rule fit for a log, a database and a terminal."""
        value = self.value[:500]
        if not value.isprintable():
            value = "".join(char if char.isprintable() else "\ufffd" for char in value)
        return f"{'Allow' if self.allow else 'Disallow'}: {value}"


def _matches(pattern: str, path: str) -> bool:
    """Take each literal between the stars at its first place: if that fails, no later place would do."""
    *pieces, tail = pattern.split("*")
    if not path.startswith(pieces[0]):
        return False
    at = 0
    for piece in pieces:
        at = path.find(piece, at)
        if at < 0:
            return False
        at += len(piece)
    if tail[-1:] == "$":
        return len(path) - len(tail) + 1 >= at and path.endswith(tail[:-1])
    return path.find(tail, at) >= 0


def _by_rank_then_line(match: tuple[int, int]) -> tuple[int, int]:
    rank, number = match
    return rank, -number


DENIED = Rule(0, False, TOO_COSTLY)
"""Stands for a decision that was not made; no line of the file says it."""


class RuleIndex:
    """The rules of one group, filed so that a decision touches only those whose literal head fits.

    A rank is twice the octets of the pattern, plus one if the rule allows: the greater rank wins (section 2.2.2).
    """

    __slots__ = ("_exact", "_heads", "_lengths", "_longest", "_plain", "_rules", "_wild")

    def __init__(self, rules: list[tuple[int, bool, str]]) -> None:
        self._rules = rules
        self._plain: dict[str, int] = {}
        """Patterns without special characters, and the number of their rule."""
        self._exact: dict[str, int] = {}
        """Patterns whose only special character is the closing `$`."""
        self._wild: dict[str, list[tuple[str, int, int, str]]] = {}
        """Patterns with a star, by the literal before it: longest other literal, rank, number, pattern."""
        starred: dict[str, int] = {}
        for number, pattern in enumerate(_spell_patterns([value for _, _, value in rules])):
            if "*" in pattern:
                filed = starred
            elif pattern[-1] == "$":
                filed, pattern = self._exact, pattern[:-1]
            else:
                filed = self._plain
            first = filed.setdefault(pattern, number)
            if first != number and rules[number][1] and not rules[first][1]:
                filed[pattern] = number
        for pattern, number in starred.items():
            self._file(pattern, number)
        self._lengths = sorted({len(pattern) for pattern in self._plain}, reverse=True)
        self._heads = sorted({len(head) for head in self._wild})
        octets = sum(map(len, starred))
        self._longest = MAX_WORK // octets if octets else MAX_WORK

    def _file(self, pattern: str, number: int) -> None:
        head, _, rest = pattern.partition("*")
        needle = rest[:-1] if rest[-1:] == "$" else rest
        if "*" in needle:
            needle = max(needle.split("*"), key=len)
        rank = len(pattern) * 2 + self._rules[number][1]
        self._wild.setdefault(head, []).append((needle, rank, number, pattern))

    def memory_bytes(self) -> int:
        """Return about how much memory the index takes: each rule as written, as spelled, and its places in tables."""
        return sum(_RULE_BYTES + 2 * sys.getsizeof(value) for _, _, value in self._rules)

    def best(self, path: str) -> Rule | None:
        """Return the most specific rule that matches what `path_of` gave, the allowing one on a tie; None if none."""
        if len(path) > self._longest:
            return DENIED
        rank, number = self._best(path)
        if "%" in path and "?" in path:
            folded = _fold_query(path)
            if folded != path:
                rank, number = max((rank, number), self._best(folded), key=_by_rank_then_line)
        return Rule(*self._rules[number]) if rank else None

    def _best(self, path: str) -> tuple[int, int]:
        """Return rank and number of the best rule, the first of equals; the rank is 0 if none matches."""
        size = len(path)
        rank = best = 0
        for length in self._lengths:
            if length <= size:
                number = self._plain.get(path[:length])
                if number is not None:
                    rank, best = length * 2 + self._rules[number][1], number
                    break
        if path in self._exact:
            number = self._exact[path]
            rank, best = (size + 1) * 2 + self._rules[number][1], number
        for length in self._heads:
            for needle, its_rank, number, pattern in self._wild.get(path[:length], ()):
                if needle in path and (its_rank, best) > (rank, number) and _matches(pattern, path):
                    rank, best = its_rank, number
        return rank, best
