"""Names and comments: what a stranger must be able to guess, and what means nothing to a reader of the repository."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath

from tests.house.source import Module

# Spelled in pieces, so that this file does not say it either.
_REQUIREMENT = re.compile(r"\b(?:HA|TC|NC|TR)-" + r"\d+|\bdocuments? 00" + r"[0-4]\b|\bthe facts' " + r"\d")
_TRACE = ("docs/requirements.md", "tests/house/names.py")
_FACELESS = re.compile(r"\b(?:some|(?<!`)no)body\b|\bwho(?:m)?ever\b|\bthose who\b", re.I)
_FORMATTER_OFF = re.compile(r"#\s*fmt:\s*(?:skip|off)")
_GENERATED = "src/holdfast/db/migrations/"


def shared_class_names(modules: Iterable[Module]) -> list[str]:
    """Return the public classes that share their name with another one of their room."""
    places: dict[tuple[str, str], list[str]] = {}
    for module in modules:
        if not module.path.startswith(_GENERATED):
            for node in module.tree.body:
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    room = module.path.split("/")[2]
                    places.setdefault((room, node.name), []).append(f"{module.path}:{node.lineno}")
    return [
        f"class {name} stands in {' and '.join(where)}: one idea has one class, two ideas have two names"
        for (_, name), where in sorted(places.items())
        if len(where) > 1
    ]


def lonely_packages(modules: Iterable[Module]) -> list[str]:
    """Return the packages that hold a single file: the file may stand where the package does."""
    inside: dict[str, set[str]] = {}
    for module in modules:
        path = PurePosixPath(module.path)
        if not module.path.startswith(_GENERATED) and (not module.is_package or _has_code(module)):
            for folder in path.parents:
                inside.setdefault(str(folder), set()).add(str(path))
    return [
        f"{folder} holds one file, {', '.join(files)}: a module does as well"
        for folder, files in sorted(inside.items())
        if folder.startswith("src/holdfast/") and len(files) < 2
    ]


def _has_code(module: Module) -> bool:
    return any(isinstance(node, ast.ClassDef | ast.FunctionDef) for node in module.tree.body)


def formatter_off(modules: Iterable[Module]) -> list[str]:
    """Return the lines that switch the formatter off."""
    return [
        f"{module.path}:{number} switches the formatter off: change the code, not the formatter"
        for module in modules
        for number, line in enumerate(module.text.split("\n"), 1)
        if _FORMATTER_OFF.search(line)
    ]


def requirement_numbers(files: Iterable[tuple[str, str]]) -> list[str]:
    """Return where a (path, text) pair names a requirement of a document that the repository does not hold."""
    return [
        f"{path}:{text.count(chr(10), 0, match.start()) + 1} says {match.group()}: say it in words, the trace is in"
        " docs/requirements.md"
        for path, text in files
        if path not in _TRACE
        for match in _REQUIREMENT.finditer(text)
    ]


def faceless_actors(modules: Iterable[Module]) -> list[str]:
    """Return comments and docstrings whose actor has no name."""
    return [
        f"{module.path}:{line} says {word!r}: name the actor (another worker, an operator, the supervisor)"
        for module in modules
        if not module.path.startswith(_GENERATED)
        for line, word in _faceless(module)
    ]


def _faceless(module: Module) -> Iterator[tuple[int, str]]:
    """Yield (line, word) of what is said of no one in particular, in comments and in strings that stand alone."""
    if not _FACELESS.search(module.text):
        return
    for token in tokenize.generate_tokens(io.StringIO(module.text).readline):
        if token.type == tokenize.COMMENT and (found := _FACELESS.search(token.string)):
            yield token.start[0], found.group()
    for node in module.nodes:
        alone = node.value if isinstance(node, ast.Expr) else None
        text = alone.value if isinstance(alone, ast.Constant) and isinstance(alone.value, str) else ""
        if found := _FACELESS.search(text):
            yield alone.lineno if alone else 0, found.group()
