"""The engine's table of what is under way: finished once, bounded, and no domain given back that is still asked."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from datetime import timedelta
from ipaddress import ip_network
from threading import Barrier, Event, Thread
from typing import Any, cast

import pytest

from holdfast.crawl.domain_worker import DomainWorker
from holdfast.crawl.engine import CrawlEngine
from holdfast.crawl.politeness import Pace
from holdfast.crawl.process_watch import slowest
from holdfast.crawl.progress import CrawlEvent, CrawlLimits
from holdfast.errors import LeaseLost, Unavailable
from holdfast.fetch.body import MemoryBody
from holdfast.fetch.client import Client, ClientSettings
from holdfast.fetch.guard import AddressGuard
from holdfast.fetch.per_ip import AddressLimit, AddressLimiter
from holdfast.types import DomainChange, Fetched, FetchRequest
from holdfast.urls import parse
from tests import patience
from tests.unit.crawl.bed import Answer, Bed, attempt, fetched, make_bed
from tests.unit.crawl.engine_bed import inside, page_under_way, visit_of
from tests.unit.fetch.servers import OK, Server, answering, serving


def test_a_page_that_two_threads_finish_counts_once() -> None:
    async def work(bed: Bed, engine: CrawlEngine) -> None:
        page = page_under_way(bed)
        engine.hand_over(page)
        engine.finished(page, visit_of(bed, page))
        engine.finished(page, visit_of(bed, page))

        assert engine.waiting == 0
        assert len(engine.results.visits) == 1

    inside(work)


def test_fetching_pauses_while_the_writer_is_behind_and_bodies_are_let_go_when_it_has_them() -> None:
    async def work(bed: Bed, engine: CrawlEngine) -> None:
        pages = [page_under_way(bed, str(number)) for number in range(64)]
        for page in pages:
            engine.hand_over(page)
        assert not engine.room.is_set()
        engine.finished(pages[0], None)
        assert engine.room.is_set()

    inside(work)


def test_fetching_pauses_while_the_database_takes_no_results() -> None:
    async def work(bed: Bed, engine: CrawlEngine) -> None:
        done = 0
        while engine.room.is_set():
            page = page_under_way(bed, str(done))
            engine.hand_over(page)
            engine.finished(page, visit_of(bed, page))
            done += 1
        assert done == 5 * bed.settings.timings.crawl_settle_pages
        batch = engine.results.take(200)
        engine.look_for_room()
        assert engine.room.is_set()
        engine.results.give_back(batch)
        engine.look_for_room()
        assert not engine.room.is_set()

    inside(work)


def test_fetching_pauses_when_a_few_results_brought_very_many_links() -> None:
    async def work(bed: Bed, engine: CrawlEngine) -> None:
        for number in range(100):
            page = page_under_way(bed, str(number))
            engine.hand_over(page)
            engine.finished(page, visit_of(bed, page, found=1000))
        assert not engine.room.is_set()

    inside(work)


def test_a_domain_is_not_given_back_while_a_worker_of_another_waits_for_its_turn_there() -> None:
    async def work(bed: Bed, engine: CrawlEngine) -> None:
        async with asyncio.TaskGroup() as tasks:
            worker = engine.leased_domains.start(tasks, bed.worker().lease, lease_until=float("inf"))
            async with engine.borrow("a.test") as pace:
                assert pace is worker.pace
                worker.dry = True
                worker.refilled.set()
                await engine.leased_domains.finished()
                assert engine.leased_domains.ended == [worker]
                assert engine.leased_domains.releasable() == []
            assert engine.leased_domains.releasable() == [worker]

    inside(work)


def test_a_page_that_waits_for_room_is_held_and_not_taken_once_more() -> None:
    async def work(bed: Bed, engine: CrawlEngine) -> None:
        engine.room.clear()
        pages = tuple(attempt(f"http://a.test/{number}", id=number) for number in (1, 2, 3))
        async with asyncio.TaskGroup() as tasks:
            lease = bed.worker(attempts=pages).lease
            worker = engine.leased_domains.start(tasks, lease, lease_until=float("inf"))
            await asyncio.sleep(0)
            assert [one.id for one in worker.queue] == [2, 3], "the first is on its way"
            assert worker.holding == {1, 2, 3}
            engine.hand_back()

    inside(work)


def test_pause_ends_waiting_workers_and_keeps_the_request_in_progress() -> None:
    pages = tuple(attempt(f"http://a.test/{number}", id=number) for number in (1, 2))

    async def work(bed: Bed, engine: CrawlEngine) -> None:
        engine.room.clear()
        async with asyncio.TaskGroup() as tasks:
            start = engine.leased_domains.start
            waits = start(tasks, bed.worker(attempts=pages, domain_id=1).lease, lease_until=float("inf"))
            asks = start(tasks, bed.worker(attempts=pages, domain_id=2).lease, lease_until=float("inf"))
            await asyncio.sleep(0)
            asks.pace.waiting_since = 0.0  # as in its turn
            fresh = start(tasks, bed.worker(attempts=pages, domain_id=3).lease, lease_until=float("inf"))

            engine.pause()
            engine.pause()
            await asyncio.sleep(0)
            await asyncio.sleep(0)

            assert {id(one) for one in engine.leased_domains.ended} == {id(waits), id(fresh)}
            assert (asks.working, asks.dry, list(asks.queue), asks.current) == (True, True, [], pages[0])
            engine.resume()
            assert (engine.is_paused, engine.leased_domains.look_again.is_set()) == (False, True)
            engine.hand_back()

    inside(work)


class _SlowWeb:
    """A server that answers a request when it is told to."""

    def __init__(self, bed: Bed, answers: dict[str, Answer]) -> None:
        self._bed, self._answers = bed, answers
        self.urls: list[str] = []
        self.asked, self._answer = asyncio.Event(), asyncio.Event()

    def answer(self) -> None:
        """Answer the request under way."""
        self._answer.set()

    async def fetch(self, request: FetchRequest) -> Fetched:
        assert request.before_send is not None
        request.before_send()
        self.urls.append(request.url)
        self.asked.set()
        await self._answer.wait()
        self._answer.clear()
        return fetched(request, self._answers.get(request.url, Answer(404)), self._bed.clock)


_HOPS = {"http://a.test/": Answer(301, headers=(("Location", "/b"),)), "http://a.test/b": Answer()}


@pytest.mark.parametrize("told", ["pause", "hear"])
@pytest.mark.parametrize("last", ["http://a.test/robots.txt", "http://a.test/"])
def test_a_worker_inside_a_request_asks_for_nothing_after_it_once_its_run_or_domain_is_paused(
    told: str, last: str
) -> None:
    async def work(bed: Bed, engine: CrawlEngine) -> None:
        web = _SlowWeb(bed, _HOPS)
        bed.connect(cast(Any, web))
        engine.recall_robots = _none_known  # type: ignore[method-assign, assignment] # there is no database
        one = attempt("http://a.test/")
        async with asyncio.timeout(patience.deadline(10)), asyncio.TaskGroup() as tasks:
            worker = engine.leased_domains.start(tasks, bed.worker(attempts=(one,)).lease, lease_until=float("inf"))
            while last not in web.urls:
                await web.asked.wait()
                web.asked.clear()
                if last not in web.urls:
                    web.answer()
            if told == "pause":
                engine.pause()
            else:
                engine.hear([DomainChange(1, bed.clock.now() + timedelta(seconds=1), 0.0)])
            engine.press(0.0)
            assert worker.working, "the server has seen the request"
            web.answer()
            await engine.leased_domains.finished()

        assert (web.urls[-1], engine.leased_domains.ended) == (last, [worker])
        assert (worker.unsettled, worker.current) == (set(), None), "the page stays open"

    inside(work)


@asynccontextmanager
async def _waiting_worker(bed: Bed, engine: CrawlEngine) -> AsyncIterator[tuple[DomainWorker, asyncio.Event, Server]]:
    """Yield a worker whose request waits for its IP address's turn, what gives it the turn, and the server."""
    waits, turn = asyncio.Event(), asyncio.Event()

    async def sleep(_seconds: float) -> None:
        waits.set()
        await turn.wait()

    limiter = AddressLimiter(AddressLimit(rate=0.001), bed.clock, sleep=sleep)
    guard = AddressGuard([ip_network("127.0.0.0/8")])
    client = Client(ClientSettings(user_agent="t"), guard, bed.clock, limiter=limiter)
    bed.connect(client)
    engine.recall_robots = _none_known  # type: ignore[method-assign, assignment] # there is no database
    async with serving(answering(OK)) as server, asyncio.timeout(patience.deadline(10)), asyncio.TaskGroup() as tasks:
        async with limiter.turn("127.0.0.1"):
            pass
        one = attempt(server.url("/"))
        lease = bed.worker(parse(one.url).domain, attempts=(one,)).lease
        worker = engine.leased_domains.start(tasks, lease, lease_until=bed.clock.monotonic() + 60.0)
        await waits.wait()
        yield worker, turn, server
        await engine.leased_domains.finished()
        await client.close()


