"""Who a request is for is decided by one plain Host and one plain path; everything else is refused."""

from __future__ import annotations

import pytest

from tests.client import REPLAY, Client
from tests.unit.api.conftest import MakeClient


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "127.0.0.1:8060", "localhost:8060", "LOCALHOST", "[::1]:8060", "replay.localhost:1"]
)
def test_our_own_names_are_answered(client: Client, host: str) -> None:
    assert client.get("/api/health", headers={"host": host}).status_code in (200, 404)


@pytest.mark.parametrize(
    "host",
    ["evil.example", "a/?x=", "127.0.0.1.evil.example", "localhost.", "127.0.0.1@evil.example", "localhost:80:80",
     "localhost#", "", " localhost", "127.0.0.1\\evil", "xreplay.localhost", "localhost%00"],
)  # fmt: skip
def test_other_hosts_are_refused(client: Client, host: str) -> None:
    answer = client.get("/api/health", headers={"host": host})

    assert answer.status_code == 400
    assert answer.json()["code"] == "host_refused"
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_two_hosts_are_refused(client: Client) -> None:
    answer = client.get("/api/health", headers=[("host", "localhost"), ("host", "localhost")])

    assert answer.status_code == 400


def test_a_listed_host_and_the_site_are_answered(make_client: MakeClient) -> None:
    client = make_client(allowed_hosts=("archive.example",), site_url="https://site.example/")

    assert client.get("/api/health", headers={"host": "archive.example"}).status_code == 200
    assert client.get("/api/health", headers={"host": "site.example"}).status_code == 200
    assert client.get("/api/health", headers={"host": "www.archive.example"}).status_code == 400


def test_the_replay_host_has_no_route_of_the_application(client: Client) -> None:
    for path in ("/api/health", "/api/stats", "/metrics", "/api/admin/reports", "/docs"):
        assert client.get(f"{REPLAY}{path}").status_code == 404


def test_a_configured_replay_origin_takes_the_place_of_the_local_one(make_client: MakeClient) -> None:
    client = make_client(replay_origin="https://replay.example.org")

    assert client.get("/api/health", headers={"host": "replay.example.org"}).status_code == 404
    assert client.get("/api/health", headers={"host": "replay.localhost"}).status_code == 400


def test_the_replay_host_is_the_replay_host_even_if_it_is_listed(make_client: MakeClient) -> None:
    client = make_client(replay_origin="https://r.example", allowed_hosts=("r.example",))

    assert client.get("/api/health", headers={"host": "r.example"}).status_code == 404


def test_a_long_query_is_refused(client: Client) -> None:
    fits = client.get("/?x=" + "y" * 8190)
    over = client.get("/?x=" + "y" * 8191)

    assert fits.status_code == 200
    assert over.status_code == 414
    assert over.json()["error"] == "URI Too Long"
    assert over.json()["code"] == "query_too_long"


@pytest.mark.parametrize("path", ["/cdx?url=example.org", "/cdx/search/cdx?url=example.org", "/replay-web-page/",
                                  "/replay-web-page/sw.js", "/nothing"])  # fmt: skip
def test_the_replay_host_answers_head_as_it_answers_get(client: Client, path: str) -> None:
    # With the address of an archived page, by which a request astray is led back.
    headers = {"Referer": f"{REPLAY}/web/20200101000000mp_/http://example.org/"}
    got, head = (client.request(method, f"{REPLAY}{path}", headers=headers) for method in ("GET", "HEAD"))

    assert (head.status_code, head.headers.get("content-type")) == (got.status_code, got.headers.get("content-type"))
    assert (got.status_code == 307) == (path == "/nothing")
