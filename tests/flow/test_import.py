"""`holdfast import`, `index`, `index-job`, `snapshot` and `warc`, as somebody at a terminal meets them."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import zipfile
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import zstandard
from sqlalchemy import select
from warcio.archiveiterator import ArchiveIterator

from holdfast.db.engine import Database
from holdfast.db.models import Execution, Job, Snapshot, WarcFile
from holdfast.warc.manifest import read_manifest
from holdfast.warc.record import ORDINALS
from holdfast.warc.verify import verify_file
from tests import forked, patience
from tests.archive import Shot, build_archive
from tests.flow.crawler import Crawler
from tests.interrupts import interrupt_and_go_on
from tests.unit.index.files import record, response, write

PAGES = [
    record(response(b"<title>%d</title><p>Page number %d says enough.</p>" % (n, n)), url=f"http://example.org/{n}")
    for n in range(5)
]


def _import(crawler: Crawler, *paths: Path, source: str = "foreign", **options: Any) -> dict[str, Any]:
    flags = [f"--{name.replace('_', '-')}" for name, value in options.items() if value is True]
    done = crawler.run("import", *map(str, paths), "--source", source, "--json", *flags)
    assert done.stdout, done.stderr
    return {"code": done.returncode, **json.loads(done.stdout)}


def _all(crawler: Crawler, model: Any) -> list[Any]:
    with closing(Database(f"sqlite:///{crawler.home / 'holdfast.db'}")) as database, database.read() as session:
        return list(session.scalars(select(model).order_by(model.id)))


def _zst(path: Path) -> Path:
    samples: list[bytes | bytearray | memoryview] = [one + bytes((n % 251,)) * 40 for n in range(60) for one in PAGES]
    dictionary = zstandard.train_dictionary(2048, samples)
    raw = zstandard.ZstdCompressor().compress(dictionary.as_bytes())
    packed = [zstandard.ZstdCompressor(dict_data=dictionary).compress(one) for one in PAGES]
    path.write_bytes(b"\x5d\x2a\x4d\x18" + len(raw).to_bytes(4, "little") + raw + b"".join(packed))
    return path


def test_a_folder_of_every_kind_is_imported_with_one_command(tmp_path: Path, crawler: Crawler) -> None:
    folder = tmp_path / "crawls"
    (folder / "deep" / ".tmp1" / "collections" / "crawl-1" / "archive").mkdir(parents=True)
    write(folder / "a.warc.gz", *PAGES)
    write(folder / "b.warc", *PAGES[:2], packed=False)
    _zst(folder / "c.warc.zst")
    write(folder / "deep" / ".tmp1" / "collections" / "crawl-1" / "archive" / "rec.warc.gz", PAGES[0])
    with zipfile.ZipFile(folder / "d.wacz", "w") as package:
        package.writestr("archive/data.warc.gz", gzip.compress(PAGES[3]) + gzip.compress(PAGES[4]))
    (folder / "empty.warc.gz").touch()
    (folder / "dangling.warc.gz").symlink_to(folder / "nowhere")
    os.link(folder / "a.warc.gz", folder / "zz-twin.warc.gz")
    (folder / "notes.txt").write_text("not an archive")

    done = _import(crawler, folder)

    assert done["code"] == 0
    assert [(Path(one["origin"]).name, one["indexed"]["snapshots"]) for one in done["files"]] == [
        ("a.warc.gz", 5), ("b.warc", 2), ("c.warc.zst", 5), ("data.warc.gz", 2), ("rec.warc.gz", 1),
    ]  # fmt: skip
    assert sorted(one["reason"] for one in done["passed_over"]) == [
        "dangling link", "empty", "the same file under another name",
    ]  # fmt: skip
    (execution,), (job,) = _all(crawler, Execution), _all(crawler, Job)
    assert (execution.state, job.kind) == ("completed", "import")
    files = _all(crawler, WarcFile)
    assert [*read_manifest(Path(execution.output_dir))] == [file.id for file in files]
    for file in files:
        assert (crawler.home / file.path).is_file()
        assert verify_file(crawler.home / file.path).problems == []
    assert {one.backend for one in _all(crawler, Snapshot)} == {"import"}


def test_the_same_file_again_from_anywhere_is_the_same_row(tmp_path: Path, crawler: Crawler) -> None:
    path = write(tmp_path / "a.warc.gz", *PAGES)
    first = _import(crawler, path)
    copy = tmp_path / "copy.warc.gz"
    copy.write_bytes(path.read_bytes())
    ids = [(one.id, one.url) for one in _all(crawler, Snapshot)]

    again = _import(crawler, copy, path)

    assert (first["code"], again["code"]) == (0, 0)
    assert [(one["state"], one["file"], one["indexed"]["changed"]) for one in again["files"]] == [("again", 1, 0)] * 2
    assert [(one.id, one.url) for one in _all(crawler, Snapshot)] == ids
    assert len(_all(crawler, Execution)) == 1


def test_files_can_be_used_where_they_lie(tmp_path: Path, crawler: Crawler) -> None:
    path = write(tmp_path / "a.warc.gz", *PAGES)

    done = _import(crawler, path, in_place=True)

    assert done["files"][0]["how"] == "in place"
    assert _all(crawler, WarcFile)[0].path == str(path.resolve())
    shown = crawler.run("snapshot", "cat", str(ORDINALS), "--raw")
    assert "Page number 0" in shown.stdout


def test_a_bad_file_is_told_by_name_and_stops_no_other(tmp_path: Path, crawler: Crawler) -> None:
    good = write(tmp_path / "good.warc.gz", *PAGES)
    cut = tmp_path / "cut.warc.gz"
    cut.write_bytes(good.read_bytes()[:-30])
    page = tmp_path / "page.warc"
    page.write_text("<html>saved by hand</html>")

    done = crawler.run("import", str(page), str(cut), str(tmp_path / "none"), str(good), "--source", "mixed")

    assert done.returncode == 1
    assert "page.warc is not a WARC, ARC or WACZ file: it begins with “<html>" in done.stderr
    assert "there is no such file or folder" in done.stderr
    assert "truncated: the file ends inside a gzip member" in done.stderr
    # The last page is there in part.
    assert "imported  cut.warc.gz: copied, 5 records, 5 snapshots" in done.stdout
    assert "2 files imported, 2 failed, 10 snapshots" in done.stdout


def test_import_counts_known_files_apart_and_names_another_source(tmp_path: Path, crawler: Crawler) -> None:
    old = write(tmp_path / "old.warc.gz", PAGES[0])
    crawler.run("import", str(old), "--source", "pubold")
    new = write(tmp_path / "new.warc.gz", PAGES[1])

    again = crawler.run("import", str(old), str(new), "--source", "pubold")
    elsewhere = crawler.run("import", str(old), "--source", "secret")

    assert "1 file imported, 1 known, 2 snapshots" in again.stdout
    assert (again.returncode, elsewhere.returncode) == (0, 1)
    assert "holdfast source edit pubold --visibility members" in elsewhere.stderr
    assert "0 files imported, 1 failed, 0 snapshots" in elsewhere.stdout


def test_a_source_needs_a_code_that_fits(tmp_path: Path, crawler: Crawler) -> None:
    path = write(tmp_path / "a.warc.gz", PAGES[0])

    done = crawler.run("import", str(path), "--source", "with space")

    assert done.returncode == 1
    assert "is no code of a source" in done.stderr
    assert "Traceback" not in done.stderr


def test_an_import_that_is_interrupted_goes_on_with_the_same_command(tmp_path: Path, crawler: Crawler) -> None:
    paths = [write(tmp_path / f"{n}.warc.gz", PAGES[n]) for n in range(3)]
    gate = tmp_path / "gate"
    gate.mkdir()
    (gate / "import_placed.1").touch()
    command = crawler.command("import", *map(str, paths), "--source", "slow", "--json")
    # Stops itself in front of its first row; then it is asked to end, and let go on.
    spec = f"import_placed:stop:1:{gate}"
    with subprocess.Popen(
        command, env={**crawler.variables, "HOLDFAST_FAILPOINT": spec}, stdout=subprocess.PIPE, text=True
    ) as process:
        os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)
        interrupt_and_go_on(process.pid)
        out, _ = process.communicate(timeout=patience.deadline(60))
    assert process.returncode == 130
    assert json.loads(out)["finished"] is False
    assert len(_all(crawler, Snapshot)) < 3

    done = _import(crawler, *paths, source="slow")

    assert done["code"] == 0
    assert sorted(one.url for one in _all(crawler, Snapshot)) == [f"http://example.org/{n}" for n in range(3)]
    assert len(_all(crawler, WarcFile)) == 3


def test_index_reads_what_is_sealed_and_follows(crawler: Crawler) -> None:
    build_archive(crawler.home, [Shot(url="https://example.org/1")], index=False).database.close()
    with forked.Popen(
        crawler.command("index", "--follow"), env=crawler.variables, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert "example-00001.warc.gz: 3 records, 1 snapshot" in process.stdout.readline()
        build_archive(crawler.home, [Shot(url="https://example.org/2", execution=2)], index=False).database.close()
        assert "example-00002.warc.gz: 3 records" in process.stdout.readline()
        process.send_signal(signal.SIGTERM)
        assert "2 of 2 files indexed, 2 snapshots" in process.communicate(timeout=patience.deadline(30))[0]
    assert process.returncode == 0

    status = json.loads(crawler.run("index", "--status", "--json").stdout)["runs"]
    assert [(run["phase"], run["recordsProcessed"], run["error"]) for run in status] == [("finished", 3, None)] * 2
    assert status[0]["bytesProcessed"] == status[0]["bytesTotal"] > 0


def test_an_execution_is_indexed_again_with_what_a_tool_left_in_its_folder(crawler: Crawler) -> None:
    build_archive(crawler.home, [Shot(url="https://example.org/1")]).database.close()
    folder = crawler.home / "output"
    (folder / ".tmpabc" / "collections" / "crawl-1" / "archive").mkdir(parents=True)
    write(folder / ".tmpabc" / "collections" / "crawl-1" / "archive" / "rec-1.warc.gz", PAGES[0])
    with closing(crawler.raw_db()) as raw_db, raw_db.write() as tx:
        tx.execute("UPDATE executions SET output_dir = ?", (str(folder),))

    first, second = (crawler.run("index-job", "--id", "1", "--json") for _ in range(2))

    assert (first.returncode, second.returncode) == (0, 0), first.stderr
    one, two = json.loads(first.stdout), json.loads(second.stdout)
    assert (one["snapshots"], one["taken_in"], two["snapshots"], two["taken_in"]) == (2, 1, 2, 0)
    assert (folder / "archive" / "rec-1.warc.gz").is_file()
    assert {file.execution_id for file in _all(crawler, WarcFile)} == {1}


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ("UPDATE executions SET state = 'running'", "execution 1 is running"),
        ("UPDATE warc_files SET state = 'discarded'", "the folder of execution 1 is gone"),
        ("UPDATE jobs SET kind = kind", "there is no execution 7"),
    ],
)
def test_an_execution_that_cannot_be_indexed_says_why(crawler: Crawler, change: str, told: str) -> None:
    build_archive(crawler.home, [Shot(url="https://example.org/1")], index=False).database.close()
    with closing(crawler.raw_db()) as raw_db, raw_db.write() as tx:
        tx.execute(change)

    done = crawler.run("index-job", "--execution", "7" if "7" in told else "1")

    assert done.returncode == 1
    assert told in done.stderr


def test_a_snapshot_is_shown_printed_taken_out_hidden_and_shown_again(tmp_path: Path, crawler: Crawler) -> None:
    body = gzip.compress(b"<title>T</title><p>Words of the page, enough of them to be read.</p>")
    shot = Shot(url="https://example.org/1", body=body, headers={"Content-Encoding": "gzip"})
    build_archive(crawler.home, [shot]).database.close()
    one = str(ORDINALS + 1)

    shown = json.loads(crawler.run("snapshot", "show", one, "--json").stdout)
    assert (shown["url"], shown["status"], shown["document"]["title"]) == (shot.url, 200, "T")
    assert crawler.run("snapshot", "cat", one).stdout.startswith("<title>T</title>")
    assert crawler.run("snapshot", "cat", one, "--text").stdout == "Words of the page, enough of them to be read.\n"
    assert crawler.run("snapshot", "cat", one, "--headers").stdout.startswith(
        "HTTP/1.1 200 OK\nContent-Type: text/html"
    )
    for name in ("one.warc", "one.warc.gz"):
        assert crawler.run("warc", "extract", one, "--output", str(tmp_path / name)).returncode == 0
        with (tmp_path / name).open("rb") as stream:
            (found,) = [(taken.rec_type, taken.content_stream().read()) for taken in ArchiveIterator(stream)]
        assert found == ("response", gzip.decompress(body))
    done = crawler.run("warc", "extract", f"{one:0<19}00000")
    assert (done.returncode, "there is nothing under the number" in done.stderr) == (1, True)
    listed = json.loads(crawler.run("warc", "list", "--json").stdout)["files"]
    assert [(file["source"], file["index"], file["records"]) for file in listed] == [("example", "indexed", 3)]

    assert crawler.run("snapshot", "hide", shot.url, "--reason", "asked").returncode == 0
    for command in (("snapshot", "show", one), ("snapshot", "cat", one), ("warc", "extract", one)):
        done = crawler.run(*command)
        assert (done.returncode, "there is no snapshot" in done.stderr) == (1, True)
    assert crawler.run("snapshot", "unhide", shot.url).returncode == 0
    assert crawler.run("snapshot", "show", one).returncode == 0
