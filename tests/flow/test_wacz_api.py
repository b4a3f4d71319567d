"""A crawl as one WACZ file over HTTP: any part of it, the same bytes every time, and nothing that was withdrawn."""

from __future__ import annotations

import fcntl
import gzip
import io
import json
import shutil
import subprocess
import zipfile
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from random import Random

import pytest
from sqlalchemy import select
from starlette.types import Message, Receive, Scope, Send

from holdfast.db import connect
from holdfast.db.models import Snapshot, WarcFile, Withdrawal
from holdfast.exports.package_cache import PackageCache
from holdfast.urls import page_key
from holdfast.wiring.archive import Archive
from tests import needs, patience
from tests.archive import BEGIN, Shot, build_archive, ensure_execution
from tests.client import Client, asking
from tests.flow.crawler import Crawler
from tests.flow.wacz_stage import VALIDATE, needs_peers, shots

WACZ = "/api/executions/2/wacz"
SECRET = "https://example.org/secret"


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Archive]:
    """Two crawls; the second has revisits whose originals are in the first."""
    built = build_archive(tmp_path_factory.mktemp("wacz") / "home", shots())
    yield built
    built.database.close()


@pytest.fixture(scope="module")
def client(archive: Archive) -> Iterator[Client]:
    """Ask that archive."""
    with asking(archive) as asked:
        yield asked


@pytest.fixture(scope="module")
def whole(client: Client) -> bytes:
    """The second crawl's package."""
    return client.get(WACZ).content


def opened(content: bytes) -> zipfile.ZipFile:
    """Return a package for reading."""
    return zipfile.ZipFile(io.BytesIO(content))


def test_the_whole_package_has_its_headers(client: Client) -> None:
    answer = client.get(WACZ)

    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/wacz"
    assert answer.headers["content-length"] == str(len(answer.content))
    assert answer.headers["accept-ranges"] == "bytes"
    assert answer.headers["content-disposition"] == 'attachment; filename="example-2.wacz"'
    assert "access-control-allow-origin" not in answer.headers
    assert client.get("/api/executions/2.wacz").content == answer.content


def test_every_member_is_stored_whole_and_listed_with_its_digest(whole: bytes, archive: Archive) -> None:
    with opened(whole) as package:
        assert package.testzip() is None
        names = package.namelist()
        assert names == [
            "archive/example-00002.warc.gz", "archive/originals.warc.gz", "indexes/index.cdx.gz", "indexes/index.idx",
            "pages/pages.jsonl", "datapackage.json", "datapackage-digest.json",
        ]  # fmt: skip
        assert {entry.compress_type for entry in package.infolist()} == {zipfile.ZIP_STORED}
        described = json.loads(package.read("datapackage.json"))
        listed = {entry["path"]: entry for entry in described["resources"]}
        assert set(listed) == set(names) - {"datapackage.json", "datapackage-digest.json"}
        for path, entry in listed.items():
            content = package.read(path)
            assert (entry["bytes"], entry["hash"]) == (len(content), f"sha256:{sha256(content).hexdigest()}")
        digest = json.loads(package.read("datapackage-digest.json"))
        assert digest["hash"] == f"sha256:{sha256(package.read('datapackage.json')).hexdigest()}"
        stored = archive.home / "warcs/example/execution-2/example-00002.warc.gz"
        assert package.read("archive/example-00002.warc.gz") == stored.read_bytes()
    assert (described["profile"], described["wacz_version"]) == ("data-package", "1.1.1")
    assert described["mainPageUrl"] == "https://example.org/"


def test_the_index_points_at_every_record(whole: bytes) -> None:
    with opened(whole) as package:
        lines = gzip.decompress(package.read("indexes/index.cdx.gz")).splitlines()
        assert lines == sorted(lines)
        for line in lines:
            fields = json.loads(line.split(b" ", 2)[2])
            start, length = int(fields["offset"]), int(fields["length"])
            record = gzip.decompress(package.read(f"archive/{fields['filename']}")[start : start + length])
            assert f"WARC-Target-URI: {fields['url']}\r\n".encode() in record
            assert (b"WARC-Type: revisit" in record) == (fields["mime"] == "warc/revisit")
        meta, *blocks = package.read("indexes/index.idx").splitlines()
        assert json.loads(meta.split(b" ", 2)[2]) == {"format": "cdxj-gzip-1.0", "filename": "index.cdx.gz"}
        assert [block.partition(b" {")[0] for block in blocks] == [lines[0].partition(b" {")[0]]


