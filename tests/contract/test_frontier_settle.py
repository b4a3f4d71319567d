"""Settling visits: once, all of it or nothing, and never by an owner that was replaced."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from holdfast.errors import Unavailable
from holdfast.types import DomainLease, Original, Outcome, RecordRef
from tests.contract.frontier_bed import EXECUTION, LEASE_S, Bed, found, many
from tests.weighed import MOST_ROWS


def _leased(bed: Bed, count: int = 3, owner: int = 7) -> DomainLease:
    bed.frontier.add(EXECUTION, many("a.example", count))
    return bed.lease_one(owner)


def _page(bed: Bed, columns: str) -> tuple[Any, ...]:
    return bed.rows(f"SELECT {columns} FROM pages ORDER BY id LIMIT 1")[0]


def test_a_settled_attempt_is_closed_with_all_that_came_of_it(bed: Bed) -> None:
    lease = _leased(bed)
    visit = bed.visit(
        lease, lease.attempts[0], message="m", media_type="text/html", wire_bytes=5, requests=2, title="t",
        record=RecordRef(1, 2, 3, 4), payload_digest="sha256:0", content_hash="sha256:1", redirected_to="https://b/",
        excluded={("scope", "b.example"): 2}, found=tuple(many("a.example", 3)),
    )  # fmt: skip

    settled = bed.frontier.settle(EXECUTION, 7, [visit])

    assert (settled.closed, settled.new, settled.refused, settled.repeated) == (1, 0, (), ())
    row = bed.rows(
        "SELECT outcome, reason, status_code, message, media_type, wire_bytes, requests, title, warc_file_id,"
        " warc_offset, warc_length, warc_ordinal, payload_digest, content_hash, redirected_to, links_count"
        " FROM page_crawls WHERE id = ?", (visit.attempt.id,),
    )  # fmt: skip
    assert row == [
        ("success", "ok", 200, "m", "text/html", 5, 2, "t", 1, 2, 3, 4, "sha256:0", "sha256:1", "https://b/", 5)
    ]
    assert bed.frontier.open_count(EXECUTION) == 2


def test_settling_again_changes_nothing(bed: Bed) -> None:
    lease = _leased(bed)
    retry_at = bed.clock.now() + timedelta(seconds=1)
    visit = bed.visit(lease, lease.attempts[0], outcome=Outcome.BLOCKED_5XX, reason="http_503", status=503,
                      retry_at=retry_at, found=tuple(many("b.example", 2)), excluded={("scope", "x"): 1})  # fmt: skip
    bed.frontier.settle(EXECUTION, 7, [visit])
    before = [
        bed.rows(f"SELECT * FROM {table} ORDER BY 1, 2, 3")
        for table in ("page_crawls", "pages", "exclusions", "queues")
    ]

    again = bed.frontier.settle(EXECUTION, 7, [visit, visit])

    assert (again.closed, again.retried, again.repeated) == (0, 0, (visit,))
    after = [
        bed.rows(f"SELECT * FROM {table} ORDER BY 1, 2, 3")
        for table in ("page_crawls", "pages", "exclusions", "queues")
    ]
    assert after == before


def test_a_settle_whose_answer_was_lost_is_repeated_without_harm(bed: Bed) -> None:
    lease = _leased(bed)
    frontier, switch = bed.breaking()
    visits = [bed.visit(lease, attempt, found=(found("b.example", attempt.id),)) for attempt in lease.attempts]
    switch.breaks = True
    with pytest.raises(Unavailable):
        frontier.settle(EXECUTION, 7, visits, counts=lambda *_: {"pages": 3})
    switch.breaks = False

    settled = [frontier.settle(EXECUTION, 7, visits, counts=lambda *_: {"pages": 3}) for _ in range(2)]

    assert settled[1].repeated == tuple(visits)
    assert (bed.frontier.open_count(EXECUTION), bed.frontier.stats(EXECUTION).completed) == (3, 3)


def test_a_visit_that_stands_twice_in_a_batch_counts_once(bed: Bed) -> None:
    lease = _leased(bed)
    visit = bed.visit(lease, lease.attempts[0], outcome=Outcome.FAILED, reason="dns_failed", excluded={("r", "h"): 1})

    assert bed.frontier.settle(EXECUTION, 7, [visit, visit]).closed == 1
    assert bed.rows("SELECT count FROM exclusions") == [(1,)]


def test_a_late_owner_overwrites_nothing(bed: Bed) -> None:
    late = _leased(bed, count=2)
    bed.clock.advance(LEASE_S)
    newer = bed.lease_one(owner=8)
    good, bad = late.attempts
    bed.frontier.settle(EXECUTION, 8, [bed.visit(newer, good)])

    visits = [bed.visit(late, good, outcome=Outcome.FAILED, reason="late"),
              bed.visit(late, bad, found=tuple(many("b.example", 3)), excluded={("scope", "x"): 1})]  # fmt: skip
    settled = bed.frontier.settle(EXECUTION, 7, visits, [bed.update(late, rest_s=3600)])

    assert (settled.closed, settled.refused, settled.lost) == (0, tuple(visits), (late.domain_id,))
    assert bed.rows("SELECT outcome FROM page_crawls ORDER BY id") == [("success",), (None,)]
    assert bed.rows("SELECT count(*) FROM exclusions") == [(0,)]
    assert bed.rows("SELECT next_allowed_at FROM domains WHERE name = 'a.example'") == [(0,)]


def test_only_the_refused_part_of_a_batch_is_left_out(bed: Bed) -> None:
    bed.frontier.add(EXECUTION, [*many("a.example", 1), *many("b.example", 1)])
    one, other = bed.frontier.lease(EXECUTION, 7, domains=2, pages=1)
    bed.frontier.free([7])
    with bed.raw_db.write() as tx:  # one of the two is still ours
        tx.execute("UPDATE domains SET lease_token = ? WHERE id = ?", (other.token, other.domain_id))

    settled = bed.frontier.settle(
        EXECUTION, 7,
        [bed.visit(one, one.attempts[0], found=(found("c.example", 1), found("c.example", 2))),
         bed.visit(other, other.attempts[0], found=(found("c.example", 2),))],
    )  # fmt: skip

    assert (settled.closed, settled.new) == (1, 1)
    assert [visit.attempt for visit in settled.refused] == list(one.attempts)


def test_an_expired_lease_that_nobody_took_still_settles(bed: Bed) -> None:
    lease = _leased(bed)
    bed.clock.advance(LEASE_S * 3)

    assert bed.frontier.settle(EXECUTION, 7, [bed.visit(lease, lease.attempts[0])]).closed == 1


def test_a_retry_is_the_next_attempt_at_its_time(bed: Bed) -> None:
    lease = _leased(bed, count=1)
    retry_at = bed.clock.now() + timedelta(seconds=2)
    visit = bed.visit(
        lease, lease.attempts[0], outcome=Outcome.TIMEOUT, reason="timeout", status=None, retry_at=retry_at
    )

    settled = bed.frontier.settle(EXECUTION, 7, [visit])

    assert (settled.closed, settled.retried, bed.frontier.open_count(EXECUTION)) == (1, 1, 1)
    assert bed.frontier.refill(EXECUTION, lease.domain_id, lease.token, limit=5) == []
    bed.clock.advance(2)
    again = bed.frontier.refill(EXECUTION, lease.domain_id, lease.token, limit=5)
    assert [(attempt.number, attempt.page_id) for attempt in again] == [(2, visit.attempt.page_id)]
    assert bed.frontier.stats(EXECUTION).failed == 0, "an attempt that is tried again has not ended its address"


def test_links_are_added_with_the_page_that_has_them(bed: Bed) -> None:
    lease = _leased(bed)
    visits = [
        bed.visit(lease, attempt, found=(found("b.example", 5), found("a.example", 1))) for attempt in lease.attempts
    ]

    settled = bed.frontier.settle(EXECUTION, 7, visits)

    assert (settled.closed, settled.new) == (3, 1)
    new = bed.rows("SELECT id FROM domains WHERE name = 'b.example'")[0][0]
    assert settled.added == {new}
    assert bed.rows("SELECT via_page_id FROM page_crawls WHERE domain_id = ?", (new,)) == [(lease.attempts[0].page_id,)]


def test_a_settle_with_very_many_links_is_split_between_visits(bed: Bed) -> None:
    lease = _leased(bed, count=5)
    frontier = bed.another(links_per_transaction=10)
    visits = [
        bed.visit(lease, attempt, found=tuple(found(f"h{n}.example", attempt.id) for n in range(8)))
        for attempt in lease.attempts
    ]

    settled = frontier.settle(EXECUTION, 7, visits, [bed.update(lease, rest_s=9)], lambda *_: {"pages": 5})

    assert (settled.closed, settled.new, len(settled.added)) == (5, 40, 8)
    assert bed.frontier.stats(EXECUTION).counts == {"pages": 5}


def test_language_sticks_and_validators_follow_the_last_answer(bed: Bed) -> None:
    for execution, changes, expected in (
        (1, {"language": "en", "etag": '"1"', "last_modified": "a"}, ("en", '"1"', "a")),
        (2, {"language": "fr", "status": 304, "etag": None, "last_modified": "b"}, ("en", '"1"', "b")),
        (3, {"outcome": Outcome.BLOCKED_4XX, "reason": "http_404", "status": 404, "etag": '"no"'}, ("en", '"1"', "b")),
        (4, {"etag": '"2"'}, ("en", '"2"', None)),
        (5, {"language": "x" * 36}, ("en", None, None)),
    ):
        bed.frontier.add(execution, many("a.example", 1))
        lease = bed.frontier.lease(execution, 7, domains=1, pages=1)[0]
        bed.frontier.settle(execution, 7, [bed.visit(lease, lease.attempts[0], **changes)])
        bed.frontier.release(execution, 7, [bed.update(lease)])

        assert _page(bed, "language, etag, last_modified") == expected, execution


def test_a_page_knows_its_last_ending_and_its_errors_in_a_row(bed: Bed) -> None:
    for outcome, status, errors in (
        (Outcome.FAILED, "failed", 1),
        (Outcome.BLOCKED_ROBOTS, "failed", 2),
        (Outcome.EXCLUDED, "failed", 2),
        (Outcome.SUCCESS, "fetched", 0),
        (Outcome.TIMEOUT, "failed", 1),
    ):
        execution = bed.rows("SELECT count(*) FROM page_crawls")[0][0] + 1
        bed.frontier.add(execution, many("a.example", 1))
        assert execution > 1 or _page(bed, "status") == ("discovered",)
        lease = bed.frontier.lease(execution, 7, domains=1, pages=1)[0]
        bed.frontier.settle(execution, 7, [bed.visit(lease, lease.attempts[0], outcome=outcome)])
        bed.frontier.release(execution, 7, [bed.update(lease)])

        assert _page(bed, "status, error_count") == (status, errors)


def test_the_last_original_stays_until_there_is_a_new_one(bed: Bed) -> None:
    first = Original(record_id="1", url="https://a.example/elsewhere", captured_at=bed.clock.now(),
                     payload_digest="sha256:1", warc_file_id=1, offset=10)  # fmt: skip
    lease = _leased(bed, count=1)
    bed.frontier.settle(
        EXECUTION, 7, [bed.visit(lease, lease.attempts[0], original=first, record=RecordRef(1, 10, 5, 0))]
    )
    bed.frontier.release(EXECUTION, 7, [bed.update(lease)])
    bed.frontier.add(2, many("a.example", 1))
    lease = bed.frontier.lease(2, 7, domains=1, pages=1)[0]
    assert lease.attempts[0].original == first
    bed.frontier.settle(2, 7, [bed.visit(lease, lease.attempts[0], status=304)])
    assert _page(bed, "original_record_id, original_offset") == ("1", 10)

    bed.frontier.forget_originals(2)
    assert _page(bed, "original_record_id") == ("1",)
    bed.frontier.forget_originals(1)
    assert _page(bed, "original_record_id, original_url, original_file_id, etag") == (None, None, None, None)


def test_exclusions_add_up_and_totals_are_replaced(bed: Bed) -> None:
    lease = _leased(bed)
    for number, attempt in enumerate(lease.attempts):
        visit = bed.visit(lease, attempt, excluded={("scope", "x"): 2, ("trap", "y"): 1})
        counts = {"pages": number + 1, "outcomes": {"success": number + 1}, "state": "running"}
        bed.frontier.settle(EXECUTION, 7, [visit], counts=lambda *_, counts=counts: counts)
    bed.frontier.settle(EXECUTION, 8, [], counts=lambda *_: {"pages": 10, "outcomes": {"failed": 1}})

    assert bed.rows("SELECT rule, host, count FROM exclusions ORDER BY 1") == [("scope", "x", 6), ("trap", "y", 3)]
    assert bed.frontier.stats(EXECUTION).counts == {"pages": 13, "outcomes": {"success": 3, "failed": 1}}
    stored = bed.rows("SELECT counts FROM execution_counts WHERE owner_id = 7")[0][0]
    assert (json.loads(stored) if isinstance(stored, str) else stored)["state"] == "running"


def test_exclusion_is_deleted_when_later_pages_take_it_back(bed: Bed) -> None:
    lease = _leased(bed)
    first, second, third = lease.attempts
    over = "over_limit:links", "x"
    bed.frontier.settle(EXECUTION, 7, [bed.visit(lease, first, excluded={over: 3, ("scope", "x"): 1})])
    bed.frontier.settle(EXECUTION, 7, [bed.visit(lease, second, excluded={over: -2})])
    assert ("over_limit:links", "x", 1) in bed.rows("SELECT rule, host, count FROM exclusions")
    bed.frontier.settle(EXECUTION, 7, [bed.visit(lease, third, excluded={over: -1})])

    assert bed.rows("SELECT rule, host, count FROM exclusions") == [("scope", "x", 1)]


@pytest.mark.parametrize("text", ["a\x00b", "lone \ud83d", "x" * 100_000, "\U0001f600 ok"])
def test_no_text_of_the_web_breaks_a_settle(bed: Bed, text: str) -> None:
    lease = _leased(bed)
    visit = bed.visit(lease, lease.attempts[0], reason=text, message=text, title=text, media_type=text, etag=text,
                      last_modified=text, redirected_to=text, language=text, status=99_999,
                      excluded={(text, text): 1})  # fmt: skip

    assert bed.frontier.settle(EXECUTION, 7, [visit]).closed == 1


def test_an_attempt_of_another_execution_is_left_alone(bed: Bed) -> None:
    lease = _leased(bed)

    assert bed.frontier.settle(2, 7, [bed.visit(lease, lease.attempts[0])]).closed == 0
    assert bed.frontier.open_count(EXECUTION) == 3


def test_no_transaction_of_a_large_settle_holds_the_database_for_long(bed: Bed) -> None:
    bed.frontier.add(EXECUTION, [found(f"h{n % 20}.example", n) for n in range(200)])
    leases = bed.frontier.lease(EXECUTION, 7, domains=20, pages=10)
    visits = [
        bed.visit(lease, attempt, found=tuple(found(lease.domain, attempt.id * 1000 + n) for n in range(100)))
        for lease in leases
        for attempt in lease.attempts
    ]
    frontier, rows = bed.weighed()

    settled = frontier.settle(EXECUTION, 7, visits)

    assert (settled.closed, settled.new) == (200, 20_000)
    assert 0 < max(rows) < MOST_ROWS
