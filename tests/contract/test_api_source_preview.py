"""What a source would do before it is saved, over HTTP and on both databases."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from tests.api_bed import Server
from tests.jobs_bed import failed

CONFIG: dict[str, Any] = {"seeds": ["https://ex.example/"]}


def _preview(server: Server, **form: Any) -> Any:
    answer = server.ask("POST", "/api/v1/sources/preview", **{"code": "new", "config": CONFIG, **form})
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_addresses_are_in_or_out_by_the_rule_that_the_crawl_itself_would_give(server: Server) -> None:
    rules = {**CONFIG, "include": [r"partner\.example/ex/"], "exclude": ["/calendar/"]}
    asked = [
        "https://ex.example/",
        "https://www.ex.example/news?utm_source=x",
        "https://ex.example/calendar/2026",
        "https://partner.example/ex/1",
        "https://partner.example/other",
        "javascript:alert(1)",
    ]

    found = _preview(server, config=rules, urls=asked)["urls"]

    assert [one["url"] for one in found] == asked
    assert [one["in_scope"] for one in found] == [True, True, False, True, False, False]
    assert [one["rule"] for one in found[:5]] == [
        "seed",
        "scope:host",
        "exclude:/calendar/",
        r"include:partner\.example/ex/",
        "scope:host",
    ]
    assert found[1]["normalised"] == "https://www.ex.example/news"
    assert (found[5]["normalised"], found[5]["rule"]) == (None, "url_refused")
    assert all(one["sentence"] for one in found)


def test_the_next_five_runs_keep_the_rhythm_that_a_job_has(server: Server) -> None:
    server.recurring("ex", minutes=60)
    job = server.get("/api/v1/jobs").json()["jobs"][0]

    same = _preview(server, code="ex", interval_minutes=1, interval_type="hours")["next_runs"]
    other = _preview(server, code="ex", interval_minutes=2, interval_type="hours")["next_runs"]
    once = _preview(server)["next_runs"]

    runs = [datetime.fromisoformat(one) for one in same]
    assert runs[0] == datetime.fromisoformat(job["next_run_at"])
    assert {later - earlier for earlier, later in pairwise(runs)} == {timedelta(hours=1)}
    assert len(other) == 5
    assert datetime.fromisoformat(other[1]) - datetime.fromisoformat(other[0]) == timedelta(hours=2)
    assert once == []


def test_the_yaml_of_a_preview_is_what_the_import_takes_and_nothing_was_saved(server: Server) -> None:
    found = _preview(server, name="New: <b>", config={**CONFIG, "max_depth": 9}, visibility="members")
    listed = server.get("/api/v1/sources").json()["total"]
    taken = server.client.post(
        "/api/v1/sources/import", content=found["yaml"], headers={"content-type": "application/yaml"}
    )
    made = server.get("/api/v1/sources").json()["sources"][0]

    assert listed == 0
    assert "max_depth" in found["warnings"][0]
    assert yaml.safe_load(found["yaml"])["sources"][0]["visibility"] == "members"
    assert taken.json()["created"] == ["new"]
    assert (made["name"], made["visibility"], made["config"]) == ("New: <b>", "members", {**CONFIG, "max_depth": 9})


@pytest.mark.parametrize(
    ("form", "field"),
    [
        ({"code": "Bad Code"}, "code"),
        ({"config": {}}, "config.seeds"),
        ({"config": {**CONFIG, "exclude": ["("]}}, "config.exclude"),
        ({"interval_minutes": 0}, "interval_minutes"),
        ({"interval_minutes": 1, "interval_type": "years"}, "interval_type"),
        ({"urls": ["https://ex.example/"] * 501}, "urls"),
    ],
)
def test_the_field_that_is_wrong_is_named(server: Server, form: dict[str, Any], field: str) -> None:
    answer = server.ask("POST", "/api/v1/sources/preview", **{"code": "new", "config": CONFIG, **form})

    assert answer.status_code in (400, 422)
    assert answer.json()["field"] == field


def test_a_job_that_runs_or_is_tried_again_between_two_turns_keeps_its_rhythm(server: Server) -> None:
    job_id = server.recurring("ex", minutes=60)
    turn = datetime.fromisoformat(server.get(f"/api/v1/jobs/{job_id}").json()["next_run_at"])
    server.clock.advance((turn - server.clock.now()).total_seconds() + 1)
    server.bed.party.scheduler.tick()
    lease = server.bed.party.taken()

    runs = _preview(server, code="ex", interval_minutes=1, interval_type="hours")["next_runs"]
    server.bed.party.leases.settle(lease, failed())
    again = _preview(server, code="ex", interval_minutes=1, interval_type="hours")["next_runs"]

    hour = timedelta(hours=1)
    assert [datetime.fromisoformat(one) for one in runs] == [turn + number * hour for number in range(1, 6)]
    assert datetime.fromisoformat(again[0]) < turn + hour, "the retry"
    assert [datetime.fromisoformat(one) for one in again[1:]] == [turn + number * hour for number in range(1, 5)]