def test_revisits_bring_their_originals_along(whole: bytes) -> None:
    with opened(whole) as package:
        lines = gzip.decompress(package.read("indexes/index.cdx.gz")).decode().splitlines()
    files = {(line.split(" ")[0], line.split(" ")[1]): json.loads(line.split(" ", 2)[2])["filename"] for line in lines}

    assert files["org,example)/a", "20240301120000"] == "originals.warc.gz"
    assert files["org,example)/a", "20240304120000"] == "example-00002.warc.gz"


def test_pages_are_listed_once_with_their_titles(whole: bytes) -> None:
    with opened(whole) as package:
        header, *pages = [json.loads(line) for line in package.read("pages/pages.jsonl").splitlines()]

    assert header["format"] == "json-pages-1.0"
    assert {(page["url"], page.get("title"), page["ts"]) for page in pages} == {
        ("https://example.org/", "Home", "2024-03-04T12:00:00.000Z"),
        ("https://example.org/a", "Page a", "2024-03-04T12:00:00.000Z"),
        ("https://example.org/b", "Page b", "2024-03-04T12:00:00.000Z"),
    }


@pytest.mark.parametrize(
    ("asked", "start", "end"),
    [
        ("bytes=0-0", 0, 1), ("bytes=10-99", 10, 100), ("bytes=4000-", 4000, None), ("bytes=-22", -22, None),
        ("bytes=5-999999999", 5, None), ("bytes=-999999999", 0, None),
    ],
)  # fmt: skip
def test_any_part_can_be_asked_for(client: Client, whole: bytes, asked: str, start: int, end: int | None) -> None:
    answer = client.get(WACZ, headers={"Range": asked})

    assert answer.status_code == 206
    assert answer.content == whole[start:end]
    first = start % len(whole)
    assert answer.headers["content-range"] == f"bytes {first}-{first + len(answer.content) - 1}/{len(whole)}"
    assert answer.headers["content-length"] == str(len(answer.content))


def test_a_broken_download_goes_on(client: Client, whole: bytes) -> None:
    etag = client.request("HEAD", WACZ).headers["etag"]
    got = b""
    while len(got) < len(whole):
        asked = {"Range": f"bytes={len(got)}-{len(got) + 699}", "If-Range": etag}
        answer = client.get(WACZ, headers=asked)
        assert answer.status_code == 206
        got += answer.content

    assert got == whole


@pytest.mark.parametrize(
    "asked", ["bytes=5-1", "bytes=a-b", "lines=1-2", "bytes=0-1,5-6", "bytes=-", "bytes=99999999999999999999-"]
)
def test_a_range_that_says_nothing_gives_all(client: Client, whole: bytes, asked: str) -> None:
    answer = client.get(WACZ, headers={"Range": asked})

    assert (answer.status_code, answer.content) == (200, whole)


def test_conditions(client: Client, whole: bytes) -> None:
    etag = client.get(WACZ).headers["etag"]

    assert client.get(WACZ, headers={"If-None-Match": f'"x", {etag}'}).status_code == 304
    assert client.get(WACZ, headers={"If-Range": '"other"', "Range": "bytes=0-1"}).content == whole
    behind = client.get(WACZ, headers={"Range": f"bytes={len(whole)}-"})
    assert (behind.status_code, behind.headers["content-range"]) == (416, f"bytes */{len(whole)}")
    head = client.request("HEAD", WACZ, headers={"Range": "bytes=0-1"})
    assert (head.status_code, head.content, head.headers["content-length"]) == (200, b"", str(len(whole)))


def test_pages_of_a_listed_origin_may_ask_for_parts(archive: Archive) -> None:
    asked = {
        "Origin": "https://replay.example", "Access-Control-Request-Method": "GET",
        "Access-Control-Request-Headers": "range",
    }  # fmt: skip
    api = archive.settings.api.model_copy(update={"cors_origins": ("https://replay.example",)})
    listed = replace(archive, settings=archive.settings.model_copy(update={"api": api}))
    with asking(listed) as client:
        _ask_for_parts(client, asked)


