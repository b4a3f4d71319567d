"""The page of a run: its addresses with words and captures, errors with examples, stop, resume and re-crawl; on both
databases."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select, text

from holdfast.db import connect
from holdfast.db.models import Snapshot
from holdfast.errors import Conflict
from holdfast.jobs.administration.run_pausing import resume_run
from holdfast.jobs.endings import RunEnding, RunResult
from holdfast.types import NO_SITEMAP, Outcome, RecordRef, UrlKind
from holdfast.warc.record import snapshot_id
from holdfast.withdrawals.hiding import hide
from tests.api_bed import Server
from tests.archive import Shot, add_captures, index_all
from tests.clock import FakeClock
from tests.contract.crawl_bed import Crawl, all_of, crawl
from tests.contract.frontier_bed import many
from tests.jobs_bed import Bed, open_bed

STOPPED = RunEnding(result=RunResult.COMPLETED, reason="stopped", shortfalls={"stopped": 2})
_ENDED: tuple[dict[str, Any], ...] = (
    {},
    {"outcome": Outcome.BLOCKED_4XX, "reason": "http_404", "status": 404},
    {"outcome": Outcome.BLOCKED_4XX, "reason": "http_403", "status": 403},
    {"outcome": Outcome.BLOCKED_5XX, "reason": "http_500", "status": 500},
    {
        "outcome": Outcome.BLOCKED_ROBOTS,
        "reason": "robots:line 3",
        "status": None,
        "message": "Disallow: /private",
    },
    {"outcome": Outcome.EXCLUDED, "reason": NO_SITEMAP, "status": 404},
    {"outcome": Outcome.FAILED, "reason": "connect_failed", "status": None},
)


@pytest.fixture
def bed(migrated_url: str, clock: FakeClock, tmp_path: Path) -> Iterator[Bed]:
    """One database with jobs."""
    with open_bed(migrated_url, clock, tmp_path) as opened:
        yield opened


def _ended(run: Crawl) -> None:
    """End an address in each way."""
    *found, picture = many("ex.example", len(_ENDED))
    run.add(*found, picture._replace(kind=UrlKind.REQUISITE))
    lease = run.lease()
    for at, facts in enumerate(_ENDED):
        run.settle(lease, at, **facts)
    run.release(lease)


def test_run_urls_say_in_words_how_each_ended(server: Server) -> None:
    with crawl(server) as run:
        _ended(run)
        rows = list(all_of(server, "/api/frontier/urls", execution=run.id, limit=3))
        robots = [row for row in rows if row["outcome"] == "blocked_robots"]
        by_reason = list(all_of(server, "/api/frontier/urls", execution=run.id, reason="http_404"))
        by_outcome = list(all_of(server, "/api/frontier/urls", execution=run.id, outcome="blocked_4xx", limit=1))

    assert sorted(row["word"] for row in rows) == [
        "captured", "could not connect", "forbidden by robots.txt", "no sitemap there", "not found",
        "refused by the server", "server error",
    ]  # fmt: skip
    assert [(row["robotsLine"], row["message"]) for row in robots] == [(3, "Disallow: /private")]
    assert [row["statusCode"] for row in by_reason] == [404]
    assert sorted(row["statusCode"] for row in by_outcome) == [403, 404]


def test_run_urls_lead_to_their_captures_that_may_be_seen(server: Server) -> None:
    archive = server.archive
    with crawl(server) as run:
        run.add(*many("ex.example", 1))
        [(url,)] = [(url,) for url in run.urls()]
        with closing(connect(archive.settings.database)) as raw_db:
            add_captures(raw_db, archive.settings, server.clock, [Shot(url=url, source="ex")])
            index_all(raw_db, server.clock, archive.home)
        with archive.database.read() as session:
            number, file_id = session.execute(select(Snapshot.id, Snapshot.warc_file_id)).one()
        lease = run.lease()
        ref = RecordRef(warc_file_id=file_id, offset=0, length=1, ordinal=number - snapshot_id(file_id, 0))
        run.settle(lease, 0, record=ref)
        run.release(lease)
        [seen] = all_of(server, "/api/frontier/urls", execution=run.id)
        hide(archive.database, server.clock, str(number), reason="asked for", home=archive.home)
        [hidden] = all_of(server, "/api/frontier/urls", execution=run.id)

    assert (seen["capture"]["snapshotId"], seen["capture"]["url"]) == (number, url)
    assert len(seen["capture"]["timestamp"]) == 14
    assert hidden["capture"] is None


def test_report_groups_errors_by_reason_with_examples(server: Server) -> None:
    with crawl(server, state="completed") as run:
        _ended(run)
        report = server.get(f"/api/v1/executions/{run.id}/report").json()

    reasons = {one["reason"]: one for one in report["reasons"]}
    assert (reasons["http_404"]["word"], reasons["http_404"]["count"]) == ("not found", 1)
    assert reasons["http_404"]["examples"][0].startswith("https://ex.example/")
    assert reasons["ok"]["examples"] == []
    failed = sum(report["outcomes"][one] for one in ("blocked_4xx", "blocked_5xx", "failed"))
    assert failed == 4, "a sitemap that nobody named is no failure"


def test_requeue_of_a_run_queues_its_failed_pages_once(server: Server) -> None:
    with crawl(server, state="completed") as run:
        _ended(run)
        path = f"/api/v1/executions/{run.id}/requeue"
        dry = server.ask("POST", path, apply=False).json()
        done = server.ask("POST", path, apply=True).json()
        unknown = server.ask("POST", f"/api/v1/executions/{run.id + 1}/requeue", apply=True)
        bad = server.ask("POST", path, cursor="nonsense")
    with server.bed.database.read() as session:
        waiting = session.scalar(text("SELECT count(*) FROM added_urls"))

    assert (dry["matched"], dry["added"], dry["next"]) == (3, 0, None), "not what a page embeds"
    assert (done["matched"], done["added"], done["skipped"]) == (3, 3, 0)
    assert [(place["sourceCode"], place["urls"]) for place in done["places"]] == [("ex", 3)]
    assert waiting == 3
    assert (unknown.status_code, bad.status_code) == (404, 400)


def test_stopped_run_has_its_own_word_and_is_no_success(bed: Bed) -> None:
    job_id = bed.once()
    bed.run_once(job_id, STOPPED)

    job = bed.job(job_id)
    assert STOPPED.rule.word == "stopped"
    assert (job.total_runs, job.successful_runs, job.failed_runs) == (1, 0, 0)


@pytest.mark.parametrize("is_recurring", [False, True])
def test_stopped_run_is_resumed_by_the_next_run(bed: Bed, is_recurring: bool) -> None:
    plan: dict[str, Any] = {"interval_minutes": 600, "schedule_enabled": True} if is_recurring else {}
    job_id = bed.once(**plan)
    if is_recurring:
        bed.set_next_run(job_id, bed.clock.now())
    bed.run_once(job_id, STOPPED)
    [first] = bed.executions(job_id)
    rhythm = bed.job(job_id).rhythm_at

    with bed.database.write() as session:
        done = resume_run(session, bed.clock, first.id)
    bed.run_once(job_id)

    first, second = bed.executions(job_id)
    assert (done.was_stopped, second.resumed_from) == (True, first.id)
    job = bed.job(job_id)
    assert (job.state, job.rhythm_at) == ("scheduled" if is_recurring else "completed", rhythm)
    assert job.infra_retry_count == 0
    with bed.database.write() as session, pytest.raises(Conflict, match="cannot be paused or resumed"):
        resume_run(session, bed.clock, first.id)


def test_what_a_stop_left_over_is_queued_again(server: Server) -> None:
    with crawl(server) as run:
        run.add(*many("ex.example", 3))
        lease = run.lease()
        run.settle(lease, 0)
        run.release(lease)
        left = run.urls()
        while run.frontier.close_rest(run.id, outcome=Outcome.EXCLUDED, reason="stopped"):
            pass
        closed = run.urls()
        again = run.frontier.reopen_left_over(run.id), run.frontier.reopen_left_over(run.id)

        assert (len(left), closed, again, run.urls()) == (2, set(), (2, 0), left)
