"""Sources, logs, events, the scheduler and the administrator's jobs over HTTP, on both databases."""

from __future__ import annotations

import asyncio
import gzip
import json
from datetime import timedelta
from typing import Any, Literal

import pytest
import yaml  # type: ignore[import-untyped]
from sqlalchemy import update

from holdfast.config import JobSettings
from holdfast.db.models import Execution, Job
from holdfast.jobs.endings import Counts, RunEnding, RunResult
from holdfast.jobs.journal import LogBook
from holdfast.jobs.leases import ExecutionLease
from holdfast.jobs.states import State
from holdfast.jobs.views.listing import ADMIN_STATES
from tests.api_bed import CONFIG_FAULT, Server
from tests.jobs_bed import failed

CONFIG = {"seeds": ["https://ex.example/"]}
YAML = {"content-type": "application/yaml"}


def test_a_source_is_made_read_replaced_edited_and_deleted(server: Server) -> None:
    made = server.ask("POST", "/api/v1/sources", code="ex", config={**CONFIG, "max_depth": 9}, description="About it")
    id = made.json()["id"]
    path = f"/api/v1/sources/{id}"
    read = server.get(path).json()
    back = server.client.request("PUT", path, json=read)
    edited = server.ask("PATCH", path, name="Example", config={"delay_s": 5, "max_depth": None})
    replaced = server.ask("PUT", path, config=CONFIG)
    deleted = server.ask("DELETE", path)

    assert made.status_code == 201
    assert (read["code"], read["base_url"], read["config"]["max_depth"]) == ("ex", "https://ex.example/", 9)
    assert "max_depth" in read["warnings"][0]
    assert (back.status_code, {**back.json(), "updated_at": 0}) == (200, {**read, "updated_at": 0})
    assert (edited.json()["name"], edited.json()["config"]) == ("Example", {**CONFIG, "delay_s": 5.0})
    assert (replaced.json()["name"], replaced.json()["description"], replaced.json()["config"]) == ("ex", None, CONFIG)
    assert (deleted.json(), server.get(path).status_code) == ({"message": "Source deleted"}, 404)


@pytest.mark.parametrize(
    ("method", "path", "body", "field"),
    [("POST", "", {"code": "Bad Code", "config": CONFIG}, "code"),
     ("POST", "", {"code": "ex", "config": CONFIG}, "already"), ("POST", "", {"code": "new"}, "config.seeds"),
     ("POST", "", {"code": "new", "config": {**CONFIG, "max_depht": 1}}, "config.max_depht"),
     ("POST", "", {"code": "new", "config": {**CONFIG, "robots": "ignore"}}, "config.robots_reason"),
     ("POST", "", {"code": "new", "config": {**CONFIG, "include": ["(?=x)"]}}, "config.include"),
     ("POST", "", {"code": "new", "config": {**CONFIG, "backend": "zimit", "zimit": {
         "passthrough_args": ["--nonsense"]}}}, "nonsense"),
     ("POST", "", {"code": "new", "enabled": "yes", "config": CONFIG}, "enabled"),
     ("PUT", "/1", {"code": "Other", "config": CONFIG}, "code"), ("PATCH", "/1", {"code": "Other"}, "code"),
     ("PATCH", "/1", {"name": ""}, "name"), ("PATCH", "/1", {"name": None}, "name"),
     ("PATCH", "/1", {"config": None}, "config"), ("PATCH", "/1", {"config": {"scope": 7}}, "config.scope"),
     ("PATCH", "/1", {"base_url": "javascript:alert(1)"}, "base_url"), ("PATCH", "/1", {"nam": "x"}, "nam")],
)  # fmt: skip
def test_a_source_that_cannot_be_kept_is_400_with_its_field(
    one_source: Server, method: str, path: str, body: dict[str, Any], field: str
) -> None:
    before = one_source.get("/api/v1/sources").json()

    answer = one_source.client.request(method, f"/api/v1/sources{path}", json=body)

    assert answer.status_code == 400, answer.text
    assert field in answer.json()["error"]
    assert one_source.get("/api/v1/sources").json() == before


def test_a_disabled_source_pauses_its_job_and_an_enabled_one_resumes_it(server: Server) -> None:
    job_id = server.recurring()
    off = server.ask("POST", "/api/v1/sources/1/disable").json()
    paused = server.get(f"/api/v1/jobs/{job_id}").json()
    on = server.ask("PATCH", "/api/v1/sources/1", enabled=True).json()
    resumed = server.get(f"/api/v1/jobs/{job_id}").json()
    listed = server.get("/api/v1/sources?enabled=false").json()

    assert (off["enabled"], off["jobs"], paused["status"], paused["paused_by"]) == (False, 1, "paused", "source")
    assert (on["enabled"], resumed["status"], listed["total"]) == (True, "scheduled", 0)
    refused = server.ask("DELETE", "/api/v1/sources/1")
    assert (refused.status_code, refused.json()["code"]) == (400, "source_in_use")


