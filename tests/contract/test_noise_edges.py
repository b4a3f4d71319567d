"""Noise over HTTP and by commands: listed, ruled on, shown where it is asked for; on both databases."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import select

from bench import noise_pages
from holdfast.changes.compute import compute_pending
from holdfast.db.models import AuditEvent, Snapshot
from holdfast.noise.classifier import judge_pending
from holdfast.search.outbox import drain
from holdfast.wiring.archive import Archive
from tests.archive import Shot, build_archive, days_later
from tests.client import Client, asking

HOST = "https://example.org"


@pytest.fixture
def archive(tmp_path: Path, migrated_url: str) -> Iterator[Archive]:
    """Four error pages with 200, and a page that was blocked the day after."""
    missing = [
        Shot(url=f"{HOST}/{name}", body=noise_pages.html("Page not found", "<h1>Page not found</h1><p>Sorry.</p>"))
        for name in "abcd"
    ]
    real = noise_pages.html("Tides", "<h1>Tides</h1>" + "<p>High water at six, low water at noon. </p>" * 20)
    wall = noise_pages.html("Access denied", "<h1>Access denied</h1>", template=False)
    days = [
        Shot(url=f"{HOST}/tides", body=real),
        Shot(url=f"{HOST}/tides", body=wall, moment=days_later(1), execution=2),
    ]
    opened = build_archive(tmp_path / "home", [*missing, *days], database_url=migrated_url)
    judge_pending(opened.database, opened.clock)
    compute_pending(opened.database, opened.clock)
    drain(opened.database, opened.home, opened.clock)
    yield opened
    opened.database.close()


@pytest.fixture
def client(archive: Archive) -> Iterator[Client]:
    """Asks the archive's server."""
    with asking(archive) as made:
        yield made


def test_what_is_noise_is_listed_with_its_evidence_in_pages(client: Client) -> None:
    first = client.get("/api/admin/noise?limit=3").json()
    rest = client.get(f"/api/admin/noise?limit=3&before={first['nextBefore']}").json()

    rows = [*first["items"], *rest["items"]]
    assert [(row["originalUrl"].removeprefix(HOST), row["noise"]) for row in rows] == [
        ("/tides", "block_page"), ("/d", "soft_404"), ("/c", "soft_404"), ("/b", "soft_404"), ("/a", "soft_404"),
    ]  # fmt: skip
    assert rest["nextBefore"] is None
    assert all(row["evidence"] and row["decidedBy"] is None for row in rows)
    only = client.get("/api/admin/noise?kind=block_page&source=example").json()["items"]
    assert [row["noise"] for row in only] == ["block_page"]
    assert client.get("/api/admin/noise?source=none").status_code == 404
    assert client.get("/api/admin/noise?kind=what").status_code == 422


def test_search_and_changes_show_it_where_it_is_asked_for(client: Client) -> None:
    assert client.get("/api/search?q=page").json()["total"] == 0
    shown = client.get("/api/search?q=page&noise=show&similar=show").json()
    assert {hit["noise"] for hit in shown["results"]} == {"soft_404"}
    assert shown["total"] == 4

    kinds = [event["changeType"] for event in client.get("/api/changes?source=example").json()["results"]]
    assert kinds == ["new_page"]
    asked = client.get("/api/changes?source=example&noise=show").json()["results"]
    assert sorted(event["changeType"] for event in asked) == ["new_page", *["noise"] * 5]
    assert "block_page" in asked[0]["summary"]


def test_a_capture_tells_its_reason_and_is_replayed_as_before(client: Client) -> None:
    listed = client.get("/api/admin/noise?kind=block_page").json()["items"][0]
    number = listed["snapshotId"]

    detail = client.get(f"/api/snapshot/{number}").json()
    assert detail["noise"] == "block_page"
    assert detail["noiseEvidence"] == listed["evidence"]
    assert "Access denied" in client.get(f"/api/snapshots/raw/{number}").text
    timeline = client.get(f"/api/snapshots/{number}/timeline").json()["snapshots"]
    assert [entry["noise"] for entry in timeline] == [None, "block_page"]
    latest = client.get(f"/api/snapshots/{number}/latest").json()
    assert latest["snapshotId"] == timeline[0]["snapshotId"]


def test_rulings_over_http_are_audited_in_the_name_of_who_asked(client: Client, archive: Archive) -> None:
    cleared = client.post("/api/admin/noise/clear", json={"subject": f"{HOST}/a", "reason": "a joke of the site"})
    assert cleared.json() == {"subject": f"{HOST}/a", "noise": None, "snapshots": 1}
    with archive.database.read() as session:
        page = session.scalars(select(Snapshot).where(Snapshot.url == f"{HOST}/tides").order_by(Snapshot.id)).first()
        assert page is not None
    body = {"subject": str(page.id), "kind": "parked", "reason": "sold"}
    assert client.post("/api/admin/noise/mark", json=body).json()["noise"] == "parked"

    with archive.database.read() as session:
        events = session.execute(select(AuditEvent.action, AuditEvent.actor).order_by(AuditEvent.id)).all()
    assert [tuple(event) for event in events] == [
        ("noise.cleared", "admin@127.0.0.1"), ("noise.marked", "admin@127.0.0.1"),
    ]  # fmt: skip
    for wrong in ({"subject": "1", "reason": "x"}, {"subject": "https://nowhere.example/", "reason": "x"}):
        assert client.post("/api/admin/noise/clear", json=wrong).status_code == 404
    for wrong in ({"subject": "1"}, {"subject": "", "reason": "x"}, {"subject": "1", "reason": " "}):
        assert client.post("/api/admin/noise/clear", json=wrong).status_code == 422
    assert client.post("/api/admin/noise/mark", json={**body, "kind": "what"}).status_code == 422
