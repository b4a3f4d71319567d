"""Packages of files that break off inside a compressed record: other readers read them to the end."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from zipfile import ZipFile

import pytest
from fastwarc.warc import ArchiveIterator as FastIterator
from sqlalchemy import select
from warcio.archiveiterator import ArchiveIterator

from holdfast.clock import SystemClock
from holdfast.db import connect
from holdfast.db.engine import Database
from holdfast.db.models import Snapshot
from holdfast.exports.package_cache import PackageCache
from holdfast.exports.selection import pack_selection
from holdfast.imports.importer import Importer
from holdfast.index.indexer import open_indexer
from holdfast.jobs.imports import ImportOptions
from tests.unit.index.files import record, response

WHOLE, CUT, BEHIND = (f"http://example.org/{name}" for name in ("whole", "cut", "behind"))
_LONG = b"<p>" + b"These words of a page are there, although its file ends inside it. " * 200


@pytest.fixture
def database(migrated_url: str) -> Iterator[Database]:
    """An empty archive."""
    with closing(Database(migrated_url)) as opened:
        yield opened


def _imported(database: Database, tmp_path: Path, content: bytes, name: str = "a.warc.gz") -> Path:
    path, home = tmp_path / name, tmp_path / "home"
    path.write_bytes(content)
    home.mkdir()
    clock = SystemClock()
    wish = ImportOptions(source="foreign", name="Foreign", home=home, config={})
    with closing(connect(database.url)) as raw_db, open_indexer(raw_db, clock, home) as indexer:
        [done] = Importer(database, raw_db, clock, indexer, wish).run([path])
    assert done.error is None
    return home


def _members(cut: bytes = b"", behind: bytes = b"") -> bytes:
    return gzip.compress(record(response(b"<p>whole</p>"), url=WHOLE)) + cut + behind


def _cut_member() -> bytes:
    # Stored, so that what is cut off is a part of the body.
    return gzip.compress(record(response(_LONG), url=CUT), 0)[:-2000]


def _read(content: bytes) -> list[str]:
    """Return the addresses that warcio finds, after Python's gzip and fastwarc have read the same records."""
    found = [record.rec_headers["WARC-Target-URI"] for record in ArchiveIterator(BytesIO(content))]
    gzip.decompress(content)
    assert [one.headers["WARC-Target-URI"] for one in FastIterator(BytesIO(content))] == found
    return found


def _listed(package: ZipFile) -> tuple[set[str], set[str]]:
    """Return the addresses of a package's index and of its list of pages."""
    index = gzip.decompress(package.read("indexes/index.cdx.gz")).decode().splitlines()
    pages = [json.loads(line) for line in package.read("pages/pages.jsonl").splitlines()]
    return {json.loads(line.partition("{")[1] + line.partition("{")[2])["url"] for line in index}, {
        page["url"] for page in pages if "url" in page
    }


def _package(database: Database, home: Path) -> ZipFile:
    return ZipFile(BytesIO(b"".join(PackageCache(database, home, most_bytes=1 << 30).package(1).read())))


def test_package_ends_before_the_record_that_a_file_breaks_off_in(database: Database, tmp_path: Path) -> None:
    home = _imported(database, tmp_path, _members(_cut_member()))

    with _package(database, home) as package:
        assert _read(package.read("archive/a.warc.gz")) == [WHOLE]
        assert _listed(package) == ({WHOLE}, {WHOLE})


def test_package_keeps_records_behind_damage_in_the_middle(database: Database, tmp_path: Path) -> None:
    behind = gzip.compress(record(response(b"<p>behind</p>"), url=BEHIND))
    home = _imported(database, tmp_path, _members(_cut_member(), behind))

    with _package(database, home) as package:
        assert package.read("archive/a.warc.gz").endswith(behind)
        assert _listed(package) == ({WHOLE, BEHIND}, {WHOLE, BEHIND})


def test_package_keeps_the_cut_record_of_a_plain_file(database: Database, tmp_path: Path) -> None:
    content = record(response(b"<p>whole</p>"), url=WHOLE) + record(response(_LONG), url=CUT)[:-2000]
    home = _imported(database, tmp_path, content, "a.warc")

    with _package(database, home) as package:
        assert package.read("archive/a.warc") == content
        assert _listed(package) == ({WHOLE, CUT}, {WHOLE, CUT})


def test_package_of_chosen_captures_leaves_out_broken_records(database: Database, tmp_path: Path) -> None:
    home = _imported(database, tmp_path, _members(_cut_member()))
    with database.read() as session:
        ids = list(session.scalars(select(Snapshot.id).order_by(Snapshot.id.desc())))
    assert len(ids) == 2

    packed = pack_selection(database, home, ids, title="Both", now=datetime(2026, 1, 1, tzinfo=UTC))

    with ZipFile(BytesIO(b"".join(packed.read()))) as package:
        assert _read(package.read("archive/captures.warc.gz")) == [WHOLE]
        assert _listed(package) == ({WHOLE}, {WHOLE})
