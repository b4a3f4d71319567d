"""Domains that are lost and leased anew, and results that did not get into the database: no link is lost by it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any, cast

import pytest

from holdfast.crawl.engine import CrawlEngine, ProcessEnding
from holdfast.crawl.outcomes import PageUnderWay
from holdfast.crawl.progress import CrawlEvent, CrawlLimits
from holdfast.crawl.writer_thread import CaptureWriter
from holdfast.errors import Unavailable
from holdfast.frontier.adding import DepthRules
from holdfast.types import Attempt, FoundUrl, Outcome, PageToReread, UrlKind
from holdfast.urls import parse
from tests import patience
from tests.unit.crawl.bed import Bed, attempt
from tests.unit.crawl.engine_bed import inside, page_under_way, visit_of


def test_a_domain_that_is_leased_anew_asks_for_no_page_whose_result_of_the_older_lease_is_still_to_be_refused() -> None:
    pages = tuple(attempt(f"http://a.test/{number}", id=number) for number in (1, 2, 3))

    async def work(bed: Bed, engine: CrawlEngine) -> None:
        engine.room.clear()  # no worker asks for anything by itself
        domains = engine.leased_domains
        async with asyncio.TaskGroup() as tasks:
            first = domains.start(tasks, bed.worker(attempts=pages).lease, lease_until=float("inf"))
            await asyncio.sleep(0)
            under_way = PageUnderWay(attempt=pages[0], token=first.lease.token, started_at=bed.clock.now())
            first.end(under_way, Outcome.SUCCESS, "ok")
            lease = replace(first.lease, token=first.lease.token + 1)
            second = domains.start(tasks, lease, lease_until=float("inf"))
            # As in the moment in which its fetch ends and it is cancelled.
            last = PageUnderWay(attempt=pages[1], token=first.lease.token, started_at=bed.clock.now())
            first.end(last, Outcome.SUCCESS, "ok")
            engine.room.clear()
            for _ in range(20):
                await asyncio.sleep(0)
            assert (first.lost, first.working, domains.releasable()) == (True, False, [first])
            assert second.current == pages[2], "the others have results that wait"
            domains.forget([first])
            second.has_more = False
            second.refill(pages[:2], limit=50)
            assert (list(second.queue), second.holding) == ([], {1, 2, 3})

            domains.note_ended(pages[0], first.lease.token)
            domains.note_ended(pages[1], first.lease.token)
            assert (second.unsettled, second.has_more) == (set(), True), "they are open, and asked for once more"
            second.refill(pages[:2], limit=50)
            assert list(second.queue) == [*pages[:2]]
            engine.hand_back()

    inside(work)


def test_a_lost_domain_is_not_forgotten_before_its_results_are_answered() -> None:
    one = attempt("http://a.test/", id=1)

    async def work(bed: Bed, engine: CrawlEngine) -> None:
        engine.room.clear()
        domains = engine.leased_domains
        async with asyncio.TaskGroup() as tasks:
            worker = domains.start(tasks, bed.worker(attempts=(one,)).lease, lease_until=float("inf"))
            await asyncio.sleep(0)
            worker.end(
                PageUnderWay(attempt=one, token=worker.lease.token, started_at=bed.clock.now()), Outcome.SUCCESS, "ok"
            )
            domains.lose(worker)
            await domains.finished()
            assert domains.releasable() == []
            domains.note_ended(one, worker.lease.token)
            assert domains.releasable() == [worker]

    inside(work)


def test_a_worker_that_is_cancelled_before_its_first_step_has_ended() -> None:
    async def work(bed: Bed, engine: CrawlEngine) -> None:
        domains = engine.leased_domains
        async with asyncio.TaskGroup() as tasks:
            worker = domains.start(tasks, bed.worker(attempts=(attempt("http://a.test/"),)).lease, lease_until=9e9)
            domains.expire(float("inf"))
            await domains.finished()
            await asyncio.sleep(0)
        assert (worker.working, domains.ended) == (False, [worker])

    inside(work)


def test_a_domain_that_is_leased_anew_waits_as_long_as_its_server_asked_the_older_lease_to() -> None:
    async def work(bed: Bed, engine: CrawlEngine) -> None:
        engine.room.clear()
        async with asyncio.TaskGroup() as tasks:
            first = engine.leased_domains.start(tasks, bed.worker().lease, lease_until=9e9)
            first.pace.rest_until(bed.clock.monotonic() + 900.0)
            lease = replace(first.lease, token=first.lease.token + 1)
            second = engine.leased_domains.start(tasks, lease, lease_until=9e9)
            assert second.pace.next_at >= bed.clock.monotonic() + 900.0
            engine.hand_back()

    inside(work)


def test_what_a_second_result_of_a_page_found_may_be_met_again() -> None:
    async def work(bed: Bed, engine: CrawlEngine) -> None:
        forgotten: list[str] = []
        engine.results.forget = lambda found: forgotten.extend(one.url for one in found)
        page = page_under_way(bed)
        engine.hand_over(page)
        engine.finished(page, visit_of(bed, page))
        engine.finished(page, visit_of(bed, page, found=2))
        assert forgotten == ["http://a.test/0", "http://a.test/1"]

    inside(work)


def test_a_page_that_is_read_again_leads_where_it_led_when_the_database_did_not_take_that_the_first_time() -> None:
    links = [FoundUrl("http://a.test/deep", 5, "a.test", UrlKind.PAGE, 1, 1)]
    added: list[list[FoundUrl]] = []

    class Rereading:
        depth_rules = DepthRules(limited=True)

        def rereads(self, _execution_id: int, *, limit: int) -> list[PageToReread]:
            return (
                [PageToReread(attempt=attempt("http://a.test/"), base="http://a.test/")][:limit]
                if len(added) < 2
                else []
            )

        def read_again(self, _execution_id: int, _reread: PageToReread, found: list[FoundUrl]) -> None:
            added.append(list(found))
            if len(added) == 1:
                raise Unavailable("away")

    async def work(bed: Bed, engine: CrawlEngine) -> None:
        met: set[int] = set()

        def read(_reread: PageToReread) -> list[FoundUrl]:
            fresh = [one for one in links if one.url_hash not in met]
            met.update(one.url_hash for one in fresh)
            return fresh

        engine.session.frontier = cast(Any, Rereading())
        engine.session.originals = cast(Any, _NoHistory())
        engine._factories = engine._factories._replace(read_again=read)
        engine.results.forget = lambda found: met.difference_update(one.url_hash for one in found)
        engine.capture_writer = cast(CaptureWriter, _AtOnce())
        task = asyncio.create_task(engine._reread())
        async with asyncio.timeout(patience.deadline(10)):
            while len(added) < 2:  # noqa: ASYNC110 - on the database's thread
                await asyncio.sleep(0.01)
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        assert added == [links, links]

    inside(work)


@pytest.mark.parametrize(("pages", "over"), [(1, True), (0, False)])
def test_run_at_its_page_limit_with_rereads_left_ends_as_max_pages(pages: int, over: bool) -> None:
    class AtLimit:
        depth_rules = DepthRules(limited=True)

        def hopeless_domains(self, *_: Any, **__: Any) -> list[tuple[int, int]]:
            return []

        forbidden_domains = paused_domains = hopeless_domains

        def open_count(self, _execution_id: int) -> int:
            return 0

        def reread_count(self, _execution_id: int) -> int:
            return 1

    async def work(bed: Bed, engine: CrawlEngine) -> None:
        engine.session.frontier = cast(Any, AtLimit())
        bed.progress.pages = pages
        engine.limits = CrawlLimits(replace(bed.plan, max_pages=1), bed.progress, ends_at=None)

        assert (await engine._is_over(), engine.ending is ProcessEnding.MAX_PAGES) == (over, over)

    inside(work)


@pytest.mark.parametrize(("fails", "reopened"), [(False, True), (True, True), (False, False)])
def test_page_whose_record_cannot_be_read_is_fetched_again(fails: bool, reopened: bool) -> None:
    page, fetched = PageToReread(attempt=attempt("http://a.test/"), base="http://a.test/"), list[PageToReread]()

    class Rereading:
        depth_rules = DepthRules(limited=True)

        def rereads(self, _execution_id: int, *, limit: int) -> list[PageToReread]:
            return [] if fetched else [page][:limit]

        def fetch_again(self, _execution_id: int, reread: PageToReread) -> bool:
            fetched.append(reread)
            return reopened

    def read(_reread: PageToReread) -> list[FoundUrl] | None:
        if fails:
            raise ValueError("damaged")
        return None

    async def work(bed: Bed, engine: CrawlEngine) -> None:
        engine.session.frontier = cast(Any, Rereading())
        engine.session.originals = cast(Any, _NoHistory())
        engine._factories = engine._factories._replace(read_again=read)
        engine.capture_writer = cast(CaptureWriter, _AtOnce())
        bed.progress.pages = 3
        task = asyncio.create_task(engine._reread())
        async with asyncio.timeout(patience.deadline(10)):
            await engine.leased_domains.look_again.wait()
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        assert fetched == [page]
        # It counts towards max_pages when it is captured again, and not twice.
        assert bed.progress.pages == 3 - reopened

    inside(work)


def test_a_page_that_a_seed_led_to_comes_to_a_worker_after_the_scope_that_it_widens() -> None:
    landed = replace(attempt("http://new.test/", id=2), hops=1)

    class Refilling:
        def refill(self, *_: Any, **__: Any) -> list[Attempt]:
            return [landed]

    class Others:
        def read_news(self) -> CrawlEvent:
            return CrawlEvent(landing=("http://new.test/",))

    async def work(bed: Bed, engine: CrawlEngine) -> None:
        engine.session.frontier = cast(Any, Refilling())
        engine.session.originals = cast(Any, _NoHistory())
        engine.results.control = cast(Any, Others())
        deeper = parse("http://new.test/deeper", bed.scope.normalisation)
        assert not bed.scope.rules.decide(deeper, 1, UrlKind.PAGE).allowed
        async with asyncio.TaskGroup() as tasks:
            worker = engine.leased_domains.start(tasks, bed.worker(attempts=()).lease, lease_until=9e9)
            seen: list[bool] = []
            take = worker.refill

            def refill(attempts: Any, *, limit: int) -> None:
                seen.append(bed.scope.rules.decide(deeper, 1, UrlKind.PAGE).allowed)
                take(attempts, limit=limit)

            worker.refill = refill  # type: ignore[method-assign]
            await asyncio.sleep(0)
            engine.room.clear()
            await engine.settler._refill({worker.lease.domain_id})
            assert seen == [True]
            engine.hand_back()

    inside(work)


class _NoHistory:
    def learn(self, attempts: Any) -> None:
        """Know nothing of them."""


class _AtOnce:
    def later(self, call: Callable[[], None]) -> None:
        call()
