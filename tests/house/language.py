"""The phrases of our former dialect that text for users does not contain: quotations and code aside."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from tests.house.source import Module, docstrings, dotted

PHRASES = re.compile(
    r"\b(anew|heeds?|heeded|begun|(?:is|are|was|were) told|is none|is no longer any|let go|lets go|wish(?:es)?|meant"
    r"|hangs on|stands in|[Ww]hat (?:is|was|are)(?! it about\?))\b"
)
_QUOTED = re.compile(r'```.*?```|`[^`\n]*`|"[^"\n]*"|“[^”]*”|\[[^\]\n]*\]\([^)\n]*\)', re.S)
_PRINTERS = ("debug", "info", "warning", "error", "exception", "critical", "echo", "print")
_TEXT_ARGUMENTS = ("help", "description", "summary", "message", "epilog")


def _blanked(match: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", match.group())


def phrases_in(text: str) -> Iterator[tuple[int, str]]:
    """Yield (line, phrase) for each phrase outside quotations and code."""
    for match in PHRASES.finditer(_QUOTED.sub(_blanked, text)):
        yield text.count("\n", 0, match.start()) + 1, match.group()


def page_complaints(files: Iterable[tuple[str, str]]) -> list[str]:
    """Return where a (path, text) pair of documentation contains a phrase."""
    return [f"{path}:{line} says {found!r}" for path, text in files for line, found in phrases_in(text)]


def string_complaints(modules: Iterable[Module]) -> list[str]:
    """Return where an error, a log line, a help text or a description of a module contains a phrase."""
    found = []
    for module in modules:
        for node in _texts(module):
            # Parts of one sentence may be written on several lines: the phrase is found in the whole.
            found += [f"{module.path}:{node.lineno} says {phrase!r}" for _, phrase in phrases_in(_joined(node))]
    return sorted(set(found))


def _joined(node: ast.expr) -> str:
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    if isinstance(node, ast.JoinedStr):
        return "".join(_joined(part) or "…" for part in node.values)
    if isinstance(node, ast.BinOp):
        return _joined(node.left) + _joined(node.right)
    if isinstance(node, ast.IfExp):
        return f"{_joined(node.body)}\n{_joined(node.orelse)}"
    return ""


def _texts(module: Module) -> Iterator[ast.expr]:
    """Yield the expressions of a module whose text users read."""
    prose = docstrings(module)
    for node in module.nodes:
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            yield from node.exc.args
        elif isinstance(node, ast.Call):
            name = dotted(node.func)
            last = node.func.attr if isinstance(node.func, ast.Attribute) else name
            if last in _PRINTERS or (last == "__init__" and "super" in ast.dump(node.func)):
                yield from node.args
            yield from (one.value for one in node.keywords if one.arg in _TEXT_ARGUMENTS)
        elif isinstance(node, ast.FunctionDef) and module.room in ("api", "cli") and _is_shown(node):
            yield from (one.value for one in node.body[:1] if isinstance(one, ast.Expr) and id(one.value) in prose)


def _is_shown(node: ast.FunctionDef) -> bool:
    """Whether a function's docstring is the help of a command or the description of a route."""
    return any(isinstance(one, ast.Call) for one in node.decorator_list)
