"""The audit log can be read, and problem reports triaged and closed: over HTTP and by command, on either database."""

from __future__ import annotations

import json

import pytest

from tests.api_bed import Server
from tests.flow.commands import Terminal

_REPORT = {"category": "takedown", "description": "Please take this page down, it is mine."}


def _run(server: Server, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *words: str) -> str:
    monkeypatch.setenv("HOLDFAST_DATABASE_URL", server.archive.database.url)
    said = Terminal(server.archive.home, capsys).type(*words)
    assert said.code == 0, said.err
    return said.out


def test_a_report_is_triaged_and_closed_over_http_with_notes(server: Server) -> None:
    number = server.ask("POST", "/api/reports", **_REPORT).json()["reportId"]
    path = f"/api/admin/reports/{number}"

    taken = server.ask("PATCH", path, status="triaged", notes="Asked the site.")
    closed = server.ask("PATCH", path, status="resolved")
    emptied = server.ask("PATCH", path, notes="")

    assert (taken.status_code, taken.json()["status"], taken.json()["notes"]) == (200, "triaged", "Asked the site.")
    assert (closed.json()["status"], closed.json()["notes"]) == ("resolved", "Asked the site.")
    assert emptied.json()["notes"] is None
    assert [row["reportId"] for row in server.get("/api/admin/reports?status=resolved").json()["items"]] == [number]
    assert server.get("/api/admin/reports?status=new").json()["total"] == 0
    assert server.ask("PATCH", "/api/admin/reports/999", status="new").json()["code"] == "report_not_found"
    assert server.ask("PATCH", path, status="lost").status_code == 422


def test_the_audit_log_is_read_newest_first_and_by_what_was_done(server: Server) -> None:
    server.source("ex")
    number = server.ask("POST", "/api/reports", **_REPORT).json()["reportId"]
    for status in ("triaged", "resolved"):
        server.ask("PATCH", f"/api/admin/reports/{number}", status=status)

    whole = server.get("/api/admin/audit").json()["items"]
    reports = server.get("/api/admin/audit?action=report").json()["items"]
    first = server.get("/api/admin/audit?limit=1").json()
    rest = server.get(f"/api/admin/audit?before={first['nextBefore']}").json()

    assert [row["id"] for row in whole] == sorted((row["id"] for row in whole), reverse=True)
    assert [row["detail"]["to"] for row in reports] == ["resolved", "triaged"]
    assert {row["actor"] for row in reports} == {"admin@127.0.0.1"}
    assert reports == server.get(f"/api/admin/audit?subject=report {number}").json()["items"]
    assert first["items"] + rest["items"] == whole
    assert rest["nextBefore"] is None
    assert server.get("/api/admin/audit?action=repor").json()["items"] == []


def test_commands_do_the_same(
    server: Server, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    number = server.ask("POST", "/api/reports", **_REPORT).json()["reportId"]

    listed = _run(server, capsys, monkeypatch, "problem-report", "list", "--status", "new")
    edited = _run(server, capsys, monkeypatch, "problem-report", "edit", str(number), "--status", "resolved",
                  "--notes", "Done.", "--json")  # fmt: skip
    shown = _run(server, capsys, monkeypatch, "problem-report", "show", str(number))
    log = _run(server, capsys, monkeypatch, "audit", "--action", "report", "--json")

    assert "takedown" in listed
    assert (json.loads(edited)["status"], json.loads(edited)["notes"]) == ("resolved", "Done.")
    assert "resolved" in shown
    assert json.loads(log)["events"][0]["detail"] == {"from": "new", "to": "resolved", "notes": True}
    reports = json.loads(_run(server, capsys, monkeypatch, "problem-report", "list", "--json"))
    assert ([one["id"] for one in reports["reports"]], reports["total"]) == ([number], 1)
    first = json.loads(_run(server, capsys, monkeypatch, "audit", "--limit", "1", "--json"))
    rest = _run(server, capsys, monkeypatch, "audit", "--before", str(first["next_before"]), "--json")
    assert [one["id"] < first["next_before"] for one in json.loads(rest)["events"]].count(False) == 0
    assert server.get(f"/api/admin/reports/{number}").json()["notes"] == "Done."
