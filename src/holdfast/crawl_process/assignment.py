"""What a crawl process is started with: JSON on its standard input. Apart, so that who starts one stays small."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Self

from holdfast.crawl.plan import CrawlPlan, seed_batches
from holdfast.frontier import Frontier
from holdfast.types import FoundUrl
from holdfast.values import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Assignment:
    """The part of one process in an execution."""

    plan: str
    execution_id: int
    source_code: str
    output_dir: str
    run_file: str
    processes: int
    seconds_left: float | None
    supervisor: int
    """The number of the process that looks after this one: when it is gone, this one hands back and ends."""
    epoch: int | None = None
    """Of the lease under which the execution runs: when it is over, this one drains. None for a crawl of its own."""
    goes_on_with: int | None = None
    """The execution whose frontier this one goes on with, if it retries one."""

    @property
    def frontier_id(self) -> int:
        """The execution whose frontier is worked on."""
        return self.execution_id if self.goes_on_with is None else self.goes_on_with

    def to_json(self) -> str:
        """Return it as text for standard input."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return what `to_json` wrote."""
        return cls(**json.loads(text))


_AT_ONCE = 5000
"""Seeds of one batch, which is one transaction."""


class Seeding:
    """Adds the seeds of a plan. To begin anew after a kill is harmless: what is there already is not added twice."""

    def __init__(self, plan: CrawlPlan, frontier: Frontier, frontier_id: int) -> None:
        self._frontier, self._frontier_id = frontier, frontier_id
        self._batches = seed_batches(plan, size=_AT_ONCE)
        self._next: list[FoundUrl] | None = next(self._batches, None)
        self._added = 0
        self._total = len(plan.lists) + int(plan.search) if plan.polls else len(plan.seeds)

    @property
    def left(self) -> int:
        """How many seeds are not added yet, at most: the plan may name some of them twice."""
        return 0 if self._next is None else max(len(self._next), self._total - self._added)

    def step(self) -> None:
        """Add one batch; one that the database did not take is added by the next step."""
        if self._next is not None:
            self._frontier.add(self._frontier_id, self._next)
            self._added += len(self._next)
            self._next = next(self._batches, None)
