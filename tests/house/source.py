"""The Python files of the repository, parsed once."""

from __future__ import annotations

import ast
import functools
import gc
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = "holdfast"


@dataclass(frozen=True, slots=True, kw_only=True)
class Module:
    """One file: where it is, what it is called, what it says."""

    path: str
    """From the root of the repository."""
    name: str
    """Dotted below the package (`fetch.guard`, `fetch` for its `__init__`), or the path for a file outside it."""
    text: str
    tree: ast.Module
    nodes: tuple[ast.AST, ...]
    """The tree, walked once for all rules."""

    @property
    def room(self) -> str:
        """The first word of the name: what the floors are made of."""
        return self.name.split(".", 1)[0]

    @property
    def is_package(self) -> bool:
        """Whether this is the `__init__` of a package."""
        return self.path.endswith("__init__.py")


def module_from(path: str, text: str) -> Module:
    """Return a module from its text; rules are tested with made-up ones."""
    name = path
    if path.startswith(f"src/{PACKAGE}/"):
        name = path.removeprefix(f"src/{PACKAGE}/").removesuffix(".py").replace("/", ".")
        name = name.removesuffix("__init__").rstrip(".")
    tree = ast.parse(text)
    return Module(path=path, name=name, text=text, tree=tree, nodes=tuple(ast.walk(tree)))


@functools.cache
def tracked_files() -> tuple[str, ...]:
    """Return every file that is or will be committed: tracked ones, and new ones that nothing ignores."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=True).stdout.decode()
    return tuple(sorted(path for path in listed.split("\0") if path and (ROOT / path).is_file()))


@functools.cache
def modules(folder: str) -> tuple[Module, ...]:
    """Return every Python file below a folder of the repository."""
    paths = (path for path in tracked_files() if path.startswith(f"{folder}/") and path.endswith(".py"))
    gc.disable()  # hundreds of thousands of nodes that all stay: collecting in between doubles the time (measured)
    try:
        return tuple(module_from(path, (ROOT / path).read_text()) for path in paths)
    finally:
        gc.freeze()
        gc.enable()


def functions(module: Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Yield every function of a module, methods and inner ones included."""
    for node in module.nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def docstrings(module: Module) -> set[int]:
    """Return the identities of the string nodes that are documentation, attribute docs included."""
    found = set()
    for node in module.nodes:
        for statement in getattr(node, "body", ()) if not isinstance(node, ast.Lambda | ast.IfExp) else ():
            if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
                found.add(id(statement.value))
    return found


def dotted(node: ast.AST) -> str:
    """Return `a.b.c` for a name or a chain of attributes, else an empty string."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and (before := dotted(node.value)):
        return f"{before}.{node.attr}"
    return ""
