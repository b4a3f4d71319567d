"""The tests keep their own rules, and the rules find what they are for."""

from __future__ import annotations

import ast

import pytest

from tests.house import suite
from tests.house.source import module_from, modules
from tests.slow import SLOW


def test_no_test_is_skipped_quietly() -> None:
    assert suite.quiet_skips(modules("tests")) == []


def test_no_bound_of_time_forgets_the_load_of_the_machine() -> None:
    assert suite.bare_bounds(modules("tests")) == []


def test_every_slow_test_that_is_named_exists() -> None:
    by_path = {module.path: module for module in modules("tests")}
    lost = [
        f"tests/{path}::{name} is no test any more: tests/slow.txt names it"
        for path, names in SLOW.items()
        for name in names
        if f"tests/{path}" not in by_path
        or name not in {node.name for node in by_path[f"tests/{path}"].nodes if isinstance(node, ast.FunctionDef)}
    ]

    assert lost == []


@pytest.mark.parametrize(
    "text",
    [
        "import pytest\n\n\ndef test() -> None:\n    pytest.skip('not here')",
        "@pytest.mark.skipif(True, reason='not here')\ndef test() -> None: ...",
        "other = pytest.importorskip('other')",
    ],
)
def test_a_quiet_skip_is_found(text: str) -> None:
    assert len(suite.quiet_skips([module_from("tests/unit/test_x.py", text)])) == 1
    assert suite.quiet_skips([module_from("tests/needs.py", text)]) == []


@pytest.mark.parametrize(
    ("bad", "good"),
    [
        ("assert time.monotonic() - began < 3", "assert time.monotonic() - began < patience.allowed(3)"),
        ("assert time.process_time() - began <= 0.2", "assert time.process_time() - began > 0.2"),
        ("assert time.time() - began < LIMIT_S", "assert clock.monotonic() - began < LIMIT_S"),
    ],
)
def test_a_bare_bound_is_found_and_a_stretched_one_left_alone(bad: str, good: str) -> None:
    assert len(suite.bare_bounds([module_from("tests/unit/test_x.py", bad)])) == 1
    assert suite.bare_bounds([module_from("tests/unit/test_x.py", good)]) == []
