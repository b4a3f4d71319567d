"""The account of an edition on both databases: one row an address, why, and figures that add up; and what follows."""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from holdfast.db.models import AuditEvent, Feed, FeedItem
from holdfast.editions.acceptance import accept_gap
from holdfast.editions.freezing import freeze
from holdfast.editions.keeping import next_due
from holdfast.editions.plans import Wish
from holdfast.editions.refusals import EditionNotReady, ShardNotFound
from holdfast.errors import Invalid
from holdfast.jobs.endings import Ending, Result
from holdfast.jobs.states import Action
from holdfast.urls import parse_seed
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
    bed.end(lease, Ending(result=Result.COMPLETED, reason="stopped", index_state="indexed"))


def test_every_intended_address_has_one_row_with_its_reason(bed: EditionBed) -> None:
    bed.jobs.source("hc", seeds=[HOME, "https://hc.example/never"])
    bed.schedule("hc")
    _crawl_of_every_fate(bed)

    content = bed.report("hc").content

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
    bed.campaigns.plan_shards(Wish(year=2026, sources=("hc",), apply=True))
    bed.clock.advance(10)
    bed.ran(("https://hc.example/en/", "success", "ok"), ("https://hc.example/both", "timeout", "timeout"))
    second = bed.ran(("https://hc.example/fr/", "success", "ok"), ("https://hc.example/both", "success", "ok"))

    content = bed.report("hc").content

    both = _rows(bed)["https://hc.example/both"]
    assert (both["outcome"], both["execution_id"], both["executions"]) == ("captured", second.execution_id, 2)
    assert both["shard_key"] == "lang-fr"
    assert content["status"] == "research_ready"
    assert {shard["shardKey"]: shard["outcomes"] for shard in content["shards"]} == {
        "lang-en": {"captured": 1}, "lang-fr": {"captured": 2},
    }  # fmt: skip


def test_what_feeds_told_is_meant_even_if_nobody_asked_for_it(bed: EditionBed) -> None:
    source_id = bed.jobs.source("hc", feeds=True)
    bed.schedule("hc")
    with bed.database.write() as session:
        for number, (kind, url) in enumerate(
            [("feed", "https://hc.example/feed"), ("sitemap", "https://hc.example/s")]
        ):
            session.add(Feed(source_id=source_id, url=url, url_hash=number, kind=kind, origin="configured",
                             created_at=bed.clock.now()))  # fmt: skip
    lease = bed.ran((HOME, "success", "ok"), ("https://hc.example/news/1", "success", "ok"))
    with bed.database.write() as session:
        for feed, url, taken in ((1, "https://hc.example/news/1", lease.execution_id),
                                 (1, "https://hc.example/news/2", lease.execution_id + 5),
                                 (2, "https://hc.example/told", None),
                                 (1, "https://elsewhere.org/", None)):  # fmt: skip
            session.add(FeedItem(source_id=source_id, feed_id=feed, url=url, url_hash=parse_seed(url).hash64,
                                 found_at=bed.clock.now(), execution_id=taken))  # fmt: skip

    bed.report("hc")

    said = {url: (row["intent_source"], row["outcome"], row["reason"]) for url, row in _rows(bed).items()}
    assert said == {
        HOME: ("seed", "captured", "ok"),
        "https://hc.example/news/1": ("feed", "captured", "ok"),
        "https://hc.example/news/2": ("feed", "not_reached", "feed_item_waits"),
        "https://hc.example/told": ("sitemap", "not_reached", "feed_item_waits"),
    }


def test_an_item_that_came_after_the_edition_is_not_its_business(bed: EditionBed, clock: FakeClock) -> None:
    source_id = bed.jobs.source("hc", feeds=True)
    bed.schedule("hc")
    bed.ran((HOME, "success", "ok"))
    clock.advance(3600)
    with bed.database.write() as session:
        session.add(Feed(source_id=source_id, url="https://hc.example/feed", url_hash=1, kind="feed",
                         origin="configured", created_at=clock.now()))  # fmt: skip
        session.flush()
        session.add(FeedItem(source_id=source_id, feed_id=1, url="https://hc.example/new", url_hash=7,
                             found_at=clock.now()))  # fmt: skip

    assert bed.report("hc").content["counts"]["intended_urls"] == 1


def test_the_files_are_described_by_the_report_and_the_row(bed: EditionBed) -> None:
    bed.jobs.source("hc")
    bed.schedule("hc")
    bed.ran((HOME, "success", "ok"), ("https://hc.example/=1", "timeout", "timeout"))

    written = bed.report("hc")

    row = bed.edition("hc")
    assert row.target_ledger_path == "editions/hc/2026/target-ledger.jsonl"
    for name, told in written.content["artifacts"].items():
        content = (written.folder / name).read_bytes()
        assert (told["bytes"], told["sha256"]) == (len(content), sha256(content).hexdigest())
    on_disk = json.loads((written.folder / "coverage-report.json").read_bytes())
    assert on_disk == written.content
    assert on_disk["standard"] == "documented_attainable"
    assert "| intended urls | 2 |" in (written.folder / "coverage-report.md").read_text()
    with (written.folder / "coverage.csv").open(newline="") as file:
        assert [line["outcome"] for line in csv.DictReader(file)] == ["captured", "failed"]
    assert (row.intended_url_count, row.captured_url_count, row.failed_url_count) == (2, 1, 1)
    assert (row.backend_counts, row.research_ready, row.status) == ({"native": 1}, True, "research_ready")
    assert str(bed.home) not in json.dumps(on_disk)


