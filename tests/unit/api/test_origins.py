"""Cross-origin reading: exact origins, public routes, never with credentials ."""

from __future__ import annotations

import pytest

from tests.client import Client
from tests.unit.api.conftest import MakeClient

_LISTED = ["http://localhost:3000", "https://reader.example"]
_FOREIGN = ["https://reader.example.evil.com", "null", "https://evil.com", "http://reader.example",
            "*", "https://READER.example", "http://localhost:30000", "https://reader.example/"]  # fmt: skip
_PACKAGES = ["/api/executions/1/wacz", "/api/executions/1.wacz", "/api/coverage/example/2026/edition.wacz"]


@pytest.fixture
def client(make_client: MakeClient) -> Client:
    """A client of a server that lists two origins."""
    return make_client(cors_origins=tuple(_LISTED), rate_limiting=False)


def _preflight(client: Client, path: str, origin: str, method: str = "GET") -> tuple[int, str | None]:
    headers = {"origin": origin, "access-control-request-method": method}
    answer = client.request("OPTIONS", path, headers=headers)
    assert "access-control-allow-credentials" not in answer.headers
    return answer.status_code, answer.headers.get("access-control-allow-origin")


@pytest.mark.parametrize("origin", _LISTED)
def test_a_listed_origin_may_ask_and_read(client: Client, origin: str) -> None:
    answer = client.get("/api/stats", headers={"origin": origin})

    assert _preflight(client, "/api/search", origin) == (204, origin)
    assert answer.headers["access-control-allow-origin"] == origin
    assert "Origin" in answer.headers["vary"]
    assert "x-request-id" in answer.headers["access-control-expose-headers"].lower()
    assert "access-control-allow-credentials" not in answer.headers


@pytest.mark.parametrize("origin", _FOREIGN)
def test_any_other_origin_may_not(client: Client, origin: str) -> None:
    answer = client.get("/api/stats", headers={"origin": origin})

    assert _preflight(client, "/api/search", origin) == (403, None)
    assert "access-control-allow-origin" not in answer.headers
    assert "Origin" in answer.headers["vary"]


@pytest.mark.parametrize(
    "path", ["/metrics", "/api/admin/reports", "/api/admin", "/api/v1/jobs", "/api/v2/jobs", "/api/pages"]
)
def test_admin_routes_are_shared_with_nobody(client: Client, path: str) -> None:
    assert _preflight(client, path, _LISTED[0]) == (403, None)
    assert "access-control-allow-origin" not in client.get(path, headers={"origin": _LISTED[0]}).headers


@pytest.mark.parametrize(
    ("path", "method", "status"),
    [("/api/stats", "HEAD", 204), ("/api/stats", "POST", 403), ("/api/stats", "DELETE", 403),
     ("/api/stats", "get", 403), ("/api/reports", "POST", 204), ("/api/reports", "PUT", 403),
     ("/api/administrators", "GET", 403)],
)  # fmt: skip
def test_only_reading_and_reporting_are_shared(client: Client, path: str, method: str, status: int) -> None:
    assert _preflight(client, path, _LISTED[0], method)[0] == status


@pytest.mark.parametrize("path", ["/api/stats", "/api/search", *_PACKAGES])
@pytest.mark.parametrize("origin", ["http://localhost:3000", "http://localhost:5173", "https://replayweb.page", "null"])
def test_without_a_list_no_page_of_another_origin_reads_anything(
    make_client: MakeClient, path: str, origin: str
) -> None:
    client = make_client(rate_limiting=False)
    answer = client.get(path, headers={"origin": origin})

    assert _preflight(client, path, origin) == (403, None)
    assert "access-control-allow-origin" not in answer.headers
    assert answer.headers["cross-origin-resource-policy"] == "same-origin"


@pytest.mark.parametrize("path", _PACKAGES)
def test_whole_crawls_are_read_by_listed_origins_alone(client: Client, path: str) -> None:
    assert _preflight(client, path, _LISTED[1]) == (204, _LISTED[1])
    assert client.get(path, headers={"origin": _LISTED[1]}).headers["access-control-allow-origin"] == _LISTED[1]
    assert _preflight(client, path, "https://evil.com") == (403, None)
    assert "access-control-allow-origin" not in client.get(path, headers={"origin": "https://evil.com"}).headers


@pytest.mark.parametrize(
    ("origin", "site_url", "status"),
    [("http://127.0.0.1:8060", None, 401), ("https://127.0.0.1:8060", None, 403), ("http://evil.example", None, 403),
     ("https://archive.example", "https://archive.example", 401),
     ("http://archive.example", "https://archive.example", 403)],
)  # fmt: skip
def test_origin_is_own_only_with_the_scheme_of_the_site(
    make_client: MakeClient, origin: str, site_url: str | None, status: int
) -> None:
    client = make_client(site_url=site_url)

    answer = client.post("/api/session", json={"name": "ada", "password": "wrong one"}, headers={"origin": origin})

    assert answer.status_code == status, answer.text
