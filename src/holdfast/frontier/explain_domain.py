"""The state of a domain now, and its delay with reasons, for the explanation of a URL."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from sqlalchemy.orm import Session

from holdfast.clock import from_micros, to_micros
from holdfast.config import Settings
from holdfast.db.models import Domain, Owner
from holdfast.fetch.robots import capped
from holdfast.frontier import politeness
from holdfast.frontier.domains import domain_named, is_held
from holdfast.frontier.explain_records import (
    CircuitKnown,
    ExplainedDomain,
    ExplainedHolder,
    ExplainedRobots,
    ExplainedSource,
)
from holdfast.records import from_row
from holdfast.types import CircuitState


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
    row = domain_named(session, name)
    circuit = _circuit(row)
    delay_s, reasons = _delay(row, sources, robots, settings)
    until = politeness.open_until(circuit, now=now, reset_s=settings.timings.crawl_circuit_reset_s)
    at = from_micros(row.next_allowed_at) if row is not None and row.next_allowed_at > to_micros(now) else None
    found = ExplainedDomain(
        name=name,
        known=row is not None,
        allowed=row.is_allowed if row is not None else True,
        paused_since=row.paused_at if row is not None else None,
        delay_s=delay_s,
        delay_reasons=reasons,
        next_allowed_at=at,
        circuit=CircuitKnown(circuit.state),
        circuit_failures=circuit.failures,
        circuit_open_until=until,
        unreachable_since=circuit.unreachable_since,
        penalty=circuit.penalty,
        holder=_holder(session, row, now),
        sentence="",
    )
    return replace(found, sentence=_domain_sentence(found))


def _circuit(row: Domain | None) -> CircuitState:
    if row is None:
        return CircuitState()
    return from_row(
        CircuitState,
        row,
        state=row.circuit_state,
        failures=row.circuit_failures,
        successes=row.circuit_successes,
        opened_at=row.circuit_opened_at,
    )


def _delay(
    row: Domain | None, sources: Sequence[ExplainedSource], robots: ExplainedRobots, settings: Settings
) -> tuple[float, list[str]]:
    """Return the delay between two requests, and everything that contributes to it, the longest first."""
    delays = [(settings.politeness.delay_s, f"{settings.politeness.delay_s:g} s is the setting")]
    if sources:
        # Where sources have the URL in scope, their delays replace the setting.
        delays = [(one.delay_s, f"{one.source} asks for {one.delay_s:g} s") for one in sources]
    if row is not None and row.delay_s is not None:
        delays.append((row.delay_s, f"an operator asks for {row.delay_s:g} s"))
    if robots.crawl_delay_s is not None:
        most, cut = capped(robots.crawl_delay_s, settings.politeness.max_delay_s)
        capped_at = f", of which {most:g} s are kept" if cut else ""
        delays.append((most, f"robots.txt asks for {robots.crawl_delay_s:g} s{capped_at}"))
    delays.sort(key=lambda one: -one[0])
    seconds, reasons = delays[0][0], [reason for _, reason in delays]
    if seconds < politeness.MIN_DELAY_S:
        reasons.append("less than 1 s holds only inside an allowed private network")
    if row is not None and row.penalty > 1.0:
        seconds *= row.penalty
        reasons.insert(0, f"slowed {row.penalty:g}x after 429 or 503")
    return seconds, reasons


def _holder(session: Session, row: Domain | None, now: datetime) -> ExplainedHolder | None:
    if row is None or row.lease_owner is None or not is_held(row, now):
        return None
    owner = session.get(Owner, row.lease_owner)
    return ExplainedHolder(
        owner=row.lease_owner,
        kind=owner.kind if owner else None,
        host=owner.host if owner else None,
        pid=owner.pid if owner else None,
        execution=owner.execution_id if owner else None,
        until=from_micros(row.lease_expires_at),
    )


def _domain_sentence(found: ExplainedDomain) -> str:
    if not found.allowed:
        return f"{found.name} is forbidden by an operator: nothing is requested there"
    pace = f"every {found.delay_s:g} s ({'; '.join(found.delay_reasons)})"
    if not found.known:
        return f"{found.name} was never requested; it would be {pace}"
    parts = [f"{found.name} is requested at most {pace}"]
    if found.paused_since is not None:
        parts.insert(0, f"an operator has paused it since {found.paused_since:%Y-%m-%d %H:%M}")
    if found.circuit_open_until is not None:
        failures = f"{found.circuit_failures} failures"
        parts.append(f"its circuit is open until {found.circuit_open_until:%H:%M:%S} after {failures}")
    elif found.circuit is not CircuitKnown.CLOSED:
        parts.append("its circuit is being tried again")
    if found.unreachable_since is not None:
        parts.append(f"it has been unreachable since {found.unreachable_since:%Y-%m-%d %H:%M}")
    if (holder := found.holder) is not None:
        where = f"{holder.host} (process {holder.pid})" if holder.host else f"owner {holder.owner}"
        what = f" for execution {holder.execution}" if holder.execution else ""
        parts.append(f"{where} holds it{what}")
    if found.next_allowed_at is not None:
        parts.append(f"its next request may start at {found.next_allowed_at:%Y-%m-%d %H:%M:%S}")
    return "; ".join(parts)
