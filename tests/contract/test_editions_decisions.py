"""What operators decide about shards and single addresses of an edition, and how they undo it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import update

from holdfast.db.models import AuditEvent, FeedItem, Job
from holdfast.editions.edition_view import Acceptance, view_edition
from holdfast.editions.report import mark_shards
from holdfast.errors import Invalid
from holdfast.urls import parse_seed
from tests.api_bed import Server, serving
from tests.clock import FakeClock
from tests.editions_bed import BROKEN, EditionBed, open_edition_bed

HOME, OLD = "https://hc.example/", "https://hc.example/b"


@pytest.fixture
def bed(migrated_url: str, tmp_path: Path) -> Iterator[EditionBed]:
    with open_edition_bed(migrated_url, FakeClock(), tmp_path) as made:
        yield made


def _missing_seed(bed: EditionBed) -> int:
    bed.jobs.source("hc", seeds=[HOME, OLD])
    bed.schedule("hc")
    bed.ran((HOME, "success", "ok"), (OLD, "blocked_4xx", "http_404"))
    bed.report("hc")
    return bed.edition("hc").id


def _page(bed: EditionBed, edition_id: int, state: Acceptance) -> None:
    bed.decisions.decide_page(edition_id, OLD, state, "gone since March")


def test_accepted_page_no_longer_blocks_research(bed: EditionBed) -> None:
    edition_id = _missing_seed(bed)
    _page(bed, edition_id, Acceptance.ACCEPTED)
    between = bed.edition("hc")
    content = bed.report("hc")[0]
    [row] = [one for one in bed.ledger("hc") if one["url"] == OLD]

    assert (between.research_ready, between.generated_at) == (False, None)
    assert (content["status"], content["counts"]["blocking_seeds"]) == ("research_ready", 0)
    assert (row["outcome"], row["reason"]) == ("failed", "http_404")
    assert (row["decision"]["state"], row["decision"]["reason"]) == ("accepted", "gone since March")
    [kept] = bed.edition("hc").coverage_summary["decisions"]
    assert kept["decided_at"] == bed.clock.now().isoformat()
    with bed.database.read() as session:
        assert session.query(AuditEvent).filter_by(action="edition.page_accepted").count() == 1


def test_excluded_page_counts_as_excluded(bed: EditionBed) -> None:
    edition_id = _missing_seed(bed)
    _page(bed, edition_id, Acceptance.EXCLUDED)
    counts = bed.report("hc")[0]["counts"]
    [row] = [one for one in bed.ledger("hc") if one["url"] == OLD]

    assert (row["outcome"], row["reason"], row["detail"]) == ("excluded", "operator", "gone since March")
    assert (counts["failed_urls"], counts["excluded_urls"]) == (0, 1)


def test_page_decision_is_undone(bed: EditionBed) -> None:
    edition_id = _missing_seed(bed)
    _page(bed, edition_id, Acceptance.EXCLUDED)
    _page(bed, edition_id, Acceptance.PENDING)

    assert bed.report("hc")[0]["counts"]["blocking_seeds"] == 1
    assert bed.edition("hc").coverage_summary["decisions"] == []
    with pytest.raises(Invalid, match="give a reason"):
        bed.decisions.decide_page(edition_id, OLD, Acceptance.ACCEPTED, " ")


def test_decision_about_an_unknown_address_is_refused(bed: EditionBed, migrated_url: str, tmp_path: Path) -> None:
    edition_id = _missing_seed(bed)
    for state in (Acceptance.EXCLUDED, Acceptance.PENDING):
        with pytest.raises(Invalid, match="is not an address of hc 2026"):
            bed.decisions.decide_page(edition_id, "https://hc.example/never", state, "not ours")
    with serving(migrated_url, bed.clock, tmp_path) as [server]:
        body = {"url": "http://nosuch.example/", "state": "excluded", "reason": "not ours"}
        answer = server.ask("PUT", f"/api/admin/annual-editions/{edition_id}/pages", **body)

    assert (answer.status_code, answer.json()["field"]) == (422, "url")
    assert not bed.edition("hc").coverage_summary.get("decisions")


def test_decision_takes_addresses_of_runs_and_feeds(bed: EditionBed) -> None:
    source_id = bed.jobs.source("hc", seeds=[HOME], feeds=True)
    bed.schedule("hc")
    bed.ran((HOME, "success", "ok"), (OLD, "blocked_4xx", "http_404"))
    item, now = "https://hc.example/item", bed.clock.now()
    with bed.database.write() as session:
        session.add(FeedItem(source_id=source_id, feed_id=9, url=item, url_hash=parse_seed(item).hash64, found_at=now))
    bed.report("hc")

    for url in (OLD, item):
        bed.decisions.decide_page(bed.edition("hc").id, url, Acceptance.EXCLUDED, "not ours")

    assert [one["url"] for one in bed.edition("hc").coverage_summary["decisions"]] == [OLD, item]


def test_report_keeps_a_decision_made_after_the_shards_were_read(bed: EditionBed) -> None:
    bed.jobs.source("hc", seeds=[HOME])
    bed.schedule("hc")
    bed.ran(ending=BROKEN)
    job_id = bed.job("hc-20260101").id

    with bed.database.write() as session:
        view = view_edition(session, bed.edition("hc").id)
        # As another process would: the session still holds the job as it was read.
        decide = update(Job).where(Job.id == job_id).values(acceptance_state="accepted_gap")
        session.execute(decide.execution_options(synchronize_session=False))
        mark_shards(session, view, now=bed.clock.now())

    assert bed.job("hc-20260101").acceptance_state == "accepted_gap"


def test_accepted_gap_is_undone(bed: EditionBed) -> None:
    bed.jobs.source("hc", seeds=[HOME])
    bed.schedule("hc")
    bed.ran(ending=BROKEN)
    bed.report("hc")
    job_id = bed.job("hc-20260101").id
    accepted = bed.accept(job_id, "closed")
    undone = bed.decisions.decide_shard(job_id, Acceptance.PENDING, "it is back")

    assert [view.shards[0].state.is_accepted for view in (accepted, undone)] == [True, False]
    assert (undone.edition.status, undone.shards[0].reason) == ("needs_review", None)


def test_dry_run_of_a_decision_changes_nothing(bed: EditionBed) -> None:
    edition_id = _missing_seed(bed)
    shown = bed.decisions.decide_page(edition_id, OLD, Acceptance.ACCEPTED, "closed", apply=False)

    assert [one.url for one in shown.decisions.values()] == [OLD]
    assert "decisions" not in bed.edition("hc").coverage_summary or not bed.edition("hc").coverage_summary["decisions"]


def test_each_shard_has_a_report_that_its_job_names(bed: EditionBed) -> None:
    _missing_seed(bed)
    job = bed.job("hc-20260101")
    [run] = bed.jobs.executions(job.id)
    path = run.artifacts["coverage_report"]
    content = json.loads((bed.home / path).read_bytes())

    assert path == f"editions/hc/2026/shard-{job.id}.json"
    assert (content["jobId"], content["outcomes"]) == (job.id, {"captured": 1, "failed": 1})


def test_decision_routes_set_and_undo(bed: EditionBed, migrated_url: str, tmp_path: Path) -> None:
    edition_id = _missing_seed(bed)
    job_id = bed.job("hc-20260101").id
    with serving(migrated_url, bed.clock, tmp_path) as [server]:
        page = _put(server, f"{edition_id}/pages", url=OLD, state="excluded", reason="not ours")
        shard = _put(server, f"jobs/{job_id}/decision", state="excluded", reason="not ours")
        undone = _put(server, f"jobs/{job_id}/decision", state="pending", reason="ours after all")
        detail = server.get(f"/api/admin/jobs/{job_id}").json()
        public = server.get("/api/coverage/hc/2026", headers={"X-Admin-Token": ""}).json()

    assert page["coverageSummary"]["decisions"][0]["url"] == OLD
    assert [one["shards"][0]["acceptanceState"] for one in (shard, undone)] == ["excluded", "pending"]
    assert detail["coverageReportPath"] == f"editions/hc/2026/shard-{job_id}.json"
    assert "decisions" not in public["coverageSummary"]


def _put(server: Server, path: str, **body: str) -> Any:
    answer = server.ask("PUT", f"/api/admin/annual-editions/{path}", **body)
    assert answer.status_code == 200, answer.text
    return answer.json()
