"""Domain rows to values and back: circuit, robots, and what a lease holder learned."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any

from holdfast.clock import from_micros, to_micros
from holdfast.db.hot import Row
from holdfast.frontier import sql
from holdfast.frontier.connection import Spoken
from holdfast.types import CircuitState, DomainUpdate, RobotsAnswer, RobotsState

_ROBOTS_BYTES = 512 * 1024


def moment(micros: int | None) -> datetime | None:
    """Return a stored moment."""
    return None if micros is None else from_micros(micros)


def micros(at: datetime | None) -> int | None:
    """Return a moment as it is stored."""
    return None if at is None else to_micros(at)


def circuit_of(row: Sequence[Any]) -> CircuitState:
    """Return the circuit from its six columns, in the order of the table."""
    state, failures, successes, opened_at, penalty, unreachable_since = row
    return CircuitState(
        state=state, failures=failures, successes=successes, opened_at=moment(opened_at), penalty=penalty,
        unreachable_since=moment(unreachable_since),
    )  # fmt: skip


def robots_of(tx: Spoken, domain_ids: Collection[int]) -> dict[int, tuple[RobotsState, ...]]:
    """Return what is known of the robots files of these domains."""
    states: dict[int, list[RobotsState]] = {}
    for row in tx.execute(sql.ROBOTS, (tx.list(domain_ids),)):
        states.setdefault(row[0], []).append(_robots(row))
    return {domain_id: tuple(found) for domain_id, found in states.items()}


def robots_of_origin(tx: Spoken, origin: str) -> RobotsState | None:
    """Return what is known of one robots file."""
    rows = tx.execute(sql.ROBOTS_OF_ORIGIN, (origin,))
    return _robots(rows[0]) if rows else None


def _robots(row: Row) -> RobotsState:
    _, origin, answer, status, body, failures, fetched_at, checked_at = row
    return RobotsState(
        origin=origin, answer=RobotsAnswer(answer), status=status, body=bytes(body), failures=failures,
        fetched_at=from_micros(fetched_at), checked_at=from_micros(checked_at),
    )  # fmt: skip


def write_updates(tx: Spoken, updates: Sequence[DomainUpdate]) -> None:
    """Write what was learned; the caller holds the locks and has checked the tokens."""
    if not updates:
        return
    rows = {update.domain_id: _row(update) for update in updates}
    tx.load("new_domains", sql.DOMAIN_COLUMNS, [rows[domain_id] for domain_id in sorted(rows)])
    tx.execute(sql.UPDATE_DOMAINS)
    robots = {state.origin: _robots_row(update, state) for update in updates for state in update.robots}
    if robots:
        tx.many(sql.UPSERT_ROBOTS, [robots[origin] for origin in sorted(robots)])


def _row(update: DomainUpdate) -> tuple[Any, ...]:
    circuit = update.circuit
    return (
        update.domain_id, to_micros(update.next_allowed_at), update.delay_s, circuit.state, circuit.failures,
        circuit.successes, micros(circuit.opened_at), circuit.penalty, micros(circuit.unreachable_since),
    )  # fmt: skip


def _robots_row(update: DomainUpdate, state: RobotsState) -> tuple[Any, ...]:
    return (
        update.domain_id, state.origin, state.answer.value, state.status, state.body[:_ROBOTS_BYTES], state.failures,
        to_micros(state.fetched_at), to_micros(state.checked_at),
    )  # fmt: skip


def fence(tx: Spoken, tokens: Collection[tuple[int, int]]) -> set[tuple[int, int]]:
    """Lock these domains in order and return the (domain, token) pairs that are still in force."""
    held = tx.execute(sql.LOCK_DOMAINS, (tx.list({domain_id for domain_id, _ in tokens}),))
    return {(domain_id, token) for domain_id, token in held} & set(tokens)
