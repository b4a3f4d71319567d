"""A shorter way to a page that is found after a longer one: open, its depth shrinks; fetched, its links count anew."""

from __future__ import annotations

from dataclasses import replace

import pytest

from holdfast.types import DomainLease, FoundUrl, Original, RecordRef, Visit
from tests.contract.frontier_bed import EXECUTION, Bed, found
from tests.frontier_audit import audit

_OWNER = 7


def _leased(bed: Bed) -> DomainLease:
    [lease] = bed.frontier.lease(EXECUTION, _OWNER, domains=1, pages=50)
    return lease


def _depths(bed: Bed) -> dict[str, tuple[int, int]]:
    with bed.raw_db.read() as tx:
        rows = tx.execute("SELECT p.url, c.depth, c.priority FROM page_crawls c JOIN pages p ON p.id = c.page_id")
    return {url.rpartition("/")[2]: (depth, priority) for url, depth, priority in rows}


def _fetched(bed: Bed, lease: DomainLease, one: FoundUrl) -> Visit:
    attempt = next(attempt for attempt in lease.attempts if attempt.url == one.url)
    original = Original(record_id="r", url=one.url, captured_at=bed.clock.now(), payload_digest="sha256:x",
                        warc_file_id=3, offset=40)  # fmt: skip
    return bed.visit(lease, attempt, record=RecordRef(3, 40, 10, 1), original=original)


def test_an_open_attempt_gets_the_smaller_depth_and_the_better_priority(bed: Bed) -> None:
    hub, far = found("a.test", 1), found("a.test", 2, depth=5, priority=1)
    bed.frontier.add(EXECUTION, [hub, far])
    lease = _leased(bed)
    attempt = next(attempt for attempt in lease.attempts if attempt.url == hub.url)

    nearer = far._replace(depth=2, priority=3)
    bed.frontier.settle(EXECUTION, _OWNER, [bed.visit(lease, attempt, shallower=(nearer,))])
    later = bed.frontier.settle(EXECUTION, _OWNER, [])

    assert _depths(bed)["2"] == (2, 3)
    assert later.closed == 0
    assert bed.frontier.rereads(EXECUTION, limit=10) == []
    assert audit(bed.raw_db, EXECUTION) == []


def test_a_greater_depth_changes_nothing(bed: Bed) -> None:
    hub, near = found("a.test", 1), found("a.test", 2, depth=2, priority=3)
    bed.frontier.add(EXECUTION, [hub, near])
    lease = _leased(bed)
    attempt = next(attempt for attempt in lease.attempts if attempt.url == hub.url)

    bed.frontier.settle(EXECUTION, _OWNER, [bed.visit(lease, attempt, shallower=(near._replace(depth=4),))])

    assert _depths(bed)["2"] == (2, 3)


def test_a_page_that_was_fetched_is_to_be_read_again_until_that_is_done(bed: Bed) -> None:
    bed.frontier.depth_rules.limited = True
    hub, far = found("a.test", 1), found("a.test", 2, depth=5)
    bed.frontier.add(EXECUTION, [hub, far])
    lease = _leased(bed)
    bed.frontier.settle(EXECUTION, _OWNER, [_fetched(bed, lease, far)])
    attempt = next(attempt for attempt in lease.attempts if attempt.url == hub.url)

    bed.frontier.settle(EXECUTION, _OWNER, [bed.visit(lease, attempt, shallower=(far._replace(depth=2),))])

    [reread] = bed.frontier.rereads(EXECUTION, limit=10)
    assert (reread.depth, reread.base, reread.leads_to) == (2, far.url, None)
    assert reread.attempt.original is not None
    assert (reread.attempt.original.warc_file_id, reread.attempt.original.offset) == (3, 40)
    assert bed.frontier.reread_count(EXECUTION) == 1
    assert bed.frontier.read_again(EXECUTION, reread, [found("a.test", 3, depth=3)]) == 1
    assert bed.frontier.rereads(EXECUTION, limit=10) == []
    assert _depths(bed)["3"][0] == 3
    assert audit(bed.raw_db, EXECUTION) == []


def test_reread_without_its_record_fetches_the_page_again(bed: Bed) -> None:
    bed.frontier.depth_rules.limited = True
    hub, far = found("a.test", 1), found("a.test", 2, depth=5)
    bed.frontier.add(EXECUTION, [hub, far])
    lease = _leased(bed)
    bed.frontier.settle(EXECUTION, _OWNER, [_fetched(bed, lease, far)])
    attempt = next(attempt for attempt in lease.attempts if attempt.url == hub.url)
    bed.frontier.settle(EXECUTION, _OWNER, [bed.visit(lease, attempt, shallower=(far._replace(depth=2),))])
    [reread] = bed.frontier.rereads(EXECUTION, limit=10)

    for _ in range(2):  # killed in between, it is done once more
        bed.frontier.fetch_again(EXECUTION, reread)
    [again] = bed.frontier.refill(EXECUTION, lease.domain_id, lease.token, limit=10)

    assert (again.url, again.depth, again.number) == (far.url, 2, 2)
    assert bed.frontier.reread_count(EXECUTION) == 0
    assert audit(bed.raw_db, EXECUTION) == []
    fetched = replace(_fetched(bed, lease, far), attempt=again)
    bed.frontier.settle(EXECUTION, _OWNER, [fetched, bed.visit(lease, attempt)])
    shorter = bed.visit(lease, again, shallower=(far._replace(depth=1),))
    bed.frontier.settle(EXECUTION, _OWNER, [shorter])
    assert [(one.attempt.id, one.depth) for one in bed.frontier.rereads(EXECUTION, limit=10)] == [(again.id, 1)]
    assert audit(bed.raw_db, EXECUTION) == []


