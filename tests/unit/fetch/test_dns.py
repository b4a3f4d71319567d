"""Looking names up: every record judged before one is dialled, bounded in time and memory, asked once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest

from holdfast.clock import SystemClock
from holdfast.fetch.client import Client, ClientSettings
from holdfast.fetch.dns import Resolver, ResolverSettings
from holdfast.fetch.guard import REFUSAL, AddressGuard
from holdfast.types import Fetched, FetchFailed, FetchProblem, FetchRequest
from tests.clock import FakeClock
from tests.unit.fetch.nameserver import Held, Nameserver, Zone, nameserver
from tests.unit.fetch.servers import OK, answering, run, serving

SERVFAIL, NXDOMAIN = 2, 3
PUBLIC = ["A 93.184.216.34"]


@asynccontextmanager
async def resolving(
    zone: Zone, *, clock: FakeClock | None = None, ttl_s: int = 60, **settings: Any
) -> AsyncIterator[tuple[Resolver, Nameserver]]:
    """Give a resolver that asks a nameserver of this zone."""
    async with nameserver(zone, ttl_s=ttl_s) as server:
        chosen = ResolverSettings(
            **{"nameservers": (server.address,), "hosts_file": None, "timeout_s": 10.0, **settings}
        )
        resolver = Resolver(chosen, AddressGuard(), clock or SystemClock())
        try:
            yield resolver, server
        finally:
            resolver.close()


def both(name: str, kind: str, _times: int) -> list[str]:
    return ["A 93.184.216.34", "A 93.184.216.35"] if kind == "A" else ["AAAA 2606:2800::1"]


def test_resolve_returns_ipv4_and_ipv6_preferred_family_first() -> None:
    async def main() -> None:
        async with resolving(both) as (resolver, _):
            found = await resolver.resolve("www.example.com")
            assert found.addresses == ("93.184.216.34", "93.184.216.35", "2606:2800::1")
        async with resolving(both, prefer_ipv6=True) as (resolver, _):
            found = await resolver.resolve("www.example.com")
            assert found.addresses == ("2606:2800::1", "93.184.216.34", "93.184.216.35")

    run(main())


@pytest.mark.parametrize("bad", ["A 127.0.0.1", "A 10.0.0.1", "AAAA ::1", "AAAA fd00::1", "AAAA ::ffff:a00:1"])
def test_one_forbidden_record_refuses_them_all(bad: str) -> None:
    def zone(_name: str, kind: str, _times: int) -> list[str]:
        return (PUBLIC if kind == "A" else []) + ([bad] if bad.split()[0] == kind else [])

    async def main() -> None:
        async with resolving(zone) as (resolver, _):
            found = await resolver.resolve("mixed.example.com")

            assert found == ((), FetchProblem.ADDRESS_FORBIDDEN, REFUSAL)

    run(main())


def test_callers_that_come_together_share_one_lookup_and_later_ones_the_answer() -> None:
    async def main() -> None:
        async with resolving(both) as (resolver, server):
            found = await asyncio.gather(*(resolver.resolve("www.example.com") for _ in range(50)))
            again = await resolver.resolve("www.example.com")

            assert set(found) == {again}
            assert resolver.cached("www.example.com") == again
            assert dict(server.asked) == {("www.example.com", "A"): 1, ("www.example.com", "AAAA"): 1}

    run(main())


def test_a_caller_that_gives_up_does_not_take_the_answer_from_others() -> None:
    async def main() -> None:
        async with resolving(both) as (resolver, _):
            impatient = asyncio.create_task(resolver.resolve("www.example.com"))
            patient = asyncio.create_task(resolver.resolve("www.example.com"))
            await asyncio.sleep(0)
            impatient.cancel()

            assert (await patient).addresses

    run(main())


@pytest.mark.parametrize(("ttl_s", "kept_s"), [(0, 1.0), (30, 30.0), (86_400, 300.0)])
def test_lifetimes_are_kept_within_bounds(ttl_s: int, kept_s: float) -> None:
    async def main() -> None:
        clock = FakeClock()
        async with resolving(both, ttl_s=ttl_s, clock=clock) as (resolver, _):
            await resolver.resolve("www.example.com")
            clock.advance(kept_s - 0.1)
            assert resolver.cached("www.example.com") is not None
            clock.advance(0.2)
            assert resolver.cached("www.example.com") is None

    run(main())


def test_a_name_that_does_not_exist_is_remembered_for_less_than_the_wait_before_a_retry() -> None:
    async def main() -> None:
        clock = FakeClock()
        async with resolving(lambda *_: NXDOMAIN, clock=clock) as (resolver, server):
            first = await resolver.resolve("gone.example.com")
            second = await resolver.resolve("gone.example.com")
            asked = server.asked.total()
            clock.advance(1.0)
            await resolver.resolve("gone.example.com")

            assert first == ((), FetchProblem.NO_SUCH_NAME, "the name does not exist")
            assert first is second
            assert server.asked.total() > asked

    run(main())


def test_that_a_nameserver_could_not_tell_is_not_remembered() -> None:
    def zone(_name: str, kind: str, times: int) -> list[str] | int:
        return SERVFAIL if times < 3 else PUBLIC if kind == "A" else []

    async def main() -> None:
        async with resolving(zone, clock=FakeClock()) as (resolver, _):
            first = await resolver.resolve("flaps.example.com")
            again = await resolver.resolve("flaps.example.com")

            assert first.problem is FetchProblem.DNS
            assert first.message.startswith("the nameserver could not tell: ")
            assert again.addresses == ("93.184.216.34",)

    run(main())


@pytest.mark.parametrize("before", [0, 8])
def test_a_slow_answer_is_taken_as_long_as_there_is_time_however_quick_others_were(before: int) -> None:
    """Quick answers teach the library to wait no longer than a quarter of a second; it must not act on it."""

    def zone(name: str, kind: str, _times: int) -> list[str]:
        records = PUBLIC if kind == "A" else ["AAAA 2606:2800::1"]
        return Held(records) if name.startswith("slow") else records

    async def main() -> None:
        async with resolving(zone, timeout_s=10.0) as (resolver, server):
            for n in range(before):
                await resolver.resolve(f"h{n}.example.com")
            found = await asyncio.gather(*(resolver.resolve(f"slow{n}.example.com") for n in range(5)))

            assert {one.addresses for one in found} == {("93.184.216.34", "2606:2800::1")}
            # The first question was answered after the second had been sent, and the second never.
            assert max(server.asked.values()) == 1

    run(main())


def test_a_silent_nameserver_does_not_cost_the_time_of_the_other() -> None:
    async def main() -> None:
        async with nameserver(lambda *_: None) as silent, nameserver(both) as good:
            settings = ResolverSettings(nameservers=(silent.address, good.address), hosts_file=None, timeout_s=10.0)
            resolver = Resolver(settings, AddressGuard(), SystemClock())
            found = await resolver.resolve("www.example.com")
            resolver.close()

            assert found.addresses[0] == "93.184.216.34"
            assert silent.asked.total() > 0

    run(main())


def test_silence_ends_in_time() -> None:
    async def main() -> None:
        async with resolving(lambda *_: None, timeout_s=0.3) as (resolver, server):
            found = await resolver.resolve("silent.example.com")

            assert found == ((), FetchProblem.DNS, "no nameserver answered within 0.3 s")
            assert server.asked["silent.example.com", "A"] <= 3

    run(main())


def test_a_family_that_does_not_answer_does_not_cost_the_other() -> None:
    def zone(_name: str, kind: str, _times: int) -> list[str] | None:
        return PUBLIC if kind == "A" else None

    async def main() -> None:
        async with resolving(zone, timeout_s=0.3) as (resolver, _):
            assert (await resolver.resolve("half.example.com")).addresses == ("93.184.216.34",)

    run(main())


def test_a_flapping_server_is_asked_a_second_time() -> None:
    def zone(_name: str, kind: str, times: int) -> list[str] | int:
        return SERVFAIL if times == 0 else PUBLIC if kind == "A" else []

    async def main() -> None:
        async with resolving(zone) as (resolver, _):
            assert (await resolver.resolve("flaps.example.com")).addresses == ("93.184.216.34",)

    run(main())


def test_a_thousand_records_are_all_judged_and_few_are_kept() -> None:
    many = [f"A 93.184.{n // 250}.{n % 250 + 1}" for n in range(1000)]

    async def main() -> None:
        async with resolving(lambda _n, kind, _t: many if kind == "A" else []) as (resolver, _):
            assert len((await resolver.resolve("many.example.com")).addresses) == 4
        async with resolving(lambda _n, kind, _t: [*many, "A 10.0.0.1"] if kind == "A" else []) as (resolver, _):
            found = await resolver.resolve("many.example.com")
            assert found.problem is FetchProblem.ADDRESS_FORBIDDEN

    run(main())


def test_a_loop_of_aliases_has_no_address() -> None:
    async def main() -> None:
        async with resolving(lambda name, _k, _t: [f"CNAME {name}."]) as (resolver, _):
            found = await resolver.resolve("loop.example.com")

            assert found.problem is FetchProblem.DNS

    run(main())


@pytest.mark.parametrize("host", ["a" * 64 + ".example.com", "x." * 130 + "com", "double..dot.com", "-"])
def test_a_name_that_cannot_exist_is_a_value_too(host: str) -> None:
    async def main() -> None:
        async with resolving(lambda *_: NXDOMAIN) as (resolver, _):
            assert (await resolver.resolve(host)).problem is FetchProblem.NO_SUCH_NAME

    run(main())


def test_the_cache_forgets_the_oldest_when_it_is_full() -> None:
    async def main() -> None:
        async with resolving(both, max_entries=3) as (resolver, _):
            for n in range(5):
                await resolver.resolve(f"h{n}.example.com")

            known = [n for n in range(5) if resolver.cached(f"h{n}.example.com") is not None]
            assert known == [2, 3, 4]

    run(main())


def test_the_hosts_file_answers_before_any_server(tmp_path: Path) -> None:
    hosts = tmp_path / "hosts"
    hosts.write_text(
        "# comment\n93.184.216.40 Kept.example.com other # note\n2606:2800::40\tkept.example.com\nnonsense here\n\n"
    )

    async def main() -> None:
        async with resolving(both, hosts_file=hosts) as (resolver, server):
            assert (await resolver.resolve("kept.example.com")).addresses == ("93.184.216.40", "2606:2800::40")
            assert (await resolver.resolve("other.")).addresses == ("93.184.216.40",)
            local = await resolver.resolve("anything.localhost")

            assert local.problem is FetchProblem.ADDRESS_FORBIDDEN
            assert not server.asked

    run(main())


def test_an_address_that_failed_goes_to_the_back() -> None:
    async def main() -> None:
        async with resolving(both) as (resolver, _):
            await resolver.resolve("www.example.com")
            resolver.demote("www.example.com", "93.184.216.34")
            resolver.demote("www.example.com", "93.184.216.35")
            resolver.demote("www.example.com", "1.2.3.4")
            resolver.demote("unknown.example.com", "1.2.3.4")

            assert (await resolver.resolve("www.example.com")).addresses[0] == "2606:2800::1"

    run(main())


def test_closing_ends_open_lookups() -> None:
    async def main() -> None:
        async with resolving(lambda *_: None, timeout_s=5) as (resolver, _):
            task = asyncio.create_task(resolver.resolve("silent.example.com"))
            await asyncio.sleep(0.01)
            resolver.close()

            assert (await task).problem is FetchProblem.DNS

    run(main())


def _client(server: Nameserver, guard: AddressGuard) -> Client:
    settings = ResolverSettings(nameservers=(server.address,), hosts_file=None, timeout_s=1.0)
    clock = SystemClock()
    return Client(ClientSettings(user_agent="test"), guard, clock, Resolver(settings, guard, clock))


def test_rebinding_never_reaches_the_second_address() -> None:
    """The first answer leads to an allowed address, every later one to one that is not; lifetimes are zero."""

    def zone(_name: str, kind: str, times: int) -> list[str]:
        return [] if kind == "AAAA" else ["A 127.0.0.1"] if times == 0 else ["A 127.0.0.2"]

    async def main() -> None:
        guard = AddressGuard([ip_network("127.0.0.1/32")])
        async with nameserver(zone, ttl_s=0) as names, serving(answering(OK), host="0.0.0.0") as web:
            client = _client(names, guard)
            fetched = await client.fetch(FetchRequest(url=web.url(host="rebind.test")))
            await client.close()

            assert isinstance(fetched, Fetched)
            assert fetched.ip == "127.0.0.1"
            assert names.asked["rebind.test", "A"] == 1

    run(main())


def test_a_dead_address_is_passed_over_the_next_time() -> None:
    def zone(_name: str, kind: str, _times: int) -> list[str]:
        return ["A 127.0.0.9", "A 127.0.0.1"] if kind == "A" else []

    async def main() -> None:
        async with nameserver(zone) as names, serving(answering(OK)) as web:
            client = _client(names, AddressGuard([ip_network("127.0.0.0/8")]))
            first = await client.fetch(FetchRequest(url=web.url(host="two.test")))
            second = await client.fetch(FetchRequest(url=web.url(host="two.test")))
            await client.close()

            assert isinstance(first, FetchFailed)
            assert first.problem is FetchProblem.CONNECT
            assert isinstance(second, Fetched)

    run(main())


def test_a_name_without_address_is_a_dns_failure_of_the_exchange() -> None:
    async def main() -> None:
        async with nameserver(lambda *_: NXDOMAIN) as names:
            client = _client(names, AddressGuard())
            failed = await client.fetch(FetchRequest(url="http://gone.test/"))
            await client.close()

            assert isinstance(failed, FetchFailed)
            assert failed.problem is FetchProblem.NO_SUCH_NAME
            assert failed.problem.transient

    run(main())
