"""How large a file, a function and a list of arguments may grow. A budget that hurts asks for the missing noun."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable

from tests.house.source import Module, functions

FILE_LINES = 600
BODY_LINES = 60
PARAMETERS = 6
_FORBIDDEN_NAMES = re.compile(r"(?:^|_)(utils?|common|helpers?|services?|managers?|misc)(?:_|$)")
_FORBIDDEN_CLASSES = re.compile(r"(Manager|Helper|Utils?|Impl)$")
_INDENTED_IMPORT = re.compile(r"^[ \t]+(?:import|from)\s", re.M)
_GENERATED = ("src/holdfast/db/migrations/versions/", "tests/migrations/versions/")


def long_files(modules: Iterable[Module]) -> list[str]:
    """Return the files that are over their budget."""
    counted = [(module.path, module.text.count("\n")) for module in modules]
    return [
        f"{path} has {lines} lines, {FILE_LINES} are allowed: which second noun lives in it?"
        for path, lines in counted
        if lines > FILE_LINES
    ]


def body_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Return how many lines a function's body spans, its docstring aside."""
    body = function.body
    if (
        isinstance(body[0], ast.Expr)
        and isinstance(body[0].value, ast.Constant)
        and isinstance(body[0].value.value, str)
    ):
        body = body[1:]
    return (function.end_lineno or 0) - body[0].lineno + 1 if body else 0


def long_functions(modules: Iterable[Module]) -> list[str]:
    """Return the functions that are over their budget; migrations are lists, not functions."""
    return [
        f"{module.path}:{function.lineno} {function.name} spans {body_lines(function)} lines, {BODY_LINES} are allowed"
        for module in modules
        if not module.path.startswith(_GENERATED)
        for function in functions(module)
        if body_lines(function) > BODY_LINES
    ]


def parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> float:
    """Return how many parameters a caller sees; a call spells a keyword out, so that one counts half."""
    args = function.args
    positional = [*args.posonlyargs, *args.args]
    if positional and positional[0].arg in ("self", "cls"):
        positional = positional[1:]
    return len(positional) + len([*args.kwonlyargs, *filter(None, [args.vararg, args.kwarg])]) / 2


def many_parameters(modules: Iterable[Module]) -> list[str]:
    """Return the functions with too many parameters, except commands and routes."""
    return [
        f"{module.path}:{function.lineno} {function.name} takes {parameters(function):g} arguments, {PARAMETERS} are"
        " allowed (keywords count half): which of them belong together?"
        for module in modules
        if not module.path.startswith(("src/holdfast/cli/", "src/holdfast/api/routes/"))
        for function in functions(module)
        if parameters(function) > PARAMETERS
    ]


def hidden_imports(modules: Iterable[Module]) -> list[str]:
    """Return imports inside functions; an optional extra, caught with ImportError, may stay."""
    found = []
    for module in modules:
        if module.path == "src/holdfast/cli/main.py" or not _INDENTED_IMPORT.search(module.text):
            continue
        for function in functions(module):
            optional = {id(inner) for node in ast.walk(function) if _is_optional(node) for inner in ast.walk(node)}
            found += [
                f"{module.path}:{node.lineno} imports inside {function.name}: move it up, or turn the arrow around"
                for node in ast.walk(function)
                if isinstance(node, ast.Import | ast.ImportFrom) and id(node) not in optional
            ]
    return found


def _is_optional(node: ast.AST) -> bool:
    return isinstance(node, ast.Try) and any(
        isinstance(handler.type, ast.Name) and handler.type.id in ("ImportError", "ModuleNotFoundError")
        for handler in node.handlers
    )


def undocumented(modules: Iterable[Module]) -> list[str]:
    """Return modules without a docstring. Functions and classes need one only where their name does not say enough."""
    return [
        f"{module.path} does not open with a sentence on what it is for and what it refuses"
        for module in modules
        if not module.path.startswith(_GENERATED) and not ast.get_docstring(module.tree)
    ]


def forbidden_names(modules: Iterable[Module]) -> list[str]:
    """Return modules, packages and classes whose name says nothing."""
    found = []
    for module in modules:
        parts = module.path.removesuffix(".py").split("/")
        found += [f"{module.path}: `{part}` is no noun of ours" for part in parts if _FORBIDDEN_NAMES.search(part)]
        found += [
            f"{module.path}:{node.lineno} class {node.name}: what does it do? Call it that"
            for node in module.nodes
            if isinstance(node, ast.ClassDef) and _FORBIDDEN_CLASSES.search(node.name)
        ]
    return found


def banners(modules: Iterable[Module]) -> list[str]:
    """Return comments that draw lines across the page."""
    return [
        f"{module.path}:{number} is a banner: a file that needs chapters is two files"
        for module in modules
        for number, line in enumerate(module.text.split("\n"), 1)
        if re.match(r"\s*#\s*[-=*#]{4,}", line)
    ]
