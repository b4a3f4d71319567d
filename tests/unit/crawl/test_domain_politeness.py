"""How a domain is treated: delays, circuit, and what must be written soon."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from holdfast.config import PolitenessSettings
from holdfast.crawl.politeness import DomainPoliteness
from holdfast.types import CircuitState, DomainLease
from tests.clock import FakeClock


def _manners(clock: FakeClock, *, plan_delay_s: float = 1.0, **lease: Any) -> DomainPoliteness:
    facts: dict[str, Any] = {
        "domain_id": 1, "domain": "a.test", "token": 1, "expires_at": clock.now(), "delay_s": 0.0,
        "next_allowed_at": clock.now(), "taken_over": False, "circuit": CircuitState(), "robots": (), "attempts": (),
    }  # fmt: skip
    return DomainPoliteness(DomainLease(**{**facts, **lease}), PolitenessSettings(), clock, plan_delay_s=plan_delay_s)


def test_a_delay_under_a_second_holds_only_where_the_network_was_allowed(clock: FakeClock) -> None:
    manners = _manners(clock, plan_delay_s=0.1)

    assert manners.delay_s == 1.0
    manners.met(is_private=True)
    assert manners.delay_s == 0.1
    manners.met(is_private=False)
    assert manners.delay_s == 1.0


def test_the_longest_wish_of_a_domains_robots_files_holds(clock: FakeClock) -> None:
    manners = _manners(clock)

    manners.crawl_delay("http://a.test", 5.0)
    manners.crawl_delay("https://a.test", 0.0)
    assert manners.delay_s == 5.0
    assert manners.why_slow == "crawl-delay 5 s"
    manners.crawl_delay("http://a.test", 0.0)
    assert manners.delay_s == 1.0


def test_a_storm_of_429_slows_down_step_by_step_and_good_answers_forgive(clock: FakeClock) -> None:
    manners = _manners(clock, plan_delay_s=0.0)
    manners.met(is_private=True)
    delays = []
    for _ in range(8):
        manners.slow_down()
        delays.append(manners.delay_s)
    for _ in range(30):
        manners.went_well()

    assert delays == [2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 64.0, 64.0]
    assert manners.delay_s == 0.0


def test_five_failures_open_the_circuit_a_failed_trial_opens_it_anew_and_two_good_ones_close_it(
    clock: FakeClock,
) -> None:
    manners = _manners(clock)
    for _ in range(5):
        assert manners.closed_until is None
        manners.went_badly()
    opened = clock.now()

    assert manners.closed_until == opened + timedelta(seconds=60)
    clock.advance(60)
    assert manners.closed_until is None, "a trial is due"
    manners.went_badly()
    assert manners.closed_until == clock.now() + timedelta(seconds=60)
    clock.advance(60)
    manners.went_well()
    manners.went_well()
    assert manners.circuit == CircuitState()


def test_a_domain_is_given_up_when_it_was_away_for_as_long_as_an_execution_waits(clock: FakeClock) -> None:
    manners, started = _manners(clock), clock.now()

    def given_up() -> bool:
        return manners.gives_up(next_try_at=clock.now() + timedelta(seconds=60), since=started)

    assert not given_up(), "it was never unreachable"
    manners.unreachable()
    clock.advance(29 * 60)
    assert not given_up()
    clock.advance(60)
    assert given_up()
    assert not manners.gives_up(next_try_at=clock.now(), since=started + timedelta(minutes=10))


def test_what_the_next_holder_must_know_is_news_once(clock: FakeClock) -> None:
    manners = _manners(clock)
    assert not manners.has_news
    manners.went_badly()
    assert not manners.has_news, "one failure may be forgotten"

    manners.slow_down()
    assert manners.has_news
    assert manners.update(next_allowed_at=clock.now()).circuit.penalty == 2.0
    assert not manners.has_news
    manners.told_to_rest(is_busy=True)
    assert manners.has_news, "a moment that the server named must outlive us"
    assert manners.update(next_allowed_at=clock.now()).circuit.unreachable_since == clock.now()
    assert not manners.has_news
