"""What the scheduler asks goes by an index on both databases: the number of jobs does not show."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from sqlalchemy import Connection, event, insert, text

from holdfast.db.engine import Database
from holdfast.db.models import Execution, Job, Source
from holdfast.jobs import schedule_queries
from holdfast.operations.queries import unfinished_operations

NOW = datetime(2026, 9, 1, tzinfo=UTC)
JOBS = 3000


@pytest.fixture
def database(migrated_url: str) -> Iterator[Database]:
    """Jobs enough for a planner to prefer an index, none of them due."""
    with closing(Database(migrated_url)) as opened:
        with opened.write() as session:
            source = {"code": "s", "name": "s", "enabled": True, "config": {}, "created_at": NOW, "updated_at": NOW}
            source_id = session.scalars(insert(Source).returning(Source.id), [source]).one()
            shared: dict[str, Any] = {
                "source_id": source_id, "kind": "shard", "fingerprint": "", "config": {}, "created_at": NOW,
                "updated_at": NOW, "state": "scheduled", "details": {},
            }  # fmt: skip
            rows = [{**shared, "next_run_at": NOW + timedelta(minutes=number)} for number in range(JOBS)]
            ids = session.scalars(insert(Job).returning(Job.id), rows).all()
            done = {"number": 1, "state": "completed", "config": {}, "output_dir": "", "created_at": NOW,
                    "run_seconds": 0.0, "metrics": {}, "artifacts": {}, "finished_at": NOW}  # fmt: skip
            session.execute(insert(Execution), [{"job_id": job_id, **done} for job_id in ids])
        with opened.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.execute(text("ANALYZE"))
        yield opened


def _plans(database: Database, ask: Any) -> str:
    """Return the plans of all statements of a question."""
    asked: list[tuple[str, Any]] = []

    @event.listens_for(database.engine, "before_cursor_execute")
    def note(_connection: Connection, _cursor: Any, statement: str, parameters: Any, *_rest: Any) -> None:
        asked.append((statement, parameters))

    with database.write() as session:
        ask(session)
    event.remove(database.engine, "before_cursor_execute", note)
    explain = "EXPLAIN QUERY PLAN " if database.engine.dialect.name == "sqlite" else "EXPLAIN "
    found = []
    with database.engine.connect() as connection:
        for statement, parameters in asked:
            if statement.startswith(("SELECT", "UPDATE")):
                rows = connection.exec_driver_sql(explain + statement, parameters)
                found += [str(row[-1]) for row in rows]
    return "\n".join(found)


@pytest.mark.parametrize(
    ("ask", "index"),
    [
        (lambda session: schedule_queries.anything_due(session, now=NOW), "ix_jobs_due"),
        (lambda session: schedule_queries.claim_due(session, now=NOW, limit=100), "ix_jobs_due"),
        (
            lambda session: schedule_queries.next_queued(session, now=NOW),
            "ix_executions_queued",
        ),
        (
            lambda session: schedule_queries.lock_next(session, now=NOW),
            "ix_executions_queued",
        ),
        (lambda session: schedule_queries.next_queued(session, now=NOW, operations=True), "uq_jobs_operation"),
        (unfinished_operations, "uq_jobs_operation"),
        (
            lambda session: schedule_queries.stale_ids(session, schedule_queries.stale_locks(NOW), limit=1),
            "ix_jobs_locked",
        ),
    ],
    ids=["anything_due", "claim_due", "next_queued", "lock_next", "next_operation", "unfinished_operations", "stale"],
)
def test_a_question_of_the_scheduler_goes_by_its_index(database: Database, ask: Any, index: str) -> None:
    plans = _plans(database, ask)

    # PostgreSQL may take another index as small as this one: what counts is that it reads no table.
    assert index in plans or (database.engine.dialect.name == "postgresql" and "Index" in plans)
    assert "SCAN jobs\n" not in f"{plans}\n"
    assert "SCAN executions\n" not in f"{plans}\n"
    assert "Seq Scan on jobs" not in plans
    assert "Seq Scan on executions" not in plans
