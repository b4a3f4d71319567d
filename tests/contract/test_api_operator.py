"""What operators do and see over HTTP that only commands could before, on both databases."""

from __future__ import annotations

import os
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import select

from holdfast import config
from holdfast.clock import SystemClock
from holdfast.db import connect
from holdfast.db.engine import Database
from holdfast.db.models import Feed, WarcFile
from holdfast.db.raw import DatabaseClock
from holdfast.processes.owners import OwnerProcess
from holdfast.processes.runfile import RunFile
from holdfast.sources.contact import remember_contact
from holdfast.sources.queries import find_source
from holdfast.wiring.archive import Archive
from tests.api_bed import Server
from tests.client import asking
from tests.operations_bed import TUS, captured, new_upload, operation, run_waiting, send

ADMIN = "/api/admin"
_PAGE = "https://uploaded.example/two"


def test_a_page_is_previewed_taken_down_found_and_brought_back(server: Server) -> None:
    captured(server)
    preview = server.get(f"{ADMIN}/takedowns/preview", params={"subject": "HTTP://uploaded.example/two#part"}).json()
    made = server.ask("POST", f"{ADMIN}/takedowns", subject=_PAGE, reason="asked for by its author")
    twice = server.ask("POST", f"{ADMIN}/takedowns", subject=_PAGE, reason="asked for by its author")
    hidden = server.get("/api/search", params={"q": "upload", "pageSize": 50}).json()
    found = server.get(f"{ADMIN}/takedowns", params={"state": "in_force", "search": "AUTHOR"}).json()
    number = made.json()["id"]
    one = server.get(f"{ADMIN}/takedowns/{number}").json()
    undone = server.ask("POST", f"{ADMIN}/takedowns/{number}/undo")
    again = server.ask("POST", f"{ADMIN}/takedowns/{number}/undo")
    lifted = server.get(f"{ADMIN}/takedowns", params={"state": "lifted"}).json()

    assert (preview["kind"], preview["captures"], preview["sources"]) == ("page", 2, {"up": 2})
    assert {row["url"] for row in preview["sample"]} >= {_PAGE}
    assert preview["inForce"] == []
    assert (made.status_code, made.json()["captures"], made.json()["state"]) == (201, 2, "in_force")
    assert made.headers["location"] == f"{ADMIN}/takedowns/{number}"
    assert (twice.status_code, twice.json()["code"]) == (409, "conflict")
    assert not any("/two" in row["originalUrl"] for row in hidden["results"])
    assert [row["id"] for row in found["items"]] == [number]
    assert one["hiddenBy"] == "admin@127.0.0.1"
    assert (undone.status_code, undone.json()["state"], undone.json()["shownBy"]) == (200, "lifted", "admin@127.0.0.1")
    assert (again.status_code, again.json()["code"]) == (409, "takedown_lifted")
    assert [row["id"] for row in lifted["items"]] == [number]
    done = [(action, subject) for _, action, subject in server.deeds() if action.startswith("snapshot.")]
    assert done == [("snapshot.hidden", _PAGE), ("snapshot.shown", _PAGE)]


def test_a_takedown_that_cannot_be_is_refused(server: Server) -> None:
    assert server.get(f"{ADMIN}/takedowns/preview", params={"subject": "12345"}).status_code == 404
    assert server.get(f"{ADMIN}/takedowns/preview", params={"subject": "no address"}).status_code == 422
    long = "https://uploaded.example/" + "x" * 5000
    assert server.get(f"{ADMIN}/takedowns/preview", params={"subject": long}).json()["captures"] == 0
    assert server.ask("POST", f"{ADMIN}/takedowns", subject=long, reason="as it was previewed").status_code == 201
    assert server.ask("POST", f"{ADMIN}/takedowns", subject="7", reason="no").json()["field"] == "reason"
    assert server.ask("POST", f"{ADMIN}/takedowns", subject="7", reason="because").status_code == 404
    assert server.get(f"{ADMIN}/takedowns/9").json()["code"] == "takedown_not_found"
    assert server.get(f"{ADMIN}/takedowns", params={"cursor": "x"}).json()["code"] == "bad_cursor"


