"""Pages of a domain are queued again by date and result, over HTTP and by command, on both databases."""

from __future__ import annotations

import json
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import text

from holdfast.clock import to_micros
from holdfast.db import connect
from holdfast.types import Outcome, UrlKind
from tests.api_bed import Server
from tests.contract.crawl_bed import crawl
from tests.contract.frontier_bed import many
from tests.typed import Typist


def _crawl_three_days(server: Server) -> None:
    """Fetch a page on each of three days, and let one fail on the last; each embeds a picture."""
    for number in range(3):
        with crawl(server, code="ex", kind=f"day{number}", state="running") as run:
            one, picture = many("ex.example", 2 * number + 2)[-2:]
            run.add(one, picture._replace(kind=UrlKind.REQUISITE))
            lease = run.lease()
            for at in range(len(lease.attempts)):
                run.settle(lease, at)
            run.release(lease)
        server.clock.advance(timedelta(days=1).total_seconds())
    with crawl(server, code="ex", kind="last") as run:
        run.add(*many("ex.example", 9)[-1:])
        lease = run.lease()
        run.settle(lease, 0, outcome=Outcome.FAILED, reason="timeout", status=None)
        run.release(lease)
    with server.bed.database.write() as session:
        session.execute(text("UPDATE executions SET state = 'completed'"))
        session.execute(text("UPDATE jobs SET state = 'completed'"))


def _requeue(server: Server, **form: Any) -> dict[str, Any]:
    answer = server.ask("POST", "/api/frontier/requeue", domain="ex.example", **form)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def _waiting(server: Server) -> list[tuple[str, int]]:
    with server.bed.database.read() as session:
        rows = session.execute(text("SELECT url, priority FROM added_urls ORDER BY url"))
        return [(url, priority) for url, priority in rows]


def test_requeue_counts_first_and_queues_pages_of_a_span(server: Server) -> None:
    first = server.clock.now().date()
    _crawl_three_days(server)
    span = {"since": str(first + timedelta(days=1)), "until": str(first + timedelta(days=2))}

    dry = _requeue(server, **span)
    assert dry == {"matched": 2, "added": 0, "skipped": 0, "places": [], "next": None}
    assert _waiting(server) == []
    done = _requeue(server, **span, apply=True)
    failed = _requeue(server, since=str(first), status="failed")

    [place] = done.pop("places")
    assert done == {"matched": 2, "added": 2, "skipped": 0, "next": None}
    assert (place["status"], place["urls"]) == ("job_made", 2)
    assert place["when"] == f"Job {place['jobId']} crawls them once, as soon as a worker is free."
    assert _waiting(server) == [("https://ex.example/2", 2), ("https://ex.example/4", 2)]
    assert failed["matched"] == 1


def test_requeue_continues_where_it_stopped(server: Server) -> None:
    first = server.clock.now().date()
    _crawl_three_days(server)
    with server.bed.database.read() as session:
        hashes = sorted(session.scalars(text("SELECT url_hash FROM pages")))

    rest = _requeue(server, since=str(first), after=hashes[-1])

    assert rest == {"matched": 0, "added": 0, "skipped": 0, "places": [], "next": None}


def test_requeue_skips_pages_out_of_scope(server: Server) -> None:
    first = server.clock.now().date()
    _crawl_three_days(server)
    [source] = server.get("/api/v1/sources").json()["sources"]
    edited = server.ask("PATCH", f"/api/v1/sources/{source['id']}", config={"exclude": ["/2$"]})
    assert edited.status_code == 200, edited.text

    done = _requeue(server, since=str(first), apply=True)

    assert (done["matched"], done["added"], done["skipped"]) == (3, 2, 1)


