"""Problem reports: what is kept, what is refused, what is thanked and dropped."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.client import Client

_GOOD = {"category": "broken_snapshot", "description": "The pictures of this page are missing."}


def _kept(client: Client) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = client.get("/api/admin/reports").json()["items"]
    return items


def test_a_report_is_kept_as_it_was_sent(empty_client: Client) -> None:
    sent = {**_GOOD, "snapshotId": 42, "originalUrl": "https://example.org/a", "reporterEmail": "a@example.org",
            "pageUrl": "https://archive.example/42"}  # fmt: skip

    answer = empty_client.post("/api/reports", json=sent)
    number = answer.json()["reportId"]
    kept = empty_client.get(f"/api/admin/reports/{number}").json()

    assert answer.status_code == 201
    assert answer.json() == {"reportId": number, "status": "new", "receivedAt": "2026-09-01T12:00:00Z"}
    assert {name: kept[name] for name in sent} == sent
    assert (kept["status"], kept["notes"]) == ("new", None)


def test_a_filled_honeypot_is_thanked_and_nothing_is_kept(empty_client: Client) -> None:
    answer = empty_client.post("/api/reports", json={**_GOOD, "website": "https://cheap.example"})

    assert answer.status_code == 201
    assert answer.json() == {"reportId": None, "status": "new", "receivedAt": "2026-09-01T12:00:00Z"}
    assert _kept(empty_client) == []
    assert empty_client.get("/api/usage").json()["totals"]["reportSubmissions"] == 0


@pytest.mark.parametrize("website", ["", "   ", None])
def test_an_empty_honeypot_is_no_honeypot(empty_client: Client, website: str | None) -> None:
    assert empty_client.post("/api/reports", json={**_GOOD, "website": website}).json()["reportId"] == 1


@pytest.mark.parametrize(
    "changed",
    [{"category": "spam"}, {"category": None}, {"description": "x" * 19}, {"description": "x" * 4001},
     {"description": " " * 40}, {"description": "\x00" * 40}, {"snapshotId": -1}, {"snapshotId": 1 << 63},
     {"snapshotId": "4 or 1=1"}, {"reporterEmail": "no address"}, {"reporterEmail": "a@b\nBcc: c@d"},
     {"originalUrl": "x" * 2049}, {"status": "resolved"}, {"notes": "mine"}, {"id": 7}, {"description": ["a"] * 30},
     {"description": "\ud800" * 30}],
)  # fmt: skip
def test_what_is_no_report_is_refused(empty_client: Client, changed: dict[str, Any]) -> None:
    body = json.dumps({**_GOOD, **changed})
    answer = empty_client.post("/api/reports", content=body, headers={"content-type": "application/json"})

    assert answer.status_code == 422
    assert answer.json()["code"] == "invalid"
    assert _kept(empty_client) == []


@pytest.mark.parametrize("length", [20, 4000])
def test_the_shortest_and_the_longest_description_are_kept(empty_client: Client, length: int) -> None:
    assert empty_client.post("/api/reports", json={**_GOOD, "description": "x" * length}).status_code == 201


def test_controls_are_taken_out_of_what_is_kept(empty_client: Client) -> None:
    empty_client.post("/api/reports", json={**_GOOD, "description": "One line\nand\x00 another\x1b[31m, in red ink."})

    assert _kept(empty_client)[0]["description"] == "One line\nand another[31m, in red ink."


def test_reports_are_listed_newest_first_and_by_what_is_asked(empty_client: Client) -> None:
    for category in ("takedown", "general_feedback", "takedown"):
        empty_client.post("/api/reports", json={**_GOOD, "category": category})

    listed = empty_client.get("/api/admin/reports?category=takedown&limit=1").json()

    assert [item["reportId"] for item in listed["items"]] == [3]
    assert (listed["total"], listed["limit"], listed["offset"]) == (2, 1, 0)
    assert empty_client.get("/api/admin/reports?status=resolved").json()["items"] == []
    assert empty_client.get("/api/admin/reports?offset=2").json()["items"][0]["reportId"] == 1


@pytest.mark.parametrize("query", ["limit=0", "limit=501", "offset=-1", "status=open", "category=x", "limit=NaN"])
def test_odd_lists_are_refused(empty_client: Client, query: str) -> None:
    assert empty_client.get(f"/api/admin/reports?{query}").status_code == 422


def test_a_report_that_is_not_there_is_not_found(empty_client: Client) -> None:
    assert empty_client.get("/api/admin/reports/7").status_code == 404
