"""What the pages of the control room ask about a crawl that runs, on both databases."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from sqlalchemy import update

from holdfast.api.routes.frontier import list_frontier_hosts
from holdfast.clock import SystemClock, to_micros
from holdfast.db.models import Domain
from holdfast.frontier.domains import DomainState
from holdfast.types import Outcome
from tests.api_bed import Server
from tests.contract.crawl_bed import all_of, crawl
from tests.contract.frontier_bed import many


def test_the_hosts_of_a_crawl_say_what_each_has_done_and_what_it_waits_for(server: Server) -> None:
    later = server.clock.now() + timedelta(seconds=90)
    with crawl(server) as running:
        running.add(*many("ex.example", 3))
        lease = running.lease()
        running.settle(lease, 0)
        running.settle(lease, 1, outcome=Outcome.FAILED, reason="timeout", status=None)
        running.release(lease, next_allowed_at=later)
        running.add(*many("b.example", 2))
        server.ask("PUT", "/api/domains/b.example/settings", paused=True)
        running.add(*many("done.example", 1))
        done = running.lease()
        running.settle(done, 0)
        running.release(done)

        due = list(all_of(server, "/api/frontier/hosts", limit=1))
        met = list(all_of(server, "/api/frontier/hosts", order="met", limit=2))

    by_name = {one["domain"]: one for one in met}
    assert {one["domain"] for one in due} == {"ex.example", "b.example"}
    assert set(by_name) == {"ex.example", "b.example", "done.example"}
    counts = ("pending", "completed", "failed", "ruledOut")
    assert [by_name["ex.example"][name] for name in counts] == [1, 1, 1, 0]
    assert (by_name["ex.example"]["state"], by_name["b.example"]["state"]) == ("resting", "paused")
    assert datetime.fromisoformat(by_name["ex.example"]["nextAllowedAt"]) == later
    assert by_name["done.example"]["dueAt"] is None
    assert server.get("/api/frontier/hosts?execution=999999").status_code == 404


class _FastClock(SystemClock):
    """The clock of a machine that is an hour ahead."""

    def now(self) -> datetime:
        return super().now() + timedelta(hours=1)


def test_what_hosts_wait_for_goes_by_the_clock_of_the_database(server: Server) -> None:
    archive = replace(server.archive, clock=_FastClock())
    with crawl(server) as running:
        running.add(*many("ex.example", 1))
        with archive.database.write() as session:
            soon = to_micros(SystemClock().now() + timedelta(minutes=30))
            session.execute(update(Domain).where(Domain.name == "ex.example").values(next_allowed_at=soon))
        with archive.database.read() as session:
            [host] = list_frontier_hosts(archive, session, running.id).items

    # SQLite has no clock of its own.
    has_clock = archive.database.engine.dialect.name == "postgresql"
    assert host.state is (DomainState.RESTING if has_clock else DomainState.READY)


def test_the_figures_are_those_that_the_stream_tells(server: Server) -> None:
    with crawl(server) as running:
        running.add(*many("ex.example", 3))
        found = server.get("/api/crawler/figures").json()

    assert found["pagesPerSecond"] == 0
    assert found["alerts"] == []
    assert found["circuits"] == {}


def test_the_account_of_a_run_is_what_the_command_prints(server: Server) -> None:
    with crawl(server) as running:
        running.add(*many("ex.example", 4))
        lease = running.lease()
        running.settle(lease, 0)
        running.settle(lease, 1, outcome=Outcome.FAILED, reason="timeout", status=None)
        found = server.get(f"/api/v1/executions/{running.id}/report").json()

    assert (found["execution"], found["state"], found["total"], found["open"]) == (running.id, "running", 4, 2)
    assert found["outcomes"] == {"success": 1, "failed": 1}
    assert {(one["outcome"], one["word"], one["reason"], one["count"]) for one in found["reasons"]} == {
        ("failed", "failed", "timeout", 1), ("success", "captured", "ok", 1), ("open", "queued", "-", 2)
    }  # fmt: skip
    assert found["domains"] == {"ex.example": 4}
    assert server.get("/api/v1/executions/999999/report").status_code == 404
