"""What ends up in a ledger, on both databases: redirects, feeds, sitemaps, stopped crawls, shards with one name."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from holdfast.db.models import Feed, FeedItem, Job
from holdfast.editions.campaign import CampaignRequest
from holdfast.editions.edition_files import EditionBusy, draft, edition_folder
from holdfast.jobs.endings import RunEnding, RunResult
from holdfast.urls import parse_seed
from tests.clock import FakeClock
from tests.editions_bed import BROKEN, EditionBed, open_edition_bed

HOME = "https://hc.example/"
EN, FR = "https://hc.example/en/", "https://hc.example/fr/"


@pytest.fixture
def bed(migrated_url: str, clock: FakeClock, tmp_path: Path) -> Iterator[EditionBed]:
    with open_edition_bed(migrated_url, clock, tmp_path) as opened:
        yield opened


def _said(bed: EditionBed) -> dict[str, tuple[str, str, str]]:
    return {row["url"]: (row["intent_source"], row["outcome"], row["reason"]) for row in bed.ledger("hc")}


def _away(target: str | None) -> dict[str, Any]:
    return {"status_code": 301, "redirected_to": target}


def test_an_address_that_leads_elsewhere_has_the_fate_of_where_it_leads(bed: EditionBed) -> None:
    seeds = [f"https://hc.example/{name}" for name in ("good", "twice", "lost", "shut", "out", "loop", "none", "late")]
    bed.jobs.source("hc", seeds=seeds)
    bed.schedule("hc")
    lease = bed.begin()
    other = "https://www.hc.example"
    led = {"good": f"{other}/good", "twice": f"{other}/once", "lost": f"{other}/lost", "shut": f"{other}/shut",
           "out": "https://elsewhere.org/", "loop": f"{other}/loop", "none": None, "late": f"{other}/late"}  # fmt: skip
    for seed, target in zip(seeds, led.values(), strict=True):
        bed.meet(lease.execution_id, seed, "success", "redirected", **_away(target), warc_file_id=1, warc_ordinal=2)
    bed.meet(lease.execution_id, f"{other}/good", "success", "ok", status_code=200)
    bed.meet(lease.execution_id, f"{other}/once", "success", "redirected", **_away(f"{other}/good"))
    bed.meet(lease.execution_id, f"{other}/lost", "blocked_4xx", "http_404", status_code=404)
    bed.meet(lease.execution_id, f"{other}/shut", "blocked_robots", "robots:line 2")
    bed.meet(lease.execution_id, f"{other}/loop", "success", "redirected", **_away("https://hc.example/loop"))
    bed.meet(lease.execution_id, f"{other}/late", None)
    bed.end(lease, RunEnding(result=RunResult.COMPLETED, reason="stopped", index_state="indexed"))

    content = bed.report("hc")[0]

    rows = {row["url"].removeprefix(HOME): row for row in bed.ledger("hc") if row["intent_source"] == "seed"}
    assert {name: (row["outcome"], row["reason"]) for name, row in rows.items()} == {
        "good": ("captured", "redirected"), "twice": ("captured", "redirected"),
        "lost": ("failed", "redirect_http_404"), "shut": ("robots", "redirect_robots:line 2"),
        "out": ("excluded", "redirect_out_of_scope:scope:host"), "loop": ("failed", "redirect_too_many_redirects"),
        "none": ("failed", "redirect_nowhere"), "late": ("not_reached", "redirect_execution_stopped"),
    }  # fmt: skip
    assert rows["twice"]["redirected_to"] == f"{other}/good"
    assert (rows["good"]["snapshot_id"], rows["lost"]["snapshot_id"]) == (2**22 + 2, None)
    assert (rows["lost"]["http_status"], rows["good"]["http_status"]) == (404, 301)
    assert content["counts"]["missing_seeds"] == 6
    assert content["research_ready"] is False


def test_a_redirect_that_one_shard_met_may_end_in_what_another_captured(bed: EditionBed) -> None:
    bed.jobs.source("hc", seeds=[EN, FR])
    bed.campaigns.plan_shards(CampaignRequest(year=2026, sources=("hc",), apply=True))
    bed.clock.advance(10)
    bed.ran((EN, "success", "ok"))
    lease = bed.begin()
    bed.meet(lease.execution_id, FR, "success", "redirected", **_away("https://www.hc.example/fr/"))
    bed.meet(lease.execution_id, "https://www.hc.example/fr/", "timeout", "timeout")
    bed.end(lease)
    bed.report("hc")
    before = _said(bed)[FR]
    third = bed.jobs.once("other")
    bed.jobs.party.scheduler.tick()
    late = bed.jobs.party.taken()
    bed.meet(late.execution_id, "https://www.hc.example/fr/", "success", "ok", status_code=200)
    bed.end(late)
    with bed.database.write() as session:
        session.get_one(Job, third).edition_id = bed.edition("hc").id

    bed.report("hc")

    assert before == ("seed", "failed", "redirect_timeout")
    assert _said(bed)[FR] == ("seed", "captured", "redirected")


def _named(bed: EditionBed, source_id: int, feed: int, url: str, *, taken: int | None, days_ago: int = 0) -> None:
    with bed.database.write() as session:
        session.add(FeedItem(source_id=source_id, feed_id=feed, url=url, url_hash=parse_seed(url).hash64,
                             found_at=bed.clock.now() - timedelta(days=days_ago), execution_id=taken))  # fmt: skip


def test_what_feeds_named_is_meant_whoever_asked_for_it_and_whether_or_not_the_feed_is_still_there(
    bed: EditionBed,
) -> None:
    source_id = bed.jobs.source("hc", feeds=True)
    bed.schedule("hc")
    with bed.database.write() as session:
        for number, (kind, url) in enumerate(
            [("feed", "https://hc.example/feed"), ("sitemap", "https://hc.example/s")]
        ):
            session.add(Feed(source_id=source_id, url=url, url_hash=number, kind=kind, origin="configured",
                             created_at=bed.clock.now()))  # fmt: skip
    lease = bed.ran((HOME, "success", "ok"), ("https://hc.example/news/1", "success", "ok"))
    _named(bed, source_id, 1, "https://hc.example/news/1", taken=lease.execution_id - 1)
    _named(bed, source_id, 1, "https://hc.example/news/2", taken=lease.execution_id - 1)
    _named(bed, source_id, 1, "https://hc.example/news/3", taken=lease.execution_id + 5)
    _named(bed, source_id, 2, "https://hc.example/told", taken=None)
    _named(bed, source_id, 9, "https://hc.example/of-a-removed-feed", taken=None, days_ago=3000)
    _named(bed, source_id, 1, "https://hc.example/old-news", taken=1, days_ago=3000)
    _named(bed, source_id, 1, "https://elsewhere.org/", taken=None)
    _named(bed, source_id, 1, "https://hc.example/tomorrow", taken=None, days_ago=-1)

    content = bed.report("hc")[0]

    assert any("2 addresses that feeds named were taken by polls alone" in note for note in content["notes"])
    assert _said(bed) == {
        HOME: ("seed", "captured", "ok"),
        "https://hc.example/news/1": ("feed", "captured", "ok"),
        "https://hc.example/news/2": ("feed", "not_reached", "feed_item_polled"),
        "https://hc.example/news/3": ("feed", "not_reached", "feed_item_polled"),
        "https://hc.example/told": ("sitemap", "not_reached", "feed_item_waits"),
        "https://hc.example/of-a-removed-feed": ("feed", "not_reached", "feed_item_waits"),
    }
    polled = next(row for row in bed.ledger("hc") if row["url"].endswith("/news/3"))
    assert (polled["detail"], polled["via"]) == (
        f"taken by execution {lease.execution_id + 5}", "https://hc.example/feed",
    )  # fmt: skip


def test_a_sitemap_that_was_read_at_the_second_try_was_read(bed: EditionBed) -> None:
    bed.jobs.source("hc")
    bed.schedule("hc")
    lease = bed.begin()
    bed.meet(lease.execution_id, HOME, "success", "ok")
    bed.meet(lease.execution_id, "https://hc.example/sitemap.xml", "timeout", "timeout", kind="sitemap")
    bed.meet(lease.execution_id, "https://hc.example/sitemap.xml", "success", "ok", kind="sitemap")
    bed.end(lease)

    content = bed.report("hc")[0]

    assert content["sitemaps"] == {"ok": 1}
    assert not any("could not be read" in note for note in content["notes"])


@pytest.mark.parametrize("word", ["stopped", "cancelled"])
def test_what_was_left_when_somebody_ended_a_crawl_was_not_reached(bed: EditionBed, word: str) -> None:
    bed.jobs.source("hc")
    bed.schedule("hc")
    bed.ran((HOME, "success", "ok"), ("https://hc.example/left", "excluded", word))

    content = bed.report("hc")[0]

    assert _said(bed)["https://hc.example/left"] == ("link", "not_reached", f"execution_{word}")
    assert (content["counts"]["missing_urls"], content["counts"]["excluded_urls"]) == (1, 0)


def test_shards_with_one_name_are_told_apart(bed: EditionBed) -> None:
    bed.jobs.source("hc", seeds=[EN, FR])
    bed.campaigns.plan_shards(CampaignRequest(year=2026, sources=("hc",), apply=True))
    bed.clock.advance(10)
    bed.ran((EN, "blocked_4xx", "http_404"))
    bed.ran((FR, "blocked_4xx", "http_404"), (HOME, "success", "ok"))
    with bed.database.write() as session:
        for job in session.query(Job):
            job.shard_key = "twin"

    content = bed.report("hc")[0]
    bed.accept(bed.job("hc-20260101-lang-en").id, "closed")

    assert [shard["outcomes"] for shard in content["shards"]] == [{"failed": 1}, {"captured": 1, "failed": 1}]
    on_disk = json.loads((bed.home / "editions/hc/2026/coverage-report.json").read_bytes())
    assert [(seed["url"], seed["accepted"]) for seed in on_disk["missing_seeds"]] == [(EN, True), (FR, False)]
    assert (on_disk["counts"]["missing_seeds"], on_disk["counts"]["blocking_seeds"]) == (2, 1)
    assert bed.edition("hc").research_ready is False


def test_a_seed_of_an_accepted_shard_does_not_block_whichever_shard_decided_about_it(bed: EditionBed) -> None:
    bed.jobs.source("hc", seeds=[EN, FR])
    bed.schedule("hc")
    bed.ran(
        (EN, "success", "ok"),
        (
            FR,
            "blocked_5xx",
            "http_500",
        ),
    )
    bed.report("hc")
    bed.campaigns.plan_shards(CampaignRequest(year=2026, sources=("hc",), apply=True))
    bed.clock.advance(10)
    bed.ran(ending=BROKEN)
    before = bed.report("hc")[0]

    view = bed.accept(bed.job("hc-20260101-lang-fr").id, "gone")

    assert before["missing_seeds"][0]["job_id"] == bed.job("hc-20260101").id
    assert (view.edition.status, view.edition.research_ready) == ("research_ready", True)
    bed.clock.advance(1)
    assert bed.report("hc")[0]["missing_seeds"][0]["accepted"] is True


def test_a_gap_is_not_accepted_by_half_while_the_report_is_written(bed: EditionBed) -> None:
    bed.jobs.source("hc")
    bed.schedule("hc")
    bed.ran(ending=BROKEN)
    bed.report("hc")
    job_id = bed.job("hc-20260101").id

    with draft(edition_folder(bed.home, "hc", 2026)), pytest.raises(EditionBusy):
        bed.accept(job_id, "closed")

    assert bed.job("hc-20260101").acceptance_state == "needs_review"
    assert "operator_acceptance" not in bed.job("hc-20260101").details


def test_a_gap_can_be_accepted_when_the_report_was_lost_and_a_new_one_is_due(bed: EditionBed) -> None:
    bed.jobs.source("hc")
    bed.schedule("hc")
    bed.ran((HOME, "success", "ok"))
    _, folder = bed.report("hc")
    (folder / "target-ledger.jsonl").unlink()

    view = bed.accept(bed.job("hc-20260101").id, "closed")

    assert (view.edition.generated_at, view.edition.status) == (None, "search_ready")
    assert bed.report("hc")[0]["status"] == "research_ready"


def test_the_row_knows_of_a_shard_that_was_added_while_the_report_was_written(bed: EditionBed) -> None:
    bed.jobs.source("hc", seeds=[EN])
    bed.schedule("hc")
    bed.ran((EN, "success", "ok"), ("https://hc.example/en/a", "timeout", "timeout"))
    bed.report("hc")

    def tell(_count: int) -> None:
        if bed.edition("hc").shard_count == 1:
            bed.campaigns.plan_shards(CampaignRequest(year=2026, sources=("hc",), apply=True))

    bed.report("hc", on_row=tell)

    row = bed.edition("hc")
    assert (row.shard_count, row.status, row.search_ready) == (2, "in_progress", False)
