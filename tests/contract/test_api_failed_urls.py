"""Failed addresses of one run, of a source or of all runs as CSV, on both databases."""

from __future__ import annotations

import csv
from io import StringIO

from holdfast.types import Outcome
from tests.api_bed import Server
from tests.contract.crawl_bed import crawl
from tests.contract.frontier_bed import many


def _listed(server: Server, **params: object) -> list[dict[str, str]]:
    answer = server.get("/api/v1/failed-urls", params=params)
    assert answer.status_code == 200, answer.text
    assert "no-store" in answer.headers["cache-control"]
    return list(csv.DictReader(StringIO(answer.text)))


def test_failed_urls_are_listed_by_run_source_and_reason(server: Server) -> None:
    with crawl(server) as running:
        running.add(*many("ex.example", 1500))
        lease = running.lease()
        running.settle(lease, 0)
        running.settle(lease, 1, outcome=Outcome.BLOCKED_4XX, reason="http_404", status=404)
        running.settle(lease, 2, outcome=Outcome.FAILED, reason="=cmd", status=None)
        running.release(lease)
        every, of_run = _listed(server), _listed(server, execution=running.id)
        of_source, by_reason = _listed(server, source="ex"), _listed(server, reason="http_404")
        unknown = [
            server.get("/api/v1/failed-urls", params=params).status_code
            for params in ({"source": "another"}, {"execution": running.id + 1})
        ]

    assert {row["reason"] for row in every} == {"http_404", "'=cmd"}
    assert {row["execution"] for row in every} == {str(running.id)}
    assert every == of_run == of_source
    assert [row["status"] for row in by_reason] == ["404"]
    assert unknown == [404, 404]
