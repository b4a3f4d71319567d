"""Hosts that captures link to, over HTTP: listed, removed, crawled."""

from __future__ import annotations

import pytest
from sqlalchemy import text

from tests.api_bed import Server


def test_a_host_that_captures_link_to_gets_a_job(server: Server) -> None:
    with server.bed.database.write() as session:
        session.execute(text("INSERT INTO linked_hosts (key, links, sites) VALUES ('example,new', 7, 3)"))
    [link] = server.get("/api/v1/discovered-links").json()["links"]
    made = server.ask("POST", f"/api/v1/discovered-links/{link['id']}/create-job")

    assert link == {"id": "new.example", "url": "https://new.example/", "links": 7, "linking_sites": 3}
    assert (made.status_code, made.json()["status"], made.json()["source"]) == (201, "job_made", "new-example")


def test_discovered_link_is_shown_and_deleted(server: Server) -> None:
    with server.bed.database.write() as session:
        session.execute(text("INSERT INTO linked_hosts (key, links, sites) VALUES ('example,new', 7, 3)"))

    shown = server.get("/api/v1/discovered-links/new.example")
    deleted = server.ask("DELETE", "/api/v1/discovered-links/new.example")

    assert shown.json() == {"id": "new.example", "url": "https://new.example/", "links": 7, "linking_sites": 3}
    assert deleted.status_code == 204
    assert server.get("/api/v1/discovered-links").json()["links"] == []
    assert server.get("/api/v1/discovered-links/new.example").status_code == 404
    assert server.ask("DELETE", "/api/v1/discovered-links/new.example").status_code == 404


@pytest.mark.parametrize("id", ["999999999", "127.0.0.1", "other.example", "example,new", "new.example%2Fpath", "%00"])
def test_create_job_is_refused_for_a_host_that_is_not_listed(server: Server, id: str) -> None:
    with server.bed.database.write() as session:
        session.execute(text("INSERT INTO linked_hosts (key, links, sites) VALUES ('example,new', 7, 3)"))
    refused = server.ask("POST", f"/api/v1/discovered-links/{id}/create-job")

    assert refused.status_code in (400, 404), refused.text
    assert server.get("/api/v1/jobs").json()["total"] == 0
