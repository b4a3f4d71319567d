"""Jobs over HTTP on both databases: every pair of states, upsert, lists, history, and what is refused."""

from __future__ import annotations

import json
from itertools import product
from typing import Any, NamedTuple

import pytest
from sqlalchemy import inspect

from holdfast.db.models import Execution, ExecutionCount, Job
from holdfast.jobs.endings import RunEnding, RunResult
from holdfast.jobs.specs import JobSpec
from holdfast.jobs.states import JobAction, State
from tests.api_bed import CONFIG_FAULT, Server
from tests.contract.crawl_bed import crawl
from tests.jobs_bed import DONE, holder
from tests.typed import Typist

JSON = {"content-type": "application/json"}
ASKED = {
    State.PAUSED: [("POST", "/api/v1/jobs/{}/pause", 200)],
    State.SCHEDULED: [("POST", "/api/v1/jobs/{}/resume", 200)],
    State.CANCELLED: [("POST", "/api/v1/jobs/{}/cancel", 200)],
    State.PENDING: [("POST", "/api/v1/jobs/{}/retry", 200), ("POST", "/api/v2/jobs/{}/force-run", 202)],
}
"""How a person asks for a state. Only a worker makes a job run, complete or fail."""
ALLOWED = {
    ("scheduled", "pause"), ("paused", "resume"), ("pending", "cancel"), ("scheduled", "cancel"),
    ("running", "cancel"), ("paused", "cancel"), ("failed", "retry"), ("scheduled", "force-run"),
}  # fmt: skip
"""The table of allowed actions, written out: nothing of ours is asked what is right."""


def test_each_of_the_49_pairs_is_taken_or_refused_over_http_as_the_document_says(server: Server) -> None:
    for state, target in product(State, State):
        for number, (method, path, good) in enumerate(ASKED.get(target, [("PUT", "/api/v1/jobs/{}", 200)])):
            job_id = server.bring(state, f"{state[:4]}-{target[:4]}-{number}")
            before = _traces(server, job_id)
            body = {} if target in ASKED else {"status": target.value}

            answer = server.ask(method, path.format(job_id), **body)

            if (state.value, path.rpartition("/")[2]) in ALLOWED:
                assert answer.status_code == good, (state, target, answer.text)
                assert server.row(job_id)["state"] == target
                assert len(server.bed.events(job_id)) == len(before.events) + 1
                told = [("admin@127.0.0.1", f"job.{path.rpartition('/')[2]}", f"job {job_id}")]
                assert server.deeds() == [*before.deeds, *told]
            else:
                assert answer.status_code == 400, (state, target, answer.text)
                assert set(answer.json()) - {"field"} == {"error", "detail", "code", "requestId"}
                assert answer.json()["code"] == ("illegal_transition" if target in ASKED else "invalid")
                assert _traces(server, job_id) == before
            if server.row(job_id)["state"] in ("pending", "scheduled"):  # so that the next pair finds an empty queue
                server.bed.party.act(job_id, JobAction.CANCEL)


class _Traces(NamedTuple):
    """Everything that a deed could have changed."""

    row: dict[str, Any]
    events: list[str]
    runs: list[dict[str, Any]]
    deeds: list[tuple[str, str, str]]


def _traces(server: Server, job_id: int) -> _Traces:
    runs = [{column.key: getattr(run, column.key) for column in inspect(Execution).column_attrs}
            for run in server.bed.executions(job_id)]  # fmt: skip
    return _Traces(server.row(job_id), server.bed.events(job_id), runs, server.deeds())


def test_a_source_has_one_crawl_job_and_a_second_wish_gives_it_a_new_plan(server: Server) -> None:
    source_id = server.source()
    first = server.ask("POST", "/api/v1/jobs", source_id=source_id, url="https://ex.example/a", metadata={"a": [1]})
    second = server.ask("POST", "/api/v1/jobs", source_id=source_id, url="https://ex.example/b", interval_minutes=2,
                        interval_type="hours", schedule_enabled=True, name="twice a day")  # fmt: skip
    job = second.json()

    assert (first.status_code, second.status_code) == (201, 201)
    assert (first.json()["created"], first.json()["status"], first.json()["metadata"]) == (True, "pending", {"a": [1]})
    assert (job["id"], job["created"], job["status"], job["url"], job["interval_type"]) == (
        first.json()["id"], False, "scheduled", "https://ex.example/b", "hours")  # fmt: skip
    assert first.headers["deprecation"] == "true"
    assert server.get("/api/v1/jobs").json()["total"] == 1


