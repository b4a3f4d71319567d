"""One body for every failure, and never more in it than the caller may know."""

from __future__ import annotations

import shutil
import sqlite3
import struct
from base64 import urlsafe_b64encode
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy.exc import ArgumentError
from sqlalchemy.exc import TimeoutError as PoolTimeout
from starlette.datastructures import State
from starlette.types import Receive, Scope, Send

from holdfast import config, errors
from holdfast.api.app import assemble
from holdfast.api.errors import STATUS, error_codes, status_of
from holdfast.api.middleware.request_ids import RequestIds
from holdfast.api.routing import LazyRouter
from holdfast.api.session_cookie import cookie_name
from holdfast.auth.credentials import TOKEN_PREFIX, new_secret
from holdfast.auth.roles import Permission
from holdfast.clock import SystemClock
from holdfast.log import captured
from holdfast.metrics import ServerMetrics
from holdfast.wiring.archive import Archive
from tests.client import REPLAY, Client, asking
from tests.damage import damage
from tests.unit.api.conftest import MakeArchive, MakeClient


@pytest.mark.parametrize(
    ("error", "status", "old"),
    [(errors.NotFound("x"), 404, 404), (errors.Invalid("x"), 422, 400), (errors.UrlRefused("a", "b"), 422, 400),
     (errors.Conflict("x"), 409, 400), (errors.LeaseLost("x"), 409, 400), (errors.NotPermitted("x"), 403, 403),
     (errors.AddressForbidden("x"), 400, 400), (errors.Unavailable("x"), 503, 503), (errors.NoSpace("x"), 503, 503),
     (errors.HoldfastError("x"), 500, 500)],
)  # fmt: skip
def test_each_kind_of_error_has_its_status(error: errors.HoldfastError, status: int, old: int) -> None:
    assert status_of(error, "/api/search") == status
    assert status_of(error, "/api/v1/jobs") == status_of(error, "/api/v2/jobs") == old


def test_the_five_kinds_are_all_mapped() -> None:
    kinds = (errors.NotFound, errors.Invalid, errors.Conflict, errors.NotPermitted, errors.Unavailable)

    assert {kind.code for kind in kinds} <= set(STATUS)


def test_error_codes_hold_each_code_with_a_status() -> None:
    assert set(STATUS) <= set(error_codes())


@pytest.mark.parametrize(
    ("method", "path", "status", "code"),
    [("GET", "/nothing", 404, "not_found"), ("DELETE", "/api/stats", 405, "method_not_allowed"),
     ("GET", "/api/snapshot/abc", 422, "invalid"), ("GET", "/api/snapshot/1e18", 422, "invalid"),
     ("GET", "/api/coverage/x/0000", 422, "invalid"), ("GET", "/api/coverage/x/10000", 422, "invalid"),
     ("GET", "/api/replay/resolve?url=", 422, "invalid"), ("GET", "/api/replay/resolve", 422, "invalid"),
     ("GET", "/api/sources/%00/editions", 404, "not_found"), ("GET", "/api/sources/%F0%9F%A6%80/preview", 404,
     "not_found"), ("GET", "/api/replay/resolve?url=http://x/&timestamp=2026", 422, "invalid"),
     ("GET", "/api/replay/resolve?url=http://x/&jobId=-1", 422, "invalid"),
     ("GET", "/cdx?url=example.org&matchType=/etc/passwd/x", 400, "bad_cdx_parameter")],
)  # fmt: skip
def test_bad_requests_get_the_one_body(client: Client, method: str, path: str, status: int, code: str) -> None:
    answer = client.request(method, path)

    assert answer.status_code == status
    told = {"error", "detail", "code", "requestId"}
    # What does not fit the description of a request is named by its field.
    assert set(answer.json()) == (told | {"field"} if (status, code) == (422, "invalid") else told)
    assert answer.json()["code"] == code
    assert answer.headers["content-type"] == "application/json"


def test_what_the_caller_wrote_comes_back_as_data_only(client: Client) -> None:
    answer = client.get("/api/sources/<script>alert(1)</script>/editions".replace("/script", "%2Fscript"))

    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    ("body", "place"),
    [(b"{", "line 1, column 2"), (b'{\n  "source_id": 1,\n  "url": nope\n}', "line 3, column 10"),
     ("{\n\u00e9".encode(), "line 2, column 1"), (b'{"a": 1} {}', "line 1, column 10"), (b"\n\n", "line 3, column 1")],
)  # fmt: skip
def test_json_that_is_none_is_refused_with_its_line_and_column(client: Client, body: bytes, place: str) -> None:
    answer = client.post("/api/v1/jobs", content=body, headers={"content-type": "application/json"})

    assert (answer.status_code, answer.json()["code"]) == (400, "invalid")
    assert f"no JSON at {place}: " in answer.json()["detail"]
    assert "send it again" in answer.json()["detail"]


