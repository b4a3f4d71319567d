"""A source's template: CSS selectors that tell where its pages have their content. A small, bounded part of CSS.

No pseudo-classes and at most three steps: pages are hostile, and a selector such as `:has(*)` would be tried on each of
their nodes once for each other.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast

if TYPE_CHECKING:
    from holdfast.parse.content import SiteTemplate

SINGLE: Final = ("main", "title", "author", "published")
MAX_SELECTOR_CHARS, MAX_SELECTORS, MAX_STEPS, MAX_REMOVED = 300, 10, 3, 50
_NAME = r"-?[A-Za-z_][\w-]{0,80}"
_VALUE = r"(?:[\w.:/-]{1,100}|\"[\w .:/-]{1,100}\"|'[\w .:/-]{1,100}')"
_ATTRIBUTE = rf"\[{_NAME}(?:[~^$*|]?={_VALUE}(?: i)?)?\]"
_STEP = re.compile(rf"(?:{_NAME}|\*)?(?:[.#]{_NAME}|{_ATTRIBUTE}){{0,6}}", re.ASCII)
_BETWEEN = re.compile(r"\s*+>?\s*+")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractRules:
    """Where the pages of a source have what; empty where the page itself is asked."""

    main: str | None = None
    title: str | None = None
    author: str | None = None
    published: str | None = None
    remove: tuple[str, ...] = ()


def why_no_selector(selector: str) -> str | None:
    """Return what is wrong with a selector; None if it may be used."""
    if len(selector) > MAX_SELECTOR_CHARS:
        return f"it is over {MAX_SELECTOR_CHARS} characters"
    parts = selector.split(",")
    if len(parts) > MAX_SELECTORS:
        return f"it names more than {MAX_SELECTORS} kinds of elements"
    for part in parts:
        steps = _steps(part.strip())
        if steps == 0:
            return f"{part.strip()[:60]!r} is not made of names, .classes, #ids and [attributes]"
        if steps > MAX_STEPS:
            return f"{part.strip()[:60]!r} has more than {MAX_STEPS} steps"
    return None


def _steps(part: str) -> int:
    """Return how many steps a selector has; 0 if it has anything else."""
    at = steps = 0
    while True:
        step = _STEP.match(part, at)
        if step is None or step.end() == at:
            return 0
        steps, at = steps + 1, step.end()
        if at == len(part):
            return steps
        between = _BETWEEN.match(part, at)
        if between is None or between.end() == at:
            return 0
        at = between.end()


def extraction_rules(config: Mapping[str, Any]) -> SiteTemplate | None:
    """Return the template in a stored configuration; None without one. What is not a selector any more is left out."""
    given = config.get("extract")
    if not isinstance(given, Mapping):
        return None
    found: dict[str, Any] = {
        name: given[name] for name in SINGLE if isinstance(given.get(name), str) and not why_no_selector(given[name])
    }
    removed = given.get("remove")
    if isinstance(removed, list) and removed:
        found["remove"] = [one for one in removed if isinstance(one, str) and not why_no_selector(one)][:MAX_REMOVED]
    return cast("SiteTemplate", found) if found else None