def test_jobs_are_listed_by_type(server: Server) -> None:
    made = server.ask("POST", "/api/v1/jobs", source_id=server.source(), url="https://ex.example/")

    listed = {one: server.get("/api/v1/jobs", params={"type": one}).json()["jobs"] for one in ("crawl", "adhoc")}

    assert {one: [job["id"] for job in jobs] for one, jobs in listed.items()} == {
        "crawl": [made.json()["id"]], "adhoc": [],
    }  # fmt: skip


def test_a_running_job_keeps_its_state_and_its_run_when_it_is_given_a_new_plan(server: Server) -> None:
    job_id = server.bring(State.RUNNING, "ex")
    source_id = server.row(job_id)["source_id"]

    made = server.ask("POST", "/api/v1/jobs", source_id=source_id, url="https://ex.example/", interval_minutes=90,
                      schedule_enabled=True)  # fmt: skip

    assert (made.status_code, made.json()["status"], made.json()["interval_minutes"]) == (201, "running", 90)
    assert made.json()["lock_owner"] == f"w1/{holder(server.bed.database, 'w1')}"
    assert [run.state for run in server.bed.executions(job_id)] == ["running"]


@pytest.mark.parametrize(
    ("body", "field"),
    [({}, "source_id"), ({"url": "https://ex.example/"}, "source_id"),
     ({"source_id": "1", "url": "https://ex.example/"}, "source_id"),
     ({"source_id": True, "url": "https://ex.example/"}, "source_id"),
     ({"source_id": 2**63, "url": "https://ex.example/"}, "source_id"),
     ({"source_id": 99, "url": "https://ex.example/"}, "source_id"),
     ({"source_id": 1, "url": "ftp://ex.example/"}, "url"), ({"source_id": 1, "url": ""}, "url"),
     ({"source_id": 1, "url": "https://ex.example/", "type": "leadership"}, "type"),
     ({"source_id": 1, "url": "https://ex.example/", "interval_minutes": 0}, "interval_minutes"),
     ({"source_id": 1, "url": "https://ex.example/", "interval_minutes": 10**9}, "interval_minutes"),
     ({"source_id": 1, "url": "https://ex.example/", "interval_type": "fortnights"}, "interval_type"),
     ({"source_id": 1, "url": "https://ex.example/", "schedule_enabled": True}, "interval_minutes"),
     ({"source_id": 1, "url": "https://ex.example/", "max_retries": -1}, "max_retries"),
     ({"source_id": 1, "url": "https://ex.example/", "retry_backoff_seconds": 9999}, "retry_backoff_seconds"),
     ({"source_id": 1, "url": "https://ex.example/", "config": {"scope": "all"}}, "config.scope"),
     ({"source_id": 1, "url": "https://ex.example/", "config": {"backend": "zimit", "zimit": {
         "passthrough_args": ["--nonsense"]}}}, "nonsense"),
     ({"source_id": 1, "url": "https://ex.example/", "interval": 5}, "interval"),
     ({"source_id": 1, "url": "https://ex.example/", "name": "a\x00b"}, "name"),
     ({"source_id": 1, "url": "https://ex.example/", "metadata": {"deep": [{"x\ud800": 1}]}}, "deep[0]"),
     ({"source_id": 1, "url": "https://ex.example/", "metadata": {"huge": 10**40}}, "huge")],
)  # fmt: skip
def test_a_wrong_wish_is_400_with_the_field_and_leaves_nothing(
    one_source: Server, body: dict[str, Any], field: str
) -> None:
    answer = one_source.client.post("/api/v1/jobs", content=json.dumps(body), headers=JSON)

    assert answer.status_code == 400, answer.text
    assert field in answer.json()["error"]
    assert one_source.get("/api/v1/jobs").json()["total"] == 0


def test_a_schedule_is_replaced_only_by_a_wish_that_says_when(server: Server) -> None:
    job_id = server.recurring(minutes=60)
    source_id = server.get(f"/api/v1/jobs/{job_id}").json()["source_id"]

    kept = server.ask("POST", "/api/v1/jobs", source_id=source_id)
    replaced = server.ask("POST", "/api/v1/jobs", source_id=source_id, schedule_enabled=False)

    assert (kept.status_code, kept.json()["code"]) == (400, "schedule_kept")
    assert (replaced.status_code, replaced.json()["status"]) == (201, "pending")


