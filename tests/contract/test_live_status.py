"""What `status` says of now: by the processes that are at work, not by those that were killed a moment ago."""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

from holdfast.clock import to_micros
from holdfast.db import connect
from holdfast.jobs.executions import ExecutionOptions, begin
from holdfast.jobs.views.status import read_status
from holdfast.sources.plan import CrawlPlan
from tests.clock import FakeClock

_OWNER = (
    "INSERT INTO owners (id, kind, host, pid, run_file, execution_id, started_at, heartbeat_at, ended_at)"
    " VALUES (?, 'process', 'a', 1, 'a.run', ?, ?, ?, ?)"
)
_COUNTS = "INSERT INTO execution_counts (execution_id, owner_id, counts, updated_at) VALUES (?, ?, ?, ?)"


def test_a_process_that_is_over_counts_its_pages_and_says_nothing_of_now(
    migrated_url: str, clock: FakeClock, tmp_path: Path
) -> None:
    plan = CrawlPlan(seeds=("https://a.example/",), contact="tests@example.org")
    with closing(connect(migrated_url)) as raw_db:
        number = begin(raw_db, clock, plan, ExecutionOptions(home=tmp_path), is_working=lambda _: False).execution_id
        now = to_micros(clock.now())
        killed = {"pages": 5, "active_domains": 7, "pages_s": 3.0, "state": "draining"}
        alive = {"pages": 2, "active_domains": 4, "pages_s": 1.0, "state": "running"}
        with raw_db.write() as tx:
            for owner, ended_at, counts in ((1, now, killed), (2, None, alive)):
                tx.execute(_OWNER, (owner, number, now, now, ended_at))
                tx.execute(_COUNTS, (number, owner, json.dumps(counts), now))

        status = read_status(raw_db, clock, number)

    assert (status.pages, status.active_domains, status.pages_s, status.condition) == (7, 4, 1.0, "running")
