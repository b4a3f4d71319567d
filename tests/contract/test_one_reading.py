"""A run's ending, its report, its retry and its edition's readiness are one reading: one row, one table of rules.

What an execution's row says is changed behind everybody's back; whoever kept a verdict of their own would show.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from holdfast.db import connect
from holdfast.db.models import Execution
from holdfast.editions.edition_view import view_edition
from holdfast.jobs.endings import RULES, FailureCause, ReadingRule, Retry, RunEnding, RunResult, sentence_of
from holdfast.jobs.records import detailed_execution
from holdfast.jobs.views.status import read_status
from tests.clock import FakeClock
from tests.editions_bed import EditionBed, open_edition_bed

_HOME = "https://hc.example/"
_NAMES = [f"{rule.state}-{rule.reason}" for rule in RULES]


@pytest.fixture
def bed(migrated_url: str, clock: FakeClock, tmp_path: Path) -> Iterator[EditionBed]:
    """One edition with one shard, whose run captured its one seed."""
    with open_edition_bed(migrated_url, clock, tmp_path) as opened:
        opened.jobs.source("hc", seeds=[_HOME])
        opened.schedule("hc")
        yield opened


@pytest.mark.parametrize("rule", RULES, ids=_NAMES)
def test_status_api_and_edition_say_of_a_run_what_its_row_and_the_table_say(
    bed: EditionBed, migrated_url: str, rule: ReadingRule
) -> None:
    lease = bed.ran((_HOME, "success"))
    shortfalls = {} if rule.is_ready else {rule.reason: 3}
    with bed.database.write() as session:
        row = session.get_one(Execution, lease.execution_id)
        row.state, row.reason, row.shortfalls = rule.state, rule.reason, shortfalls
    bed.report("hc")

    with bed.database.read() as session:
        shown = detailed_execution(session.get_one(Execution, lease.execution_id))
        [(shard, run)] = view_edition(session, bed.edition("hc").id).runs
    with closing(connect(migrated_url)) as raw_db:
        status = read_status(raw_db, bed.clock, lease.execution_id)
    said = sentence_of(rule.state, rule.reason, shortfalls)
    assert (shown.state, shown.reason, shown.sentence) == (rule.state, rule.reason, said)
    assert (status.rule, status.sentence, status.shortfalls) == (rule, said, shortfalls)
    assert (run.state, run.reason, run.shortfalls) == (rule.state, rule.reason, shortfalls)
    assert {shown.research_ready, status.rule.is_ready, shard.state.is_whole} == {rule.is_ready}
    assert bed.edition("hc").research_ready is rule.is_ready


@pytest.mark.parametrize(
    "rule", [rule for rule in RULES if rule.state in ("completed", "failed")], ids=lambda r: r.reason
)
def test_a_job_is_tried_again_where_the_reading_of_its_run_says_so(bed: EditionBed, rule: ReadingRule) -> None:
    failure = FailureCause.FAILED if rule.state == "failed" else None
    lease = bed.begin()

    bed.end(lease, RunEnding(result=RunResult(rule.state), reason=rule.reason, shortfalls={}, failure=failure))

    job = bed.jobs.job(lease.claim.job_id)
    assert (job.state == "scheduled") is (rule.retry is not Retry.NO), (job.state, rule)
