"""A writer of the search index that is killed at the worst moments: the next drain replays, nothing is there twice."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.db.schema import make_fresh
from holdfast.search.queries import waiting_count
from holdfast.search.readers import ReaderCache
from tests.clock import FakeClock
from tests.search_bed import Bed, open_bed, pages


@pytest.fixture
def bed(tmp_path: Path, clock: FakeClock) -> Iterator[Bed]:
    """An archive on SQLite in a home of its own."""
    url = f"sqlite:///{tmp_path / 'holdfast.db'}"
    make_fresh(url)
    with open_bed(url, tmp_path, clock) as opened:
        yield opened


def _waiting(bed: Bed) -> int:
    with bed.database.read() as session:
        return waiting_count(session)


@pytest.mark.parametrize("place", ["search.committed", "search.in_force"])
def test_a_killed_drain_is_replayed_without_doubles(bed: Bed, place: str) -> None:
    bed.fill(pages(["parrot one"]))
    bed.add(pages(["parrot two", "parrot three"], host="other.test"))

    killed = subprocess.run(
        [sys.executable, "-m", "holdfast.cli.main", "search-index", "drain", "--home", str(bed.home)],
        env={**os.environ, "HOLDFAST_FAILPOINT": f"{place}:kill"}, capture_output=True, check=False,
    )  # fmt: skip
    assert killed.returncode == -signal.SIGKILL
    assert _waiting(bed) == 1
    assert bed.ask("parrot").total == (1 if place == "search.committed" else 3)

    assert bed.drain() == 1
    assert _waiting(bed) == 0
    found = bed.ask("parrot")
    assert (found.total, len({hit.row.id for hit in found.hits})) == (3, 3)
    reader = ReaderCache(bed.home, FakeClock()).view().reader
    assert reader is not None
    assert reader.entries == 6  # three documents and three addresses, each once