@pytest.mark.parametrize(
    ("state", "moment"),
    [
        ("pending", "at 2031-05-06 07:08 UTC"),
        ("scheduled", "as soon as a worker is free"),
        ("running", "after its current run"),
        ("paused", "which is paused: resume it"),
    ],
)
def test_requeue_says_when_the_next_run_comes(server: Server, state: str, moment: str) -> None:
    first = server.clock.now().date()
    _crawl_three_days(server)
    at = to_micros(datetime(2031, 5, 6, 7, 8, tzinfo=UTC)) if state == "pending" else None
    with closing(connect(server.bed.url)) as raw_db, raw_db.write() as tx:
        tx.execute("UPDATE jobs SET state = ?, next_run_at = ? WHERE kind = 'day1'", (state, at))
        [(job_id,)] = tx.execute("SELECT id FROM jobs WHERE kind = 'day1'")

    [place] = _requeue(server, since=str(first), apply=True)["places"]

    assert (place["status"], place["urls"]) == ("waits", 3)
    assert place["when"] == f"They wait for the next run of ex: job {job_id}, {moment}."


def test_requeue_says_which_run_takes_the_pages(server: Server) -> None:
    first = server.clock.now().date()
    _crawl_three_days(server)
    with crawl(server, code="ex", kind="again") as run:
        [place] = _requeue(server, since=str(first), apply=True)["places"]

        assert (place["status"], place["executionId"]) == ("joined", run.id)
        assert place["when"] == f"Run {run.id} of ex crawls them; it is running."


@pytest.mark.parametrize("allowed", [False, True])
def test_requeue_goes_on_after_a_page_on_an_unusual_port(server: Server, allowed: bool) -> None:
    first = server.clock.now().date()
    _crawl_three_days(server)
    with server.bed.database.write() as session:
        session.execute(text("UPDATE pages SET url = 'https://ex.example:81/2' WHERE url = 'https://ex.example/2'"))
    [source] = server.get("/api/v1/sources").json()["sources"]
    config: dict[str, Any] = {"seeds": ["https://ex.example/"]}
    if allowed:
        config = {"seeds": [*config["seeds"], "https://ex.example:81/"], "allow_ports": [81]}
    edited = server.ask("PATCH", f"/api/v1/sources/{source['id']}", config=config)
    assert edited.status_code == 200, edited.text

    done = _requeue(server, since=str(first), apply=True)

    assert (done["matched"], done["added"], done["skipped"]) == (3, 2 + allowed, 1 - allowed)
    assert any(":81/" in url for url, _ in _waiting(server)) == allowed


def test_requeue_refuses_no_date_and_unknown_domains(server: Server) -> None:
    _crawl_three_days(server)

    everything = server.ask("POST", "/api/frontier/requeue", domain="ex.example")
    unknown = server.ask("POST", "/api/frontier/requeue", domain="none.example", since="2024-01-01")
    turned = server.ask("POST", "/api/frontier/requeue", domain="ex.example", since="2024-02-01", until="2024-01-01")

    assert (turned.status_code, "`since` is later than `until`" in turned.text) == (422, True)
    assert (everything.status_code, everything.json()["field"]) == (422, "since")
    assert (unknown.status_code, unknown.json()["code"]) == (404, "domain_not_found")


def test_requeue_command_is_a_dry_run_unless_applied(
    server: Server, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = server.clock.now().date()
    _crawl_three_days(server)
    if not server.bed.url.startswith("sqlite"):
        monkeypatch.setenv("HOLDFAST_DATABASE_URL", server.bed.url)
    typist = Typist(server.bed.home, capsys)

    _, counted, _ = typist("frontier", "requeue", "ex.example", "--since", str(first))
    code, done, _ = typist("frontier", "requeue", "ex.example", "--since", str(first), "--apply", "--json")

    assert counted == "3 pages found\ndry run: nothing was changed; do it with --apply\n"
    _, again, _ = typist("frontier", "requeue", "ex.example", "--since", str(first), "--apply")

    found = json.loads(done)
    [place] = found.pop("places")
    assert (code, found) == (0, {"matched": 3, "added": 3, "skipped": 0, "next": None, "applied": True})
    assert again.splitlines()[1].startswith(f"3 pages of ex: They wait for the next run of ex: job {place['job_id']}, ")
    assert len(_waiting(server)) == 3