def test_feeds_are_listed_with_their_health_added_switched_and_polled(server: Server) -> None:
    server.source("on", feeds=True)
    server.source("off")
    added = server.ask("POST", f"{ADMIN}/feeds", source="on", url="https://on.example/news.rss")
    taken = server.ask("POST", f"{ADMIN}/feeds", source="on", url="https://on.example/news.rss")
    number = added.json()["id"]
    listed = server.get(f"{ADMIN}/feeds", params={"source": "on", "disabled": False}).json()
    disabled = server.ask("POST", f"{ADMIN}/feeds/{number}/disable").json()
    enabled = server.ask("POST", f"{ADMIN}/feeds/{number}/enable").json()
    polled = server.ask("POST", f"{ADMIN}/feeds/poll", source="on")
    searched = server.ask("POST", f"{ADMIN}/feeds/discover", source="on")
    refused = server.ask("POST", f"{ADMIN}/feeds/poll", source="off")
    nobody = server.ask("POST", f"{ADMIN}/feeds/poll", source="none")
    detail = server.get(f"{ADMIN}/feeds/{number}").json()
    removed = server.ask("DELETE", f"{ADMIN}/feeds/{number}")

    assert (added.status_code, added.json()["state"], added.json()["origin"]) == (201, "new", "configured")
    assert taken.status_code == 409
    assert [row["id"] for row in listed["items"]] == [number]
    assert (disabled["state"], disabled["trouble"], enabled["state"]) == ("disabled", "by_hand", "new")
    assert (polled.status_code, polled.json()["jobState"]) == (202, "scheduled")
    assert searched.status_code == 202
    assert (refused.status_code, refused.json()["code"]) == (409, "feeds_off")
    assert nobody.status_code == 404
    assert detail["items"] == []
    assert (removed.status_code, server.get(f"{ADMIN}/feeds/{number}").status_code) == (204, 404)


def test_every_feed_of_every_health_can_be_shown(server: Server) -> None:
    source_id = server.source("on", feeds=True)
    words = (None, "gone", "rate_limited", "by_hand", "backlog", "unexpected")
    with server.archive.database.write() as session:
        for number, word in enumerate(words):
            session.add(
                Feed(
                    source_id=source_id,
                    url=f"https://on.example/{number}",
                    url_hash=number,
                    kind="sitemap",
                    origin="index",
                    created_at=server.clock.now(),
                    last_polled_at=server.clock.now(),
                    last_error_type=word,
                    disabled_at=server.clock.now() if word in ("gone", "by_hand") else None,
                )
            )
    first = server.get(f"{ADMIN}/feeds", params={"limit": 4}).json()
    rest = server.get(f"{ADMIN}/feeds", params={"limit": 4, "cursor": first["next"]}).json()

    states = [row["state"] for row in [*first["items"], *rest["items"]]]
    assert states == ["ok", "disabled", "troubled", "disabled", "backlog", "troubled"]
    assert rest["next"] is None


def test_an_ad_hoc_crawl_makes_a_source_for_its_host_and_waits_for_a_worker(server: Server) -> None:
    remember_contact(server.archive.settings, "us@example.org")
    made = server.ask("POST", f"{ADMIN}/crawls", urls=["https://www.new-site.example/a"], config={"max_pages": 5})
    again = server.ask("POST", f"{ADMIN}/crawls", urls=["https://www.new-site.example/b"])
    named = server.ask("POST", f"{ADMIN}/crawls", urls=["https://elsewhere.example/"], source=made.json()["source"])
    bad = server.ask("POST", f"{ADMIN}/crawls", urls=["https://x.example/", "mailto:a@b.example"])
    worse = server.ask("POST", f"{ADMIN}/crawls", urls=["https://x.example/"], config={"max_pagse": 5})
    twice = server.ask("POST", f"{ADMIN}/crawls", urls=["https://x.example/"], config={"seeds": ["https://y.example/"]})
    job = server.get(made.headers["location"]).json()

    assert (twice.status_code, twice.json()["field"]) == (422, "config.seeds")
    assert (made.status_code, made.json()["source"], made.json()["isNewSource"]) == (202, "new-site-example", True)
    assert made.json()["state"] == "pending"
    assert (again.json()["source"], again.json()["isNewSource"]) == ("new-site-example", False)
    assert named.status_code == 202
    assert (bad.status_code, bad.json()["field"]) == (422, "urls[1]")
    assert (worse.status_code, worse.json()["field"]) == (422, "config.max_pagse")
    assert (job["type"], job["config"]["max_pages"]) == ("adhoc", 5)
    assert ("admin@127.0.0.1", "job.created", f"job {made.json()['jobId']}") in server.deeds()


