"""The headers of every answer, good or bad, on both hosts."""

from __future__ import annotations

import asyncio
from uuid import UUID

import pytest
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from holdfast.api.middleware.headers import HeadRequests
from tests.client import REPLAY, Client
from tests.unit.api.conftest import MakeClient

_EVERYWHERE = {
    "x-api-version": "1",
    "x-content-type-options": "nosniff",
    "permissions-policy": "camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()",
}
_APP = {
    **_EVERYWHERE,
    "referrer-policy": "strict-origin-when-cross-origin",
    "x-frame-options": "SAMEORIGIN",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "strict-transport-security": "max-age=31536000; includeSubDomains",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


@pytest.mark.parametrize(
    ("path", "status"),
    [("/api/health", 200), ("/api/stats", 200), ("/nothing", 404), ("/api/snapshot/x", 422), ("/api/snapshot/1", 404)],
)
def test_every_answer_of_the_application_is_guarded(client: Client, path: str, status: int) -> None:
    answer = client.get(path)

    assert answer.status_code == status
    assert {name: answer.headers.get(name) for name in _APP} == _APP
    assert UUID(answer.headers["x-request-id"])


def test_a_page_of_ours_may_load_its_own_files_and_run_nothing_inline(client: Client) -> None:
    policy = client.get("/docs").headers["content-security-policy"]

    assert "default-src 'self'" in policy
    assert "unsafe-inline" not in policy
    assert "frame-ancestors 'none'" in policy


def test_an_answer_of_the_replay_host_that_chose_no_policy_can_do_nothing(client: Client) -> None:
    answer = client.get(f"{REPLAY}/cdx")

    assert answer.headers["content-security-policy"] == "sandbox; default-src 'none'"
    assert answer.headers["cross-origin-resource-policy"] == "cross-origin"
    assert answer.headers["referrer-policy"] == "same-origin"
    assert {name: answer.headers.get(name) for name in _EVERYWHERE} == _EVERYWHERE
    assert "x-frame-options" not in answer.headers


def test_strict_transport_can_be_left_out(make_client: MakeClient) -> None:
    assert "strict-transport-security" not in make_client(hsts=False).get("/api/health").headers


@pytest.mark.parametrize("given", ["abc-123", "7b0e4f1c-6d4b-4f55-9a3c-5a1d9c2f8e10", "a.b_c", "x" * 128])
def test_a_plain_request_id_is_kept(client: Client, given: str) -> None:
    assert client.get("/api/health", headers={"x-request-id": given}).headers["x-request-id"] == given


@pytest.mark.parametrize(
    "given", ["<script>alert(1)</script>", "a b", "", "x" * 129, "a\tb", "\x1b[31mred", "é".encode(), "a;b", "a\\r"]
)
def test_an_unsafe_request_id_is_replaced(client: Client, given: str | bytes) -> None:
    answer = client.get("/nothing", headers=[(b"x-request-id", given if isinstance(given, bytes) else given.encode())])

    assert UUID(answer.headers["x-request-id"])
    assert answer.json()["requestId"] == answer.headers["x-request-id"]


def test_an_error_names_its_request(client: Client) -> None:
    answer = client.get("/api/snapshot/1", headers={"x-request-id": "mine"})

    assert answer.json()["requestId"] == "mine"
    assert set(answer.json()) == {"error", "detail", "code", "requestId"}


@pytest.mark.parametrize("path", ["/api/health", "/api/stats", "/openapi.json"])
def test_head_answers_as_get_does_without_the_body(client: Client, path: str) -> None:
    got, head = client.get(path), client.request("HEAD", path)

    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["content-type"] == got.headers["content-type"]


def test_head_of_what_is_not_there_is_not_found(client: Client) -> None:
    assert client.request("HEAD", "/nothing").status_code == 404
    assert client.request("HEAD", "/api/reports").status_code == 405


def test_the_reference_is_off_in_a_strict_environment(make_client: MakeClient) -> None:
    client = make_client(environment="production", admin_token="x" * 20)

    assert {client.get(path).status_code for path in ("/docs", "/openapi.json", "/api/openapi.json", "/redoc")} == {404}


def test_head_does_not_say_that_a_streamed_answer_is_empty(client: Client) -> None:
    head = client.request("HEAD", "/api/exports/snapshots?format=csv")

    assert head.status_code == 200
    assert head.content == b""
    assert "content-length" not in head.headers
    assert client.get("/api/exports/snapshots?format=csv").content != b""


def test_head_makes_no_piece_of_a_streamed_answer_after_its_headers() -> None:
    """The stream never ends: asked for in full, HEAD would never be answered."""
    made = 0

    async def endless(scope: Scope, _receive: Receive, send: Send) -> None:
        nonlocal made
        if scope["method"] == "HEAD":
            await Response(status_code=405)(scope, _receive, send)
            return
        await send({"type": "http.response.start", "status": 200, "headers": [(b"x-one", b"1")]})
        while True:
            made += 1
            await send({"type": "http.response.body", "body": b"more", "more_body": True})
            await asyncio.sleep(0)

    client = Client(HeadRequests(endless))
    answer = client.request("HEAD", "/x")
    client.close()

    assert (answer.status_code, answer.headers["x-one"], answer.content) == (200, "1", b"")
    assert made <= 1
