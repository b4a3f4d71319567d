"""Leases that no process works on: taken without our hearing of it, or held by an owner that is frozen or cut off."""

from __future__ import annotations

from tests.contract.frontier_bed import EXECUTION, LEASE_S, Bed, many


def test_a_lease_whose_answer_was_lost_is_let_go_and_its_next_holder_waits_a_delay(bed: Bed) -> None:
    bed.frontier.add(EXECUTION, many("example.org", 3))
    lost = bed.lease_one(1)
    assert bed.frontier.lease(EXECUTION, 2, domains=1, pages=10) == []

    assert bed.frontier.let_go([(lost.domain_id, lost.token)]) == 1

    again = bed.lease_one(2)
    assert again.taken_over
    assert [attempt.id for attempt in again.attempts] == [attempt.id for attempt in lost.attempts]
    bed.assert_sound()


def test_letting_go_changes_nothing_once_a_newer_owner_has_it(bed: Bed) -> None:
    bed.frontier.add(EXECUTION, many("example.org", 3))
    old = bed.lease_one(1)
    bed.clock.advance(LEASE_S + 1)
    new = bed.lease_one(2)

    assert bed.frontier.let_go([(old.domain_id, old.token)]) == 0

    assert bed.frontier.renew(2)[new.domain_id][0] == new.token


def test_a_lease_that_runs_out_is_counted_until_somebody_takes_frees_or_renews_it(bed: Bed) -> None:
    for name in ("a.example", "b.example", "c.example", "d.example"):
        bed.frontier.add(EXECUTION, many(name, 2))
    bed.frontier.lease(EXECUTION, 1, domains=2, pages=10)
    bed.frontier.lease(EXECUTION, 2, domains=2, pages=10)
    assert bed.frontier.expired_domains() == 0

    bed.clock.advance(LEASE_S + 1)
    assert bed.frontier.expired_domains() == 4

    bed.frontier.renew(1)
    assert bed.frontier.expired_domains() == 2
    bed.frontier.free([2])
    assert bed.frontier.expired_domains() == 0
