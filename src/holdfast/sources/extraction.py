"""A source's template: CSS selectors for the content of its pages. A small, bounded subset of CSS.

No pseudo-classes and at most three steps: pages are hostile, and a selector such as `:has(*)` would be tried
for each pair of their nodes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, cast

from holdfast.values import dataclass

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
    """CSS selectors for the parts of a page; empty where the general rules apply."""

    main: str | None = None
    title: str | None = None
    author: str | None = None
    published: str | None = None
    remove: tuple[str, ...] = ()


def why_no_selector(selector: str) -> str | None:
    """Return the error of a selector; None if it is valid."""
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
    """Return the number of steps of a selector; 0 if it contains anything else."""
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
    """Return the template in a stored configuration; None without one. Invalid selectors are omitted."""
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
