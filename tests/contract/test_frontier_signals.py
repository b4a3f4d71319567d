"""Signals of pages whose body is not kept: written with the visit, replaced by a changed page, fenced like the rest."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from holdfast.types import DomainLease, Original, RecordRef, Signals
from tests.contract.frontier_bed import EXECUTION, LEASE_S, Bed, many
from tests.weighed import MOST_ROWS


def signals(*words: str, links: int = 2, **changes: Any) -> Signals:
    """Return signals with these keywords and so many links."""
    facts: dict[str, Any] = {
        "description": "d", "words": tuple((word, 1) for word in sorted(words)), "from_hash": 5,
        "links": tuple((number, f"https://b.example/{number}") for number in range(links)), "links_count": links,
    }  # fmt: skip
    return Signals(**(facts | changes))


def _leased(bed: Bed, count: int = 3, owner: int = 7) -> DomainLease:
    bed.frontier.add(EXECUTION, many("a.example", count))
    return bed.lease_one(owner)


def _settle(bed: Bed, lease: DomainLease, kept: Signals | None, number: int = 0, **changes: Any) -> None:
    visit = bed.visit(lease, lease.attempts[number], signals=kept, **({"content_hash": "c0"} | changes))
    bed.frontier.settle(EXECUTION, 7, [visit])


def _again(bed: Bed, execution_id: int) -> DomainLease:
    """Give the domain back and lease it for the same pages in another execution."""
    bed.frontier.free([7])
    bed.clock.advance(LEASE_S + 1)
    bed.frontier.add(execution_id, many("a.example", 3))
    [lease] = bed.frontier.lease(execution_id, 7, domains=1, pages=100)
    return lease


def _words(bed: Bed) -> list[str]:
    return [row[0] for row in bed.rows("SELECT word FROM signal_words ORDER BY word, page_id")]


def test_signals_are_written_in_the_transaction_that_settles_the_page(bed: Bed) -> None:
    lease = _leased(bed)

    _settle(bed, lease, signals("alpha", "beta"), title="T", language="en", media_type="text/html")

    page_id = lease.attempts[0].page_id
    assert bed.rows(
        "SELECT page_id, execution_id, status_code, media_type, content_hash, language, title, description, word_count,"
        " links_count FROM signal_pages"
    ) == [(page_id, EXECUTION, 200, "text/html", "sha256:c0", "en", "T", "d", 2, 2)]
    assert bed.rows("SELECT word, page_id, count FROM signal_words ORDER BY word") == [
        ("alpha", page_id, 1),
        ("beta", page_id, 1),
    ]
    assert bed.rows("SELECT page_id, to_hash, from_hash, to_url FROM signal_links ORDER BY to_hash") == [
        (page_id, 0, 5, "https://b.example/0"),
        (page_id, 1, 5, "https://b.example/1"),
    ]
    assert bed.rows("SELECT outcome FROM page_crawls WHERE id = ?", (lease.attempts[0].id,)) == [("success",)]
    assert bed.rows("SELECT language FROM pages WHERE id = ?", (page_id,)) == [("en",)]
    bed.assert_sound()


def test_a_changed_page_replaces_its_words_and_links_and_no_others(bed: Bed) -> None:
    lease = _leased(bed)
    _settle(bed, lease, signals("alpha", "beta", links=3))
    _settle(bed, lease, signals("other"), number=1)

    lease = _again(bed, 2)

    visit = bed.visit(lease, lease.attempts[0], signals=signals("gamma", links=1), content_hash="c1")
    bed.frontier.settle(2, 7, [visit])

    assert _words(bed) == ["gamma", "other"]
    assert bed.rows("SELECT count(*) FROM signal_links") == [(3,)]
    assert bed.rows("SELECT execution_id, content_hash FROM signal_pages ORDER BY page_id") == [
        (2, "sha256:c1"),
        (EXECUTION, "sha256:c0"),
    ]


def test_a_late_owner_writes_no_signals_and_a_repeat_writes_them_once(bed: Bed) -> None:
    lease = _leased(bed)
    visit = bed.visit(lease, lease.attempts[0], signals=signals("alpha"))
    bed.frontier.settle(EXECUTION, 7, [visit, visit])
    assert bed.frontier.settle(EXECUTION, 7, [visit]).repeated == (visit,)

    bed.frontier.free([7])
    late = bed.frontier.settle(EXECUTION, 7, [bed.visit(lease, lease.attempts[1], signals=signals("late"))])

    assert len(late.refused) == 1
    assert _words(bed) == ["alpha"]


def test_of_two_visits_of_one_page_in_a_batch_the_later_counts(bed: Bed) -> None:
    lease = _leased(bed)
    first = bed.visit(lease, lease.attempts[0], signals=signals("early"))
    retry = bed.clock.now() + timedelta(seconds=0)
    bed.frontier.settle(EXECUTION, 7, [bed.visit(lease, lease.attempts[0], status=503, reason="x", retry_at=retry)])
    [again] = bed.frontier.refill(
        EXECUTION, lease.domain_id, lease.token, limit=10, holding=[one.id for one in lease.attempts[1:]]
    )

    bed.frontier.settle(EXECUTION, 7, [first, bed.visit(lease, again, signals=signals("later"))])

    assert _words(bed) == ["later"]


def test_many_signals_are_settled_in_several_short_transactions(bed: Bed) -> None:
    frontier, transactions = bed.weighed()
    frontier.add(EXECUTION, many("a.example", 120))
    [lease] = frontier.lease(EXECUTION, 7, domains=1, pages=120)
    words = [f"word{number}" for number in range(256)]
    kept = signals(*words, links=200)
    transactions.clear()

    frontier.settle(EXECUTION, 7, [bed.visit(lease, attempt, signals=kept) for attempt in lease.attempts])

    assert len(transactions) > 2
    assert max(transactions) < MOST_ROWS
    assert bed.rows("SELECT count(*) FROM signal_words") == [(120 * 256,)]
    assert bed.rows("SELECT count(*) FROM signal_links") == [(120 * 200,)]
    bed.assert_sound()


def test_what_is_known_of_a_page_says_whether_its_links_are_all_there(bed: Bed) -> None:
    lease = _leased(bed)
    _settle(bed, lease, signals("alpha", links=2))
    _settle(bed, lease, signals("beta", links=2, links_count=9), number=1, content_hash=None)
    whole, part, none = (attempt.page_id for attempt in lease.attempts)

    known = bed.frontier.known_signals([whole, part, none])

    assert set(known) == {whole, part}
    assert (known[whole].content_hash, known[whole].has_all_links) == ("c0", True)
    assert (known[part].content_hash, known[part].has_all_links) == (None, False)
    assert bed.frontier.signal_links(whole) == ("https://b.example/0", "https://b.example/1")


def test_a_discarded_execution_takes_its_signals_with_it_and_leaves_others(bed: Bed) -> None:
    lease = _leased(bed)
    _settle(bed, lease, signals("alpha"))
    _settle(bed, lease, signals("beta"), number=1)
    later = _again(bed, 2)
    bed.frontier.settle(2, 7, [bed.visit(later, later.attempts[1], signals=signals("gamma"))])

    bed.frontier.forget_signals(2)

    assert _words(bed) == ["alpha"]
    assert bed.rows("SELECT count(*) FROM signal_pages") == [(1,)]


def test_validators_of_bytes_that_were_not_kept_part_with_an_older_original(bed: Bed) -> None:
    lease = _leased(bed)
    now = bed.clock.now()
    original = Original(
        record_id="r", url=lease.attempts[0].url, captured_at=now, payload_digest="sha256:old", warc_file_id=1, offset=0
    )
    for number in range(2):
        visit = bed.visit(lease, lease.attempts[number], etag='"1"', original=original, record=RecordRef(1, 0, 9, 1))
        bed.frontier.settle(EXECUTION, 7, [visit])
    later = _again(bed, 2)
    attempts = {attempt.page_id: attempt for attempt in later.attempts}
    same, other = (attempts[attempt.page_id] for attempt in lease.attempts[:2])

    bed.frontier.settle(2, 7, [
        bed.visit(later, same, etag='"2"', payload_digest="sha256:old"),
        bed.visit(later, other, etag='"2"', payload_digest="sha256:new", signals=signals("new")),
    ])  # fmt: skip

    kept = bed.rows("SELECT id, etag, original_record_id, original_digest, original_offset FROM pages ORDER BY id")
    assert kept[:2] == [(same.page_id, '"2"', "r", "sha256:old", 0), (other.page_id, '"2"', None, None, None)]
