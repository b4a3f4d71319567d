"""What lifts the rest of a domain that could not be reached, and what says that it rests."""

from __future__ import annotations

from datetime import timedelta

import pytest

from holdfast.errors import Conflict, NotFound
from holdfast.frontier import queries
from holdfast.types import CircuitState, RobotsAnswer, RobotsRecord
from tests.contract.frontier_bed import EXECUTION, Bed, many


def _leave_alone(bed: Bed) -> None:
    """Let a domain be found unreachable: its next moment is an hour away."""
    bed.frontier.add(EXECUTION, many("a.example", 2))
    lease, at = bed.lease_one(owner=7), bed.clock.now()
    bad = RobotsRecord(origin="https://a.example", answer=RobotsAnswer.UNREACHABLE, fetched_at=at, checked_at=at,
                      failures=40)  # fmt: skip
    good = RobotsRecord(origin="http://a.example", answer=RobotsAnswer.RULES, fetched_at=at, checked_at=at, failures=3,
                       status=200, body=b"User-agent: *")  # fmt: skip
    circuit = CircuitState(state="open", failures=9, opened_at=at, penalty=8.0, unreachable_since=at)
    rest = at + timedelta(hours=1)
    bed.frontier.release(EXECUTION, 7, [bed.update(lease, circuit=circuit, robots=(bad, good), next_allowed_at=rest)])


def test_a_domain_that_is_left_alone_for_an_hour_can_be_asked_at_once_after_a_reset(bed: Bed) -> None:
    _leave_alone(bed)
    bed.frontier.add(2, many("a.example", 1))
    assert bed.frontier.lease(EXECUTION, 8, domains=1, pages=9) == []
    [away] = bed.frontier.unreachable(EXECUTION)
    assert (away.domain, away.since, away.next_try_at) == (
        "a.example", bed.clock.now(), bed.clock.now() + timedelta(hours=1)
    )  # fmt: skip

    assert bed.frontier.reset("a.example")

    assert bed.frontier.unreachable(EXECUTION) == []
    [lease] = bed.frontier.lease(EXECUTION, 8, domains=1, pages=9)
    assert len(lease.attempts) == 2
    assert lease.circuit == CircuitState()
    assert [(state.origin, state.failures) for state in lease.robots] == [("http://a.example", 0)]
    bed.frontier.release(EXECUTION, 8, [bed.update(lease)])
    assert bed.frontier.lease(2, 8, domains=1, pages=9), "other executions too"
    bed.assert_sound()


def test_a_reset_of_a_domain_in_order_changes_nothing_and_says_so(bed: Bed) -> None:
    bed.frontier.add(EXECUTION, many("a.example", 1))

    assert not bed.frontier.reset("a.example")
    assert bed.lease_one(owner=7).attempts


def test_a_domain_that_is_held_or_unknown_cannot_be_reset(bed: Bed) -> None:
    bed.frontier.add(EXECUTION, many("a.example", 1))
    bed.lease_one(owner=7)

    with pytest.raises(Conflict):
        bed.frontier.reset("a.example")
    with pytest.raises(NotFound):
        bed.frontier.reset("b.example")


def test_what_an_execution_waits_for_is_told_while_it_waits(bed: Bed) -> None:
    _leave_alone(bed)

    def away() -> list[tuple[str, int, int]]:
        now = bed.clock.now()
        with bed.raw_db.read() as tx:
            return queries.waiting_unreachable(tx, execution_id=EXECUTION, now=round(now.timestamp() * 1_000_000))

    assert [name for name, _, _ in away()] == ["a.example"]
    bed.clock.advance(3601)
    assert away() == []
