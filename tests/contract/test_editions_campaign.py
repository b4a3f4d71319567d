"""Campaigns on both databases: planned without a trace, applied once, in one order, never before their date."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import func, select

from holdfast.config import ZimitSettings
from holdfast.db.models import AuditEvent, Edition, Job, JobEvent
from holdfast.editions.campaign import CampaignRefused, CampaignRequest
from holdfast.editions.scheduling import Campaigns, annual_status
from holdfast.jobs.administration import source_jobs
from holdfast.jobs.states import JobAction
from tests.clock import FakeClock
from tests.editions_bed import BROKEN, INDEXED, EditionBed, open_edition_bed

DATE = datetime(2027, 1, 1, tzinfo=UTC)


@pytest.fixture
def bed(migrated_url: str, clock: FakeClock, tmp_path: Path) -> Iterator[EditionBed]:
    with open_edition_bed(migrated_url, clock, tmp_path) as opened:
        yield opened


def _rows(bed: EditionBed) -> list[int]:
    with bed.database.read() as session:
        return [session.scalar(select(func.count()).select_from(table)) or 0
                for table in (Job, Edition, JobEvent, AuditEvent)]  # fmt: skip


def _steps(bed: EditionBed, *sources: str, **wish: object) -> list[tuple[str, str | None]]:
    plan = bed.schedule(*sources, **wish)  # type: ignore[arg-type]
    return [(entry.step.value, entry.reason) for entry in plan.entries]


def test_a_plan_leaves_no_trace_and_says_what_an_application_does(bed: EditionBed) -> None:
    for code in ("cihr", "hc", "phac"):
        bed.jobs.source(code)
    before = _rows(bed)

    planned = bed.schedule("cihr", "hc", "phac", year=2027, apply=False)
    after = _rows(bed)
    applied = bed.schedule("phac", "cihr", "hc", year=2027)

    assert after == before
    assert not planned.applied
    assert all(entry.job_id is None for entry in planned.entries)
    assert [(entry.source, entry.at) for entry in planned.entries] == [
        (code, DATE + timedelta(seconds=at)) for at, code in enumerate(("hc", "phac", "cihr"))
    ]
    assert [(entry.source, entry.at, entry.step) for entry in applied.entries] == [
        (entry.source, entry.at, entry.step) for entry in planned.entries
    ]


def test_a_source_that_has_an_edition_of_the_year_is_in_the_status_whatever_it_is_meant_for(bed: EditionBed) -> None:
    bed.jobs.source("hinted", schedule_hint="annual")
    bed.jobs.source("named")
    bed.jobs.source("other")
    bed.schedule("named", year=2027)

    with bed.database.read() as session:
        found = annual_status(session, 2027)

    assert [row["sourceCode"] for row in found["sources"]] == ["hinted", "named"]


def test_a_campaign_is_scheduled_once_however_often_it_is_applied(bed: EditionBed) -> None:
    for code in ("hc", "phac"):
        bed.jobs.source(code)

    assert _steps(bed, "hc", "phac", year=2027) == [("create", None)] * 2
    rows = _rows(bed)
    assert _steps(bed, "hc", "phac", year=2027) == [("skip", "already_scheduled")] * 2
    assert _rows(bed) == rows


def test_a_job_of_the_campaign_has_no_caps_and_belongs_to_an_edition(bed: EditionBed) -> None:
    bed.jobs.source("hc", max_depth=2, max_pages=10)

    plan = bed.schedule("hc", year=2027)

    job, edition = bed.job("hc-20270101"), bed.edition("hc", 2027)
    assert (job.kind, job.state, job.next_run_at) == ("annual", "pending", DATE)
    assert (job.edition_id, job.shard_key, job.shard_kind) == (edition.id, "full-site", "full_site")
    assert (job.config["max_depth"], job.config["max_pages"]) == (-1, None)
    assert (job.details["campaign_kind"], job.details["campaign_year"]) == ("annual", 2027)
    assert job.details["scheduler_version"] == "v1"
    assert len(plan.entries[0].notes) == 2
    assert (edition.status, edition.shard_count) == ("in_progress", 1)
    assert edition.coverage_summary["seeds"] == ["https://hc.example/"]


def test_nothing_of_a_campaign_runs_before_its_date_and_then_in_order(bed: EditionBed, clock: FakeClock) -> None:
    for code in ("cihr", "zz", "phac", "hc"):
        bed.jobs.source(code)
    bed.schedule("zz", "cihr", year=2027)
    bed.schedule("phac", "hc", year=2027)

    clock.advance((DATE - clock.now()).total_seconds() - 1)
    assert bed.jobs.party.scheduler.tick().queued == {}
    clock.advance(60)
    bed.jobs.party.scheduler.tick()

    assert [bed.jobs.party.taken().source.code for _ in range(4)] == ["hc", "phac", "cihr", "zz"]


def test_a_campaign_whose_date_has_passed_keeps_its_order(bed: EditionBed, clock: FakeClock) -> None:
    for code in ("hc", "phac", "cihr"):
        bed.jobs.source(code)

    plan = bed.schedule("cihr", "phac", "hc", year=2026)

    assert [entry.at for entry in plan.entries] == [clock.now() + timedelta(seconds=at) for at in range(3)]


def test_a_source_that_is_disabled_and_enabled_does_not_bring_its_annual_crawl_forward(bed: EditionBed) -> None:
    bed.jobs.source("hc")
    bed.schedule("hc", year=2027)

    with bed.database.write() as session:
        source_jobs.disable_source(session, bed.clock, "hc")
    with bed.database.write() as session:
        source_jobs.enable_source(session, bed.clock, bed.jobs.party.actions, "hc")

    assert bed.job("hc-20270101").next_run_at == DATE
    assert bed.jobs.party.scheduler.tick().queued == {}


def test_what_stands_in_the_way_is_a_reason_to_skip(bed: EditionBed) -> None:
    bed.jobs.once("busy")
    bed.jobs.recurring("daily", minutes=1440)
    named = bed.jobs.once("named", name="named-20270101")
    bed.jobs.party.act(named, JobAction.CANCEL)
    bed.jobs.upsert(bed.jobs.source_of(bed.job("named-20270101").id), name="named-20270101")
    bed.jobs.source("off")
    with bed.database.write() as session:
        source_jobs.disable_source(session, bed.clock, "off")

    plan = bed.schedule("busy", "daily", "named", "off", year=2027)

    assert {entry.source: entry.reason for entry in plan.entries} == {
        "busy": "active_job", "daily": None, "named": "name_taken", "off": "source_disabled",
    }  # fmt: skip


def test_only_so_many_jobs_are_made_in_one_run(bed: EditionBed) -> None:
    for code in ("hc", "phac", "cihr"):
        bed.jobs.source(code)

    first = _steps(bed, "hc", "phac", "cihr", year=2027, max_create=2)
    second = _steps(bed, "hc", "phac", "cihr", year=2027, max_create=2)

    assert first == [("create", None), ("create", None), ("skip", "max_create_per_run")]
    assert second == [("skip", "already_scheduled"), ("skip", "already_scheduled"), ("create", None)]
    assert bed.job("cihr-20270101").next_run_at == DATE + timedelta(seconds=2)


def test_an_unknown_source_stops_everything(bed: EditionBed) -> None:
    bed.jobs.source("hc")
    before = _rows(bed)

    plan = bed.schedule("hc", "nobody", year=2027)

    assert not plan.applied
    assert [entry.source for entry in plan.refused] == ["nobody"]
    assert _rows(bed) == before


def test_two_annual_jobs_of_one_year_stop_everything(bed: EditionBed) -> None:
    bed.jobs.source("hc")
    bed.jobs.source("phac")
    bed.schedule("hc", year=2027)
    with bed.database.write() as session:
        source_id = bed.job("hc-20270101").source_id
        session.add(Job(source_id=source_id, kind="annual", fingerprint="", config={}, created_at=bed.clock.now(),
                        state="pending", name="again", details={"campaign_year": 2027}))  # fmt: skip
    before = _rows(bed)

    plan = bed.schedule("hc", "phac", year=2027)

    assert "several jobs" in (plan.refused[0].reason or "")
    assert _rows(bed) == before


def test_a_configuration_that_cannot_be_used_is_an_error_of_its_source(bed: EditionBed) -> None:
    bed.jobs.source("bad", backend="zimit", zimit={"passthrough_args": ["--proxyServer", "x"]})
    bed.jobs.source("good")
    before = _rows(bed)

    plan = bed.schedule("good", "bad", year=2027)

    assert [entry.source for entry in plan.refused] == ["bad"]
    assert "--proxyServer" in (plan.refused[0].reason or "")
    assert _rows(bed) == before


def test_without_names_the_sources_that_are_meant_for_it_are_taken(bed: EditionBed) -> None:
    bed.jobs.source("other")
    with pytest.raises(CampaignRefused, match="seed-sources"):
        bed.schedule(year=2027)
    bed.jobs.source("yearly", schedule_hint="annual")

    assert [entry.source for entry in bed.schedule(year=2027).entries] == ["yearly"]


def test_two_who_apply_at_once_make_one_job(bed: EditionBed) -> None:
    for code in ("hc", "phac"):
        bed.jobs.source(code)
    others = [
        Campaigns(party.database, party.actions, bed.clock, ZimitSettings())
        for party in (bed.jobs.another(), bed.jobs.another())
    ]
    ready = threading.Barrier(2)

    def apply(campaigns: Campaigns) -> list[str]:
        ready.wait()
        plan = campaigns.schedule(CampaignRequest(year=2027, sources=("hc", "phac"), apply=True))
        return [entry.step.value for entry in plan.entries]

    with ThreadPoolExecutor(2) as pool:
        steps = [step for found in pool.map(apply, others) for step in found]

    assert sorted(steps) == ["create", "create", "skip", "skip"]
    with bed.database.read() as session:
        assert session.scalar(select(func.count()).select_from(Job)) == 2


SEEDS = ["https://hc.example/en/home.html", "https://hc.example/fr/accueil.html", "https://hc.example/data"]


def _shards(bed: EditionBed, *, apply: bool = True) -> list[tuple[str | None, str | None]]:
    plan = bed.campaigns.plan_shards(CampaignRequest(year=2026, sources=("hc",), apply=apply))
    return [(entry.shard_key, entry.reason) for entry in plan.entries]


def test_each_seed_gets_a_shard_and_only_once(bed: EditionBed) -> None:
    bed.jobs.source("hc", seeds=SEEDS)

    planned = _shards(bed, apply=False)
    made = _shards(bed)
    again = _shards(bed)

    assert planned == made == [("lang-en", None), ("lang-fr", None), ("seed-3", None)]
    assert again == [(key, "shard_exists") for key, _ in made]
    job = bed.job("hc-20260101-lang-fr")
    assert (job.kind, job.shard_kind, job.config["seeds"]) == ("shard", "seed_group", [SEEDS[1]])
    assert (job.details["scheduler_version"], job.details["shard_target_url_cap"]) == ("v2-sharded", 5000)
    assert job.details["campaign_shard_key"] == "lang-fr"
    assert bed.edition("hc").shard_count == 3


def test_shards_fill_the_gaps_that_a_report_shows(bed: EditionBed) -> None:
    bed.jobs.source("hc", seeds=SEEDS)
    bed.schedule("hc")
    assert _shards(bed) == [(None, "report_not_generated")]
    bed.ran((SEEDS[0], "success", "ok"), (SEEDS[1], "success", "ok"), (SEEDS[2], "failed", "timeout"),
            ("https://hc.example/en/a", "blocked_5xx", "http_500"),
            ("https://hc.example/fr/b", "timeout", "timeout"))  # fmt: skip
    bed.report("hc")

    assert _shards(bed) == [("lang-en", None), ("lang-fr", None), ("seed-3", None)]


def test_a_seed_whose_area_is_whole_needs_no_shard(bed: EditionBed) -> None:
    bed.jobs.source("hc", seeds=SEEDS[:2])
    bed.schedule("hc")
    lease = bed.begin()
    bed.meet(lease.execution_id, SEEDS[0], "success", "ok", status_code=200)
    bed.meet(lease.execution_id, SEEDS[1], "success", "ok", status_code=200)
    bed.meet(lease.execution_id, "https://hc.example/en/gone", "blocked_4xx", "http_404", status_code=404)
    bed.meet(lease.execution_id, "https://hc.example/fr/slow", "timeout", "timeout")
    bed.end(lease)
    bed.report("hc")

    assert _shards(bed) == [("lang-en", "seed_covered"), ("lang-fr", None)]


def test_a_seed_that_is_not_there_is_not_covered_however_it_is_written_and_however_many_there_are(
    bed: EditionBed,
) -> None:
    hosts = [f"https://s{number}.example" for number in range(52)]
    bed.jobs.source("hc", seeds=hosts)
    bed.schedule("hc")
    lease = bed.begin()
    bed.meet(lease.execution_id, hosts[0], "success", "ok", status_code=200)
    for host in hosts[1:]:
        bed.meet(lease.execution_id, host, "blocked_4xx", "http_404", status_code=404)
    bed.end(lease)
    bed.report("hc")

    assert [reason for _, reason in _shards(bed, apply=False)] == ["seed_covered", *[None] * 51]


def test_a_report_without_gaps_needs_no_shards(bed: EditionBed) -> None:
    bed.jobs.source("hc", seeds=SEEDS[:1])
    bed.schedule("hc")
    bed.ran((SEEDS[0], "success", "ok"))
    bed.report("hc")

    assert _shards(bed) == [(None, "no_gaps")]


def test_jobs_that_ran_before_are_taken_in_as_they_are(bed: EditionBed) -> None:
    once = bed.jobs.once("hc", name="hc-20260101")
    bed.jobs.run_once(once, INDEXED)

    def salvage(*, apply: bool = True) -> list[tuple[str, str | None, str | None]]:
        plan = bed.campaigns.salvage(CampaignRequest(year=2026, sources=("hc",), apply=apply))
        return [(entry.step.value, entry.shard_key, entry.reason) for entry in plan.entries]

    planned = salvage(apply=False)
    assert bed.job("hc-20260101").edition_id is None
    assert salvage() == planned == [("attach", "legacy-full-site", None)]
    assert salvage() == [("skip", None, "nothing_to_attach")]
    job = bed.job("hc-20260101")
    assert (job.shard_kind, job.acceptance_state) == ("legacy_full_site", "pending")
    assert (job.edition_id, bed.edition("hc").status) == (bed.edition("hc").id, "in_progress")


def test_the_status_of_a_campaign_tells_every_source(bed: EditionBed) -> None:
    for code in ("hc", "phac", "cihr", "late"):
        bed.jobs.source(code)
    bed.schedule("hc", "phac", "cihr")
    bed.clock.advance(10)
    bed.ran(("https://hc.example/", "success", "ok"))
    bed.ran(ending=BROKEN)

    with bed.database.read() as session:
        found = annual_status(session, 2026, ["late", "cihr", "phac", "hc", "nobody"])

    assert [(row["sourceCode"], row["state"]) for row in found["sources"]] == [
        ("hc", "indexed"), ("phac", "failed"), ("cihr", "in_progress"), ("late", "missing"), ("nobody", "error"),
    ]  # fmt: skip
    summary = found["summary"]
    assert (summary["indexed"], summary["failed"], summary["inProgress"]) == (1, 1, 1)
    assert (summary["missing"], summary["errors"], summary["readyForSearch"]) == (1, 1, False)
    assert summary["operatorStates"] == {"failed": 1, "queued": 1, "search-ready": 1}
    assert summary["rescueStates"] == {"normal": 3}
