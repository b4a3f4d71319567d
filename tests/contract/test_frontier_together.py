"""Several processes at once: threads with connections of their own, on real databases and the database's clock."""

from __future__ import annotations

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from holdfast.clock import SystemClock
from holdfast.db import connect
from holdfast.db.raw import DatabaseClock, persist
from holdfast.errors import Unavailable
from holdfast.frontier import Frontier
from holdfast.types import CircuitState, DomainLease, DomainUpdate, Outcome, Visit
from tests import patience
from tests.contract.frontier_bed import EXECUTION, Bed, found, many
from tests.frontier_audit import audit

WORKERS = 4


class Crawl:
    """What all workers see: who holds which domain, and what was settled."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.lock = threading.Lock()
        self.holders: dict[int, int] = {}
        self.clashes: list[tuple[int, int, int]] = []
        self.settled: Counter[int] = Counter()

    def work(self, owner: int) -> None:
        """Lease, settle with links to everywhere, release, until nothing is open."""
        raw_db = connect(self.url)
        clock = DatabaseClock(raw_db)
        frontier = Frontier(raw_db, clock)
        try:
            while frontier.open_count(EXECUTION):
                leases = frontier.lease(EXECUTION, owner, domains=3, pages=4)
                self._hold(owner, leases)
                visits = [_visit(lease, number, clock) for lease in leases for number in range(len(lease.attempts))]
                result = frontier.settle(EXECUTION, owner, visits, counts=lambda *_: {"pages": 1})
                assert not result.refused
                with self.lock:
                    self.settled.update(visit.attempt.id for visit in visits)
                    for lease in leases:
                        del self.holders[lease.domain_id]
                frontier.release(EXECUTION, owner, [_update(lease, clock) for lease in leases])
        finally:
            raw_db.close()

    def _hold(self, owner: int, leases: list[DomainLease]) -> None:
        with self.lock:
            for lease in leases:
                if lease.domain_id in self.holders:
                    self.clashes.append((lease.domain_id, self.holders[lease.domain_id], owner))
                self.holders[lease.domain_id] = owner


def _visit(lease: DomainLease, number: int, clock: DatabaseClock) -> Visit:
    attempt = lease.attempts[number]
    links = tuple(found(f"h{(attempt.id * 7 + n) % 12}.example", (attempt.id + n) % 40, depth=2) for n in range(10))
    return Visit(
        attempt=attempt, token=lease.token, outcome=Outcome.SUCCESS, reason="ok", started_at=clock.now(),
        finished_at=clock.now(), found=links, excluded={("scope", f"x{attempt.id % 5}"): 1},
    )  # fmt: skip


def _update(lease: DomainLease, clock: DatabaseClock) -> DomainUpdate:
    return DomainUpdate(
        domain_id=lease.domain_id, token=lease.token, next_allowed_at=clock.now(), circuit=CircuitState()
    )


def test_workers_never_share_a_domain_and_settle_everything_once(migrated_url: str) -> None:
    raw_db = connect(migrated_url)
    Frontier(raw_db, SystemClock()).add(EXECUTION, [found(f"h{n % 12}.example", n) for n in range(24)])
    crawl = Crawl(migrated_url)

    with ThreadPoolExecutor(WORKERS) as workers:
        for done in [workers.submit(crawl.work, owner) for owner in range(1, WORKERS + 1)]:
            done.result(timeout=patience.deadline(60))

    assert crawl.clashes == []
    assert set(crawl.settled.values()) == {1}
    with raw_db.read() as tx:
        rows = tx.execute("SELECT count(*) FROM page_crawls WHERE outcome = 'success'")
    assert rows == [(len(crawl.settled),)]
    assert audit(raw_db, EXECUTION) == []
    raw_db.close()


def test_many_owners_that_lease_at_once_get_different_domains(migrated_postgres: str) -> None:
    raw_db = connect(migrated_postgres)
    Frontier(raw_db, SystemClock()).add(EXECUTION, [found(f"h{n}.example", 1) for n in range(40)])
    start = threading.Barrier(8)

    def take(owner: int) -> list[str]:
        own = connect(migrated_postgres)
        frontier = Frontier(own, SystemClock())
        start.wait()
        names = [lease.domain for _ in range(5) for lease in frontier.lease(EXECUTION, owner, domains=1, pages=1)]
        own.close()
        return names

    with ThreadPoolExecutor(8) as owners:
        taken = [name for names in owners.map(take, range(1, 9)) for name in names]

    assert len(taken) == len(set(taken)) == 40
    raw_db.close()


@pytest.mark.postgres
def test_a_frontier_outlives_its_connection(migrated_postgres: str) -> None:
    raw_db = connect(migrated_postgres)
    frontier = Frontier(raw_db, SystemClock())
    frontier.add(EXECUTION, many("a.example", 2))
    _terminate_others(migrated_postgres)
    waited: list[float] = []

    added = persist(lambda: frontier.add(EXECUTION, many("a.example", 5)), sleep=waited.append)

    assert added == 3
    assert waited == [0.1]
    _terminate_others(migrated_postgres)
    with pytest.raises(Unavailable):
        frontier.renew(7)
    assert frontier.renew(7) == {}
    raw_db.close()


def _terminate_others(url: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )


def test_a_transaction_that_fails_leaves_nothing_behind(bed: Bed) -> None:
    bed.frontier.add(EXECUTION, many("a.example", 2))
    lease = bed.lease_one(owner=7)
    broken = bed.visit(lease, lease.attempts[0], found=(found("b.example", 1, depth=None),))

    with pytest.raises(Exception, match=r"(?i)null"):
        bed.frontier.settle(EXECUTION, 7, [broken, bed.visit(lease, lease.attempts[1])])

    assert bed.frontier.open_count(EXECUTION) == 2
    assert bed.frontier.settle(EXECUTION, 7, [bed.visit(lease, attempt) for attempt in lease.attempts]).closed == 2
