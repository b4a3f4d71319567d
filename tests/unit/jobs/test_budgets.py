"""How much a run of a job may take: the job's word before its source's, and never longer than a worker allows."""

from __future__ import annotations

import pytest

from holdfast.sources.config import merged, read_config
from holdfast.sources.plan import CrawlDefaults, crawl_plan

_SOURCE = read_config({"seeds": ["https://a.example/"], "max_pages": 100, "quota_bytes": 10_000, "max_time_s": 600})
_HOUSE = CrawlDefaults("tests@example.org", max_time_s=3600.0)


def test_a_source_s_budgets_reach_the_plan_and_a_job_s_own_win() -> None:
    plain = crawl_plan(_SOURCE, _HOUSE, number=1)
    own = crawl_plan(merged(_SOURCE, overrides={"max_pages": 5, "max_time_s": 60}), _HOUSE, number=1)

    assert (plain.max_pages, plain.max_bytes, plain.max_time_s) == (100, 10_000, 600)
    assert (own.max_pages, own.max_bytes, own.max_time_s) == (5, 10_000, 60)


@pytest.mark.parametrize(("asked", "house", "found"), [(None, 3600, 3600), (7200, 3600, 3600), (7200, None, 7200)])
def test_no_run_takes_longer_than_a_worker_allows(
    asked: float | None, house: float | None, found: float | None
) -> None:
    config = merged(_SOURCE, overrides={"max_time_s": asked})

    assert crawl_plan(config, _HOUSE._replace(max_time_s=house), number=1).max_time_s == found