def test_sources_come_and_go_as_yaml_toml_and_json(server: Server) -> None:
    server.source("one", max_depth=2)
    server.source("two")
    kept = server.get("/api/v1/sources").json()["sources"]
    for form in ("yaml", "toml", "json"):
        written = server.get(f"/api/v1/sources/export?format={form}")
        assert written.headers["content-disposition"] == f'attachment; filename="sources.{form}"'
        same = server.client.post("/api/v1/sources/import", content=written.content,
                                  headers={"content-type": f"application/{form}"})  # fmt: skip
        assert (same.status_code, same.json()["unchanged"]) == (200, ["one", "two"]), same.text
    entries = yaml.safe_load(server.get("/api/v1/sources/export?code=two").text)["sources"]
    entries[0] |= {"enabled": False}
    fresh = {"sources": [*entries, {"code": "new", "config": {"seeds": ["https://new.example/"]}}]}
    job_id = server.ask("POST", "/api/v1/jobs", source_id=kept[1]["id"], url="https://two.example/",
                        interval_minutes=60, schedule_enabled=True).json()["id"]  # fmt: skip

    planned = server.client.post("/api/v1/sources/import?dry_run=true", json=fresh).json()
    between = server.get("/api/v1/sources").json()["total"]
    done = server.client.post("/api/v1/sources/import", json=fresh).json()

    assert (planned["created"], planned["updated"], planned["dry_run"], between) == (["new"], ["two"], True, 2)
    assert (done["created"], done["updated"]) == (["new"], ["two"])
    assert server.get(f"/api/v1/jobs/{job_id}").json()["status"] == "paused", "jobs follow an import"


