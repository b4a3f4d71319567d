"""Every regular expression of the house, and whether hostile text can make it slow.

A pattern that meets foreign text is to be linear in it. Each one is attacked with inputs made from its own parts, in a
child process that the kernel ends when it has used up its time; the parent names the pattern that it died on.
"""

from __future__ import annotations

import ast
import functools
import importlib
import json
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from types import ModuleType
from typing import Any, NamedTuple

from tests.house.source import PACKAGE, ROOT, Module, dotted

_FUNCTIONS = ("match", "fullmatch", "search", "sub", "subn", "split", "findall", "finditer")
_METHODS = ("match", "fullmatch", "search")
"""How a pattern is attacked: at one place, as a whole, or from every place on."""
_NOT_IMPORTED = ("db.migrations", "parse.__main__", "zimit.__main__")


class Pattern(NamedTuple):
    """One regular expression and how it is used."""

    where: str
    """`module.NAME`, or `module:line` of a call that writes it out."""
    text: str | bytes
    flags: int
    methods: tuple[str, ...]

    def as_json(self) -> str:
        """Return it as the child reads it; bytes as their latin-1 characters."""
        text = self.text if isinstance(self.text, str) else self.text.decode("latin-1")
        return json.dumps([self.where, text, isinstance(self.text, bytes), self.flags, list(self.methods)])


def collect(modules: Iterable[Module]) -> list[Pattern]:
    """Return every pattern that is compiled when the modules are loaded, and every one that a call writes out."""
    kept = [module for module in modules if not module.name.startswith(_NOT_IMPORTED)]
    uses = _uses(kept)
    found: dict[tuple[str | bytes, int, tuple[str, ...]], Pattern] = {}
    for module in kept:
        loaded = importlib.import_module(f"{PACKAGE}.{module.name}".rstrip("."))
        for pattern in (*_compiled(module, loaded, uses), *_written(module)):
            found.setdefault((pattern.text, pattern.flags, pattern.methods), pattern)
    return list(found.values())


def _compiled(module: Module, loaded: ModuleType, uses: dict[tuple[str, str], set[str]]) -> Iterator[Pattern]:
    whole = uses.get((module.name, ""), set())
    for name, value in vars(loaded).items():
        if isinstance(value, type) and value.__module__ != loaded.__name__:
            continue  # another module's, seen there
        for one in _inside(value):
            methods = uses.get((module.name, name)) or whole or set(_METHODS)
            yield Pattern(f"{module.name}.{name}", one.pattern, one.flags, tuple(sorted(methods)))


def _inside(value: Any, depth: int = 0) -> Iterator[re.Pattern[Any]]:
    if isinstance(value, re.Pattern):
        yield value
    elif depth < 4 and isinstance(value, dict):
        for one in (*value, *value.values()):
            yield from _inside(one, depth + 1)
    elif depth < 4 and isinstance(value, list | tuple | set | frozenset):
        for one in value:
            yield from _inside(one, depth + 1)
    elif depth == 0 and isinstance(value, type):
        for one in list(vars(value).values()):
            yield from _inside(one, depth + 1)


def _written(module: Module) -> Iterator[Pattern]:
    """Yield the patterns that calls of `re` functions write out, `re.compile` inside functions included."""
    for node in module.nodes:
        if not isinstance(node, ast.Call) or not node.args:
            continue
        called = dotted(node.func)
        function = called.removeprefix("re.")
        given = node.args[0]
        if called.startswith("re.") and function in (*_FUNCTIONS, "compile") and _is_text(given):
            flags = _flags(node)
            methods = _METHODS if function == "compile" else (_attack(function),)
            if function != "compile" or id(node) in _deferred(module):
                yield Pattern(f"{module.name}:{node.lineno}", ast.literal_eval(given), flags, methods)


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str | bytes)


def _flags(call: ast.Call) -> int:
    """Return the flags that a call names (`re.I | re.S`)."""
    named = (dotted(node) for part in (*call.args[1:], *(k.value for k in call.keywords)) for node in ast.walk(part))
    flags = re.RegexFlag(0)
    for name in named:
        if isinstance(flag := getattr(re, name.removeprefix("re."), None), re.RegexFlag) and name.startswith("re."):
            flags |= flag
    return int(flags)


@functools.cache
def _deferred(module: Module) -> frozenset[int]:
    """Return the identities of the nodes that do not run when a module is loaded; what does is found there."""
    inner = (
        node for node in module.tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    )
    return frozenset(
        id(node)
        for outer in inner
        for function in (outer.body if isinstance(outer, ast.ClassDef) else [outer])
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for node in ast.walk(function)
    )


def _attack(function: str) -> str:
    return function if function in ("match", "fullmatch") else "search"


def _uses(modules: Iterable[Module]) -> dict[tuple[str, str], set[str]]:
    """Return which methods are used of (module, name), and under an empty name of anything in a module."""
    uses: dict[tuple[str, str], set[str]] = {}
    for module in modules:
        origin = {
            alias.asname or alias.name: (str(node.module).removeprefix(f"{PACKAGE}."), alias.name)
            for node in module.nodes
            if isinstance(node, ast.ImportFrom) and str(node.module).startswith(PACKAGE)
            for alias in node.names
        }
        for node in module.nodes:
            if isinstance(node, ast.Attribute) and node.attr in _FUNCTIONS:
                method = _attack(node.attr)
                uses.setdefault((module.name, ""), set()).add(method)
                if isinstance(node.value, ast.Name):
                    uses.setdefault(origin.get(node.value.id, (module.name, node.value.id)), set()).add(method)
    return uses


def guilty(patterns: Iterable[Pattern]) -> dict[str, str]:
    """Return the patterns that some input makes slow, by where they stand, with the input."""
    left, found = list(patterns), {}
    while left:
        child = subprocess.run(
            [sys.executable, str(ROOT / "tests" / "house" / "attack.py")], text=True, capture_output=True, check=False,
            input="".join(f"{pattern.as_json()}\n" for pattern in left),
        )  # fmt: skip
        lines = child.stdout.splitlines()
        done = sum(line == "done" for line in lines)
        if child.returncode == 0:
            break
        assert child.returncode < 0, child.stderr  # ended by a signal: its time was up
        found[left[done].where] = lines[-1] if lines and lines[-1] != "done" else "no input was reached"
        left = left[done + 1 :]
    return found
