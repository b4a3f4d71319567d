"""Leasing domains: one owner at a time, fair, and never without something to ask."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from holdfast.clock import to_micros
from holdfast.errors import Unavailable
from holdfast.types import CircuitState, Original, Outcome, RobotsAnswer, RobotsRecord
from tests.contract.frontier_bed import EXECUTION, LEASE_S, Bed, found, many
from tests.frontier_audit import next_due_at


def test_a_leased_domain_is_nobody_elses(bed: Bed) -> None:
    bed.frontier.add(EXECUTION, [*many("a.example", 2), *many("b.example", 2)])

    ours = bed.frontier.lease(EXECUTION, 7, domains=1, pages=10)
    theirs = bed.another().lease(EXECUTION, 8, domains=10, pages=10)

    assert [lease.domain for lease in ours] == ["a.example"]
    assert [lease.domain for lease in theirs] == ["b.example"]


def test_a_domain_is_one_whatever_the_execution(bed: Bed) -> None:
    bed.frontier.add(EXECUTION, many("a.example", 1))
    bed.frontier.add(2, many("a.example", 1))
    bed.lease_one(owner=7)

    assert bed.frontier.lease(2, 8, domains=1, pages=1) == []


def test_pages_come_by_priority_then_in_the_order_found(bed: Bed) -> None:
    priorities = [1, 3, 2, 3, 1]
    bed.frontier.add(EXECUTION, [found("a.example", n, priority=p) for n, p in enumerate(priorities)])
    bed.frontier.add(EXECUTION, [found("a.example", 9, priority=3)])

    attempts = bed.lease_one(owner=7).attempts

    assert [attempt.priority for attempt in attempts] == [3, 3, 3, 2, 1, 1]
    assert attempts[2].url == "https://a.example/9"
    keys = [(-attempt.priority, attempt.id) for attempt in attempts]
    assert keys == sorted(keys)


def test_deferred_pages_whose_time_has_come_go_first(bed: Bed) -> None:
    soon = to_micros(bed.clock.now() + timedelta(seconds=5))
    bed.frontier.add(EXECUTION, [found("a.example", 1, scheduled_for=soon), found("a.example", 2, priority=3)])
    bed.clock.advance(5)

    assert [attempt.url[-1] for attempt in bed.lease_one(owner=7).attempts] == ["1", "2"]


def test_untried_pages_go_before_retries_when_circuit_is_open(bed: Bed) -> None:
    soon = to_micros(bed.clock.now()) + 1_000_000
    bed.frontier.add(EXECUTION, [found(name, 1, scheduled_for=soon) for name in ("a.example", "b.example")])
    bed.frontier.add(EXECUTION, [found(name, 2) for name in ("a.example", "b.example")])
    held = bed.frontier.lease(EXECUTION, 1, domains=2, pages=5)
    opened = CircuitState(state="open", failures=5, opened_at=bed.clock.now(), unreachable_since=bed.clock.now())
    circuits = {"a.example": opened, "b.example": CircuitState()}
    bed.frontier.release(EXECUTION, 1, [bed.update(lease, circuit=circuits[lease.domain]) for lease in held])
    bed.clock.advance(2)
    leases = bed.frontier.lease(EXECUTION, 1, domains=2, pages=5)
    first = {lease.domain: [attempt.url[-1] for attempt in lease.attempts] for lease in leases}

    assert first == {"a.example": ["2", "1"], "b.example": ["1", "2"]}
    for lease in leases:
        refilled = bed.frontier.refill(EXECUTION, lease.domain_id, lease.token, limit=1)
        assert [attempt.url[-1] for attempt in refilled] == first[lease.domain][:1]


def test_a_lease_takes_no_more_pages_than_asked(bed: Bed) -> None:
    soon = to_micros(bed.clock.now() + timedelta(seconds=5))
    bed.frontier.add(EXECUTION, [found("a.example", n, scheduled_for=soon if n < 3 else None) for n in range(8)])
    bed.clock.advance(5)

    lease = bed.lease_one(owner=7, pages=4)

    assert [attempt.url[-1] in "012" for attempt in lease.attempts] == [True, True, True, False]


def test_domains_that_waited_longest_come_first(bed: Bed) -> None:
    for name in ("c.example", "a.example", "b.example"):
        bed.frontier.add(EXECUTION, many(name, 1))
        bed.clock.advance(1)

    leases = bed.frontier.lease(EXECUTION, 7, domains=2, pages=1)

    assert [lease.domain for lease in leases] == ["c.example", "a.example"]


def test_a_lease_that_expired_is_taken_over_and_says_so(bed: Bed) -> None:
    bed.frontier.add(EXECUTION, many("a.example", 1))
    first = bed.lease_one(owner=7)
    bed.clock.advance(LEASE_S)

    second = bed.lease_one(owner=8)

    assert (first.taken_over, second.taken_over) == (False, True)
    assert second.token == first.token + 1
    assert second.attempts == first.attempts


def test_a_domain_that_was_given_back_is_not_taken_over(bed: Bed) -> None:
    bed.frontier.add(EXECUTION, many("a.example", 1))
    bed.frontier.release(EXECUTION, 7, [bed.update(bed.lease_one(owner=7))])

    assert not bed.lease_one(owner=8).taken_over


def test_a_dead_owners_domains_are_free_at_once(bed: Bed) -> None:
    bed.frontier.add(EXECUTION, [*many("a.example", 1), *many("b.example", 1), *many("c.example", 1)])
    bed.frontier.lease(EXECUTION, 7, domains=2, pages=1)
    living = bed.frontier.lease(EXECUTION, 8, domains=1, pages=1)

    assert bed.frontier.free([7, 99]) == 2
    assert bed.frontier.free([7]) == 0
    taken = bed.frontier.lease(EXECUTION, 9, domains=10, pages=1)

    assert [lease.taken_over for lease in taken] == [True, True]
    assert {lease.domain for lease in taken}.isdisjoint({lease.domain for lease in living})


def test_a_freed_owner_renews_nothing(bed: Bed) -> None:
    bed.frontier.add(EXECUTION, many("a.example", 1))
    bed.lease_one(owner=7)
    bed.frontier.free([7])

    assert bed.frontier.renew(7) == {}


def test_renewing_extends_all_leases_of_one_owner_alone(bed: Bed) -> None:
    bed.frontier.add(EXECUTION, [*many("a.example", 1), *many("b.example", 1), *many("c.example", 1)])
    ours = bed.frontier.lease(EXECUTION, 7, domains=2, pages=1)
    bed.frontier.lease(EXECUTION, 8, domains=1, pages=1)
    bed.clock.advance(LEASE_S - 1)

    until = bed.clock.now() + timedelta(seconds=LEASE_S)
    assert bed.frontier.renew(7) == {lease.domain_id: (lease.token, until) for lease in ours}

    bed.clock.advance(LEASE_S - 1)
    assert [lease.domain for lease in bed.frontier.lease(EXECUTION, 9, domains=10, pages=1)] == ["c.example"]


def test_an_owner_that_lost_a_domain_does_not_renew_it(bed: Bed) -> None:
    bed.frontier.add(EXECUTION, many("a.example", 1))
    bed.lease_one(owner=7)
    bed.clock.advance(LEASE_S)
    newer = bed.lease_one(owner=8)

    assert bed.frontier.renew(7) == {}
    assert bed.frontier.renew(8).keys() == {newer.domain_id}


def test_an_expired_lease_that_nobody_took_is_renewed(bed: Bed) -> None:
    bed.frontier.add(EXECUTION, many("a.example", 1))
    lease = bed.lease_one(owner=7)
    bed.clock.advance(LEASE_S * 2)

    assert bed.frontier.renew(7)[lease.domain_id][0] == lease.token
    assert bed.frontier.lease(EXECUTION, 8, domains=1, pages=1) == []


def test_a_domain_whose_lease_was_never_answered_is_not_held_for_ever(bed: Bed) -> None:
    bed.frontier.add(EXECUTION, [*many("a.example", 1), *many("b.example", 1)])
    frontier, switch = bed.breaking()
    known = frontier.lease(EXECUTION, 7, domains=1, pages=1)[0]
    switch.breaks = True
    with pytest.raises(Unavailable):
        frontier.lease(EXECUTION, 7, domains=1, pages=1)
    switch.breaks = False
    assert bed.frontier.lease(EXECUTION, 8, domains=2, pages=1) == [], "the database holds both for us"

    assert frontier.renew(7).keys() == {known.domain_id}
    assert [lease.domain for lease in bed.frontier.lease(EXECUTION, 8, domains=2, pages=1)] == ["b.example"]


def test_a_late_release_leaves_the_newer_owner_alone(bed: Bed) -> None:
    bed.frontier.add(EXECUTION, many("a.example", 1))
    late = bed.lease_one(owner=7)
    bed.clock.advance(LEASE_S)
    newer = bed.lease_one(owner=8)

    assert bed.frontier.release(EXECUTION, 7, [bed.update(late, rest_s=3600)]) == [late.domain_id]
    assert bed.frontier.renew(8)[newer.domain_id][0] == newer.token
    assert bed.frontier.release(EXECUTION, 8, [bed.update(newer)]) == []


def test_a_released_domain_rests_until_its_next_moment(bed: Bed) -> None:
    bed.frontier.add(EXECUTION, many("a.example", 2))
    bed.frontier.release(EXECUTION, 7, [bed.update(bed.lease_one(owner=7), rest_s=5)])

    assert next_due_at(bed.raw_db, EXECUTION, bed.clock.now()) == bed.clock.now() + timedelta(seconds=5)
    assert bed.frontier.lease(EXECUTION, 8, domains=1, pages=1) == []
    bed.frontier.add(EXECUTION, [found("a.example", 7)])
    assert bed.frontier.lease(EXECUTION, 8, domains=1, pages=1) == [], "a new address does not shorten the rest"
    bed.clock.advance(5)
    assert len(bed.lease_one(owner=8).attempts) == 3


def test_a_domain_whose_pages_all_wait_is_due_when_the_first_is(bed: Bed) -> None:
    bed.frontier.add(EXECUTION, many("a.example", 2))
    lease = bed.lease_one(owner=7)
    for seconds, attempt in zip((30, 20), lease.attempts, strict=True):
        retry_at = bed.clock.now() + timedelta(seconds=seconds)
        visit = bed.visit(lease, attempt, outcome=Outcome.TIMEOUT, reason="timeout", status=None, retry_at=retry_at)
        bed.frontier.settle(EXECUTION, 7, [visit])
    bed.frontier.release(EXECUTION, 7, [bed.update(lease, rest_s=1)])

    assert next_due_at(bed.raw_db, EXECUTION, bed.clock.now()) == bed.clock.now() + timedelta(seconds=20)


def test_a_domain_with_nothing_to_hand_out_is_not_leased_but_put_off(bed: Bed) -> None:
    bed.frontier.add(EXECUTION, many("a.example", 1))
    lease = bed.lease_one(owner=7)
    retry_at = bed.clock.now() + timedelta(seconds=100)
    bed.frontier.settle(EXECUTION, 7, [bed.visit(lease, lease.attempts[0], outcome=Outcome.TIMEOUT, retry_at=retry_at)])
    bed.frontier.free([7])

    assert bed.frontier.lease(EXECUTION, 8, domains=1, pages=1) == []
    assert next_due_at(bed.raw_db, EXECUTION, bed.clock.now()) == retry_at
    bed.clock.advance(100)
    assert bed.lease_one(owner=8).taken_over, "the dead owner may have asked a moment ago"


def test_a_forbidden_domain_is_never_leased_and_can_be_found(bed: Bed) -> None:
    bed.frontier.add(EXECUTION, [*many("a.example", 1), *many("b.example", 1)])
    with bed.raw_db.write() as tx:
        tx.execute("UPDATE domains SET is_allowed = ? WHERE name = ?", (False, "a.example"))

    assert [lease.domain for lease in bed.frontier.lease(EXECUTION, 7, domains=5, pages=1)] == ["b.example"]
    forbidden = bed.rows("SELECT id FROM domains WHERE name = 'a.example'")
    assert [domain_id for domain_id, _ in bed.frontier.forbidden_domains(EXECUTION)] == [forbidden[0][0]]


def test_recover_frees_only_leases_that_expired_long_ago(bed: Bed) -> None:
    bed.frontier.add(EXECUTION, [*many("a.example", 1), *many("b.example", 1)])
    bed.lease_one(owner=7)
    bed.clock.advance(600)
    bed.frontier.lease_named(8, "b.example")
    bed.clock.advance(LEASE_S + 899 - 600)

    assert bed.frontier.recover() == 0
    bed.clock.advance(1)
    assert bed.frontier.recover(older_than_s=900) == 1
    assert bed.frontier.recover(older_than_s=900) == 0


def test_refill_brings_what_is_not_in_hand(bed: Bed) -> None:
    bed.frontier.add(EXECUTION, many("a.example", 10))
    lease = bed.lease_one(owner=7, pages=3)
    in_hand = {attempt.id for attempt in lease.attempts}

    more = bed.frontier.refill(EXECUTION, lease.domain_id, lease.token, limit=4, holding=in_hand)

    assert len(more) == 4
    assert in_hand.isdisjoint(attempt.id for attempt in more)
    in_hand |= {attempt.id for attempt in more}
    rest = bed.frontier.refill(EXECUTION, lease.domain_id, lease.token, limit=40, holding=in_hand)
    assert len(in_hand | {attempt.id for attempt in rest}) == 10


def test_refill_brings_nothing_to_a_late_owner(bed: Bed) -> None:
    bed.frontier.add(EXECUTION, many("a.example", 10))
    late = bed.lease_one(owner=7, pages=3)
    bed.clock.advance(LEASE_S)
    bed.lease_one(owner=8, pages=3)

    assert bed.frontier.refill(EXECUTION, late.domain_id, late.token, limit=4) == []


def test_what_a_holder_learned_is_there_for_the_next(bed: Bed) -> None:
    bed.frontier.add(EXECUTION, many("a.example", 1))
    lease = bed.lease_one(owner=7)
    at = bed.clock.now()
    circuit = CircuitState(state="open", failures=5, opened_at=at, penalty=4.0, unreachable_since=at)
    robots = RobotsRecord(origin="https://a.example", answer=RobotsAnswer.RULES, fetched_at=at, checked_at=at,
                         status=200, body=b"User-agent: *\nDisallow: /\x00\xff", failures=1)  # fmt: skip
    bed.frontier.release(EXECUTION, 7, [bed.update(lease, circuit=circuit, robots=(robots,), delay_s=2.5)])

    again = bed.lease_one(owner=8)

    assert (again.circuit, again.robots, again.delay_s) == (circuit, (robots,), 2.5)
    changed = RobotsRecord(origin="https://a.example", answer=RobotsAnswer.UNREACHABLE, fetched_at=at, checked_at=at)
    bed.frontier.release(EXECUTION, 8, [bed.update(again, robots=(changed,))])
    last = bed.lease_one(owner=9)
    assert (last.circuit, last.robots, last.delay_s) == (CircuitState(), (changed,), 2.5)


def test_an_attempt_carries_validators_and_original_of_its_page(bed: Bed) -> None:
    bed.frontier.add(EXECUTION, many("a.example", 1))
    lease = bed.lease_one(owner=7)
    original = Original(record_id="f00", url="https://a.example/0", captured_at=datetime(2026, 1, 2, tzinfo=UTC),
                        payload_digest="sha256:00", warc_file_id=3, offset=1 << 40)  # fmt: skip
    visit = bed.visit(lease, lease.attempts[0], etag='"e"', last_modified="yesterday", original=original)
    bed.frontier.settle(EXECUTION, 7, [visit])
    bed.frontier.release(EXECUTION, 7, [bed.update(lease)])
    bed.frontier.add(2, many("a.example", 1))

    attempt = bed.frontier.lease(2, 7, domains=1, pages=1)[0].attempts[0]

    assert (attempt.etag, attempt.last_modified, attempt.original) == ('"e"', "yesterday", original)


def test_one_domain_can_be_leased_by_name(bed: Bed) -> None:
    lease = bed.frontier.lease_named(7, "new.example")

    assert lease is not None
    assert (lease.domain, lease.attempts) == ("new.example", ())
    assert bed.another().lease_named(8, "new.example") is None
    assert not bed.frontier.is_barred("new.example"), "it is held, and free some time"
    bed.frontier.release(EXECUTION, 7, [bed.update(lease, rest_s=LEASE_S / 2)])
    again = bed.frontier.lease_named(8, "new.example")
    assert again is not None
    assert again.next_allowed_at == bed.clock.now() + timedelta(seconds=LEASE_S / 2), "the caller waits for it"
    bed.frontier.release(EXECUTION, 8, [bed.update(again, rest_s=LEASE_S)])
    assert bed.frontier.lease_named(7, "new.example") is None, "too long a rest to hold a lease for"
    assert bed.frontier.is_barred("new.example")
    with bed.raw_db.write() as tx:
        tx.execute("UPDATE domains SET is_allowed = ?, next_allowed_at = 0 WHERE name = ?", (False, "new.example"))
    assert bed.frontier.is_barred("new.example"), "an operator forbids it"


@pytest.mark.parametrize("held", [True, False])
def test_the_next_due_moment_minds_leases(bed: Bed, held: bool) -> None:
    bed.frontier.add(EXECUTION, many("a.example", 1))
    at = bed.clock.now()
    if held:
        bed.lease_one(owner=7)

    assert next_due_at(bed.raw_db, EXECUTION, bed.clock.now()) == at + timedelta(seconds=LEASE_S if held else 0)
    assert next_due_at(bed.raw_db, 2, bed.clock.now()) is None
