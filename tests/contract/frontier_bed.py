"""What the frontier's suites share: frontiers on one database, and short ways to say what was found and visited."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from functools import cached_property
from hashlib import sha256
from typing import Any

from holdfast.db import connect
from holdfast.db.raw import RawDatabase, Row, Transaction
from holdfast.errors import Unavailable
from holdfast.frontier import Frontier, FrontierSettings
from holdfast.types import Attempt, CircuitState, DomainLease, DomainUpdate, FoundUrl, Outcome, UrlKind, Visit
from tests.clock import FakeClock
from tests.frontier_audit import audit
from tests.weighed import WeighedRawDatabase

EXECUTION = 1
LEASE_S = 60.0


def found(domain: str, number: int, **changes: Any) -> FoundUrl:
    """Return an address on a domain; its hash is unlike that of any other."""
    url = f"https://{domain}/{number}"
    url_hash = int.from_bytes(sha256(url.encode()).digest()[:8], "big", signed=True)
    return FoundUrl(url, url_hash, domain, UrlKind.PAGE, 1, 1)._replace(**changes)


def many(domain: str, count: int, **changes: Any) -> list[FoundUrl]:
    """Return so many addresses on a domain."""
    return [found(domain, number, **changes) for number in range(count)]


class Bed:
    """One database, its clock, and any number of frontiers on it, as separate processes would have."""

    def __init__(self, url: str, clock: FakeClock) -> None:
        self.url, self.clock = url, clock
        self.raw_db = connect(url)
        """For questions: reports run on a connection of their own."""
        self._raw_dbs: list[RawDatabase] = [self.raw_db]
        self.frontier = self.another()

    @cached_property
    def leased_domains(self) -> list[Frontier]:
        """Three frontiers, each with a connection of its own."""
        return [self.another() for _ in range(3)]

    def another(self, **settings: Any) -> Frontier:
        """Open one more frontier with a connection of its own."""
        self._raw_dbs.append(connect(self.url))
        return Frontier(self._raw_dbs[-1], self.clock, FrontierSettings(lease_s=LEASE_S, **settings))

    def weighed(self) -> tuple[Frontier, list[int]]:
        """Open one more frontier, and the list that gets the number of rows of each of its write transactions."""
        self._raw_dbs.append(connect(self.url))
        raw_db = WeighedRawDatabase(self._raw_dbs[-1])
        return Frontier(raw_db, self.clock), raw_db.rows

    def breaking(self) -> tuple[Frontier, Breaking]:
        """Open one more frontier, and the switch that breaks its connection."""
        self._raw_dbs.append(connect(self.url))
        switch = Breaking(self._raw_dbs[-1])
        return Frontier(switch, self.clock, FrontierSettings(lease_s=LEASE_S)), switch

    def close(self) -> None:
        """Let go of all connections."""
        for raw_db in self._raw_dbs:
            raw_db.close()

    def visit(self, lease: DomainLease, attempt: Attempt, **changes: Any) -> Visit:
        """Return a good visit of an attempt, or one with these changes."""
        now = self.clock.now()
        facts: dict[str, Any] = {"outcome": Outcome.SUCCESS, "reason": "ok", "status": 200}
        return Visit(attempt=attempt, token=lease.token, started_at=now, finished_at=now, **(facts | changes))

    def update(self, lease: DomainLease, *, rest_s: float = 0.0, **changes: Any) -> DomainUpdate:
        """Return what a holder writes when it gives a domain back."""
        next_allowed_at = self.clock.now() + timedelta(seconds=rest_s)
        facts: dict[str, Any] = {"circuit": CircuitState(), "next_allowed_at": next_allowed_at}
        return DomainUpdate(domain_id=lease.domain_id, token=lease.token, **(facts | changes))

    def lease_one(self, owner: int, *, pages: int = 100) -> DomainLease:
        """Lease the domain whose turn it is."""
        leases = self.frontier.lease(EXECUTION, owner, domains=1, pages=pages)
        assert len(leases) == 1, "nothing could be leased"
        return leases[0]

    def rows(self, statement: str, values: Sequence[Any] = ()) -> list[Row]:
        """Ask the database itself."""
        with self.raw_db.read() as tx:
            return tx.execute(statement, values)

    def assert_sound(self) -> None:
        """Check every promise of the tables."""
        assert audit(self.raw_db, EXECUTION) == []


class Breaking:
    """A raw connection that can be told to fail after its next write."""

    def __init__(self, raw_db: RawDatabase) -> None:
        self._raw_db = raw_db
        self.dialect, self.generation = raw_db.dialect, raw_db.generation
        self.now_micros, self.close = raw_db.now_micros, raw_db.close
        self.breaks = False

    @contextmanager
    def write(self) -> Iterator[Transaction]:
        with self._raw_db.write() as tx:
            yield tx
        if self.breaks:
            raise Unavailable("the answer to a commit was lost")

    @contextmanager
    def read(self) -> Iterator[Transaction]:
        with self._raw_db.read() as tx:
            yield tx


@contextmanager
def open_bed(url: str, clock: FakeClock) -> Iterator[Bed]:
    """Open a bed and close it, after checking that the tables kept their promises."""
    bed = Bed(url, clock)
    try:
        yield bed
        bed.assert_sound()
    finally:
        bed.close()
