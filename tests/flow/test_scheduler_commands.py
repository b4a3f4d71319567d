"""`holdfast scheduler` and `holdfast start-worker`, as people type them."""

from __future__ import annotations

from pathlib import Path

import pytest
from sqlalchemy import select

from holdfast import config
from holdfast.db.models import AuditEvent
from holdfast.sources.contact import remember_contact
from holdfast.sources.queries import find_source
from holdfast.wiring.archive import open_archive
from holdfast.wiring.jobs import open_jobs
from tests.client import asking
from tests.typed import Typist


@pytest.fixture
def typed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Typist:
    """A house with one source."""
    typist = Typist(tmp_path / "home", capsys)
    typist("source create ex --seed https://example.org")
    return typist


def test_the_schedule_is_counted_drawn_and_balanced(typed: Typist) -> None:
    assert typed("sync-enabled-sources --json").object["created"] == 1
    assert typed("sync-enabled-sources").out == "1 source, 1 enabled: 0 jobs made, 1 had one, 0 resumed\n"
    assert typed("scheduler metrics --json").object["jobs"]["scheduled"] == 1
    assert "100% good" in typed("scheduler metrics").out
    spread = typed("scheduler distribution --json").object
    assert (spread["total_jobs"], spread["peak_count"], len(spread["hourly_distribution"])) == (1, 1, 24)
    assert typed("scheduler distribution").out.count("\n") == 25
    planned, dry = typed("scheduler preview --json").object, typed("scheduler rebalance --json").object
    assert planned == dry
    assert planned["skipped"] == [{"job_id": 1, "reason": "protection_window"}]
    assert typed("scheduler rebalance --apply").out.endswith("0 moved, 1 stay, score 1.00\n")


def test_the_schedule_is_told_as_the_api_tells_it(typed: Typist) -> None:
    typed("create-job --source ex --every 6h")
    with open_archive(config.load(home=typed.home)) as archive, asking(archive) as client:
        for command, method, route in (
            ("metrics", "GET", "scheduler/metrics"), ("distribution", "GET", "scheduler/distribution"),
            ("preview", "POST", "scheduler/rebalance/preview"), ("rebalance --apply", "POST", "scheduler/rebalance"),
            ("sync", "POST", "admin/sync-enabled-sources"),
        ):  # fmt: skip
            told = typed(f"scheduler {command} --json").object
            asked = client.request(method, f"/api/v1/{route}").json()
            assert {**told, "last_metrics_update": None, "applied": None} == {
                **asked, "last_metrics_update": None, "applied": None,
            }, command  # fmt: skip


def test_a_rebalance_stands_in_the_audit_log(typed: Typist) -> None:
    typed("create-job --source ex --every 6h")
    typed("scheduler rebalance")
    typed("scheduler rebalance --apply")

    with open_jobs(config.load(home=typed.home)) as jobs, jobs.database.read() as session:
        query = select(AuditEvent).where(AuditEvent.action == "scheduler.rebalanced")
        assert [row.detail for row in session.scalars(query)] == [{"moved": 0, "skipped": 1}]


def test_a_source_that_cannot_be_crawled_does_not_stop_the_others(typed: Typist) -> None:
    typed("seed-sources")
    with open_jobs(config.load(home=typed.home)) as jobs, jobs.database.write() as session:
        row = find_source(session, "hc")  # as if it had been written where the flag is allowed
        row.config = {**row.config, "backend": "zimit", "zimit": {"passthrough_args": ["--evil"]}}
    ended = typed("sync-enabled-sources")

    assert (ended.code, ended.out) == (1, "4 sources, 4 enabled: 3 jobs made, 0 had one, 0 resumed\n")
    assert ended.err.startswith("hc: zimit.passthrough_args: unrecognized arguments")


@pytest.mark.parametrize("words", ["--kinds canary,crawl --kinds feed", "--kinds nope"])
def test_a_worker_takes_kinds_that_there_are(typed: Typist, words: str) -> None:
    remember_contact(config.load(home=typed.home), "keeper@example.org")
    ended = typed(f"start-worker --once {words} --json")

    if "nope" in words:
        assert (ended.code, "'nope' is not one of crawl, annual, shard, feed, canary" in ended.err) == (2, True)
    else:
        assert (ended.code, ended.object["executions"]) == (0, []), ended
