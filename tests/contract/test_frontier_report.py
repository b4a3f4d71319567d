"""What the frontier tells about an execution: figures, lists, accounts, and the audit that tests rely on."""

from __future__ import annotations

from datetime import timedelta

from holdfast.frontier import queries
from holdfast.types import Outcome, UrlKind
from tests.contract.frontier_bed import EXECUTION, LEASE_S, Bed, found, many
from tests.frontier_audit import account as account_of
from tests.frontier_audit import audit


def _crawled(bed: Bed) -> None:
    """Crawl a little: a page, one that fails twice, a robots denial, a requisite; one stays open."""
    bed.frontier.add(
        EXECUTION, [*many("a.example", 4), found("a.example", 9, kind=UrlKind.REQUISITE, depth=0, priority=0)]
    )
    lease = bed.lease_one(owner=7)
    good, bad, robots, _, requisite = lease.attempts
    at = bed.clock.now() + timedelta(seconds=1)
    bed.frontier.settle(
        EXECUTION, 7,
        [bed.visit(lease, good, media_type="text/html", wire_bytes=10, excluded={("scope", "b"): 4}, title="T",
                   found=(found("b.example", 1, depth=2),)),
         bed.visit(lease, bad, outcome=Outcome.BLOCKED_5XX, reason="http_500", status=500, retry_at=at),
         bed.visit(lease, robots, outcome=Outcome.BLOCKED_ROBOTS, reason="robots:line 2", status=None),
         bed.visit(lease, requisite, media_type="image/png", wire_bytes=5)],
    )  # fmt: skip
    bed.clock.advance(1)
    again = bed.frontier.refill(EXECUTION, lease.domain_id, lease.token, limit=1)
    bed.frontier.settle(
        EXECUTION, 7, [bed.visit(lease, again[0], outcome=Outcome.BLOCKED_5XX, reason="http_500", status=500)]
    )


def test_the_account_has_each_address_once_with_its_last_attempt(bed: Bed) -> None:
    _crawled(bed)

    account = {line.url: line for line in account_of(bed.raw_db, EXECUTION)}

    assert len(account) == 6
    assert sum(1 for _ in account_of(bed.raw_db, EXECUTION)) == 6
    failed = account["https://a.example/1"]
    assert (failed.outcome, failed.attempts, failed.status) == (Outcome.BLOCKED_5XX, 2, 500)
    link = account["https://b.example/1"]
    assert (link.outcome, link.via, link.depth, link.completed_at) == (None, "https://a.example/0", 2, None)
    assert account["https://a.example/0"].title == "T"


def test_the_account_is_read_in_pages(bed: Bed) -> None:
    bed.frontier.add(EXECUTION, [found(f"h{n % 7}.example", n) for n in range(2500)])

    assert len({line.url for line in account_of(bed.raw_db, EXECUTION)}) == 2500


def test_the_summary_counts_every_address_each_way(bed: Bed) -> None:
    _crawled(bed)

    summary = queries.summary(bed.raw_db, EXECUTION)

    assert (summary.total, summary.open, summary.wire_bytes) == (6, 2, 15)
    assert summary.outcomes == {"success": 2, "blocked_5xx": 1, "blocked_robots": 1}
    assert summary.reasons["blocked_robots", "robots:line 2"] == 1
    assert summary.kinds["requisite", "success"] == 1
    assert summary.statuses == {200: 2, 500: 1}
    assert summary.media_types == {"text/html": 1, "image/png": 1}
    assert summary.domains == {"a.example": 5, "b.example": 1}
    assert summary.depths == {1: 4, 2: 1, "requisite": 1}
    assert summary.exclusions == {("scope", "b"): 4}


def test_the_figures_count_addresses_not_attempts(bed: Bed) -> None:
    _crawled(bed)

    figures = bed.frontier.stats(EXECUTION)

    assert (figures.pending, figures.completed, figures.failed, figures.ruled_out) == (2, 2, 1, 1)
    assert (figures.domains, figures.leased_domains) == (2, 1)
    bed.clock.advance(LEASE_S)
    everything = bed.frontier.stats()
    assert (everything.pending, everything.leased_domains) == (2, 0)
    assert bed.frontier.stats(99).pending == 0


def test_open_attempts_are_listed_with_their_next_turn_first(bed: Bed) -> None:
    bed.frontier.add(EXECUTION, [found("b.example", 1, priority=1), found("b.example", 2, priority=3)])
    bed.clock.advance(1)
    bed.frontier.add(EXECUTION, many("a.example", 3))
    bed.lease_one(owner=7)

    listed = bed.frontier.list_open(EXECUTION, limit=4)

    assert [line.url for line in listed[:2]] == ["https://b.example/2", "https://b.example/1"]
    assert [line.leased for line in listed] == [True, True, False, False]
    assert bed.frontier.open_domains(EXECUTION) == 2


def test_the_audit_sees_a_wrong_count(bed: Bed) -> None:
    bed.frontier.add(EXECUTION, many("a.example", 2))
    with bed.raw_db.write() as tx:
        tx.execute("UPDATE queues SET open = open + 1")

    assert len(audit(bed.raw_db, EXECUTION)) == 2
    with bed.raw_db.write() as tx:
        tx.execute("UPDATE queues SET open = open - 1")


def test_the_audit_sees_an_attempt_closed_by_hand(bed: Bed) -> None:
    bed.frontier.add(EXECUTION, many("a.example", 1))
    with bed.raw_db.write() as tx:
        tx.execute("UPDATE page_crawls SET outcome = 'success'")

    broken = " ".join(audit(bed.raw_db, EXECUTION))
    assert "queues.open" in broken
    assert "reason or time" in broken
    with bed.raw_db.write() as tx:
        tx.execute("UPDATE page_crawls SET outcome = NULL")
