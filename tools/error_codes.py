"""The codes that errors carry, as the source has them: `src/holdfast/api/error_codes.py` is written from here."""

from __future__ import annotations

import ast
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent / "src" / "holdfast"
MODULE = SOURCE / "api" / "error_codes.py"
_HEAD = '''"""Every code that an error may carry, for the OpenAPI document. Written by `make docs`; do not edit."""

from __future__ import annotations

from typing import Final

ERROR_CODES: Final = (
'''


def error_codes_module() -> str:
    """Return the text of the module."""
    rows = "".join(f'    "{code}",\n' for code in sorted(_codes()))
    return f"{_HEAD}{rows})\n"


def _codes() -> set[str]:
    classes = {
        node.name: node
        for path in sorted(SOURCE.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef)
    }

    def below(name: str) -> bool:
        if name == "HoldfastError" or name not in classes:
            return name == "HoldfastError"
        bases = [base.id for base in classes[name].bases if isinstance(base, ast.Name) and base.id != name]
        return any(below(base) for base in bases)

    found = {code for name, node in classes.items() if below(name) for code in _own(node)}
    return found | set(_of_statuses())


def _own(node: ast.ClassDef) -> list[str]:
    return [
        statement.value.value
        for statement in node.body
        if isinstance(statement, ast.Assign)
        and any(isinstance(target, ast.Name) and target.id == "code" for target in statement.targets)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    ]


def _of_statuses() -> list[str]:
    """Return the codes of what the framework itself refuses."""
    for node in ast.parse((SOURCE / "api" / "errors.py").read_text()).body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "CODES_BY_STATUS":
            return list(ast.literal_eval(node.value).values())
    raise LookupError("api/errors.py has no CODES_BY_STATUS")
