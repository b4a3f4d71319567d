"""What a crawl does not load: its start counts in every figure, and two processes pay for each module."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

_HEAVY = ("sqlalchemy", "rich", "alembic", "fastapi", "tantivy", "numpy", "psycopg", "structlog", "pydantic")
_FETCHING = ("pycurl", "selectolax", "lxml", "uvloop", "fastwarc")


def _loaded(module: str) -> set[str]:
    code = f"import sys, json, {module}; print(json.dumps([name.partition('.')[0] for name in sys.modules]))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout))


@pytest.mark.parametrize(
    ("module", "unwanted"),
    [("holdfast.cli.crawl", (*_HEAVY, *_FETCHING)), ("holdfast.crawl.process", _HEAVY)],
)
def test_a_crawl_loads_only_what_it_needs(module: str, unwanted: tuple[str, ...]) -> None:
    assert sorted(_loaded(module) & set(unwanted)) == []
