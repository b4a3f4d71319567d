"""What depths mean to a process: whether others have added to the frontier that it works on."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from holdfast.crawl.assignment import Assignment, seeds_of
from holdfast.crawl.process import set_depth_rules
from holdfast.types import Outcome
from tests.execution import begun_execution


def test_a_retry_shares_the_frontier_with_the_run_before_it(tmp_path: Path) -> None:
    with begun_execution(tmp_path) as (runtime, begun, plan):
        runtime.frontier.add(begun.execution_id, list(seeds_of(plan)))
        runtime.frontier.close_rest(begun.execution_id, outcome=Outcome.SUCCESS, reason="")
        retry = Assignment(
            plan=plan.to_json(), execution_id=begun.execution_id + 1, source_code=begun.source_code,
            output_dir=str(begun.output_dir), run_file="run", processes=1, seconds_left=None, supervisor=1,
            goes_on_with=begun.execution_id,
        )  # fmt: skip

        for assignment, shared in ((retry, True), (replace(retry, goes_on_with=None), False)):
            set_depth_rules(runtime.frontier, replace(plan, max_depth=3), assignment)
            assert runtime.frontier.depth_rules.shared is shared
