"""The API's own routes on both databases: what they say of an archive."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import select, update

from holdfast.api.figures import CountedTotals
from holdfast.db.engine import Database, limit_statements, take_time
from holdfast.db.migrate import upgrade
from holdfast.db.models import Edition, Execution, Job, Owner, Snapshot, Source, Withdrawal
from holdfast.db.schema import SCHEMA
from holdfast.errors import Unavailable
from holdfast.jobs.views.recorded import active_workers
from holdfast.wiring.archive import Archive
from tests.archive import BEGIN, Shot, build_archive, days_later
from tests.client import Client, asking
from tests.clock import FakeClock
from tests.postgres import Postgres

_HOME = "https://example.org/"
_FRENCH = "<html lang=fr><title>Accueil</title><body><p>Bonjour, voici des mots en français pour cette page.</p></html>"
_SHOTS = [
    Shot(url=_HOME),
    Shot(url="https://example.org/notes?page=2", body="<title>Notes</title><p>Two."),
    Shot(url="https://example.org/fr/", body=_FRENCH),
    Shot(url="https://example.org/mark.png", media_type="image/png", body=b"picture"),
    Shot(url="https://example.org/gone", status=404, body="<title>Gone</title><p>Nothing."),
    Shot(url=_HOME, body="<title>New</title><p>Other words.", moment=days_later(10), execution=2),
    Shot(url="https://other.org/", source="other", moment=days_later(3)),
]
_LIMITS = ("statement_timeout", "idle_in_transaction_session_timeout")


@pytest.fixture(scope="module", params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def archive(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Archive]:
    """A small archive of two sources on each kind of database, shared by the tests that only read it."""
    url: str | None = None
    if request.param == "postgres":
        cluster: Postgres = request.getfixturevalue("postgres")
        url = cluster.fresh()
        upgrade(url)
    built = build_archive(tmp_path_factory.mktemp("home"), _SHOTS, database_url=url)
    yield built
    built.database.close()


@pytest.fixture(scope="module")
def client(archive: Archive) -> Iterator[Client]:
    """A client for that archive, which may ask as often as it likes."""
    api = archive.settings.api.model_copy(update={"rate_limiting": False})
    unlimited = replace(archive, settings=archive.settings.model_copy(update={"api": api}))
    with asking(unlimited) as open_client:
        yield open_client


@pytest.fixture
def own(migrated_url: str, tmp_path: Path) -> Iterator[Archive]:
    """The same archive for one test alone, which may change it."""
    built = build_archive(tmp_path / "home", _SHOTS, database_url=migrated_url)
    yield built
    built.database.close()


@pytest.fixture
def own_client(own: Archive) -> Iterator[Client]:
    """A client for an archive that the test changes."""
    with asking(own) as open_client:
        yield open_client


def _snapshot(archive: Archive, url: str, at: datetime = BEGIN) -> int:
    with archive.database.read() as session:
        found = session.query(Snapshot).where(Snapshot.url == url, Snapshot.captured_at == at).one()
        return found.id


def _withdraw(archive: Archive, snapshot_id: int) -> None:
    with archive.database.write() as session:
        session.add(Withdrawal(snapshot_id=snapshot_id, subject="x", reason="test", actor="me", created_at=BEGIN))


def test_stats_count_captures_of_pages(client: Client) -> None:
    [answer] = client.together([("127.0.0.1", "/api/stats")])
    stats = answer.json()

    assert (stats["snapshotsTotal"], stats["pagesTotal"], stats["sourcesTotal"]) == (6, 5, 2)
    assert stats["latestCaptureDate"] == "2024-03-11"
    assert stats["latestCaptureAgeDays"] > 900
    assert stats["recentPages"][0]["url"] == _HOME
    assert len(stats["recentPages"]) == 5
    assert answer.headers["cache-control"] == "no-cache"


class _SlowClock(FakeClock):
    """A clock on which every look takes two seconds."""

    def monotonic(self) -> float:
        self.advance(2)
        return super().monotonic()


def _add_a_page(archive: Archive, migrated_url: str) -> None:
    more = replace(_SHOTS[0], url="https://example.org/later", execution=3)
    build_archive(archive.home, [more], database_url=migrated_url).database.close()


def test_a_small_archive_is_counted_anew_at_once(own: Archive, migrated_url: str) -> None:
    totals = CountedTotals(own.database, own.clock, at_once_s=3600)
    with own.database.read() as session:
        assert totals.read(session).snapshots == 6
        assert totals.read(session) is totals.read(session)

    _add_a_page(own, migrated_url)

    with own.database.read() as session:
        assert totals.read(session).snapshots == 7


def test_a_large_archive_is_counted_beside_the_requests(own: Archive, migrated_url: str) -> None:
    clock = _SlowClock()
    totals = CountedTotals(own.database, clock)
    with own.database.read() as session:
        before = totals.read(session)

    _add_a_page(own, migrated_url)

    with own.database.read() as session:
        assert totals.read(session) is before
        totals.close()
        assert totals.read(session) is before, "a count rests ten times what it took"
        clock.advance(100)
        assert totals.read(session) is before
    totals.close()
    with own.database.read() as session:
        assert totals.read(session).snapshots == 7
    totals.close()


_ENDLESS = "WITH RECURSIVE number(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number) SELECT count(*) FROM number"


def test_a_statement_that_takes_too_long_is_ended_on_either_database(migrated_url: str) -> None:
    """Without a limit it would never end: on SQLite it would hold a thread of the server for ever."""
    with closing(Database(migrated_url)) as database:
        limit_statements(database.engine, seconds=0.2)
        for _ in range(2):
            with pytest.raises(Unavailable), database.read() as session:
                session.connection().exec_driver_sql(_ENDLESS)
        with database.read() as session:
            assert session.connection().exec_driver_sql("SELECT 1").scalar_one() == 1


def test_counting_takes_the_time_that_it_needs_and_the_next_question_does_not(migrated_sqlite: str) -> None:
    some = _ENDLESS.replace("FROM number)", "FROM number WHERE n < 300000)")
    with closing(Database(migrated_sqlite)) as database:
        limit_statements(database.engine, seconds=0.0)
        with database.read() as session:
            take_time(session)
            counted = session.connection().exec_driver_sql(some).scalar_one()
        with pytest.raises(Unavailable), database.read() as session:
            session.connection().exec_driver_sql(some)

    assert counted == 300_000


def test_statements_of_the_server_have_a_time_limit_and_counting_has_none(migrated_postgres: str) -> None:
    database = Database(migrated_postgres)
    limit_statements(database.engine, seconds=10)
    with database.read() as session:
        limits = [session.connection().exec_driver_sql(f"SHOW {name}").scalar_one() for name in _LIMITS]
        take_time(session)
        jit = session.connection().exec_driver_sql("SHOW jit").scalar_one()
        lifted = session.connection().exec_driver_sql(f"SHOW {_LIMITS[0]}").scalar_one()
    with database.read() as session:
        again = session.connection().exec_driver_sql(f"SHOW {_LIMITS[0]}").scalar_one()
    database.close()

    assert (limits, jit) == (["10s", "30s"], "off")
    assert (lifted, again) == ("0", "10s")


def test_sources_tell_what_is_kept_of_each(archive: Archive, client: Client) -> None:
    sources = {row["sourceCode"]: row for row in client.get("/api/sources").json()}
    example = sources["example"]

    assert sorted(sources) == ["example", "other"]
    assert (example["recordCount"], example["firstCapture"], example["lastCapture"]) == (5, "2024-03-01", "2024-03-11")
    assert example["latestRecordId"] == example["entryRecordId"] == _snapshot(archive, _HOME, days_later(10))
    assert f"/web/20240311120000/{_HOME}" in example["entryBrowseUrl"]
    assert (example["sourceName"], example["baseUrl"], example["entryPreviewUrl"]) == ("Example", _HOME, None)


def test_a_language_has_an_entry_of_its_own(archive: Archive, client: Client) -> None:
    french = client.get("/api/sources?lang=fr").json()[0]

    assert french["entryRecordId"] == _snapshot(archive, "https://example.org/fr/")


def test_the_entry_of_a_language_is_found_however_many_pages_came_later(own: Archive, migrated_url: str) -> None:
    later = [
        Shot(url=f"https://example.org/{number}", moment=days_later(20), execution=3, body=f"<p>No {number}.")
        for number in range(250)
    ]
    build_archive(own.home, later, database_url=migrated_url).database.close()

    with asking(own) as client:
        french = client.get("/api/sources?lang=fr").json()[0]
        german = client.get("/api/sources?lang=de").json()[0]

    assert french["entryRecordId"] == _snapshot(own, "https://example.org/fr/")
    assert german["entryRecordId"] == _snapshot(own, _HOME, days_later(10)), "the first page, where there is none"


def test_the_entry_of_a_crawl_is_a_capture_of_that_crawl(own: Archive, migrated_url: str) -> None:
    other = Shot(url="https://example.org/only", moment=days_later(10.5), execution=3)
    build_archive(own.home, [other], database_url=migrated_url).database.close()

    with asking(own) as client:
        crawls = client.get("/api/sources/example/editions").json()

    entries = {crawl["jobId"]: crawl["entryBrowseUrl"] for crawl in crawls}
    first, second, third = sorted(entries, key=lambda job: [c["firstCapture"] for c in crawls if c["jobId"] == job])[:3]
    found = [entries[job] for job in entries]
    assert found.count(None) == 1, "the crawl that did not capture the first page has none"
    assert {first, second, third} == set(entries)
    assert sum("20240301120000" in (entry or "") for entry in found) == 1
    assert sum("20240311120000" in (entry or "") for entry in found) == 1


def test_active_workers_are_workers_that_were_heard_lately(own: Archive) -> None:
    now = own.clock.now()
    with own.database.write() as session:
        for kind, silent_s, ended in (("worker", 5, False), ("runner", 60, False), ("worker", 600, False),
                                      ("process", 1, False), ("supervisor", 1, False), ("indexer", 1, False),
                                      ("scheduler", 1, False), ("worker", 1, True)):  # fmt: skip
            heard = now - timedelta(seconds=silent_s)
            session.add(
                Owner(kind=kind, host="a", pid=1, run_file="x", started_at=heard, heartbeat_at=heard,
                      ended_at=now if ended else None)
            )  # fmt: skip
    with own.database.read() as session:
        found = [owner.kind for owner in active_workers(session, own.clock)]
    with asking(own) as client:
        stats, health = client.get("/api/stats").json(), client.get("/api/health").json()

    assert found == ["worker", "runner"]
    assert health["workers"] == 2
    assert stats["activeWorkers"] == ["worker-1", "worker-2"], "how many, not which"
    assert [beat["workerId"] for beat in stats["workerHeartbeats"]] == ["worker-1", "worker-2"]


def test_a_withdrawn_capture_is_named_nowhere(own: Archive, own_client: Client) -> None:
    newest = _snapshot(own, _HOME, days_later(10))
    _withdraw(own, newest)

    sources = own_client.get("/api/sources").json()[0]
    resolved = own_client.get("/api/replay/resolve", params={"url": _HOME, "timestamp": "20240311120000"}).json()
    latest = own_client.get(f"/api/snapshots/{_snapshot(own, _HOME)}/latest").json()

    assert own_client.get(f"/api/snapshot/{newest}").status_code == 404
    assert own_client.get(f"/api/snapshots/{newest}/latest").status_code == 404
    assert newest not in (sources["latestRecordId"], sources["entryRecordId"])
    assert newest not in (resolved["snapshotId"], latest["snapshotId"])
    assert newest not in [page["id"] for page in own_client.get("/api/stats").json()["recentPages"]]


def test_editions_are_the_crawls_that_were_indexed_newest_first(client: Client) -> None:
    editions = client.get("/api/sources/example/editions").json()

    assert [edition["recordCount"] for edition in editions] == [1, 4]
    assert [edition["firstCapture"] for edition in editions] == ["2024-03-11", "2024-03-01"]
    assert [edition["lastCapturedAt"][:10] for edition in editions] == ["2024-03-11", "2024-03-01"]
    assert [(edition["isPoll"], edition["isWhole"]) for edition in editions] == [(False, True)] * 2
    assert [edition["jobName"] for edition in editions] == [f"example-{edition['jobId']}" for edition in editions]
    assert client.get("/api/sources/nobody/editions").status_code == 404


def test_editions_tell_polls_and_crawls_that_were_cut_short_apart(own: Archive, own_client: Client) -> None:
    def told(job_id: int) -> tuple[bool, bool]:
        listed = own_client.get("/api/sources/example/editions").json()
        return next((one["isPoll"], one["isWhole"]) for one in listed if one["jobId"] == job_id)

    newest = own_client.get("/api/sources/example/editions").json()[0]["jobId"]
    with own.database.write() as session:
        session.execute(update(Execution).where(Execution.id == newest).values(reason="stopped"))
    assert told(newest) == (False, False)

    job = select(Execution.job_id).where(Execution.id == newest).scalar_subquery()
    with own.database.write() as session:
        session.execute(update(Execution).where(Execution.id == newest).values(reason=None))
        session.execute(update(Job).where(Job.id == job).values(kind="feed"))
    assert told(newest) == (True, False)


def test_editions_come_in_portions(client: Client) -> None:
    whole = client.get("/api/sources/example/editions").json()
    portions = [client.get(f"/api/sources/example/editions?limit=1&offset={at}").json() for at in range(3)]

    assert portions == [whole[:1], whole[1:], []]
    for wrong in ("limit=0", "limit=201", "offset=-1", "offset=10001"):
        assert client.get(f"/api/sources/example/editions?{wrong}").status_code == 422


def test_a_preview_does_not_exist_yet(client: Client) -> None:
    answer = client.get("/api/sources/example/preview?jobId=1&lang=en")

    assert answer.status_code == 404
    assert "browser" in answer.json()["detail"]
    assert client.request("HEAD", "/api/sources/example/preview").status_code == 404


def test_coverage_tells_a_year(own: Archive, own_client: Client) -> None:
    with own.database.write() as session:
        session.add(Edition(source_id=1, year=2024, status="search_ready", search_ready=True, intended_url_count=9,
                            captured_url_count=7, backend_counts={"native": 7}, coverage_summary={"a": 1},
                            created_at=BEGIN))  # fmt: skip

    told = own_client.get("/api/coverage/example/2024").json()

    assert (told["year"], told["status"], told["searchReady"], told["researchReady"]) == (
        2024,
        "search_ready",
        True,
        False,
    )
    assert (told["intendedUrlCount"], told["capturedUrlCount"], told["backendCounts"]) == (9, 7, {"native": 7})
    assert own_client.get("/api/coverage/example/2023").status_code == 404
    assert own_client.get("/api/coverage/nobody/2024").status_code == 404


def test_a_snapshot_tells_all_its_fields(archive: Archive, client: Client) -> None:
    number = _snapshot(archive, "https://example.org/notes?page=2")

    told = client.get(f"/api/snapshot/{number}").json()

    assert told == {
        "id": number, "title": "Notes", "sourceCode": "example", "sourceName": "Example", "language": told["language"],
        "captureDate": "2024-03-01", "captureTimestamp": "2024-03-01T12:00:00Z", "jobId": told["jobId"],
        "originalUrl": "https://example.org/notes?page=2", "snippet": told["snippet"],
        "rawSnapshotUrl": f"/api/snapshots/raw/{number}", "captureBackend": "native", "captureFidelity": "high",
        "mimeType": "text/html", "statusCode": 200, "author": None, "publishedAt": None, "modifiedAt": None,
        "keywords": [], "wordCount": told["wordCount"], "pageType": "other", "noise": None, "noiseEvidence": None,
        "browseUrl": f"http://replay.localhost:8060/web/20240301120000/https://example.org/notes?page=2#ha_snapshot={number}",
    }  # fmt: skip


def test_provenance_names_run_writer_and_record(archive: Archive, client: Client) -> None:
    number = _snapshot(archive, "https://example.org/notes?page=2")

    told = client.get(f"/api/snapshots/{number}/provenance").json()

    assert (told["captureBackend"], told["captureFidelity"]) == ("native", "high")
    assert told["executionId"] == client.get(f"/api/snapshot/{number}").json()["jobId"]
    assert "holdfast" in told["warcInfo"]["software"].lower()
    assert told["warcFile"].endswith(".warc.gz")
    assert (told["rawSnapshotPath"], told["warcLength"] > 0) == (f"/api/snapshots/raw/{number}", True)
    assert client.get("/api/snapshots/999999999/provenance").status_code == 404


def test_provenance_shows_flags_to_operators_only(archive: Archive, client: Client) -> None:
    number = _snapshot(archive, "https://example.org/notes?page=2")
    with archive.database.write() as session:
        snapshot = session.get_one(Snapshot, number)
        run = session.get_one(Execution, snapshot.execution_id)
        run.config = {**run.config, "zimit_passthrough_args": ["--lang"], "robots": "obey"}

    with asking(archive, as_admin=False) as reader:
        shown, hidden = (one.get(f"/api/snapshots/{number}/provenance").json() for one in (client, reader))

    assert shown["settings"] == {**hidden["settings"], "zimit_passthrough_args": ["--lang"]}
    assert hidden["settings"]["robots"] == "obey"
    assert "operator" not in hidden["warcInfo"]


def test_a_snapshot_tells_what_the_page_says_of_itself(tmp_path: Path, migrated_url: str) -> None:
    body = (
        "<title>Tides</title><meta name=author content=Ann><meta name=keywords content='tides, boats'>"
        "<meta property=article:published_time content=2024-01-02><article><p>" + "Words of it. " * 60
    )
    url = "https://example.org/tides"
    built = build_archive(tmp_path / "home", [Shot(url=url, body=body)], database_url=migrated_url)
    with closing(built.database), asking(built) as asker:
        told = asker.get(f"/api/snapshot/{_snapshot(built, url)}").json()

    assert (told["author"], told["keywords"], told["pageType"]) == ("Ann", ["tides", "boats"], "article")
    assert (told["publishedAt"], told["modifiedAt"], told["wordCount"]) == ("2024-01-02T00:00:00Z", None, 180)


def test_latest_is_the_newest_good_capture_of_the_same_page(archive: Archive, client: Client) -> None:
    first, picture = _snapshot(archive, _HOME), _snapshot(archive, "https://example.org/mark.png")

    assert client.get(f"/api/snapshots/{first}/latest").json() == {
        "found": True, "snapshotId": _snapshot(archive, _HOME, days_later(10)),
        "captureTimestamp": "2024-03-11T12:00:00Z", "mimeType": "text/html",
    }  # fmt: skip
    assert client.get(f"/api/snapshots/{picture}/latest?requireHtml=1").json()["found"] is False
    assert client.get(f"/api/snapshots/{picture}/latest?requireHtml=0").json()["snapshotId"] == picture


@pytest.mark.parametrize(
    ("params", "url"),
    [({"url": _HOME, "timestamp": "20240302000000"}, _HOME), ({"url": "http://www.example.org"}, _HOME),
     ({"url": "http://example.org/notes"}, "https://example.org/notes?page=2"),
     ({"url": "https://www.example.org/notes?page=7"}, "https://example.org/notes?page=2"),
     ({"url": "https://example.org/unknown"}, None), ({"url": _HOME, "jobId": "999"}, None)],
)  # fmt: skip
def test_an_address_resolves_to_its_capture(client: Client, params: dict[str, str], url: str | None) -> None:
    told = client.get("/api/replay/resolve", params=params).json()

    assert told["resolvedUrl"] == url
    assert told["found"] is (url is not None)


def test_resolving_keeps_to_a_crawl(archive: Archive, client: Client) -> None:
    job = client.get(f"/api/snapshot/{_snapshot(archive, _HOME)}").json()["jobId"]

    told = client.get("/api/replay/resolve", params={"url": _HOME, "jobId": job}).json()

    assert told["snapshotId"] == _snapshot(archive, _HOME)


def test_health_counts_with_details(client: Client) -> None:
    told = client.get("/api/health?details=1").json()

    assert told["status"] == "ok"
    assert told["checks"].pop("disk") in ("ok", "low"), "as this machine's disks are"
    assert told["checks"] == {"db": "ok", "jobs": {"completed": 3}, "snapshots": {"total": 6}, "writes": "ok"}
    assert "jobs" not in client.get("/api/health").json()["checks"]


def test_the_first_page_leads_to_every_source(own: Archive, own_client: Client) -> None:
    with own.database.write() as session:
        session.query(Source).where(Source.code == "other").one().name = '<b onclick="x">Other</b>'

    page = own_client.get("/").text

    assert "6 captures of 5 pages from 2 sources" in page
    assert f"/web/20240311120000/{_HOME}" in page
    assert "<b onclick" not in page


def test_metrics_have_the_names_of_the_documents(client: Client) -> None:
    answer = client.get("/metrics")

    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    for line in ('holdfast_jobs_total{status="completed"} 3.0', "holdfast_snapshots_total 6.0",
                 'holdfast_jobs_cleanup_status_total{cleanup_status="none"} 3.0',
                 'holdfast_snapshots_total{source="example"} 5.0', "holdfast_pages_total 5.0",
                 "holdfast_jobs_pages_crawled_total 0.0", "holdfast_jobs_pages_failed_total 0.0",
                 "holdfast_jobs_storage_scanned_total 0.0", "holdfast_jobs_tmp_bytes_total 0.0",
                 "holdfast_scheduler_success_rate 1.0", "holdfast_scheduler_executions_total 0.0",
                 'holdfast_alert_firing{alert="crawl_stalled"} 0.0',
                 "holdfast_crawl_progress_age_seconds 0.0"):  # fmt: skip
        assert line in answer.text.splitlines()
    sizes = dict(
        line.rsplit(" ", 1) for line in answer.text.splitlines() if line.startswith("holdfast_jobs_warc_bytes")
    )
    assert float(sizes['holdfast_jobs_warc_bytes_total{source="example"}']) > 0
    newest = next(line for line in answer.text.splitlines() if line.startswith("holdfast_pages_updated_at_max_seconds"))
    assert float(newest.split()[1]) > 1_600_000_000


def test_a_column_that_is_gone_is_a_database_of_another_version(own: Archive, own_client: Client) -> None:
    number = _snapshot(own, _HOME)
    changes = ["ALTER TABLE snapshots RENAME COLUMN fidelity TO faithfulness",
               "UPDATE alembic_version SET version_num = '9999'"]  # fmt: skip
    undone = ["ALTER TABLE snapshots RENAME COLUMN faithfulness TO fidelity",
              f"UPDATE alembic_version SET version_num = '{SCHEMA}'"]  # fmt: skip
    with own.database.engine.begin() as connection:
        for statement in changes:
            connection.exec_driver_sql(statement)
    try:
        answer = own_client.get(f"/api/snapshot/{number}")
    finally:
        with own.database.engine.begin() as connection:
            for statement in undone:
                connection.exec_driver_sql(statement)

    assert (answer.status_code, answer.json()["code"]) == (503, "schema_mismatch")
    assert "upgrade holdfast" in answer.json()["detail"]
    assert own_client.get(f"/api/snapshot/{number}").status_code == 200


@pytest.mark.parametrize(
    ("asked", "status"), [("0", 404), ("9223372036854775807", 404), ("9223372036854775808", 422), ("٣", 422), ("", 404)]
)
def test_snapshot_route_rejects_an_id_that_is_unknown_or_no_number(client: Client, asked: str, status: int) -> None:
    assert client.get(f"/api/snapshot/{asked}").status_code == status
