"""Archives that nobody here wrote become snapshots: the records that other readers find, and a report of each fault."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session, aliased
from warcio.archiveiterator import ArchiveIterator

from holdfast.db.engine import Database
from holdfast.db.models import Snapshot, WarcFile
from holdfast.index.queries import open_stored
from tests import needs
from tests.flow.crawler import Crawler
from tests.foreign import index_with_cdxj_indexer, write_with_pywb, write_with_warcio, write_with_wget

REFUSED = {
    "pywb/invalid_example_1.wacz": "holds no WARC file below archive/",
    "warcio/example-wrong-chunks.warc.gz": "holds no record that can be read: at 0: content_length",
}
# Where others read on into a record that is cut, or give up: what we keep, and what we say.
OWN_COUNT = {
    "ipwb/redirect.warc": (Counter(warcinfo=1, response=1), "truncated"),
    "warcio/example-bad-non-chunked.warc.gz": (Counter(warcinfo=2, response=1, request=2, revisit=1), None),
}
DAMAGED = {
    "ipwb/HTTP204.warc": "record_header",
    "ipwb/redirect.warc": "truncated",
    "pywb/example.warc": "record_header",
    "warcio/example-trunc.warc": "record_header",
}
CONVERTED = {"pywb/example.arc.gz": "ARC", "warcio/example-bad-non-chunked.warc.gz": "one member per record"}


class Imported:
    """One import of the whole folder, and what came of each file by its name there."""

    def __init__(self, crawler: Crawler, folder: Path) -> None:
        self.crawler, self.folder = crawler, folder
        done = crawler.run("import", str(folder), "--source", "foreign", "--json")
        self.exit_code = done.returncode
        self.files: dict[str, dict[str, Any]] = {
            str(Path(one["origin"]).resolve().relative_to(folder.resolve())): one
            for one in json.loads(done.stdout)["files"]
        }

    @contextmanager
    def session(self) -> Iterator[Session]:
        """Open the database that it went to."""
        address = f"sqlite:///{self.crawler.home / 'holdfast.db'}"
        with closing(Database(address)) as database, database.read() as session:
            yield session


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Imported:
    """All of them, imported once for the tests below."""
    return Imported(Crawler(tmp_path_factory.mktemp("foreign") / "home"), needs.SAMPLES["archives"])


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Imported:
    """What warcio, wget and pywb write now, imported once for their tests: every checkout has these."""
    folder = tmp_path_factory.mktemp("written")
    write_with_warcio(folder / "warcio.warc.gz")
    write_with_warcio(folder / "warcio-plain.warc", gzip=False, version="1.1")
    write_with_wget(folder)
    write_with_pywb(folder)
    return Imported(Crawler(tmp_path_factory.mktemp("foreign") / "home"), folder)


def _counts(stream: Any) -> Counter[str]:
    return Counter(record.rec_type for record in ArchiveIterator(stream, arc2warc=True))


def _expected(folder: Path) -> Iterator[tuple[str, Counter[str]]]:
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if name in REFUSED or name in OWN_COUNT:
            continue
        if path.name.endswith((".warc", ".warc.gz", ".arc.gz")):
            with path.open("rb") as stream:
                yield name, _counts(stream)
        elif path.suffix == ".wacz":
            with ZipFile(path) as package:
                for member in package.namelist():
                    if member.startswith("archive/") and member.endswith((".warc", ".warc.gz")):
                        with package.open(member) as stream:
                            yield f"{name}!{member}", _counts(stream)


@pytest.mark.samples("archives")
def test_every_archive_has_the_records_that_warcio_finds(imported: Imported) -> None:
    assert _compare_counts(imported) >= 64


def test_what_others_write_now_has_the_records_that_warcio_finds(written: Imported) -> None:
    assert _compare_counts(written) == 4
    assert written.exit_code == 0
    assert all(one["damage"] == [] for one in written.files.values())


def _compare_counts(imported: Imported) -> int:
    checked = 0
    for name, counts in _expected(imported.folder):
        kinds = {kind: count for kind, count in imported.files[name]["indexed"]["kinds"].items() if count}
        kinds.pop("other_scheme", None)
        assert kinds == dict(counts), name
        checked += 1
    return checked


@pytest.mark.samples("archives")
@pytest.mark.parametrize("name", sorted(OWN_COUNT))
def test_what_others_cannot_read_gives_its_whole_records(imported: Imported, name: str) -> None:
    counts, kind = OWN_COUNT[name]
    found = imported.files[name]

    assert {k: n for k, n in found["indexed"]["kinds"].items() if k != "other_scheme"} == dict(counts)
    assert [one["kind"] for one in found["damage"]] == ([kind] if kind else [])


@pytest.mark.samples("archives")
def test_the_keys_places_and_moments_are_those_of_the_cdxj_beside_the_archives(imported: Imported) -> None:
    stored, compared = _places(imported), 0
    for listing in sorted((imported.folder / "pywb").glob("*.cdxj")):
        for filename, places in _listed(listing.read_text().splitlines()).items():
            assert (stored.get(f"pywb/{filename}") or stored[filename]) == places, listing.name
            compared += len(places)
    assert compared == 191


def test_the_keys_places_and_moments_are_those_that_the_indexer_of_pywb_finds(written: Imported) -> None:
    listed = _listed(index_with_cdxj_indexer(*sorted(written.folder.glob("*.warc*"))))

    # What wget says of itself has addresses of another scheme, which are no captures.
    listed = {name: {row for row in rows if not row[0].startswith("org,gnu)")} for name, rows in listed.items()}
    assert _places(written) == listed
    assert sum(map(len, listed.values())) >= 20


def _listed(lines: list[str]) -> dict[str, set[tuple[str, str, int]]]:
    wanted: dict[str, set[tuple[str, str, int]]] = {}
    for line in lines:
        key, moment, rest = line.split(" ", 2)
        facts = json.loads(rest)
        wanted.setdefault(facts["filename"], set()).add((key, moment, int(facts["offset"])))
    return wanted


def _places(imported: Imported) -> dict[str, set[tuple[str, str, int]]]:
    with imported.session() as session:
        rows = session.execute(
            select(Snapshot.url_key, Snapshot.captured_at, WarcFile.origin, Snapshot.warc_offset).join(
                WarcFile, WarcFile.id == Snapshot.warc_file_id
            )
        ).all()
    stored: dict[str, set[tuple[str, str, int]]] = {}
    for key, captured_at, origin, offset in rows:
        moment, path = f"{captured_at:%Y%m%d%H%M%S}", Path(origin or "")
        stored.setdefault(path.name, set()).add((key, moment, offset))
        if path.parent.name == "pywb":
            stored.setdefault(f"pywb/{path.name}", set()).add((key, moment, offset))
    return stored


@pytest.mark.samples("archives")
@pytest.mark.parametrize("name", sorted(REFUSED))
def test_what_is_no_archive_is_refused_in_words_and_stops_no_other(imported: Imported, name: str) -> None:
    found = next(one for origin, one in imported.files.items() if origin == name)

    assert REFUSED[name] in found["error"]
    assert imported.exit_code == 1
    assert sum(one["error"] is not None for one in imported.files.values()) == len(REFUSED)


@pytest.mark.samples("archives")
@pytest.mark.parametrize("name", sorted(DAMAGED))
def test_damage_is_told_with_its_place(imported: Imported, name: str) -> None:
    damage = imported.files[name]["damage"]

    assert damage[0]["kind"] == DAMAGED[name]
    assert damage[0]["offset"] > 0
    assert damage[0]["detail"]


@pytest.mark.samples("archives")
@pytest.mark.parametrize("name", sorted(CONVERTED))
def test_what_cannot_be_sought_is_written_anew_and_said_so(imported: Imported, name: str) -> None:
    found = imported.files[name]

    assert CONVERTED[name] in found["notes"][0]
    assert (imported.folder / name).is_file()


@pytest.mark.samples("archives")
def test_every_stored_record_can_be_opened_where_its_row_points(imported: Imported) -> None:
    assert _open_all(imported) > 500


def test_every_stored_record_of_what_others_write_now_can_be_opened(written: Imported) -> None:
    assert _open_all(written) >= 20


def _open_all(imported: Imported) -> int:
    opened = 0
    with imported.session() as session:
        for snapshot in session.scalars(select(Snapshot).order_by(Snapshot.id)):
            with open_stored(session, imported.crawler.home, snapshot) as stored:
                content = stored.content(10_000_000)
            assert stored.record.url == snapshot.url
            assert snapshot.body_hash in (None, sha256(content).digest()), snapshot.url
            opened += 1
    return opened


@pytest.mark.samples("archives")
def test_revisits_of_other_writers_point_to_their_originals(imported: Imported) -> None:
    # Its original is not among the samples; every other one is.
    lost, found = _originals(imported)
    assert lost == {"20141124-heritrix-server-not-modified.warc.gz"}
    assert found > 190


def test_revisits_that_others_write_now_point_to_their_originals(written: Imported) -> None:
    assert _originals(written) == (set(), 2)


def _originals(imported: Imported) -> tuple[set[str], int]:
    """Return the files of revisits without an original, and how many revisits there are."""
    original = aliased(Snapshot)
    with imported.session() as session:
        rows = session.execute(
            select(WarcFile.origin, Snapshot, original)
            .join(WarcFile, WarcFile.id == Snapshot.warc_file_id)
            .outerjoin(original, original.id == Snapshot.original_id)
            .where(Snapshot.record_type == "revisit")
        ).all()
    lost = {Path(origin or "").name for origin, _, found in rows if found is None}
    for _, revisit, found in rows:
        if found is not None:
            assert (revisit.document_id, revisit.body_hash) == (found.document_id, found.body_hash)
            assert found.body_hash is not None
    return lost, len(rows)


@pytest.mark.samples("archives")
def test_importing_all_of_it_again_changes_no_id(imported: Imported) -> None:
    again = (imported.folder / "pywb" / "iana.warc.gz", imported.folder / "browsertrix")
    _import_again(imported, *again)


def test_importing_what_others_write_now_again_changes_no_id(written: Imported) -> None:
    _import_again(written, written.folder)


def _import_again(imported: Imported, *paths: Path) -> None:
    def ids() -> list[tuple[Any, ...]]:
        with imported.session() as session:
            rows = session.execute(select(Snapshot.id, Snapshot.url_hash, Snapshot.body_hash, Snapshot.original_id))
            return sorted(tuple(row) for row in rows)

    before = ids()

    done = imported.crawler.run("import", *map(str, paths), "--source", "foreign", "--json")

    assert {one["state"] for one in json.loads(done.stdout)["files"]} == {"again"}
    assert {one["indexed"]["changed"] for one in json.loads(done.stdout)["files"]} == {0}
    assert ids() == before


def test_what_wget_wrote_is_imported(tmp_path: Path, crawler: Crawler) -> None:
    write_with_wget(tmp_path, "out")

    done = json.loads(crawler.run("import", str(tmp_path / "out.warc.gz"), "--source", "wget", "--json").stdout)

    (file,) = done["files"]
    with (tmp_path / "out.warc.gz").open("rb") as stream:
        counts = _counts(stream)
    kinds = {kind: count for kind, count in file["indexed"]["kinds"].items() if kind != "other_scheme"}
    assert kinds == dict(counts)
    assert file["indexed"]["warnings"] == {}
    assert file["indexed"]["snapshots"] == counts["response"] >= 3
    with closing(Database(f"sqlite:///{crawler.home / 'holdfast.db'}")) as database, database.read() as session:
        pages = session.scalars(select(Snapshot).where(Snapshot.is_page, Snapshot.status == 200)).all()
    assert {Path(page.url).name for page in pages} >= {"two.html"}
    assert all(page.problems is None for page in pages)
    assert all(datetime(2020, 1, 1, tzinfo=UTC) < page.captured_at for page in pages)
