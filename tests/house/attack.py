"""Attacks regular expressions, one JSON line each on standard input; dies of SIGVTALRM on the first that is too slow.

Run as a process of its own by `patterns.py`. For each pattern it prints the input that it tries next if that looks
slow, and `done` at the end. What ends it is CPU time, so that a loaded machine blames nobody.
"""

from __future__ import annotations

import json
import re
import signal
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from itertools import product
from re import _constants as sre
from re import _parser
from typing import Any

_CPU_S = 1.0
"""A pattern that takes longer for one input is slow: a linear one takes a twenty-fifth of it."""
_SIZES = (4_000, 16_000, 400_000)
"""An input is tried at the next size only if it looks slow. The last one costs a quadratic pattern 8e10 steps: more
than a minute, at a nanosecond each."""
_SUSPICIOUS_S = 0.003
"""A quadratic pattern takes longer for an input of the first size, most of the others a tenth of it."""
_GROWTH = 8
"""Four times the input costs a linear pattern four times as much, a quadratic one sixteen times."""
_ENDS = ("", "\x00", "\n")
_USUAL = "a0 \"'<>/\\-_=&;:,.#\n\t\xe9"
_PAIRED = 6
"""Characters of which every pair is tried."""

Items = list[tuple[Any, Any]]


def letters(items: Items) -> list[str]:
    """Return the characters that a pattern itself names, in its order."""
    found: dict[str, None] = {}
    for op, value in items:
        if op in (sre.LITERAL, sre.NOT_LITERAL):
            found.setdefault(chr(value))
        elif op is sre.IN:
            for kind, inner in value:
                if kind is sre.LITERAL:
                    found.setdefault(chr(inner))
                elif kind is sre.RANGE:
                    found.setdefault(chr(inner[0]))
        for below in _below(op, value):
            found.update(dict.fromkeys(letters(list(below))))
    return list(found)


def _below(op: Any, value: Any) -> list[Any]:
    """Return the sequences inside an item."""
    if op in (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT):
        return [value[2]]
    if op is sre.BRANCH:
        return list(value[1])
    if op is sre.SUBPATTERN:
        return [value[3]]
    if op is sre.ATOMIC_GROUP:
        return [value]
    if op in (sre.ASSERT, sre.ASSERT_NOT):
        return [value[1]]
    if op is sre.GROUPREF_EXISTS:
        return [part for part in value[1:] if part is not None]
    return []


class Maker:
    """Makes text that parts of a pattern match, with some characters rather than others."""

    def __init__(self, liked: str, choice: int) -> None:
        self._liked, self._choice = liked, choice

    def text(self, items: Any) -> str:
        """Return a short text that these items match, more or less."""
        return "".join(self._one(op, value) for op, value in items)

    def _one(self, op: Any, value: Any) -> str:
        if op is sre.LITERAL:
            return chr(value)
        if op in (sre.NOT_LITERAL, sre.ANY, sre.IN):
            return next((char for char in self._liked if _takes(op, value, char)), "")
        if op in (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT):
            return str(self.text(value[2])) * min(max(int(value[0]), 1), 64)
        if op is sre.BRANCH:
            return self.text(value[1][self._choice % len(value[1])])
        if op is sre.SUBPATTERN:
            return self.text(value[3])
        if op is sre.ATOMIC_GROUP:
            return self.text(value)
        return ""


def _takes(op: Any, value: Any, char: str) -> bool:
    if op is sre.ANY:
        return char != "\n"
    if op is sre.NOT_LITERAL:
        return bool(ord(char) != value)
    negated = bool(value) and value[0][0] is sre.NEGATE
    return negated != any(_holds(kind, inner, char) for kind, inner in value if kind is not sre.NEGATE)


_CATEGORIES: dict[Any, Callable[[str], bool]] = {
    sre.CATEGORY_DIGIT: str.isdigit,
    sre.CATEGORY_NOT_DIGIT: lambda char: not char.isdigit(),
    sre.CATEGORY_SPACE: str.isspace,
    sre.CATEGORY_NOT_SPACE: lambda char: not char.isspace(),
    sre.CATEGORY_WORD: lambda char: char.isalnum() or char == "_",
    sre.CATEGORY_NOT_WORD: lambda char: not (char.isalnum() or char == "_"),
}


def _holds(kind: Any, inner: Any, char: str) -> bool:
    if kind is sre.LITERAL:
        return bool(ord(char) == inner)
    if kind is sre.RANGE:
        return bool(inner[0] <= ord(char) <= inner[1])
    return _CATEGORIES[inner](char)


def repeats(items: Any, before: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Yield each part that may repeat often, with the items that stand before it."""
    for number, (op, value) in enumerate(items):
        ahead = (*before, *items[:number])
        if op in (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT) and value[1] >= 64:
            yield ahead, value[2]
        for below in _below(op, value):
            yield from repeats(list(below), ahead)


def attacks(pattern: str | bytes, flags: int) -> Iterator[tuple[str, str, str]]:
    """Yield (head, what is repeated, end) of the inputs for a pattern."""
    items = list(_parser.parse(pattern, flags))
    named = letters(items)
    liked = "".join(dict.fromkeys([*named, *_USUAL]))
    pumps: dict[tuple[str, str], None] = {}
    for choice, order in enumerate((liked, liked[::-1], _USUAL + liked, liked[len(liked) // 2 :] + liked)):
        maker = Maker(order, choice)
        parts = [(maker.text(ahead), maker.text(body)) for ahead, body in repeats(items)]
        for number, (ahead, pump) in enumerate(parts):
            following = parts[number + 1][1] if number + 1 < len(parts) else ""
            for head, repeated in (
                (ahead, pump),
                ("", pump),
                ("", ahead + pump),
                ("", ahead),
                (ahead, pump + following),
            ):
                pumps.setdefault((head, repeated))
    few = [char for char in liked if ord(char) < 256][:_PAIRED]
    for one, other in product(few, repeat=2):
        pumps.setdefault(("", one if one == other else one + other))
        if one != other:
            pumps.setdefault((one, other))
    for (head, repeated), end in product(pumps, _ENDS):
        if repeated:
            yield head, repeated, end


def _run(compiled: re.Pattern[Any], method: str, text: Any) -> float:
    signal.setitimer(signal.ITIMER_VIRTUAL, _CPU_S)
    began = time.process_time()
    if method == "search":
        deque(compiled.finditer(text), maxlen=0)
    else:
        getattr(compiled, method)(text)
    took = time.process_time() - began
    signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    return took


def attack(text: str, is_bytes: bool, flags: int, methods: list[str]) -> None:
    """Try every input on a pattern, large where a small one looks slow."""
    pattern = text.encode("latin-1") if is_bytes else text
    compiled: re.Pattern[Any] = re.compile(pattern, flags)
    for head, repeated, end in attacks(pattern, flags):
        for method in methods:
            before_s = _SUSPICIOUS_S / _GROWTH
            for size in _SIZES:
                made = head + repeated * (size // len(repeated) + 1) + end
                given: Any = made.encode("latin-1", "replace") if is_bytes else made
                if size == _SIZES[-1]:
                    print(f"{method}: {head!r} + {repeated!r} * n + {end!r}", flush=True)
                took_s = _run(compiled, method, given)
                if took_s < before_s * _GROWTH:
                    break
                before_s = took_s


if __name__ == "__main__":
    for line in sys.stdin:
        _, text, is_bytes, flags, methods = json.loads(line)
        attack(text, is_bytes, flags, methods)
        print("done", flush=True)