def test_a_method_that_is_not_taken_is_refused_with_those_that_are(client: Client) -> None:
    answer = client.request("PATCH", "/api/v1/jobs/1", json={})

    assert (answer.status_code, answer.json()["code"]) == (405, "method_not_allowed")
    assert answer.headers["allow"] == "DELETE, GET, HEAD, PUT"
    assert answer.json()["detail"] == "this address does not take PATCH; it takes DELETE, GET, HEAD, PUT"
    assert client.post("/api/stats").headers["allow"] == "GET, HEAD"


def test_an_odd_address_resolves_to_nothing(client: Client) -> None:
    for url in ("javascript:alert(1)", "%00", "http://", "data:,x", "http://[::1", "\\\\share"):
        answer = client.get("/api/replay/resolve", params={"url": url})
        assert answer.json()["found"] is False, url


def test_what_breaks_is_answered_without_a_trace() -> None:
    async def broken(_scope: Scope, _receive: Receive, _send: Send) -> None:
        raise KeyError("secret of the house")

    client = Client(RequestIds(broken, SystemClock(), State({"metrics": ServerMetrics(started=0.0)})))
    with captured() as logged:
        answer = client.get("/x")
    client.close()
    told = next(line["exception"] for line in logged if line["event"] == "api.broke")

    assert answer.status_code == 500
    assert "Traceback" in told
    assert "in broken" in told, "the log says where it broke, and is the only place that does"
    assert "secret of the house" in told
    assert answer.json()["code"] == "error"
    assert "secret" not in answer.text
    assert "Traceback" not in answer.text


def test_what_the_database_library_raises_is_told_plainly(make_archive: MakeArchive) -> None:
    def full() -> None:
        raise PoolTimeout("QueuePool limit of size 5")

    def broken() -> None:
        raise ArgumentError("a secret statement")

    router = LazyRouter()
    for path, route in (("/full", full), ("/broken", broken)):
        router.get(path, Permission.READ)(route)
    app = assemble("Broken", (router,), make_archive())
    client = Client(RequestIds(app, SystemClock(), State({"metrics": ServerMetrics(started=0.0)})))
    with captured() as logged:
        busy, fault = client.get("/full"), client.get("/broken", headers={"x-request-id": "mine"})
    client.close()

    assert (busy.status_code, busy.json()["code"]) == (503, "unavailable")
    assert (fault.status_code, fault.json()["code"]) == (500, "error")
    assert [line["request_id"] for line in logged if line["event"] == "api.broke"] == ["mine"]
    assert "QueuePool" not in busy.text
    assert "secret" not in fault.text


def test_a_database_that_is_gone_is_told_by_health_and_by_every_route(make_client: MakeClient, tmp_path: Path) -> None:
    client = make_client()
    for name in tmp_path.glob("holdfast.db*"):
        name.unlink()
    (tmp_path / "holdfast.db").mkdir()

    api, service, stats = client.get("/api/health"), client.get("/health"), client.get("/api/stats")

    assert (api.status_code, service.status_code) == (500, 503)
    assert api.json() == service.json() == {"status": "error", "checks": {"db": "error"}}
    assert stats.status_code == 503
    assert stats.json()["code"] == "database_moved", "whatever number the folder got that stands there now"
    assert stats.headers["retry-after"] == "5"


def test_who_shows_a_made_up_credential_learns_nothing_of_a_database_that_is_gone(
    make_client: MakeClient, tmp_path: Path
) -> None:
    client = make_client()
    for name in tmp_path.glob("holdfast.db*"):
        name.unlink()
    (tmp_path / "holdfast.db").mkdir()
    capability = urlsafe_b64encode(struct.pack(">BIQI", 1, 77, 1, 2**31) + b"x" * 16).decode().rstrip("=")
    told = [
        client.get("/api/stats", headers={"cookie": f"{cookie_name(config.load(home=tmp_path))}={new_secret()}"}),
        client.get("/api/stats", headers={"authorization": f"Bearer {new_secret(TOKEN_PREFIX)}"}),
        client.get(f"{REPLAY}/!{capability}/web/2024/http://example.org/"),
    ]

    for answer in told:
        assert (answer.status_code, answer.json()["code"]) == (503, "database_moved")
        assert str(tmp_path) not in answer.text
        assert answer.headers["retry-after"] == "5"