@pytest.mark.parametrize("told", ["pause", "hear", "drain", "lease over"])
def test_request_waiting_for_its_address_does_not_leave_when(told: str) -> None:
    async def work(bed: Bed, engine: CrawlEngine) -> None:
        async with _waiting_worker(bed, engine) as (worker, turn, server):
            if told == "pause":
                engine.pause()
            elif told == "hear":
                engine.hear([DomainChange(1, bed.clock.now() + timedelta(seconds=1), 0.0)])
            elif told == "drain":
                engine.drain()
            else:
                bed.clock.advance(61.0)
            turn.set()
        assert (server.connections, bed.progress.requests) == (0, 0)
        assert (worker.working, worker.unsettled, worker.politeness.circuit.failures) == (False, set(), 0)

    inside(work)


def test_request_waiting_for_its_address_leaves_in_renewed_lease() -> None:
    async def work(bed: Bed, engine: CrawlEngine) -> None:
        async with _waiting_worker(bed, engine) as (worker, turn, _server):
            bed.clock.advance(61.0)
            worker.pace.lease_until = bed.clock.monotonic() + 60.0
            turn.set()
            while not worker.unsettled:  # noqa: ASYNC110 - the page is handed on without an event
                await asyncio.sleep(0.01)
            engine.hand_back()
        assert (bed.progress.requests, worker.politeness.circuit.failures) == (2, 0)

    inside(work)


