"""One server is asked no harder for having many names."""

from __future__ import annotations

import asyncio
import errno
import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from ipaddress import ip_network
from pathlib import Path
from zlib import crc32

import pytest

from holdfast.config import FetchSettings, Settings
from holdfast.crawl.paced_client import address_limiter
from holdfast.fetch.client import Client, ClientSettings
from holdfast.fetch.guard import AddressGuard
from holdfast.fetch.per_ip import AddressLimit, AddressLimiter, MachineTurns, machine_turns
from holdfast.sources.plan import CrawlPlan
from holdfast.types import Fetched, FetchRequest
from tests import patience
from tests.clock import FakeClock
from tests.unit.fetch.servers import OK, answering, run, serving


def _limiter(
    clock: FakeClock, *, rate: float = 0.0, connections: int = 0, machine: MachineTurns | None = None
) -> AddressLimiter:
    async def sleep(seconds: float) -> None:
        # All that wait at one moment sleep beside each other: the clock is set to the latest of them.
        until = clock.monotonic() + seconds
        await asyncio.sleep(0)
        clock.advance(max(0.0, until - clock.monotonic()))

    return AddressLimiter(AddressLimit(rate=rate, connections=connections), clock, sleep=sleep, machine=machine)


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


_ASKS = """
import asyncio, sys, time
from pathlib import Path
from holdfast.clock import SystemClock
from holdfast.fetch.per_ip import AddressLimit, AddressLimiter, machine_turns

async def main():
    clock = SystemClock()
    limit = AddressLimit(rate=float(sys.argv[2]), connections=int(sys.argv[3]))
    limiter = AddressLimiter(limit, clock, machine=machine_turns(Path(sys.argv[1])))
    async def ask():
        async with limiter.turn("93.184.216.34"):
            print(clock.monotonic(), flush=True)
            if len(sys.argv) > 4:
                await asyncio.Event().wait()
    await asyncio.gather(*(ask() for _ in range(20)))

asyncio.run(main())
"""


def _asking(home: Path, *, rate: float, connections: int, more: tuple[str, ...] = ()) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", _ASKS, str(home), str(rate), str(connections), *more]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def test_address_limit_is_shared_by_processes_of_a_machine(tmp_path: Path) -> None:
    with ExitStack() as stack:
        asking = [stack.enter_context(_asking(tmp_path, rate=40.0, connections=0)) for _ in range(3)]
        starts = sorted(float(line) for process in asking for line in process.communicate()[0].split())

    assert len(starts) == 60
    # The first may be late for its moment; with limits of their own they would take a third of that.
    assert starts[-1] - starts[0] >= 59 / 40.0 - patience.allowed(0.2)


def test_killed_process_releases_its_places_at_an_address(tmp_path: Path) -> None:
    with _asking(tmp_path, rate=0.0, connections=2, more=("hold",)) as holding:
        assert holding.stdout is not None
        for _ in range(2):
            holding.stdout.readline()
        ours = machine_turns(tmp_path)
        slot = crc32(b"93.184.216.34") % (1 << 20)
        assert ours.take_place(slot, 2) is None
        holding.kill()
        holding.wait()

        places = {ours.take_place(slot, 2), ours.take_place(slot, 2)}
        assert None not in places
        assert len(places) == 2
        assert ours.take_place(slot, 2) is None


def test_address_limit_holds_per_process_when_file_fails(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "run").write_text("no directory")

    async def main() -> None:
        clock = FakeClock()
        limiter, starts = _limiter(clock, rate=1.0, machine=machine_turns(tmp_path)), list[float]()
        for _ in range(3):
            await _ask(limiter, clock, "93.184.216.34", starts)
        assert starts[-1] - starts[0] == pytest.approx(2.0)

    asyncio.run(main())
    assert caplog.text.count("fetch.address_limit_not_shared") == 1


def test_address_limit_holds_per_process_when_disk_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    async def main() -> None:
        clock = FakeClock()
        limiter, starts = _limiter(clock, rate=1.0, machine=machine_turns(tmp_path)), list[float]()
        monkeypatch.setattr("os.pwrite", full)
        for _ in range(3):
            await _ask(limiter, clock, "93.184.216.34", starts)
        assert starts[-1] - starts[0] == pytest.approx(2.0)

    asyncio.run(main())
    assert caplog.text.count("fetch.address_limit_not_shared") == 1


def test_lock_error_that_is_not_held_gives_a_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    turns = machine_turns(tmp_path)

    def no_locks(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("fcntl.lockf", no_locks)

    assert turns.take_place(1, 1) is not None
    assert turns.take_place(1, 1) is None, "this process has it"


def test_threads_of_a_process_share_the_places_of_an_address(tmp_path: Path) -> None:
    turns = machine_turns(tmp_path)
    with ThreadPoolExecutor(8) as threads:
        places = [place for place in threads.map(lambda _: turns.take_place(1, 20), range(100)) if place is not None]

    assert len(places) == len(set(places)) == 20


def test_address_file_of_an_older_boot_is_deleted_when_unused(tmp_path: Path) -> None:
    old, shared = tmp_path / "run" / "addresses-old", tmp_path / "run" / "addresses-shared"
    old.parent.mkdir()
    for file in (old, shared):
        file.touch()
    os.utime(old, (0, 0))

    machine_turns(tmp_path)

    assert not old.exists()
    assert shared.exists(), "another machine may write to it"


def _given(fetch: FetchSettings, **plan: float) -> tuple[AddressLimiter, FakeClock]:
    clock = FakeClock()
    asked = CrawlPlan(seeds=("http://a.test/",), contact="a@example.org", allow_networks=("127.0.0.0/8",), **plan)  # type: ignore[arg-type]
    limiter = address_limiter(Settings(fetch=fetch), asked.allow_networks, clock, rate=asked.per_ip_rate)
    return limiter, clock


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
