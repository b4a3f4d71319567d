"""Which lines are left: `[!][=|~]field:expression` with RE2, and the collapsing of neighbours. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from holdfast.replay.cdx.fields import PYWB_ONLY, WAYBACK_ONLY, Line, reader
from holdfast.replay.cdx.problem import BadCdxParameter
from holdfast.replay.moments import timestamp
from holdfast.urls import InvalidPattern
from holdfast.urls.patterns import Patterns

Test = Callable[[Line], bool]
_MAX_FILTERS = 8


def read_filters(specs: Iterable[str]) -> list[Test]:
    """Return the tests that these filters ask for; BadCdxParameter says which cannot be used."""
    asked = [spec for spec in specs if spec]
    if (
        len(asked) > _MAX_FILTERS
    ):  # before any is compiled: that takes up to 10 ms each, and an address has room for 1,000
        raise BadCdxParameter("filter", f"there are {len(asked)} of them, {_MAX_FILTERS} are allowed")
    return [_read_filter(spec) for spec in asked]


def _read_filter(spec: str) -> Test:
    is_negated = spec.startswith("!")
    rest = spec[1:] if is_negated else spec
    sign = rest[:1] if rest[:1] in ("=", "~") else ""
    name, colon, expression = rest[len(sign) :].partition(":")
    if not colon:
        raise BadCdxParameter("filter", f"{spec[:80]!r} has no colon; write field:expression")
    value_of = reader(name, "filter")
    matches = _matcher(sign, name, expression)

    def test(line: Line) -> bool:
        return matches(value_of(line)) is not is_negated

    return test


def _matcher(sign: str, name: str, expression: str) -> Callable[[str], bool]:
    """Return what a filter's expression means.

    `=` is the whole value and `~` an expression at its start, as pywb has them. Without a sign the Wayback Machine
    reads an expression for the whole value and pywb a part of it: the field's name tells which vocabulary is spoken,
    and where both have the name, either reading will do.
    """
    if sign == "=":
        return lambda value: value == expression
    if sign == "~":
        return _regex(f"^(?:{expression})")
    if name in PYWB_ONLY:
        return lambda value: expression in value
    whole = _regex(f"^(?:{expression})$")
    if name in WAYBACK_ONLY:
        return whole
    return lambda value: expression in value or whole(value)


def _regex(expression: str) -> Callable[[str], bool]:
    try:
        pattern = Patterns((expression,))
    except InvalidPattern as exc:
        raise BadCdxParameter("filter", exc.reason) from None
    return lambda value: pattern.first(value) is not None


class Collapse(NamedTuple):
    """Neighbours that agree in a field, or in its first characters, are shown once."""

    name: str
    characters: int | None


def read_collapses(specs: Iterable[str]) -> list[Collapse]:
    """Return what to collapse by; BadCdxParameter says which cannot be used."""
    found = []
    for spec in specs:
        name, colon, number = spec.partition(":")
        reader(name, "collapse")
        if colon and not (number.isascii() and number.isdigit() and len(number) < 6):
            raise BadCdxParameter("collapse", f"{number[:20]!r} is no number of characters")
        found.append(Collapse(name, int(number) if colon else None))
    return found[:8]


def collapse(lines: Iterable[Line], by: Sequence[Collapse]) -> Iterator[Line]:
    """Yield lines less those that agree with the one before, with how many were skipped and when the last was.

    With several rules, each looks only at what those before it left, as if one were applied after the other.
    """
    rules = [(reader(rule.name, "collapse"), rule.characters) for rule in by]
    runs: list[str | None] = [None] * len(rules)
    kept: Line | None = None
    skipped, last = 0, "-"
    for line in lines:
        is_new = True
        for at, (value_of, characters) in enumerate(rules):
            value = value_of(line)[:characters]
            if value == runs[at]:
                is_new = False
                break
            runs[at] = value
        if not is_new:
            skipped, last = skipped + 1, timestamp(line.capture.captured_at)
            continue
        if kept is not None:
            yield _counted(kept, skipcount=str(skipped), endtimestamp=last)
        kept, skipped, last = line, 0, "-"
    if kept is not None:
        yield _counted(kept, skipcount=str(skipped), endtimestamp=last)


def count_duplicates(lines: Iterable[Line]) -> Iterator[Line]:
    """Yield lines with how often the same body of the same address came before."""
    seen: Counter[str] = Counter()
    key = None
    for line in lines:
        if line.capture.url_key != key:
            key, seen = line.capture.url_key, Counter()
        digest = line.capture.digest or ""
        yield _counted(line, dupecount=str(seen[digest]))
        seen[digest] += 1


def _counted(line: Line, **counts: str) -> Line:
    return line._replace(counts={**line.counts, **counts})
