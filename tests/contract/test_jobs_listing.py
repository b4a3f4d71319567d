"""Jobs as they are listed, counted and shown in both vocabularies, on both databases, by their indexes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, event, insert, text
from sqlalchemy.orm import Session

from holdfast.db.engine import Database
from holdfast.db.models import Execution, Job, JobEvent, LogLine, Source
from holdfast.jobs.admin_records import admin_detail, admin_job
from holdfast.jobs.endings import Counts
from holdfast.jobs.journal import last_lines, read_events, read_lines
from holdfast.jobs.records import detailed_execution, job_record, stats_record
from holdfast.jobs.specs import shown_config
from holdfast.jobs.states import JobAction, State
from holdfast.jobs.store import JobNotFound
from holdfast.jobs.views import listing
from holdfast.jobs.views.listing import (
    ADMIN_STATES,
    JobFilter,
    admin_state,
    bounded_limit,
    sort_word,
)
from tests.clock import FakeClock
from tests.jobs_bed import Bed, failed, open_bed

NOW = datetime(2026, 9, 1, tzinfo=UTC)
RUNS = (None, "queued", "running", "stopped", "completed", "cancelled", "failed")
INDEXED = (None, "pending", "indexing", "indexed", "index_failed")
COMBINATIONS = [
    (state, retries, run, index)
    for state, retries, run, index in product((None, *State), (0, 1), RUNS, INDEXED)
    if run is not None or index is None
]


@pytest.fixture
def bed(migrated_url: str, clock: FakeClock, tmp_path: Path) -> Iterator[Bed]:
    """Jobs on each kind of database."""
    with open_bed(migrated_url, clock, tmp_path) as opened:
        yield opened


def _source(database: Database, code: str = "s") -> int:
    row = {"code": code, "name": code.upper(), "enabled": True, "config": {}, "created_at": NOW, "updated_at": NOW}
    with database.write() as session:
        return session.scalars(insert(Source).returning(Source.id), [row]).one()


def _jobs(database: Database, rows: list[dict[str, Any]]) -> list[int]:
    shared: dict[str, Any] = {
        "source_id": 0, "kind": "shard", "fingerprint": "", "config": {}, "created_at": NOW, "updated_at": NOW,
        "state": "scheduled", "details": {}, "current_retry_count": 0, "next_run_at": None,
    }  # fmt: skip
    with database.write() as session:
        return list(
            session.scalars(insert(Job).returning(Job.id, sort_by_parameter_order=True), [shared | row for row in rows])
        )


def _runs(database: Database, rows: list[dict[str, Any]]) -> None:
    shared: dict[str, Any] = {
        "number": 1, "state": "completed", "config": {}, "output_dir": "", "created_at": NOW, "run_seconds": 0.0,
        "metrics": {}, "artifacts": {}, "storage": {}, "index_state": None, "finished_at": NOW,
    }  # fmt: skip
    with database.write() as session:
        session.execute(insert(Execution), [shared | row for row in rows])


def test_admin_state_in_sql_matches_python_for_all_state_pairs(bed: Bed) -> None:
    source_id = _source(bed.database)
    ids = _jobs(bed.database, [{"source_id": source_id, "state": state, "current_retry_count": retries,
                                "error_message": "it failed" if retries else None}
                               for state, retries, _, _ in COMBINATIONS])  # fmt: skip
    runs = [{"job_id": job_id, "number": 2, "state": run, "index_state": index}
            for job_id, (_, _, run, index) in zip(ids, COMBINATIONS, strict=True) if run is not None]  # fmt: skip
    _runs(bed.database, [*({**run, "number": 1, "state": "failed", "index_state": "indexed"} for run in runs), *runs])
    expected = {
        job_id: admin_state(state, retries=retries, run=run, index=index, failed=retries > 0)
        for job_id, (state, retries, run, index) in zip(ids, COMBINATIONS, strict=True)
    }

    with bed.database.read() as session:
        found = {
            row.job.id: (status, row.admin_status)
            for status in ADMIN_STATES
            for offset in (0, 500)
            for row in listing.list_admin_jobs(session, status=status, limit=500, offset=offset)[0]
        }
        counts = listing.admin_counts(session)

    assert found == {job_id: (status, status) for job_id, status in expected.items()}
    assert counts == {word: list(expected.values()).count(word) for word in ADMIN_STATES}


def test_jobs_without_a_turn_come_last_in_both_directions_whatever_the_page(bed: Bed) -> None:
    source_id = _source(bed.database)
    moments = [3, None, 1, None, 2, None]
    ids = _jobs(bed.database, [{"source_id": source_id, "next_run_at": None if m is None else NOW + timedelta(hours=m)}
                               for m in moments])  # fmt: skip
    first, _, second, _, third, _ = ids
    rising = [second, third, first, ids[1], ids[3], ids[5]]
    falling = [first, third, second, ids[5], ids[3], ids[1]]

    for expected, descending in ((rising, False), (falling, True)):
        for limit in (1, 2, 4, 50):
            with bed.database.read() as session:
                shown = [
                    row.job.id
                    for offset in range(0, 7, limit)
                    for row in listing.list_jobs(session, JobFilter(sort_by="next_run_at", descending=descending,
                                                                    limit=limit, offset=offset))[0]
                ]  # fmt: skip
            assert shown == expected


def test_every_order_is_total_and_its_reverse_is_its_mirror(bed: Bed) -> None:
    for number in range(9):
        source_id = _source(bed.database, f"s{number % 3}-{number}")
        _jobs(bed.database, [{"source_id": source_id, "state": list(State)[number % 7], "kind": "ab"[number % 2],
                              "updated_at": NOW + timedelta(hours=number % 4), "last_execution_at": NOW}])  # fmt: skip

    for sort_by in ("created_at", "updated_at", "status", "source_name", "last_run_at", "type", "nonsense"):
        with bed.database.read() as session:
            up, total = listing.list_jobs(session, JobFilter(sort_by=sort_by, descending=False))
            down, _ = listing.list_jobs(session, JobFilter(sort_by=sort_by))
            pages = [JobFilter(sort_by=sort_by, limit=2, offset=offset) for offset in range(0, 9, 2)]
            paged = [row.job.id for page in pages for row in listing.list_jobs(session, page)[0]]
        assert total == 9
        assert [row.job.id for row in down] == [row.job.id for row in reversed(up)] == paged, sort_by


def test_filters_narrow_and_deleted_or_unscheduled_jobs_are_not_shown(bed: Bed) -> None:
    kept = bed.once("kept")
    ran = bed.once("gone")
    bed.party.scheduler.tick()
    for _ in range(2):
        bed.party.leases.settle(bed.party.taken(), failed())
    source_id = _source(bed.database, "other")
    unscheduled = _jobs(bed.database, [{"source_id": source_id, "state": None, "kind": "adhoc"}])[0]
    with bed.database.write() as session:
        bed.party.actions.delete(session, ran)

    with bed.database.read() as session:
        rows, total = listing.list_jobs(session, JobFilter())
        none, of_none = listing.list_jobs(session, JobFilter(states=("paused",)))
        of_source, _ = listing.list_jobs(session, JobFilter(source_id=bed.job(kept).source_id, kind="crawl"))
        everything, in_all = listing.list_admin_jobs(session)
        by_code, _ = listing.list_admin_jobs(session, source="other")
        nothing, _ = listing.list_admin_jobs(session, source="nobody")
        listing.shown_job(session, unscheduled, scheduled=False)
        for number, scheduled in ((unscheduled, True), (ran, False)):
            with pytest.raises(JobNotFound):
                listing.shown_job(session, number, scheduled=scheduled)

    assert ([row.job.id for row in rows], total, none, of_none) == ([kept], 1, [], 0)
    assert rows[0].latest is not None
    assert [row.job.id for row in of_source] == [kept]
    assert ([row.job.id for row in everything], in_all) == ([unscheduled, kept], 2)
    assert ([row.job.id for row in by_code], nothing) == ([unscheduled], [])


def test_a_job_shows_its_history_and_stats(bed: Bed, clock: FakeClock) -> None:
    job_id = bed.recurring("ex", minutes=60)
    bed.set_next_run(job_id, clock.now())
    bed.run_once(job_id, seconds=2.0)
    bed.set_next_run(job_id, clock.now())
    bed.run_once(job_id, failed(), seconds=4.0)

    with bed.database.read() as session:
        listed = listing.shown_job(session, job_id)
        newest, total = listing.executions_of(session, job_id=job_id, limit=1, offset=0)
        first = listing.numbered_execution(session, job_id=job_id, number=1)
        latest = listing.numbered_execution(session, job_id=job_id, number=None)
        missing = listing.numbered_execution(session, job_id=job_id, number=9)
        stats, shape = stats_record(listed.job), job_record(listed)
        run = listing.execution(session, newest[0].id)
        assert run is not None
        shown = detailed_execution(run)
        detail = admin_detail(
            listed,
            (2, 10),
            Counts(items_failed=3),
            config=shown_config(listed.job, listed.source, delay_s=2.0),
            stats={"x": 1},
        )

    assert (total, [row.number for row in newest], missing) == (2, [2], None)
    assert (first and first.number, latest and latest.number) == (1, 2)
    assert (stats.total_executions, stats.successful_runs, stats.failed_runs) == (2, 1, 1)
    assert (stats.average_duration_ms, stats.success_rate) == (3000.0, 0.5)
    assert (stats.last_execution_at, stats.next_scheduled_at) == (clock.now(), clock.now() + timedelta(minutes=1))
    assert (shape.state, shape.is_paused, shape.source_code) == ("scheduled", False, "ex")
    assert (shown.state, shown.error, shown.stack_trace) == ("failed", "it broke", "Traceback")
    assert (shown.number, shown.retry_attempt, shown.log_object_key) == (2, 0, None)
    assert (detail.status, detail.retry_count, detail.crawler_status) == ("retryable", 1, "failed")
    assert (detail.warc_file_count, detail.pages_failed, detail.last_stats) == (2, 3, {"x": 1})
    assert detail.config == {
        "seeds": ["https://ex.example/"], "scope": "host", "max_depth": 3, "max_pages": None, "delay_s": 2.0,
        "robots": "obey", "include": [], "exclude": [],
    }  # fmt: skip


def test_a_configuration_that_cannot_be_read_any_more_is_shown_as_it_is(bed: Bed) -> None:
    job_id = bed.once("ex")

    def spoil(job: Job) -> None:
        job.config = {"scope": "nonsense"}

    bed.change(job_id, spoil)
    with bed.database.read() as session:
        listed = listing.shown_job(session, job_id)

    assert shown_config(listed.job, listed.source, delay_s=2.0) == {"scope": "nonsense"}


def test_a_paused_job_says_so_and_a_job_that_never_ran_has_empty_figures(bed: Bed) -> None:
    job_id = bed.recurring("ex")
    bed.party.act(job_id, JobAction.PAUSE)

    with bed.database.read() as session:
        listed = listing.shown_job(session, job_id)
        counts, cleaned = listing.state_counts(session), listing.cleanup_counts(session)

    assert (job_record(listed).is_paused, counts, cleaned) == (True, {"paused": 1}, {"none": 1})
    assert stats_record(listed.job).success_rate == 0.0
    assert admin_job(listed, (0, 0)).name == "ex"


def test_limits_are_kept_and_unknown_orders_fall_back() -> None:
    assert [bounded_limit(wish) for wish in (-1, 0, 1, 250, 251, 10**12)] == [50, 50, 1, 250, 250, 250]
    assert [sort_word(word) for word in ("type", "nonsense", "")] == ["type", "created_at", "created_at"]


@pytest.fixture
def full(migrated_url: str) -> Iterator[Database]:
    """Jobs enough for a planner to prefer an index, each with two runs."""
    with closing(Database(migrated_url)) as opened:
        source_id = _source(opened)
        states = [state.value for state in State]
        ids = _jobs(opened, [{"source_id": source_id, "state": states[n % 7], "updated_at": NOW + timedelta(seconds=n),
                              "next_run_at": NOW + timedelta(minutes=n) if n % 7 == 1 else None}
                             for n in range(3000)])  # fmt: skip
        _runs(opened, [{"job_id": job_id, "number": number} for job_id in ids for number in (1, 2)])
        with opened.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.execute(text("ANALYZE"))
        yield opened


def _plans(database: Database, ask: Any) -> list[str]:
    """Return the plan of each statement of a question, counts left out: nothing counts without reading."""
    asked: list[tuple[str, Any]] = []

    @event.listens_for(database.engine, "before_cursor_execute")
    def note(_connection: Connection, _cursor: Any, statement: str, parameters: Any, *_rest: Any) -> None:
        if statement.startswith("SELECT") and not statement.startswith("SELECT count"):
            asked.append((statement, parameters))

    with database.read() as session:
        ask(session)
    event.remove(database.engine, "before_cursor_execute", note)
    explain = "EXPLAIN QUERY PLAN " if database.engine.dialect.name == "sqlite" else "EXPLAIN "
    with database.engine.connect() as connection:
        return ["\n".join(str(row[-1]) for row in connection.exec_driver_sql(explain + statement, parameters))
                for statement, parameters in asked]  # fmt: skip


def test_a_page_is_found_by_an_index_without_sorting_and_a_newest_run_by_one_seek(full: Database) -> None:
    words = ("created_at", "status", "updated_at", "next_run_at")
    orders = [JobFilter(sort_by=word, descending=falling) for word in words for falling in (True, False)]
    asked = {str(wanted): _plans(full, partial(_listed, wanted)) for wanted in orders}
    asked["admin"] = _plans(full, lambda session: listing.list_admin_jobs(session))
    counts = _plans(full, listing.admin_counts)

    for wanted, (page, *_) in asked.items():
        assert "USE TEMP B-TREE FOR ORDER BY" not in page, wanted
        assert "\n  ->  Sort" not in page, (wanted, page)
        assert "Seq Scan on jobs" not in page, wanted
    everything = [plan for plans in (*asked.values(), counts) for plan in plans]
    assert all("SCAN executions" not in plan and "Seq Scan on executions" not in plan for plan in everything)
    assert any("executions" in plan for plan in counts)


def _listed(wanted: JobFilter, session: Session) -> object:
    return listing.list_jobs(session, wanted)


def test_running_counts_come_from_the_processes_until_they_are_settled(bed: Bed) -> None:
    bed.once("ex")
    bed.party.scheduler.tick()
    lease = bed.party.taken()

    with bed.database.read() as session:
        run = listing.execution(session, lease.execution_id)
        assert run is not None
        assert listing.counts_of(session, run) == Counts()
    with bed.database.write() as session:
        session.get_one(Execution, lease.execution_id).items_crawled = 7
    with bed.database.read() as session:
        run = listing.execution(session, lease.execution_id)
        assert run is not None
        assert listing.counts_of(session, run).items_crawled == 7
        assert detailed_execution(run, Counts(items_crawled=9, items_total=9)).items_crawled == 9


def test_logs_and_events_are_followed_by_their_indexes(full: Database) -> None:
    told = [{"at": NOW, "name": "job:status", "job_id": number % 50, "data": {}} for number in range(2000)]
    lines = [{"execution_id": number % 50, "at": NOW, "level": 20, "category": "crawler.fetch", "message": "m",
              "fields": {}} for number in range(2000)]  # fmt: skip
    with full.write() as session:
        session.execute(insert(JobEvent), told)
        session.execute(insert(LogLine), lines)
    with full.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("ANALYZE"))

    plans = [
        *_plans(full, lambda session: read_events(session, after=1900)),
        *_plans(full, lambda session: read_events(session, after=5, job_id=7)),
        *_plans(full, lambda session: read_lines(session, 7, after=900)),
        *_plans(full, lambda session: last_lines(session, 7, level="info")),
    ]

    assert len(plans) == 4
    for plan in plans:
        assert "Seq Scan" not in plan, plan
        assert "SCAN " not in plan.replace("SCAN job_events USING", ""), plan
