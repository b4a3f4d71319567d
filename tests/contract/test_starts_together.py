"""Starts at one moment, from several machines: one source, one job, numbers without gaps, and no raw error."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from threading import Barrier
from typing import TypeVar

from holdfast.clock import SystemClock
from holdfast.db import connect
from holdfast.db.engine import Database
from holdfast.errors import Conflict
from holdfast.jobs.executions import ExecutionOptions, begin
from holdfast.jobs.imports import ImportOptions, begin_import
from holdfast.sources.plan import CrawlPlan

MACHINES = 6
Value = TypeVar("Value")


def _together(work: Callable[[int], Value]) -> list[Value]:
    """Do it on so many threads, which begin at one moment; return what each made."""
    line = Barrier(MACHINES)

    def one(number: int) -> Value:
        line.wait()
        return work(number)

    with ThreadPoolExecutor(MACHINES) as pool:
        return list(pool.map(one, range(MACHINES)))


def test_imports_into_a_new_source_make_one_source_and_one_job(migrated_url: str, tmp_path: Path) -> None:
    wish = ImportOptions(source="new", name=None, home=tmp_path, config={})

    def start(_: int) -> int:
        with closing(Database(migrated_url)) as database:
            return begin_import(database, SystemClock(), wish)[0]

    begun = _together(start)

    assert len(set(begun)) == MACHINES
    with closing(connect(migrated_url)) as raw_db, raw_db.read() as tx:
        assert tx.execute("SELECT count(*) FROM sources") == [(1,)]
        numbers = tx.execute("SELECT job_id, number FROM executions ORDER BY number")
    assert [row[1] for row in numbers] == list(range(1, MACHINES + 1))
    assert len({row[0] for row in numbers}) == 1


def test_crawls_of_one_host_with_other_seeds_share_a_new_source(migrated_url: str, tmp_path: Path) -> None:
    def start(number: int) -> str:
        plan = CrawlPlan(seeds=(f"https://a.example/{number}",), contact="tests@example.org")
        with closing(connect(migrated_url)) as raw_db:
            return begin(
                raw_db, SystemClock(), plan, ExecutionOptions(home=tmp_path), is_working=lambda _: False
            ).source_code

    assert set(_together(start)) == {"a-example"}


def test_of_crawls_of_the_same_seeds_one_begins_and_the_others_are_told(migrated_url: str, tmp_path: Path) -> None:
    plan = CrawlPlan(seeds=("https://a.example/",), contact="tests@example.org")

    def start(_: int) -> str:
        with closing(connect(migrated_url)) as raw_db:
            try:
                begun = begin(raw_db, SystemClock(), plan, ExecutionOptions(home=tmp_path), is_working=lambda _: True)
            except Conflict:
                return "told"
            assert not begun.resumed
            return "begun"

    assert Counter(_together(start)) == {"begun": 1, "told": MACHINES - 1}
    with closing(connect(migrated_url)) as raw_db, raw_db.read() as tx:
        assert tx.execute("SELECT count(*) FROM jobs") == [(1,)]
