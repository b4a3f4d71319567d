"""What crawls did lately, over HTTP and on both databases: counted from the newest attempts, and nothing hidden."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import select

from holdfast.db.models import Execution, Snapshot
from holdfast.jobs.views import activity
from holdfast.types import CircuitState, Outcome, RecordRef, RobotsAnswer, RobotsRecord, UrlKind
from holdfast.warc.record import snapshot_id
from holdfast.withdrawals.hiding import hide
from tests.api_bed import Server
from tests.archive import BEGIN, Shot, build_archive
from tests.contract.crawl_bed import Crawl, crawl
from tests.contract.frontier_bed import found, many

_DOWN: dict[str, Any] = {"outcome": Outcome.FAILED, "reason": "dns", "message": "no such host", "status": None}


def _activity(server: Server, **query: Any) -> dict[str, Any]:
    answer = server.get("/api/stats/activity", params=query)
    assert answer.status_code == 200, answer.text
    told: dict[str, Any] = answer.json()
    return told


def _visit(running: Crawl, domain: str, *visits: dict[str, Any], **kind: Any) -> None:
    """Crawl as many new pages of a domain as there are visits, and let it go."""
    running.add(*many(domain, len(visits), **kind))
    lease = running.lease()
    for number, facts in enumerate(visits):
        running.settle(lease, number, **facts)
        running.server.clock.advance(1)
    running.release(lease)


def test_an_archive_without_crawls_has_no_activity(server: Server) -> None:
    told = _activity(server)

    assert (told["attempts"], told["isCut"], told["countedFrom"]) == (0, False, None)
    assert (told["statuses"], told["domains"], told["pages"], told["unreachableHosts"]) == ([], [], [], [])
    assert told["statusClasses"] == {"2xx": 0, "3xx": 0, "4xx": 0, "5xx": 0, "other": 0}


def test_status_codes_and_domains_of_the_span_are_counted(server: Server) -> None:
    stored = {"record": RecordRef(warc_file_id=1, offset=5, length=9, ordinal=2), "requests": 1}
    with crawl(server) as running:
        _visit(running, "old.example", {"status": 410, "requests": 1})
        server.clock.advance(timedelta(hours=3).total_seconds())
        _visit(running, "large.example", {"wire_bytes": 900, **stored})
        missing = {"status": 404, "outcome": Outcome.BLOCKED_4XX, "wire_bytes": 3, **stored}
        _visit(running, "many.example", *[{"wire_bytes": 10, **stored}] * 2, missing)
        _visit(running, "down.example", _DOWN, _DOWN)
        lately = {order: _activity(server, hours=1, sortBy=order) for order in ("captures", "bytes", "errors")}
        all_day = _activity(server, hours=24)

    told = lately["captures"]
    assert (told["attempts"], told["isCut"]) == (6, False)
    assert told["statuses"] == [
        {"status": 200, "attempts": 3},
        {"status": None, "attempts": 2},
        {"status": 404, "attempts": 1},
    ]
    assert {name: count for name, count in told["statusClasses"].items() if count} == {"2xx": 3, "4xx": 1}
    assert told["domains"][0] == {"domain": "many.example", "captures": 3, "bytes": 23, "errors": 1}
    assert {order: [one["domain"] for one in found["domains"]] for order, found in lately.items()} == {
        "captures": ["many.example", "large.example"],
        "bytes": ["large.example", "many.example"],
        "errors": ["down.example", "many.example"],
    }
    assert {"status": 410, "attempts": 1} in all_day["statuses"]
    assert all_day["statusClasses"]["4xx"] == 2


def test_only_the_newest_attempts_are_counted(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(activity, "MOST_ATTEMPTS", 4)
    with crawl(server) as running:
        _visit(running, "first.example", *[{"status": 500, "requests": 1}] * 3)
        last = server.clock.now()
        _visit(running, "last.example", *[{"status": 200, "requests": 1}] * 4)
        told = _activity(server)

    assert (told["attempts"], told["isCut"]) == (4, True)
    assert told["countedFrom"].startswith(last.isoformat()[:19])
    assert told["statuses"] == [{"status": 200, "attempts": 4}]
    assert told["statusClasses"]["5xx"] == 3


def test_what_a_run_closed_without_a_request_is_no_activity(server: Server) -> None:
    with crawl(server) as running:
        running.add(*many("ex.example", 5))
        running.frontier.close_rest(running.id, outcome=Outcome.EXCLUDED, reason="max_pages", limit=5)
        _visit(running, "forbidding.example", {"outcome": Outcome.BLOCKED_ROBOTS, "reason": "robots", "status": None})
        told = _activity(server)

    assert (told["attempts"], told["pages"]) == (0, [])


def _record(one: Snapshot) -> RecordRef:
    ordinal = one.id - snapshot_id(one.warc_file_id, 0)
    return RecordRef(warc_file_id=one.warc_file_id, offset=one.warc_offset, length=one.warc_length, ordinal=ordinal)


def test_recent_pages_have_their_outcome_and_capture_and_none_is_hidden(server: Server) -> None:
    shots = [Shot(url=f"https://ex.example/{number}", source="ex") for number in range(2)]
    archive = build_archive(server.archive.settings.home, shots, database_url=server.bed.url)
    with archive.database.read() as session:
        stored = {row.url: row for row in session.scalars(select(Snapshot).order_by(Snapshot.id))}
    archive.database.close()
    with crawl(server) as running:
        captured = [{"title": f"Page {number}", "record": _record(one)} for number, one in enumerate(stored.values())]
        _visit(running, "ex.example", *captured)
        _visit(running, "img.example", {}, kind=UrlKind.REQUISITE)
        _visit(running, "down.example", _DOWN)
        before = _activity(server)["pages"]
        hide(server.archive.database, server.clock, "https://ex.example/0", reason="asked")
        after = _activity(server)["pages"]
        with server.archive.database.write() as session:
            begun = session.get_one(Execution, running.id)
            more = {"job_id": begun.job_id, "number": 2, "state": "completed", "output_dir": "x", "created_at": BEGIN}
            session.add(Execution(**more, started_at=BEGIN, frontier_id=begun.id))
        continued = {one["executionId"] for one in _activity(server)["pages"]}

    assert running.id not in continued, "a page is of the run that requested it, not of the one that it continued"
    down, second, first = before
    assert (down["url"], down["outcome"], down["reason"], down["snapshotId"]) == (
        "https://down.example/0", "failed", "dns", None)  # fmt: skip
    assert (first["title"], first["sourceCode"], first["executionId"]) == ("Page 0", "ex", running.id)
    assert first["snapshotId"] == stored["https://ex.example/0"].id
    assert first["capturedAt"].startswith("2024-03-01T12:00:00")
    assert after == [down, second]


@pytest.mark.parametrize(
    ("robots", "reason", "step"),
    [
        (False, "no such host", "Open down.example in a browser."),
        (True, "robots.txt cannot be fetched (status 503)", "Open https://down.example/robots.txt in a browser."),
    ],
)
def test_an_unreachable_host_has_its_reason_and_the_next_step(
    server: Server, robots: bool, reason: str, step: str
) -> None:
    now = server.clock.now()
    state = RobotsRecord(
        origin="https://down.example", answer=RobotsAnswer.UNREACHABLE, status=503, body=b"", failures=3,
        fetched_at=now, checked_at=now,
    )  # fmt: skip
    with crawl(server) as running:
        running.add(found("down.example", 1), found("fine.example", 1))
        for lease in running.frontier.lease(running.id, 7, domains=2, pages=1):
            is_down = lease.domain == "down.example"
            running.settle(lease, 0, **(_DOWN if is_down else {}))
            circuit = CircuitState(state="open", failures=5, unreachable_since=now) if is_down else CircuitState()
            running.release(lease, circuit=circuit, robots=(state,) if is_down and robots else ())
        [host] = _activity(server)["unreachableHosts"]

    assert (host["domain"], host["failures"]) == ("down.example", 5)
    assert host["reason"].startswith(reason)
    assert host["nextStep"].startswith(step)
