"""Exports over HTTP: columns, formats, paging, formulas defused; nothing withdrawn, no transaction kept waiting."""

from __future__ import annotations

import csv
import gzip
import io
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from sqlalchemy import select

from holdfast.changes.compute import compute_pending
from holdfast.db.models import Snapshot, Withdrawal
from holdfast.exports.package import export_cdxj
from holdfast.exports.queries import ExportReach
from holdfast.exports.tables import CHANGE_COLUMNS, SNAPSHOT_COLUMNS, change_rows, snapshot_rows
from holdfast.wiring.archive import Archive
from tests.archive import Shot, build_archive, days_later
from tests.client import Client, asking

FORMULA = '=HYPERLINK("http://evil.example","x")'


def _page(title: str, words: str) -> str:
    return f"<html lang=en><head><title>{title}</title></head><body><h1>{title}</h1><p>{words}</p></body></html>"


def _shots() -> list[Shot]:
    first = [
        Shot(url="https://example.org/", body=_page("Home", "Welcome to the harbour")),
        Shot(url="https://example.org/évil?q=1", body=_page(FORMULA.replace('"', "&quot;"), 'cells, "quoted"')),
        Shot(url="https://example.org/a.css", body="p{}", media_type="text/css"),
        Shot(url="https://other.org/", body=_page("Other", "Elsewhere"), source="other"),
    ]
    return [*first, replace(first[0], body=_page("Home", "Welcome back"), moment=days_later(40), execution=2)]


