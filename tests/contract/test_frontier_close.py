"""Endings without a visit: blame, unreachable domains, limits."""

from __future__ import annotations

import json
from datetime import timedelta

from holdfast.types import CircuitState, DomainLease, Outcome, UrlKind
from tests.contract.frontier_bed import EXECUTION, LEASE_S, Bed, found, many


def test_a_page_that_kills_three_processes_is_quarantined_with_evidence(bed: Bed) -> None:
    bed.frontier.add(EXECUTION, many("a.example", 2))
    poison = bed.lease_one(owner=7).attempts[0]

    assert bed.frontier.attribute_crash([poison.id], "segfault 1") == []
    assert bed.frontier.attribute_crash([poison.id], "segfault 2") == []
    assert bed.frontier.attribute_crash([poison.id, 10_000], "segfault 3\x00") == [poison.id]
    assert bed.frontier.attribute_crash([poison.id], "again") == []

    row = bed.rows("SELECT outcome, reason, message, crashes FROM page_crawls WHERE id = ?", (poison.id,))
    assert row == [("failed", "quarantined", "segfault 3\ufffd", 3)]
    assert bed.frontier.open_count(EXECUTION) == 1
    assert bed.rows("SELECT status FROM pages WHERE id = ?", (poison.page_id,)) == [("failed",)]


def test_a_retry_does_not_forgive_crashes(bed: Bed) -> None:
    bed.frontier.add(EXECUTION, many("a.example", 1))
    lease = bed.lease_one(owner=7)
    bed.frontier.attribute_crash([lease.attempts[0].id], "once", limit=2)
    now = bed.clock.now()
    bed.frontier.settle(EXECUTION, 7, [bed.visit(lease, lease.attempts[0], outcome=Outcome.TIMEOUT, retry_at=now)])
    again = bed.frontier.refill(EXECUTION, lease.domain_id, lease.token, limit=1)

    assert bed.frontier.attribute_crash([again[0].id], "twice", limit=2) == [again[0].id]


def test_an_unreachable_domain_is_closed_piece_by_piece(bed: Bed) -> None:
    bed.frontier.add(EXECUTION, [*many("a.example", 7), *many("b.example", 2)])
    bed.frontier.add(2, many("a.example", 1))
    lease = bed.lease_one(owner=7)
    later = bed.clock.now() + timedelta(hours=1)
    bed.frontier.settle(EXECUTION, 7, [bed.visit(lease, lease.attempts[0], outcome=Outcome.TIMEOUT, retry_at=later)])

    closed = []
    while count := bed.frontier.close_domain(
        EXECUTION, lease.domain_id, outcome=Outcome.FAILED, reason="domain_unreachable", limit=3
    ):
        closed.append(count)

    assert sum(closed) == 7
    assert max(closed) <= 3
    assert bed.frontier.open_count(EXECUTION) == 2
    assert bed.frontier.open_count(2) == 1, "the next execution tries again"
    assert bed.frontier.stats(EXECUTION).failed == 7
    assert _nobodys(bed) == {"outcomes": {"failed": 7}}, "no process counts what none of them visited"


def test_a_domain_that_another_holds_by_now_is_not_closed(bed: Bed) -> None:
    bed.frontier.add(EXECUTION, many("a.example", 3))
    frozen = bed.lease_one(owner=7)
    bed.clock.advance(LEASE_S + 1)
    holder = bed.lease_one(owner=8)

    def close(lease: DomainLease) -> int:
        return bed.frontier.close_domain(
            EXECUTION, lease.domain_id, outcome=Outcome.FAILED, reason="domain_unreachable", token=lease.token
        )

    assert close(frozen) == 0
    assert bed.frontier.open_count(EXECUTION) == 3
    assert close(holder) == 3


def test_a_domain_that_was_found_unreachable_is_hopeless_only_while_its_rest_is_longer_than_we_wait(bed: Bed) -> None:
    bed.frontier.add(EXECUTION, [*many("a.example", 2), *many("b.example", 1)])
    lease, start = bed.lease_one(owner=7), bed.clock.now()
    rest = start + timedelta(hours=1)

    def hopeless(patience_s: float = 1800.0) -> list[int]:
        found = bed.frontier.hopeless_domains(2, since=bed.clock.now(), patience_s=patience_s)
        return [domain_id for domain_id, _ in found]

    bed.frontier.add(2, many("a.example", 1))
    assert (hopeless(), bed.frontier.reachable_at(2)) == ([], None)
    bed.frontier.release(
        EXECUTION, 7, [bed.update(lease, circuit=CircuitState(unreachable_since=start), next_allowed_at=rest)]
    )

    assert (hopeless(), bed.frontier.reachable_at(2)) == ([lease.domain_id], rest)
    assert hopeless(3601.0) == []
    bed.clock.advance(1801)
    assert hopeless() == [], "it is worth waiting for"
    bed.clock.advance(1800)
    assert bed.frontier.reachable_at(2) is None


