"""How far the indexing of a run is, and a ZIM file that is attached to it by hand."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import select

from holdfast.db.models import Execution, IndexRun, WarcFile
from holdfast.errors import Invalid, NotFound
from holdfast.jobs.administration.maintenance import attach_zim
from tests.archive import Shot, build_archive
from tests.client import asking


def test_job_shows_how_far_its_files_are_indexed(tmp_path: Path, migrated_url: str) -> None:
    archive = build_archive(tmp_path / "home", [Shot(url="https://example.org/")], database_url=migrated_url)
    with closing(archive.database), asking(archive) as client:
        with archive.database.read() as session:
            job_id = session.scalars(select(Execution.job_id)).first()
        done = client.get(f"/api/admin/jobs/{job_id}").json()["indexProgress"]
        with archive.database.write() as session:
            session.scalars(select(WarcFile)).one().index_state = "running"
            session.scalars(select(IndexRun)).one().phase = "read_warc"
        under_way = client.get(f"/api/admin/jobs/{job_id}").json()["indexProgress"]

    assert (done["phase"], done["warcIndex"], done["warcTotal"], done["currentWarc"]) == ("done", 1, 1, None)
    assert (under_way["phase"], under_way["warcIndex"]) == ("read_warc", 1)
    assert under_way["currentWarc"].endswith(".warc.gz")
    assert done["recordsProcessed"] > 0


def test_zim_is_attached_to_a_run_and_to_the_newest_of_a_source(tmp_path: Path, migrated_url: str) -> None:
    archive = build_archive(tmp_path / "home", [Shot(url="https://example.org/")], database_url=migrated_url)
    zim, other = tmp_path / "town.zim", tmp_path / "other.zim"
    zim.write_bytes(b"ZIM\x04" + bytes(80))
    other.write_bytes(b"PK")
    with closing(archive.database), archive.database.write() as session:
        execution = session.scalars(select(Execution)).one()
        execution.started_at = archive.clock.now()
        done = attach_zim(session, archive.clock, zim, execution_id=execution.id, source=None)
        again = attach_zim(session, archive.clock, zim, execution_id=None, source="example")
        with pytest.raises(Invalid, match="not a ZIM file"):
            attach_zim(session, archive.clock, other, execution_id=execution.id, source=None)
        with pytest.raises(NotFound):
            attach_zim(session, archive.clock, zim, execution_id=99_999, source=None)

    assert done == again == execution.id
    assert execution.artifacts["final_zim"] == str(zim)
