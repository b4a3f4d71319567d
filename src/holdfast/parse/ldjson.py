"""The basics of JSON-LD in a page: what it is, what it is called, when and by whom. Bounded, and never raises."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from selectolax.lexbor import LexborHTMLParser

from holdfast.parse.text import clean_line

_MAX_SCRIPTS, _MAX_CHARS, _MAX_NODES = 5, 256 * 1024, 50
_VALUE_CHARS = 300
_WANTED = ("@type", "headline", "name", "datePublished", "dateModified", "author", "publisher", "inLanguage", "isbn")


def read_ld_json(tree: LexborHTMLParser) -> dict[str, str]:
    """Return the first value of each basic property, by `ld:` and its name."""
    found: dict[str, str] = {}
    for script in tree.css('script[type="application/ld+json" i]')[:_MAX_SCRIPTS]:
        text = script.text()
        if len(text) > _MAX_CHARS:
            continue
        try:
            content = json.loads(text)
        except (ValueError, RecursionError):
            continue
        for node in _nodes(content):
            for name in _WANTED:
                value = _value(node.get(name))
                if value:
                    found.setdefault(f"ld:{name.removeprefix('@')}", value)
    return found


def _nodes(content: Any) -> Iterator[dict[str, Any]]:
    """Yield the things that a script describes: one, a list of them, or a graph."""
    waiting, left = [content], _MAX_NODES
    while waiting and left > 0:
        left -= 1
        one = waiting.pop(0)
        if isinstance(one, list):
            waiting += one[:_MAX_NODES]
        elif isinstance(one, dict):
            if isinstance(graph := one.get("@graph"), list):
                waiting += graph[:_MAX_NODES]
            yield one


def _value(value: Any) -> str:
    """Return a plain value: of a list its first, of a thing its name."""
    for _ in range(4):
        if isinstance(value, list):
            value = value[0] if value else None
        elif isinstance(value, dict):
            value = value.get("name") or value.get("@id")
    return clean_line(value, _VALUE_CHARS) if isinstance(value, str) else ""
