"""Seeds on their way into the frontier: batch by batch, so that processes ask for the first while the rest is read."""

from __future__ import annotations

from holdfast.crawl.plan import CrawlPlan
from holdfast.crawl.seeds import seed_batches
from holdfast.frontier import Frontier
from holdfast.types import Found

_AT_ONCE = 5000
"""Seeds of one batch, which is one transaction."""


class Seeding:
    """Adds the seeds of a plan. To begin anew after a kill is harmless: what is there already is not added twice."""

    def __init__(self, plan: CrawlPlan, frontier: Frontier, frontier_id: int) -> None:
        self._frontier, self._frontier_id = frontier, frontier_id
        self._batches = seed_batches(plan, size=_AT_ONCE)
        self._next: list[Found] | None = next(self._batches, None)
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