def _ask_for_parts(client: Client, asked: dict[str, str]) -> None:
    answer = client.request("OPTIONS", WACZ, headers=asked)

    assert answer.status_code == 204
    assert "range" in answer.headers["access-control-allow-headers"]
    shown = client.get(WACZ, headers={"Origin": "https://replay.example", "Range": "bytes=0-1"}).headers
    assert shown["access-control-allow-origin"] == "https://replay.example"
    assert {"Accept-Ranges", "Content-Range", "ETag"} <= set(shown["access-control-expose-headers"].split(", "))


def test_the_bytes_are_the_same_whoever_makes_them(client: Client, archive: Archive, whole: bytes) -> None:
    etag = client.get(WACZ).headers["etag"]
    shutil.rmtree(archive.home / "cache")

    again = PackageCache(archive.database, archive.home, most_bytes=1 << 30).package(2)

    assert b"".join(again.read()) == whole
    assert f'"{again.etag}"' == etag


def test_what_is_not_there_is_told(client: Client, archive: Archive) -> None:
    assert client.get("/api/executions/99/wacz").status_code == 404
    assert client.get("/api/executions/x/wacz").status_code == 422
    with closing(connect(archive.settings.database)) as raw_db, raw_db.write() as tx:
        empty = ensure_execution(tx, "example", "empty", now=0)

    answer = client.get(f"/api/executions/{empty}/wacz")

    assert (answer.status_code, answer.json()["code"]) == (409, "nothing_sealed")


def test_only_one_at_a_time_puts_a_package_together(archive: Archive) -> None:
    folder = archive.home / "cache" / "wacz" / "1"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with asking(archive) as client:
        with (folder / ".lock").open("w") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            busy = client.get("/api/executions/1/wacz")
        done = client.get("/api/executions/1/wacz")

    assert (busy.status_code, busy.json()["code"], busy.headers["retry-after"]) == (503, "package_busy", "5")
    assert done.status_code == 200


def test_package_that_is_there_is_read_while_others_are_built(archive: Archive) -> None:
    with asking(archive) as client:
        whole = client.get("/api/executions/1/wacz")
        # As many packages are being put together as this server makes at once.
        client.hold_exports()
        part = client.get("/api/executions/1/wacz", headers={"Range": "bytes=0-99"})

    assert (part.status_code, part.content) == (206, whole.content[:100])


def test_cached_package_stops_being_sent_after_a_takedown(tmp_path: Path) -> None:
    body = Random(1).randbytes(6 * 1024 * 1024)
    archive = build_archive(tmp_path / "home", [Shot(url=SECRET, body=body, media_type="image/png")])
    with asking(archive) as client:
        whole = client.get("/api/executions/1/wacz")
        app, sent = client.app, 0

        async def taking_down(scope: Scope, receive: Receive, send: Send) -> None:
            async def hear(message: Message) -> None:
                nonlocal sent
                await send({**message, "more_body": True})
                if not sent and message.get("body"):
                    with archive.database.write() as session:
                        session.add(Withdrawal(url_key=page_key(SECRET), subject="x", reason="x", actor="x",
                                               created_at=BEGIN))  # fmt: skip
                sent += len(message.get("body", b""))

            await app(scope, receive, hear)
            await send({"type": "http.response.body"})  # a server would close the connection

        client.app = taking_down
        client.get("/api/executions/1/wacz")
    archive.database.close()

    assert whole.status_code == 200
    assert 0 < sent < len(whole.content) // 2


def test_a_file_that_changed_is_told_before_a_byte_is_sent(tmp_path: Path) -> None:
    archive = build_archive(tmp_path / "home", [Shot(url="https://example.org/")])
    (path,) = archive.home.rglob("*.warc.gz")
    path.write_bytes(path.read_bytes()[:-1])
    with asking(archive) as client:
        answer = client.get("/api/executions/1/wacz")

    assert (answer.status_code, answer.json()["code"]) == (409, "member_changed")
    archive.database.close()


