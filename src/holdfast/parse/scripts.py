"""Extracts URLs in string literals from scripts: imports, workers, import maps. Nothing is run or evaluated."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import islice

from holdfast.parse.addresses import NamedUrls, address

_MAX_CHARS = 4 * 1024 * 1024
# Limit of occurrences that are read in one script: bundles have hundreds, and a flood must not cost seconds.
_MAX_WORDS = 10_000
_MAX_MAP_CHARS = 256 * 1024
_WORD = re.compile(
    r"(?<![\w$.])(?:importScripts|import|export|new\s{1,4}(?:Shared)?Worker)(?![\w$])"
    r"|serviceWorker\s{0,4}\.\s{0,4}register(?![\w$])"
)
# The text between `import` and its literal: names, braces, stars. Possessive, so that it is read once.
_CLAUSE = re.compile(r"[\w$\s{},*]{0,2000}+")
_OPENS = re.compile(r"\s{0,16}\(\s{0,16}")
_LITERAL = re.compile(r"""(["'`])([^"'`\\\s<>{}]{1,2048})\1""")
_COMMA = re.compile(r"\s{0,16},\s{0,16}")
_ABSOLUTE = ("/", "http://", "https://")


def script_links(text: str, found: NamedUrls, *, is_inline: bool) -> None:
    """Add the imports of a script, and the workers it starts, if the URL is a literal.

    Imports of bare names are not URLs. The URL of a worker is relative to the page: in an external script, where
    the page is unknown, only absolute ones count.
    """
    # Search for two words first, at the speed of memory: most scripts have neither.
    if "import" not in text and "Worker" not in text and "export" not in text:
        return
    for number, word in enumerate(_WORD.finditer(text, 0, _MAX_CHARS)):
        if number >= _MAX_WORDS:
            return
        wanted: tuple[str, ...] = ("./", "../", *_ABSOLUTE)
        if word[0] in ("import", "export"):
            literals = _imported(text, word.end(), word[0])
        else:
            is_list = word[0] == "importScripts"
            literals = islice(_arguments(text, word.end()), None if is_list else 1)
            wanted = ("",) if is_inline or is_list else _ABSOLUTE
        for literal in literals:
            if literal.startswith(wanted) and (url := address(literal)):
                found.take(url, "script")


def import_map_links(text: str, found: NamedUrls) -> None:
    """Add the modules that an import map names, without prefixes, which end with a slash."""
    if len(text) > _MAX_MAP_CHARS:
        found.over += 1
        return
    try:
        read = json.loads(text)
    except (ValueError, RecursionError):
        return
    parts = read if isinstance(read, dict) else {}
    scopes = parts.get("scopes")
    for names in (parts.get("imports"), *(scopes.values() if isinstance(scopes, dict) else ())):
        for value in names.values() if isinstance(names, dict) else ():
            if isinstance(value, str) and not value.endswith("/") and (url := address(value)):
                found.take(url, "script")


def _imported(text: str, at: int, word: str) -> Iterator[str]:
    """Yield the literal of `import "x"`, `import … from "x"`, `export … from "x"` or `import("x")`."""
    if word == "import" and (opens := _OPENS.match(text, at)):
        at = opens.end()
    elif clause := _CLAUSE.match(text, at):
        at, between = clause.end(), clause[0].rstrip()
        if not between.endswith("from") and (between or word == "export"):
            return
    if literal := _LITERAL.match(text, at):
        yield literal[2]


def _arguments(text: str, at: int) -> Iterator[str]:
    opens = _OPENS.match(text, at)
    while opens and (literal := _LITERAL.match(text, opens.end())):
        yield literal[2]
        opens = _COMMA.match(text, literal.end())
