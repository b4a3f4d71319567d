"""An import on both databases: rows, manifest, the same file again, a bad one among good ones."""

from __future__ import annotations

import gzip
import shutil
import zipfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import func, select, update

from holdfast.clock import SystemClock
from holdfast.db.connect import connect
from holdfast.db.engine import Database
from holdfast.db.models import Execution, Snapshot, WarcFile
from holdfast.errors import Invalid
from holdfast.index.intake.importer import Imported, Importer
from holdfast.index.owning import open_indexer
from holdfast.jobs.imports import ImportWish, ensure_import_source
from holdfast.warc.manifest import read_manifest
from tests.unit.index.files import record, response, write

ARC = b"URL IP-address Archive-date Content-type Archive-length\n"


@pytest.fixture
def database(migrated_url: str) -> Iterator[Database]:
    """An empty archive."""
    with closing(Database(migrated_url)) as opened:
        yield opened


@pytest.fixture
def paths(tmp_path: Path) -> list[Path]:
    """A WARC, an ARC, a package with one of each kind, and something else."""
    warc = write(tmp_path / "a.warc.gz", record(response("<p>Naïve café \x00 text</p>".encode())))
    arc, package, other = tmp_path / "b.arc", tmp_path / "c.wacz", tmp_path / "d.warc"
    answer = b"HTTP/1.0 200 OK\r\nContent-Type: text/html\r\n\r\n<p>old</p>"
    first = b"filedesc://b.arc 0.0.0.0 19990101000000 text/plain %d\n1 0 x\n%b\n" % (6 + len(ARC), ARC)
    arc.write_bytes(first + b"http://example.org/old 192.0.2.1 19990101000000 text/html %d\n" % len(answer) + answer)
    with zipfile.ZipFile(package, "w") as out:
        out.writestr("archive/one.warc.gz", gzip.compress(record(url="http://example.org/one")))
        out.writestr("archive/two.warc", record(url="http://example.org/two"))
    other.write_bytes(b"GIF89a")
    return [warc, arc, package, other]


def _run(database: Database, home: Path, paths: list[Path]) -> list[Imported]:
    home.mkdir(exist_ok=True)
    clock = SystemClock()
    wish = ImportWish(source="foreign", name="Foreign", home=home, config={"paths": [str(path) for path in paths]})
    with closing(connect(database.url)) as hot, open_indexer(hot, clock, home) as indexer:
        return list(Importer(database, hot, clock, indexer, wish).run(paths))


def _counts(database: Database) -> tuple[int, ...]:
    with database.read() as session:
        return tuple(
            session.scalar(select(func.count()).select_from(model)) or 0 for model in (WarcFile, Snapshot, Execution)
        )


def test_every_kind_is_imported_once_and_a_bad_file_stops_no_other(
    tmp_path: Path, database: Database, paths: list[Path]
) -> None:
    done = _run(database, tmp_path / "home", paths)

    assert [(one.state, one.how) for one in done] == [
        ("imported", "linked"), ("imported", "converted"), ("imported", "linked"), ("imported", "linked"),
        ("failed", ""),
    ]  # fmt: skip
    assert "it begins with b'GIF89a'" in (done[-1].error or "")
    assert _counts(database) == (4, 4, 1)
    with database.read() as session:
        (execution,) = session.scalars(select(Execution))
        files = session.scalars(select(WarcFile).order_by(WarcFile.id)).all()
        snapshots = session.scalars(select(Snapshot).order_by(Snapshot.id)).all()
    assert [(file.index_state, file.record_count) for file in files] == [
        ("indexed", 1), ("indexed", 2), ("indexed", 1), ("indexed", 1),
    ]  # fmt: skip
    listed = {entry.file_id: (entry.name, entry.sha256) for entry in read_manifest(Path(execution.output_dir))}
    assert listed == {file.id: (Path(file.path).name, file.sha256) for file in files}
    assert [file.origin_sha256 == file.sha256 for file in files] == [True, False, True, True]
    assert [snapshot.backend for snapshot in snapshots] == ["import"] * 4
    assert [snapshot.captured_at.year for snapshot in snapshots] == [2024, 1999, 2024, 2024]


@pytest.mark.parametrize("code", ["", "Upper", "with space", "seventeen-letters", "-x", "x-", "ü", "a/b", "a\n"])
def test_a_source_needs_a_code_that_fits(database: Database, code: str) -> None:
    with pytest.raises(Invalid):
        ensure_import_source(database, SystemClock(), code=code, name=None)


def test_the_same_files_again_change_nothing(tmp_path: Path, database: Database, paths: list[Path]) -> None:
    first = _run(database, tmp_path / "home", paths[:3])
    before = _counts(database)

    again = _run(database, tmp_path / "home", [*reversed(paths[:3])])

    assert _counts(database) == before
    assert [one.state for one in again] == ["again"] * 4
    assert {one.warc_file_id for one in again} == {one.warc_file_id for one in first}
    assert sum(one.indexed.changed for one in again if one.indexed is not None) == 0


def test_a_row_that_leads_out_of_the_data_directory_gets_no_list_beside_its_file(
    tmp_path: Path, database: Database, paths: list[Path]
) -> None:
    (first,) = _run(database, tmp_path / "home", paths[:1])
    (tmp_path / "outside").mkdir()
    shutil.copy(paths[0], tmp_path / "outside" / "a.warc.gz")
    with database.write() as session:
        session.execute(update(WarcFile).values(path="../outside/a.warc.gz"))

    (again,) = _run(database, tmp_path / "home", paths[:1])

    assert again.warc_file_id == first.warc_file_id
    assert [path.name for path in (tmp_path / "outside").iterdir()] == ["a.warc.gz"]
