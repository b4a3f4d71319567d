"""Many seeds on their way into the frontier: some at a time, and once each, whatever happens in between."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from holdfast.crawl.supervisor import Seeding
from holdfast.db import connect
from holdfast.frontier import Frontier
from holdfast.jobs.executions import ExecutionOptions, begin
from holdfast.sources.plan import CrawlPlan
from tests.clock import FakeClock
from tests.patience import Calls

_COUNT = 12_000


def _plan(count: int) -> CrawlPlan:
    seeds = tuple(f"https://host{n % 10}.example/{n}" for n in range(count))
    return CrawlPlan(seeds=seeds, contact="tests@example.org")


def test_seeds_come_batch_by_batch_and_a_second_start_adds_the_rest(
    migrated_url: str, clock: FakeClock, tmp_path: Path
) -> None:
    plan = _plan(_COUNT)
    with closing(connect(migrated_url)) as raw_db:
        number = begin(raw_db, clock, plan, ExecutionOptions(home=tmp_path), is_working=lambda _: False).execution_id
        frontier = Frontier(raw_db, clock)
        killed = Seeding(plan, frontier, number)
        killed.step()
        after_one = frontier.open_count(number)

        again, steps = Seeding(plan, frontier, number), 0
        while again.left:
            again.step()
            steps += 1
        again.step()

        assert (after_one, killed.left) == (5000, _COUNT - 5000), "the first can be asked for"
        assert (steps, frontier.open_count(number)) == (3, _COUNT)


def test_the_first_batch_costs_as_much_however_many_follow() -> None:
    costs = []
    for count in (10_000, 40_000):
        plan, frontier = _plan(count), _Nowhere()
        with Calls() as calls:
            Seeding(plan, frontier, 1).step()  # type: ignore[arg-type]
        costs.append(calls.count)

    assert costs[1] < 1.1 * costs[0]


class _Nowhere:
    """Takes what is added, so that only the reading is counted."""

    def add(self, _execution_id: int, _found: object) -> int:
        return 0
