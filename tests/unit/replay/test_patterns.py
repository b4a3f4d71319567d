"""Every pattern of replay against text made to hurt it, so much that a super-linear one would never finish."""

from __future__ import annotations

import importlib
import pkgutil
import re
from itertools import product

import pytest

import holdfast.replay

_ATOMS = (
    "a", " ", "\t", "\n", "/", ",", "*", "%2A", "?after=", "<", "<a ", "</", "<!--", "--", "&", "&amp", "&#1", "\\",
    "\\6", "'", '"', "(", "url(", "@import", "0", "0.", "1.1/", "-", "+", ".", ":", "www1", "http://", "refresh",
    "http-equiv", "class=", '<a class="', "<a class='x' ", "text/", "x+xml", "~A", "bytes=", "\u00e9",
)  # fmt: skip
_SIZE = 200_000


def patterns() -> dict[str, re.Pattern[str]]:
    """Return the compiled patterns of all modules of replay, by place."""
    found: dict[str, re.Pattern[str]] = {}
    for module in pkgutil.walk_packages(holdfast.replay.__path__, "holdfast.replay."):
        for name, value in vars(importlib.import_module(module.name)).items():
            several = value if isinstance(value, dict) else {"": value}
            for key, one in several.items():
                if isinstance(one, re.Pattern) and isinstance(one.pattern, str):
                    found[f"{module.name}.{name}{key}"] = one
    return found


@pytest.mark.timeout(60)
@pytest.mark.parametrize("place", sorted(patterns()))
def test_a_pattern_is_linear_whatever_the_text(place: str) -> None:
    pattern = patterns()[place]
    for first, second in product(_ATOMS, ("", "\x00", "a", " ")):
        text = (first + second) * (_SIZE // len(first + second)) + "\x00"
        pattern.match(text)
        pattern.fullmatch(text)
        assert len(text) > _SIZE / 2
