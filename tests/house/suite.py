"""What the tests themselves keep to: no quiet skip, no bound in seconds that a busy machine breaks."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from tests.house.source import Module

_SKIPS = {"pytest.skip", "pytest.importorskip", "pytest.mark.skip", "pytest.mark.skipif", "unittest.skip"}
_CLOCKS = {"time.monotonic", "time.perf_counter", "time.process_time", "time.time", "time.thread_time"}
_STRETCHED = ("allowed", "deadline", "period")


def quiet_skips(modules: Iterable[Module]) -> list[str]:
    """Return where a test is skipped past tests/needs.py, which fails instead where everything was promised."""
    return [
        f"{module.path}:{node.lineno} skips by itself: say what is lacking with tests/needs.py"
        for module in modules
        if module.path != "tests/needs.py"
        for node in module.nodes
        if isinstance(node, ast.Attribute | ast.Name) and ast.unparse(node) in _SKIPS
    ]


def bare_bounds(modules: Iterable[Module]) -> list[str]:
    """Return the assertions that less than so many seconds have passed, without regard to the machine's load."""
    return [
        f"{module.path}:{node.lineno} is true on a quiet machine only: count the work, or use tests/patience.py"
        for module in modules
        for node in module.nodes
        if isinstance(node, ast.Assert) and isinstance(node.test, ast.Compare) and _is_bare_bound(node.test)
    ]


def _is_bare_bound(compared: ast.Compare) -> bool:
    below = isinstance(compared.ops[-1], ast.Lt | ast.LtE)
    return below and _calls(compared.left, _CLOCKS) and not any(name in _names(compared) for name in _STRETCHED)


def _calls(expression: ast.AST, wanted: set[str]) -> bool:
    return any(isinstance(node, ast.Call) and ast.unparse(node.func) in wanted for node in ast.walk(expression))


def _names(expression: ast.AST) -> set[str]:
    found = {node.id for node in ast.walk(expression) if isinstance(node, ast.Name)}
    return found | {node.attr for node in ast.walk(expression) if isinstance(node, ast.Attribute)}