def test_what_it_leads_to_and_is_known_by_a_longer_way_is_read_again_in_its_turn(bed: Bed) -> None:
    bed.frontier.depth_rules.limited = True
    hub, far, below = found("a.test", 1), found("a.test", 2, depth=5), found("a.test", 3, depth=6)
    bed.frontier.add(EXECUTION, [hub, far, below])
    lease = _leased(bed)
    bed.frontier.settle(EXECUTION, _OWNER, [_fetched(bed, lease, far), _fetched(bed, lease, below)])
    attempt = next(attempt for attempt in lease.attempts if attempt.url == hub.url)
    bed.frontier.settle(EXECUTION, _OWNER, [bed.visit(lease, attempt, shallower=(far._replace(depth=2),))])

    [reread] = bed.frontier.rereads(EXECUTION, limit=10)
    bed.frontier.read_again(EXECUTION, reread, [below._replace(depth=3)])

    assert [(one.base, one.depth) for one in bed.frontier.rereads(EXECUTION, limit=10)] == [(below.url, 3)]


def test_a_page_that_is_under_way_when_the_shorter_way_is_found_is_read_again(bed: Bed) -> None:
    bed.frontier.depth_rules.limited = True
    hub, far = found("a.test", 1), found("a.test", 2, depth=5)
    bed.frontier.add(EXECUTION, [hub, far])
    lease = _leased(bed)
    attempt = next(attempt for attempt in lease.attempts if attempt.url == hub.url)

    bed.frontier.settle(EXECUTION, _OWNER, [bed.visit(lease, attempt, shallower=(far._replace(depth=2),))])
    bed.frontier.settle(EXECUTION, _OWNER, [_fetched(bed, lease, far)])

    assert [(one.base, one.depth) for one in bed.frontier.rereads(EXECUTION, limit=10)] == [(far.url, 2)]


def test_where_others_add_too_every_page_that_is_known_is_compared(bed: Bed) -> None:
    other = bed.another()
    hub, far = found("a.test", 1), found("a.test", 2, depth=5)
    other.add(EXECUTION, [hub, far])
    lease = _leased(bed)
    attempt = next(attempt for attempt in lease.attempts if attempt.url == hub.url)
    bed.frontier.depth_rules.shared = True

    bed.frontier.settle(EXECUTION, _OWNER, [bed.visit(lease, attempt, found=(far._replace(depth=2),))])

    assert _depths(bed)["2"][0] == 2


def test_a_redirect_to_another_domain_leads_there_from_the_smaller_depth(bed: Bed) -> None:
    bed.frontier.depth_rules.limited = True
    hub, far = found("a.test", 1), found("a.test", 2, depth=5)
    bed.frontier.add(EXECUTION, [hub, far])
    lease = _leased(bed)
    away = next(attempt for attempt in lease.attempts if attempt.url == far.url)
    attempt = next(attempt for attempt in lease.attempts if attempt.url == hub.url)
    bed.frontier.settle(EXECUTION, _OWNER, [
        bed.visit(lease, away, status=302, reason="redirected", redirected_to="https://b.test/there"),
    ])  # fmt: skip

    bed.frontier.settle(EXECUTION, _OWNER, [bed.visit(lease, attempt, shallower=(far._replace(depth=2),))])

    [reread] = bed.frontier.rereads(EXECUTION, limit=10)
    assert (reread.base, reread.leads_to, reread.depth) == (far.url, "https://b.test/there", 2)


@pytest.mark.parametrize("reason", ["parse_timeout", "parse_crashed"])
def test_a_page_that_a_parser_could_not_finish_is_not_read_again(bed: Bed, reason: str) -> None:
    bed.frontier.depth_rules.limited = True
    hub, far = found("a.test", 1), found("a.test", 2, depth=5)
    bed.frontier.add(EXECUTION, [hub, far])
    lease = _leased(bed)
    bed.frontier.settle(EXECUTION, _OWNER, [replace(_fetched(bed, lease, far), reason=reason)])
    attempt = next(attempt for attempt in lease.attempts if attempt.url == hub.url)

    bed.frontier.settle(EXECUTION, _OWNER, [bed.visit(lease, attempt, shallower=(far._replace(depth=2),))])

    assert bed.frontier.reread_count(EXECUTION) == 0
    assert _depths(bed)["2"][0] == 2


@pytest.mark.parametrize("shared", [False, True])
def test_a_shorter_way_is_kept_although_the_connection_was_lost_after_its_page_was_settled(
    bed: Bed, shared: bool
) -> None:
    bed.frontier.depth_rules.limited, bed.frontier.depth_rules.shared = True, shared
    hub, far = found("a.test", 1), found("a.test", 2, depth=5)
    bed.frontier.add(EXECUTION, [hub, far])
    lease = _leased(bed)
    attempt = next(attempt for attempt in lease.attempts if attempt.url == hub.url)
    nearer = (far._replace(depth=2),)
    # As it stands when the first of the two transactions was all that came through.
    bed.frontier.settle(EXECUTION, _OWNER, [bed.visit(lease, attempt)])

    visit = bed.visit(lease, attempt, found=nearer) if shared else bed.visit(lease, attempt, shallower=nearer)
    again = bed.frontier.settle(EXECUTION, _OWNER, [visit])

    assert (again.closed, len(again.repeated)) == (0, 1)
    assert _depths(bed)["2"][0] == 2
    assert audit(bed.raw_db, EXECUTION) == []
