"""Imports and exports sources as YAML, TOML and JSON, plain values only. Rejects objects, aliases and huge texts."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import yaml  # type: ignore[import-untyped]

from holdfast.sources.config import MAX_NESTED, SourceRefused, demand_plain

FORMS: Final = ("yaml", "toml", "json")
MAX_CHARS: Final = 4 * 1024 * 1024
# Largest size of a file with that many characters: no more is ever read.
MAX_BYTES: Final = 4 * MAX_CHARS
# Keys that TOML accepts without quotes.
_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")


# libyaml is ten times as fast as pure Python, and in every wheel; without it only the speed differs.
_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def _read_yaml(text: str) -> Any:
    """Parse a YAML text with one document; checks its events first, so that nothing deep is ever built."""
    depth = 0
    for event in yaml.parse(text, Loader=_LOADER):
        # Ten lines of aliases of aliases stand for a billion values ("billion laughs").
        if isinstance(event, yaml.events.AliasEvent):
            raise yaml.YAMLError("aliases are not accepted; write the value out")
        depth += isinstance(event, yaml.events.CollectionStartEvent) - isinstance(event, yaml.events.CollectionEndEvent)
        if depth > MAX_NESTED:
            raise yaml.YAMLError(f"it is nested more than {MAX_NESTED} deep")
    loader = _LOADER(text)
    try:
        return loader.get_single_data()
    finally:
        loader.dispose()


# Possessive quantifiers (*+): a string that does not end must not be tried again from each of its letters.
_TOML_STRING: Final = re.compile(
    r'"""(?:[^"\\]|\\.|"(?!""))*+"{3,5}|"(?:[^"\\\n]|\\.)*+"'
    r"|'''(?:[^']|'(?!''))*+'{3,5}|'[^'\n]*+'",
    re.S,
)
_TOML_QUIET: Final = re.compile(r"[^\"'#.,=\n\[\]{}]++|#[^\n]*+")


def _read_toml(text: str) -> Any:
    """Parse a TOML text after checking its nesting depth."""
    at, dots, depth = 0, 0, 0
    while at < len(text):
        char = text[at]
        if char in "\"'":
            found = _TOML_STRING.match(text, at)
            if found is None:
                raise ValueError(f"a string does not end, at character {at}")
            at = found.end()
            continue
        quiet = _TOML_QUIET.match(text, at)
        if quiet is not None:
            at = quiet.end()
            continue
        # tomllib builds a table for each dot of a key: 40 KB of `a.a.a…` took 12 s and 1.7 GB before anything could be
        # refused.
        dots = dots + 1 if char == "." else 0
        depth += (char in "[{") - (char in "]}")
        if dots > MAX_NESTED or depth > MAX_NESTED:
            raise ValueError(f"it is nested more than {MAX_NESTED} deep")
        at += 1
    return tomllib.loads(text)


class _ExactDumper(yaml.SafeDumper):  # type: ignore[misc]
    """YAML whose strings survive a round trip: unusual line separators are escaped, not folded."""


def _written(dumper: Any, text: str) -> Any:
    # Otherwise folding would turn a U+2028 or NEL in a description into a line break.
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=None if text.isprintable() else '"')


_ExactDumper.add_representer(str, _written)


_READERS: Final[Mapping[str, Callable[[str], Any]]] = {"yaml": _read_yaml, "toml": _read_toml, "json": json.loads}


def read_text(text: str, form: str) -> list[Any]:
    """Return the entries below `sources` of a YAML, TOML or JSON text; raise SourceRefused if it is invalid."""
    # Check before parsing: afterwards the limit would save neither time nor memory.
    if len(text) > MAX_CHARS:
        raise SourceRefused("file", f"it is longer than {MAX_CHARS} characters")
    try:
        content = _READERS[form](text)
    except (tomllib.TOMLDecodeError, yaml.YAMLError, ValueError, RecursionError) as exc:
        raise SourceRefused(
            "file", f"this is no {form.upper()} that we take: {' '.join(str(exc).split())[:300]}"
        ) from exc
    entries = content.get("sources") if isinstance(content, Mapping) else None
    if not isinstance(entries, list):
        raise SourceRefused(
            "sources", "the file must hold a list named `sources`; see one with: holdfast source export"
        )
    demand_plain(entries, "sources")
    return entries


def write_text(entries: Sequence[Mapping[str, Any]], form: str) -> str:
    """Return entries as YAML, TOML or JSON, in the format of `read_text`."""
    if form == "json":
        return json.dumps({"sources": list(entries)}, ensure_ascii=False, indent=2) + "\n"
    if form == "yaml":
        plain = json.loads(json.dumps({"sources": list(entries)}))
        text: str = yaml.dump(plain, Dumper=_ExactDumper, sort_keys=False, allow_unicode=True, width=110)
        return text
    return "\n".join(line for entry in entries for line in ("[[sources]]", *_table(entry, "sources"), ""))


def _table(content: Mapping[str, Any], path: str) -> list[str]:
    """Return the lines of one TOML table, its inner tables after its values."""
    # Write values before inner tables: after a [table] line they would belong to that table.
    plain = ((name, one) for name, one in content.items() if not isinstance(one, Mapping) and one is not None)
    lines = [f"{_key(name)} = {_value(one)}" for name, one in plain]
    for name, one in content.items():
        if isinstance(one, Mapping):
            lines += ["", f"[{path}.{_key(name)}]", *_table(one, f"{path}.{_key(name)}")]
    return lines


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _string(name)


def _string(text: str) -> str:
    """Return a basic TOML string: JSON's escapes are TOML's, except that TOML also requires one for DEL."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return _string(value)
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_value(one) for one in value) + "]"
    return str(value) if isinstance(value, int) else repr(float(value))
