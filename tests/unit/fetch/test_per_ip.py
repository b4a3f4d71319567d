"""One server is asked no harder for having many names."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from ipaddress import ip_network

import pytest

from holdfast.config import FetchSettings, Settings
from holdfast.crawl.plan import CrawlPlan
from holdfast.crawl_process.process import limiter_of
from holdfast.fetch.client import Client, ClientSettings
from holdfast.fetch.guard import AddressGuard
from holdfast.fetch.per_ip import AddressLimit, AddressLimiter
from holdfast.types import Fetched, FetchRequest
from tests import patience
from tests.clock import FakeClock
from tests.unit.fetch.servers import OK, answering, run, serving


def _limiter(clock: FakeClock, *, rate: float = 0.0, connections: int = 0) -> AddressLimiter:
    async def sleep(seconds: float) -> None:
        # All that wait at one moment sleep beside each other: the clock is set to the latest of them.
        until = clock.monotonic() + seconds
        await asyncio.sleep(0)
        clock.advance(max(0.0, until - clock.monotonic()))

    return AddressLimiter(AddressLimit(rate=rate, connections=connections), clock, sleep=sleep)


async def _ask(limiter: AddressLimiter, clock: FakeClock, address: str, starts: list[float]) -> None:
    async with limiter.turn(address):
        starts.append(clock.monotonic())


def test_requests_to_one_address_start_no_faster_than_its_rate() -> None:
    async def main() -> None:
        clock = FakeClock()
        limiter, starts = _limiter(clock, rate=20.0), list[float]()
        for _ in range(41):
            await _ask(limiter, clock, "93.184.216.34", starts)

        assert starts[-1] - starts[0] == pytest.approx(2.0)
        assert starts == sorted(starts)

    asyncio.run(main())


def test_other_addresses_do_not_wait_and_ipv6_counts_by_its_network() -> None:
    async def main() -> None:
        clock = FakeClock()
        limiter, starts = _limiter(clock, rate=1.0), list[float]()
        for address in ("93.184.216.34", "93.184.216.35", "2606:2800::1"):
            await _ask(limiter, clock, address, starts)
        assert len(set(starts)) == 1

        await _ask(limiter, clock, "2606:2800::ffff:1", starts)
        assert starts[-1] == starts[0] + 1.0

    asyncio.run(main())


def test_no_more_requests_are_under_way_than_were_allowed_and_a_cancelled_one_gives_its_place_back() -> None:
    async def main() -> None:
        limiter = _limiter(FakeClock(), connections=2)
        inside, ended, full = 0, asyncio.Event(), asyncio.Event()
        most = 0

        async def hold() -> None:
            nonlocal inside, most
            async with limiter.turn("93.184.216.34"):
                inside += 1
                most = max(most, inside)
                if inside == 2:
                    full.set()
                try:
                    await ended.wait()
                finally:
                    inside -= 1

        tasks = [asyncio.create_task(hold()) for _ in range(6)]
        await full.wait()
        tasks[0].cancel()
        tasks[5].cancel()
        ended.set()
        await asyncio.gather(*tasks, return_exceptions=True)

        assert (most, inside) == (2, 0)

    asyncio.run(main())


def test_addresses_at_rest_are_forgotten() -> None:
    async def main() -> None:
        clock = FakeClock()
        limiter, starts = _limiter(clock, rate=1000.0), list[float]()
        for n in range(25_000):
            clock.advance(1.0)
            await _ask(limiter, clock, f"20.{n >> 16}.{n >> 8 & 255}.{n & 255}", starts)

        assert limiter.known <= 10_000

    asyncio.run(main())


def test_the_limit_is_shared_by_the_processes_of_a_crawl() -> None:
    limit = AddressLimit(rate=20.0, connections=3)

    assert limit.shared_by(4) == AddressLimit(rate=5.0, connections=1)
    assert AddressLimit().shared_by(4) == AddressLimit()


def _given(fetch: FetchSettings, **plan: float) -> tuple[AddressLimiter, FakeClock]:
    clock = FakeClock()
    asked = CrawlPlan(seeds=("http://a.test/",), contact="a@example.org", allow_networks=("127.0.0.0/8",), **plan)  # type: ignore[arg-type]
    return limiter_of(Settings(fetch=fetch), asked, clock), clock


@pytest.mark.parametrize(
    ("given", "limited"),
    [
        (lambda: _given(FetchSettings()), False),
        (lambda: _given(FetchSettings(per_ip_rate=20.0)), True),
        (lambda: _given(FetchSettings(), per_ip_rate=20.0), True),
        (lambda: _given(FetchSettings(), per_ip_rate=0.0), True),
    ],
)
def test_an_allowed_private_network_is_exempt_unless_a_limit_was_set(
    given: Callable[[], tuple[AddressLimiter, FakeClock]], limited: bool
) -> None:
    async def main() -> None:
        limiter, _ = given()
        async with limiter.turn("127.0.0.1"):
            assert bool(limiter.known) == limited
        async with limiter.turn("93.184.216.34"):
            assert limiter.known == 1 + limited

    asyncio.run(main())


def test_the_wait_for_a_turn_is_no_part_of_how_long_a_request_took() -> None:
    async def main() -> None:
        clock = FakeClock()
        limiter = _limiter(clock, rate=0.1)
        async with serving(answering(OK)) as server:
            client = Client(
                ClientSettings(user_agent="t"), AddressGuard([ip_network("127.0.0.0/8")]), clock, limiter=limiter
            )
            first = await client.fetch(FetchRequest(url=server.url("/"), deadline_s=5.0))
            began = clock.now()
            second = await client.fetch(FetchRequest(url=server.url("/"), deadline_s=5.0))
            await client.close()

        assert isinstance(first, Fetched)
        assert isinstance(second, Fetched)
        assert (second.started_at - began).total_seconds() == pytest.approx(10.0)
        assert second.took_s < patience.allowed(1.0)

    run(main())
