"""How one domain is treated: delay, circuit, robots files. Changed only by the lane that holds the lease."""

from __future__ import annotations

from datetime import datetime

from holdfast.clock import Clock
from holdfast.config import PolitenessSettings
from holdfast.fetch import robots_state
from holdfast.frontier import circuit as breaker
from holdfast.frontier import politeness
from holdfast.types import CircuitState, DomainLease, DomainUpdate, RobotsState


class Manners:
    """What a lease holder knows and learns about its domain."""

    def __init__(self, lease: DomainLease, settings: PolitenessSettings, clock: Clock, *, plan_delay_s: float) -> None:
        self._lease, self._settings, self._clock = lease, settings, clock
        self._own_s = max(plan_delay_s, lease.delay_s)
        self._robots_s: dict[str, float] = {}
        self._is_private = False
        self.circuit: CircuitState = lease.circuit
        self.robots: dict[str, RobotsState] = {state.origin: state for state in lease.robots}
        self._learned: dict[str, RobotsState] = {}
        self._told = _essence(lease.circuit)
        self._must_tell = False

    @property
    def delay_s(self) -> float:
        """Seconds between two starts: ours, the robots file's, and the slow-down after 429 and 503."""
        asked_s = max(self._own_s, self._asked_s)
        return politeness.delay_between(asked_s, penalty=self.circuit.penalty, is_private=self._is_private)

    @property
    def why_slow(self) -> str | None:
        """The reason for a delay beyond the plan's, in words for the display."""
        if self.circuit.penalty > 1.0:
            return f"slowed {self.circuit.penalty:g}x after 429 or 503"
        return f"crawl-delay {self._asked_s:g} s" if self._asked_s > max(self._own_s, politeness.MIN_DELAY_S) else None

    @property
    def _asked_s(self) -> float:
        """The longest delay that a robots file of this domain asks for."""
        return max(self._robots_s.values(), default=0.0)

    def met(self, *, is_private: bool) -> None:
        """Note whether the domain's address lies in an allowed private network."""
        self._is_private = is_private

    def crawl_delay(self, origin: str, seconds: float) -> None:
        """Take the wish of an origin's robots file, which is capped already."""
        self._robots_s[origin] = seconds

    def learn(self, state: RobotsState) -> None:
        """Take a new answer about an origin's robots.txt; it is written with the next settle."""
        self.robots[state.origin] = self._learned[state.origin] = state

    def went_well(self) -> None:
        """Note an answer that says the domain is in order."""
        self.circuit = breaker.on_success(politeness.relax(self.circuit))

    def went_badly(self, *, at_once: bool = False) -> None:
        """Note a failure of the domain: enough of them in a row open its circuit, or this one `at_once`."""
        threshold = 1 if at_once else self._settings.circuit_failures
        self.circuit = breaker.on_failure(self.circuit, now=self._clock.now(), threshold=threshold)

    def slow_down(self) -> None:
        """Note a 429 or 503: the domain asks for less."""
        self.circuit = politeness.penalise(self.circuit)

    @property
    def closed_until(self) -> datetime | None:
        """When the domain may be tried again, if its circuit is open now."""
        return breaker.open_until(self.circuit, now=self._clock.now(), reset_s=self._settings.circuit_reset_s)

    def unreachable(self) -> None:
        """Note that nothing can be asked for now (robots unreachable)."""
        self.circuit = breaker.mark_unreachable(self.circuit, now=self._clock.now())

    def gives_up(self, *, next_try_at: datetime, since: datetime) -> bool:
        """Return whether the domain stays unreachable beyond what an execution waits, counted from `since`."""
        return breaker.gives_up(
            self.circuit,
            now=self._clock.now(),
            since=since,
            patience_s=self._settings.unreachable_s,
            next_try_at=next_try_at,
            longest_wait_s=max(self._settings.circuit_reset_s, robots_state.LONGEST.total_seconds()),
        )

    def told_to_rest(self, *, is_busy: bool) -> None:
        """Note that the server named the moment of the next request: it is written soon, so that it outlives us.

        One that is busy until beyond the horizon counts as unreachable.
        """
        self._must_tell = True
        if is_busy:
            self.unreachable()

    @property
    def has_news(self) -> bool:
        """Whether something was learned that should be written soon."""
        return self._must_tell or bool(self._learned) or _essence(self.circuit) != self._told

    def update(self, *, next_allowed_at: datetime) -> DomainUpdate:
        """Return what was learned since the last call, for the next settle or release."""
        learned, self._learned = tuple(self._learned.values()), {}
        self._told, self._must_tell = _essence(self.circuit), False
        return DomainUpdate(
            domain_id=self._lease.domain_id, token=self._lease.token, next_allowed_at=next_allowed_at,
            circuit=self.circuit, robots=learned,
        )  # fmt: skip


def _essence(circuit: CircuitState) -> tuple[str, float, datetime | None, datetime | None]:
    """Return what the next holder must know of a circuit; single failures may be forgotten."""
    return circuit.state, circuit.penalty, circuit.opened_at, circuit.unreachable_since
