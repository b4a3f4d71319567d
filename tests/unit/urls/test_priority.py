"""Document 002's table of priorities."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from holdfast.urls import priority
from tests import patience

TABLE: list[tuple[str, int | None, int, str]] = json.loads(
    (Path(__file__).parents[2] / "golden" / "urls" / "priority.json").read_text()
)


@pytest.mark.parametrize(("url", "depth", "level", "why"), TABLE, ids=[f"{row[3]}: {row[0]} {row[1]}" for row in TABLE])
def test_an_address_has_its_priority(url: str, depth: int | None, level: int, why: str) -> None:
    assert priority(url, depth) == level, why


def test_a_seed_is_always_first() -> None:
    assert priority("https://example.org/blog/page/2?sort=x", 0, is_seed=True) == 3


def test_a_long_address_costs_little() -> None:
    started = time.process_time()

    for tail in ("/page" * 1600, "/2024" * 1600, "/tag" * 2000, "?" + "pag&" * 2000, "/about-" * 1000):
        assert priority(f"https://example.org{tail}", 9) in (1, 2, 3)

    assert time.process_time() - started < patience.allowed(0.2)