@pytest.fixture(scope="module", params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def archive(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Archive]:
    """A small archive on each kind of database; rates are not what is tested here."""
    url = request.getfixturevalue("postgres").fresh() if request.param == "postgres" else None
    built = build_archive(tmp_path_factory.mktemp("exports") / "home", _shots(), database_url=url)
    compute_pending(built.database, built.clock)
    yield _with(built, rate_limiting=False)
    built.database.close()


def _with(archive: Archive, **api: Any) -> Archive:
    settings = archive.settings.model_copy(update={"api": archive.settings.api.model_copy(update=api)})
    return Archive(settings=settings, database=archive.database, clock=archive.clock)


@pytest.fixture(scope="module")
def client(archive: Archive) -> Iterator[Client]:
    """Ask that archive."""
    with asking(archive) as asked:
        yield asked


def rows(client: Client, what: str, **query: Any) -> list[dict[str, Any]]:
    """Return an export as objects."""
    return [json.loads(line) for line in client.get(f"/api/exports/{what}", params=query).text.splitlines()]


def test_the_manifest_says_what_there_is(client: Client) -> None:
    found = client.get("/api/exports").json()

    assert (found["enabled"], found["defaultLimit"], found["maxLimit"]) == (True, 1000, 10_000)
    assert found["formats"] == ["jsonl", "ndjson", "csv"]
    assert found["snapshots"]["path"] == "/api/exports/snapshots"
    assert found["changes"]["path"] == "/api/exports/changes"
    dictionary = client.get(found["dataDictionaryUrl"]).json()
    for what, written in (("snapshots", SNAPSHOT_COLUMNS), ("changes", CHANGE_COLUMNS)):
        assert [column["name"] for column in dictionary[what]] == list(written)
        assert all(len(column["meaning"]) > 10 for column in dictionary[what])
    line = client.get("/api/exports/cdxj?jobId=1").text.splitlines()[0]
    assert set(json.loads(line.split(" ", 2)[2])) <= {column["name"] for column in dictionary["cdxj"]}


def test_snapshots_have_the_columns_that_were_promised(client: Client) -> None:
    found = rows(client, "snapshots")

    assert [tuple(row) for row in found] == [SNAPSHOT_COLUMNS] * 4
    assert [row["captured_url"] for row in found if row["source_code"] == "other"] == ["https://other.org/"]
    home = next(row for row in found if row["captured_url"] == "https://example.org/")
    assert home == {
        "snapshot_id": home["snapshot_id"], "source_code": "example", "source_name": "Example",
        "captured_url": "https://example.org/", "normalized_url_group": "https://example.org/",
        "capture_timestamp_utc": "2024-03-01T12:00:00Z", "language": "en", "status_code": 200,
        "mime_type": "text/html", "title": "Home", "job_id": 1, "job_name": "example-1",
        "snapshot_url": f"http://127.0.0.1:8060/api/snapshot/{home['snapshot_id']}", "capture_backend": "native",
        "capture_fidelity": home["capture_fidelity"],
    }  # fmt: skip
    ids = [row["snapshot_id"] for row in found]
    assert ids == sorted(ids)


def test_changes_have_the_columns_that_were_promised(client: Client) -> None:
    found = rows(client, "changes")

    assert [tuple(row) for row in found] == [CHANGE_COLUMNS] * 4
    (updated,) = [row for row in found if row["change_type"] == "updated"]
    assert (updated["added_lines"], updated["removed_lines"], updated["diff_version"]) == (1, 1, "v1")
    pair = f"?toSnapshotId={updated['to_snapshot_id']}&fromSnapshotId={updated['from_snapshot_id']}"
    assert updated["compare_url"].endswith(pair)


def test_the_same_rows_come_as_csv_with_formulas_defused(client: Client) -> None:
    answer = client.get("/api/exports/snapshots", params={"format": "csv"})

    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    assert answer.headers["content-disposition"] == 'attachment; filename="holdfast-snapshots.csv"'
    found = list(csv.DictReader(io.StringIO(answer.text)))
    assert tuple(found[0]) == SNAPSHOT_COLUMNS
    assert {row["title"] for row in found} == {"Home", f"'{FORMULA}", "Other"}


@pytest.mark.parametrize("form", ["jsonl", "ndjson"])
@pytest.mark.parametrize("what", ["snapshots", "changes"])
def test_lines_of_json_and_their_headers(client: Client, what: str, form: str) -> None:
    answer = client.get(f"/api/exports/{what}", params={"format": form})

    assert answer.headers["content-type"] == "application/x-ndjson"
    assert answer.headers["content-disposition"] == f'attachment; filename="holdfast-{what}.jsonl"'
    assert len(answer.text.splitlines()) == 4


@pytest.mark.parametrize("path", ["/api/exports/snapshots", "/api/exports/changes", "/api/exports/cdxj?jobId=1"])
def test_compressed_it_is_the_same(client: Client, path: str) -> None:
    plain = client.get(path).content
    answer = client.get(path, params={**dict(parse_qsl(urlsplit(path).query)), "compressed": "true"})

    assert answer.headers["content-type"] == "application/gzip"
    assert "content-encoding" not in answer.headers, "a client would unpack it, and save plain text as .gz"
    assert answer.headers["content-disposition"].endswith('.gz"')
    assert gzip.decompress(answer.content) == plain


def test_head_has_the_headers_and_no_body(client: Client) -> None:
    for path in (
        "/api/exports/snapshots?format=csv&compressed=true",
        "/api/exports/changes",
        "/api/exports/cdxj?jobId=1",
    ):
        answer = client.request("HEAD", path)

        assert (answer.status_code, answer.content) == (200, b"")
        assert "attachment" in answer.headers["content-disposition"]


@pytest.mark.parametrize("what", ["snapshots", "changes"])
def test_pages_by_id_make_the_whole(client: Client, what: str) -> None:
    whole = rows(client, what)
    key = "snapshot_id" if what == "snapshots" else "change_id"
    pieces: list[dict[str, Any]] = []
    while part := rows(client, what, limit=3, **({"afterId": pieces[-1][key]} if pieces else {})):
        assert len(part) <= 3
        pieces += part

    assert pieces == whole


@pytest.mark.parametrize(
    ("query", "count"),
    [
        ({"source": "example"}, 3), ({"source": "other"}, 1), ({"from": "2024-04-01"}, 1), ({"to": "2024-03-01"}, 3),
        ({"from": "2024-03-02", "to": "2024-03-03"}, 0), ({"limit": 2}, 2),
    ],
)  # fmt: skip
@pytest.mark.parametrize("what", ["snapshots", "changes"])
def test_filters(client: Client, what: str, query: dict[str, Any], count: int) -> None:
    assert len(rows(client, what, **query)) == count


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ({"format": "xml"}, 422), ({"limit": 0}, 422), ({"limit": 10_001}, 422), ({"afterId": "x"}, 422),
        ({"from": "soon"}, 422), ({"source": "nobody"}, 404),
    ],
)  # fmt: skip
def test_what_makes_no_sense_is_refused(client: Client, query: dict[str, Any], status: int) -> None:
    answer = client.get("/api/exports/snapshots", params=query)

    assert answer.status_code == status
    told = {"error", "detail", "code", "requestId"}
    assert set(answer.json()) == (told | {"field"} if status == 422 else told)