def test_visitor_gets_no_turn_at_a_domain_released_meanwhile() -> None:
    async def work(bed: Bed, engine: CrawlEngine) -> None:
        async with asyncio.TaskGroup() as tasks:
            engine.leased_domains.start(tasks, bed.worker().lease, lease_until=float("inf"))
            async with engine.borrow("a.test") as pace:
                assert isinstance(pace, Pace)
                async with pace.turn():
                    engine.leased_domains.give_back()
                    with pytest.raises(LeaseLost):
                        pace.before_send()

    inside(work)


def test_a_worker_that_waits_for_a_second_try_when_it_gives_back_is_seen_off_and_cancelled_once() -> None:
    async def work(bed: Bed, engine: CrawlEngine) -> None:
        engine.room.clear()
        async with asyncio.TaskGroup() as tasks:
            lease = bed.worker(attempts=(attempt("http://a.test/"),)).lease
            worker = engine.leased_domains.start(tasks, lease, lease_until=float("inf"))
            await asyncio.sleep(0)
            worker.pace.waiting_since = 0.0  # as in its turn
            engine.pause()
            engine.press(0.0)
            assert worker.working
            worker.pace.waiting_since = None
            [task] = [one for one in asyncio.all_tasks() if one.get_name() == "domain a.test"]
            engine.press(0.0)
            engine.press(0.0)
            assert task.cancelling() == 1, "a turn that it borrowed is given back in peace"
            await engine.leased_domains.finished()

    inside(work)


async def _none_known(_origin: str) -> None:
    return None


class _Giving:
    """A frontier that takes its time to take a domain back, and lends none."""

    def __init__(self, problem: Unavailable | None = None) -> None:
        self.problem = problem
        self.begun, self.go_on = Event(), Event()

    def release(self, _execution_id: int, _owner_id: int, _updates: object) -> list[int]:
        self.begun.set()
        assert self.go_on.wait(patience.deadline(30))
        if self.problem is not None:
            raise self.problem
        return []

    def rest(self, *_: object, **__: object) -> None:
        """Nothing was left aside."""

    def lease_named(self, _owner_id: int, _domain: str) -> None:
        return None

    def is_barred(self, _domain: str) -> bool:
        return False


@pytest.mark.parametrize("problem", [None, Unavailable("away")])
def test_a_visitor_gets_no_turn_at_a_domain_that_is_being_given_back(problem: Unavailable | None) -> None:
    async def work(bed: Bed, engine: CrawlEngine) -> None:
        frontier = _Giving(problem)
        engine.session.frontier = cast(Any, frontier)
        async with asyncio.TaskGroup() as tasks:
            worker = engine.leased_domains.start(tasks, bed.worker().lease, lease_until=float("inf"))
            worker.dry = True
            worker.refilled.set()
            await engine.leased_domains.finished()
            giving_back = asyncio.create_task(engine.settler.release_ended())
            await asyncio.to_thread(frontier.begun.wait, 30)
            visit = asyncio.create_task(_pace_of(engine, "a.test"))
            await asyncio.sleep(0)
            frontier.go_on.set()
            assert await visit is not worker.pace
            with suppress(Unavailable):
                await giving_back
        if problem is not None:
            assert await _pace_of(engine, "a.test") is worker.pace, "it is still ours"

    inside(work)