def test_the_same_rows_give_the_same_ledger(bed: EditionBed) -> None:
    bed.jobs.source("hc")
    bed.schedule("hc")
    bed.ran(*((f"https://hc.example/{number}", "success", "ok") for number in range(30)), (HOME, "success", "ok"))

    first = bed.report("hc").content["artifacts"]
    bed.clock.advance(100)
    second = bed.report("hc").content["artifacts"]

    assert first == second


def test_a_missing_seed_blocks_research_but_not_search(bed: EditionBed) -> None:
    bed.jobs.source("hc", seeds=[HOME, "https://hc.example/b"])
    bed.schedule("hc")
    bed.ran((HOME, "success", "ok"), ("https://hc.example/b", "blocked_4xx", "http_404"))

    content = bed.report("hc").content

    assert (content["status"], content["search_ready"], content["research_ready"]) == ("search_ready", True, False)
    assert content["missing_seeds"] == [
        {"url": "https://hc.example/b", "outcome": "failed", "reason": "http_404", "shard_key": "full-site",
         "accepted": False}
    ]  # fmt: skip


def test_a_failed_shard_waits_for_somebody_who_accepts_its_gap(bed: EditionBed) -> None:
    bed.jobs.source("hc", seeds=["https://hc.example/en/", "https://hc.example/fr/"])
    bed.campaigns.plan_shards(Wish(year=2026, sources=("hc",), apply=True))
    bed.clock.advance(10)
    bed.ran(("https://hc.example/en/", "success", "ok"))
    bed.ran(ending=BROKEN)

    content = bed.report("hc").content
    waiting = bed.edition("hc")
    shard = bed.job("hc-20260101-lang-fr")
    volume = accept_gap(bed.database, bed.home, bed.clock, job_id=shard.id, reason="  closed in\n March ")

    assert (content["status"], content["search_ready"]) == ("needs_review", False)
    assert (waiting.status, waiting.needs_review_shard_count, shard.acceptance_state) == (
        "needs_review", 1, "needs_review",
    )  # fmt: skip
    assert [(one.key, one.acceptance, one.reason) for one in volume.shards] == [
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
    bed.jobs.party.act(bed.job("hc-20260101").id, Action.RETRY)
    bed.ran((HOME, "success", "ok"))

    assert bed.job("hc-20260101").acceptance_state == "needs_review"
    assert bed.report("hc").content["status"] == "research_ready"
    assert bed.job("hc-20260101").acceptance_state == "pending"


def test_a_gap_is_accepted_only_with_a_reason_and_only_of_a_shard(bed: EditionBed) -> None:
    bed.jobs.source("hc")
    bed.schedule("hc")
    other = bed.jobs.once("other")

    with pytest.raises(Invalid, match="say why"):
        accept_gap(bed.database, bed.home, bed.clock, job_id=bed.job("hc-20260101").id, reason="  a ")
    for job_id in (other, 999, -1, 1 << 70):
        with pytest.raises(ShardNotFound):
            accept_gap(bed.database, bed.home, bed.clock, job_id=job_id, reason="because")
    assert bed.job("hc-20260101").acceptance_state == "pending"


def test_an_edition_without_a_report_can_be_decided_about_too(bed: EditionBed) -> None:
    bed.jobs.source("hc")
    bed.schedule("hc")
    bed.ran(ending=BROKEN)

    volume = accept_gap(bed.database, bed.home, bed.clock, job_id=bed.job("hc-20260101").id, reason="closed")

    assert (volume.edition.status, volume.edition.search_ready) == ("in_progress", False)


def test_an_edition_is_accounted_for_once_its_shards_have_come_to_rest(bed: EditionBed) -> None:
    bed.jobs.source("hc", seeds=["https://hc.example/en/", "https://hc.example/fr/"])
    bed.campaigns.plan_shards(Wish(year=2026, sources=("hc",), apply=True))
    bed.clock.advance(10)

    def due() -> int | None:
        with bed.database.read() as session:
            return next_due(session)

    assert due() is None
    bed.ran(("https://hc.example/en/", "success", "ok"))
    assert due() is None
    bed.ran(ending=BROKEN)
    edition_id = bed.edition("hc").id
    assert due() == edition_id
    bed.report("hc")
    assert due() is None
    bed.clock.advance(10)
    bed.jobs.party.act(bed.job("hc-20260101-lang-fr").id, Action.RETRY)
    assert due() is None
    bed.ran(("https://hc.example/fr/", "success", "ok"))
    assert due() == edition_id
    assert bed.report("hc").content["status"] == "research_ready"
    assert due() is None


def test_an_edition_that_is_still_crawled_is_not_frozen(bed: EditionBed) -> None:
    bed.jobs.source("hc")
    bed.schedule("hc")

    with pytest.raises(EditionNotReady, match="neither indexed nor accepted"):
        freeze(bed.database, bed.home, bed.clock, bed.edition("hc").id)
    bed.ran((HOME, "success", "ok"), ending=INDEXED)
    with pytest.raises(EditionNotReady, match="nothing"):
        freeze(bed.database, bed.home, bed.clock, bed.edition("hc").id)
