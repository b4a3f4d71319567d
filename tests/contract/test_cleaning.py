"""Clean-ups by themselves: what is old, indexed and not newest goes while the disk is full, WARC files never."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from holdfast.clock import SystemClock
from holdfast.config import Settings
from holdfast.db.models import Execution
from holdfast.operations.cleaning import Sweep, total_and_free
from holdfast.wiring import open_runtime
from holdfast.zimit.output_directory import hold_output
from tests.clock import FakeClock
from tests.jobs_bed import Bed, open_bed

FULL, HALF = (1000, 200), (1000, 500)


@pytest.fixture
def bed(migrated_url: str, clock: FakeClock, tmp_path: Path) -> Iterator[Bed]:
    with open_bed(migrated_url, clock, tmp_path) as made:
        yield made


def _crawled(bed: Bed, job_id: int, *, days: float = 20, index: str = "indexed", backend: str = "zimit") -> Path:
    """Let a job have crawled so many days ago; return its directory, with 300 bytes of remains beside a WARC file."""
    assert isinstance(bed.clock, FakeClock)
    bed.clock.advance(7200)
    bed.run_once(job_id)
    execution = bed.executions(job_id)[-1]
    folder = Path(execution.output_dir)
    archive = folder / ".tmp1" / "collections" / "crawl-1" / "archive"
    archive.mkdir(parents=True)
    (archive / "a.warc.gz").write_bytes(b"kept")
    (folder / ".tmp1" / "profile").write_bytes(b"x" * 300)
    with bed.database.write() as session:
        row = session.get_one(Execution, execution.id)
        row.index_state, row.config = index, {"backend": backend}
        row.finished_at = SystemClock().now() - timedelta(days=days)
    return folder


@contextmanager
def _sweep(bed: Bed, room: tuple[int, int] = FULL) -> Iterator[Sweep]:
    url = bed.url if bed.url.startswith("postgresql") else None
    with open_runtime(Settings(home=bed.home, database_url=url)) as runtime:
        yield Sweep(runtime, bed.database, lambda _folder: room)


def _remains(*folders: Path) -> list[bool]:
    return [(folder / ".tmp1").exists() for folder in folders]


def test_old_remains_go_the_newest_two_stay_and_no_warc_file_is_lost(bed: Bed) -> None:
    job_id = bed.recurring()
    folders = [_crawled(bed, job_id, days=days) for days in (40, 30, 20, 16)]

    with _sweep(bed) as sweep:
        done = sweep.run(apply=True)

    assert [Path(case.run.execution.output_dir) for case in done] == folders[:2]
    assert [(case.freed_bytes, case.refusal) for case in done] == [(300, None)] * 2
    assert _remains(*folders) == [False, False, True, True]
    assert [(folder / "warcs" / "warc-000001.warc.gz").read_bytes() for folder in folders[:2]] == [b"kept"] * 2
    assert [row.cleanup_status for row in bed.executions(job_id)] == ["temp_nonwarc_cleaned"] * 2 + ["none"] * 2
    with _sweep(bed) as sweep:
        assert sweep.run(apply=True) == []


def test_a_dry_run_changes_nothing_and_stops_where_there_would_be_room(bed: Bed) -> None:
    job_id = bed.recurring()
    folders = [_crawled(bed, job_id, days=days) for days in (40, 30, 20, 16)]

    with _sweep(bed, (1000, 200)) as sweep:
        planned = sweep.run(apply=False)

    assert [case.used_percent for case in planned] == [80.0], "the first would free three tenths of the disk"
    assert _remains(*folders) == [True] * 4


@pytest.mark.parametrize(
    ("room", "kind"),
    [(HALF, {}), (FULL, {"days": 13.9}), (FULL, {"index": "index_failed"}), (FULL, {"index": "pending"}),
     (FULL, {"backend": "native"})],
)  # fmt: skip
def test_what_is_young_or_not_indexed_or_not_a_tools_is_left_alone_and_so_is_a_disk_with_room(
    bed: Bed, room: tuple[int, int], kind: dict[str, Any]
) -> None:
    job_id = bed.recurring()
    folder = _crawled(bed, job_id, **kind)
    for _ in range(2):
        _crawled(bed, job_id, days=1)

    with _sweep(bed, room) as sweep:
        assert sweep.run(apply=True) == []
    assert _remains(folder) == [True]


def test_a_directory_in_which_a_tool_works_is_told_and_left_alone(bed: Bed) -> None:
    job_id = bed.recurring()
    folders = [_crawled(bed, job_id) for _ in range(3)]

    with _sweep(bed) as sweep, hold_output(folders[0]):
        [case] = sweep.run(apply=True)

    assert "runs in" in (case.refusal or "")
    assert _remains(*folders) == [True] * 3


def test_a_real_disk_says_how_full_it_is(tmp_path: Path) -> None:
    total, free = total_and_free(tmp_path)

    assert 0 < free <= total
