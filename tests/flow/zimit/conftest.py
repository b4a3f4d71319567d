"""A bed for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.flow.zimit.bed import Bed


@pytest.fixture
def bed(tmp_path: Path) -> Iterator[Bed]:
    """An output directory and a stand-in engine; at the end no container may be left."""
    made = Bed(tmp_path)
    yield made
    left = made.running()
    made.clear()
    assert left == [], "a container was left running"