def test_a_hopeless_domain_that_is_taken_meanwhile_is_left_to_its_new_holder(bed: Bed) -> None:
    bed.frontier.add(EXECUTION, many("a.example", 2))
    lease, start = bed.lease_one(owner=7), bed.clock.now()
    gone = CircuitState(unreachable_since=start)
    update = bed.update(lease, circuit=gone, next_allowed_at=start + timedelta(hours=1))
    bed.frontier.release(EXECUTION, 7, [update])
    [(domain_id, token)] = bed.frontier.hopeless_domains(EXECUTION, since=start, patience_s=1800.0)

    bed.frontier.reset("a.example")
    assert bed.lease_one(owner=8).domain_id == domain_id

    closed = bed.frontier.close_domain(
        EXECUTION, domain_id, outcome=Outcome.FAILED, reason="domain_unreachable", token=token
    )
    assert (closed, bed.frontier.open_count(EXECUTION)) == (0, 2)


def _nobodys(bed: Bed) -> object:
    rows = bed.rows("SELECT counts FROM execution_counts WHERE execution_id = ? AND owner_id = 0", (EXECUTION,))
    return json.loads(rows[0][0]) if isinstance(rows[0][0], str) else rows[0][0]


def test_what_a_limit_leaves_over_is_closed_by_kind(bed: Bed) -> None:
    pages = [found(f"h{n}.example", n) for n in range(5)]
    requisites = [found(f"h{n}.example", n + 100, kind=UrlKind.REQUISITE) for n in range(5)]
    bed.frontier.add(EXECUTION, [*pages, *requisites])

    reason = "over_limit:max_pages"
    first = bed.frontier.close_rest(EXECUTION, outcome=Outcome.EXCLUDED, reason=reason, kinds=[UrlKind.PAGE], limit=3)
    second = bed.frontier.close_rest(EXECUTION, outcome=Outcome.EXCLUDED, reason=reason, kinds=[UrlKind.PAGE])
    third = bed.frontier.close_rest(EXECUTION, outcome=Outcome.EXCLUDED, reason=reason, kinds=[UrlKind.PAGE])

    assert (first, second, third) == (3, 2, 0)
    assert bed.frontier.open_count(EXECUTION) == 5
    assert bed.frontier.stats(EXECUTION).ruled_out == 5
    assert bed.rows("SELECT DISTINCT status FROM pages") == [("discovered",)], "no process asked for them"
    assert bed.frontier.close_rest(EXECUTION, outcome=Outcome.EXCLUDED, reason="cancelled") == 5


def test_a_visit_of_an_attempt_that_was_closed_meanwhile_counts_as_repeated(bed: Bed) -> None:
    bed.frontier.add(EXECUTION, many("a.example", 1))
    lease = bed.lease_one(owner=7)
    bed.another().close_rest(EXECUTION, outcome=Outcome.EXCLUDED, reason="cancelled")
    visit = bed.visit(lease, lease.attempts[0], found=tuple(many("b.example", 2)))

    settled = bed.frontier.settle(EXECUTION, 7, [visit])

    assert (settled.closed, settled.new, settled.repeated) == (0, 0, (visit,))
    assert bed.rows("SELECT outcome, reason FROM page_crawls") == [("excluded", "cancelled")]


def test_what_failed_on_a_domain_that_was_given_up_is_asked_once_more_and_nothing_else_is(bed: Bed) -> None:
    bed.frontier.add(EXECUTION, [*many("a.example", 5), *many("b.example", 3)])
    leases = bed.frontier.lease(EXECUTION, 7, domains=2, pages=100)
    a, b = sorted(leases, key=lambda lease: lease.domain)
    poison = a.attempts[4]
    bed.frontier.settle(EXECUTION, 7, [
        bed.visit(a, a.attempts[0]),
        bed.visit(a, a.attempts[1], outcome=Outcome.TIMEOUT, reason="timeout", status=None),
        bed.visit(b, b.attempts[0]),
        bed.visit(b, b.attempts[1], outcome=Outcome.FAILED, reason="connection_refused", status=None),
        bed.visit(b, b.attempts[2], outcome=Outcome.BLOCKED_4XX, reason="http_404", status=404),
    ])  # fmt: skip
    bed.frontier.attribute_crash([poison.id], "segfault", limit=1)
    while bed.frontier.close_domain(EXECUTION, a.domain_id, outcome=Outcome.FAILED, reason="domain_unreachable"):
        pass

    assert bed.frontier.reopen(EXECUTION, limit=2) == 3
    assert bed.frontier.reopen(EXECUTION) == 0

    opened = bed.rows("SELECT page_id, attempt FROM page_crawls WHERE outcome IS NULL ORDER BY page_id")
    assert opened == [(attempt.page_id, 2) for attempt in sorted(a.attempts[1:4], key=lambda one: one.page_id)]
    assert (bed.frontier.stats(EXECUTION).failed, bed.frontier.open_count(EXECUTION)) == (3, 3)
    assert _nobodys(bed) == {"outcomes": {"failed": 1, "timeout": -1}}

    assert bed.frontier.reopen(EXECUTION, every_domain=True) == 1  # the one of b that was refused