def test_an_import_has_one_of_the_few_places_of_heavy_work_or_is_asked_to_come_again(
    one_source: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    heavy = one_source.client.app.state.heavy  # type: ignore[attr-defined]
    with monkeypatch.context() as crowded:
        crowded.setattr(heavy._steps, "_waiting", 8)
        busy = one_source.client.post("/api/v1/sources/import?dry_run=true", json={"sources": []})
        reading = one_source.get("/api/v1/sources")
    after = one_source.client.post("/api/v1/sources/import?dry_run=true", json={"sources": []})

    assert (busy.status_code, busy.json()["code"], int(busy.headers["retry-after"]) > 0) == (503, "server_busy", True)
    assert (reading.status_code, after.status_code) == (200, 200)


@pytest.mark.parametrize(
    ("content", "kind", "field"),
    [(b"sources: [{code: x}]", "yaml", "sources[0].config.seeds"), (b"sources: &a [*a]", "yaml", "aliases"),
     (b"sources: [{1: 2}]", "yaml", "names are text"), (b"sources: [{null: 2}]", "yaml", "names are text"),
     (b"sources: !!python/object:os.system x", "yaml", "YAML"), (b"[" * 5000, "yaml", "YAML"),
     (b"\xff\xfe", "yaml", "UTF-8"), (b"sources = 1", "toml", "sources"), (b'{"sources": {}}', "json", "sources"),
     (b'{"sources": [{"code": "x\\u0000"}]}', "json", "NUL"), (b'{"sources": [NaN]}', "json", "finite"),
     (b"", "json", "JSON"), (b"sources: [" + b"{}, " * 501 + b"]", "yaml", "portions"),
     (b'{"sources": [1]}', "json", "sources[0]")],
)  # fmt: skip
def test_a_file_that_is_none_of_ours_is_refused_whole(
    one_source: Server, content: bytes, kind: str, field: str
) -> None:
    answer = one_source.client.post("/api/v1/sources/import", content=content,
                                    headers={"content-type": f"application/{kind}"})  # fmt: skip

    assert answer.status_code == 400, answer.text
    assert field in answer.json()["error"]
    assert one_source.get("/api/v1/sources").json()["total"] == 1


def test_a_file_is_read_before_anybody_waits_for_it_at_the_desk(one_source: Server) -> None:
    state = one_source.client.app.state  # type: ignore[attr-defined]
    free, state.turn = state.turn, asyncio.Semaphore(0)  # somebody else writes, for ever
    try:
        answer = one_source.client.post("/api/v1/sources/import", content=b"sources: [{code: x}]", headers=YAML)
    finally:
        state.turn = free

    assert (answer.status_code, answer.json()["code"]) == (400, "source_refused"), "its turn did not come, and need not"


def test_only_the_import_takes_anything_but_json(one_source: Server) -> None:
    for path in ("/api/v1/jobs", "/api/v1/sources"):
        assert one_source.client.post(path, content=b"a: 1", headers=YAML).status_code == 415


def _running(server: Server, code: str = "ex") -> tuple[int, ExecutionLease]:
    job_id = server.job(code)
    server.bed.party.scheduler.tick()
    return job_id, server.bed.party.taken()


def test_a_log_is_read_while_it_runs_and_downloaded_when_it_is_over(server: Server) -> None:
    job_id, lease = _running(server)
    book = LogBook(server.bed.database, server.clock, lease.execution_id, JobSettings())
    path = f"/api/v1/jobs/{job_id}/logs"
    for number in range(5):
        book.write("warning" if number == 3 else "info", "crawler.fetch", f"page {number}", code=200)
    book.flush()
    live = server.get(path).json()
    first = server.get(f"{path}/tail?limit=2").json()
    book.write("error", "crawler.error", "it broke é", status=500)
    book.flush()
    newer = server.get(f"{path}/tail?after={first['next_after']}").json()
    nothing = server.get(f"{path}/tail?after={newer['next_after']}").json()
    loud = server.get(f"{path}/view?level=warning").json()
    paged = server.get(f"{path}/view?limit=4").json()
    server.bed.party.leases.settle(lease, RunEnding(result=RunResult.COMPLETED))
    over = server.get(path).json()
    file = server.get(f"{path}/download?execution=1")
    lines = [json.loads(line) for line in gzip.decompress(file.content).decode().splitlines()]

    assert (live["has_live_logs"], live["stream_v2_available"]) == (True, True)
    assert live["executions"][0]["log_object_key"] == f"logs/{job_id}/1.log.gz"
    assert [line["message"] for line in first["lines"]] == ["page 3", "page 4"]
    assert ([line["message"] for line in newer["lines"]], nothing["lines"]) == (["it broke é"], [])
    assert nothing["next_after"] == newer["next_after"]
    assert [line["level"] for line in loud["lines"]] == ["warning", "error"]
    assert (paged["line_count"], paged["total_lines"], paged["status"]) == (4, 6, "running")
    assert (over["has_live_logs"], over["executions"][0]["log_available"]) == (False, True)
    assert file.headers["content-type"] == "application/gzip"
    assert file.headers["content-disposition"] == f'attachment; filename="job-{job_id}-exec-1.log.gz"'
    assert [line["message"] for line in lines] == [*(f"page {number}" for number in range(5)), "it broke é"]
    assert set(lines[0]) == {"schema_version", "timestamp", "level", "category", "message", "job_id",
                             "execution_id", "fields"}  # fmt: skip
    part = server.get(f"{path}/download", headers={"range": "bytes=0-9"})
    head = server.client.request("HEAD", f"{path}/download")
    assert (part.status_code, part.content, part.headers["accept-ranges"]) == (200, file.content, "none")
    assert (head.status_code, head.content, head.headers["content-disposition"]) == (
        200, b"", file.headers["content-disposition"])  # fmt: skip
    for which, status in (("2", 404), ("x", 400), ("-1", 400), ("9" * 30, 400), ("²", 400)):
        assert server.get(f"{path}/download?execution={which}").status_code == status
    assert server.get(f"{path}/view?level=loud").status_code == 400


def test_a_run_without_lines_has_no_log_to_download(server: Server) -> None:
    job_id, _ = _running(server)

    assert server.get(f"/api/v1/jobs/{job_id}/logs/download").status_code == 404
    assert server.get(f"/api/v1/jobs/{job_id}/logs").json()["executions"][0]["log_available"] is False


def test_events_are_followed_by_asking_again(server: Server) -> None:
    job_id, lease = _running(server)
    other = server.job("other")
    first = server.get("/api/v1/events?limit=2").json()
    rest = server.get(f"/api/v1/events?after={first['next_after']}").json()
    server.bed.party.leases.settle(lease, RunEnding(result=RunResult.COMPLETED, counts=Counts(items_indexed=3)))
    news = server.get(f"/api/v1/events?after={rest['last_id']}&job_id={job_id}").json()
    quiet = server.get(f"/api/v1/events?after={rest['last_id']}&job_id={other}").json()

    assert [event["data"]["status"] for event in first["events"]] == ["pending", "pending"]
    assert [event["data"]["status"] for event in rest["events"]] == ["running", "pending"]
    assert [event["event"] for event in news["events"]] == ["job:completed", "job:status"]
    assert news["events"][0]["data"]["items_indexed"] == 3
    assert (quiet["events"], quiet["next_after"]) == ([], news["last_id"]), "what was looked at is not asked for again"


def test_preview_and_rebalance_agree_and_name_every_scheduled_job(server: Server) -> None:
    server.bed.run_once(once := server.job("once"), failed())
    ids = [server.recurring(f"s{number}", minutes=1440) for number in range(6)]
    short, paused = server.recurring("short", minutes=5), server.recurring("off")
    server.ask("POST", f"/api/v1/jobs/{paused}/pause")
    heap = server.clock.now() + timedelta(hours=5)
    with server.bed.database.write() as session:
        session.execute(update(Job).where(Job.id.in_(ids)).values(next_run_at=heap, rhythm_at=heap, placed_at=None))
        session.execute(update(Job).where(Job.id == ids[0]).values(placed_at=server.clock.now()))

    before = server.get("/api/v1/scheduler/distribution").json()
    preview = server.ask("POST", "/api/v1/scheduler/rebalance/preview").json()
    rows = {job_id: server.row(job_id)["next_run_at"] for job_id in ids}
    done = server.ask("POST", "/api/v1/scheduler/rebalance").json()
    after = server.get("/api/v1/scheduler/distribution").json()
    again = server.ask("POST", "/api/v1/scheduler/rebalance/preview").json()

    assert preview == done
    assert set(rows.values()) == {heap}, "a preview changes nothing"
    assert len(done["moved"]) == 5
    assert {one["job_id"]: one["reason"] for one in done["skipped"]} == {
        ids[0]: "placement_cooldown", short: "interval_below_slot", once: "runs_once"}  # fmt: skip
    assert {one["job_id"] for one in (*done["moved"], *done["skipped"])} == {*ids, short, once}
    assert again["moved"] == []
    assert after["distribution_score"] == done["new_distribution_score"]
    assert after["peak_count"] < before["peak_count"]
    assert (before["window_hours"], before["slot_minutes"], len(before["hourly_distribution"])) == (24, 15, 24)
    assert (before["peak_hour"], before["peak_count"]) == (heap.hour, 6)
    assert max(slot["job_count"] for slot in before["slot_distribution"]) == 6
    assert max(slot["job_count"] for slot in after["slot_distribution"]) < 6


def test_the_schedulers_metrics_count_states_and_runs(server: Server) -> None:
    server.bed.run_once(server.job("a"))
    server.bed.run_once(server.job("b"), CONFIG_FAULT)
    found = server.get("/api/v1/scheduler/metrics").json()

    assert found["jobs"] == dict.fromkeys(State, 0) | {"completed": 1, "failed": 1}
    assert found["executions"] == {"total": 2, "average_duration_ms": 1000.0, "success_rate": 0.5}
    assert (found["stale_locks_cleared"], found["last_check_at"]) == (0, None)
    assert found["warnings"] == [], "two runs are too few for a rate"


def test_sync_enabled_sources_returns_counts(server: Server) -> None:
    for code in ("a", "b", "off"):
        server.source(code)
    server.ask("POST", "/api/v1/sources/3/disable")
    first = server.ask("POST", "/api/v1/admin/sync-enabled-sources").json()
    server.ask("POST", "/api/v1/sources/1/disable")
    server.ask("PATCH", "/api/v1/sources/1", enabled=True)
    second = server.ask("POST", "/api/v1/admin/sync-enabled-sources").json()

    assert first == {
        "sources_seen": 3, "sources_enabled": 2, "created": 2, "already_has_job": 0, "resumed": 0,
        "skipped_disabled": 1, "skipped_rate_limit_parse_failure": 0, "errors": [],
    }  # fmt: skip
    assert (second["created"], second["already_has_job"]) == (0, 2)
    assert server.get("/api/v1/jobs?status=scheduled").json()["total"] == 2


class _CountedTurns(asyncio.Semaphore):
    """One turn at a time, and how often it was somebody's."""

    given = 0

    async def acquire(self) -> Literal[True]:
        self.given += 1
        return await super().acquire()


def test_jobs_for_many_sources_are_made_in_several_turns(server: Server) -> None:
    for number in range(41):
        server.bed.source(f"s{number}")
    state = server.client.app.state  # type: ignore[attr-defined]
    free, state.turn = state.turn, _CountedTurns(1)
    done = server.ask("POST", "/api/v1/admin/sync-enabled-sources").json()
    turns, state.turn = state.turn, free

    assert done["created"] == 41
    assert turns.given >= 3, "others may write in between"
    assert not turns.locked()
    assert {who for who, what, _ in server.deeds() if what == "job.created"} == {"admin@127.0.0.1"}


def test_two_servers_on_one_database_agree(servers: list[Server]) -> None:
    first, second = servers
    ids = [(first, second)[number % 2].recurring(f"s{number}", minutes=1440) for number in range(8)]
    moments = [first.get(f"/api/v1/jobs/{job_id}").json()["next_run_at"] for job_id in ids]
    seen = second.get("/api/v1/jobs?sort_order=asc").json()
    for job_id in ids:
        first.bed.set_next_run(job_id, first.clock.now() + timedelta(hours=3))
        first.bed.change(job_id, lambda job: setattr(job, "placed_at", None))
    preview = second.ask("POST", "/api/v1/scheduler/rebalance/preview").json()
    done = first.ask("POST", "/api/v1/scheduler/rebalance").json()
    paused = first.ask("POST", f"/api/v1/jobs/{ids[0]}/pause").json()
    twice = second.ask("POST", f"/api/v1/jobs/{ids[0]}/pause")

    assert len(set(moments)) == 8, "each server places beside what the other placed"
    assert [job["id"] for job in seen["jobs"]] == ids
    assert preview == done
    assert (paused["status"], twice.status_code) == ("paused", 400)
    assert {actor for actor, _, _ in first.deeds()} == {"admin@127.0.0.1", "admin@127.0.0.2"}


def test_an_administrator_sees_each_job_with_its_newest_run(server: Server) -> None:
    done, waiting = server.job("done"), server.job("later")
    server.bed.party.scheduler.tick()
    lease = server.bed.party.taken()
    counts = Counts(items_crawled=7, items_failed=1, items_total=8, items_indexed=6)
    ending = RunEnding(result=RunResult.COMPLETED, counts=counts, exit_code=0, index_state="pending", stage="done",
                    metrics={"crawled": 7})  # fmt: skip
    server.bed.party.leases.settle(lease, ending)
    whole = server.get("/api/admin/jobs").json()
    detail = server.get(f"/api/admin/jobs/{done}").json()

    assert (whole["total"], whole["limit"], whole["offset"]) == (2, 50, 0)
    assert [(job["id"], job["status"]) for job in whole["items"]] == [(waiting, "queued"), (done, "completed")]
    assert server.get("/api/admin/jobs?source=done&status=completed").json()["total"] == 1
    assert server.get("/api/admin/jobs?source=done&status=queued").json()["items"] == []
    assert (detail["pagesCrawled"], detail["pagesTotal"], detail["pagesFailed"]) == (7, 8, 1)
    assert (detail["indexedPageCount"], detail["crawlerExitCode"], detail["crawlerStatus"]) == (6, 0, "success")
    assert (detail["lastStats"], detail["crawlerStage"]) == ({"crawled": 7}, "done")
    assert detail["config"]["seeds"] == ["https://done.example/"]
    assert server.get("/api/admin/jobs/status-counts").json() == {"counts": {"completed": 1, "queued": 1}}
    for index, word in (("indexing", "indexing"), ("indexed", "indexed"), ("index_failed", "index_failed")):
        with server.bed.database.write() as session:
            session.execute(update(Execution).where(Execution.id == lease.execution_id).values(index_state=index))
        assert server.get(f"/api/admin/jobs/{done}").json()["status"] == word


def test_the_administrators_routes_refuse_with_their_own_statuses(one_source: Server) -> None:
    for path, status in (
        ("/api/admin/jobs?limit=501", 422), ("/api/admin/jobs?limit=0", 422), ("/api/admin/jobs?offset=-1", 422),
        ("/api/admin/jobs?status=sleeping", 422), ("/api/admin/jobs/undefined", 422), ("/api/admin/jobs/77", 404),
        (f"/api/admin/jobs/{2**63}", 422), ("/api/admin/jobs/77/snapshots", 404), ("/api/admin/jobs?source=%00", 422),
        ("/api/admin/jobs?source=nobody", 200),
    ):  # fmt: skip
        answer = one_source.get(path)
        assert answer.status_code == status, path
        assert status == 200 or set(answer.json()) - {"field"} == {"error", "detail", "code", "requestId"}
    assert {one_source.get(f"/api/admin/jobs?status={word}").status_code for word in ADMIN_STATES} == {200}
