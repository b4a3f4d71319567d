"""An execution in a data directory of its own, for tests that need its rows and no crawl."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from holdfast import config
from holdfast.jobs import executions
from holdfast.jobs.executions import StartedRun
from holdfast.sources.plan import CrawlPlan
from holdfast.wiring import Runtime, open_runtime


class Begin(NamedTuple):
    """An execution that has begun, and what it stands on."""

    runtime: Runtime
    begun: StartedRun
    plan: CrawlPlan


@contextmanager
def begun_execution(home: Path, database_url: str | None = None) -> Iterator[Begin]:
    """Begin an execution, on SQLite unless another database is given; nothing of it runs."""
    plan = CrawlPlan(seeds=("https://example.org/",), contact="tests@example.org")
    with open_runtime(config.load(home=home, database_url=database_url)) as runtime:
        begun = executions.begin(
            runtime.raw_db,
            runtime.clock,
            plan,
            executions.ExecutionOptions(home),
            is_working=lambda _execution_id: False,
        )
        yield Begin(runtime, begun, plan)