def test_crawl_that_could_never_start_is_refused(server: Server) -> None:
    anonymous = server.ask("POST", f"{ADMIN}/crawls", urls=["https://new-site.example/"])
    remember_contact(server.archive.settings, "us@example.org")
    made = server.ask("POST", f"{ADMIN}/crawls", urls=["https://new-site.example/"])
    with server.archive.database.write() as session:
        find_source(session, made.json()["source"]).enabled = False
    disabled = server.ask("POST", f"{ADMIN}/crawls", urls=["https://new-site.example/"])

    assert (anonymous.status_code, anonymous.json()["code"]) == (422, "contact_missing")
    assert made.status_code == 202
    assert (disabled.status_code, disabled.json()["code"]) == (409, "source_disabled")
    assert "enable it first" in disabled.text


@pytest.mark.parametrize("path", [f"{ADMIN}/crawls", "/api/frontier/add", "/api/frontier/seed"])
@pytest.mark.parametrize("address", ["http://10.0.0.1/", "http://[::1]/x", "http://0x7f.1/"])
def test_an_address_that_would_never_be_dialled_is_refused_as_a_crawl_refuses_it(
    server: Server, path: str, address: str
) -> None:
    answer = server.ask("POST", path, urls=["https://x.example/", address])

    assert (answer.status_code, answer.json()["field"]) == (422, "urls[1]")
    assert "it is not public" in answer.text
    assert "HOLDFAST_ALLOW_NETWORKS" in answer.text
    assert server.get("/api/v1/sources").json()["sources"] == [], "nothing was made"


def test_a_run_is_asked_to_stop(server: Server) -> None:
    job_id = server.recurring()
    server.bed.set_next_run(job_id, server.clock.now())
    server.bed.party.scheduler.tick()
    held = server.bed.party.taken()
    stopped = server.ask("POST", f"{ADMIN}/crawls/stop", execution=held.execution_id)
    nothing = server.ask("POST", f"{ADMIN}/crawls/stop", execution=99_999)

    assert stopped.status_code == 202, stopped.text
    assert stopped.json()["executionIds"] == [held.execution_id]
    assert [one["executionId"] for one in stopped.json()["held"]] == [held.execution_id]
    assert nothing.status_code == 404
    deeds = [deed for deed in server.deeds() if deed[1] == "execution.stop_asked"]
    assert deeds == [("admin@127.0.0.1", "execution.stop_asked", f"execution {held.execution_id}")]


def test_an_ended_run_is_neither_stopped_nor_paused(server: Server) -> None:
    job_id = server.recurring()
    server.bed.run_once(job_id)
    execution_id = server.bed.executions(job_id)[-1].id
    answers = [
        server.ask("POST", f"{ADMIN}/crawls/{action}", execution=execution_id) for action in ("stop", "pause", "resume")
    ]

    assert [answer.status_code for answer in answers] == [409, 409, 409]
    assert answers[0].json()["code"] == "not_stoppable"


