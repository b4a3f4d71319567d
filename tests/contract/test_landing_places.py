"""Where seeds landed, as the processes of a crawl tell each other over the execution's row; on both databases."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast import config
from holdfast.db import connect
from holdfast.frontier import queries
from holdfast.jobs import execution_queries, executions
from holdfast.sources.plan import CrawlPlan
from holdfast.wiring import Runtime, open_runtime

_PLAN = CrawlPlan(seeds=("https://example.org/", "https://example.net/"), contact="tests@example.org")


@pytest.fixture
def runtime(database_url: str, tmp_path: Path) -> Iterator[Runtime]:
    """A data directory in which an execution has begun."""
    home, url = tmp_path / "home", None if database_url.startswith("sqlite") else database_url
    with open_runtime(config.load(home=home, database_url=url)) as opened:
        executions.begin(
            opened.raw_db, opened.clock, _PLAN, executions.ExecutionOptions(home), is_working=lambda _id: False
        )
        yield opened


def _landing(runtime: Runtime) -> tuple[str, ...]:
    with runtime.raw_db.read() as tx:
        return execution_queries.run_orders(tx, runtime.raw_db.dialect, execution_id=1).landing


def test_places_are_added_once_each_and_the_plan_around_them_stays(runtime: Runtime) -> None:
    assert _landing(runtime) == ()

    for urls in ([], ["https://b.example/"], ["https://a.example/", "https://b.example/"], []):
        with runtime.raw_db.write() as tx:
            execution_queries.add_landing(tx, runtime.raw_db.dialect, execution_id=1, urls=urls)

    assert _landing(runtime) == ("https://a.example/", "https://b.example/")
    with runtime.raw_db.read() as tx:
        stored = execution_queries.execution(tx, 1)
    assert stored is not None
    assert stored.config["seeds"] == list(_PLAN.seeds)
    assert stored.config["landing"] == ["https://a.example/", "https://b.example/"]


def test_a_plan_without_places_gets_some(runtime: Runtime) -> None:
    with runtime.raw_db.write() as tx:
        execution_queries.store_config(tx, execution_id=1, config=json.dumps({"seeds": []}))
        execution_queries.add_landing(tx, runtime.raw_db.dialect, execution_id=1, urls=["https://a.example/"])

    assert _landing(runtime) == ("https://a.example/",)


def test_of_processes_that_tell_at_once_none_is_lost(runtime: Runtime) -> None:
    def tell(number: int) -> None:
        raw_db = connect(runtime.settings.database)
        for turn in range(10):
            with raw_db.write() as tx:
                url = f"https://{number}.example/{turn}"
                execution_queries.add_landing(tx, raw_db.dialect, execution_id=1, urls=[url])
        raw_db.close()

    threads = [threading.Thread(target=tell, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert len(_landing(runtime)) == 40


def test_an_execution_that_is_gone_is_to_stop(runtime: Runtime) -> None:
    with runtime.raw_db.read() as tx:
        assert execution_queries.run_orders(tx, runtime.raw_db.dialect, execution_id=99) == ("cancel", (), (), False)


def test_what_is_open_is_counted_by_the_heads_that_have_some(runtime: Runtime) -> None:
    is_server = runtime.raw_db.dialect == "postgresql"
    with runtime.raw_db.write() as tx:
        if is_server:  # left to itself it walks a table that is empty
            tx.execute("SET LOCAL enable_seqscan = off")
            tx.execute("SET LOCAL enable_bitmapscan = off")
        plan = tx.execute(f"{'EXPLAIN' if is_server else 'EXPLAIN QUERY PLAN'} {queries.OPEN_COUNT}", (1,))
        assert "ix_queues_due" in str(plan)
        assert queries.open_count(tx, execution_id=1) == 0
