"""Editions of a real archive on both databases: frozen, verified, compared, and shown to whoever may see what."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
from sqlalchemy import Connection, event, select, text, update

from holdfast.db.engine import Database
from holdfast.db.models import AuditEvent, Edition, Execution, Job, Snapshot
from holdfast.editions import queries
from holdfast.editions.comparison import write_comparison
from holdfast.editions.freezing import EditionFrozen, freeze, verify_frozen
from holdfast.editions.publishing import public_summary
from holdfast.editions.report import write_report
from holdfast.errors import Invalid
from holdfast.wiring.archive import Archive
from holdfast.withdrawals import hiding
from tests.archive import Shot, build_archive, days_later
from tests.client import Client, asking
from tests.editions_bed import adopt

SITE = "https://example.org/"
SECRET = f"{SITE}secret"


def _page(path: str, words: str, *, year: int, status: int = 200, media_type: str = "text/html") -> Shot:
    body = f"<title>{words}</title><p>{words}"
    return Shot(url=f"{SITE}{path}", body=body, status=status, media_type=media_type, execution=year,
                moment=days_later(365 * (year - 1)))  # fmt: skip


SHOTS = [
    _page("", "home", year=1),
    _page("same", "the same", year=1),
    _page("old", "a page that moves", year=1),
    _page("lost", "nobody needs it", year=1),
    _page("secret", "hush", year=1),
    _page("mark.png", "picture", year=1, media_type="image/png"),
    _page("", "home, newer", year=2),
    _page("same", "the same", year=2),
    _page("new", "a page that moves", year=2),
    _page("lost", "not found", year=2, status=404),
    _page("fresh", "fresh words", year=2),
    _page("secret", "hush", year=2),
]


@pytest.fixture
def archive(migrated_url: str, tmp_path: Path) -> Iterator[Archive]:
    """Two years of a site."""
    built = build_archive(tmp_path / "home", SHOTS, database_url=migrated_url)
    yield built
    built.database.close()


@pytest.fixture
def editions(archive: Archive) -> tuple[int, int]:
    """The editions of the two years, reported on."""
    made = tuple(adopt(archive, "example", year, executions=(f"example-{number}",), seeds=(SITE,))
                 for number, year in enumerate((2024, 2025), 1))  # fmt: skip
    for edition_id in made:
        write_report(archive.database, archive.home, archive.clock, edition_id)
    return made[0], made[1]


@pytest.fixture
def client(archive: Archive) -> Iterator[Client]:
    with asking(archive) as opened:
        yield opened


def _freeze(archive: Archive, edition_id: int, *, again: bool = False) -> tuple[Edition, Path]:
    row = freeze(archive.database, archive.home, archive.clock, edition_id, again=again)
    assert row.frozen_path is not None
    return row, archive.home / row.frozen_path


def _hide(archive: Archive, subject: str) -> None:
    hiding.hide(archive.database, archive.clock, subject, reason="asked for")


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_crawl_without_a_frontier_is_accounted_for_by_its_captures(archive: Archive) -> None:
    edition_id = adopt(archive, "example", 2025, executions=("example-2",), seeds=(SITE, f"{SITE}missing"))
    with archive.database.write() as session:
        session.execute(update(Execution).values(items_crawled=5, items_failed=2, items_total=9))

    content = write_report(archive.database, archive.home, archive.clock, edition_id)[0]

    rows = {row["url"]: row for row in _lines(archive.home / "editions/example/2025/target-ledger.jsonl")}
    assert {url.removeprefix(SITE): (row["intent_source"], row["outcome"]) for url, row in rows.items()} == {
        "": ("seed", "captured"), "same": ("crawler", "captured"), "new": ("crawler", "captured"),
        "lost": ("crawler", "failed"), "fresh": ("crawler", "captured"), "secret": ("crawler", "captured"),
        "missing": ("seed", "not_reached"),
    }  # fmt: skip
    assert content["unnamed"] == {"failed": 2, "not_reached": 2}
    assert any("without naming them" in note for note in content["notes"])


def test_the_manifest_names_every_capture_of_a_page_and_no_path_of_the_machine(
    archive: Archive, editions: tuple[int, int]
) -> None:
    _hide(archive, SECRET)
    write_report(archive.database, archive.home, archive.clock, editions[0])

    path = archive.home / "editions/example/2024/capture-manifest.jsonl"

    rows = _lines(path)
    assert [row.get("url") for row in rows] == [f"{SITE}{name}" for name in ("", "same", "old", "lost")] + [None]
    assert rows[-1] == {"snapshot_id": rows[-1]["snapshot_id"], "job_id": rows[-1]["job_id"], "withdrawn": True}
    assert rows[0]["provenance"]["shard_key"] == "part-1"
    assert rows[0]["warc_record_id"].startswith("<urn:uuid:")
    assert str(archive.home) not in path.read_text()
    assert SECRET not in path.read_text()


def test_a_frozen_list_is_what_its_digest_says_and_the_archive_holds_it(
    archive: Archive, editions: tuple[int, int]
) -> None:
    done, path = _freeze(archive, editions[0])

    rows = _lines(path)
    assert done.frozen_digest == f"sha256:{sha256(path.read_bytes()).hexdigest()}"
    assert [row["url"].removeprefix(SITE) for row in rows] == ["", "lost", "mark.png", "old", "same", "secret"]
    assert set(rows[0]) == {"snapshot_id", "warc_record_id", "url", "captured_at", "payload_digest", "page"}
    with archive.database.read() as session:
        row = session.get_one(Edition, editions[0])
        assert (row.frozen_digest, row.frozen_count) == (done.frozen_digest, 6)
        assert row.frozen_path == f"editions/example/2024/{path.name}"
    found = verify_frozen(archive.database, archive.home, editions[0])
    assert (found.holds, found.listed, found.withdrawn) == (True, 6, 0)
    _hide(archive, SECRET)
    found = verify_frozen(archive.database, archive.home, editions[0])
    assert (found.holds, found.withdrawn) == (True, 1)


def test_freezing_again_needs_a_word_keeps_the_first_list_and_is_audited(
    archive: Archive, editions: tuple[int, int]
) -> None:
    first, first_path = _freeze(archive, editions[0])
    with pytest.raises(EditionFrozen, match="--again"):
        _freeze(archive, editions[0])
    same, _ = _freeze(archive, editions[0], again=True)
    _hide(archive, SECRET)
    second, second_path = _freeze(archive, editions[0], again=True)

    assert (same.frozen_digest, same.frozen_at) == (first.frozen_digest, first.frozen_at)
    assert second.frozen_digest != first.frozen_digest
    assert first_path.exists()
    assert _lines(second_path)[-1]["withdrawn"] is True
    assert SECRET not in second_path.read_text()
    with archive.database.read() as session:
        told = session.scalars(select(AuditEvent.action).where(AuditEvent.action.like("edition.%"))).all()
    assert sorted(told) == ["edition.frozen", "edition.frozen_again"]


def test_a_list_that_was_tampered_with_and_a_capture_that_is_gone_are_found(
    archive: Archive, editions: tuple[int, int]
) -> None:
    _, path = _freeze(archive, editions[0])
    rows = _lines(path)
    rows[0]["payload_digest"] = "sha256:0"
    rows[1]["snapshot_id"] = 12
    path.write_text("".join(json.dumps(row) + "\n" for row in rows) + "no json\n")

    found = verify_frozen(archive.database, archive.home, editions[0])

    assert (found.holds, found.digest_matches) == (False, False)
    assert (found.listed, found.missing, found.changed) == (7, 2, 1)
    assert any("payload_digest" in example for example in found.examples)


def test_two_years_are_compared_frozen_or_not(archive: Archive, editions: tuple[int, int]) -> None:
    _hide(archive, SECRET)
    live, _ = write_comparison(archive.database, archive.home, archive.clock, *editions)
    _freeze(archive, editions[0])

    done, file = write_comparison(archive.database, archive.home, archive.clock, *editions)

    rows = _lines(file.with_suffix(".jsonl"))
    assert {row.get("url", "")[20:] or row["kind"]: (row["kind"], row.get("from_url", "")[20:]) for row in rows} == {
        "changed": ("changed", ""), "same": ("unchanged", ""), "new": ("moved", "old"), "lost": ("gone", ""),
        "fresh": ("new", ""), "withdrawn": ("withdrawn", ""),
    }  # fmt: skip
    assert done["counts"] == {"new": 1, "gone": 1, "changed": 1, "unchanged": 1, "moved": 1, "error": 0,
                                      "withdrawn": 1}  # fmt: skip
    assert live["artifacts"] == done["artifacts"]
    assert done["earlier"]["frozen_digest"] is not None
    assert json.loads(file.read_bytes()) == done
    assert "| moved | 1 |" in file.with_suffix(".md").read_text()
    for path in file.parent.glob("comparison-*"):
        assert SECRET not in path.read_text()
    with pytest.raises(Invalid, match="earlier year first"):
        write_comparison(archive.database, archive.home, archive.clock, editions[1], editions[0])


def test_whoever_runs_the_archive_sees_editions_and_their_shards(client: Client, editions: tuple[int, int]) -> None:
    listed = client.get("/api/admin/annual-editions").json()
    one = client.get(f"/api/admin/annual-editions/{editions[0]}").json()

    assert [(item["sourceCode"], item["year"]) for item in listed["items"]] == [("example", 2025), ("example", 2024)]
    assert (listed["total"], listed["limit"], listed["offset"]) == (2, 50, 0)
    assert client.get("/api/admin/annual-editions?year=2024&source=example").json()["total"] == 1
    assert client.get("/api/admin/annual-editions?source=nobody").json()["items"] == []
    (shard,) = one["shards"]
    assert (shard["status"], shard["shardKey"], shard["captureBackend"]) == ("indexed", "part-1", "native")
    assert set(shard) >= {"jobId", "name", "shardKind", "acceptanceState", "indexedPageCount", "pagesCrawled",
                          "pagesTotal", "pagesFailed", "retryCount"}  # fmt: skip
    assert client.get("/api/admin/annual-editions/999").json()["code"] == "edition_not_found"


def test_a_gap_is_accepted_over_http(client: Client, archive: Archive, editions: tuple[int, int]) -> None:
    with archive.database.write() as session:
        session.execute(update(Job).values(state="failed"))
        job_id = session.scalars(select(Job.id).where(Job.edition_id == editions[0])).one()
    path = f"/api/admin/annual-editions/jobs/{job_id}/accept-gap"

    short, none = client.post(f"{path}?reason=ab"), client.post(path)
    blank = client.post(f"{path}?reason=%20%20%20")
    done = client.post(f"{path}?reason=the%20site%20was%20closed")

    assert (short.status_code, none.status_code, blank.status_code, done.status_code) == (422, 422, 422, 200)
    assert done.json()["shards"][0]["acceptanceState"] == "accepted_gap"
    assert done.json()["shards"][0]["acceptanceReason"] == "the site was closed"
    assert client.post("/api/admin/annual-editions/jobs/999/accept-gap?reason=because").status_code == 404
    with archive.database.read() as session:
        told = session.query(AuditEvent).where(AuditEvent.action == "edition.gap_accepted").one()
        kept = session.get_one(Job, job_id).details["operator_acceptance"]
    assert told.actor == kept["accepted_by"] == "admin@127.0.0.1"
    assert client.post(f"{path}?reason=because%00of%20it").status_code == 422


def test_readers_see_a_summary_and_files_without_the_inner_life(
    client: Client, archive: Archive, editions: tuple[int, int]
) -> None:
    _freeze(archive, editions[1])
    write_comparison(archive.database, archive.home, archive.clock, *editions)
    base = "/api/coverage/example/2025"

    told = client.get(base).json()
    names = ("coverage-report.json", "coverage.csv", "frozen.jsonl", "comparison-2024.json", "comparison-2024.csv")
    files = {name: client.get(f"{base}/{name}") for name in names}

    assert (told["intendedUrlCount"], told["capturedUrlCount"], told["failedUrlCount"]) == (6, 5, 1)
    assert (told["status"], told["coverageSummary"]["outcomes"]) == ("research_ready", {"captured": 5, "failed": 1})
    assert told["coverageSummary"]["frozen"]["captures"] == 6
    assert {name: answer.status_code for name, answer in files.items()} == dict.fromkeys(files, 200)
    assert files["coverage.csv"].headers["content-type"].startswith("text/csv")
    assert len(list(csv.DictReader(io.StringIO(files["coverage.csv"].text)))) == 6
    assert "shards" not in files["coverage-report.json"].json()
    assert files["comparison-2024.json"].json()["counts"]["moved"] == 1
    for answer in (client.get(base), *files.values()):
        assert str(archive.home) not in answer.text
        assert "target-ledger" not in answer.text
        assert "warcs/" not in answer.text
    others = ("target-ledger.jsonl", "capture-manifest.jsonl", "coverage-report.md", ".lock", "comparison-1999.csv",
              "..%2F..%2F..%2Fholdfast.db")  # fmt: skip
    assert {client.get(f"{base}/{name}").status_code for name in others} == {404}
    assert client.get("/api/coverage/example/2024/frozen.jsonl").status_code == 404


def test_the_pages_behind_each_figure_of_a_comparison_are_read_piece_by_piece(
    client: Client, archive: Archive, editions: tuple[int, int]
) -> None:
    base = "/api/coverage/example/2025"
    before = client.get(f"{base}/comparison/2024")
    write_comparison(archive.database, archive.home, archive.clock, *editions)

    told = client.get(base).json()
    whole = client.get(f"{base}/comparison/2024").json()
    first = client.get(f"{base}/comparison/2024", params={"limit": 2}).json()
    rest = client.get(f"{base}/comparison/2024", params={"limit": 100, "cursor": first["next"]}).json()
    moved = client.get(f"{base}/comparison/2024", params={"kind": "moved"}).json()["items"]
    same = client.get(f"{base}/comparison/2024", params={"kind": "unchanged"}).json()["items"]

    assert (before.status_code, before.json()["code"]) == (404, "artefact_not_found")
    assert (told["comparedYears"], client.get("/api/coverage/example/2024").json()["comparedYears"]) == ([2024], [])
    assert sorted(one["type"] for one in whole["items"]) == ["changed", "gone", "moved", "new"]
    assert whole["next"] is None
    assert first["items"] + rest["items"] == whole["items"]
    assert [(one["fromUrl"], one["url"]) for one in moved] == [(f"{SITE}old", f"{SITE}new")]
    assert {one["type"] for one in same} == {"unchanged"}
    changed = next(one for one in whole["items"] if one["type"] == "changed")
    pair = {"fromSnapshotId": changed["fromSnapshotId"], "toSnapshotId": changed["toSnapshotId"]}
    assert client.get("/api/changes/compare", params=pair).status_code == 200
    assert client.get(f"{base}/comparison/2023").status_code == 404
    assert client.get(f"{base}/comparison/2024", params={"kind": "melted"}).status_code == 422

    _hide(archive, f"{SITE}old")
    hidden = client.get(f"{base}/comparison/2024").json()["items"]

    assert f"{SITE}old" not in json.dumps(hidden)
    assert [one for one in hidden if one["type"] == "withdrawn"] == [
        {"type": "withdrawn", "url": None, "fromUrl": None, "fromSnapshotId": None, "toSnapshotId": None}
    ]


@pytest.mark.parametrize("is_compared_first", [True, False])
def test_a_comparison_tells_nothing_of_what_is_withdrawn_but_that_it_is(
    client: Client, archive: Archive, editions: tuple[int, int], is_compared_first: bool
) -> None:
    base = "/api/coverage/example/2025"
    if is_compared_first:
        write_comparison(archive.database, archive.home, archive.clock, *editions)
    with archive.database.read() as session:
        rows = session.scalars(select(Snapshot).where(Snapshot.url.in_((SITE, f"{SITE}old"))).order_by(Snapshot.id))
        captures = {row.id: row.url for row in rows}
    alone = next(number for number, url in captures.items() if url == SITE)
    _hide(archive, f"{SITE}old")
    _hide(archive, str(alone))
    if not is_compared_first:
        write_comparison(archive.database, archive.home, archive.clock, *editions)

    told = client.get(f"{base}/comparison-2024.csv").text.splitlines()
    figures = client.get(f"{base}/comparison-2024.json").json()
    pieces = client.get(f"{base}/comparison/2024", params={"kind": "withdrawn"}).json()["items"]

    hidden = [line for line in told if line.startswith("withdrawn")]
    assert hidden == told[-len(hidden) :] == ["withdrawn,,,,"] * 2
    assert len(pieces) == 2
    assert not {str(number) for number in captures} & {cell for line in told for cell in line.split(",")}
    assert not {SITE, f"{SITE}old"} & {url for urls in figures["examples"].values() for url in urls}


def test_a_withdrawal_is_heeded_at_once_by_every_file(
    client: Client, archive: Archive, editions: tuple[int, int]
) -> None:
    _freeze(archive, editions[1])
    write_comparison(archive.database, archive.home, archive.clock, *editions)
    base = "/api/coverage/example/2025"
    before = client.get(f"{base}/coverage.csv").text
    with archive.database.read() as session:
        home = session.scalars(select(Snapshot.id).where(Snapshot.url == SITE).order_by(Snapshot.id.desc())).first()

    _hide(archive, SECRET)
    _hide(archive, str(home))
    after = client.get(f"{base}/coverage.csv").text
    frozen = [json.loads(line) for line in client.get(f"{base}/frozen.jsonl").text.splitlines()]
    compared = client.get(f"{base}/comparison-2024.csv").text

    assert SECRET in before
    assert SECRET not in after + json.dumps(frozen) + compared
    assert after.count("\n") == before.count("\n")
    [hidden] = [row for row in csv.DictReader(after.splitlines()) if row["url"] == "(withdrawn)"]
    traces = ("at", "via", "redirected_to", "detail", "snapshot_id")
    assert {name: value for name, value in hidden.items() if value and name in traces} == {}
    assert str(home) not in after
    assert SITE in after
    assert sum("withdrawn" in row for row in frozen) == 2
    assert len(frozen) == 6


def test_a_number_that_no_capture_has_does_not_keep_a_damaged_table_from_readers(
    client: Client, archive: Archive, editions: tuple[int, int]
) -> None:
    path = archive.home / "editions/example/2025/coverage.csv"
    assert editions
    damaged = path.read_text().replace("snapshot_id\n", "snapshot_id\n" + "x," * 10 + "9" * 5000 + "\n", 1)
    path.write_text(damaged)
    _hide(archive, SECRET)

    answer = client.get("/api/coverage/example/2025/coverage.csv")

    assert answer.status_code == 200
    assert "9" * 5000 in answer.text
    assert SECRET not in answer.text


def test_an_edition_is_one_package_with_all_its_shards(client: Client, archive: Archive) -> None:
    adopt(archive, "example", 2025, executions=("example-1", "example-2"), seeds=(SITE,))
    nothing = client.get("/api/coverage/example/2024/edition.wacz")
    _hide(archive, SECRET)

    whole = client.get("/api/coverage/example/2025/edition.wacz")
    part = client.get("/api/coverage/example/2025/edition.wacz", headers={"Range": "bytes=0-99"})

    assert (nothing.status_code, whole.status_code, part.status_code) == (404, 200, 206)
    assert part.content == whole.content[:100]
    assert 'filename="example-2025.wacz"' in whole.headers["content-disposition"]
    with ZipFile(io.BytesIO(whole.content)) as package:
        assert package.testzip() is None
        names = package.namelist()
        described = json.loads(package.read("datapackage.json"))
        index = gzip.decompress(package.read("indexes/index.cdx.gz")).decode().splitlines()
        pages = [json.loads(line) for name in names if name.startswith("pages/")
                 for line in package.read(name).decode().splitlines()]  # fmt: skip
    assert sum(name.startswith("archive/") and name.endswith(".warc.gz") for name in names) == 2
    assert described["title"] == "Example, edition 2025"
    assert sum("org,example)/ " in line for line in index) == 2
    assert index == sorted(index)
    urls = [page["url"] for page in pages if "url" in page]
    assert sorted(urls) == sorted({f"{SITE}{path}" for path in ("", "same", "old", "lost", "new", "fresh")})
    assert SECRET.encode() not in whole.content


def asked(database: Database, ask: Callable[[], object]) -> str:
    """Return the plans of every statement of a question."""
    statements: list[tuple[str, Any]] = []

    @event.listens_for(database.engine, "before_cursor_execute")
    def note(_connection: Connection, _cursor: Any, statement: str, parameters: Any, *_rest: Any) -> None:
        statements.append((statement, parameters))

    ask()
    event.remove(database.engine, "before_cursor_execute", note)
    is_sqlite = database.engine.dialect.name == "sqlite"
    with database.engine.connect() as connection:
        if not is_sqlite:
            connection.execute(text("SET enable_seqscan = off"))
        explain = "EXPLAIN QUERY PLAN " if is_sqlite else "EXPLAIN "
        return "\n".join(
            str(row[-1])
            for statement, parameters in statements if statement.lstrip().startswith(("SELECT", "SET"))
            for row in _explained(connection, explain, statement, parameters)
        )  # fmt: skip


def _explained(connection: Connection, explain: str, statement: str, parameters: Any) -> list[Any]:
    if statement.startswith("SET"):
        connection.exec_driver_sql(statement)
        return []
    return list(connection.exec_driver_sql(explain + statement, parameters))


def test_what_readers_ask_for_does_not_grow_and_a_ledger_is_read_by_its_index(
    archive: Archive, editions: tuple[int, int]
) -> None:
    def ask() -> None:
        with archive.database.read() as session:
            found = queries.edition(session, source_id=1, year=2025)
            assert found is not None
            public_summary(session, found)

    def account() -> None:
        with archive.database.read() as session:
            queries.attempts(session, 1)
            queries.captures(session, 1, after=-1)
            queries.with_frontier(session, [1, 2])

    shown, read = asked(archive.database, ask), asked(archive.database, account)

    assert editions
    assert "snapshots" not in shown
    assert "page_crawls" not in shown
    for table in ("snapshots", "page_crawls", "pages", "withdrawals", "warc_files"):
        for plan in (shown, read):
            assert f"SCAN {table}" not in plan
            assert f"Seq Scan on {table}" not in plan
    # Stretches come in the order of an index, whatever is known of the tables: nothing that is left is sorted.
    for table in ("snapshots", "page_crawls"):
        assert f"Bitmap Heap Scan on {table}" not in read
        assert f"Sort Key: {table}." not in read
