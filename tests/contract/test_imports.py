"""An import on both databases: rows, manifest, the same file again, a bad one among good ones."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import shutil
import zipfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from threading import Barrier

import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from sqlalchemy import func, select, update

from holdfast.cli.status import describe
from holdfast.clock import SystemClock
from holdfast.db import connect
from holdfast.db.engine import Database
from holdfast.db.models import Execution, Job, Snapshot, WarcFile
from holdfast.errors import Invalid, Unavailable
from holdfast.exports.package import build, read_contents
from holdfast.exports.zipping import read_segments
from holdfast.imports.importer import ImportedFile, Importer
from holdfast.imports.packages import spelled
from holdfast.imports.placing import digest_of
from holdfast.index.indexer import open_indexer
from holdfast.index.queries import open_stored
from holdfast.jobs.imports import ImportOptions, begin_import, ensure_import_source
from holdfast.jobs.views.status import read_status
from holdfast.series.queries import series_totals
from holdfast.steps import FileStep
from holdfast.storage.disk import Digests
from holdfast.warc.manifest import read_manifest
from holdfast.withdrawals.hiding import hide
from tests.patience import deadline
from tests.unit.imports import signing
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


class Ticking(SystemClock):
    """A clock on which a second passes with every look at it."""

    def __init__(self) -> None:
        self._looks = 0

    def monotonic(self) -> float:
        """Return how often anybody looked."""
        self._looks += 1
        return float(self._looks)


def _run(
    database: Database,
    home: Path,
    paths: list[Path],
    *,
    clock: SystemClock | None = None,
    strict: bool = False,
    in_place: bool = False,
    source: str = "foreign",
) -> list[ImportedFile]:
    home.mkdir(exist_ok=True)
    clock = clock or SystemClock()
    wish = ImportOptions(source=source, name="Foreign", home=home, config={"paths": [spelled(path) for path in paths]})
    with closing(connect(database.url)) as raw_db, open_indexer(raw_db, clock, home) as indexer:
        importer = Importer(database, raw_db, clock, indexer, wish)
        importer.strict, importer.in_place = strict, in_place
        return list(importer.run(paths))


def _together(
    database: Database, home: Path, each: list[Path], *, is_at: Callable[[FileStep], bool]
) -> list[ImportedFile]:
    """Import one file on each of some threads, into one execution; all of them reach a step before one goes on."""
    home.mkdir()
    clock, line = SystemClock(), Barrier(len(each))
    wish = ImportOptions(source="foreign", name="Foreign", home=home, config={})
    begun = begin_import(database, clock, wish)

    def one(path: Path) -> ImportedFile:
        waited: list[FileStep] = []

        def on_step(step: FileStep) -> None:
            if not waited and is_at(step):
                waited.append(step)
                line.wait(timeout=deadline(30))

        with closing(connect(database.url)) as raw_db, open_indexer(raw_db, clock, home) as indexer:
            importer = Importer(database, raw_db, clock, indexer, wish)
            importer.group, importer.on_step = begun, on_step
            return next(importer.run([path]))

    with ThreadPoolExecutor(len(each)) as pool:
        return list(pool.map(one, each))


def test_a_file_that_two_workers_take_in_at_one_moment_is_kept_once(database: Database, tmp_path: Path) -> None:
    path = write(tmp_path / "a.warc.gz", record(response(b"<p>text</p>")))

    done = _together(database, tmp_path / "home", [path, path], is_at=lambda step: step.phase == "reading")

    assert [one.error for one in done] == [None, None]
    assert sorted(one.state for one in done) == ["again", "imported"]
    assert len({one.warc_file_id for one in done}) == 1
    assert _counts(database)[:2] == (1, 1)
    assert len([one for one in (tmp_path / "home").rglob("*.warc.gz*") if one.is_file()]) == 1


@pytest.mark.parametrize("form", ["seekable", "unseekable"])
def test_files_of_one_name_that_come_at_one_moment_do_not_overwrite_each_other(
    database: Database, tmp_path: Path, form: str
) -> None:
    paths = [tmp_path / name / "same.warc.gz" for name in ("one", "two")]
    for path in paths:
        path.parent.mkdir()
        pages = [record(response(f"<p>{path.parent.name} {n}</p>".encode())) for n in range(2)]
        path.write_bytes(b"".join(map(gzip.compress, pages)) if form == "seekable" else gzip.compress(b"".join(pages)))

    def is_placed(step: FileStep) -> bool:
        return step.phase == "reading" and (form == "unseekable" or step.done > 0)

    done = _together(database, tmp_path / "home", paths, is_at=is_placed)

    assert [(one.state, one.error) for one in done] == [("imported", None)] * 2
    with database.read() as session:
        stored = session.execute(select(WarcFile.path, WarcFile.sha256)).all()
    assert len({name for name, _ in stored}) == 2
    for name, sha256 in stored:
        assert hashlib.sha256((tmp_path / "home" / name).read_bytes()).hexdigest() == sha256


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
        ("imported", "copied"), ("imported", "converted"), ("imported", "unpacked"), ("imported", "unpacked"),
        ("failed", ""),
    ]  # fmt: skip
    assert "it begins with “GIF89a”" in (done[-1].error or "")
    assert _counts(database) == (4, 4, 1)
    with database.read() as session:
        (execution,) = session.scalars(select(Execution))
        files = session.scalars(select(WarcFile).order_by(WarcFile.id)).all()
        snapshots = session.scalars(select(Snapshot).order_by(Snapshot.id)).all()
    assert [(file.index_state, file.record_count) for file in files] == [
        ("indexed", 1), ("indexed", 2), ("indexed", 1), ("indexed", 1),
    ]  # fmt: skip
    listed = read_manifest(Path(execution.output_dir))
    assert {file_id: (sealed.path.name, sealed.sha256) for file_id, sealed in listed.items()} == {
        file.id: (Path(file.path).name, file.sha256) for file in files
    }
    assert [file.origin_sha256 == file.sha256 for file in files] == [True, False, True, True]
    assert [snapshot.backend for snapshot in snapshots] == ["import"] * 4
    assert [snapshot.captured_at.year for snapshot in snapshots] == [2024, 1999, 2024, 2024]
    with database.read() as session:
        [recorded] = series_totals(session).values()
    assert (recorded["imported_records"], recorded["imported_bytes"]) == (5, sum(file.size or 0 for file in files))
    assert (recorded["pages"], recorded["bytes"]) == (0, 0), "what was imported was not crawled"


@pytest.mark.parametrize("code", ["", "Upper", "with space", "x" * 41, "-x", "x-", "ü", "a/b", "a\n"])
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


@pytest.mark.parametrize("is_lost", [False, True])
def test_file_of_another_source_is_refused(
    tmp_path: Path, database: Database, paths: list[Path], is_lost: bool
) -> None:
    home = tmp_path / "home"
    _run(database, home, paths[:3])
    before = _counts(database)
    for path in (home / "warcs").rglob("*.warc*") if is_lost else ():
        path.unlink()
    there = {path for path in (home / "warcs").rglob("*") if path.is_file()}

    done = _run(database, home, paths[:3], source="secret")

    assert [one.state for one in done] == ["failed"] * 4
    assert all("source foreign has this file already" in (one.error or "") for one in done)
    assert _counts(database) == before
    assert {path for path in (home / "warcs").rglob("*") if path.is_file()} == there


def test_file_taken_by_another_source_meanwhile_is_refused(tmp_path: Path, database: Database) -> None:
    home, path = tmp_path / "home", write(tmp_path / "a.warc.gz", record(response(b"<p>text</p>")))
    home.mkdir()
    clock, others = SystemClock(), list[ImportedFile]()

    def on_step(step: FileStep) -> None:
        if step.phase == "reading" and not others:
            others.extend(_run(database, home, [path]))

    with closing(connect(database.url)) as raw_db, open_indexer(raw_db, clock, home) as indexer:
        wish = ImportOptions(source="secret", name=None, home=home, config={})
        importer = Importer(database, raw_db, clock, indexer, wish)
        importer.on_step = on_step
        [done] = importer.run([path])

    assert ([one.state for one in others], done.state) == (["imported"], "failed")
    assert "source foreign has this file already" in (done.error or "")
    assert len([one for one in home.rglob("*.warc.gz*") if one.is_file()]) == 1


def test_the_status_of_an_import_tells_what_it_brought_and_nothing_of_a_crawl(
    tmp_path: Path, database: Database, paths: list[Path]
) -> None:
    done = _run(database, tmp_path / "home", paths[:2])
    with closing(connect(database.url)) as raw_db:
        shown = read_status(raw_db, SystemClock(), 1)

    assert shown.imported is not None
    assert (shown.imported.files, shown.imported.records) == (2, sum(one.records for one in done))
    assert shown.imported.bytes > 0
    assert shown.sentence is None
    assert f"imported 2 files, {shown.imported.records} records, " in describe(shown)


def test_a_row_that_leads_out_of_the_data_directory_gets_no_list_beside_its_file(
    tmp_path: Path, database: Database, paths: list[Path]
) -> None:
    (first,) = _run(database, tmp_path / "home", paths[:1])
    (tmp_path / "outside").mkdir()
    shutil.copy(paths[0], tmp_path / "outside" / "a.warc.gz")
    with database.write() as session:
        session.execute(update(WarcFile).values(key="../outside/a.warc.gz"))

    (again,) = _run(database, tmp_path / "home", paths[:1])

    assert again.warc_file_id == first.warc_file_id
    assert [path.name for path in (tmp_path / "outside").iterdir()] == ["a.warc.gz"]


def test_a_file_that_begins_with_records_without_captures_is_read_whole(tmp_path: Path, database: Database) -> None:
    notes = [record(b"x", kind="metadata") for _ in range(40)]
    pages = [record(response(b"<p>%d</p>" % number), url=f"http://example.org/{number}") for number in range(3)]
    path = write(tmp_path / "a.warc.gz", *notes, pages[0], *notes, *pages[1:], *notes)

    done = _run(database, tmp_path / "home", [path], clock=Ticking())
    again = _run(database, tmp_path / "home", [path])

    assert [(one.error, one.records) for one in (*done, *again)] == [(None, 123)] * 2
    assert done[0].indexed is not None
    assert again[0].indexed is not None
    assert (done[0].indexed.snapshots, again[0].indexed.changed) == (3, 0)
    assert _counts(database)[:1] == (1,)


_LONG = b"<p>" + b"These words of a page are there, although its file ends inside it. " * 200
_DIGEST = b"WARC-Payload-Digest: sha256:" + hashlib.sha256(_LONG).hexdigest().encode() + b"\r\n"


def _cut_file(path: Path, form: str) -> Path:
    """Write a file of some form that ends inside the body of its last record."""
    answer = response(_LONG)
    pages = [record(), record(answer, url="http://example.org/cut", more=_DIGEST)]
    if form == "arc":
        first = b"filedesc://b.arc 0.0.0.0 19990101000000 text/plain %d\n1 0 x\n%b\n" % (6 + len(ARC), ARC)
        line = b"http://example.org/cut 192.0.2.1 19990101000000 text/html %d\n"
        path.write_bytes(b"\n" + first + line % len(answer) + answer[:-2000])
    elif form == "only record":
        path.write_bytes(gzip.compress(pages[1], 0)[:-2000])
    elif form == "one member":
        # Stored, so that what is cut off is a part of the last record.
        path.write_bytes(gzip.compress(b"".join(pages), 0)[:-2000])
    else:
        last = gzip.compress(pages[1], 0) if form == "gzip" else pages[1]
        path.write_bytes((gzip.compress(pages[0]) if form == "gzip" else pages[0]) + last[:-2000])
    return path


@pytest.mark.parametrize("form", ["plain", "gzip", "one member", "only record", "arc"])
def test_record_at_the_end_of_a_cut_file_is_kept_as_truncated(database: Database, tmp_path: Path, form: str) -> None:
    home = tmp_path / "home"
    path = _cut_file(tmp_path / ("a.arc" if form == "arc" else "a.warc.gz" if form != "plain" else "a.warc"), form)

    [done] = _run(database, home, [path])

    assert done.error is None
    assert [one.kind for one in done.damage] == ["truncated"]
    with database.read() as session:
        found = session.scalars(select(Snapshot).where(Snapshot.url == "http://example.org/cut")).one()
        assert (found.truncated, found.status, found.is_page) == ("unspecified", 200, True)
        with open_stored(session, home, found) as stored:
            body = stored.content(10**6)
        assert len(_LONG) - 2100 < len(body) < len(_LONG)
        assert _LONG.startswith(body)
        assert found.payload_digest == f"sha256:{hashlib.sha256(body).hexdigest()}"


def test_of_links_the_files_are_kept_and_nothing_points_out_of_the_archive(tmp_path: Path, database: Database) -> None:
    home, store = tmp_path / "home", tmp_path / "annex"
    (store / "objects").mkdir(parents=True)
    write(store / "objects" / "KEY-1", record())
    (store / "a.warc.gz").symlink_to("objects/KEY-1")
    (store / "gone.warc.gz").symlink_to("objects/KEY-2")

    first, second = _run(database, home, [store / "a.warc.gz", store / "gone.warc.gz"])
    shutil.rmtree(store)

    assert (first.error, first.how) == (None, "copied")
    assert second.error is not None
    assert not (home / "warc-roots.json").exists()
    with database.read() as session:
        (stored,) = session.scalars(select(WarcFile.path))
    assert (home / stored).is_file()
    assert [path for path in home.rglob("*") if path.is_symlink()] == []


def test_what_its_owner_appends_to_a_file_does_not_reach_the_archive(tmp_path: Path, database: Database) -> None:
    path = write(tmp_path / "a.warc.gz", record())
    (done,) = _run(database, tmp_path / "home", [path])

    with path.open("ab") as file:
        file.write(b"more")

    with database.read() as session:
        file_row = session.scalars(select(WarcFile)).one()
    kept = tmp_path / "home" / file_row.path
    assert (done.how, kept.stat().st_size) == ("copied", file_row.size)


def _wacz(path: Path, *members: tuple[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w") as out:
        for name, content in members:
            out.writestr(name, content)
    return path


def _listing(**stated: bytes) -> bytes:
    resources = [
        {"path": f"archive/{name}.warc", "hash": f"sha256:{hashlib.sha256(content).hexdigest()}"}
        for name, content in stated.items()
    ]
    return json.dumps({"resources": resources}).encode()


def test_a_package_inside_a_package_is_read(tmp_path: Path, database: Database) -> None:
    inner = _wacz(tmp_path / "crawl-1.wacz", ("archive/one.warc", record(url="http://example.org/one")))
    other = _wacz(tmp_path / "crawl-2.wacz", ("archive/two.warc", record(url="http://example.org/two")))
    bad = b"PK\x03\x04 no package"
    path = _wacz(
        tmp_path / "multi.wacz", ("crawl-1.wacz", inner.read_bytes()), ("crawl-2.wacz", other.read_bytes()),
        ("crawl-3.wacz", bad), ("datapackage.json", b'{"profile": "multi-wacz-package", "resources": []}'),
    )  # fmt: skip

    done = _run(database, tmp_path / "home", [path])

    assert [one.error is None for one in done] == [True, True, False]
    assert [one.origin.partition("!")[2] for one in done] == [
        "crawl-1.wacz!archive/one.warc", "crawl-2.wacz!archive/two.warc", "crawl-3.wacz",
    ]  # fmt: skip
    assert [path for path in (tmp_path / "home").rglob("*.wacz")] == []
    with database.read() as session:
        assert set(session.scalars(select(Snapshot.url))) == {"http://example.org/one", "http://example.org/two"}


def test_a_file_whose_name_is_no_utf8_is_imported_and_stops_no_other(tmp_path: Path, database: Database) -> None:
    """Neither database keeps such a name; the file is kept under another, whatever was asked for."""
    odd = write(Path(os.fsdecode(os.fsencode(tmp_path) + b"/a-\xff.warc.gz")), record())
    plain = write(tmp_path / "b.warc.gz", record(url="http://example.org/b"))

    for state in ("imported", "again"):
        done = _run(database, tmp_path / "home", [odd, plain], in_place=True)

        assert [(one.state, one.error) for one in done] == [(state, None)] * 2
        assert done[0].origin == f"{tmp_path}/a-\\xff.warc.gz"
    with database.read() as session:
        first, second = session.scalars(select(WarcFile).order_by(WarcFile.id))
    assert (tmp_path / "home" / first.path).read_bytes() == odd.read_bytes()
    assert second.path == str(plain)


def test_members_that_are_not_read_are_listed(tmp_path: Path, database: Database) -> None:
    path = _wacz(tmp_path / "a.wacz", ("archive/a.warc", record()), ("archive/sub/b.warc.gz", b"x"), ("c.WARC", b"x"))

    done = _run(database, tmp_path / "home", [path])

    assert [(one.origin.partition("!")[2], one.error is None) for one in done] == [
        ("archive/a.warc", True), ("archive/sub/b.warc.gz", False), ("c.WARC", False),
    ]  # fmt: skip


def test_fixity_is_told_and_a_strict_import_refuses(tmp_path: Path, database: Database) -> None:
    good, wrong = record(), record(more=b"WARC-Payload-Digest: sha1:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\r\n")
    tampered = _wacz(tmp_path / "a.wacz", ("archive/a.warc", good), ("datapackage.json", _listing(a=b"other")))
    faithful = _wacz(tmp_path / "b.wacz", ("archive/b.warc", good), ("datapackage.json", _listing(b=good)))
    false = write(tmp_path / "c.warc.gz", wrong)
    paths = [tampered, false, faithful]

    refused = _run(database, tmp_path / "home", paths, strict=True)
    told = _run(database, tmp_path / "home", paths)

    assert [one.error is None for one in refused] == [False, False, True]
    assert "does not have the digest that the package says" in str(refused[0].error)
    assert "payload_digest" in str(refused[1].error)
    assert [one.error for one in told] == [None] * 3
    assert told[0].fixity == ["archive/a.warc does not have the digest that the package says"]
    assert [list(one.indexed.warnings) for one in told if one.indexed] == [[], ["digest_mismatch"], []]
    assert _counts(database)[:1] == (2,)


def test_a_false_signature_is_told_and_a_strict_import_refuses(tmp_path: Path, database: Database) -> None:
    member = ("archive/a.warc", record())
    key = ec.generate_private_key(ec.SECP256R1())
    good = signing.sign_anonymously(signing.digest_of(signing.listing(member)), key)
    false = good | {"signature": signing.sign_anonymously("sha256:0", key)["signature"]}
    paths = [
        signing.write_signed(tmp_path / "good.wacz", good, member),
        signing.write_signed(tmp_path / "false.wacz", false, member),
    ]

    refused = _run(database, tmp_path / "home", paths, strict=True)
    told = _run(database, tmp_path / "home", paths)

    assert [one.error is None for one in refused] == [True, False]
    assert "the signature does not hold" in str(refused[1].error)
    assert [one.signature.worth for one in told if one.signature] == ["valid", "invalid"]
    assert [len(one.fixity) for one in told] == [0, 1]
    assert told[0].notes[0].startswith("signed with the key sha256:")


def test_an_id_that_stands_for_two_bodies_is_told(tmp_path: Path, database: Database) -> None:
    same = [record(response(b"<p>one</p>")), record(response(b"<p>one</p>"), url="http://example.org/2")]
    (first,) = _run(database, tmp_path / "home", [write(tmp_path / "a.warc.gz", *same)])
    other = record(response(b"<p>two</p>"), url="http://example.org/3")
    (second,) = _run(database, tmp_path / "home", [write(tmp_path / "b.warc.gz", *same, other)])

    assert first.indexed is not None
    assert second.indexed is not None
    assert "record_id_reused" not in first.indexed.warnings
    assert second.indexed.warnings["record_id_reused"]["count"] == 1


def test_addresses_that_differ_in_a_byte_that_is_not_utf8_stay_two(tmp_path: Path, database: Database) -> None:
    pages = [record(response(b"<p>%d</p>" % number), url=f"http://example.org/?cat=%%{number}") for number in (8, 9)]
    raw = [page.replace(b"%%8", b"\xe8").replace(b"%%9", b"\xe9") for page in pages]

    (done,) = _run(database, tmp_path / "home", [write(tmp_path / "a.warc.gz", *raw)])

    assert done.indexed is not None
    assert done.indexed.warnings["address_bytes"]["count"] == 2
    with database.read() as session:
        assert sorted(session.scalars(select(Snapshot.url))) == [
            "http://example.org/?cat=%E8", "http://example.org/?cat=%E9",
        ]  # fmt: skip
        assert session.scalar(select(func.count(Snapshot.url_key.distinct()))) == 2


def test_what_was_noted_of_a_hidden_page_that_was_never_captured_is_in_no_package(
    database: Database, tmp_path: Path
) -> None:
    page, home = "http://example.org/hidden", tmp_path / "home"
    note = record(b"the hidden sentence", kind="metadata", url=page, more=b"Content-Type: text/plain\r\n")
    _run(database, home, [write(tmp_path / "a.warc.gz", record(response(b"<p>shown</p>")), note)])
    hide(database, SystemClock(), page, reason="asked for")
    (tmp_path / "made").mkdir()

    members = build(database, home, read_contents(database, 1), tmp_path / "made")

    held = gzip.decompress(b"".join(read_segments(members[0].segments)))
    assert b"shown" in held
    assert b"hidden" not in held


def test_a_copy_that_was_lost_is_brought_back_by_importing_the_same_file_again(
    database: Database, paths: list[Path], tmp_path: Path
) -> None:
    home, files = tmp_path / "home", paths[:3]
    first = _run(database, home, files)
    kept = {path: path.read_bytes() for path in (home / "warcs").rglob("*.warc*")}
    for path in kept:
        path.unlink()

    again = _run(database, home, files)

    assert {path: path.read_bytes() for path in (home / "warcs").rglob("*.warc*")} == kept
    assert [(one.state, one.how, one.warc_file_id) for one in again] == [
        ("again", "brought back", one.warc_file_id) for one in first
    ]
    assert [one.records for one in again] == [one.records for one in first]


def test_nothing_is_brought_back_to_storage_that_is_away(database: Database, paths: list[Path], tmp_path: Path) -> None:
    home, files = tmp_path / "home", paths[:1]
    _run(database, home, files)
    (home / "warcs").rename(tmp_path / "elsewhere")

    again = _run(database, home, files)

    assert [one.state for one in again] == ["failed"]
    assert list((home / "warcs").rglob("*.warc*")) == []


def test_imports_under_one_name_share_a_job_of_that_name(database: Database, tmp_path: Path) -> None:
    names = ("foreign-20240101", None, "foreign-20240101", "foreign-20250101", None)
    wishes = [ImportOptions(source="foreign", name=None, home=tmp_path, config={}, job_name=name) for name in names]

    begun = [begin_import(database, SystemClock(), wish)[0] for wish in wishes]

    with database.read() as session:
        jobs = [session.get_one(Job, session.get_one(Execution, one).job_id) for one in begun]
    assert [job.name for job in jobs] == list(names)
    assert len({job.id for job in jobs}) == 3


@pytest.mark.parametrize("kind", ["file", "package", "package in a package"])
def test_what_is_no_fault_of_a_file_ends_the_import_and_the_same_again_goes_on(
    database: Database, tmp_path: Path, paths: list[Path], monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    paths = paths[:2] if kind == "file" else paths[2:3]
    if kind == "package in a package":
        outer = tmp_path / "outer.wacz"
        with zipfile.ZipFile(outer, "w") as out:
            out.writestr("datapackage.json", "{}")
            out.write(paths[0], "archive/inner.wacz")
        paths = [outer]

    def away(_raw_db: object) -> None:
        raise Unavailable("the database did not answer")

    with monkeypatch.context() as patched:
        patched.setattr("holdfast.imports.importer.index_transaction", away)
        with pytest.raises(Unavailable, match="did not answer"):
            _run(database, tmp_path / "home", paths)
    done = _run(database, tmp_path / "home", paths)

    assert [one.error for one in done] == [None] * len(done)
    assert {one.state for one in done} == {"imported"}
    assert not list((tmp_path / "home").rglob("*.new*"))


def test_a_file_that_cannot_be_read_stops_no_other(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad, good = (write(tmp_path / name, record(url=f"http://{name}/")) for name in ("bad.warc.gz", "good.warc.gz"))

    def unless_bad(path: Path, pulse: Callable[[int], None]) -> Digests:
        if path == bad:
            raise Unavailable("cannot read bad.warc.gz: Input/output error")
        return digest_of(path, pulse)

    monkeypatch.setattr("holdfast.imports.importer.digest_of", unless_bad)
    done = _run(database, tmp_path / "home", [bad, good])

    assert [one.state for one in done] == ["failed", "imported"]
    assert "Input/output error" in (done[0].error or "")