def test_a_retry_over_http_computes_the_index_again_where_only_that_failed(server: Server) -> None:
    job_id = server.job("ix")
    server.bed.party.scheduler.tick()
    lease = server.bed.party.taken()
    server.bed.party.leases.settle(lease, RunEnding(result=RunResult.COMPLETED, index_state="index_failed"))

    answer = server.ask("POST", f"/api/v1/jobs/{job_id}/retry")

    assert (answer.status_code, answer.json()["status"]) == (200, "completed")
    assert [run.index_state for run in server.bed.executions(job_id)] == ["pending"]


def test_a_route_and_json_of_a_command_print_the_same_job_and_the_same_executions(
    server: Server, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    job_id = server.recurring(minutes=60)
    for ending in (RunEnding(result=RunResult.COMPLETED, index_state="pending"), CONFIG_FAULT):
        server.bed.set_next_run(job_id, server.clock.now())
        server.bed.run_once(job_id, ending)
    monkeypatch.setenv("HOLDFAST_DATABASE_URL", server.archive.settings.database)
    typed = Typist(server.archive.settings.home, capsys)

    job = server.get(f"/api/v1/jobs/{job_id}").json()
    [listed] = server.get("/api/v1/jobs").json()["jobs"]
    runs = server.get(f"/api/v1/jobs/{job_id}/executions").json()["executions"]
    [typed_job] = typed("list-jobs --json").object["jobs"]
    shown = typed(f"show-job --id {job_id} --json").object
    typed_runs = typed(f"job executions {job_id} --json").object["executions"]

    # The one word that the two had before with two meanings: both are printed by both.
    assert (job.pop("status"), shown.pop("status")) == (job["state"], job["admin_status"]) == ("failed", "failed")
    assert (listed.pop("status"), typed_job.pop("status")) == ("failed", "failed")
    assert job == listed == typed_job == {name: shown[name] for name in job}
    assert set(shown) - set(job) == {"effective_config", "invalid", "stats", "warc_files", "warc_bytes"}
    assert len(runs) == 2
    assert runs == typed_runs
    assert runs[0] == server.get(f"/api/v1/executions/{runs[0]['id']}").json()
    assert runs[0] == {**job["latest_execution"], "stack_trace": "Traceback", "metadata": {}}


def test_an_annual_job_takes_no_cap_over_http_nor_by_a_command(
    server: Server, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = JobSpec(source_id=server.source("ex", backend="zimit"), config={"max_depth": -1})
    with server.bed.database.write() as session:
        job_id = server.bed.party.actions.add(session, spec, kind="annual", at=server.clock.now()).id
    monkeypatch.setenv("HOLDFAST_DATABASE_URL", server.archive.settings.database)
    typed = Typist(server.archive.settings.home, capsys)
    flags = {"max_depth": -1, "zimit": {"passthrough_args": ["--pageLimit", "5"]}}

    by_flag = server.ask("PUT", f"/api/v1/jobs/{job_id}", config=flags)
    by_field = server.ask("PUT", f"/api/v1/jobs/{job_id}", config={"max_depth": -1, "max_pages": 5})
    typed_flag = typed(f"job edit {job_id} --set", 'zimit.passthrough_args=["--pageLimit", "5"]')
    typed_field = typed(f"job edit {job_id} --page-limit 5")

    assert [answer.status_code for answer in (by_flag, by_field)] == [400, 400]
    assert [ended.code for ended in (typed_flag, typed_field)] == [1, 1]
    assert all("no caps: take away --pageLimit" in text for text in (by_flag.text, typed_flag.err))
    assert all("config.max_pages: an annual job has no cap" in text for text in (by_field.text, typed_field.err))
    assert server.row(job_id)["config"] == {"max_depth": -1}


def test_a_job_that_no_scheduler_runs_is_not_changed_or_deleted_over_http(server: Server) -> None:
    job_id = server.job()
    server.bed.change(job_id, lambda job: setattr(job, "state", None))

    answers = [
        server.ask("PUT", f"/api/v1/jobs/{job_id}", name="another"),
        server.ask("DELETE", f"/api/v1/jobs/{job_id}"),
        server.ask("POST", f"/api/v1/jobs/{job_id}/cancel"),
    ]

    assert [answer.status_code for answer in answers] == [404, 404, 404]
    assert server.row(job_id)["name"] is None


def test_log_of_a_job_that_no_scheduler_runs_is_shown(server: Server) -> None:
    with crawl(server) as run, server.archive.database.write() as session:
        job = session.get_one(Job, session.get_one(Execution, run.id).job_id)
        job.state, job_id = None, job.id

    assert server.get(f"/api/v1/jobs/{job_id}/logs/tail").status_code == 200


@pytest.mark.parametrize("path", ["", "/stats", "/executions", "/logs", "/logs/view", "/logs/tail", "/logs/download"])
@pytest.mark.parametrize(("id", "status"), [("undefined", 400), ("null", 400), ("1.5", 400), ("-1", 400), ("0", 404),
                                            (str(2**63), 400), (str(2**63 - 1), 404), ("77", 404)])  # fmt: skip
def test_a_job_that_is_none_is_400_or_404(one_source: Server, id: str, status: int, path: str) -> None:
    answer = one_source.get(f"/api/v1/jobs/{id}{path}")

    assert answer.status_code == status
    assert status == 400 or answer.json()["error"] == "Job not found"


def test_a_job_is_changed_in_the_fields_that_are_named_and_its_slot_follows(server: Server) -> None:
    job_id, *others = server.recurring(minutes=60), *(server.recurring(code, minutes=60) for code in "abcd")
    before = server.get(f"/api/v1/jobs/{job_id}").json()
    renamed = server.ask("PUT", f"/api/v1/jobs/{job_id}", name="hourly", metadata={"by": "us"})
    slower = server.ask("PUT", f"/api/v1/jobs/{job_id}", interval_minutes=1440)
    once = server.client.request("PUT", f"/api/v1/jobs/{job_id}", json={"interval_minutes": None,
                                                                        "schedule_enabled": False})  # fmt: skip
    moved = server.ask("PUT", f"/api/v1/jobs/{job_id}", source_id=99)

    assert (renamed.status_code, renamed.json()["next_run_at"]) == (200, before["next_run_at"])
    assert (renamed.json()["name"], renamed.json()["url"]) == ("hourly", before["url"])
    assert (slower.json()["interval_minutes"], slower.json()["name"]) == (1440, "hourly")
    taken = {server.row(other)["next_run_at"] for other in others}
    assert (len(taken), before["next_run_at"]) == (4, "2026-09-01T12:00:00Z"), "the others hold all slots of its hour"
    assert slower.json()["next_run_at"] == "2026-09-01T13:00:00Z", "its new interval reaches a slot without a job"
    assert (once.json()["status"], once.json()["interval_minutes"]) == ("pending", None)
    assert once.json()["next_run_at"] == "2026-09-01T12:00:00Z", "what runs once has no slot, and runs now"
    assert (moved.status_code, "source_id" in moved.json()["error"]) == (400, True)
    assert server.ask("PUT", "/api/v1/jobs/99", name="x").status_code == 404


def test_a_deleted_job_is_gone_and_one_that_runs_is_not_deleted(server: Server) -> None:
    running, waiting = server.bring(State.RUNNING, "b"), server.recurring("a")
    deleted = server.ask("DELETE", f"/api/v1/jobs/{waiting}")
    refused = server.ask("DELETE", f"/api/v1/jobs/{running}")

    assert (deleted.status_code, list(deleted.json())) == (200, ["message"])
    assert server.get(f"/api/v1/jobs/{waiting}").status_code == 404
    assert server.ask("DELETE", f"/api/v1/jobs/{waiting}").status_code == 404
    assert (refused.status_code, refused.json()["code"]) == (400, "job_busy")
    assert server.get("/api/v1/jobs").json()["total"] == 1


def test_lists_are_paged_filtered_searched_and_sorted(server: Server) -> None:
    ids = [server.recurring(code) if code < "c" else server.job(code) for code in ("a1", "b2", "c3", "d4")]
    server.ask("POST", f"/api/v1/jobs/{ids[0]}/pause")

    def asked(query: str) -> list[int]:
        answer = server.get(f"/api/v1/jobs?{query}").json()
        return [job["id"] for job in answer["jobs"]]

    whole = server.get("/api/v1/jobs?limit=9999&sort_by=nonsense&sort_order=up").json()
    assert (whole["limit"], whole["sort_by"], whole["sort_order"], whole["total"]) == (250, "created_at", "desc", 4)
    assert asked("") == ids[::-1]
    assert asked("limit=2&offset=1&sort_order=asc") == ids[1:3]
    assert asked("status=paused,scheduled&sort_by=status&sort_order=asc") == ids[:2]
    assert asked("status=pending") == [ids[3], ids[2]]
    assert asked(f"source_id={server.row(ids[1])['source_id']}") == [ids[1]]
    assert asked("search=C3.EXAMPLE") == [ids[2]]
    assert asked("search=%25") == []
    assert asked("offset=99999999999999999999") == []
    assert server.get("/api/v1/jobs?status=sleeping").status_code == 400
    assert server.get("/api/v1/jobs?limit=many").status_code == 400
    assert server.get("/api/v1/jobs?search=%00").status_code == 400
    counts = server.get("/api/v1/jobs/status-counts").json()
    assert counts == dict.fromkeys(State, 0) | {"pending": 2, "scheduled": 1, "paused": 1}


def test_history_stats_and_one_run_are_shown(server: Server) -> None:
    job_id = server.recurring()
    for ending in (DONE, CONFIG_FAULT):
        server.bed.set_next_run(job_id, server.clock.now())
        server.bed.run_once(job_id, ending, seconds=3.0)
    history = server.get(f"/api/v1/jobs/{job_id}/executions?limit=1").json()
    run = server.get(f"/api/v1/executions/{history['executions'][0]['id']}").json()
    stats = server.get(f"/api/v1/jobs/{job_id}/stats").json()

    assert (history["total"], history["limit"], history["offset"]) == (2, 1, 0)
    assert (run["execution_number"], run["status"], run["duration_ms"]) == (2, "failed", 3000)
    assert (run["error_message"], run["stack_trace"], run["failure"]) == ("it broke", "Traceback", "infra_error_config")
    assert (stats["total_executions"], stats["success_rate"], stats["average_duration_ms"]) == (2, 0.5, 3000.0)
    assert server.get("/api/v1/executions/999").json()["error"] == "Execution not found"
    assert server.get("/api/v1/executions/undefined").status_code == 400


def test_a_forced_job_runs_now_and_only_once(server: Server) -> None:
    job_id = server.bring(State.SCHEDULED, "ex")
    forced = server.ask("POST", f"/api/v2/jobs/{job_id}/force-run")
    again = server.ask("POST", f"/api/v2/jobs/{job_id}/force-run")

    assert (forced.status_code, forced.json()["job_id"], again.status_code) == (202, job_id, 400)
    assert again.json()["error"].endswith("; it is queued, and begins when a worker is free")
    assert list(server.bed.party.scheduler.tick().queued) == [job_id]
    assert server.bed.party.scheduler.tick().queued == {}


@pytest.mark.parametrize("state", [State.COMPLETED, State.FAILED, State.PAUSED, State.CANCELLED, State.RUNNING])
def test_a_job_that_cannot_be_forced_says_what_can_be_done_with_it(server: Server, state: State) -> None:
    job_id = server.bring(state, "ex")
    refused = server.ask("POST", f"/api/v2/jobs/{job_id}/force-run")

    message = refused.json()["error"]
    place = message.rpartition("with POST ")[2].partition(" ")[0]
    assert refused.status_code == 400
    assert f"a job that is {state} cannot force-run" in message
    # The address that is named exists: it is refused for its body at most.
    assert server.ask("POST", place).status_code != 404


def test_every_change_is_audited_with_who_and_from_where(server: Server) -> None:
    job_id = server.recurring()
    for word in ("pause", "resume", "cancel"):
        server.ask("POST", f"/api/v1/jobs/{job_id}/{word}")
    server.ask("POST", f"/api/v1/jobs/{job_id}/resume")
    server.ask("PATCH", "/api/v1/sources/1", name="Other")
    server.ask("PUT", "/api/v1/sources/1", config={"seeds": ["https://ex.example/"]})
    server.ask("POST", "/api/v1/scheduler/rebalance")
    server.ask("DELETE", f"/api/v1/jobs/{job_id}")

    assert server.deeds() == [
        ("admin@127.0.0.1", deed, subject)
        for deed, subject in [
            ("source.created", "source ex"), ("job.created", f"job {job_id}"), ("job.pause", f"job {job_id}"),
            ("job.resume", f"job {job_id}"), ("job.cancel", f"job {job_id}"), ("source.edited", "source ex"),
            ("source.edited", "source ex"), ("scheduler.rebalanced", "scheduler"), ("job.deleted", f"job {job_id}"),
        ]
    ]  # fmt: skip


def test_job_counts_what_its_running_processes_wrote(server: Server) -> None:
    job_id = server.bring(State.RUNNING, "counting")
    [run] = server.bed.executions(job_id)
    with server.bed.database.write() as session:
        counts = {"pages": 5, "outcomes": {"failed": 2}}
        session.add(ExecutionCount(execution_id=run.id, owner_id=1, counts=counts, updated_at=server.bed.clock.now()))

    latest = server.get(f"/api/v1/jobs/{job_id}").json()["latest_execution"]
    assert (latest["items_crawled"], latest["items_failed"]) == (5, 2)