async def _pace_of(engine: CrawlEngine, domain: str) -> object:
    async with engine.borrow(domain) as pace:
        return pace


def test_a_visitor_gets_no_turn_at_a_domain_that_was_lost_meanwhile() -> None:
    async def work(bed: Bed, engine: CrawlEngine) -> None:
        turns = 0
        async with asyncio.TaskGroup() as tasks:
            worker = engine.leased_domains.start(tasks, bed.worker().lease, lease_until=float("inf"))
            async with engine.borrow("a.test") as pace:
                assert isinstance(pace, Pace)
                engine.leased_domains.lose(worker)
                try:
                    async with pace.turn():
                        turns += 1
                except LeaseLost:
                    pass
            assert engine.leased_domains.releasable() == [] or engine.leased_domains.releasable() == [worker]
        assert turns == 0

    inside(work)


def test_places_where_seeds_landed_are_all_in_scope_whichever_thread_learns_of_them() -> None:
    bed = make_bed({})
    hosts = [f"http://host-{number}.test/" for number in range(64)]
    start = Barrier(8)

    def learn(part: list[str]) -> None:
        start.wait()
        for host in part:
            bed.scope.widen(parse(host))

    threads = [Thread(target=learn, args=(hosts[number::8],), name=f"learn-{number}") for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert all(bed.scope.rules.decide(parse(host), 1).allowed for host in hosts)
    rules = bed.scope.rules
    assert not bed.scope.widen(parse(hosts[0]))
    assert bed.scope.rules is rules, "what is known is judged anew only when there is a reason"


def test_bodies_are_accounted_for_until_they_are_closed() -> None:
    released: list[int] = []
    body = MemoryBody([b"x" * 100], released=released.append)

    body.close()
    body.close()

    assert released == [100]


class _Counting:
    """A frontier with very many domains, of which none is due and no page is over the limit."""

    def __init__(self) -> None:
        self.closings = self.counts = 0

    def close_rest(self, *_: object, **__: object) -> int:
        self.closings += 1
        return 0

    def open_domains(self, _execution_id: int) -> int:
        self.counts += 1
        return 500_000

    def expired_domains(self) -> int:
        return 0

    def lease(self, *_: object, **__: object) -> list[object]:
        return []


def test_what_takes_long_to_find_out_is_asked_of_the_database_only_when_it_may_have_changed() -> None:
    async def work(bed: Bed, engine: CrawlEngine) -> None:
        frontier = _Counting()
        engine.session.frontier = cast(Any, frontier)
        engine.limits = CrawlLimits(replace(bed.plan, max_pages=1), bed.progress, ends_at=None, processes=2)
        engine.limits.take_news(CrawlEvent(other_pages=1))
        async with asyncio.TaskGroup() as tasks:
            worker = engine.leased_domains.start(tasks, bed.worker().lease, lease_until=float("inf"))
            for _ in range(10):
                await engine.lease_domains(tasks)
            assert (frontier.closings, frontier.counts) == (1, 1)

            engine.settler.additions += 1
            bed.clock.advance(6)
            await engine.lease_domains(tasks)
            assert (frontier.closings, frontier.counts) == (2, 2)
            worker.dry = True
            worker.refilled.set()

    inside(work)


def test_a_domain_that_waits_says_for_what() -> None:
    async def work(bed: Bed, engine: CrawlEngine) -> None:
        now = bed.clock.monotonic()
        names = ("told", "delayed", "left", "quick")
        workers = {name: bed.worker(name, domain_id=number) for number, name in enumerate(names)}
        workers["told"].pace.rest_until(now + 100)
        workers["delayed"] = bed.worker("delayed", domain_id=1, delay_s=10.0)
        workers["delayed"].pace.asked(sent_at=now, first_byte_at=now)
        later = bed.clock.now() + timedelta(seconds=30)
        workers["left"] = bed.worker("left", domain_id=2, next_allowed_at=later)
        engine.leased_domains.workers.update(enumerate(workers.values()))

        assert {row["domain"]: row["why"] for row in slowest(engine, now)} == {
            "told": "Retry-After",
            "delayed": "10 s between requests",
            "left": "rests, as noted by the last crawl",
        }

    inside(work)