def test_processes_at_work_are_shown_with_their_run(server: Server) -> None:
    job_id = server.recurring()
    server.bed.set_next_run(job_id, server.clock.now())
    server.bed.party.scheduler.tick()
    execution_id = server.bed.party.taken().execution_id
    raw_db, folder = connect(server.archive.settings.database), server.archive.home.resolve() / "run"
    run = RunFile(folder)
    owner = OwnerProcess(raw_db, server.clock, run=run, kind="process", execution_id=execution_id)
    try:
        server.clock.advance(5)
        shown = server.get(f"{ADMIN}/workers", params={"kind": "process"}).json()
    finally:
        owner.end()
        raw_db.close()
    after = server.get(f"{ADMIN}/workers", params={"kind": "process"}).json()

    (one,) = shown["items"]
    assert (one["pid"], one["isAlive"], one["ageSeconds"]) == (os.getpid(), True, 5.0)
    assert [(run["id"], run["source"]) for run in one["executions"]] == [(execution_id, "ex")]
    assert after["items"] == []


def test_settings_in_force_are_shown_with_their_origin_and_without_secrets(server: Server) -> None:
    shown = {row["name"]: row for row in server.get(f"{ADMIN}/settings").json()["items"]}
    part = server.get(f"{ADMIN}/settings", params={"search": "feeds", "limit": 2}).json()

    assert shown["HOLDFAST_UPLOADS_MAX_BYTES"] == {
        "name": "HOLDFAST_UPLOADS_MAX_BYTES",
        "value": 100 * 1024**3,
        "origin": "default",
        "isSecret": False,
        "description": shown["HOLDFAST_UPLOADS_MAX_BYTES"]["description"],
    }
    assert shown["HOLDFAST_HOME"]["origin"] == "command"
    assert shown["HOLDFAST_API_RATE_LIMITING"]["value"] is False
    assert shown["HOLDFAST_API_ADMIN_TOKEN"]["isSecret"] is True
    assert len(part["items"]) == 2
    assert part["next"] is not None


def test_storage_and_index_are_shown(server: Server) -> None:
    captured(server)
    storage = server.get(f"{ADMIN}/storage-state").json()
    index = server.get(f"{ADMIN}/index").json()
    broken = server.get(f"{ADMIN}/index/broken-files").json()

    assert storage["sources"][0]["source"] == "up"
    assert storage["warcFiles"] == storage["sources"][0]["files"] == 1
    assert [(day["files"], day["bytes"]) for day in storage["growth"]] == [(1, storage["warcBytes"])]
    with server.archive.database.read() as session:
        sealed_at = session.scalars(select(WarcFile.sealed_at)).one()
    assert sealed_at is not None
    assert storage["growth"][0]["day"] == sealed_at.date().isoformat()
    assert storage["volumes"][0]["totalBytes"] > storage["volumes"][0]["freeBytes"] > 0
    assert index["files"] == {"pending": 0, "running": 0, "indexed": 1, "failed": 0}
    assert index["search"]["waiting"] == 0
    assert broken["items"] == []


class Fast(SystemClock):
    """The clock of a machine that is five minutes ahead."""

    def now(self) -> datetime:
        return super().now() + timedelta(minutes=5)


@pytest.mark.postgres
def test_a_server_whose_clock_is_fast_calls_no_worker_silent(migrated_postgres: str, tmp_path: Path) -> None:
    settings = config.load(home=tmp_path).model_copy(update={"database_url": migrated_postgres})
    with (
        closing(Database(migrated_postgres)) as database,
        closing(connect(migrated_postgres)) as raw_db,
        closing(RunFile(tmp_path / "run")) as run,
        asking(Archive(settings=settings, database=database, clock=Fast())) as client,
    ):
        OwnerProcess(raw_db, DatabaseClock(raw_db), run=run, kind="worker", execution_id=None)
        [shown] = client.get(f"{ADMIN}/workers").json()["items"]

    assert shown["isAlive"] is True
    assert shown["silentSeconds"] < 60