@pytest.mark.parametrize("put", ["nothing", "a copy"])
def test_a_database_file_that_was_moved_away_is_told_until_it_is_back(
    make_client: MakeClient, tmp_path: Path, put: str
) -> None:
    client, path, away = make_client(rate_limiting=False), tmp_path / "holdfast.db", tmp_path / "away.db"
    before = client.get("/api/health"), client.get("/api/stats"), client.get("/api/search?q=x")

    path.rename(away)
    if put == "a copy":
        shutil.copy(away, path)
    api, service = client.get("/api/health"), client.get("/health")
    others = [client.get(url) for url in ("/api/stats", "/api/search?q=x", "/api/sources", "/api/snapshot/1")]
    report = {"category": "takedown", "description": "This sentence must not be lost in a deleted file."}
    written = client.post("/api/reports", json=report)
    left = path.exists()
    away.rename(path)
    after = client.get("/api/health"), client.get("/api/stats")

    assert {answer.status_code for answer in (*before, *after)} == {200}
    assert (api.status_code, service.status_code) == (500, 503)
    assert {(answer.status_code, answer.json()["code"]) for answer in (*others, written)} == {(503, "database_moved")}
    assert all("put it back, or restart" in answer.json()["detail"] for answer in (*others, written))
    assert left is (put == "a copy"), "nobody makes an empty file in its place"


def test_a_damaged_database_is_told_without_its_place_and_no_fault_of_the_program(
    make_client: MakeClient, tmp_path: Path
) -> None:
    make_client().get("/api/stats")
    damage(tmp_path / "holdfast.db", "sources", "jobs", "snapshots", "owners")
    client = make_client(rate_limiting=False)

    with captured() as logged:
        answers = [client.get(path) for path in ("/api/stats", "/api/sources", "/api/v1/jobs", "/api/snapshot/1")]
        health = client.get("/api/health"), client.get("/health")

    assert {(answer.status_code, answer.json()["code"]) for answer in answers} == {(503, "database_damaged")}
    assert not any(str(tmp_path) in answer.text or "SELECT" in answer.text for answer in answers)
    assert [answer.status_code for answer in health] == [500, 503]
    told = next(line["message"] for line in logged if line["event"] == "api.failed")
    assert "holdfast index --rebuild" in told, "the log has the way out"


def test_a_failing_database_names_neither_its_file_nor_its_server(make_client: MakeClient, tmp_path: Path) -> None:
    client = make_client(rate_limiting=False)
    (tmp_path / "holdfast.db").rename(tmp_path / "elsewhere.db")

    with captured() as logged:
        answer = client.get("/api/stats", headers={"x-request-id": "mine"})

    assert str(tmp_path) not in answer.text
    assert "holdfast.db" not in answer.text
    told = next(line for line in logged if line["event"] == "api.failed")
    assert str(tmp_path) in told["message"], "the log has it"
    assert told["request_id"] == "mine"


def test_public_errors_show_no_folder_and_no_pattern(
    monkeypatch: pytest.MonkeyPatch, make_archive: MakeArchive, client: Client
) -> None:
    def lost() -> None:
        raise errors.NotFound(
            "there is no file /srv/archive/holdfast/warcs/a.warc.gz; see /api/sources, <a href=/web/x>"
        )

    router = LazyRouter()
    router.get("/lost", Permission.READ)(lost)
    own = Client(RequestIds(assemble("Lost", (router,), make_archive()), SystemClock(),
                       State({"metrics": ServerMetrics(started=0.0)})))  # fmt: skip
    answer = own.get("/lost")
    own.close()
    refused = client.get("/api/search?source=Not!A!Code")

    assert answer.json()["detail"] == "there is no file …/a.warc.gz; see /api/sources, <a href=/web/x>"
    assert (answer.status_code, answer.json()["code"]) == (404, "not_found")
    assert refused.status_code == 422
    assert refused.json()["detail"].startswith("source: ")
    assert "[a-z" not in refused.text


@pytest.mark.parametrize(("found", "step"), [("0001", "it migrates first"), ("0999", "upgrade holdfast")])
def test_a_database_that_was_changed_under_the_server_is_named(make_client: MakeClient, tmp_path: Path, found: str,
                                                              step: str) -> None:  # fmt: skip
    client = make_client()
    with closing(sqlite3.connect(tmp_path / "holdfast.db")) as connection:
        connection.execute("ALTER TABLE snapshots RENAME COLUMN url_key TO key_of_url")
        connection.execute("UPDATE alembic_version SET version_num = ?", (found,))
        connection.commit()

    answer = client.get("/api/snapshot/1")

    assert answer.status_code == 503
    assert answer.json()["code"] == "schema_mismatch"
    assert step in answer.json()["detail"]
    assert "holdfast api" in answer.json()["detail"]


def test_health_says_with_details_whether_the_disk_has_room(make_archive: MakeArchive) -> None:
    archive = make_archive()
    marks = archive.settings.disk.model_copy(update={"free_bytes": 1 << 60})
    full = Archive(
        settings=archive.settings.model_copy(update={"disk": marks}), database=archive.database, clock=archive.clock
    )
    with asking(full) as client:
        plain, detailed = client.get("/api/health").json(), client.get("/api/health?details=1").json()

    assert "disk" not in plain["checks"]
    assert detailed["checks"]["disk"] == "low"
