"""Operations on both databases: queued, run, cancelled, paused, continued after deaths, and given up."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import pytest
from sqlalchemy import func, select

from holdfast.db import connect
from holdfast.db.models import JobEvent
from holdfast.errors import LeaseLost
from holdfast.index.queries import sealed_files_after
from holdfast.jobs.administration.run_pausing import NotPausable, pause_run, resume_run, runs_under_way
from holdfast.jobs.endings import Counts, RunEnding, RunResult
from holdfast.jobs.execution_queries import latest_executions
from holdfast.jobs.kinds import OperationKind
from holdfast.operations import long_running
from holdfast.operations.long_running import OperationRequest, OperationRunning, OperationState
from holdfast.operations.running import OperationContext
from holdfast.worker.runner import StopReason
from tests.api_bed import Server
from tests.jobs_bed import end_holder
from tests.operations_bed import captured, operation, perform, run_next, run_waiting, taken

ADMIN = "/api/admin"


def test_a_verification_finds_what_is_damaged_and_is_one_at_a_time(server: Server) -> None:
    captured(server)
    started = server.ask("POST", f"{ADMIN}/verifications", quick=False)
    second = server.ask("POST", f"{ADMIN}/verifications", source="up")
    ended = run_waiting(server)
    sound = operation(server, started.json()["id"])
    with server.archive.database.read() as session:
        ((_, path, _),) = sealed_files_after(session, source="up", execution_id=None, after=0, limit=2)
    warc = server.archive.home / path
    warc.write_bytes(warc.read_bytes()[:-20])
    again = server.ask("POST", f"{ADMIN}/verifications", source="up")
    run_waiting(server)
    damaged = operation(server, again.headers["location"])
    warc.unlink()
    quick = server.ask("POST", f"{ADMIN}/verifications", source="up", quick=True)
    run_waiting(server)
    missing = operation(server, quick.json()["id"])

    assert (started.status_code, started.headers["location"]) == (202, f"{ADMIN}/operations/{started.json()['id']}")
    assert (second.status_code, second.json()["code"]) == (409, "operation_running")
    assert f"operation {started.json()['id']} " in second.json()["error"]
    assert (ended, sound["result"]["ok"], sound["result"]["problems"]) == ([OperationState.DONE], 1, [])
    assert (damaged["state"], damaged["errorCode"], damaged["result"]["damaged"]) == ("failed", "archive_damaged", 1)
    assert damaged["result"]["problems"][0]["name"] == warc.name
    assert (missing["state"], missing["result"]["missing"]) == ("failed", 1)
    assert server.get(f"{ADMIN}/storage-state").json()["lastVerification"]["id"] == quick.json()["id"]


def test_the_index_and_the_search_index_are_made_anew(server: Server) -> None:
    captured(server)
    before = server.get("/api/search", params={"q": "upload", "pageSize": 50}).json()["total"]
    index = server.ask("POST", f"{ADMIN}/index/rebuild", source="up")
    search = server.client.post(f"{ADMIN}/search-index/rebuild")
    unknown = server.ask("POST", f"{ADMIN}/index/rebuild", source="none")
    ended = run_waiting(server)
    done = operation(server, index.json()["id"])

    assert (index.status_code, search.status_code, unknown.status_code) == (202, 202, 404)
    assert ended == [OperationState.DONE] * 2
    assert (done["result"]["files"], done["result"]["snapshots"], done["result"]["errors"]) == (1, 3, [])
    assert operation(server, search.json()["id"])["result"]["pages"] == 3
    assert server.get("/api/search", params={"q": "upload", "pageSize": 50}).json()["total"] == before


def test_an_operation_is_cancelled_while_it_waits_and_while_it_runs(server: Server) -> None:
    waiting = server.client.post(f"{ADMIN}/search-index/rebuild").json()
    ended = server.ask("POST", f"{ADMIN}/operations/{waiting['id']}/cancel")
    twice = server.ask("POST", f"{ADMIN}/operations/{waiting['id']}/cancel")
    running = server.client.post(f"{ADMIN}/search-index/rebuild").json()

    def work(context: OperationContext) -> dict[str, Any]:
        asked = server.ask("POST", f"{ADMIN}/operations/{context.held.operation_id}/cancel").json()
        assert (asked["state"], asked["isCancelled"]) == ("running", True)
        context.result = {"seen": 5}
        context.stopping.wait(10)
        context.check()
        raise AssertionError("it went on")

    state = run_next(server, work)
    cancelled = operation(server, running["id"])

    assert (ended.json()["state"], twice.status_code, twice.json()["code"]) == ("cancelled", 409, "operation_over")
    assert (state, cancelled["state"], cancelled["isCancelled"]) == (OperationState.CANCELLED, "cancelled", True)
    assert (cancelled["result"], cancelled["errorCode"]) == ({"seen": 5}, None)
    assert server.client.post(f"{ADMIN}/search-index/rebuild").status_code == 202


def test_operation_of_a_dead_worker_continues_where_it_was(server: Server) -> None:
    started = server.client.post(f"{ADMIN}/search-index/rebuild").json()
    party, dead = server.bed.party, taken(server)
    assert dead is not None
    party.leases.report(dead, Counts(), {"phase": "reading", "done": 1, "total": 2, "result": {"seen": 5}})
    held_by_live = taken(server)
    shown = operation(server, started["id"])
    end_holder(server.bed.database, "w1")
    party.scheduler.sweep()
    found: dict[str, Any] = {}

    def work(context: OperationContext) -> dict[str, Any]:
        found.update(context.result, attempt=context.attempt)
        return {"seen": 6}

    state = run_next(server, work)

    assert held_by_live is None
    assert (shown["progress"], shown["result"]) == ({"phase": "reading", "done": 1, "total": 2}, {"seen": 5})
    assert (state, found) == (OperationState.DONE, {"seen": 5, "attempt": 2})
    with pytest.raises(LeaseLost):
        party.leases.settle(dead, RunEnding(result=RunResult.FAILED))
    assert operation(server, started["id"])["state"] == "done"


def test_operation_of_a_silent_worker_waits_for_its_lease(server: Server) -> None:
    started = server.client.post(f"{ADMIN}/search-index/rebuild").json()
    first = taken(server)
    server.clock.advance(299)
    server.bed.party.scheduler.sweep()
    early = taken(server)
    server.clock.advance(2)
    server.bed.party.scheduler.sweep()
    later = taken(server)

    assert first is not None
    assert early is None
    assert later is not None
    assert operation(server, started["id"])["attempt"] == 2


def test_a_worker_that_ends_gives_its_operation_back(server: Server) -> None:
    started = server.client.post(f"{ADMIN}/search-index/rebuild").json()

    def work(context: OperationContext) -> dict[str, Any]:
        context.result = {"seen": 5}
        context.stopping.set()
        context.check()
        raise AssertionError("it went on")

    lease = taken(server)
    assert lease is not None
    state = perform(server, lease, dict.fromkeys(OperationKind, work), stop=StopReason.DRAIN)

    assert (state, operation(server, started["id"])["state"]) == (OperationState.QUEUED, "queued")


def test_an_operation_may_be_given_back_as_often_as_the_worker_is_started(server: Server) -> None:
    started = server.client.post(f"{ADMIN}/search-index/rebuild").json()
    for _ in range(25):
        lease = taken(server)
        assert lease is not None
        server.bed.party.leases.release(lease)
    ended = run_waiting(server)

    assert operation(server, started["id"])["attempt"] == 26
    assert ended == [OperationState.DONE]


@pytest.mark.parametrize("is_worker_dead", [False, True])
def test_an_operation_whose_process_dies_each_time_is_given_up(server: Server, is_worker_dead: bool) -> None:
    started = server.client.post(f"{ADMIN}/search-index/rebuild").json()
    starts = 0
    while operation(server, started["id"])["state"] == "queued":
        lease = taken(server)
        assert lease is not None
        if starts == 20:
            perform(server, lease)
        elif is_worker_dead:
            end_holder(server.bed.database, "w1")
            server.bed.party.scheduler.sweep()
        else:
            server.bed.party.leases.release(lease, has_died=True)
        starts += 1
    shown = operation(server, started["id"])

    assert starts == 21, "the last start only gives up"
    assert (shown["state"], shown["errorCode"]) == ("failed", "operation_abandoned")
    assert shown["error"] == "failed 20 times; see the server log"


def test_paused_operation_leaves_its_place_and_continues_where_it_was(server: Server) -> None:
    started, found = server.client.post(f"{ADMIN}/search-index/rebuild").json(), list[dict[str, Any]]()

    def work(context: OperationContext) -> dict[str, Any]:
        found.append(dict(context.result))
        if len(found) == 1:
            context.result = {"seen": 5}
            with server.archive.database.write() as session:
                pause_run(session, server.clock, context.held.operation_id)
            context.stopping.wait(10)
            context.check()
        return {"seen": 6}

    paused = run_next(server, work)
    waiting, shown = taken(server), operation(server, started["id"])
    with server.archive.database.write() as session:
        resume_run(session, server.clock, started["id"])
    state = run_next(server, work)

    assert (paused, waiting) == (OperationState.QUEUED, None)
    assert (shown["state"], shown["pausedAt"] is not None) == ("queued", True)
    assert operation(server, started["id"])["pausedAt"] is None
    assert (state, found) == (OperationState.DONE, [{}, {"seen": 5}])


def test_pause_of_an_operation_that_does_not_run_names_its_commands(server: Server) -> None:
    number = server.client.post(f"{ADMIN}/search-index/rebuild").json()["id"]

    def refusal() -> str:
        with server.archive.database.write() as session, pytest.raises(NotPausable) as refused:
            pause_run(session, server.clock, number)
        return str(refused.value)

    queued = refusal()
    run_next(server, lambda _context: {})
    over = refusal()

    assert queued == f"execution {number} has not started; to cancel it: holdfast operation cancel {number}"
    assert (
        over
        == f"execution {number} is completed, so it cannot be paused or resumed; see: holdfast operation show {number}"
    )


def test_operations_are_in_no_list_of_crawls(server: Server) -> None:
    server.client.post(f"{ADMIN}/search-index/rebuild")
    done = server.ask("POST", f"{ADMIN}/verifications", quick=True).json()
    metrics = server.get("/api/v1/scheduler/metrics").json()
    assert taken(server) is not None
    run_waiting(server)

    assert server.get("/api/v1/jobs").json()["total"] == server.get("/api/admin/jobs").json()["total"] == 0
    assert set(server.get("/api/v1/jobs/status-counts").json().values()) == {0}
    assert server.get("/api/admin/jobs/status-counts").json()["counts"] == {}
    assert server.get("/api/v1/scheduler/metrics").json()["executions"] == metrics["executions"]
    assert server.get("/api/v1/jobs/1").status_code == server.ask("POST", "/api/v1/jobs/1/cancel").status_code == 404
    assert operation(server, done["id"])["state"] == "done"
    assert server.get(f"/api/v1/executions/{done['id']}").status_code == 404
    with server.archive.database.read() as session:
        assert session.scalar(select(func.count()).select_from(JobEvent)) == 0
        assert runs_under_way(session, are_paused=False) == []
    with closing(connect(server.archive.settings.database)) as raw_db, raw_db.read() as tx:
        assert latest_executions(tx, limit=5) == []


def test_an_operation_that_breaks_has_failed_and_says_so(server: Server) -> None:
    started = server.client.post(f"{ADMIN}/search-index/rebuild").json()

    def work(_context: OperationContext) -> dict[str, Any]:
        raise ZeroDivisionError("by mistake")

    state = run_next(server, work)
    shown = operation(server, started["id"])

    assert (state, shown["state"], shown["errorCode"]) == (OperationState.FAILED, "failed", "error")
    assert shown["error"] == "ZeroDivisionError: by mistake"


def test_two_servers_take_an_operation_once(servers: list[Server]) -> None:
    servers[0].client.post(f"{ADMIN}/search-index/rebuild")
    leases = [taken(one, owner) for one, owner in zip(servers, ("w1", "w2"), strict=True)]

    assert [one is not None for one in leases] == [True, False]


def test_operations_are_listed_by_kind_and_state(server: Server) -> None:
    server.client.post(f"{ADMIN}/search-index/rebuild")
    server.ask("POST", f"{ADMIN}/verifications", quick=True)
    by_kind = server.get(f"{ADMIN}/operations", params={"kind": "verify"}).json()
    by_state = server.get(f"{ADMIN}/operations", params={"state": "queued", "limit": 1}).json()
    rest = server.get(f"{ADMIN}/operations", params={"state": "queued", "cursor": by_state["next"]}).json()

    assert [row["kind"] for row in by_kind["items"]] == ["verify"]
    assert [row["kind"] for row in [*by_state["items"], *rest["items"]]] == ["verify", "rebuild_search"]
    assert server.get(f"{ADMIN}/operations/99999").json()["code"] == "operation_not_found"
    assert server.get(f"{ADMIN}/operations", params={"kind": "dance"}).json()["field"] == "kind"


def test_fifty_starts_at_once_give_one_operation_and_all_others_name_it(server: Server) -> None:
    wish = OperationRequest(OperationKind.VERIFY, flight="verify", subject="all WARC files", parameters={})

    def start(_number: int) -> int | str:
        try:
            with server.archive.database.write() as session:
                return long_running.start(session, server.clock, wish, directory="here").execution.id
        except OperationRunning as exc:
            return f"named {exc.operation_id}"

    with ThreadPoolExecutor(10) as pool:
        found = list(pool.map(start, range(50)))

    (begun,) = [one for one in found if isinstance(one, int)]
    assert found.count(f"named {begun}") == 49
