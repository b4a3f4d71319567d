"""How a domain is treated: delays, circuit, and what must be written soon."""

from __future__ import annotations

from datetime import timedelta
from random import Random
from typing import Any

from holdfast.config import Settings
from holdfast.crawl.politeness import DomainPoliteness
from holdfast.types import CircuitState, DomainLease
from tests.clock import FakeClock


def _politeness(clock: FakeClock, *, delay_s: float = 1.0, **lease: Any) -> DomainPoliteness:
    facts: dict[str, Any] = {
        "domain_id": 1, "domain": "a.test", "token": 1, "expires_at": clock.now(), "delay_s": 0.0,
        "next_allowed_at": clock.now(), "taken_over": False, "circuit": CircuitState(), "robots": (), "attempts": (),
    }  # fmt: skip
    return DomainPoliteness(
        DomainLease(**{**facts, **lease}), Settings(), clock, delay_s=delay_s, lease_until=float("inf"),
        random=Random(1),
    )  # fmt: skip


def test_a_delay_under_a_second_holds_only_where_the_network_was_allowed(clock: FakeClock) -> None:
    politeness = _politeness(clock, delay_s=0.1)

    assert politeness.delay_s == 1.0
    politeness.note_address("192.0.2.1", is_private=True)
    assert politeness.delay_s == 0.1
    politeness.note_address("192.0.2.1", is_private=False)
    assert politeness.delay_s == 1.0


def test_the_longest_wish_of_a_domains_robots_files_holds(clock: FakeClock) -> None:
    politeness = _politeness(clock)

    politeness.take_crawl_delay("http://a.test", 5.0)
    politeness.take_crawl_delay("https://a.test", 0.0)
    assert politeness.delay_s == 5.0
    assert politeness.why_slow == "crawl-delay 5 s"
    politeness.take_crawl_delay("http://a.test", 0.0)
    assert politeness.delay_s == 1.0


def test_a_storm_of_429_slows_down_step_by_step_and_good_answers_forgive(clock: FakeClock) -> None:
    politeness = _politeness(clock, delay_s=0.0)
    politeness.note_address("192.0.2.1", is_private=True)
    delays = []
    for _ in range(8):
        politeness.slow_down()
        delays.append(politeness.delay_s)
    for _ in range(30):
        politeness.went_well()

    assert delays == [2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 64.0, 64.0]
    assert politeness.delay_s == 0.0


def test_five_failures_open_the_circuit_a_failed_trial_opens_it_anew_and_two_good_ones_close_it(
    clock: FakeClock,
) -> None:
    politeness = _politeness(clock)
    for _ in range(5):
        assert politeness.closed_until is None
        politeness.went_badly()
    opened = clock.now()

    assert politeness.closed_until == opened + timedelta(seconds=60)
    clock.advance(60)
    assert politeness.closed_until is None, "a trial is due"
    politeness.went_badly()
    assert politeness.closed_until == clock.now() + timedelta(seconds=60)
    clock.advance(60)
    politeness.went_well()
    politeness.went_well()
    assert politeness.circuit == CircuitState()


def test_a_domain_is_given_up_when_it_was_away_for_as_long_as_an_execution_waits(clock: FakeClock) -> None:
    politeness, started = _politeness(clock), clock.now()

    def given_up() -> bool:
        return politeness.gives_up(next_try_at=clock.now() + timedelta(seconds=60), since=started)

    assert not given_up(), "it was never unreachable"
    politeness.unreachable()
    clock.advance(29 * 60)
    assert not given_up()
    clock.advance(60)
    assert given_up()
    assert not politeness.gives_up(next_try_at=clock.now(), since=started + timedelta(minutes=10))


def test_what_the_next_holder_must_know_is_news_once(clock: FakeClock) -> None:
    politeness = _politeness(clock)
    assert not politeness.has_news
    politeness.went_badly()
    assert not politeness.has_news, "one failure may be forgotten"

    politeness.slow_down()
    assert politeness.has_news
    assert politeness.update().circuit.penalty == 2.0
    assert not politeness.has_news
    politeness.note_rest(is_busy=True)
    assert politeness.has_news, "a moment that the server named must outlive us"
    assert politeness.update().circuit.unreachable_since == clock.now()
    assert not politeness.has_news
