"""A crawl that runs without its processes, for the suites of routes that look at crawls."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from holdfast.clock import to_micros
from holdfast.db import connect
from holdfast.frontier import Frontier
from holdfast.jobs.views.status import ExecutionStatus, read_status
from holdfast.types import CircuitState, DomainLease, DomainUpdate, FoundUrl, Outcome, Visit
from tests.api_bed import Server
from tests.frontier_audit import audit

PLAN: dict[str, Any] = {"seeds": ["https://ex.example/"], "contact": "me@example.org", "scope": "host"}


class Crawl:
    """A crawl that runs, without its processes."""

    def __init__(self, server: Server, *, kind: str = "crawl", state: str = "running", code: str = "ex") -> None:
        self.server = server
        sources = {row["code"]: row["id"] for row in server.get("/api/v1/sources").json()["sources"]}
        self.source_id = sources.get(code) or server.source(code)
        self.raw_db = connect(server.bed.url)
        self.frontier = Frontier(self.raw_db, server.clock)
        now = to_micros(server.clock.now())
        with self.raw_db.write() as tx:
            [(job_id,)] = tx.execute(
                "INSERT INTO jobs (source_id, kind, fingerprint, config, created_at, state) VALUES"
                " (?, ?, 'f', '{}', ?, ?) RETURNING id",
                (self.source_id, kind, now, "running" if state == "running" else "completed"),
            )
            [(self.id,)] = tx.execute(
                "INSERT INTO executions (job_id, number, state, config, output_dir, created_at, started_at,"
                " run_seconds) VALUES (?, 1, ?, ?, '', ?, ?, 0) RETURNING id",
                (job_id, state, json.dumps(PLAN), now, now),
            )

    def add(self, *found: FoundUrl) -> None:
        self.frontier.add(self.id, found)

    def lease(self, owner: int = 7) -> DomainLease:
        [lease] = self.frontier.lease(self.id, owner, domains=1, pages=100)
        return lease

    def settle(self, lease: DomainLease, number: int, **changes: Any) -> None:
        now = self.server.clock.now()
        facts: dict[str, Any] = {"outcome": Outcome.SUCCESS, "reason": "ok", "status": 200, **changes}
        visit = Visit(attempt=lease.attempts[number], token=lease.token, started_at=now, finished_at=now, **facts)
        self.frontier.settle(self.id, 7, [visit])

    def release(self, lease: DomainLease, **changes: Any) -> None:
        facts: dict[str, Any] = {"circuit": CircuitState(), "next_allowed_at": self.server.clock.now(), **changes}
        self.frontier.release(self.id, 7, [DomainUpdate(domain_id=lease.domain_id, token=lease.token, **facts)])

    def urls(self) -> set[str]:
        with self.raw_db.read() as tx:
            rows = tx.execute(
                "SELECT p.url FROM page_crawls c JOIN pages p ON p.id = c.page_id"
                " WHERE c.execution_id = ? AND c.outcome IS NULL",
                (self.id,),
            )
        return {row[0] for row in rows}

    def status(self) -> ExecutionStatus:
        return read_status(self.raw_db, self.server.clock, self.id)

    def close(self) -> None:
        assert audit(self.raw_db, self.id) == []
        self.raw_db.close()


@contextmanager
def crawl(server: Server, **options: Any) -> Iterator[Crawl]:
    made = Crawl(server, **options)
    try:
        yield made
    finally:
        made.close()


def all_of(server: Server, path: str, **query: Any) -> Iterator[dict[str, Any]]:
    """Yield the items of a list, piece by piece."""
    cursor: dict[str, str] = {}
    for _ in range(100):
        answer = server.get(path, params={**query, **cursor})
        assert answer.status_code == 200, answer.text
        body = answer.json()
        yield from body["items"]
        if body["next"] is None:
            return
        cursor = {"cursor": body["next"]}
    raise AssertionError("the list has no end")
