"""What strangers and broken clients send to the managing routes: never a 500, and nothing is kept of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from fastapi.routing import APIRoute

from holdfast.api.routes import executions, jobs, sources
from holdfast.db.models import Execution, Job
from holdfast.index.capture_queries import captured_by
from holdfast.withdrawals.hiding import hide
from tests.api_bed import Server
from tests.archive import Shot, build_archive, days_later
from tests.client import asking

JSON = {"content-type": "application/json"}
WRITING = sorted(
    (sorted(route.methods or ())[0], route.path.replace("{id}", "1"))
    for module in (jobs, jobs, executions, jobs, sources)
    for route in module.router.routes
    if isinstance(route, APIRoute) and "GET" not in (route.methods or ())
)
VALUES: list[Any] = [
    None, True, -1, 2**63, 10**400, "a\x00b", "\ud800", "\U0010ffff" * 50, "x" * 20_000, [[]],
    {"a": {"b": "\x00"}}, {"\x00": 1}, {"x": 10**30},
]  # fmt: skip
JOB = ("source_id", "url", "type", "name", "interval_minutes", "interval_type", "schedule_enabled", "max_retries",
       "config", "metadata", "\x00")  # fmt: skip
SOURCE = ("code", "name", "base_url", "description", "enabled", "config", "\x00")
FORMS: list[tuple[str, str, dict[str, Any], tuple[str, ...]]] = [
    ("POST", "/api/v1/jobs", {"source_id": 1, "url": "https://ex.example/"}, JOB), ("PUT", "/api/v1/jobs/1", {}, JOB),
    ("POST", "/api/v1/sources", {"code": "new", "config": {"seeds": ["https://new.example/"]}}, SOURCE),
    ("PUT", "/api/v1/sources/1", {"config": {"seeds": ["https://ex.example/"]}}, SOURCE),
    ("PATCH", "/api/v1/sources/1", {}, SOURCE), ("POST", "/api/v1/sources/import", {}, ("sources",)),
]  # fmt: skip


def test_no_value_of_any_field_breaks_a_route(server: Server) -> None:
    server.recurring()
    for method, path, good, fields in FORMS:
        for field in fields:
            for value in VALUES:
                body = json.dumps({**good, field: value})
                answer = server.client.request(method, path, content=body, headers=JSON)
                assert answer.status_code < 500, (path, field, value, answer.text)
                assert answer.status_code < 400 or set(answer.json()) - {"field"} == {
                    "error",
                    "detail",
                    "code",
                    "requestId",
                }
                assert "\x00" not in answer.text
    assert server.get("/api/v1/jobs").status_code == server.get("/api/v1/sources").status_code == 200


def test_what_takes_no_body_is_not_impressed_by_one(server: Server) -> None:
    for method, path in WRITING:
        for body, kind in ((b"[" * 50_000, "application/json"), (b"x=1", "application/x-www-form-urlencoded")):
            answer = server.client.request(method, path, content=body, headers={"content-type": kind})
            assert answer.status_code in (400, 415), (path, answer.text)
        assert server.client.request(method, path.replace("/1", f"/{2**64}")).status_code < 500
    assert len(WRITING) > 15


@pytest.mark.parametrize(
    ("body", "status"),
    [(b"[" * 100_000, 400), (b'{"a":' * 40 + b"1" + b"}" * 40, 400), (b"{" + b" " * (1 << 20) + b"}", 413),
     (b"\xff\xfe{}", 400), (b"null", 400), (b'"text"', 400), (b"[1]", 400), (b'{"source_id":1e400}', 400),
     (b'{"source_id":NaN,"url":"https://ex.example/"}', 400), (b"{", 400), (b"", 400),
     (b'{"source_id":1,"source_id":2}', 400), (b"9" * 5000, 400)],
)  # fmt: skip
@pytest.mark.parametrize("path", ["/api/v1/jobs", "/api/v1/sources", "/api/v1/sources/import"])
def test_a_body_that_is_no_object_of_ours_is_refused(one_source: Server, path: str, body: bytes, status: int) -> None:
    answer = one_source.client.post(path, content=body, headers=JSON)

    assert answer.status_code == status, answer.text
    assert one_source.get("/api/v1/jobs").json()["total"] == 0
    assert one_source.get("/api/v1/sources").json()["total"] == 1


def test_page_of_another_origin_changes_nothing(one_source: Server) -> None:
    before = one_source.get("/api/v1/sources/1").json()
    with asking(one_source.archive, as_admin=False) as reader:
        for origin in ("https://evil.example", "null", "http://localhost:3000", "http://127.0.0.1:9999"):
            headers = {"origin": origin}
            sent = reader.post("/api/v1/sources/1/disable", headers=headers)
            simple = reader.post("/api/v1/jobs", content=b"{}", headers={**headers, "content-type": "text/plain"})
            preflight = {**headers, "access-control-request-method": "DELETE"}
            asked = reader.request("OPTIONS", "/api/v1/sources/1", headers=preflight)
            read = one_source.get("/api/v1/sources", headers=headers)
            assert (sent.status_code, simple.status_code, asked.status_code) == (401, 415, 403)
            assert "access-control-allow-origin" not in read.headers
    own = one_source.client.post("/api/v1/scheduler/rebalance/preview", headers={"origin": "http://127.0.0.1:8060"})

    assert own.status_code == 200
    assert one_source.get("/api/v1/sources/1").json() == before


def test_signs_that_match_anything_mean_themselves_in_a_search(server: Server) -> None:
    names = {"a1": "100% true", "b2": "under_score", "c3": "back\\slash", "d4": "plain"}
    for code, name in names.items():
        source_id = server.source(code)
        assert server.ask("PATCH", f"/api/v1/sources/{source_id}", name=name).status_code == 200
        made = server.ask("POST", "/api/v1/jobs", source_id=source_id, url=f"https://{code}.example/", name=name)
        assert made.status_code == 201, made.text

    for sign, code in (("%", "a1"), ("_", "b2"), ("\\", "c3")):
        sources = server.get("/api/v1/sources", params={"search": sign}).json()["sources"]
        jobs_found = server.get("/api/v1/jobs", params={"search": sign}).json()["jobs"]
        assert [one["code"] for one in sources] == [code], sign
        assert [one["name"] for one in jobs_found] == [names[code]], sign
        for path in ("/api/v1/sources", "/api/v1/jobs"):
            assert server.get(path, params={"search": sign * 1000}).status_code in (200, 400)


def test_an_administrator_lists_what_a_job_captured_and_never_what_was_withdrawn(tmp_path: Path) -> None:
    shots = [Shot(url=f"https://example.org/{number}", body=f"<title>T{number}</title><p>Words.</p>")
             for number in range(4)]  # fmt: skip
    shots += [Shot(url="https://example.org/new", moment=days_later(3), execution=2),
              Shot(url="https://example.org/logo.png", media_type="image/png", body=b"png")]  # fmt: skip
    archive = build_archive(tmp_path, shots)
    with archive.database.write() as session:
        ids = [run.id for run in session.query(Execution).order_by(Execution.id)]
        job_id = session.query(Job).order_by(Job.id).first().id  # type: ignore[union-attr]
        for number, run in enumerate(session.query(Execution).order_by(Execution.id), 10):
            run.job_id, run.number = job_id, number
        assert len(ids) == 2
    with asking(archive) as client:
        whole = client.get(f"/api/admin/jobs/{job_id}/snapshots").json()
        pages = [client.get(f"/api/admin/jobs/{job_id}/snapshots?limit=2&offset={at}").json() for at in (0, 2, 4, 6)]
        hide(archive.database, archive.clock, str(whole[1]["id"]), reason="asked for")
        fewer = client.get(f"/api/admin/jobs/{job_id}/snapshots").json()
    with archive.database.read() as session:
        beyond = captured_by(session, job_id=job_id, limit=10, offset=3)
    archive.database.close()

    assert [row["url"].rpartition("/")[2] for row in whole] == ["new", "0", "1", "2", "3"]
    assert (whole[1]["title"], whole[1]["statusCode"]) == ("T0", 200)
    assert [row for page in pages for row in page] == whole
    assert fewer == [whole[0], *whole[2:]]
    assert [row.url[-1] for row in beyond] == ["3"]
