"""How a crawl would treat a URL now: its robots.txt, and the state of its domain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple

from sqlalchemy.orm import Session

from holdfast.clock import from_micros, to_micros
from holdfast.config import Settings
from holdfast.db.models import Domain
from holdfast.fetch import robots as rules
from holdfast.fetch.robots import AGENT, RobotsFile, RobotsVerdict, capped
from holdfast.frontier import explain_queries as queries
from holdfast.frontier import politeness
from holdfast.frontier.explain_records import (
    CircuitKnown,
    ExplainedDomain,
    ExplainedHolder,
    ExplainedRobots,
    ExplainedSource,
    RobotsKnown,
)
from holdfast.types import CircuitState, RobotsAnswer, RobotsRecord
from holdfast.urls import Url


def explain_robots(
    url: Url | None,
    state: RobotsRecord | None,
    sources: Sequence[ExplainedSource],
    *,
    now: datetime,
    live: bool = False,
) -> ExplainedRobots:
    ignored = [one.source for one in sources if one.robots == "ignore"]
    known = _known(state, now)
    allowed: bool | None = None
    rule, line, delay = None, None, None
    if url is not None and state is not None and known is RobotsKnown.RULES:
        file = RobotsFile.parse(state.body, AGENT)
        decision = file.decide(url.fetch)
        allowed, rule, line, delay = decision.allowed, decision.rule, decision.line, file.crawl_delay
    elif known in (RobotsKnown.ALLOW_ALL, RobotsKnown.UNREACHABLE):
        allowed = known is RobotsKnown.ALLOW_ALL
    told = ExplainedRobots(
        origin=url.origin if url is not None else None,
        known=known,
        allowed=allowed,
        rule=rule,
        line=line,
        crawl_delay_s=delay,
        status=state.status if state else None,
        failures=state.failures if state else 0,
        fetched_at=state.fetched_at if state else None,
        checked_at=state.checked_at if state else None,
        next_try_at=rules.next_try_at(state) if state else None,
        live=live,
        ignored_by=ignored,
        sentence="",
    )
    return replace(told, sentence=_robots_sentence(told))


def _known(state: RobotsRecord | None, now: datetime) -> RobotsKnown:
    if state is None:
        return RobotsKnown.UNKNOWN
    verdict = rules.verdict(state, now)
    if verdict is RobotsVerdict.UNKNOWN:
        return RobotsKnown.EXPIRED
    if verdict is RobotsVerdict.RULES:
        return RobotsKnown.RULES
    return RobotsKnown.UNREACHABLE if state.answer is RobotsAnswer.UNREACHABLE else RobotsKnown.ALLOW_ALL


def _robots_sentence(told: ExplainedRobots) -> str:
    read = f", read {told.fetched_at:%Y-%m-%d %H:%M} UTC" if told.fetched_at else ""
    but = f"; ignored by {', '.join(told.ignored_by)}, as the audit log says" if told.ignored_by else ""
    if told.origin is None:
        return "no robots.txt applies: no crawl would request this address"
    if told.known is RobotsKnown.UNKNOWN:
        return f"its robots.txt was never read; it is fetched before anything else{but}"
    if told.known is RobotsKnown.EXPIRED:
        return f"its robots.txt is more than a day old{read}; it is fetched again before anything else{but}"
    if told.known is RobotsKnown.UNREACHABLE:
        answer = f"answered {told.status}" if told.status is not None else "did not answer"
        return f"its robots.txt {answer}, so nothing may be requested until it does{but}"
    if told.known is RobotsKnown.ALLOW_ALL:
        return f"there is no robots.txt (status {told.status}{read}), so everything may be requested"
    word = "allows" if told.allowed else "forbids"
    why = f"by line {told.line}, {told.rule}" if told.line is not None else told.rule or "for no rule matches"
    return f"robots.txt {word} it, {why}{read}{but if not told.allowed else ''}"


class _Delay(NamedTuple):
    seconds: float
    reasons: list[str]


def explain_domain(
    session: Session,
    name: str,
    sources: Sequence[ExplainedSource],
    robots: ExplainedRobots,
    settings: Settings,
    *,
    now: datetime,
) -> ExplainedDomain:
    """Return the current state of a domain; one that was never requested has its initial delay."""
    row = queries.domain_named(session, name)
    circuit = _circuit(row)
    delay = _delay(row, sources, robots, settings)
    until = politeness.open_until(circuit, now=now, reset_s=settings.timings.crawl_circuit_reset_s)
    at = from_micros(row.next_allowed_at) if row is not None and row.next_allowed_at > to_micros(now) else None
    told = ExplainedDomain(
        name=name,
        known=row is not None,
        allowed=row.is_allowed if row is not None else True,
        paused_since=row.paused_at if row is not None else None,
        delay_s=delay.seconds,
        delay_reasons=delay.reasons,
        next_allowed_at=at,
        circuit=CircuitKnown(circuit.state),
        circuit_failures=circuit.failures,
        circuit_open_until=until,
        unreachable_since=circuit.unreachable_since,
        penalty=circuit.penalty,
        holder=_holder(session, row, now),
        sentence="",
    )
    return replace(told, sentence=_domain_sentence(told))


def _circuit(row: Domain | None) -> CircuitState:
    if row is None:
        return CircuitState()
    return CircuitState(
        state=row.circuit_state,
        failures=row.circuit_failures,
        successes=row.circuit_successes,
        opened_at=row.circuit_opened_at,
        penalty=row.penalty,
        unreachable_since=row.unreachable_since,
    )


def _delay(
    row: Domain | None, sources: Sequence[ExplainedSource], robots: ExplainedRobots, settings: Settings
) -> _Delay:
    """Return the delay between two requests, and everything that contributes to it, the longest first."""
    wishes = [(settings.politeness.delay_s, f"{settings.politeness.delay_s:g} s is the setting")]
    if sources:
        # A source that says something of its own is asked instead of the setting.
        wishes = [(one.delay_s, f"{one.source} asks for {one.delay_s:g} s") for one in sources]
    if row is not None and row.delay_s is not None:
        wishes.append((row.delay_s, f"an operator asks for {row.delay_s:g} s"))
    if robots.crawl_delay_s is not None:
        most, cut = capped(robots.crawl_delay_s, settings.politeness.max_delay_s)
        capped_at = f", of which {most:g} s are kept" if cut else ""
        wishes.append((most, f"robots.txt asks for {robots.crawl_delay_s:g} s{capped_at}"))
    wishes.sort(key=lambda wish: -wish[0])
    seconds, reasons = wishes[0][0], [reason for _, reason in wishes]
    if seconds < politeness.MIN_DELAY_S:
        reasons.append("less than 1 s holds only inside an allowed private network")
    if row is not None and row.penalty > 1.0:
        seconds *= row.penalty
        reasons.insert(0, f"slowed {row.penalty:g}x after 429 or 503")
    return _Delay(seconds, reasons)


def _holder(session: Session, row: Domain | None, now: datetime) -> ExplainedHolder | None:
    if row is None or row.lease_owner is None or row.lease_expires_at <= to_micros(now):
        return None
    owner = queries.owner_of(session, row.lease_owner)
    return ExplainedHolder(
        owner=row.lease_owner,
        kind=owner.kind if owner else None,
        host=owner.host if owner else None,
        pid=owner.pid if owner else None,
        execution=owner.execution_id if owner else None,
        until=from_micros(row.lease_expires_at),
    )


def _domain_sentence(told: ExplainedDomain) -> str:
    if not told.allowed:
        return f"{told.name} is forbidden by an operator: nothing is requested there"
    pace = f"{told.name} is requested at most every {told.delay_s:g} s ({'; '.join(told.delay_reasons)})"
    if not told.known:
        return (
            f"{told.name} was never requested; it would be every {told.delay_s:g} s ({'; '.join(told.delay_reasons)})"
        )
    parts = [pace]
    if told.paused_since is not None:
        parts.insert(0, f"an operator has paused it since {told.paused_since:%Y-%m-%d %H:%M}")
    if told.circuit_open_until is not None:
        failures = f"{told.circuit_failures} failures"
        parts.append(f"its circuit is open until {told.circuit_open_until:%H:%M:%S} after {failures}")
    elif told.circuit is not CircuitKnown.CLOSED:
        parts.append("its circuit is being tried again")
    if told.unreachable_since is not None:
        parts.append(f"it has been unreachable since {told.unreachable_since:%Y-%m-%d %H:%M}")
    if told.holder is not None:
        where = f"{told.holder.host} (process {told.holder.pid})" if told.holder.host else f"owner {told.holder.owner}"
        what = f" for execution {told.holder.execution}" if told.holder.execution else ""
        parts.append(f"{where} holds it{what}")
    if told.next_allowed_at is not None:
        parts.append(f"its next request may start at {told.next_allowed_at:%Y-%m-%d %H:%M:%S}")
    return "; ".join(parts)
