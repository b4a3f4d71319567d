"""What no committed file may say: where packages come from, where this machine keeps things, what wrote the code."""

from __future__ import annotations

import re
from collections.abc import Iterable

# Spelled in pieces, so that this file does not say it either.
_REGISTRIES = [
    r"files\.python" + r"hosted\.org",
    r"py" + r"pi\.org/simple",
    r"registry\.n" + r"pmjs\.org",
    r"registry\.y" + r"arnpkg",
]
_INDEX_OPTIONS = [r"--(extra-)?ind" + r"ex-url[ =]\S*://", r"--trus" + r"ted-host[ =]\S+\."]
_PLACES = [r"(?<![\w.*-])/(wo" + r"rk|ro" + r"ot|tm" + r"p)/(?=[\w.-])", r"(?<![\w.])/ho" + r"me/[a-z]"]
_AUTHORS = [
    r"\bclau" + r"de\b",
    r"\banthro" + r"pic\b",
    r"\bchat" + r"gpt\b",
    r"\bopen" + r"ai\b",
    r"\bco" + r"pilot\b",
    r"\bco-auth" + r"ored-by\b",
]
_RULES = (
    (
        "names a package registry: the machine that installs decides where from",
        re.compile("|".join(_REGISTRIES + _INDEX_OPTIONS), re.I),
    ),
    ("names a path of one machine: take it from a setting or a fixture", re.compile("|".join(_PLACES))),
    ("names a tool or a person behind the code", re.compile("|".join(_AUTHORS), re.I)),
    ("holds a conflict marker", re.compile(r"^(<{7}|>{7}) ", re.M)),
)


def forbidden_text(files: Iterable[tuple[str, str]]) -> list[str]:
    """Return a sentence for every (path, text) pair that says what it must not."""
    found = []
    for path, text in files:
        for why, pattern in _RULES:
            for match in pattern.finditer(text):
                line = text.count("\n", 0, match.start()) + 1
                found.append(f"{path}:{line} {why} ({match.group()!r})")
    return found
