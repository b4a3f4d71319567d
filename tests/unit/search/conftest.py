"""What the tests of search stand on: an archive of rows with its index beside it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.db.schema import make_fresh
from tests.clock import FakeClock
from tests.search_bed import Bed, open_bed


@pytest.fixture
def bed(tmp_path: Path, clock: FakeClock) -> Iterator[Bed]:
    """An empty archive on SQLite."""
    url = f"sqlite:///{tmp_path / 'holdfast.db'}"
    make_fresh(url)
    with open_bed(url, tmp_path, clock) as opened:
        yield opened
