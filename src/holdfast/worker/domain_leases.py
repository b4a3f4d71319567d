"""Leases of domains outside a crawl: who asks a site for anything (a probe, a dry run, a tool) holds its domain first.

Only the holder asks a domain, so a crawl and a probe never ask it at once, and the delay between them is kept. Where
there is no database yet, no crawl can be under way, and nothing is made.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from pathlib import Path

from holdfast.config import Settings
from holdfast.coordination.owners import Owner
from holdfast.coordination.runfile import RunFile
from holdfast.crawl.robots_gate import AGENT
from holdfast.errors import NotPermitted, Unavailable
from holdfast.fetch.robots import RobotsFile, capped
from holdfast.types import DomainLease, DomainUpdate, RobotsAnswer, RobotsState
from holdfast.wiring import Ground, open_ground

KIND = "visitor"
PATIENCE_S = 30.0
"""How long a domain that is busy is waited for."""
_LOOK_S = 0.5


class DomainLeases:
    """The domains that one command holds; used by the thread that opened it. Without a ground all are free."""

    def __init__(self, ground: Ground | None) -> None:
        self._ground = ground
        self._owner = None
        if ground is not None:
            self._owner = Owner(ground.hot, ground.clock, run=RunFile(ground.run_folder), kind=KIND, execution_id=None)
        self._held: dict[str, DomainLease] = {}
        self.wishes: dict[str, float] = {}
        """The delays that robots files ask for, by domain."""
        self._next_at: dict[str, datetime] = {}
        """When a domain may be asked again, by what it answered to us."""

    def try_take(self, domain: str) -> float | None:
        """Return the seconds after which a domain may be asked, now that it is ours; None if it cannot be had now.

        DomainForbidden if it can never be had: waiting for it would have no end.
        """
        if self._ground is None or self._owner is None:
            return 0.0
        lease = self._held.get(domain) or self._ground.frontier.lease_named(self._owner.id, domain)
        if lease is None:
            if self._ground.frontier.is_forbidden(domain):
                raise DomainForbidden(domain)
            return None
        politeness = self._ground.settings.politeness
        if domain not in self._held:
            self._held[domain] = lease
            self.wishes[domain] = _asked_delay(lease, max_delay_s=politeness.max_delay_s)
        wait = (lease.next_allowed_at - self._ground.clock.now()).total_seconds()
        # The last owner died, and may have asked a moment ago.
        own = max(politeness.delay_s, lease.delay_s, self.wishes[domain]) if lease.taken_over else 0.0
        return max(0.0, wait, own)

    def asked(self, domain: str, *, rests_s: float) -> None:
        """Note that a domain was asked, and for how long from now it is to be left alone."""
        if self._ground is not None:
            self._next_at[domain] = self._ground.clock.now() + timedelta(seconds=rests_s)

    def take(self, domain: str, *, patience_s: float = PATIENCE_S, sleep: Callable[[float], None] = time.sleep) -> None:
        """Take a domain and wait for its turn; Unavailable if others hold it, or it must rest, for longer than this."""
        waited = 0.0
        while (wait := self.try_take(domain)) is None:
            if waited >= patience_s:
                raise busy(domain)
            sleep(_LOOK_S)
            waited += _LOOK_S
        sleep(wait)

    def rests(self, domain: str) -> bool:
        """Return whether a domain that is not held cannot be had: it is forbidden, or must rest for long."""
        return self._ground is not None and self._ground.frontier.is_barred(domain)

    def renew(self) -> bool:
        """Extend what is held, to be called at least every 15 s; False if a domain was lost: ask it nothing more."""
        if self._ground is None or self._owner is None or not self._held:
            return True
        leases = self._ground.frontier.renew(self._owner.id)
        with self._ground.hot.write() as tx:
            self._owner.beat(tx)  # a start on another machine frees what an owner holds that is silent for two minutes
        return all(leases.get(lease.domain_id, (None,))[0] == lease.token for lease in self._held.values())

    def robots(self, origin: str) -> RobotsState | None:
        """Return what a crawl has learned of an origin's robots.txt."""
        return None if self._ground is None else self._ground.frontier.robots(origin)

    def give_back(self, *, delay_s: float) -> None:
        """Give all back: those who come next wait for the delay, as if we had asked just now, and never for less than
        the domain asked of us or of those before us."""
        if self._ground is None or self._owner is None:
            return
        now = self._ground.clock.now()
        updates = [
            DomainUpdate(
                domain_id=lease.domain_id,
                token=lease.token,
                next_allowed_at=max(
                    lease.next_allowed_at,
                    self._next_at.get(domain, now),
                    now + timedelta(seconds=max(delay_s, self.wishes.get(domain, 0.0))),
                ),
                circuit=lease.circuit,
            )
            for domain, lease in self._held.items()
        ]
        self._held.clear()
        self._ground.frontier.release(0, self._owner.id, updates)
        self._owner.end()


def _asked_delay(lease: DomainLease, *, max_delay_s: float) -> float:
    """Return the longest delay that the known robots files of a domain ask for."""
    files = (RobotsFile.parse(state.body, AGENT) for state in lease.robots if state.answer is RobotsAnswer.RULES)
    return max((capped(file.crawl_delay or 0.0, max_delay_s).seconds for file in files), default=0.0)


class DomainBusy(Unavailable):
    """A domain is asked by another at this moment, or must rest."""

    code = "domain_busy"


class DomainForbidden(NotPermitted):
    """An operator forbids a domain."""

    code = "domain_forbidden"

    def __init__(self, domain: str) -> None:
        super().__init__(
            f"{domain} is forbidden by an operator of this installation, so nothing is asked there; leave it out, or"
            " have it allowed"
        )


def busy(domain: str) -> DomainBusy:
    """Return the refusal of a domain that others ask at this moment."""
    return DomainBusy(
        f"{domain} is asked by a crawl at this moment, or must rest; try again later, or stop it with: holdfast stop"
    )


@contextmanager
def open_leases(settings: Settings, *, delay_s: float) -> Iterator[DomainLeases]:
    """Open the leases of a command, in the database if there is one, and give back what it took."""
    if settings.database_url is None and not (Path(settings.home) / "holdfast.db").is_file():
        yield DomainLeases(None)
        return
    with open_ground(settings) as ground:
        leases = DomainLeases(ground)
        try:
            yield leases
        finally:
            with suppress(Unavailable):  # they lapse by themselves; what was done with them stands
                leases.give_back(delay_s=delay_s)


@contextmanager
def hold_domains(
    settings: Settings,
    domains: Iterable[str],
    *,
    delay_s: float,
    twins: Iterable[str] = (),
    patience_s: float = PATIENCE_S,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[DomainLeases]:
    """Hold these domains while a tool asks them; call `renew` meanwhile. DomainBusy if one of them stays busy,
    DomainForbidden if one may not be asked.

    `twins` are places that the tool may be sent to: they are held as well, so that no crawl asks them beside it. One
    that rests, because it does not answer, or that is forbidden, keeps nothing from being begun.
    """
    wanted = set(domains)
    with open_leases(settings, delay_s=delay_s) as leases:
        for domain in sorted(wanted | set(twins)):  # in one order, so that two tools never wait for each other
            if domain not in wanted and leases.rests(domain):
                continue
            leases.take(domain, patience_s=patience_s, sleep=sleep)
            if not leases.renew():  # those taken first have waited for the others
                raise busy(domain)
        yield leases
