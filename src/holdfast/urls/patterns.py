"""Rules that people write, compiled with RE2 only: a search takes time in proportion to the address, whatever the rule.

It refuses look-around, back-references, and rules that are too many, too long or too large.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import re2

from holdfast.errors import Invalid

MAX_RULES: Final = 500
MAX_RULE_BYTES: Final = 1024

# Found by trying nested repetitions of 1 KB: with 64 KiB the worst of them is refused after 10 ms, with 256 KiB one
# compiles in 270 ms, and with RE2's default of 8 MiB a single search of 8,000 characters then takes 1.2 s.
_RULE_MEMORY: Final = 64 * 1024
_GROUP_MEMORY: Final = 1024 * 1024
_GROUP_SIZE: Final = 4_000
_TOTAL_SIZE: Final = 100_000


class InvalidPattern(Invalid):
    """A scope rule cannot be used."""

    code = "invalid_pattern"

    def __init__(self, pattern: str, reason: str) -> None:
        super().__init__(f"cannot use the rule {pattern[:200]!r}: {reason}")
        self.pattern, self.reason = pattern, reason


def _options(memory: int) -> Any:
    options = re2.Options()
    options.log_errors = False
    options.never_capture = True
    options.max_mem = memory
    return options


def _reason(message: str) -> str:
    if "perl operator" in message or "named capture" in message:
        return f"{message} (look-around does not exist in RE2; use an include and an exclude rule instead)"
    if message.startswith("invalid escape sequence: \\") and message[-1:].isdigit():
        return f"{message} (back-references do not exist in RE2)"
    if "too large" in message:
        return "its repetitions make it too large; write it more simply"
    return message


def _compile(pattern: str) -> Any:
    """Return one compiled rule, or raise InvalidPattern."""
    if not pattern:
        raise InvalidPattern(pattern, "it is empty and would match everything")
    if not pattern.isascii():
        raise InvalidPattern(pattern, "normalised addresses are ASCII; write other characters as %C3%A9")
    if r"\Q" in pattern:  # left open, it would swallow the rules that it is joined with
        raise InvalidPattern(pattern, r"\Q is not accepted; put a backslash before each special character")
    if len(pattern) > MAX_RULE_BYTES:
        raise InvalidPattern(pattern, f"it is longer than {MAX_RULE_BYTES} bytes")
    try:
        return re2.compile(pattern.encode(), _options(_RULE_MEMORY))
    except re2.error as exc:
        message = exc.args[0] if exc.args else "it does not compile"
        text = message.decode("utf-8", "replace") if isinstance(message, bytes) else str(message)
        raise InvalidPattern(pattern, _reason(text)) from None


def _grouped(patterns: Sequence[str], compiled: Sequence[Any]) -> list[tuple[Any, range]]:
    """Return the rules joined to few expressions with the numbers of their rules, so that a miss costs one search."""
    groups: list[tuple[Any, range]] = []
    start = size = 0
    for number, rule in enumerate(compiled):
        if number > start and size + rule.programsize > _GROUP_SIZE:
            groups.append((_join(patterns[start:number]), range(start, number)))
            start, size = number, 0
        size += rule.programsize
    if compiled:
        groups.append((_join(patterns[start:]), range(start, len(compiled))))
    return groups


def _join(patterns: Sequence[str]) -> Any:
    return re2.compile("|".join(f"(?:{pattern})" for pattern in patterns).encode(), _options(_GROUP_MEMORY))


class Patterns:
    """A list of rules, each searched for anywhere in a normalised address."""

    __slots__ = ("_compiled", "_groups", "texts")

    def __init__(self, texts: Sequence[str] = ()) -> None:
        """Compile the rules; raises InvalidPattern for the first that cannot be used, naming it and why."""
        if len(texts) > MAX_RULES:
            raise Invalid(f"{len(texts)} rules are more than {MAX_RULES}; join some with |")
        self.texts = tuple(texts)
        self._compiled = [_compile(text) for text in self.texts]
        if sum(rule.programsize for rule in self._compiled) > _TOTAL_SIZE:
            raise Invalid("the rules are too large together; write them more simply")
        self._groups = _grouped(self.texts, self._compiled)

    def first(self, normalised: str) -> str | None:
        """Return the first rule that matches, as it was written, or None."""
        if not self._groups:
            return None
        text = normalised.encode()
        for group, numbers in self._groups:
            if group.search(text):
                for number in numbers:
                    if self._compiled[number].search(text):
                        return self.texts[number]
        return None
