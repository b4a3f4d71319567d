"""How much a crawl takes: what is under way counts before it has come."""

from __future__ import annotations

import pytest

from holdfast.crawl.progress import CrawlEvent, CrawlLimits, CrawlProgress
from holdfast.sources.plan import CrawlPlan
from holdfast.types import UrlKind
from tests.clock import FakeClock
from tests.unit.crawl.bed import attempt

_EACH = 10_000
_LIMIT = 1_000_000


def _limits(*, processes: int = 1) -> tuple[CrawlLimits, CrawlProgress]:
    progress = CrawlProgress(FakeClock())
    plan = CrawlPlan(seeds=("http://a.test/",), contact="a@example.org", max_bytes=_LIMIT)
    return CrawlLimits(plan, progress, ends_at=None, processes=processes), progress


@pytest.mark.parametrize("workers", [1, 50, 500])
@pytest.mark.parametrize("kind", [UrlKind.PAGE, UrlKind.REQUISITE])
def test_many_domains_asked_at_once_pass_the_limit_of_bytes_by_one_answer_at_most(workers: int, kind: UrlKind) -> None:
    limits, progress = _limits()
    one = attempt("http://a.test/", kind=kind)
    asking = 0
    while limits.over(0.0) is None:
        while asking < workers and limits.may_start(one):
            asking += 1
        assert asking, "one is always begun while there are bytes left"
        # The first of them is answered; the rest is still on its way.
        progress.asked(_EACH)
        limits.answered()
        limits.ended(one)
        asking -= 1
    late = asking * _EACH

    assert progress.wire_bytes + late <= _LIMIT + _EACH
    assert not limits.may_start(one), "nothing is begun when all is used up"


def test_what_the_other_processes_have_and_are_at_counts_as_well() -> None:
    limits, progress = _limits(processes=2)
    progress.asked(_EACH)
    limits.take_news(CrawlEvent(other_bytes=_LIMIT - 4 * _EACH))
    one = attempt("http://a.test/")

    assert limits.may_start(one)
    assert not limits.may_start(one), "two of ours and two of theirs would be too many"
    limits.answered()
    limits.take_news(CrawlEvent(other_bytes=_LIMIT - _EACH))
    assert not limits.may_start(one)
    assert limits.over(0.0) == "max_bytes"


def test_without_a_limit_of_bytes_nothing_is_held_up() -> None:
    progress = CrawlProgress(FakeClock())
    limits = CrawlLimits(CrawlPlan(seeds=("http://a.test/",), contact="a@example.org"), progress, ends_at=None)

    assert all(limits.may_start(attempt("http://a.test/")) for _ in range(1000))
    assert limits.over(0.0) is None


def test_the_time_of_a_pause_is_taken_off_and_no_limit_ends_a_crawl_meanwhile() -> None:
    plan = CrawlPlan(seeds=("http://a.test/",), contact="a@example.org", max_bytes=_LIMIT)
    progress = CrawlProgress(FakeClock())
    limits = CrawlLimits(plan, progress, ends_at=100.0)

    limits.pause(40.0)
    limits.pause(60.0)
    assert limits.over(1000.0) is None
    limits.resume(1040.0)
    limits.resume(1050.0)

    assert (limits.over(1099.0), limits.over(1100.0)) == (None, "max_time")
    limits.pause(1090.0)
    progress.asked(_LIMIT)
    assert limits.over(1099.0) is None
    limits.resume(1099.0)
    assert limits.over(1099.0) == "max_bytes"
