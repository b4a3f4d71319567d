"""The error tree as the source draws it: every class below HoldfastError and the code that it carries."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import NamedTuple

from tests.house.source import Module


class ErrorClass(NamedTuple):
    """One error of the tree."""

    name: str
    code: str | None
    """None if the class carries its parent's."""
    path: str
    doc: str


def error_tree(modules: Iterable[Module]) -> list[ErrorClass]:
    """Return HoldfastError and everything below it, wherever it is defined."""
    classes = {
        node.name: (node, module.path) for module in modules for node in module.nodes if isinstance(node, ast.ClassDef)
    }

    def below(name: str) -> bool:
        if name == "HoldfastError" or name not in classes:
            return name == "HoldfastError"
        return any(below(base.id) for base in classes[name][0].bases if isinstance(base, ast.Name) and base.id != name)

    return [
        ErrorClass(name, _code(node), path, (ast.get_docstring(node) or "").split("\n", 1)[0])
        for name, (node, path) in classes.items()
        if below(name)
    ]


def _code(node: ast.ClassDef) -> str | None:
    for statement in node.body:
        if isinstance(statement, ast.Assign | ast.AnnAssign):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            named = any(isinstance(target, ast.Name) and target.id == "code" for target in targets)
            if named and isinstance(statement.value, ast.Constant) and isinstance(statement.value.value, str):
                return statement.value.value
    return None