def test_switched_off_there_is_nothing(archive: Archive) -> None:
    with asking(_with(archive, exports=False)) as client:
        assert client.get("/api/exports").json()["enabled"] is False
        assert client.get("/api/exports/snapshots").status_code == 404
        assert client.get("/api/executions/1/wacz").status_code == 404


def test_an_index_is_sorted_and_has_every_capture(client: Client) -> None:
    answer = client.get("/api/exports/cdxj", params={"jobId": 1})

    lines = answer.content.splitlines()
    assert lines == sorted(lines)
    assert len(lines) == 3
    key, digits, fields = lines[0].decode().split(" ", 2)
    assert (key, digits) == ("org,example)/", "20240301120000")
    found = json.loads(fields)
    assert set(found) == {"url", "mime", "status", "digest", "length", "offset", "filename"}
    assert re.fullmatch(r"sha256:[0-9a-f]{64}", found["digest"])
    assert (found["mime"], found["status"], found["filename"]) == ("text/html", "200", "example-00001.warc.gz")
    whole = client.get("/api/exports/cdxj", params={"source": "example"}).content.splitlines()
    assert len(whole) == 4
    assert whole == sorted(whole)


@pytest.mark.parametrize(
    ("query", "status"),
    [({}, 422), ({"jobId": 1, "source": "example"}, 422), ({"jobId": 77}, 404), ({"source": "x"}, 404)],
)
def test_an_index_of_nothing_is_refused(client: Client, query: dict[str, Any], status: int) -> None:
    assert client.get("/api/exports/cdxj", params=query).status_code == status


def test_cdxj_export_with_too_many_records_is_refused(archive: Archive, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.api.routes.exports.MAX_RECORDS", 8)
    with asking(archive) as client:
        refused = client.get("/api/exports/cdxj", params={"source": "example"})
        allowed = client.get("/api/exports/cdxj", params={"jobId": 1})

    assert (refused.status_code, refused.json()["code"]) == (422, "export_too_large")
    assert len(allowed.content.splitlines()) == 3


@pytest.mark.parametrize("read", [snapshot_rows, change_rows])
def test_no_transaction_waits_for_a_slow_reader(archive: Archive, read: Any) -> None:
    stream = read(archive.database, ExportReach(), site="")
    next(stream)

    assert archive.database.engine.pool.checkedout() == 0  # type: ignore[attr-defined]
    assert len(list(stream)) == 3


def test_a_slow_reader_of_an_index_holds_no_transaction(archive: Archive) -> None:
    from_client = iter(_index(archive))
    next(from_client)

    assert archive.database.engine.pool.checkedout() == 0  # type: ignore[attr-defined]
    assert len(list(from_client)) == 2


def _index(archive: Archive) -> Iterator[bytes]:
    return export_cdxj(archive.database, archive.home, execution_id=1)


def test_what_is_withdrawn_is_not_exported(tmp_path: Path) -> None:
    archive = _with(build_archive(tmp_path / "home", _shots()), rate_limiting=False)
    compute_pending(archive.database, archive.clock)
    with archive.database.write() as session:
        hidden = session.scalars(select(Snapshot).where(Snapshot.url == "https://example.org/")).first()
        assert hidden is not None
        session.add(Withdrawal(
            url_key=hidden.url_key, subject=hidden.url, reason="asked", actor="t", created_at=archive.clock.now()
        ))  # fmt: skip
    with asking(archive) as client:
        assert len(rows(client, "snapshots")) == len(rows(client, "changes")) == 2
        assert b"org,example)/ " not in client.get("/api/exports/cdxj", params={"jobId": 1}).content
    archive.database.close()
