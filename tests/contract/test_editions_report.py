"""The account of an edition on both databases: one row an address, why, and figures that add up; and what follows."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, event

from holdfast.db.models import AuditEvent, Execution
from holdfast.editions.campaign import CampaignRequest
from holdfast.editions.decisions import ShardNotFound
from holdfast.editions.edition_view import EditionNotReady
from holdfast.editions.freezing import freeze
from holdfast.editions.report import due
from holdfast.errors import Invalid
from holdfast.jobs.endings import RunEnding, RunResult
from holdfast.jobs.states import JobAction
from tests.clock import FakeClock
from tests.editions_bed import BROKEN, INDEXED, EditionBed, open_edition_bed

HOME = "https://hc.example/"


@pytest.fixture
def bed(migrated_url: str, clock: FakeClock, tmp_path: Path) -> Iterator[EditionBed]:
    with open_edition_bed(migrated_url, clock, tmp_path) as opened:
        yield opened


def _rows(bed: EditionBed, code: str = "hc") -> dict[str, dict[str, Any]]:
    return {row["url"]: row for row in bed.ledger(code)}


def _crawl_of_every_fate(bed: EditionBed) -> None:
    """Run a crawl that met an address of each kind and left one open."""
    lease = bed.begin()
    run = lease.execution_id
    home = bed.meet(run, HOME, "success", "ok", status_code=200, depth=0)
    sitemap = bed.meet(run, "https://hc.example/sitemap.xml", "success", "ok", kind="sitemap")
    bed.meet(run, "https://hc.example/style.css", "success", "ok", kind="requisite")
    bed.meet(run, "https://hc.example/told", "success", "ok", via_page_id=sitemap, warc_file_id=3, warc_ordinal=7)
    bed.meet(run, "https://hc.example/gone", "blocked_4xx", "http_404", status_code=404, via_page_id=home)
    bed.meet(run, "https://hc.example/private", "blocked_robots", "robots:line 3", message="Disallow: /private")
    bed.meet(run, "https://hc.example/off", "excluded", "redirect_out_of_scope:scope:host",
             redirected_to="https://other.org/")  # fmt: skip
    bed.meet(run, "https://hc.example/much", "excluded", "over_limit:max_pages")
    bed.meet(run, "https://hc.example/left", None)
    bed.meet(run, "https://hc.example/again", "timeout", "timeout")
    bed.meet(run, "https://hc.example/again", "success", "ok", status_code=200)
    bed.left_out(run, "scope:host", "other.org", 12)
    bed.left_out(run, "over_limit:links", "hc.example", 30)
    bed.end(lease, RunEnding(result=RunResult.COMPLETED, reason="stopped", index_state="indexed"))


def test_every_intended_address_has_one_row_with_its_reason(bed: EditionBed) -> None:
    bed.jobs.source("hc", seeds=[HOME, "https://hc.example/never"])
    bed.schedule("hc")
    _crawl_of_every_fate(bed)

    content = bed.report("hc")[0]

    rows = _rows(bed)
    said = {url.removeprefix(HOME): (row["intent_source"], row["outcome"], row["reason"]) for url, row in rows.items()}
    assert said == {
        "": ("seed", "captured", "ok"),
        "never": ("seed", "not_reached", "shard_indexed"),
        "told": ("sitemap", "captured", "ok"),
        "gone": ("link", "failed", "http_404"),
        "private": ("link", "robots", "robots:line 3"),
        "off": ("link", "excluded", "redirect_out_of_scope:scope:host"),
        "much": ("link", "over_limit", "max_pages"),
        "left": ("link", "not_reached", "execution_stopped"),
        "again": ("link", "captured", "ok"),
    }
    assert list(rows) == sorted(rows)
    assert rows[f"{HOME}private"]["detail"] == "Disallow: /private"
    assert rows[f"{HOME}gone"]["via"] == HOME
    assert rows[f"{HOME}told"]["snapshot_id"] == 3 * 2**22 + 7
    assert rows[f"{HOME}told"]["status"] == "captured"
    assert rows[f"{HOME}gone"]["status"] == "missing"
    counts = content["counts"]
    assert (counts["intended_urls"], counts["captured_urls"], counts["failed_urls"]) == (9, 3, 1)
    assert (counts["missing_urls"], counts["excluded_urls"], counts["missing_seeds"]) == (2, 3, 1)
    assert Counter(row["outcome"] for row in rows.values()) == content["outcomes"]
    assert content["exclusion_rules"][0] == {"rule": "over_limit:links", "links": 30, "hosts": 1}
    assert content["sitemaps"] == {"ok": 1}
    assert any("30 links" in note for note in content["notes"])


def test_executions_and_shards_are_united_and_the_best_outcome_wins(bed: EditionBed) -> None:
    bed.jobs.source("hc", seeds=["https://hc.example/en/", "https://hc.example/fr/"])
    bed.campaigns.plan_shards(CampaignRequest(year=2026, sources=("hc",), apply=True))
    bed.clock.advance(10)
    bed.ran(("https://hc.example/en/", "success", "ok"), ("https://hc.example/both", "timeout", "timeout"))
    second = bed.ran(("https://hc.example/fr/", "success", "ok"), ("https://hc.example/both", "success", "ok"))

    content = bed.report("hc")[0]

    both = _rows(bed)["https://hc.example/both"]
    assert (both["outcome"], both["execution_id"], both["executions"]) == ("captured", second.execution_id, 2)
    assert both["shard_key"] == "lang-fr"
    assert content["status"] == "research_ready"
    assert {shard["shardKey"]: shard["outcomes"] for shard in content["shards"]} == {
        "lang-en": {"captured": 1}, "lang-fr": {"captured": 2},
    }  # fmt: skip


def test_the_files_are_described_by_the_report_and_the_row(bed: EditionBed) -> None:
    bed.jobs.source("hc")
    bed.schedule("hc")
    bed.ran((HOME, "success", "ok"), ("https://hc.example/=1", "timeout", "timeout"))

    content, folder = bed.report("hc")

    row = bed.edition("hc")
    assert row.target_ledger_path == "editions/hc/2026/target-ledger.jsonl"
    for name, told in content["artifacts"].items():
        written = (folder / name).read_bytes()
        assert (told["bytes"], told["sha256"]) == (len(written), sha256(written).hexdigest())
    on_disk = json.loads((folder / "coverage-report.json").read_bytes())
    assert on_disk == content
    assert on_disk["standard"] == "documented_attainable"
    assert "| intended urls | 2 |" in (folder / "coverage-report.md").read_text()
    with (folder / "coverage.csv").open(newline="") as file:
        assert [line["outcome"] for line in csv.DictReader(file)] == ["captured", "failed"]
    assert (row.intended_url_count, row.captured_url_count, row.failed_url_count) == (2, 1, 1)
    assert (row.backend_counts, row.research_ready, row.status) == ({"native": 1}, True, "research_ready")
    assert str(bed.home) not in json.dumps(on_disk)


def test_the_same_rows_give_the_same_ledger(bed: EditionBed) -> None:
    bed.jobs.source("hc")
    bed.schedule("hc")
    bed.ran(*((f"https://hc.example/{number}", "success", "ok") for number in range(30)), (HOME, "success", "ok"))

    first = bed.report("hc")[0]["artifacts"]
    bed.clock.advance(100)
    second = bed.report("hc")[0]["artifacts"]

    assert first == second


def test_a_missing_seed_blocks_research_but_not_search(bed: EditionBed) -> None:
    bed.jobs.source("hc", seeds=[HOME, "https://hc.example/b"])
    bed.schedule("hc")
    bed.ran((HOME, "success", "ok"), ("https://hc.example/b", "blocked_4xx", "http_404"))

    content = bed.report("hc")[0]

    assert (content["status"], content["search_ready"], content["research_ready"]) == ("search_ready", True, False)
    assert content["missing_seeds"] == [
        {"url": "https://hc.example/b", "outcome": "failed", "reason": "http_404", "job_id": bed.job("hc-20260101").id,
         "shard_key": "full-site", "accepted": False}
    ]  # fmt: skip


def test_a_failed_shard_waits_for_somebody_who_accepts_its_gap(bed: EditionBed) -> None:
    bed.jobs.source("hc", seeds=["https://hc.example/en/", "https://hc.example/fr/"])
    bed.campaigns.plan_shards(CampaignRequest(year=2026, sources=("hc",), apply=True))
    bed.clock.advance(10)
    bed.ran(("https://hc.example/en/", "success", "ok"))
    bed.ran(ending=BROKEN)

    content = bed.report("hc")[0]
    waiting = bed.edition("hc")
    shard = bed.job("hc-20260101-lang-fr")
    view = bed.accept(shard.id, "  closed in\n March ")

    assert (content["status"], content["search_ready"]) == ("needs_review", False)
    assert (waiting.status, waiting.needs_review_shard_count, shard.acceptance_state) == (
        "needs_review", 1, "needs_review",
    )  # fmt: skip
    assert [(one.key, one.job.acceptance_state, one.reason) for one in view.shards] == [
        ("lang-en", "pending", None), ("lang-fr", "accepted_gap", "closed in March"),
    ]  # fmt: skip
    row, job = bed.edition("hc"), bed.job("hc-20260101-lang-fr")
    assert (row.status, row.search_ready, row.research_ready) == ("research_ready", True, True)
    assert (row.intended_url_count, row.needs_review_shard_count) == (2, 0)
    assert job.details["operator_acceptance"]["reason"] == "closed in March"
    assert job.details["campaign_year"] == 2026
    on_disk = json.loads((bed.home / "editions/hc/2026/coverage-report.json").read_bytes())
    assert (on_disk["status"], on_disk["missing_seeds"][0]["accepted"]) == ("research_ready", True)
    assert "closed in March" in (bed.home / "editions/hc/2026/coverage-report.md").read_text()
    with bed.database.read() as session:
        assert session.query(AuditEvent).filter_by(action="edition.gap_accepted").count() == 1


def test_a_shard_that_is_tried_again_needs_no_review_any_more(bed: EditionBed) -> None:
    bed.jobs.source("hc")
    bed.schedule("hc")
    bed.ran(ending=BROKEN)
    bed.report("hc")
    bed.clock.advance(1)
    bed.jobs.party.act(bed.job("hc-20260101").id, JobAction.RETRY)
    bed.ran((HOME, "success", "ok"))

    assert bed.job("hc-20260101").acceptance_state == "needs_review"
    assert bed.report("hc")[0]["status"] == "research_ready"
    assert bed.job("hc-20260101").acceptance_state == "pending"


def test_a_gap_is_accepted_only_with_a_reason_and_only_of_a_shard(bed: EditionBed) -> None:
    bed.jobs.source("hc")
    bed.schedule("hc")
    other = bed.jobs.once("other")

    with pytest.raises(Invalid, match="give a reason"):
        bed.accept(bed.job("hc-20260101").id, "  a ")
    for job_id in (other, 999, -1, 1 << 70):
        with pytest.raises(ShardNotFound):
            bed.accept(job_id, "because")
    assert bed.job("hc-20260101").acceptance_state == "pending"


def test_an_edition_without_a_report_can_be_decided_about_too(bed: EditionBed) -> None:
    bed.jobs.source("hc")
    bed.schedule("hc")
    bed.ran(ending=BROKEN)

    view = bed.accept(bed.job("hc-20260101").id, "closed")

    assert (view.edition.status, view.edition.search_ready) == ("in_progress", False)


def test_an_edition_is_accounted_for_once_its_shards_have_come_to_rest(bed: EditionBed) -> None:
    bed.jobs.source("hc", seeds=["https://hc.example/en/", "https://hc.example/fr/"])
    bed.campaigns.plan_shards(CampaignRequest(year=2026, sources=("hc",), apply=True))
    bed.clock.advance(10)

    def found() -> list[int]:
        with bed.database.read() as session:
            return due(session)

    assert found() == []
    bed.ran(("https://hc.example/en/", "success", "ok"))
    assert found() == []
    bed.ran(ending=BROKEN)
    edition_id = bed.edition("hc").id
    assert found() == [edition_id]
    bed.report("hc")
    assert found() == []
    bed.clock.advance(10)
    bed.jobs.party.act(bed.job("hc-20260101-lang-fr").id, JobAction.RETRY)
    assert found() == []
    bed.ran(("https://hc.example/fr/", "success", "ok"))
    assert found() == [edition_id]
    assert bed.report("hc")[0]["status"] == "research_ready"
    assert found() == []


def test_an_edition_that_nobody_will_run_is_accounted_for_too(bed: EditionBed) -> None:
    bed.jobs.source("hc")
    bed.jobs.source("phac")
    bed.schedule("hc", "phac", year=2027)
    bed.jobs.party.act(bed.job("hc-20270101").id, JobAction.CANCEL)

    with bed.database.read() as session:
        found = due(session)
    content = bed.report("hc", 2027)[0]

    assert found == [bed.edition("hc", 2027).id]
    assert (content["status"], content["outcomes"]) == ("needs_review", {"not_reached": 1})
    assert bed.ledger("hc", 2027)[0]["reason"] == "shard_cancelled"
    with bed.database.read() as session:
        assert due(session) == []


def test_an_edition_is_accounted_for_again_when_its_files_were_read_or_a_gap_was_accepted(bed: EditionBed) -> None:
    bed.jobs.source("hc")
    bed.schedule("hc")
    lease = bed.ran((HOME, "success", "ok"), ending=replace(INDEXED, index_state="pending"))
    bed.clock.advance(1)
    early = bed.report("hc")[0]["status"]

    def found() -> list[int]:
        with bed.database.read() as session:
            return due(session)

    reading = found()
    with bed.database.write() as session:
        session.get_one(Execution, lease.execution_id).index_state = "indexed"
    read = found()
    bed.report("hc")
    done = found()
    bed.clock.advance(1)
    bed.accept(lease.job.id, "all is well")

    edition_id = bed.edition("hc").id
    assert early == "in_progress"
    assert (reading, read, done, found()) == ([], [edition_id], [], [edition_id])
    bed.report("hc")
    assert found() == []


def test_what_the_next_years_wait_for_is_found_by_one_question(bed: EditionBed) -> None:
    codes = [f"s{number}" for number in range(5)]
    for code in codes:
        bed.jobs.source(code)
    bed.schedule(*codes, year=2027)
    asked: list[str] = []

    @event.listens_for(bed.database.engine, "before_cursor_execute")
    def note(_connection: Connection, _cursor: Any, statement: str, *_rest: Any) -> None:
        asked.append(statement)

    with bed.database.read() as session:
        assert due(session) == []
    event.remove(bed.database.engine, "before_cursor_execute", note)

    assert sum(statement.lstrip().startswith("SELECT") for statement in asked) == 1


def test_an_edition_that_is_still_crawled_is_not_frozen(bed: EditionBed) -> None:
    bed.jobs.source("hc")
    bed.schedule("hc")

    with pytest.raises(EditionNotReady, match="neither indexed nor accepted"):
        freeze(bed.database, bed.home, bed.clock, bed.edition("hc").id)
    bed.ran((HOME, "success", "ok"), ending=INDEXED)
    with pytest.raises(EditionNotReady, match="nothing"):
        freeze(bed.database, bed.home, bed.clock, bed.edition("hc").id)
