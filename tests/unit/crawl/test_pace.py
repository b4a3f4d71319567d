"""When a domain may be asked again."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import pytest

from holdfast.crawl.politeness import Pace
from holdfast.errors import LeaseLost
from tests.clock import FakeClock


@dataclass
class Delay:
    seconds: float = 1.0

    def __call__(self) -> float:
        return self.seconds


def _pace(clock: FakeClock, delay: Delay, *, first_in: float = 0.0, lease_s: float = 60.0) -> Pace:
    now = clock.monotonic()
    return Pace(clock, first_at=now + first_in, lease_until=now + lease_s, delay=delay)


def test_the_delay_counts_from_the_moment_at_which_the_server_must_have_seen_the_request(clock: FakeClock) -> None:
    pace, now = _pace(clock, Delay()), clock.monotonic()

    pace.asked(sent_at=now, first_byte_at=now + 0.02)

    assert pace.next_at == pytest.approx(now + 1.02, abs=0.01)


def test_a_server_that_answers_late_costs_a_quarter_of_a_second_at_most(clock: FakeClock) -> None:
    pace, now = _pace(clock, Delay()), clock.monotonic()

    pace.asked(sent_at=now, first_byte_at=now + 9.0)

    assert pace.next_at <= now + 1.26


def test_a_delay_that_is_learned_from_an_answer_counts_from_its_own_request(clock: FakeClock) -> None:
    delay = Delay(1.0)
    pace, now = _pace(clock, delay), clock.monotonic()

    pace.asked(sent_at=now, first_byte_at=now)
    delay.seconds = 10.0

    assert pace.next_at == pytest.approx(now + 10.0, abs=0.01)


def test_nothing_brings_the_next_slot_nearer(clock: FakeClock) -> None:
    pace, now = _pace(clock, Delay()), clock.monotonic()

    pace.rest_until(now + 30.0)
    pace.rest_until(now + 5.0)
    pace.asked(sent_at=now, first_byte_at=now)

    assert pace.next_at == now + 30.0


def test_a_try_that_never_left_waits_as_long_as_a_request(clock: FakeClock) -> None:
    pace, now = _pace(clock, Delay()), clock.monotonic()

    pace.tried(now)

    assert pace.next_at >= now + 1.0


def test_no_turn_is_given_once_the_lease_may_be_over(clock: FakeClock) -> None:
    async def take() -> None:
        async with _pace(clock, Delay(), lease_s=0.0).turn():
            raise AssertionError("no turn may be had")

    with pytest.raises(LeaseLost):
        asyncio.run(take())


def test_two_turns_are_never_held_at_once(clock: FakeClock) -> None:
    held: list[int] = []

    async def take(pace: Pace) -> None:
        async with pace.turn():
            assert pace.waiting_since is None, "nothing has left yet"
            assert pace.before_send() > 0
            assert pace.waiting_since is not None
            held.append(len(held))
            assert held[-1] == len(held) - 1
            await asyncio.sleep(0)
        assert pace.waiting_since is None

    async def both() -> None:
        pace = _pace(clock, Delay(0.0))
        await asyncio.gather(take(pace), take(pace))

    asyncio.run(both())
    assert held == [0, 1]


def test_a_wait_that_the_server_asked_for_is_resting_from_our_own_delay(clock: FakeClock) -> None:
    pace = _pace(clock, Delay(5.0), first_in=9)
    assert not pace.is_resting, "what another left behind"

    pace.rest_until(clock.monotonic() + 30)
    assert pace.is_resting

    clock.advance(29)
    pace.asked(sent_at=clock.monotonic(), first_byte_at=clock.monotonic())
    assert not pace.is_resting, "the delay is longer by now"
