"""Adding addresses: each once per execution, in both databases."""

from __future__ import annotations

from datetime import timedelta

import pytest

from holdfast.clock import to_micros
from holdfast.errors import Unavailable
from holdfast.types import UrlKind
from tests.contract.frontier_bed import EXECUTION, Bed, found, many
from tests.frontier_audit import next_due_at


def test_an_address_is_added_once_per_execution(bed: Bed) -> None:
    assert bed.frontier.add(EXECUTION, many("a.example", 10)) == 10
    assert bed.frontier.add(EXECUTION, many("a.example", 15)) == 5
    assert bed.frontier.open_count(EXECUTION) == 15


def test_another_execution_gets_its_own_attempts_on_the_same_pages(bed: Bed) -> None:
    bed.frontier.add(EXECUTION, many("a.example", 3))

    assert bed.frontier.add(2, many("a.example", 3)) == 3
    assert bed.rows("SELECT count(*) FROM pages") == [(3,)]
    assert bed.rows("SELECT count(*) FROM page_crawls") == [(6,)]


def test_an_address_that_stands_twice_in_a_batch_is_one_page_with_the_better_claim(bed: Bed) -> None:
    twice = [
        found("a.example", 1, kind=UrlKind.REQUISITE, depth=0, priority=4),
        found("a.example", 1, depth=2, priority=3),
    ]

    assert bed.frontier.add(EXECUTION, twice) == 1
    assert bed.rows("SELECT kind, depth, priority FROM page_crawls") == [("page", 2, 3)]


def test_a_closed_address_does_not_come_back(bed: Bed) -> None:
    bed.frontier.add(EXECUTION, many("a.example", 1))
    lease = bed.lease_one(owner=7)
    bed.frontier.settle(EXECUTION, 7, [bed.visit(lease, lease.attempts[0])])

    assert bed.frontier.add(EXECUTION, many("a.example", 1)) == 0
    assert bed.frontier.open_count(EXECUTION) == 0


def test_a_page_remembers_where_it_was_found_first(bed: Bed) -> None:
    bed.frontier.add(EXECUTION, many("a.example", 1), via=41)
    bed.frontier.add(EXECUTION, many("a.example", 1), via=42)

    assert bed.rows("SELECT via_page_id FROM page_crawls") == [(41,)]


def test_the_same_path_on_two_domains_is_two_pages(bed: Bed) -> None:
    one = found("a.example", 1)

    assert bed.frontier.add(EXECUTION, [one, one._replace(domain="b.example", url="https://b.example/1")]) == 2


def test_a_delayed_discovery_makes_its_queue_due_when_it_is(bed: Bed) -> None:
    later = bed.clock.now() + timedelta(seconds=30)
    bed.frontier.add(EXECUTION, [found("a.example", 1, scheduled_for=to_micros(later))])

    assert next_due_at(bed.raw_db, EXECUTION, bed.clock.now()) == later
    assert bed.frontier.lease(EXECUTION, 7, domains=1, pages=1) == []
    bed.clock.advance(30)
    assert len(bed.lease_one(owner=7).attempts) == 1


def test_a_new_address_makes_a_waiting_queue_due_at_once(bed: Bed) -> None:
    later = to_micros(bed.clock.now() + timedelta(seconds=30))
    bed.frontier.add(EXECUTION, [found("a.example", 1, scheduled_for=later)])
    bed.frontier.add(EXECUTION, [found("a.example", 2)])

    assert [attempt.url for attempt in bed.lease_one(owner=7).attempts] == ["https://a.example/2"]


def test_a_time_that_has_come_counts_as_at_once(bed: Bed) -> None:
    bed.frontier.add(EXECUTION, [found("a.example", 1, scheduled_for=to_micros(bed.clock.now()))])

    assert bed.rows("SELECT scheduled_for FROM page_crawls") == [(None,)]


def test_an_open_requisite_that_is_found_as_a_page_becomes_one(bed: Bed) -> None:
    bed.frontier.add(EXECUTION, [found("a.example", 1, kind=UrlKind.REQUISITE, priority=4)])
    bed.frontier.add(EXECUTION, [found("a.example", 1, depth=2, priority=3), found("a.example", 2)])

    attempts = {attempt.url: attempt for attempt in bed.lease_one(owner=7).attempts}
    promoted = attempts["https://a.example/1"]
    assert (promoted.kind, promoted.depth, promoted.priority) == (UrlKind.PAGE, 2, 3)


def test_it_becomes_one_also_if_the_database_takes_that_the_second_time_only(bed: Bed) -> None:
    frontier = bed.another()
    frontier.add(EXECUTION, [found("a.example", 1, kind=UrlKind.REQUISITE, priority=4)])
    page = found("a.example", 1, depth=2, priority=3)

    def away(_tx: object) -> None:
        raise Unavailable("away")

    with pytest.raises(Unavailable):
        frontier.add(EXECUTION, [page], also=away)
    frontier.add(EXECUTION, [page])

    [promoted] = bed.lease_one(owner=7).attempts
    assert (promoted.kind, promoted.depth) == (UrlKind.PAGE, 2)


def test_a_closed_requisite_stays_what_it_was(bed: Bed) -> None:
    bed.frontier.add(EXECUTION, [found("a.example", 1, kind=UrlKind.REQUISITE)])
    lease = bed.lease_one(owner=7)
    bed.frontier.settle(EXECUTION, 7, [bed.visit(lease, lease.attempts[0])])
    bed.frontier.add(EXECUTION, [found("a.example", 1)])

    assert bed.rows("SELECT kind, outcome FROM page_crawls") == [("requisite", "success")]


def test_hostile_text_reaches_the_table_in_a_form_that_it_takes(bed: Bed) -> None:
    bad = found("a.example", 1, url="https://a.example/\x00\ud800é", priority=1_000_000)

    assert bed.frontier.add(EXECUTION, [bad]) == 1
    assert bed.rows("SELECT url FROM pages") == [("https://a.example/\ufffd?é",)]


def test_more_domains_than_are_remembered_get_the_right_ids(bed: Bed) -> None:
    frontier = bed.another(known_domains=3)
    addresses = [found(f"host{number}.example", 1) for number in range(10)]

    assert frontier.add(EXECUTION, addresses) == 10
    assert frontier.add(EXECUTION, addresses[::-1]) == 0
    rows = bed.rows("SELECT d.name, p.url FROM pages p JOIN domains d ON d.id = p.domain_id")
    assert all(url == f"https://{name}/1" for name, url in rows)


def test_a_large_list_is_added_in_transactions_of_bounded_size(bed: Bed) -> None:
    frontier = bed.another(links_per_transaction=7)

    assert frontier.add(EXECUTION, many("a.example", 50)) == 50
    assert bed.frontier.open_count(EXECUTION) == 50