def test_an_edition_is_planned_reported_and_refused_over_http(server: Server) -> None:
    server.source("hc")
    dry = server.ask("POST", f"{ADMIN}/annual-editions/plan", year=server.clock.now().year, sources=["hc"])
    made = server.ask("POST", f"{ADMIN}/annual-editions/plan", year=server.clock.now().year, sources=["hc"], apply=True)
    (edition,) = server.get(f"{ADMIN}/annual-editions").json()["items"]
    place = f"{ADMIN}/annual-editions/{edition['editionId']}"
    frozen = server.ask("POST", f"{place}/freeze", again=False)
    busy = server.client.post(f"{place}/report")
    run_waiting(server)
    report = server.client.post(f"{place}/report")
    run_waiting(server)
    compared = server.ask("POST", f"{place}/compare", earlierYear=edition["year"] - 1)
    wrong = server.ask("POST", f"{place}/compare", earlierYear=edition["year"])

    assert (dry.json()["applied"], dry.json()["created"]) == (False, 1)
    assert (made.json()["applied"], made.json()["entries"][0]["action"]) == (True, "create")
    assert (frozen.status_code, busy.status_code, busy.json()["code"]) == (202, 409, "operation_running")
    assert operation(server, frozen.json()["id"])["errorCode"] == "edition_not_ready"
    assert operation(server, report.json()["id"])["state"] == "done"
    assert compared.status_code == 404
    assert wrong.json()["field"] == "earlierYear"


def test_reports_are_filtered_read_piece_by_piece_and_triaged_with_notes(server: Server) -> None:
    for number in range(3):
        server.ask(
            "POST",
            "/api/reports",
            category="takedown" if number else "missing_snapshot",
            description=f"this is a long enough description, number {number}",
            originalUrl=f"https://ex.example/{number}",
        )
    first = server.get(f"{ADMIN}/reports", params={"category": "takedown", "limit": 1}).json()
    rest = server.get(f"{ADMIN}/reports", params={"category": "takedown", "cursor": first["next"]}).json()
    number = rest["items"][0]["reportId"]
    done = server.ask("PATCH", f"{ADMIN}/reports/{number}", status="triaged", notes="100% looked at")
    found = server.get(f"{ADMIN}/reports", params={"search": "100% LOOKED"}).json()
    by_address = server.get(f"{ADMIN}/reports", params={"search": "ex.example/0"}).json()

    assert (first["total"], first["limit"], len(first["items"]), rest["next"]) == (2, 1, 1, None)
    assert first["items"][0]["reportId"] > number
    assert (done.json()["status"], done.json()["notes"]) == ("triaged", "100% looked at")
    assert [row["reportId"] for row in found["items"]] == [number]
    assert [row["category"] for row in by_address["items"]] == ["missing_snapshot"]


def test_the_audit_log_is_filtered_by_day_and_read_piece_by_piece(server: Server) -> None:
    server.source("one")
    server.clock.advance(86_400)
    server.source("two")
    today = f"{server.clock.now():%Y-%m-%d}"
    log = f"{ADMIN}/audit"
    first = server.get(log, params={"action": "source", "limit": 1}).json()
    rest = server.get(log, params={"action": "source", "limit": 1, "cursor": first["next"]}).json()
    late = server.get(log, params={"action": "source", "from": today}).json()
    early = server.get(log, params={"action": "source", "to": "2000-01-01"}).json()
    ever = server.get(log, params={"action": "source", "from": "0001-01-01", "to": "9999-12-31"}).json()

    assert [row["subject"] for row in [*first["items"], *rest["items"]]] == ["source two", "source one"]
    assert first["limit"] == 1
    assert [row["subject"] for row in late["items"]] == ["source two"]
    assert early["items"] == []
    assert len(ever["items"]) == 2


def test_what_is_no_piece_is_refused_before_it_is_read(server: Server) -> None:
    place = new_upload(server, 10)
    form = send(server, place, b"--x\r\n", 0, **{"Content-Type": "multipart/form-data; boundary=" + "x" * 10_000})
    parts = server.client.post(f"{ADMIN}/uploads", files={"file": b"abc"}, headers=TUS)
    deep = server.client.post(
        f"{ADMIN}/takedowns", content=b"[" * 100_000, headers={"Content-Type": "application/json"}
    )

    assert (form.status_code, parts.status_code, deep.status_code) == (415, 415, 422)
    assert server.get(place).json()["received"] == 0
