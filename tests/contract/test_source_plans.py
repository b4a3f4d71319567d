"""A source's code and its schedule, over HTTP and on both databases."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from holdfast.jobs.endings import RunEnding, RunResult
from tests.api_bed import Server

CONFIG: dict[str, Any] = {"seeds": ["https://www.ex.example/"]}
YAML = {"content-type": "application/yaml"}


def _made(server: Server, **form: Any) -> Any:
    answer = server.ask("POST", "/api/v1/sources", config=CONFIG, **form)
    assert answer.status_code == 201, answer.text
    return answer.json()


def _job(server: Server) -> Any:
    return server.get("/api/v1/jobs").json()["jobs"][0]


def test_source_without_a_code_gets_one_from_its_name(server: Server) -> None:
    previewed = server.ask("POST", "/api/v1/sources/preview", name="Stadt Kiel", config=CONFIG).json()["code"]
    made = [_made(server, name="Stadt Kiel")["code"] for _ in range(3)]
    of_host = _made(server)["code"]

    assert previewed == "stadt-kiel"
    assert made == ["stadt-kiel", "stadt-kiel-2", "stadt-kiel-3"]
    assert of_host == "ex-example"


def test_code_changes_until_the_first_run(server: Server) -> None:
    source = _made(server, name="Kiel", visibility="members")
    path = f"/api/v1/sources/{source['id']}"
    _made(server, name="Taken")

    taken = server.ask("PATCH", path, code="taken")
    renamed = server.ask("PATCH", path, code="kiel-city").json()
    replaced = server.ask("PUT", path, code="kiel-town", config=CONFIG).json()
    job_id = server.ask("POST", "/api/v1/jobs", source_id=source["id"]).json()["id"]
    server.bed.run_once(job_id, RunEnding(result=RunResult.COMPLETED))
    refused = server.ask("PATCH", path, code="kiel")
    same = server.ask("PATCH", path, code="kiel-town", name="Kiel")

    assert (taken.status_code, taken.json()["field"]) == (400, "code")
    assert (source["has_run"], renamed["code"], replaced["code"]) == (False, "kiel-city", "kiel-town")
    assert (refused.status_code, refused.json()["field"]) == (400, "code")
    assert "since the first run" in refused.json()["error"]
    assert (same.status_code, same.json()["has_run"]) == (200, True)
    assert ("source.renamed", "source kiel-city") in [deed[1:] for deed in server.deeds()]


def test_schedule_in_words_makes_changes_and_ends_the_job(server: Server) -> None:
    source = _made(server, name="Ex", schedule="monthly on day 31 at 03:00 Europe/Paris")
    path = f"/api/v1/sources/{source['id']}"
    made = _job(server)
    server.ask("PATCH", path, description="Another one")
    kept = _job(server)
    changed = server.ask("PATCH", path, schedule="every 2 days from 2026-01-01 at 04:00").json()["schedule"]
    later = _job(server)
    once = server.ask("PATCH", path, schedule="once").json()["schedule"]

    assert source["schedule"] == made["schedule"] == "monthly on day 31 at 03:00 Europe/Paris"
    assert kept == made, "a schedule that is left out stays"
    assert (changed, later["schedule"]) == ("every 2 days from 2026-01-01 at 04:00 UTC",) * 2
    assert later["id"] == made["id"]
    assert (once, server.get("/api/v1/jobs").json()["total"]) == ("once", 0)


def test_dated_job_runs_at_its_dates_whatever_it_took(server: Server) -> None:
    server.clock.advance((datetime(2027, 1, 30, 12, tzinfo=UTC) - server.clock.now()).total_seconds())
    form = {"code": "ex", "config": CONFIG, "schedule": "monthly on day 31 at 03:00 Europe/Paris"}
    shown = server.ask("POST", "/api/v1/sources/preview", **form).json()["next_runs"]
    _made(server, code="ex", schedule=form["schedule"])
    runs = []
    for _ in range(3):
        turn = datetime.fromisoformat(_job(server)["next_run_at"])
        runs.append(turn)
        server.clock.advance((turn - server.clock.now()).total_seconds() + 1)
        server.bed.party.scheduler.tick()
        lease = server.bed.party.taken()
        # A run of two days must not move the next date.
        server.clock.advance(2 * 86_400)
        server.bed.party.leases.settle(lease, RunEnding(result=RunResult.COMPLETED))

    assert [f"{run:%Y-%m-%dT%H:%M}" for run in runs] == ["2027-01-31T02:00", "2027-02-28T02:00", "2027-03-31T01:00"]
    assert [datetime.fromisoformat(one) for one in shown[:3]] == runs


def test_rebalance_leaves_fixed_times_alone(server: Server) -> None:
    for number in range(4):
        _made(server, code=f"ex-{number}", schedule="daily at 03:00")
    server.clock.advance(2 * 3600)

    plan = server.ask("POST", "/api/v1/scheduler/rebalance/preview").json()

    assert plan["moved"] == []
    assert {one["reason"] for one in plan["skipped"]} == {"fixed_time"}


def test_interval_over_a_date_takes_the_date_away(server: Server) -> None:
    _made(server, code="ex", schedule="daily at 03:00")
    job = _job(server)

    hourly = server.ask("PUT", f"/api/v1/jobs/{job['id']}", interval_minutes=6, interval_type="hours").json()
    yearly = server.ask("PUT", f"/api/v1/jobs/{job['id']}", schedule="yearly on 1 March at 05:00").json()
    undated = server.ask("PUT", f"/api/v1/jobs/{job['id']}", interval_minutes=1, interval_type="months")

    assert hourly["schedule"] == "every 6 hours"
    assert (yearly["schedule"], yearly["next_run_at"][5:16]) == ("yearly on 1 March at 05:00 UTC", "03-01T05:00")
    assert (undated.status_code, undated.json()["field"]) == (400, "interval_type")


def test_file_of_sources_carries_the_schedule(server: Server) -> None:
    _made(server, code="ex", schedule="weekly on Monday at 03:00")
    text = server.get("/api/v1/sources/export").text
    other = text.replace("Monday", "Friday")

    same = server.client.post("/api/v1/sources/import", content=text, headers=YAML).json()
    trial = server.client.post("/api/v1/sources/import?dry_run=true", content=other, headers=YAML).json()
    after_trial = _job(server)["schedule"]
    taken = server.client.post("/api/v1/sources/import", content=other, headers=YAML).json()

    assert yaml.safe_load(text)["sources"][0]["schedule"] == "weekly on Monday at 03:00 UTC"
    assert (same["unchanged"], trial["updated"], taken["updated"]) == (["ex"], ["ex"], ["ex"])
    assert (after_trial, _job(server)["schedule"]) == (
        "weekly on Monday at 03:00 UTC",
        "weekly on Friday at 03:00 UTC",
    )


@pytest.mark.parametrize(
    ("form", "field", "said"),
    [
        ({"schedule": "now and then"}, "schedule", "write for example"),
        ({"config": {**CONFIG, "exclude": ["("]}}, "config.exclude", "a ( is not closed"),
        ({"code": "Bad Code"}, "code", "lower-case letters"),
    ],
)
def test_wrong_field_is_named(server: Server, form: dict[str, Any], field: str, said: str) -> None:
    for path in ("/api/v1/sources", "/api/v1/sources/preview"):
        answer = server.ask("POST", path, **{"name": "Ex", "config": CONFIG, **form})

        assert (answer.status_code, answer.json()["field"]) == (400, field), answer.text
        assert said in answer.json()["error"]
