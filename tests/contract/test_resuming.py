"""Resuming a crawl of its own: nothing is written where the files of its first part are away; on both databases."""

from __future__ import annotations

import shutil
from contextlib import closing
from pathlib import Path

import pytest

from holdfast.clock import to_micros
from holdfast.db import connect
from holdfast.db.raw import RawDatabase
from holdfast.errors import Unavailable
from holdfast.jobs.executions import ExecutionOptions, StartedRun, begin
from holdfast.processes.owners import OwnerProcess
from holdfast.processes.runfile import RunFile
from holdfast.sources.plan import CrawlPlan
from holdfast.storage.roots import key_of, record_root
from holdfast.warc import queries as files
from holdfast.warc.outfile import SealedFile
from tests.clock import FakeClock

PLAN = CrawlPlan(seeds=("https://a.example/",), contact="tests@example.org")


def _begin(raw_db: RawDatabase, clock: FakeClock, home: Path, output: Path | None) -> StartedRun:
    return begin(raw_db, clock, PLAN, ExecutionOptions(home=home, output=output), is_working=lambda _: False)


def _seal_a_file(raw_db: RawDatabase, clock: FakeClock, begun: StartedRun, home: Path) -> Path:
    """Write one sealed file of an execution, as its first part left it."""
    path = begun.output_dir / "first.warc.gz"
    path.write_bytes(b"WARC")
    record_root(home, begun.output_dir)
    owner = OwnerProcess(raw_db, clock, run=RunFile(home / "run"), kind="process", execution_id=begun.execution_id)
    with raw_db.write() as tx:
        now = to_micros(clock.now())
        file_id = files.insert_file(
            tx, execution_id=begun.execution_id, owner_id=owner.id, key=key_of(home, path), now=now
        )
        sealed = SealedFile(path=path, size=4, sha256="0" * 64, crc32=0, record_count=1)
        files.seal_file(tx, file_id, sealed, now=now)
    owner.end()
    return path


@pytest.mark.parametrize("is_outside", [True, False])
def test_a_crawl_is_not_resumed_where_none_of_its_files_is_there(
    migrated_url: str, clock: FakeClock, tmp_path: Path, *, is_outside: bool
) -> None:
    home, output = tmp_path / "home", tmp_path / "disk" / "out" if is_outside else None
    home.mkdir()
    with closing(connect(migrated_url)) as raw_db:
        first = _begin(raw_db, clock, home, output)
        path = _seal_a_file(raw_db, clock, first, home)
        assert _begin(raw_db, clock, home, output).resumed
        with raw_db.write() as tx:
            tx.execute("UPDATE executions SET state = 'stopped'")
        mounted = path.rename(tmp_path / "away.warc.gz")
        path.parent.rmdir()

        with pytest.raises(Unavailable, match="is its storage mounted"):
            _begin(raw_db, clock, home, output)

        assert not path.parent.exists()
        with raw_db.read() as tx:
            assert tx.execute("SELECT state FROM executions") == [("stopped",)]
        path.parent.mkdir(parents=True)
        mounted.rename(path)
        assert _begin(raw_db, clock, home, output).resumed


@pytest.mark.parametrize("is_copy", [True, False])
def test_crawl_of_a_moved_or_copied_data_directory_is_resumed_there(
    migrated_url: str, clock: FakeClock, tmp_path: Path, *, is_copy: bool
) -> None:
    before, home = tmp_path / "before", tmp_path / "home"
    before.mkdir()
    with closing(connect(migrated_url)) as raw_db:
        first = _begin(raw_db, clock, before, None)
        path = _seal_a_file(raw_db, clock, first, before)
        if is_copy:
            shutil.copytree(before, home)
        else:
            before.rename(home)

        resumed = _begin(raw_db, clock, home, None)

        assert resumed.resumed
        assert resumed.output_dir == home / first.output_dir.relative_to(before)
        assert (resumed.output_dir / path.name).exists()
        with raw_db.read() as tx:
            assert tx.execute("SELECT output_dir FROM executions") == [(str(resumed.output_dir),)]
        assert before.exists() == is_copy
