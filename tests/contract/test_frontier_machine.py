"""The property worth most: whatever the order of events, no attempt settles twice and none is lost.

Hypothesis walks through adds, leases, renewals, expiries, settles (also late and repeated), crashes, refills, blame and
releases of three owners on three domains, beside a model in plain dicts. At the end everything left must still be had.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from holdfast.types import Attempt, DomainLease, Outcome, Visit
from tests.clock import FakeClock
from tests.contract.frontier_bed import LEASE_S, Bed, found, open_bed
from tests.frontier_audit import audit

OWNERS = (0, 1, 2)
DOMAINS = (0, 1, 2)
NUMBERS = st.sets(st.integers(0, 5), min_size=1, max_size=4)
Key = tuple[int, int, int]
"""domain, number of the page, number of the attempt."""
_executions = itertools.count(1000)


@dataclass
class ModelDomain:
    """What the model knows of a domain."""

    token: int = 0
    owner: int | None = None
    expires_at: datetime | None = None
    """None once it is freed or given back."""
    next_allowed_at: datetime | None = None


@dataclass
class Handle:
    """A lease that a process has, in force or not."""

    owner: int
    domain: int
    lease: DomainLease
    attempts: list[Attempt]


@dataclass
class Model:
    """The frontier as a few dicts."""

    due: dict[Key, datetime] = field(default_factory=dict)
    """Open attempts and when they may be asked for."""
    closed: dict[Key, str] = field(default_factory=dict)
    crashes: dict[Key, int] = field(default_factory=dict)
    domains: dict[int, ModelDomain] = field(default_factory=lambda: {number: ModelDomain() for number in DOMAINS})

    def leasable(self, now: datetime) -> set[int]:
        """Return the domains that a lease must be able to get."""
        return {number for number, domain in self.domains.items()
                if (domain.expires_at is None or domain.expires_at <= now)
                and (domain.next_allowed_at is None or domain.next_allowed_at <= now)
                and any(key[0] == number and due <= now for key, due in self.due.items())}  # fmt: skip


def _key(url: str, attempt: int) -> Key:
    host, number = url.removeprefix("https://").split("/")
    return int(host[1]), int(number), attempt


class FrontierMachine(RuleBasedStateMachine):
    """Three processes, each with a connection of its own, on one execution."""

    bed: Bed

    def __init__(self) -> None:
        super().__init__()
        self.execution = next(_executions)
        self.model = Model()
        self.handles: list[Handle] = []
        self.visits: list[tuple[int, list[Visit]]] = []
        self.frontiers = self.bed.leased_domains
        self.clock = self.bed.clock

    # Names and keys.

    def _name(self, domain: int) -> str:
        return f"d{domain}.x{self.execution}.example"

    def _owner(self, owner: int) -> int:
        return self.execution * 10 + owner

    def _key(self, attempt: Attempt) -> Key:
        return _key(attempt.url, attempt.number)

    def _is_known(self, domain: int, number: int) -> bool:
        return (domain, number, 1) in self.model.due or (domain, number, 1) in self.model.closed

    def _discover(self, domain: int, numbers: set[int]) -> int:
        new = {number for number in numbers if not self._is_known(domain, number)}
        self.model.due.update({(domain, number, 1): self.clock.now() for number in new})
        return len(new)

    # Events.

    @initialize(numbers=NUMBERS)
    def seeds(self, numbers: set[int]) -> None:
        self.add(0, 0, numbers)

    @rule(owner=st.sampled_from(OWNERS), domain=st.sampled_from(DOMAINS), numbers=NUMBERS)
    def add(self, owner: int, domain: int, numbers: set[int]) -> None:
        addresses = [found(self._name(domain), number) for number in numbers]

        assert self.frontiers[owner].add(self.execution, addresses) == self._discover(domain, numbers)

    @rule(owner=st.sampled_from(OWNERS), domains=st.integers(1, 3), pages=st.integers(1, 4))
    def lease(self, owner: int, domains: int, pages: int) -> None:
        now = self.clock.now()
        leasable = self.model.leasable(now)

        leases = self.frontiers[owner].lease(self.execution, self._owner(owner), domains=domains, pages=pages)

        assert len(leases) == min(domains, len(leasable)), "a due domain could not be had"
        for lease in leases:
            number = int(lease.domain[1])
            domain = self.model.domains[number]
            assert number in leasable, "a domain was handed out that is held or must rest"
            assert lease.token > domain.token
            assert lease.taken_over == (domain.owner is not None)
            keys = [self._key(attempt) for attempt in lease.attempts]
            due = [key for key, at in self.model.due.items() if key[0] == number and at <= now]
            assert len(keys) == len(set(keys)) == min(pages, len(due))
            assert set(keys) <= set(due)
            self.model.domains[number] = ModelDomain(lease.token, owner, now + timedelta(seconds=LEASE_S),
                                                     domain.next_allowed_at)  # fmt: skip
            self.handles.append(Handle(owner, number, lease, list(lease.attempts)))
        self._sync_tokens()

    def _sync_tokens(self) -> None:
        """A domain that was taken and had nothing to hand out has a new token and no holder: read it."""
        rows = self.bed.rows("SELECT name, lease_token, lease_expires_at FROM domains WHERE name LIKE ?",
                             (f"d_.x{self.execution}.example",))  # fmt: skip
        for name, token, expires_at in rows:
            domain = self.model.domains[int(name[1])]
            if token != domain.token:
                assert token > domain.token
                assert expires_at == 0
                domain.token, domain.expires_at = token, None

    @rule(owner=st.sampled_from(OWNERS))
    def renew(self, owner: int) -> None:
        held = self.frontiers[owner].renew(self._owner(owner))

        until = self.clock.now() + timedelta(seconds=LEASE_S)
        expected = [domain for domain in self.model.domains.values()
                    if domain.owner == owner and domain.expires_at is not None]  # fmt: skip
        assert sorted(held.values()) == sorted((domain.token, until) for domain in expected)
        for domain in expected:
            domain.expires_at = until

    @rule(seconds=st.sampled_from((0.5, 2.0, 31.0, 61.0)))
    def pass_time(self, seconds: float) -> None:
        self.clock.advance(seconds)

    @precondition(lambda self: self.handles)
    @rule(data=st.data(), outcome=st.sampled_from((Outcome.SUCCESS, Outcome.TIMEOUT, Outcome.EXCLUDED)),
          retry=st.booleans(), links=st.one_of(st.none(), NUMBERS), where=st.sampled_from(DOMAINS))  # fmt: skip
    def settle(self, data: st.DataObject, outcome: Outcome, retry: bool, links: set[int] | None, where: int) -> None:
        handle = data.draw(st.sampled_from(self.handles))
        attempts = [attempt for attempt in handle.attempts if data.draw(st.booleans())]
        retry_at = self.clock.now() + timedelta(seconds=2) if retry and outcome is Outcome.TIMEOUT else None
        addresses = tuple(found(self._name(where), number) for number in links or ())
        visits = [self.bed.visit(handle.lease, attempt, outcome=outcome, retry_at=retry_at, found=addresses)
                  for attempt in attempts]  # fmt: skip
        self.visits.append((handle.owner, visits))
        self._settle(handle.owner, visits)

    @precondition(lambda self: self.visits)
    @rule(data=st.data())
    def settle_again(self, data: st.DataObject) -> None:
        self._settle(*data.draw(st.sampled_from(self.visits)))

    def _settle(self, owner: int, visits: list[Visit]) -> None:
        settled = self.frontiers[owner].settle(self.execution, self._owner(owner), visits)

        refused, repeated, new = [], [], 0
        for visit in visits:
            key = self._key(visit.attempt)
            if visit.token != self.model.domains[key[0]].token:
                refused.append(visit)
            elif key not in self.model.due:
                repeated.append(visit)
            else:
                self._close(key, visit.outcome)
                if visit.retry_at is not None:
                    self.model.due[key[0], key[1], key[2] + 1] = visit.retry_at
                    self.model.crashes[key[0], key[1], key[2] + 1] = self.model.crashes.get(key, 0)
                for address in visit.found:
                    new += self._discover(int(address.domain[1]), {int(address.url.rsplit("/", 1)[1])})
        assert list(settled.refused) == refused
        assert list(settled.repeated) == repeated
        assert settled.closed == len(visits) - len(refused) - len(repeated)
        assert settled.new == new

    def _close(self, key: Key, outcome: Outcome) -> None:
        assert key not in self.model.closed, "an attempt settled twice"
        del self.model.due[key]
        self.model.closed[key] = outcome.value

    @rule(owner=st.sampled_from(OWNERS))
    def crash(self, owner: int) -> None:
        held = [domain for domain in self.model.domains.values()
                if domain.owner == owner and domain.expires_at is not None]  # fmt: skip

        assert self.frontiers[0].free([self._owner(owner)]) == len(held)
        for domain in held:
            domain.token, domain.expires_at = domain.token + 1, None

    @precondition(lambda self: self.handles)
    @rule(data=st.data(), limit=st.integers(1, 4))
    def refill(self, data: st.DataObject, limit: int) -> None:
        handle = data.draw(st.sampled_from(self.handles))
        holding = {attempt.id for attempt in handle.attempts}

        more = self.frontiers[handle.owner].refill(
            self.execution, handle.lease.domain_id, handle.lease.token, limit=limit, holding=holding
        )

        in_force = handle.lease.token == self.model.domains[handle.domain].token
        held = {self._key(attempt) for attempt in handle.attempts}
        due = {key for key, at in self.model.due.items() if key[0] == handle.domain and at <= self.clock.now()} - held
        assert len(more) == (min(limit, len(due)) if in_force else 0)
        assert {self._key(attempt) for attempt in more} <= due
        handle.attempts += more

    @precondition(lambda self: any(handle.attempts for handle in self.handles))
    @rule(data=st.data())
    def blame(self, data: st.DataObject) -> None:
        attempt = data.draw(st.sampled_from([attempt for handle in self.handles for attempt in handle.attempts]))
        key = self._key(attempt)

        guilty = self.frontiers[1].attribute_crash([attempt.id], "it died", limit=2)

        if key in self.model.due:
            self.model.crashes[key] = self.model.crashes.get(key, 0) + 1
            assert guilty == ([attempt.id] if self.model.crashes[key] >= 2 else [])
            if guilty:
                self._close(key, Outcome.FAILED)
        else:
            assert guilty == []

    @precondition(lambda self: self.handles)
    @rule(data=st.data(), rest_s=st.sampled_from((0.0, 1.0, 40.0)))
    def release(self, data: st.DataObject, rest_s: float) -> None:
        handle = data.draw(st.sampled_from(self.handles))
        domain = self.model.domains[handle.domain]

        lost = self.frontiers[handle.owner].release(
            self.execution, self._owner(handle.owner), [self.bed.update(handle.lease, rest_s=rest_s)]
        )

        if handle.lease.token == domain.token:
            assert lost == []
            domain.next_allowed_at = self.clock.now() + timedelta(seconds=rest_s)
            domain.owner = domain.expires_at = None
        else:
            assert lost == [handle.lease.domain_id]

    # What must hold.

    @invariant()
    def the_tables_are_sound(self) -> None:
        assert audit(self.bed.raw_db, self.execution) == []
        assert self.frontiers[0].open_count(self.execution) == len(self.model.due)

    def teardown(self) -> None:
        """Everything that is left can still be had, and every ending is the one that the model saw."""
        for _ in range(100):
            if not self.model.due:
                break
            self.clock.advance(LEASE_S + 1)
            self.lease(0, 3, 4)
            for handle in [handle for handle in self.handles if handle.owner == 0][-3:]:
                self._settle(0, [self.bed.visit(handle.lease, attempt) for attempt in handle.attempts])
        assert not self.model.due, "an attempt was lost"
        rows = self.bed.rows(
            "SELECT p.url, c.attempt, c.outcome FROM page_crawls c JOIN pages p ON p.id = c.page_id"
            " WHERE c.execution_id = ?", (self.execution,),
        )  # fmt: skip
        assert {_key(url, attempt): outcome for url, attempt, outcome in rows} == self.model.closed


def _walk(url: str, clock: FakeClock, *, examples: int, steps: int) -> None:
    with open_bed(url, clock) as bed:
        machine = type("Machine", (FrontierMachine,), {"bed": bed})
        run_state_machine_as_test(
            machine,
            settings=settings(max_examples=examples, stateful_step_count=steps, deadline=None,
                              suppress_health_check=list(HealthCheck), print_blob=True),
        )  # fmt: skip


def test_no_attempt_settles_twice_and_none_is_lost(migrated_url: str, clock: FakeClock) -> None:
    _walk(migrated_url, clock, examples=60 if migrated_url.startswith("sqlite") else 15, steps=25)


@pytest.mark.soak
@pytest.mark.timeout(900)
def test_no_attempt_settles_twice_and_none_is_lost_in_a_long_walk(migrated_url: str, clock: FakeClock) -> None:
    _walk(migrated_url, clock, examples=1000 if migrated_url.startswith("sqlite") else 200, steps=60)