@pytest.mark.parametrize("by_page", [False, True], ids=["snapshot", "page"])
def test_what_is_withdrawn_is_blank_at_once_and_the_rest_stays(tmp_path: Path, by_page: bool) -> None:
    hidden = Shot(url=SECRET, body="<p>the hidden sentence</p>" + "x" * 3000)
    archive = build_archive(tmp_path / "home", [*shots()[:2], hidden, *(replace(s, execution=1) for s in shots()[2:4])])
    with asking(archive) as client:
        before = client.get("/api/executions/1/wacz")
        _withdraw(archive, by_page=by_page)
        after = client.get("/api/executions/1/wacz")

    assert before.headers["etag"] != after.headers["etag"]
    assert (_holds(before.content, b"the hidden sentence"), _holds(before.content, SECRET.encode())) == (True, True)
    assert (_holds(after.content, b"the hidden sentence"), _holds(after.content, SECRET.encode())) == (False, False)
    with opened(before.content) as old, opened(after.content) as new:
        assert len(old.read(old.namelist()[0])) == len(new.read(new.namelist()[0])), "no other record moved"
        assert gzip.decompress(new.read("indexes/index.cdx.gz")).count(b"\n") == 4
    archive.database.close()
    needs_peers()
    (tmp_path / "after.wacz").write_bytes(after.content)
    assert by_page or _validated(tmp_path / "after.wacz")
    with opened(after.content) as new:
        new_warc = tmp_path / "after.warc.gz"
        new_warc.write_bytes(new.read(new.namelist()[0]))
    warcio = VALIDATE.parent / "warcio"
    checked = subprocess.run([warcio, "check", new_warc], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout


def test_a_file_goes_into_a_package_when_it_is_indexed(tmp_path: Path) -> None:
    archive = build_archive(tmp_path / "home", [Shot(url=SECRET)])
    with archive.database.write() as session:
        (file,) = session.scalars(select(WarcFile))
        file.index_state = "pending"
    with asking(archive) as client:
        answer = client.get("/api/executions/1/wacz")
    archive.database.close()

    assert (answer.status_code, answer.json()["code"]) == (409, "nothing_sealed")


def _withdraw(archive: Archive, *, by_page: bool) -> None:
    with archive.database.write() as session:
        found = session.scalars(select(Snapshot).where(Snapshot.url == SECRET)).one()
        what = {"url_key": found.url_key} if by_page else {"snapshot_id": found.id}
        session.add(Withdrawal(**what, subject=SECRET, reason="asked", actor="t", created_at=archive.clock.now()))


def _holds(content: bytes, words: bytes) -> bool:
    """Return whether a package says these words anywhere, compressed or not."""
    with opened(content) as package:
        for name in package.namelist():
            raw = package.read(name)
            if words in raw or (name.endswith(".gz") and words in gzip.decompress(raw)):
                return True
    return False


def test_wacz_validate_passes(whole: bytes, tmp_path: Path) -> None:
    needs_peers()
    path = tmp_path / "x.wacz"
    path.write_bytes(whole)

    assert _validated(path)


@pytest.mark.samples("archives")
def test_package_of_a_truncated_file_is_valid(tmp_path: Path) -> None:
    needs_peers()
    (original,) = (needs.SAMPLES["archives"] / "ukwa").glob("BL-20140325122341434*.warc.gz")
    cut, package = tmp_path / "cut.warc.gz", tmp_path / "cut.wacz"
    cut.write_bytes(original.read_bytes()[:200_000])
    crawler = Crawler(tmp_path / "home")
    crawler.run("import", str(cut), "--source", "foreign")
    crawler.run("export", "wacz", "1", "-o", str(package))

    assert _validated(package)
    with opened(package.read_bytes()) as made:
        gzip.decompress(made.read(made.namelist()[0]))


def test_wacz_validate_can_fail(whole: bytes, tmp_path: Path) -> None:
    needs_peers()
    content = bytearray(whole)
    at = content.index(b"json-pages-1.0")
    content[at] ^= 1
    path = tmp_path / "x.wacz"
    path.write_bytes(content)

    assert not _validated(path)


def _validated(path: Path) -> bool:
    ended = subprocess.run(
        [VALIDATE, "validate", "-f", path], capture_output=True, text=True, check=False, timeout=patience.deadline(60)
    )
    return ended.returncode == 0 and "Validation succeeded" in ended.stdout
