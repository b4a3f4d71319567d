"""Addresses that are submitted again, or to a source that must be found first."""

from __future__ import annotations

import re
from typing import Any

from sqlalchemy import event

from tests.api_bed import Server
from tests.contract.crawl_bed import crawl
from tests.contract.frontier_bed import many


def test_queued_address_gets_the_higher_priority(server: Server) -> None:
    with crawl(server) as running:
        running.add(*(one._replace(priority=2) for one in many("ex.example", 3)))
        submitted = [
            server.ask("POST", "/api/v1/frontier/submit", url="https://ex.example/2", priority=priority)
            for priority in (3, 3, 1, None)
        ]
        added = server.ask("POST", "/api/frontier/add", urls=["https://ex.example/1"], priority=3).json()
        ranks = {attempt.url[-1]: attempt.priority for attempt in running.lease().attempts}

    assert [(one.status_code, one.json()["added"], one.json()["raised"]) for one in submitted] == [
        (200, 0, 1), (200, 0, 0), (200, 0, 0), (200, 0, 0)
    ]  # fmt: skip
    assert (added["added"], added["places"][0]["raised"]) == (0, 1)
    assert ranks == {"0": 2, "1": 3, "2": 3}


def test_adding_without_a_source_reads_the_sources_once(server: Server) -> None:
    for number in range(5):
        server.source(f"s{number}")
    statements: list[str] = []

    def note(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        if re.search(r"FROM sources\b.*\bcode > ", statement, re.DOTALL):
            statements.append(statement)

    event.listen(server.archive.database.engine, "before_cursor_execute", note)
    urls = [f"https://s{number % 5}.example/{number}" for number in range(40)]
    added = server.ask("POST", "/api/frontier/add", urls=urls).json()
    event.remove(server.archive.database.engine, "before_cursor_execute", note)

    assert {place["sourceCode"]: place["urls"] for place in added["places"]} == {f"s{n}": 8 for n in range(5)}
    assert len(statements) == 1
