"""Exclude rules that are added to a run under way, over HTTP and on both databases."""

from __future__ import annotations

import pytest

from holdfast.jobs import execution_queries
from tests.api_bed import Server
from tests.contract.crawl_bed import crawl
from tests.contract.frontier_bed import many


def test_a_preview_counts_what_is_queued_and_changes_nothing(server: Server) -> None:
    with crawl(server) as running:
        running.add(*many("ex.example", 12))
        path = f"/api/v1/executions/{running.id}/exclusions"
        found = server.ask("POST", f"{path}/preview", rules=["/1", "nowhere"]).json()
        after = server.get(path).json()

    # /1, /10 and /11.
    assert (found["matching"], found["looked_at"], found["is_all"]) == (3, 12, True)
    assert sorted(found["samples"]) == [f"https://ex.example/{number}" for number in (1, 10, 11)]
    assert (after["added"], after["is_editable"]) == ([], True)


def test_a_run_of_another_tool_has_nothing_queued_that_could_match(server: Server) -> None:
    with crawl(server) as running:
        with running.raw_db.write() as tx:
            # As zimit's: seeds, and no plan of ours.
            tx.execute("UPDATE executions SET config = ? WHERE id = ?",
                       ('{"seeds": ["https://ex.example/"]}', running.id))  # fmt: skip
        path = f"/api/v1/executions/{running.id}/exclusions"
        answer = server.ask("POST", f"{path}/preview", rules=["x"])
        shown = server.get(path).json()

    assert (answer.status_code, answer.json()["matching"], shown["is_editable"]) == (200, 0, False)


def test_rules_are_added_taken_away_audited_and_told_to_the_crawl(server: Server) -> None:
    with crawl(server) as running:
        path = f"/api/v1/executions/{running.id}/exclusions"
        added = server.ask("PUT", path, rules=["/calendar/", "/calendar/", r"\?sort="])
        with running.raw_db.read() as tx:
            told = execution_queries.run_orders(tx, running.raw_db.dialect, execution_id=running.id)
        with running.raw_db.write() as tx:
            execution_queries.add_landing(
                tx, running.raw_db.dialect, execution_id=running.id, urls=["https://www.ex.example/"]
            )
        taken = server.client.request("PUT", path, json={"rules": []})
        with running.raw_db.read() as tx:
            at_last = execution_queries.run_orders(tx, running.raw_db.dialect, execution_id=running.id)
        events = server.get("/api/admin/audit", params={"action": "execution.exclusions"}).json()

    assert added.json()["added"] == ["/calendar/", r"\?sort="]
    assert told == (None, (), ("/calendar/", r"\?sort="), False)
    assert taken.json()["added"] == []
    assert at_last == (None, ("https://www.ex.example/",), (), False)
    assert f"execution {running.id}" in str(events)
    assert r"\\?sort=" in str(events)


@pytest.mark.parametrize("rules", [["("], ["(?=x)"], ["x"] * 201])
def test_a_rule_that_cannot_be_used_is_refused_at_its_field(server: Server, rules: list[str]) -> None:
    with crawl(server) as running:
        path = f"/api/v1/executions/{running.id}/exclusions"
        refused = [server.ask("PUT", path, rules=rules), server.ask("POST", f"{path}/preview", rules=rules)]
        after = server.get(path).json()

    assert {answer.status_code for answer in refused} <= {400, 422}
    assert {answer.json()["field"] for answer in refused} == {"rules"}
    assert after["added"] == []


def test_a_run_that_is_over_takes_no_rules(server: Server) -> None:
    with crawl(server, state="completed") as over:
        answer = server.ask("PUT", f"/api/v1/executions/{over.id}/exclusions", rules=["/x"])
        shown = server.get(f"/api/v1/executions/{over.id}/exclusions").json()

    assert (answer.status_code, answer.json()["code"]) == (400, "not_running")
    assert shown["is_editable"] is False
    assert server.get("/api/v1/executions/999999/exclusions").status_code == 404
    assert server.ask("POST", "/api/v1/executions/999999/exclusions/preview", rules=["x"]).status_code == 404
